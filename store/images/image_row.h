// The row of one runtime handler's copy of an image (schema/v2/image.fbs): what a change works
// with, and how a decision reads it in place.
//
//   pulled      a pull brought it, or somebody closed it: the record
//   preloaded   it came without the kubelet
//   absent      a complete list lacked it; the row is kept
//
// Its other digests stand in the row of the default handler. What that can't say stands in a row
// under the digest itself: `alias`.

#ifndef WAYBILL_STORE_IMAGES_IMAGE_ROW_H_
#define WAYBILL_STORE_IMAGES_IMAGE_ROW_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/function_ref.h"
#include "store/disk/key.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::schema::v1 {
struct Entry;
}  // namespace waybill::schema::v1
namespace waybill::schema::v2 {
struct Image;
}  // namespace waybill::schema::v2

namespace waybill::internal {

// The numbers are stored.
enum class ClosedBy : std::uint8_t {
  kNobody = 0,  // a pull made the record
  kList = 1,    // a guess: a pull may have brought it
  kOperator = 2,
  kOther = 3,  // a kubelet's files, or a replay
  kRestore = 4,
};

using Credentials = std::map<std::string, ImagePullCredentials>;  // by image name

inline constexpr std::size_t kMaxPrivateNames = 256;  // above it every name is private

struct PulledPart {
  std::optional<Timestamp> last_updated = {};
  Credentials entries = {};
  std::string closed_because = {};  // one sentence; empty: a pull made the record
  // Beside entries: an operator closed the image, and only what pulls prove opens it.
  ClosedBy closed_by = ClosedBy::kNobody;
  std::string manifest_digest = {};
  std::optional<Platform> platform = {};
  std::optional<Platform> guest_platform = {};
  std::vector<std::string> private_names = {};  // ImagePulledRecord's

  friend bool operator==(const PulledPart&, const PulledPart&) = default;
};

struct PreloadedPart {
  std::vector<std::string> names = {};  // at that time, sorted
  std::string source = {};              // PreloadedImage::source
  std::string reason = {};
  Timestamp since = {};
  std::uint64_t as_of = 0;  // the commit that said so

  friend bool operator==(const PreloadedPart&, const PreloadedPart&) = default;
};

// Of which image a digest is.
struct AliasPart {
  std::string image = {};  // its subject; empty: two images have the digest
  // As which images pulls of it were recorded before it became another's or two images'.
  std::vector<std::string> taken_for = {};
  std::uint64_t stamp = 0;

  friend bool operator==(const AliasPart&, const AliasPart&) = default;
};

struct ImageRow {
  // What the key is made of: a digest, or a ref without one; Mode::kKubelet: the very ref.
  std::string subject = {};
  std::string runtime_handler = {};  // as stored: "" for the default one
  std::string ref = {};              // as a runtime returned it last; empty: the subject
  std::uint64_t stamp = 0;           // the commit that confirmed it
  std::uint64_t absent = 0;  // Clocks::RanSeconds() when a list lacked it; 0: it is on the node
  bool listed = false;       // a list, or the runtime's entry of a pull, had it
  std::optional<PulledPart> pulled = {};
  std::optional<PreloadedPart> preloaded = {};
  std::vector<std::string> aliases = {};  // other refs of it; sorted
  std::uint64_t alias_since = 0;          // the commit since which it has any
  std::optional<AliasPart> alias = {};

  const std::string& Ref() const { return ref.empty() ? subject : ref; }
  bool SaysNothing() const { return !pulled && !preloaded && !listed && !alias; }

  friend bool operator==(const ImageRow&, const ImageRow&) = default;
};

// kLimitExceeded: above limits.h; the message names the bound and where.
Result<void> CheckRowLimits(const ImageRow& row);
// The payload. Errors as above.
Result<std::vector<std::uint8_t>> EncodeImage(const ImageRow& row);
// nullopt: not a FlatBuffer of that table, a field is missing or above limits.h, or the entries are
// out of order.
std::optional<ImageRow> DecodeImage(std::span<const std::uint8_t> payload);

// --- In place, for decisions ---------------------------------------------------------------------

// A UID, decoded once for many comparisons.
struct ProbeUid {
  explicit ProbeUid(std::string_view uid);

  std::string_view text;
  std::array<std::uint8_t, 16> raw{};
  bool is_raw;  // initialised after `raw`, which decoding fills
};

// Secrets that match have the same tag, and few others do. It is made under a key that no pod
// knows, so that how long it takes to look for one says nothing about a credential's hash.
using SecretTag = std::uint32_t;
inline constexpr SecretTag kNoTag = 0;  // there is no hash, which matches nothing

// A pod's secret, its hash and UID decoded once for many comparisons. The secret outlives it.
struct ProbeSecret {
  explicit ProbeSecret(const ImagePullSecretView& secret);
  explicit ProbeSecret(ImagePullSecretView&&) = delete;
  SecretTag HashTag(std::uint64_t key) const;
  SecretTag CoordinatesTag(std::uint64_t key) const;

  const ImagePullSecretView& text;
  ProbeUid uid;
  std::array<std::uint8_t, 32> hash_raw{};
  bool hash_is_raw;  // initialised after `hash_raw`, which decoding fills
};

// waybill::Proof as it is stored.
struct StoredProof {
  std::int64_t proven = 0;  // seconds since 1970; 0: unknown
  std::uint64_t pull_began = 0;
  std::int64_t good_until = 0;  // seconds since 1970; 0: not said
  VerifiedBy checker = VerifiedBy::kUnknown;
};
StoredProof ToStored(const Proof& proof);
Proof ToProof(const StoredProof& proof);

// The credentials under one image name.
class EntryView {
 public:
  explicit EntryView(const schema::v1::Entry* entry) : entry_(entry) {}
  bool node_pods_accessible() const;
  std::size_t secret_count() const;
  std::size_t service_account_count() const;
  // Whether it has the probe's hash, which is not empty; in constant time.
  bool HasHash(std::size_t secret, const ProbeSecret& probe) const;
  // Whether UID, namespace and name are the probe's.
  bool IsSecret(std::size_t secret, const ProbeSecret& probe) const;
  SecretTag HashTag(std::size_t secret, std::uint64_t key) const;
  SecretTag CoordinatesTag(std::size_t secret, std::uint64_t key) const;
  bool MatchServiceAccount(std::size_t account, const ProbeUid& uid,
                           const ImagePullServiceAccountView& probe) const;
  StoredProof node_pods_proof() const;
  StoredProof secret_proof(std::size_t secret) const;
  StoredProof service_account_proof(std::size_t account) const;
  // Allocate.
  ImagePullSecret secret(std::size_t secret) const;
  ImagePullServiceAccount service_account(std::size_t account) const;

 private:
  const schema::v1::Entry* entry_;
};

// A row in place. `payload` must come from an envelope that verified: then it is what was written,
// and the FlatBuffer's offsets need no checks. Allocates nothing, but for what returns a string.
class ImageView {
 public:
  explicit ImageView(std::span<const std::uint8_t> payload);
  bool SubjectIs(std::string_view subject) const;
  std::string_view runtime_handler() const;
  bool is_recorded() const;
  bool is_listed() const;
  bool is_absent() const;
  bool has_preloaded() const;  // on the node or gone
  // Nobody knows where the image came from (PulledPart::closed_because).
  bool is_closed() const;
  bool is_closed_by_operator() const;
  std::optional<EntryView> Find(std::string_view image_name) const;
  bool HasEntries() const;
  // Whether `is_it` accepts one of the names that it was preloaded by.
  bool AnyPreloadedName(FunctionRef<bool(std::string_view)> is_it) const;
  bool has_aliases() const;
  // Whether one of its aliases has this digest; `subject` is that of a ref.
  bool HasAlias(std::string_view subject) const;
  // False: it says nothing of whose digest its subject is. `image`: AliasPart::image.
  bool AliasOf(std::string& image) const;
  std::string subject() const;

  // The credentials that can open it: when the oldest was proven, in seconds since 1970, of those
  // for which that is known (0: of none), and how many there are for which it is not.
  struct Proofs {
    std::int64_t oldest = 0;
    std::uint64_t undated = 0;
    std::uint64_t ending = 0;  // by themselves
    std::array<std::uint64_t, 5> by_checker{};
  };
  Proofs CountProofs() const;
  const schema::v2::Image& root() const { return *image_; }

 private:
  const schema::v2::Image* image_;
};

// As names and aliases are stored.
void SortUnique(std::vector<std::string>& texts);
// The same as ImageRow::aliases and those of its spellings that need no repository: every way in
// which a kubelet's file may name the row's image.
std::vector<std::string> TextsOf(const ImageRow& row);

// --- Keys ----------------------------------------------------------------------------------------

// The rows of one subject share their first bytes, so "was it pulled for any handler" is one seek.
inline constexpr std::size_t kSubjectKeyBytes = 12;
// XXH3-128 of the subject; for another handler than the default the last 4 bytes XOR a hash of its
// name.
Key16 ImageKey(std::string_view subject, std::string_view runtime_handler, std::uint64_t seed);
// The lowest key that a row of the subject can have.
Key16 FirstImageKey(std::string_view subject, std::uint64_t seed);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_IMAGE_ROW_H_
