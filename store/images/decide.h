// "Must this pull be attempted?" (KEP-2535), in nine steps, as the kubelet takes them:
//
//   1. The image is not on the node: pull.
//   2. Read the row of the image ref. What can't be read, or is in quarantine: pull.
//   3. Where the image comes from: a record says that the kubelet pulled it, and so does an intent
//      in mode kubelet. In mode strict a miss asks by which other image's digest it goes, and what
//      was preloaded is open, unless the policy verifies that.
//   4. The policy does not verify such images: use it.
//   5. There is no record, or it has no entry for the image name: pull.
//   6. The entry is open to all pods of the node: use it. Here and below what is past its age, was
//      revoked since, or was not checked by whom the policy demands, does not count (Standing).
//      What was preloaded is open beside a record that opens nothing.
//      Only now the pod's credentials are fetched, by the caller.
//   7. One of the pod's secrets is in the entry: use it.
//   8. Its service account is in the entry: use it.
//   9. Pull.
//
// Reads one snapshot, without writes or locks. Allocates only if something is in quarantine, or if
// the ref's digest is another's.

#ifndef WAYBILL_STORE_IMAGES_DECIDE_H_
#define WAYBILL_STORE_IMAGES_DECIDE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/metrics.h"
#include "store/base/options.h"
#include "store/base/policy.h"
#include "store/disk/reader_pool.h"
#include "store/images/aliases.h"
#include "store/images/image_row.h"
#include "store/images/images.h"
#include "waybill/values.h"

namespace waybill::internal {

// Under which mode the snapshot's rows lie, and are decided.
inline Mode ModeIn(const ReaderPool::Lease& snapshot) {
  return snapshot.state().kubelet_rules ? Mode::kKubelet : Mode::kStrict;
}

// What a decision is about. The mode and the ages are those of the store.
struct Question {
  const VerificationPolicy& policy;
  std::string_view image;
  std::string_view image_ref;
  std::string_view runtime_handler;  // as the caller names it
  const Clock& clock;
  const BootClock& boot_clock;
  Aliases& aliases;
};

// What a decision met on its way, for whoever explains it.
struct Trail {
  std::vector<std::string> steps;  // that were passed, in this order
  // Every known way to write the ref's image, the ref first; `unreadable`: there may be others.
  std::vector<std::string> texts;
  bool unreadable = false;
  std::vector<QuarantinedFile> quarantine;  // files that close it
  std::vector<std::string> handlers;        // that have a record of it
};

// Whether what an entry has still counts: not past its age or its own end, checked by whom the
// policy demands, and not forgotten since the record was written. Asks for the time, and for what
// was forgotten, only if it must. The snapshot may be renewed meanwhile.
class Standing {
 public:
  Standing(const ReaderPool::Lease& snapshot, const Question& question);

  // Of a copy of a record that an earlier snapshot had: there what was forgotten may not have been
  // taken out yet, though it is by now.
  Standing OfCopy() const {
    Standing standing = *this;
    standing.of_copy_ = true;
    return standing;
  }

  CredentialStanding OfNodePods(const EntryView& entry) const;
  CredentialStanding OfSecret(const EntryView& entry, std::size_t secret) const;
  CredentialStanding OfServiceAccount(const EntryView& entry, std::size_t account) const;
  // Of a hash that a pod shows, which only its secret's coordinates match.
  bool IsHashForgotten(std::string_view hash) const;
  // False: nothing counts.
  bool has_snapshot() const { return static_cast<bool>(snapshot_); }
  // The store's, which no pod knows. Needs a snapshot.
  std::uint64_t seed() const { return snapshot_.seed(); }

 private:
  CredentialStanding Of(const StoredProof& proof) const;
  bool AsksRevocations() const {
    const State& state = snapshot_.state();
    return state.unfinished != 0 || (of_copy_ && state.digest(Table::kRevocations).count != 0);
  }

  const ReaderPool::Lease& snapshot_;
  const Question& question_;
  bool only_registry_ = false;
  bool of_copy_ = false;
};

// Maps the runtime handler that a caller names to its stored name: "" for the default handler,
// otherwise `name`. Allocates nothing, and does not read for the empty name.
Lookup FindStoredHandler(const ReaderPool::Lease& snapshot, std::string_view name,
                         std::string_view& stored);

// The result of steps 1 to 6: the answer, or the entry that step 7 compares credentials with.
struct DecisionOrEntry {
  std::optional<Decision> decision;
  std::optional<EntryView> entry;    // set if `decision` is not; valid while the snapshot lives
  Payload row;                       // contains `entry`
  std::string_view runtime_handler;  // as stored: "" for the default handler
};

// Steps 1 to 6. With a trail: also what it met.
DecisionOrEntry DecideWithoutCredentials(const ReaderPool::Lease& snapshot,
                                         const Question& question, Trail* trail = nullptr);

// The row of the ref's image under the handler, as stored.
struct FoundRow {
  Lookup lookup = Lookup::kAbsent;
  Payload row;
  std::string subject;  // of the image, if the ref is another digest of it; else empty
};
FoundRow FindRow(const ReaderPool::Lease& snapshot, const Question& question,
                 std::string_view runtime_handler);

// A pod's secret that should be stored, if any, and the proof of what it matched.
struct SecretToStore {
  const ImagePullSecretView* secret = nullptr;
  StoredProof proof;
};

// Steps 7 to 9. A secret that matches by its coordinates alone does not count if the hash that the
// pod shows was forgotten.
Decision CompareCredentials(const EntryView& entry, const PodCredentials& credentials,
                            const Standing& standing, SecretToStore& write_back);

// The same with a copy of the record, made before the credentials were fetched, when the ref
// `asked` was asked for. A copy made for another question opens nothing.
Decision CompareWithCopy(Payload row, std::string_view asked, const Question& question,
                         std::string_view runtime_handler, const PodCredentials& credentials,
                         const Standing& standing, SecretToStore& write_back);

// Combines the answer from the copy, `first`, with the store as it is now, `later`. The later look
// can only make the answer stricter: a record that became unreadable or does not verify is "pull"
// under both sets of rules. Under closed rules the matching credentials must still be in a record.
// Under the rules `kubelet` a record that is gone changes nothing: the kubelet looks only once.
Decision ConfirmOrTighten(const Decision& first, const DecisionOrEntry& later, Mode mode,
                          const PodCredentials& credentials, const Standing& standing);

// How many reasons there are. names.cc
std::size_t ReasonCount();

// Where a decision is counted (ReaderPool::Lease::Count).
static_assert(kCounters == std::size_t{5} * kMaxReasons);
inline std::size_t CounterOf(CheckResult result, Reason reason) {
  return static_cast<std::size_t>(result) * kMaxReasons + static_cast<std::size_t>(reason);
}

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_DECIDE_H_
