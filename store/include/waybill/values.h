// The values that go in and out of a store. Each is described once in store/door/values.h, which
// says by which names JSON has its members. Texts are UTF-8, times UTC. A member that says "set by
// the store" is ignored in arguments.

#ifndef WAYBILL_VALUES_H_
#define WAYBILL_VALUES_H_

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "waybill/result.h"

namespace [[gnu::visibility("default")]] waybill {

// --- Time ----------------------------------------------------------------------------------------

struct Timestamp {               // years 1 to 9999
  std::int64_t seconds = 0;      // since 1970
  std::int32_t nanoseconds = 0;  // 0 to 999,999,999

  friend auto operator<=>(const Timestamp&, const Timestamp&) = default;
};

// A time since the machine booted. Changes of the wall clock do not affect it.
struct BootTime {
  std::array<std::uint8_t, 16> boot_id = {};  // which boot; zeros: unknown
  std::int64_t nanoseconds = 0;               // CLOCK_BOOTTIME

  friend bool operator==(const BootTime&, const BootTime&) = default;
};

// Both clocks are called from any thread.
using Clock = std::function<Timestamp()>;
Timestamp SystemClock();
using BootClock = std::function<BootTime()>;
BootTime SystemBootClock();

// Called now and then during a long operation: units (files, values, bytes) done, and in all. False
// stops it: kInterrupted, and what was done so far is kept.
using Progress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

// Says how old a list is at most: drawn by BeginList before the list is made. One store's own.
struct ListToken {
  std::uint64_t commit = 0;
  BootTime drawn = {};
  std::uint64_t store = 0;

  friend bool operator==(const ListToken&, const ListToken&) = default;
};

// --- Credentials ---------------------------------------------------------------------------------

// Who checked a credential when a pull proved it. The numbers are stored.
enum class VerifiedBy : std::uint8_t {
  kUnknown = 0,   // nobody said
  kRegistry = 1,  // the image's own registry, or nobody else by the runtime's configuration
  // By the runtime's configuration another host may have served the pull. Many of them ask for no
  // credentials: then any Secret "proves" itself.
  kMirror = 2,
  kGuest = 3,  // the pull happened in the guest of a confidential container: nothing was proven
  // The pull used no credentials of a pod, so no registry checked any. Set by the store.
  kNobody = 4,
};

// What a caller says of the proof that a pull brought, beside that it succeeded.
struct ProofTerms {
  VerifiedBy checker = VerifiedBy::kUnknown;
  // Until when the credential is good by its own word: a token's `exp`, a credential provider's
  // cacheDuration. Its fraction of a second does not count. nullopt: it does not say.
  std::optional<Timestamp> good_until = {};
  // Of a pull without credentials of a pod: the caller knows that neither the kubelet nor the
  // runtime had one for that registry, since before the pull began. Only then may what it proved
  // take the place of Secrets or service accounts that are, or were, on record.
  bool node_had_no_credentials = false;
};

// When and by whom a credential was last proven. A match proves nothing: a credential that is
// written back since it matched gets the proof of the one that it matched. Set by the store, and
// not compared.
struct Proof {
  std::optional<Timestamp> proven = {};  // whole seconds, by the clock of ages; nullopt: unknown
  std::uint64_t pull_began = 0;          // the commit in which that pull began; 0: unknown
  VerifiedBy checker = VerifiedBy::kUnknown;
  std::optional<Timestamp> good_until = {};  // it does not count from then on; nullopt: not said
};

// Coordinates of a Kubernetes Secret, and the hash of what it held when an image was pulled with it
// (HashCredentials). Empty hash: it matches nothing, but the coordinates still can.
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
      : ImagePullSecretView(s.uid, s.namespace_name, s.name, s.credential_hash) {}
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
      : ImagePullServiceAccountView(s.uid, s.namespace_name, s.name) {}
};

// Which credentials opened an image under one image name. With node_pods_accessible (pulled without
// credentials, or with the node's own) every pod of the node may use it. If all are empty, every
// pod must pull it again.
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

// One entry of a docker config. The caller decodes a base64 `auth` ("user:password") into the first
// two.
struct AuthConfig {
  std::string username = {};
  std::string password = {};
  std::string email = {};
};

// The hash under which credentials are remembered, byte for byte what the kubelet computes:
// lower-case hex SHA-256 of the compact JSON that Go writes. kOutOfMemory. Thread-safe.
Result<std::string> HashCredentials(const AuthConfig& auth);

// A pod's credentials, borrowed. The Secrets are those of its imagePullSecrets that match the
// image.
struct PodCredentials {
  std::span<const ImagePullSecretView> secrets = {};
  std::optional<ImagePullServiceAccountView> service_account = {};
};

// --- Decisions -----------------------------------------------------------------------------------

// Which copy of an image a call is about, borrowed for the call. Name the members ({.image = …,
// .image_ref = …}): an image string in the place of the ref would ask about another copy.
struct ImageCopy {
  std::string_view image = {};      // the container's image string, as the pod wrote it
  std::string_view image_ref = {};  // what the runtime returned for it; empty: not on the node
  std::string_view runtime_handler = {};  // of the pod's RuntimeClass; empty: the default
};

// What a decision saw before the pod's credentials were fetched. Only decisions use its members.
struct FirstLook {
  std::vector<std::uint8_t> record = {};
  std::string image_ref = {};
  std::uint64_t read_at = 0;

  explicit operator bool() const { return !record.empty(); }
};

// Where a decision gets the pod's credentials. It asks at most once, on its own thread, and only if
// the answer depends on them (kubelet behaviour). An error makes the answer "pull". What Fetch
// returns must stay valid until the decision returns. No lock is held, but Fetch may not call back
// into the same store.
class CredentialSource {
 public:
  virtual Result<PodCredentials> Fetch() = 0;

  // If Fetch may wait, the decision copies what it read, and releases its snapshot meanwhile. What
  // changes in the store until then may close the image, but never opens it.
  virtual bool may_block() const { return true; }

  // True: the credentials are not at hand, and Fetch must not be called. A decision that depends on
  // them is "pull", kCredentialsNeeded, and is not counted; what it saw goes to first_look, for the
  // decision that asks again.
  virtual bool deferred() const { return false; }
  virtual FirstLook* first_look() { return nullptr; }

 protected:
  ~CredentialSource() = default;
};

// Credentials that the caller gets only if a decision depends on them: for callers that can't wait
// inside a decision. If the reason is kCredentialsNeeded, Provide them, or the error of getting
// them, and ask again about the same image with the same object. Use a new object for each
// question, on one thread at a time. The views must stay valid until the second answer.
class DeferredCredentials final : public CredentialSource {
 public:
  void Provide(Result<PodCredentials> credentials) { credentials_ = std::move(credentials); }

  Result<PodCredentials> Fetch() override {
    return credentials_ ? *credentials_ : PodCredentials();
  }
  bool may_block() const override { return false; }
  bool deferred() const override { return !credentials_; }
  FirstLook* first_look() override { return &first_look_; }

 private:
  FirstLook first_look_;
  std::optional<Result<PodCredentials>> credentials_;
};

// A label `result` of kubelet_imagemanager_image_mustpull_checks_total. kNotCounted: the image is
// not on the node, and the metric does not count it.
enum class CheckResult : std::uint8_t {
  kNotCounted,
  kCredentialPolicyAllowed,
  kCredentialRecordFound,
  kMustAuthenticate,
  kError,
};
std::string_view CheckResultName(CheckResult result);  // "credentialPolicyAllowed"; "": not counted

// Why a decision was made, one step finer than CheckResult.
enum class Reason : std::uint8_t {
  kImageAbsent,              // the image ref is empty: not on the node
  kPolicyNeverVerifies,      // NeverVerify
  kPolicyPresumedPreloaded,  // mode kubelet: no record, no intent, nothing lost
  kPolicyAllowlisted,
  kNodePodsAccessible,
  kSecretHashMatches,
  kSecretCoordinatesMatch,
  kServiceAccountMatches,
  kNoRecord,               // verification required, but no record to verify against
  kPullInFlight,           // mode kubelet: no record, but a pull of this image began
  kStoreDistrustful,       // no record, but the store may have lost it
  kPulledForOtherHandler,  // no record of this handler's copy, but one of another's
  kNoEntryForImageName,
  kEntryWithoutCredentials,
  kNoCredentialMatches,
  kImageDoesNotParse,
  kArgumentTooLong,  // an image, ref or handler above limits.h
  kRuntimeHandlerUnknown,
  kRecordDamaged,
  kQuarantined,             // an import file for this image could not be read
  kCredentialsUnavailable,  // the CredentialSource failed
  kStoreUnavailable,        // closed, out of reader slots, or in an unknown state
  kCredentialsNeeded,       // the answer depends on credentials that are deferred
  kPolicyKnownPreloaded,    // mode strict: the image is known to be preloaded
  kNoEvidence,              // mode strict: no record, and not preloaded (Explain says more)
  kProofTooOld,             // a credential matches, but its proof is too old, or has ended
  kProofNotByRegistry,      // one matches, but the policy counts only what the registry checked
};
std::string_view ReasonName(Reason reason);  // "secretHashMatches"
std::string_view ReasonText(Reason reason);  // one sentence, no full stop

// Made without an answer, it says "pull".
struct [[nodiscard]] Decision {
  bool pull = true;
  CheckResult result = CheckResult::kError;
  Reason reason = Reason::kStoreUnavailable;
  bool credentials_read = false;  // whether the CredentialSource was asked
};

// A container's imagePullPolicy.
enum class PullPolicy : std::uint8_t { kAlways, kIfNotPresent, kNever };

// --- Settings ------------------------------------------------------------------------------------

// By which rules a store decides: the mode.
enum class Mode : std::uint8_t {
  // strict: an image is open only if a credential was proven for it, or if it is known to have come
  // to the node without the kubelet.
  kStrict,
  // Every answer and every stored state is that of the kubelet v1.36.3, which presumes an image
  // preloaded if it has neither record nor intent.
  kKubelet,
};

// The kubelet's imagePullCredentialsVerificationPolicy (KEP-2535).
enum class Verification : std::uint8_t {
  kNeverVerify,
  kNeverVerifyPreloadedImages,  // the kubelet's default
  kNeverVerifyAllowlistedImages,
  kAlwaysVerify,
};

// What an image string without a registry host may name on this node.
enum class ShortNames : std::uint8_t {
  kAnywhere,   // the runtime may complete it, or have an alias for it (CRI-O)
  kDockerHub,  // the runtime completes it with docker.io only (containerd)
};

// Whether images on the node may have been pulled unrecorded, by a kubelet without waybill or
// without the feature (KEP-2535, "What happens if we reenable the feature"). kDetect, in mode
// strict: look for files that a kubelet wrote since the last take-over.
enum class Gap : std::uint8_t { kDetect, kYes, kNo };

// --- Images --------------------------------------------------------------------------------------

// The platform that an image was built for or runs on (OCI image index, CRI). Empty: not given.
struct Platform {
  std::string architecture = {};  // Go's names: "amd64", "arm64"
  std::string os = {};            // Go's names: "linux", "windows"
  std::string os_version = {};    // Windows: "10.0.20348.1970"
  std::vector<std::string> os_features = {};
  std::string variant = {};  // of arm, "v5" to "v8"; of arm64; of amd64, "v1" to "v4"

  friend bool operator==(const Platform&, const Platform&) = default;
};

// One image on the node that the kubelet pulled. credential_mapping is keyed by image name: the
// pod's image string without tag and digest, otherwise unchanged (KEP-2535).
struct ImagePulledRecord {
  std::string image_ref = {};
  std::optional<Timestamp> last_updated = {};  // nullopt: the kubelet's `null`
  std::map<std::string, ImagePullCredentials> credential_mapping = {};
  // Under which Secrets or service accounts were on record, and are not now, sorted: a pull without
  // credentials does not open them. "": every name. Set by the store.
  std::vector<std::string> private_names = {};
  std::uint64_t stamp = 0;           // the commit that wrote the record; set by the store
  std::string runtime_handler = {};  // whose copy it is; empty: the default's
  // Which manifest of an index was pulled, and its platform, if the caller passed them.
  std::string manifest_digest = {};
  std::optional<Platform> platform = {};
  // Of the handler when the image was pulled. If it changes, the image must be verified again. Set
  // by the store.
  std::optional<Platform> guest_platform = {};
  // Why the image was closed without a pull by this kubelet: one sentence. Set by the store.
  std::string closed_because = {};
  // A list closed it, since an unresolved pull or an unrecorded period may have brought it: the
  // runtime's word that nobody pulled it (ListedImage::imported) opens it. Set by the store.
  bool closed_by_list = false;
  // DenyImage closed it, and AllowImage did not take that back: only what pulls prove opens it,
  // whatever a runtime says of it. Set by the store.
  bool closed_by_operator = false;
  std::optional<Timestamp> absent_since = {};  // it is gone from the node; set by the store
  std::uint64_t absent_ran = 0;                // used inside the store

  friend bool operator==(const ImagePulledRecord&, const ImagePulledRecord&) = default;
};

// An image as the runtime lists it: CRI's Image message, `crictl images -o json`. Its aliases are
// the ID, with and without `sha256:`, and its repo digests.
struct ListedImage {
  std::string id = {};                         // the image ref
  std::vector<std::string> repo_tags = {};     // names: `repo:tag`
  std::vector<std::string> repo_digests = {};  // names: `repo@digest`
  std::string runtime_handler = {};            // CRI's spec; empty: it may be any handler's
  bool pinned = false;                         // by the runtime's configuration
  // The runtime shows that no pull by anyone brought it. Never set it by guessing: the image is
  // then open to all pods.
  bool imported = false;
  std::uint64_t bytes = 0;  // on disk, by the runtime's word; 0: unknown. For a trace alone

  friend bool operator==(const ListedImage&, const ListedImage&) = default;
};

// PreloadedImage::source of an image that a first start presumes preloaded: unconfirmed.
inline constexpr std::string_view kPresumedSource = "presumed";

// An image that is known or presumed to have come to the node without the kubelet. While it is on
// the node, it is open to all pods, under every name.
struct PreloadedImage {
  std::string image_ref = {};
  std::string runtime_handler = {};     // empty: the default handler's copy
  std::vector<std::string> names = {};  // at that time, sorted
  // How it is known: "listed", "imported" (ListedImage::imported), "pinned", "preloaded-list",
  // "observed-preloaded", "adopted", "operator", kPresumedSource, or what the caller named.
  std::string source = {};
  std::string reason = {};  // an operator's; may be empty
  Timestamp since = {};
  std::uint64_t stamp = 0;                     // the commit that wrote it
  std::optional<Timestamp> absent_since = {};  // it is gone from the node, and opens nothing
  std::uint64_t absent_ran = 0;                // used inside the store

  friend bool operator==(const PreloadedImage&, const PreloadedImage&) = default;
};
inline bool IsPresumed(const PreloadedImage& entry) { return entry.source == kPresumedSource; }

// What an unreadable file of the kubelet stood for; only its name tells. The numbers are stored.
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

// A list of images for ClassifyImages.
struct ImageList {
  std::vector<ListedImage> images = {};
  std::optional<ListToken> token = {};  // drawn before the list was made; nullopt: none was
  bool complete = false;                // everything that the runtime has, unfiltered
  std::string source = {};              // who made the list; empty: the runtime
  // Pulls that ended by this moment can't bring an image that the list lacks: the runtime showed
  // that before it made the list. nullopt: the runtime was not asked.
  std::optional<BootTime> quiet_until = {};
  // Names that the runtime has, but that the list does not show yet: quiet_until does not end a
  // pull that could have given one of them.
  std::vector<std::string> names_to_come = {};
};

struct ClassifiedImage {
  std::string image_ref = {};
  std::string runtime_handler = {};
  std::string name = {};     // its first name, or its ref
  bool preloaded = false;    // otherwise it is closed
  std::string because = {};  // one sentence, no full stop
};

// What a list of images did.
struct ClassifyReport {
  std::uint64_t listed = 0;             // entries of the list
  std::uint64_t repeated = 0;           // of those, an image that was in the list already
  std::uint64_t not_names = 0;          // names that do not parse, and so do not count
  std::uint64_t known = 0;              // had a record, were preloaded, or are in quarantine
  std::uint64_t preloaded = 0;          // are known as preloaded from now on
  std::uint64_t closed = 0;             // got a record without credentials
  std::uint64_t left = 0;               // neither: left to a later list, or nothing is classified
  std::uint64_t united = 0;             // records under another alias of the same image, now one
  std::uint64_t pulls_settled = 0;      // unresolved pulls that can bring nothing any more
  std::uint64_t records_removed = 0;    // of images that are not listed
  std::uint64_t preloaded_removed = 0;  // likewise
  std::vector<ClassifiedImage> judged = {};      // the first 1000 of each kind
  std::vector<std::string> shared_digests = {};  // of two images, so of neither; first 100
  std::string not_judged_because = {};           // why no image was classified; empty: they were
};

struct PruneReport {
  std::uint64_t examined = 0;
  std::uint64_t removed = 0;
  std::uint64_t kept_in_list = 0;
  std::uint64_t kept_newer = 0;  // written or confirmed after the token, or not before `until`
  // Listed under another handler only, but the last record of its ref: lost its credentials.
  std::uint64_t kept_without_credentials = 0;
  std::uint64_t preloaded_removed = 0;
};

// --- Pulls ---------------------------------------------------------------------------------------

// Which pull is meant. Durable, and never used twice in one store. 0: none.
struct PullId {
  std::uint64_t value = 0;

  friend auto operator<=>(const PullId&, const PullId&) = default;
};

// How a pull ended. Not 0, so that one must be chosen.
enum class PullOutcome : std::uint8_t {
  kPulled = 1,
  kFailed = 2,   // the runtime reports an error; something may have been transferred
  kUnknown = 3,  // time-out, cancelled, connection lost: the image may still arrive
  kNothing = 4,  // the runtime was asked after the error, and said that the image is not there
};

// The numbers are stored.
enum class PullState : std::uint8_t {
  kRunning = 1,
  kFailed = 2,   // the runtime reported an error, but something may have been transferred
  kUnknown = 3,  // cancelled, timed out, connection lost, or the process that pulled ended
  // No pull: more images were gone than are retained (kMaxRemembered), and it stands for those that
  // were dropped, as one of anything, for as long as they would have been retained.
  kDropped = 4,
};

// A pull that may still bring an image, or may have brought one that nobody recorded.
struct UnresolvedPull {
  PullId id = {};
  bool anything = false;  // stands for pulls that can't be named: it may have brought any image
  // It stands for several pulls of one string that ended alike, with the last end. The success of a
  // single pull does not remove it.
  bool several = false;
  std::string image = {};  // the container's image string as the pod wrote it; it need not parse
  std::string runtime_handler = {};
  PullState state = PullState::kRunning;
  Timestamp began = {};
  std::optional<Timestamp> ended = {};  // nullopt: it is running
  BootTime ended_at = {};               // the same moment, by the boot clock
  std::uint64_t stamp = 0;              // the commit in which it began
  std::uint64_t nothing_at = 0;         // both used inside the store
  std::uint64_t dropped_ran = 0;

  friend bool operator==(const UnresolvedPull&, const UnresolvedPull&) = default;
};

// One entry of an image index.
struct ManifestDescriptor {
  std::string media_type = {};
  std::string digest = {};
  std::uint64_t size = 0;                           // bytes; 0: not given
  std::optional<Platform> platform = std::nullopt;  // as written; nullopt: not given
  bool is_attestation = false;                      // provenance or an SBOM, not an image
};

// What WhoChecks reads the runtime's configuration by. What is empty is not known.
struct RuntimeAnswers {
  std::string version = {};  // of CRI's VersionResponse: "containerd v2.4.2", "cri-o 1.33.1"
  std::string status = {};   // CRI's StatusResponse, as `crictl info` prints it
  std::string config = {};   // the runtime's configuration file, if it is not at its usual place
  std::string root = {};     // below which all files are looked for; empty: "/"
};

// A host that may serve a pull instead of the registry.
struct PullSource {
  std::string host = {};          // with the port, if it is named, and a path that is not the usual
  bool serves_manifests = false;  // of this image, by tag or digest: who does checks credentials
  bool serves_layers = false;
  bool insecure = false;  // plain HTTP, or its certificate is not verified: anyone can answer
  bool open = false;      // said to ask no pod for its credentials
  std::string open_because = {};
  std::string where = {};  // "/etc/containerd/certs.d/_default/hosts.toml"
};

struct PullSources {
  std::string registry = {};            // of the image's full name: "docker.io"
  std::vector<PullSource> others = {};  // in the order in which they are asked
  VerifiedBy checker = VerifiedBy::kUnknown;
  std::vector<std::string> problems = {};  // why it is unknown
};

// --- Revocation ----------------------------------------------------------------------------------

// Coordinates of a Secret or a service account.
struct CredentialName {
  std::string namespace_name = {};
  std::string name = {};
  std::string uid = {};  // empty: whatever the UID

  friend auto operator<=>(const CredentialName&, const CredentialName&) = default;
};

// What a revocation is about. The numbers are stored.
enum class RevocationKind : std::uint8_t {
  kSecret = 1,
  kServiceAccount = 2,
  kNamespace = 3,  // every Secret and service account of it
  kImage = 4,      // every credential of one handler's copy, and that all pods may use it
  // Every Secret that held the credentials with this hash. A Secret that is rotated to them later
  // opens nothing by its coordinates either, until a pull proves them.
  kCredential = 5,
};

// What was revoked. Proofs by pulls that began in `commit` or before do not come back.
struct Revocation {
  RevocationKind kind = RevocationKind::kSecret;
  CredentialName who = {};  // kNamespace: its namespace_name
  std::string image_ref = {};
  std::string runtime_handler = {};
  std::string credential_hash = {};
  std::uint64_t commit = 0;  // this and what follows: set by the store
  Timestamp since = {};
  bool unfinished = false;  // a step failed: records still hold some of it, which opens nothing
  std::uint64_t ran = 0;    // used inside the store

  friend bool operator==(const Revocation&, const Revocation&) = default;
};

struct RevokeReport {
  std::uint64_t records = 0;  // that lost something
  std::uint64_t secrets = 0;  // counted for each image name of each record; likewise below
  std::uint64_t service_accounts = 0;
  std::uint64_t node_pods = 0;  // image names that were open to all pods of the node
  // Secrets elsewhere with the hash of a revoked one. They still open what they opened: revoke that
  // hash if the credentials themselves are to be refused.
  std::uint64_t equal_hashes = 0;
  bool stored = false;  // always, except that RevokeMissing stores only if something was gone
};

// All Secrets and service accounts that exist in the cluster, at most kMaxTruth in all. A name
// without a UID stands for every UID.
struct ExistingCredentials {
  std::vector<CredentialName> secrets = {};
  std::vector<CredentialName> service_accounts = {};
};

struct RevokeMissingReport {
  RevokeReport forgotten = {};
  std::uint64_t known = 0;  // Secrets and service accounts in records that exist
  std::uint64_t gone = 0;   // those in records that do not exist
  std::uint64_t newer = 0;  // those that do not, but were proven after the token: they stay
};

// --- Explanation ---------------------------------------------------------------------------------

// Whether a credential in a record still counts.
enum class CredentialStanding : std::uint8_t {
  kCounts,
  kTooOld,         // proven too long ago, or past its own end
  kForgotten,      // revoked, and not taken out yet
  kNotByRegistry,  // the policy counts only what the registry checked
  kUnknown,        // a later version's word
};

// What a record has under an image name.
struct ExplainedCredential {
  // kNodePods: every pod of the node may use the image.
  enum class Kind : std::uint8_t { kNodePods, kSecret, kServiceAccount };
  std::string image_name = {};
  Kind kind = Kind::kNodePods;
  CredentialName who = {};  // empty for kNodePods
  Proof proof = {};
  CredentialStanding standing = CredentialStanding::kUnknown;
};

// Why an image is open or closed, for a person. Holds no hash of a credential.
struct Explanation {
  std::vector<std::string> steps = {};  // of the decision, as far as it came without credentials
  std::optional<PreloadedImage> ledger_entry = {};
  bool recorded = false;                   // it has a record under this handler
  std::string closed_because = {};         // the record's; empty: a pull made it, or there is none
  std::vector<UnresolvedPull> pulls = {};  // could have brought an image of this name; newest first
  bool in_quarantine = false;
  bool distrustful = false;
  std::string text = {};  // what closes the image, in one sentence; empty: nothing does
  std::string hint = {};  // what would open it
  // The record as it is stored, but with an empty mapping: `credentials` has its content.
  std::optional<ImagePulledRecord> record = {};
  std::vector<ExplainedCredential> credentials = {};
  std::vector<std::string> image_names = {};      // of the mapping, also without credentials
  bool unreadable = false;                        // the record, or a record of the same ref
  std::vector<std::string> spellings = {};        // aliases of the image, sorted
  std::vector<std::string> other_handlers = {};   // that have a record of it; "": the default
  std::vector<QuarantinedFile> quarantine = {};   // those that close it
  std::optional<PreloadedImage> gone_entry = {};  // it was preloaded, and is gone; opens nothing
};

// --- Runtime handlers (KEP-4216) -----------------------------------------------------------------

// What a RuntimeClass selects. Each handler has its own copy of an image.
struct RuntimeHandler {
  // 1 to kMaxRuntimeHandlerBytes bytes above 0x20, without '/'. Only a default handler whose name
  // is unknown has an empty one.
  std::string name = {};
  bool is_default = false;       // the empty name selects it; at most one on a node
  bool user_namespaces = false;  // CRI, RuntimeHandlerFeatures.user_namespaces
  // The platform of a utility VM, which its images must be built for. nullopt: the host's.
  std::optional<Platform> guest_platform = std::nullopt;

  friend bool operator==(const RuntimeHandler&, const RuntimeHandler&) = default;
};

// What a new list of handlers changed.
struct RuntimesReport {
  std::vector<std::string> added = {};
  std::vector<std::string> vanished = {};  // their records stay until they are pruned
  // Handlers whose guest platform changed, and the default if its name changed.
  std::vector<std::string> changed = {};
  std::uint64_t records_to_verify = 0;  // lost their credentials through that
  // Runtime classes were off before. Leftovers from an earlier time with handlers were cleaned up.
  bool turned_on = false;
  std::uint64_t records_collapsed = 0;
  std::uint64_t intents_collapsed = 0;
};

// --- Host IDs for pods in user namespaces (KEP-127) ----------------------------------------------

// IDs are handed out in blocks. Two are reserved: block 0 is the host's, and the last one contains
// 2^32−1, which the kernel never maps (kubernetes#139916).
inline constexpr std::uint64_t kIdsPerBlock = 65536;
inline constexpr std::uint64_t kHostIds = std::uint64_t{1} << 32;

// CRI's IDMapping.
struct IdMapping {
  std::uint32_t host_id = 0;
  std::uint32_t container_id = 0;
  std::uint32_t length = 0;

  friend bool operator==(const IdMapping&, const IdMapping&) = default;
};

// At most one mapping, as the kubelet uses them.
class IdMappings {
 public:
  IdMappings() = default;
  explicit IdMappings(const IdMapping& only) : only_{only}, size_(1) {}

  const IdMapping* begin() const { return only_.data(); }
  const IdMapping* end() const { return only_.data() + size_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const IdMapping& front() const { return only_[0]; }  // not empty

  friend bool operator==(const IdMappings&, const IdMappings&) = default;

 private:
  std::array<IdMapping, 1> only_{};
  std::size_t size_ = 0;
};

// With CRI's numbers.
enum class NamespaceMode : std::uint8_t { kPod = 0, kNode = 2 };

// CRI's UserNamespace. kPod: `uids` and `gids` hold the same mapping, which the pod's mounts use,
// too. kNode: both are empty.
struct UserNamespace {
  NamespaceMode mode = NamespaceMode::kNode;
  IdMappings uids = {};
  IdMappings gids = {};

  friend bool operator==(const UserNamespace&, const UserNamespace&) = default;
};

struct UserNamespaceRequest {
  // The name of the pod's directory: 1 to kMaxPodUidBytes bytes above 0x20, neither "." nor "..",
  // without '/'.
  std::string_view pod_uid = {};
  std::optional<bool> host_users = {};                 // pod.spec.hostUsers
  std::string_view runtime_handler = {};               // empty: the default handler
  std::optional<std::uint32_t> length = std::nullopt;  // that is required; nullopt: any
};

// Where new ranges are taken from. The types are wider than IDs, so that a pool out of bounds can
// be reported.
struct IdPool {
  std::uint64_t first_id = kIdsPerBlock;             // a multiple of ids_per_pod, at least that
  std::uint64_t id_count = kHostIds - kIdsPerBlock;  // a multiple too; first + count <= 2^32
  std::uint64_t ids_per_pod = kIdsPerBlock;          // of a new range: a multiple of 65,536
  std::uint64_t max_pods = 110;  // that it must have room for (the kubelet's maxPods)

  // What a kubelet without configuration uses: ids_per_pod to 2^32, cut to whole ranges.
  static IdPool Default(std::uint64_t ids_per_pod = kIdsPerBlock, std::uint64_t max_pods = 110);

  friend bool operator==(const IdPool&, const IdPool&) = default;
};

// How a pod's range relates to the current pool.
enum class PoolRelation : std::uint8_t {
  kInPool,
  kOutsidePool,  // partly or wholly (kubernetes#141941)
  kOtherLength,  // differs from the pool's ids_per_pod (kubernetes#137912)
};

// A pod's range. Whatever the pool is now, it stays the pod's until it is released.
struct PodMapping {
  std::string pod_uid = {};
  std::uint32_t host_id = 0;
  std::uint32_t length = 0;
  Timestamp created = {};
  PoolRelation relation = PoolRelation::kInPool;

  friend bool operator==(const PodMapping&, const PodMapping&) = default;
};

struct HostIdRange {
  std::uint64_t first = 0;
  std::uint64_t length = 0;

  friend bool operator==(const HostIdRange&, const HostIdRange&) = default;
};

// Why a pod is in quarantine. The numbers are stored, and never 0. A number that this version does
// not know holds as much as any other.
enum class PodQuarantineKind : std::uint8_t {
  kOther = 1,
  kFileConflict = 2,    // its file contradicts another one, or the store
  kOverlap = 3,         // the range that was stored for it overlaps another pod's
  kUnreadableFile = 4,  // its file can't be read, or no kubelet would accept it
  kFromBackup = 5,      // its range comes from a backup, and may be another pod's by now
  kLostRanges = 6,      // without a UID: ranges were lost
  kUntilImport = 7,     // without a UID: until the files of the kubelet's pods are taken over
};

// A pod that may live with unverified host IDs. It gets no mapping, and its ranges are not handed
// out.
struct QuarantinedPod {
  std::string pod_uid = {};              // empty: ranges of unknown pods were lost
  std::vector<HostIdRange> ranges = {};  // empty: unknown, so no pod gets a new range
  std::string source = {};               // the file, below the kubelet directory; or empty
  std::string reason = {};
  Timestamp since = {};
  PodQuarantineKind kind = PodQuarantineKind::kOther;

  friend bool operator==(const QuarantinedPod&, const QuarantinedPod&) = default;
};

// In ranges of the pool's ids_per_pod.
struct PoolUse {
  bool enabled = true;
  IdPool pool = {};
  std::uint64_t ranges = 0;            // all but the reserved ones
  std::uint64_t used = 0;              // of those: taken, or overlapped by another range
  std::uint64_t free = 0;              // ranges - used
  std::uint64_t largest_free_run = 0;  // ranges side by side
  std::uint64_t allocations = 0;
  std::uint64_t outside_pool = 0;  // of those; see PoolRelation
  std::uint64_t other_length = 0;  // likewise
  std::uint64_t held_pods = 0;
  std::string refused_because = {};  // why no range can be handed out now; empty: ranges can
};

struct CleanUpReport {
  std::uint64_t examined = 0;  // pods
  std::uint64_t released = 0;
  std::uint64_t kept_in_lists = 0;
  std::uint64_t kept_newer = 0;                 // written after the token was drawn
  std::vector<std::string> released_pods = {};  // their UIDs, the first 1000
};

// What opening found and did about ranges.
struct IdMappingReport {
  std::uint64_t files_seen = 0;
  std::uint64_t unchanged = 0;  // files whose mappings the store already has
  std::uint64_t imported = 0;   // mappings taken
  std::uint64_t held = 0;       // pods held by this import, or still held for the same reason
  std::vector<std::string> problems = {};  // one line a pod; the first 100
  std::uint64_t allocations = 0;           // after opening
  std::uint64_t held_pods = 0;
  std::uint64_t outside_pool = 0;
  std::uint64_t other_length = 0;
  std::vector<std::string> off_pool = {};  // UIDs of the pods of both; the first 100
  std::string refused_because = {};        // as in PoolUse
};

// --- The store -----------------------------------------------------------------------------------

// Why a store is degraded. The numbers are stored, and never 0. A number that this version does not
// know closes as much as any other.
enum class DegradedKind : std::uint8_t {
  kOther = 1,
  kOperator = 2,          // an operator's word
  kStoreLost = 3,         // the database was gone
  kStoreStale = 4,        // it may be an older copy: its loss marker is gone, or says so
  kStoreRebuilt = 5,      // it failed its check
  kStoreRestored = 6,     // a backup was put back
  kImportUnfinished = 7,  // files of a kubelet directory are not taken over yet
  kGap = 8,               // images may have been pulled unrecorded
  kJournalFull = 9,       // there are more reasons than the history holds
};

enum class DegradedAction : std::uint8_t {
  kDistrust = 1,   // a reason to classify no image
  kTrust = 2,      // ends every reason before it
  kTakenBack = 3,  // ends the reason of the same kind and words: its cause was repaired
  kNote = 4,       // an operator's word on a single image or pull; changes no reason
};

// An entry of the history. Of more than kMaxTrustEvents, the oldest that are no longer in force are
// deleted.
struct DegradedEvent {
  Timestamp at = {};
  DegradedKind kind = DegradedKind::kOther;
  DegradedAction action = DegradedAction::kDistrust;
  bool distrustful = false;  // the state from then on
  std::string reason = {};   // the store's; if a loss was accepted, the operator's

  friend bool operator==(const DegradedEvent&, const DegradedEvent&) = default;
};

// What taking over a kubelet directory did. Files that have not changed since an earlier import
// count as `unchanged` only.
struct ImportReport {
  std::uint64_t files_seen = 0;
  std::uint64_t unchanged = 0;
  std::uint64_t records = 0;      // taken from pulled/
  std::uint64_t intents = 0;      // taken from pulling/
  std::uint64_t preloaded = 0;    // taken from observed-preloaded/
  std::uint64_t known_refs = 0;   // changed files of refs that the store knows already: not taken
  std::uint64_t quarantined = 0;  // quarantine entries made
  std::uint64_t skipped = 0;      // names that are not the kubelet's, and unfinished .tmp files
  bool interrupted = false;
  std::string newly_written = {};          // the first that a kubelet wrote since the last import
  std::vector<std::string> problems = {};  // one line for each unreadable file; the first 100
};

// A step between two schema versions.
struct MigrationStep {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::string name = {};
  std::uint64_t values_written = 0;
};

struct MigrationReport {
  std::uint32_t from = 0;  // equal to `to`: nothing to do
  std::uint32_t to = 0;
  std::vector<MigrationStep> steps = {};  // done; in a dry run, planned
  std::string backup = {};                // made before the first step; empty in a dry run
  // What going down loses, one line each, with the images that must be verified again.
  std::vector<std::string> losses = {};
};

// What opening did (docs/design.md, "Opening").
struct OpeningReport {
  bool created = false;                         // the store is new
  bool set_aside = false;                       // the database failed its check; see set_aside_path
  std::string set_aside_path = {};              // where the failed one is kept
  std::vector<std::string> removed_paths = {};  // set aside earlier, now deleted (kMaxKeptAside)
  std::uint64_t records_carried = 0;            // into the rebuilt store
  std::uint64_t records_without_credentials = 0;  // of those: must be verified again
  std::uint64_t intents_carried = 0;
  bool witness_made = false;               // the loss marker was missing, and a new one was made
  bool witness_in_store = false;           // it lies in the store's directory, and is lost with it
  std::vector<std::string> findings = {};  // what was wrong, one line each
  std::vector<std::string> mended = {};    // modes of files: others could read or write them
  std::vector<std::string> warnings =
      {};  // change no answer: what the file system does not promise
  bool distrustful = false;
  std::string distrust_reason = {};
  std::optional<MigrationReport> migration = {};  // nullopt: the store had the newest schema
  std::optional<RuntimesReport> runtimes = {};    // nullopt: no list of handlers was given
  ImportReport import = {};
  IdMappingReport user_namespaces = {};
  bool after_gap = false;  // pulls may be unrecorded, and why the store assumes so
  std::string gap_reason = {};
  std::uint64_t gap_closed = 0;              // images that nobody knew
  std::vector<std::string> gap_images = {};  // their names, or refs; the first 1000
  std::uint64_t intents_found = 0;           // pulls left by an earlier process
  std::uint64_t intents_replayed = 0;      // those whose image was on the node: a record closed it
  std::uint64_t intents_left = 0;          // still stored when opening ended
  std::vector<std::string> replayed = {};  // their image strings; the first 100
  bool replay_skipped = false;             // no list of images was given to replay against
  std::uint64_t readers_cleared = 0;       // slots of readers that died
  std::uint64_t records = 0;               // after opening
  std::uint64_t quarantine_entries = 0;
  std::uint64_t commit_sequence = 0;
  std::optional<ClassifyReport> observed = {};  // what the list of images did; nullopt: none given
  bool first_start = false;                     // it was judged as that of a first start
  // A crash had cut the last commit short, before anybody was told of it, and it was undone.
  bool commit_undone = false;
  // The directory that this store was copied or moved from, and to which the loss marker still
  // belongs: this store does not write it, so an older copy may go unnoticed. Empty: it is ours.
  std::string copy_of = {};
};

// What a store holds. Records and preloaded images include those that are only retained.
struct StoreCounts {
  std::string store_uuid = {};
  std::uint32_t schema_version = 0;
  std::uint64_t commit_sequence = 0;
  std::uint64_t records = 0;
  std::uint64_t nondefault_handler_records = 0;  // of those
  std::uint64_t runtime_handlers = 0;
  std::uint64_t intents = 0;
  std::uint64_t quarantine_entries = 0;
  std::uint64_t preloaded_records = 0;
  std::uint64_t kubelet_files = 0;
  std::uint64_t ledger_entries = 0;
  std::uint64_t spellings = 0;    // aliases under which images are known
  std::uint64_t id_mappings = 0;  // of pods in user namespaces
  std::uint64_t held_pods = 0;    // with unverified ID ranges
  bool distrustful = false;
  std::uint64_t map_bytes = 0;
  std::uint64_t used_bytes = 0;  // of the map, free pages inside included
  unsigned readers = 0;          // slots in use, over all processes
  unsigned max_readers = 0;
  std::uint64_t revocations = 0;
};

struct VerifyReport {
  bool sound = false;  // the verdict
  std::uint64_t pages = 0;
  std::uint64_t values = 0;
  std::vector<std::string> findings = {};
};

// backup/<version>-<commit sequence>-<time>.mdb in the store's directory: a compact copy.
struct Backup {
  std::filesystem::path path = {};
  std::uint32_t schema_version = 0;
  std::uint64_t commit_sequence = 0;
  std::uint64_t bytes = 0;
};

// What a backup brought back. Each image that the replaced store has on record, and the backup
// lacks, stays on record without credentials.
struct RestoreReport {
  std::uint32_t schema_version = 0;
  std::uint64_t backup_commit_sequence = 0;
  std::uint64_t records = 0;
  std::uint64_t records_without_credentials = 0;  // to be verified again: they may be revoked
  std::uint64_t id_mappings = 0;                  // of pods in user namespaces, in the backup
  std::uint64_t id_mappings_kept = 0;             // of those: the pod has it
  std::uint64_t id_mappings_held = 0;             // it may overlap another pod's: in quarantine
  std::uint64_t id_mappings_dropped = 0;          // another was given since, or it was released
  bool id_ranges_lost = false;                    // so no new ones are handed out
  std::string replaced_path = {};  // where the replaced store is kept; empty: none, or a dry run
  std::vector<std::string> removed_paths = {};  // kept there earlier, now deleted (kMaxKeptAside)
  std::string distrust_reason = {};
  bool streaming = false;  // a store of streams: all its tokens are void
};

// Which API version the kubelet's files are written in.
enum class KubeletApiVersion : std::uint8_t {
  kV1Beta1,   // kubelets since v1.35
  kV1Alpha1,  // to v1.34
};

// What was written for the kubelet.
struct ExportReport {
  std::uint64_t records = 0;
  std::uint64_t intents = 0;
  std::uint64_t preloaded = 0;
  std::uint64_t closed = 0;  // in quarantine: written as files that the kubelet can't read either
  std::uint64_t made = 0;    // records without credentials, for images of unknown origin
  std::uint64_t spellings = 0;            // records under further aliases of their images
  std::uint64_t without_credentials = 0;  // other handlers' records, and files that no import took
  std::uint64_t id_mappings = 0;          // pods/<uid>/userns
  std::string replaced_path = {};  // where the earlier files are kept; empty: there were none
  std::vector<std::string> removed_paths = {};  // of earlier exports, now deleted (kMaxKeptAside)
};

// --- Streams (KEP-1558) --------------------------------------------------------------------------

// The CRI call that prepared a stream.
enum class StreamKind : std::uint8_t { kExec = 1, kAttach = 2, kPortForward = 3 };

// CRI's ExecRequest, AttachRequest and PortForwardRequest.
struct StreamRequest {
  StreamKind kind = StreamKind::kExec;
  std::string container_id = {};          // exec, attach
  std::string pod_sandbox_id = {};        // port-forward
  std::vector<std::string> command = {};  // exec
  bool std_in = false;                    // exec, attach; likewise below
  bool std_out = false;
  bool std_err = false;
  bool tty = false;
  std::vector<std::uint16_t> ports = {};  // port-forward

  friend bool operator==(const StreamRequest&, const StreamRequest&) = default;
};

// A token that waits for its client. Its request stays sealed.
struct OpenStream {
  std::string id = {};  // the first 16 hex digits of the token's SHA-256, which open nothing
  StreamKind kind = StreamKind::kExec;
  Timestamp prepared = {};  // by the wall clock
  std::uint64_t expires_in_ms = 0;
};

// What opening a store of streams did.
struct StreamingReport {
  OpeningReport recovery = {};   // of the database; its members about images are empty
  std::uint64_t voided = 0;      // tokens that this opening made void; expired ones are not counted
  std::string void_reason = {};  // why all were; empty: all but those of another boot were kept
  std::uint64_t open = 0;        // tokens that are open now
};

// What may be dialled. The default: any port of a loopback address, and no redirect.
struct StreamUrlPolicy {
  // What is allowed beside loopback addresses: an IP address without brackets and zone, or a host
  // name, compared without regard to case and otherwise exactly. Whoever lists a name trusts the
  // resolver. At most kMaxStreamHosts.
  std::vector<std::string> hosts = {};
  std::vector<std::uint16_t> ports = {};  // 1 to 65535; empty: all. At most kMaxStreamPorts
  bool require_https = false;
  bool same_host_redirects = false;  // allow a redirect to the same host
};

enum class StreamingComponent : std::uint8_t { kKubelet, kApiServer };

// What a release makes of a setting.
enum class StreamingSeverity : std::uint8_t {
  kIgnored,     // accepted, and never had an effect in this component
  kDeprecated,  // still does what it says, but the component warns that it will go
  kRemoved,     // still accepted, but does nothing any more
  kFatal,       // the component does not start
};

// The texts are on one line, without control characters.
struct StreamFinding {
  StreamingComponent component = StreamingComponent::kKubelet;
  StreamingSeverity severity = StreamingSeverity::kIgnored;
  std::string subject;  // the name of the flag or of the gate
  std::string setting;  // as it was written, quoted if it holds anything unusual, cut if long
  std::string words;    // that this release prints about it; empty: none, or no source shows them
  std::string advice;
  std::string source;  // where the fact is from: a release and its file, or a pull request
};

// What the kubelet does with a streaming request.
enum class StreamingProxy : std::uint8_t {
  kKubelet,   // connects to the runtime's streaming server, and proxies
  kRedirect,  // answers 302 with the address of the runtime's streaming server
};
enum class RedirectFollower : std::uint8_t {
  kNotNeeded,  // there is no redirect
  kApiServer,
  kNobody,  // the client gets a redirect or an error instead of a stream
};
// Which redirects are followed.
enum class RedirectCheck : std::uint8_t {
  kNotNeeded,
  kSameHost,  // the redirect must name the kubelet's own host, or it is an error
  kNone,      // any host is followed: whoever controls a kubelet sends the API server anywhere
};
// Who translates WebSockets to SPDY.
enum class WebSocketTranslator : std::uint8_t {
  kNobody,  // they go on to the runtime's streaming server; kubectl falls back to SPDY
  kApiServer,
  kKubelet,
};
// How a streaming request ends.
enum class StreamingOutcome : std::uint8_t {
  kWorks,
  kWorksOnSameHost,  // if the runtime's streaming server has the kubelet's host name or address
  kFails,
  kDoesNotStart,  // a setting is fatal to the kubelet or the API server
};
// Whether the two releases may run together.
enum class VersionSkew : std::uint8_t {
  kSupported,
  kKubeletTooOld,  // by more than 2 releases; by more than 3 for a kubelet from 1.25 on
  kKubeletNewer,   // than the API server: never supported
};

// How a streaming request goes. With kDoesNotStart, the other members say what holds once the fatal
// settings are taken out.
struct StreamPlan {
  StreamingProxy proxy = StreamingProxy::kKubelet;
  RedirectFollower follower = RedirectFollower::kNotNeeded;
  RedirectCheck check = RedirectCheck::kNotNeeded;
  WebSocketTranslator exec_websockets = WebSocketTranslator::kNobody;  // of exec and attach
  WebSocketTranslator port_forward_websockets = WebSocketTranslator::kNobody;
  StreamingOutcome outcome = StreamingOutcome::kWorks;
  VersionSkew skew = VersionSkew::kSupported;
  std::vector<StreamFinding> findings;  // the kubelet's first
  std::vector<std::string> notes;       // what a reader must know besides
};

}  // namespace waybill

#endif  // WAYBILL_VALUES_H_
