// Encodes pulled records, decodes them, and reads them in place (schema/v2/pulled_record.fbs).

#ifndef WAYBILL_STORE_NODE_RECORDS_PULLED_RECORD_H_
#define WAYBILL_STORE_NODE_RECORDS_PULLED_RECORD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/policy.h"
#include "store/engine/database/key.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::schema::v1 {
struct Entry;
}  // namespace waybill::schema::v1
namespace waybill::schema::v2 {
struct PulledRecord;
}  // namespace waybill::schema::v2

namespace waybill::internal {

// kLimitExceeded: above limits.h; the message names the bound and where.
Result<void> CheckRecordLimits(const ImagePulledRecord& record);
// The payload. Errors as above.
Result<std::vector<std::uint8_t>> EncodePulledRecordValue(const ImagePulledRecord& record);

// nullopt: not a FlatBuffer of that table, a field is missing or above limits.h, or the entries are
// out of order.
std::optional<ImagePulledRecord> DecodePulledRecordValue(std::span<const std::uint8_t> payload);

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

// A pod's secret, its hash and UID decoded once for many comparisons.
struct ProbeSecret {
  explicit ProbeSecret(const ImagePullSecretView& secret);
  SecretTag HashTag(std::uint64_t key) const;
  SecretTag CoordinatesTag(std::uint64_t key) const;

  ImagePullSecretView text;
  ProbeUid uid;
  std::array<std::uint8_t, 32> hash_raw{};
  bool hash_is_raw;  // initialised after `hash_raw`, which decoding fills
};

struct SecretMatch {
  bool hash = false;         // equal, and not empty
  bool coordinates = false;  // uid, namespace and name all equal
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

// The credentials under one image name, in place.
class EntryView {
 public:
  explicit EntryView(const schema::v1::Entry* entry) : entry_(entry) {}
  bool node_pods_accessible() const;
  std::size_t secret_count() const;
  std::size_t service_account_count() const;
  // Compares hashes in constant time.
  SecretMatch Match(std::size_t secret, const ProbeSecret& probe) const;
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

// A record in place. `payload` must come from an envelope that verified: then it is what was
// written, and the FlatBuffer's offsets need no checks. Allocates nothing.
class PulledRecordView {
 public:
  explicit PulledRecordView(std::span<const std::uint8_t> payload);
  bool RefIs(std::string_view image_ref) const;
  std::string_view runtime_handler() const;
  // Allocates if the record has one.
  std::optional<Platform> guest_platform() const;
  std::optional<EntryView> Find(std::string_view image_name) const;
  bool HasEntries() const;
  // The credentials that can open it: when the oldest was proven, in seconds since 1970, of those
  // for which that is known (0: of none), and how many there are for which it is not.
  struct Proofs {
    std::int64_t oldest = 0;
    std::uint64_t undated = 0;
    std::uint64_t ending = 0;  // by themselves
    std::array<std::uint64_t, 4> by_checker{};
  };
  Proofs CountProofs() const;
  // Nobody knows where the image came from (closed_because).
  bool IsClosed() const;
  std::string ref() const;
  const schema::v2::PulledRecord& root() const { return *record_; }

 private:
  const schema::v2::PulledRecord* record_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_RECORDS_PULLED_RECORD_H_
