// "Must this pull be attempted?" (KEP-2535), in nine steps, as the kubelet takes them:
//
//   1. The image is not on the node: pull.
//   2. Read the record of the image ref. What can't be read, or is in quarantine: pull.
//   3. Where the image comes from: a record says that the kubelet pulled it, and so does an intent
//      under the rules `kubelet`. Under the closed rules the image is looked for under its other
//      spellings, too, and in the ledger of preloaded images.
//   4. The policy does not verify such images: use it.
//   5. There is no record, or it has no entry for the image name: pull.
//   6. The entry is open to all pods of the node: use it. Here and below what is past its age, was
//      forgotten since, or was not checked by whom the policy demands, does not count (Standing).
//      Only now the pod's credentials are fetched, by the caller.
//   7. One of the pod's secrets is in the entry: use it.
//   8. Its service account is in the entry: use it.
//   9. Pull.
//
// Closed rules: what steps 5 to 9 would pull is used if the image is in the ledger, and the policy
// does not verify preloaded images. A record that opens by itself needs no look at the ledger.
//
// Reads one snapshot, without writes or locks. Allocates only if something is in quarantine, or if
// the image has no record under this very ref.

#ifndef WAYBILL_STORE_NODE_DECISION_DECISION_STEPS_H_
#define WAYBILL_STORE_NODE_DECISION_DECISION_STEPS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "store/base/metrics.h"
#include "store/base/options.h"
#include "store/base/policy.h"
#include "store/engine/database/reader_pool.h"
#include "store/node/records/pulled_record.h"
#include "waybill/values.h"

namespace waybill::internal {

// What a decision is about.
struct Question {
  Mode rules;
  const VerificationPolicy& policy;
  std::string_view image;
  std::string_view image_ref;
  std::string_view runtime_handler;      // as the caller names it
  const std::optional<AgeLimits>& ages;  // nullopt: those that the store remembers
  const Clock& clock;
  const BootClock& boot_clock;
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

  enum class Verdict : std::uint8_t { kCounts, kTooOld, kNotByRegistry, kForgotten };
  Verdict OfNodePods(const EntryView& entry) const;
  Verdict OfSecret(const EntryView& entry, std::size_t secret) const;
  Verdict OfServiceAccount(const EntryView& entry, std::size_t account) const;
  // Of a hash that a pod shows, which only its secret's coordinates match.
  bool IsHashForgotten(std::string_view hash) const;
  // False: nothing counts.
  bool has_snapshot() const { return static_cast<bool>(snapshot_); }
  // The store's, which no pod knows. Needs a snapshot.
  std::uint64_t seed() const { return snapshot_.seed(); }

 private:
  Verdict Of(const StoredProof& proof, std::chrono::seconds most) const;
  bool AsksRevocations() const {
    const State& state = snapshot_.state();
    return state.untidied != 0 || (of_copy_ && state.digest(Table::kRevocations).count != 0);
  }
  const AgeLimits& ages() const {
    return question_.ages ? *question_.ages : snapshot_.state().ages;
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
  Payload record;                    // contains `entry`
  std::string_view runtime_handler;  // as stored: "" for the default handler
};

// Steps 1 to 6.
DecisionOrEntry DecideWithoutCredentials(const ReaderPool::Lease& snapshot,
                                         const Question& question);

// Closed rules: whether the ledger opens the image. nullopt: it does not. `runtime_handler` as
// stored.
std::optional<Decision> AskLedger(const ReaderPool::Lease& snapshot, const Question& question,
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
Decision CompareWithCopy(Payload record, std::string_view asked, const Question& question,
                         std::string_view runtime_handler, const PodCredentials& credentials,
                         const Standing& standing, SecretToStore& write_back);

// Combines the answer from the copy, `first`, with the store as it is now, `later`. The later look
// can only make the answer stricter: a record that became unreadable or does not verify is "pull"
// under both sets of rules. Under closed rules the matching credentials must still be in a record.
// Under the rules `kubelet` a record that is gone changes nothing: the kubelet looks only once.
Decision ConfirmOrTighten(const Decision& first, const DecisionOrEntry& later, Mode rules,
                          const PodCredentials& credentials, const Standing& standing);

// How many reasons there are. names.cc
std::size_t ReasonCount();

// Where a decision is counted (ReaderPool::Lease::Count).
static_assert(kCounters == std::size_t{5} * kMaxReasons);
inline std::size_t CounterOf(CheckResult result, Reason reason) {
  return static_cast<std::size_t>(result) * kMaxReasons + static_cast<std::size_t>(reason);
}

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_DECISION_DECISION_STEPS_H_
