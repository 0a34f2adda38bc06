// What pulls proved: whether it still counts, how two proofs become one, and two rows.

#ifndef WAYBILL_STORE_IMAGES_PROOFS_H_
#define WAYBILL_STORE_IMAGES_PROOFS_H_

#include <chrono>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "store/base/options.h"
#include "store/base/policy.h"
#include "store/disk/clocks.h"
#include "store/disk/store_txn.h"
#include "store/images/image_row.h"
#include "waybill/values.h"

namespace waybill::internal {

// `proven` in seconds of Clocks::ages, 0 if unknown. `most` 0: for ever.
inline bool IsPastAge(std::int64_t proven, std::chrono::seconds most, const Clocks& now) {
  if (most.count() == 0) return false;
  return proven <= 0 || proven > now.ages.seconds || now.ages.seconds - proven > most.count();
}

// By its age, or by its own end (Proof::good_until).
inline bool IsPastAge(const StoredProof& proof, std::chrono::seconds most, const Clocks& now) {
  return (proof.good_until != 0 && now.ends.seconds >= proof.good_until) ||
         IsPastAge(proof.proven, most, now);
}
inline bool IsPastAge(const Proof& proof, std::chrono::seconds most, const Clocks& now) {
  return IsPastAge(ToStored(proof), most, now);
}

// By what a change judges ages.
struct Aging {
  std::chrono::seconds max_age;
  Clocks now;
};
inline Aging AgingIn(const StoreTxn& txn) { return {txn.state().max_age, txn.clocks()}; }

// Keeps of the entries what `counts` accepts: of Secrets, service accounts, and the proofs that
// every pod may use it, each with its image name. Returns whether anything went.
template <typename Counts>
bool LeaveIf(const Counts& counts, Credentials& entries) {
  bool any = false;
  for (auto at = entries.begin(); at != entries.end();) {
    const std::string& name = at->first;
    ImagePullCredentials& entry = at->second;
    const bool was_empty = entry.empty();
    if (entry.node_pods_accessible && !counts(name, entry.node_pods_proof)) {
      entry.node_pods_accessible = false;
      any = true;
    }
    const auto erase = [&](auto& all) {
      return std::erase_if(all, [&](const auto& one) { return !counts(name, one); });
    };
    const std::size_t erased =
        erase(entry.kubernetes_secrets) + erase(entry.kubernetes_service_accounts);
    any = any || erased > 0;
    at = !was_empty && entry.empty() ? entries.erase(at) : std::next(at);
  }
  return any;
}

// Not what ends by itself (Proof::good_until).
struct HasNoEnd {
  bool operator()(const std::string&, const Proof& proof) const { return !proof.good_until; }
  template <typename T>
  bool operator()(const std::string&, const T& one) const {
    return !one.proof.good_until;
  }
};

// By the policy and the age. Neither of them may end before it.
class IsGood {
 public:
  IsGood(const VerificationPolicy& policy, const Aging& aging) : policy_(policy), aging_(aging) {}
  bool operator()(const std::string& name, const Proof& proof) const {
    return !IsPastAge(proof, aging_.max_age, aging_.now) &&
           policy_.ProofCounts(name, proof.checker);
  }
  template <typename T>
  bool operator()(const std::string& name, const T& one) const {
    return (*this)(name, one.proof);
  }

 private:
  const VerificationPolicy& policy_;
  Aging aging_;
};

// Lowers `next` to how long it takes until one of the credentials ends that count now.
void NoteNextEnd(const Aging& aging, const Credentials& counting,
                 std::optional<std::chrono::seconds>& next);

// Which of two proofs of one credential stays: the later one, unless the registry checked the
// earlier one alone, and that is not past its age, `most`.
Proof Better(const Proof& a, const Proof& b, std::chrono::seconds most, const Clocks& now);

// Merges `added` into the entry of `image_name` (kubelet behaviour). Returns whether anything
// changed but proofs, of which the better one is kept. Node-wide access wins and clears both lists;
// once set, nothing is added. Otherwise secrets are merged by coordinates and sorted by namespace,
// name, uid; or, if none are given, service accounts likewise. A first entry is kept as given.
bool MergeCredentials(Credentials& entries, std::string_view image_name,
                      const ImagePullCredentials& added, const Aging& aging);

// Whether both manifests are known, and differ.
bool IsOther(std::string_view a, std::string_view b);

// Whether Secrets or service accounts are, or were, on record under the image name.
bool NeededCredentials(const PulledPart& pulled, std::string_view image_name);
// `now` takes the place of `was`, or loses credentials that `was` has: names under which that has,
// or had, Secrets or service accounts stay private.
void KeepPrivateNames(const PulledPart& was, PulledPart& now);
// Leaves out what pulls without credentials proved under names for which `other` needed some: the
// node's own credentials may have served them.
void LeaveOutEveryPod(const PulledPart& other, PulledPart& from);

// One row of two that turn out to be of one image, under `into`'s subject and handler. Neither may
// have what was revoked. What both proved counts, unless their manifests differ (then the newer's)
// or their guest platforms (then nothing). Secrets stay where the other was pulled without. An
// operator's closing stays.
ImageRow Unite(ImageRow into, ImageRow other, const Aging& aging);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_PROOFS_H_
