// What of a record counts: by its age, its own end, and who checked it.

#ifndef WAYBILL_STORE_NODE_RECORDS_WHAT_COUNTS_H_
#define WAYBILL_STORE_NODE_RECORDS_WHAT_COUNTS_H_

#include <chrono>
#include <iterator>
#include <string>

#include "store/base/options.h"
#include "store/base/policy.h"
#include "store/node/records/age.h"
#include "waybill/values.h"

namespace waybill::internal {

// Keeps in the record what `counts` accepts: of Secrets, service accounts, and the proofs that
// every pod may use it, each with its image name.
template <typename Counts>
void LeaveIf(const Counts& counts, ImagePulledRecord& record) {
  for (auto at = record.credential_mapping.begin(); at != record.credential_mapping.end();) {
    const std::string& name = at->first;
    ImagePullCredentials& entry = at->second;
    const bool was_empty = entry.empty();
    if (!counts(name, entry.node_pods_proof)) entry.node_pods_accessible = false;
    std::erase_if(entry.kubernetes_secrets, [&](const auto& one) { return !counts(name, one); });
    std::erase_if(entry.kubernetes_service_accounts,
                  [&](const auto& one) { return !counts(name, one); });
    at = !was_empty && entry.empty() ? record.credential_mapping.erase(at) : std::next(at);
  }
}

// Not what ends by itself (Proof::good_until).
struct HasNoEnd {
  bool operator()(const std::string&, const Proof& proof) const { return !proof.good_until; }
  template <typename T>
  bool operator()(const std::string&, const T& one) const {
    return !one.proof.good_until;
  }
};

// By the policy and the limits. Neither may end before it.
class IsGood {
 public:
  IsGood(const VerificationPolicy& policy, const AgeLimits& ages, const Clocks& now)
      : policy_(policy), ages_(ages), now_(now) {}
  bool operator()(const std::string& name, const Proof& of_node_pods) const {
    return Is(name, of_node_pods, ages_.node_pods);
  }
  bool operator()(const std::string& name, const ImagePullSecret& one) const {
    return Is(name, one.proof, ages_.credentials);
  }
  bool operator()(const std::string& name, const ImagePullServiceAccount& one) const {
    return Is(name, one.proof, AgeOfServiceAccounts(ages_));
  }

 private:
  bool Is(const std::string& name, const Proof& proof, std::chrono::seconds most) const {
    return !IsPastAge(proof, most, now_) && policy_.ProofCounts(name, proof.checker);
  }

  const VerificationPolicy& policy_;
  const AgeLimits& ages_;
  Clocks now_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_RECORDS_WHAT_COUNTS_H_
