// The plain values that go in and out of a store. The names are those of the kubelet's own files
// (KEP-2535, "Cache Directory Structure").

#ifndef WAYBILL_TYPES_H_
#define WAYBILL_TYPES_H_

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "waybill/platform.h"
#include "waybill/result.h"

namespace [[gnu::visibility("default")]] waybill {

// A point in time, UTC. Seconds since 1970 may be negative; 0 <= nanoseconds < 1,000,000,000.
// Covers the years 1 to 9999, which is what RFC 3339 can write.
struct Timestamp {
  std::int64_t seconds = 0;
  std::int32_t nanoseconds = 0;

  friend auto operator<=>(const Timestamp&, const Timestamp&) = default;
};

// Who checked a credential when a pull proved it. The numbers are stored.
enum class VerifiedBy : std::uint8_t {
  kUnknown = 0,   // nobody said
  kRegistry = 1,  // the image's own registry, or nobody else by the runtime's configuration
  // By the runtime's configuration another host may have served the pull. Many of them ask for no
  // credentials: then any Secret "proves" itself.
  kMirror = 2,
  // The pull happened in the guest of a confidential container: the node proved nothing.
  kGuest = 3,
};
// "unknown", "registry", "mirror", "guest"; "" for a number of a later version.
std::string_view VerifiedByName(VerifiedBy checker);
// kInvalidArgument for any other name; the text lists the four.
Result<VerifiedBy> ParseVerifiedBy(std::string_view name);

// What a caller says of the proof that a pull brought, beside that it succeeded.
struct ProofTerms {
  VerifiedBy checker = VerifiedBy::kUnknown;
  // Until when the credential is good by its own word: a token's `exp`, a credential provider's
  // cacheDuration. Its fraction of a second does not count. nullopt: it does not say.
  std::optional<Timestamp> good_until = {};
};

// When and by whom a credential was last proven. A match proves nothing: a credential that is
// written back because it matched gets the proof of the one that it matched. A newer proof takes
// the place of an older one, unless the registry checked the older one alone, and it still counts.
// Set by the store, ignored in arguments, and not compared: two values with different proofs are
// equal.
struct Proof {
  // Whole seconds; nullopt: unknown. By the clock of ages (AgeLimits): where the wall clock was put
  // back after a jump, it is ahead of that clock for good.
  std::optional<Timestamp> proven = {};
  // The commit in which that pull began (RecordPullIntent); 0: unknown.
  std::uint64_t pull_began = 0;
  VerifiedBy checker = VerifiedBy::kUnknown;
  // From then on the proof does not count, whatever AgeLimits say. Whole seconds; nullopt: not
  // said.
  std::optional<Timestamp> good_until = {};
};

// Coordinates of a Kubernetes Secret and the hash of the credentials that it held when an image was
// pulled with it. The hash is opaque and only compared. Empty: hashing failed; the hash then
// matches nothing, but the coordinates still can.
struct ImagePullSecret {
  std::string uid = {};
  std::string namespace_name = {};
  std::string name = {};
  std::string credential_hash = {};
  Proof proof = {};

  friend auto operator<=>(const ImagePullSecret& a, const ImagePullSecret& b) {
    return std::tie(a.uid, a.namespace_name, a.name, a.credential_hash) <=>
           std::tie(b.uid, b.namespace_name, b.name, b.credential_hash);
  }
  friend bool operator==(const ImagePullSecret& a, const ImagePullSecret& b) {
    return (a <=> b) == 0;
  }
};

struct ImagePullServiceAccount {
  std::string uid = {};
  std::string namespace_name = {};
  std::string name = {};
  Proof proof = {};

  friend auto operator<=>(const ImagePullServiceAccount& a, const ImagePullServiceAccount& b) {
    return std::tie(a.uid, a.namespace_name, a.name) <=> std::tie(b.uid, b.namespace_name, b.name);
  }
  friend bool operator==(const ImagePullServiceAccount& a, const ImagePullServiceAccount& b) {
    return (a <=> b) == 0;
  }
};

// The same, borrowed: what a decision reads. The strings must outlive the call.
struct ImagePullSecretView {
  std::string_view uid = {};
  std::string_view namespace_name = {};
  std::string_view name = {};
  std::string_view credential_hash = {};

  ImagePullSecretView() = default;
  ImagePullSecretView(std::string_view uid_in, std::string_view namespace_in,
                      std::string_view name_in, std::string_view hash_in)
      : uid(uid_in), namespace_name(namespace_in), name(name_in), credential_hash(hash_in) {}
  // NOLINTNEXTLINE(google-explicit-constructor): a view of an owned value, as string_view is.
  ImagePullSecretView(const ImagePullSecret& s)
      : uid(s.uid),
        namespace_name(s.namespace_name),
        name(s.name),
        credential_hash(s.credential_hash) {}
};

struct ImagePullServiceAccountView {
  std::string_view uid = {};
  std::string_view namespace_name = {};
  std::string_view name = {};

  ImagePullServiceAccountView() = default;
  ImagePullServiceAccountView(std::string_view uid_in, std::string_view namespace_in,
                              std::string_view name_in)
      : uid(uid_in), namespace_name(namespace_in), name(name_in) {}
  // NOLINTNEXTLINE(google-explicit-constructor): a view of an owned value, as string_view is.
  ImagePullServiceAccountView(const ImagePullServiceAccount& s)
      : uid(s.uid), namespace_name(s.namespace_name), name(s.name) {}
};

// Which copy of an image a call is about, borrowed for the call. Name the members
// ({.image = …, .image_ref = …}): an image string in the place of the ref would ask about another
// copy, of which the store may know nothing. Each function says which members it needs, and ignores
// the others: the same value serves for a decision and for the pull after it.
struct ImageCopy {
  std::string_view image = {};      // the container's image string, as the pod wrote it
  std::string_view image_ref = {};  // what the runtime returned for it; empty: not on the node
  std::string_view runtime_handler = {};  // of the pod's RuntimeClass; empty: the default
};

// Which credentials opened an image under one image name. With node_pods_accessible (pulled without
// credentials, or with the node's own) every pod of the node may use it. If all fields are empty,
// every pod must pull it again.
struct ImagePullCredentials {
  bool node_pods_accessible = false;
  std::vector<ImagePullSecret> kubernetes_secrets = {};
  std::vector<ImagePullServiceAccount> kubernetes_service_accounts = {};
  Proof node_pods_proof = {};  // of node_pods_accessible

  bool empty() const {
    return !node_pods_accessible && kubernetes_secrets.empty() &&
           kubernetes_service_accounts.empty();
  }
  friend bool operator==(const ImagePullCredentials& a, const ImagePullCredentials& b) {
    return a.node_pods_accessible == b.node_pods_accessible &&
           a.kubernetes_secrets == b.kubernetes_secrets &&
           a.kubernetes_service_accounts == b.kubernetes_service_accounts;
  }
};

// One image on the node that the kubelet pulled. credential_mapping is keyed by image name: the
// pod's image string without tag and digest, otherwise unchanged.
struct ImagePulledRecord {
  std::string image_ref = {};
  std::optional<Timestamp> last_updated = {};  // nullopt: the kubelet's `null`
  std::map<std::string, ImagePullCredentials> credential_mapping = {};
  // The number of the commit that wrote the record. Set by the store; ignored in arguments.
  std::uint64_t stamp = 0;
  // Whose copy of the image this is. Empty: the default handler's.
  std::string runtime_handler = {};
  // Which manifest of an index was pulled, and its platform, if the caller passed them.
  std::string manifest_digest = {};
  std::optional<Platform> platform = {};
  // The guest platform of the handler when the image was pulled. Set by the store from the registry
  // of handlers. If the handler's platform changes, its images must be verified again.
  std::optional<Platform> guest_platform = {};
  // Why the image was closed without a pull by this kubelet, if it was: one sentence, no full stop.
  // Set by the store; empty once the image was pulled.
  std::string closed_because = {};
  // A list closed it, since an open pull or a gap may have brought it: the runtime's word that
  // nobody pulled it (ListedImage::imported) opens it. Set by the store; ignored in arguments.
  bool closed_by_list = false;
  // An operator closed the image (NodeStore::RemoveFromLedger), and did not take that back
  // (NodeStore::AddToLedger): only what pulls prove opens it, whatever a runtime says of it. A pull
  // leaves this. Set by the store; ignored in arguments.
  bool closed_by_operator = false;
  // Since when the image has been gone from the node: the record is remembered
  // (EvidenceOptions::remember). Whole seconds. Set by the store; ignored in arguments.
  std::optional<Timestamp> absent_since = {};
  std::uint64_t absent_ran = 0;  // used inside the store: how long the node had run by then

  friend bool operator==(const ImagePulledRecord&, const ImagePulledRecord&) = default;
};

// A pull that began and whose outcome is not recorded. `image` is the container's image string as
// the pod wrote it; it need not parse.
struct ImagePullIntent {
  std::string image = {};
  std::string runtime_handler = {};  // empty: the default handler

  friend auto operator<=>(const ImagePullIntent&, const ImagePullIntent&) = default;
};

// An image that a newer kubelet found on the node before it pulled anything: a file of
// observed-preloaded/. Rules::kClosed judges it as an image of a list (ObserveImages).
struct ImagePreloadedRecord {
  std::string image_ref = {};
  std::optional<Timestamp> last_updated = {};
  std::vector<std::string> observed_images = {};  // image names, sorted

  friend bool operator==(const ImagePreloadedRecord&, const ImagePreloadedRecord&) = default;
};

// An image as the container runtime lists it: CRI's Image message, `crictl images -o json`. Its
// spellings are the ID, with and without `sha256:`, and its repo digests. A function that only asks
// which images are there (Prune) needs one spelling as `id`, and no names.
struct ListedImage {
  std::string id = {};                         // the image ref
  std::vector<std::string> repo_tags = {};     // names: `repo:tag`
  std::vector<std::string> repo_digests = {};  // names: `repo@digest`
  // CRI's Image.spec.runtime_handler. Empty: not given, so the image may be any handler's.
  std::string runtime_handler = {};
  bool pinned = false;  // by the runtime's configuration
  // The runtime shows that no pull by anyone brought it. Never set it by guessing: the image is
  // then open to all pods.
  bool imported = false;
  // On the node's disk, by the runtime's word; 0: unknown. For a trace alone.
  std::uint64_t bytes = 0;

  friend bool operator==(const ListedImage&, const ListedImage&) = default;
};

// A time since the machine booted. Changes of the wall clock do not affect it.
struct BootTime {
  std::array<std::uint8_t, 16> boot_id = {};  // which boot; zeros: unknown
  std::int64_t nanoseconds = 0;               // CLOCK_BOOTTIME

  friend bool operator==(const BootTime&, const BootTime&) = default;
};

// Which pull is meant. Durable, and never used twice in one store. 0: no pull is named.
struct PullId {
  std::uint64_t value = 0;

  friend auto operator<=>(const PullId&, const PullId&) = default;
};

// The manifest that a pull chose out of an index (waybill/image_index.h).
struct PulledManifest {
  std::string digest = {};
  Platform platform = {};
};

// What an unreadable file stood for; only its name tells.
enum class QuarantineKind : std::uint8_t {
  kImageRef = 1,  // of pulled/: SHA-256 of an image ref
  kImage = 2,     // of pulling/: SHA-256 of an image string
};

// Closes an image until it is pulled again: decisions on it answer "pull", with the result `error`.
struct QuarantinedFile {
  QuarantineKind kind = QuarantineKind::kImageRef;
  std::string sha256 = {};  // 64 lower-case hex digits
  std::string source = {};  // the file, below the kubelet directory
  std::string reason = {};
  Timestamp since = {};

  friend bool operator==(const QuarantinedFile&, const QuarantinedFile&) = default;
};

}  // namespace waybill

#endif  // WAYBILL_TYPES_H_
