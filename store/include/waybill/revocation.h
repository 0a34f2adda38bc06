// Revocation: credentials that are forgotten and do not come back; and how long a proof counts.
// Kubelets implement neither; KEP-2535 wishes for both in its beta section.

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

// How long a proof counts. Past the limit a matching credential gives "pull", kProofTooOld, until a
// pull proves it again. A credential whose time of proof is unknown (Proof) is past every limit. 0:
// for ever; otherwise kMinAge to kMaxAge. The store remembers the limits that an owner gave last.
// Age goes on with the time that the node ran (CLOCK_BOOTTIME) or with the wall clock, whichever is
// more: a clock that jumps ahead makes what was proven before older by that jump, and nothing
// younger when it is put right.
struct AgeLimits {
  std::chrono::seconds credentials{0};  // Secrets and service accounts
  // A shorter one for service accounts, whose tokens live an hour. 0: as `credentials`.
  std::chrono::seconds service_accounts{0};
  std::chrono::seconds node_pods{0};  // for images that were pulled without credentials
  // How long the node must run (CLOCK_BOOTTIME, summed up over boots) before a revocation can end:
  // 1 day to kMaxAge. It ends when the store is then opened as a restart, and no kubelet that ran
  // when it was made can still run: the machine booted since, or NodeStore::NoteKubeletBegan was
  // told of a later one. It is kept longer while the kubelet's directory, if the opening names one,
  // has a record with what was forgotten, or can't be read or synced; while backup/ holds an older
  // backup, a pull that began before it is open, or records are still to be tidied up. A revocation
  // of a hash is also kept while any record has a Secret, which may be rotated to that hash.
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
  // Every Secret that held the credentials with this hash. A Secret that is rotated to them later
  // opens nothing by its coordinates either, until a pull proves them.
  kCredential = 5,
};
// "secret", "serviceAccount", "namespace", "image", "credential"; "" for a number of a later
// version.
std::string_view RevocationKindName(RevocationKind kind);

// What was forgotten. Proofs by pulls that began in `commit` or before do not come back: neither by
// a pull that ends later, nor by a credential written back, a restored backup or an import.
struct Revocation {
  RevocationKind kind = RevocationKind::kSecret;
  CredentialName who = {};  // kNamespace: its namespace_name
  std::string image_ref = {};
  std::string runtime_handler = {};
  std::string credential_hash = {};
  std::uint64_t commit = 0;
  Timestamp since = {};
  bool untidied = false;  // records still store some of it, which no longer counts
  std::uint64_t ran = 0;  // used inside the store: how long the node had run by then

  friend bool operator==(const Revocation&, const Revocation&) = default;
};

// What a call to forget did.
struct RevokeReport {
  std::uint64_t records = 0;  // that lost something
  std::uint64_t secrets = 0;  // counted for each image name of each record; likewise below
  std::uint64_t service_accounts = 0;
  std::uint64_t node_pods = 0;  // image names that were open to all pods of the node
  // Secrets elsewhere with the hash of a forgotten one. They still open what they opened: forget
  // them by that hash if the credentials themselves are to be refused.
  std::uint64_t equal_hashes = 0;
  // Whether a revocation was stored: always, except that a truth stores one only if something was
  // gone.
  bool stored = false;
  // Of `records`, those that still store forgotten credentials, which no longer count: a thread of
  // this owner, or of the next one, tidies them up.
  std::uint64_t untidied = 0;
};

// A truth: all Secrets and service accounts that exist in the cluster. A name without a UID stands
// for every UID. At most kMaxTruth in all.
struct ExistingCredentials {
  std::vector<CredentialName> secrets = {};
  std::vector<CredentialName> service_accounts = {};
};
inline constexpr std::size_t kMaxTruth = 1'000'000;

// What a truth did.
struct RevokeMissingReport {
  RevokeReport forgotten = {};
  std::uint64_t known = 0;  // Secrets and service accounts in records that exist
  std::uint64_t gone = 0;   // those in records that do not exist
  std::uint64_t newer = 0;  // those that do not, but were proven after the token: they stay
};

}  // namespace waybill

#endif  // WAYBILL_REVOCATION_H_
