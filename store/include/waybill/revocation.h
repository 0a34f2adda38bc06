// Revocation: credentials that are forgotten, and do not come back; and how long a proof counts.
// Neither is in KEP-2535 as kubelets have it; both are wishes of its beta section.

#ifndef WAYBILL_REVOCATION_H_
#define WAYBILL_REVOCATION_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"
#include "waybill/types.h"

namespace [[gnu::visibility("default")]] waybill {

// How long what a pull proved counts. Past it a match is "pull", kProofTooOld, until a pull proves
// the credential again. A credential of unknown proof (Proof) is past every limit. 0: for ever;
// otherwise kMinAge to kMaxAge. The store remembers the limits of its last owner that gave some.
// Age is measured by the clock, or by the newest commit's time if the clock is behind that. A
// proof more than a day in the future is of unknown time: the clock was ahead.
struct AgeLimits {
  std::chrono::seconds credentials{0};  // Secrets and service accounts
  // A shorter one for service accounts, whose tokens live an hour. 0: as `credentials`.
  std::chrono::seconds service_accounts{0};
  std::chrono::seconds node_pods{0};  // of images that were pulled without credentials
  // How long a revocation is kept at least: 1 day to kMaxAge. It is also kept as long as a backup
  // that is older lies in backup/, a pull that began before is open, or records are to be tidied;
  // one of a hash as long as any record has a Secret, which may be rotated to it.
  std::chrono::seconds revocations{std::chrono::hours(24 * 30)};

  friend bool operator==(const AgeLimits&, const AgeLimits&) = default;
};
inline constexpr std::chrono::seconds kMinAge{60};
inline constexpr std::chrono::seconds kMaxAge{std::chrono::hours(24 * 3650)};

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
  // Every Secret that held these credentials, by their hash. A Secret that is rotated to them later
  // opens nothing by its coordinates either, until a pull proves them.
  kCredential = 5,
};
// "secret", "serviceAccount", "namespace", "image", "credential"; "" for a number of a later
// version.
std::string_view RevocationKindName(RevocationKind kind);

// What was forgotten. What was proven by pulls that began in `commit` or before does not come back:
// not by a pull that ends later, a credential written back, a restored backup or an import.
struct Revocation {
  RevocationKind kind = RevocationKind::kSecret;
  CredentialName who = {};  // kNamespace: its namespace_name
  std::string image_ref = {};
  std::string runtime_handler = {};
  std::string credential_hash = {};
  std::uint64_t commit = 0;
  Timestamp since = {};
  bool untidied = false;  // records still have some, which do not count any more

  friend bool operator==(const Revocation&, const Revocation&) = default;
};

// What a call to forget did.
struct ForgetReport {
  std::uint64_t records = 0;  // that lost something
  std::uint64_t secrets = 0;  // under an image name of a record each; likewise below
  std::uint64_t service_accounts = 0;
  std::uint64_t node_pods = 0;  // image names that were open to all pods of the node
  // Secrets elsewhere with the hash of a forgotten one. They still open what they opened: forget
  // them by that hash if the credentials themselves are to be refused.
  std::uint64_t equal_hashes = 0;
  // Whether a revocation was stored: always, but by a truth only if something was gone.
  bool stored = false;
  // Of `records`, those that still have what does not count any more: a thread of the owner, or the
  // next one, tidies them up.
  std::uint64_t untidied = 0;
};

// The Secrets and service accounts that exist in the cluster, all of them. Without a UID, one of
// any UID exists. At most kMaxTruth in all.
struct ExistingCredentials {
  std::vector<CredentialName> secrets = {};
  std::vector<CredentialName> service_accounts = {};
};
inline constexpr std::size_t kMaxTruth = 1'000'000;

// What a truth did.
struct ReconcileReport {
  ForgetReport forgotten = {};
  std::uint64_t known = 0;  // Secrets and service accounts in records that exist
  std::uint64_t gone = 0;   // that do not
  std::uint64_t newer = 0;  // that do not, but were proven after the token: they stay
};

}  // namespace waybill

#endif  // WAYBILL_REVOCATION_H_
