// Whether a proof still counts, by its age (AgeLimits) and its own end (Proof::good_until).

#ifndef WAYBILL_STORE_NODE_RECORDS_AGE_H_
#define WAYBILL_STORE_NODE_RECORDS_AGE_H_

#include <chrono>
#include <cstdint>

#include "store/base/options.h"
#include "store/engine/database/clocks.h"
#include "store/engine/database/store_txn.h"
#include "store/node/records/pulled_record.h"
#include "waybill/values.h"

namespace waybill::internal {

// `proven` in seconds of Clocks::ages, 0 if unknown. `most` 0: for ever.
inline bool IsPastAge(std::int64_t proven, std::chrono::seconds most, const Clocks& now) {
  if (most.count() == 0) return false;
  return proven <= 0 || proven > now.ages.seconds || now.ages.seconds - proven > most.count();
}

inline bool IsPastAge(const StoredProof& proof, std::chrono::seconds most, const Clocks& now) {
  return (proof.good_until != 0 && now.ends.seconds >= proof.good_until) ||
         IsPastAge(proof.proven, most, now);
}
inline bool IsPastAge(const Proof& proof, std::chrono::seconds most, const Clocks& now) {
  return IsPastAge(ToStored(proof), most, now);
}

// By what a change judges ages.
struct Aging {
  const AgeLimits& limits;
  Clocks now;
};
inline Aging AgingIn(const StoreTxn& txn) { return {txn.state().ages, txn.clocks()}; }

// How long service accounts count.
inline std::chrono::seconds AgeOfServiceAccounts(const AgeLimits& ages) {
  return ages.service_accounts.count() == 0 ? ages.credentials : ages.service_accounts;
}

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_RECORDS_AGE_H_
