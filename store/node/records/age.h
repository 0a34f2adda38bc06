// Whether a proof still counts, by its age (AgeLimits) and its own end (Proof::good_until).

#ifndef WAYBILL_STORE_NODE_RECORDS_AGE_H_
#define WAYBILL_STORE_NODE_RECORDS_AGE_H_

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "store/engine/database/store_txn.h"
#include "store/node/records/clock_ahead.h"
#include "store/node/records/pulled_record.h"
#include "waybill/revocation.h"
#include "waybill/types.h"

namespace waybill::internal {

// The time by which ages are measured. A clock that went back makes nothing younger than the
// newest commit; a time from a clock that was ahead makes nothing older.
inline Timestamp NowForAges(Timestamp clock, Timestamp latest) {
  return IsFromClockAhead(latest, clock) ? clock : std::max(clock, latest);
}

// `proven` in seconds since 1970, 0 if unknown. `most` 0: for ever.
inline bool IsPastAge(std::int64_t proven, std::chrono::seconds most, Timestamp now) {
  if (most.count() == 0) return false;
  // One in the future is from a clock that was ahead: when it really was is unknown.
  if (proven <= 0 || proven > now.seconds + kMaxClockLeadSeconds) return true;
  return now.seconds - proven > most.count();
}

inline bool IsPastAge(const StoredProof& proof, std::chrono::seconds most, Timestamp now) {
  return (proof.good_until != 0 && now.seconds >= proof.good_until) ||
         IsPastAge(proof.proven, most, now);
}
inline bool IsPastAge(const Proof& proof, std::chrono::seconds most, Timestamp now) {
  return IsPastAge(ToStored(proof), most, now);
}

// By what a change judges ages.
struct Aging {
  const AgeLimits& limits;
  Timestamp now;
};
inline Aging AgingIn(const StoreTxn& txn) {
  return {txn.state().ages, NowForAges(txn.clock(), txn.state().latest_time)};
}

// How long service accounts count.
inline std::chrono::seconds AgeOfServiceAccounts(const AgeLimits& ages) {
  return ages.service_accounts.count() == 0 ? ages.credentials : ages.service_accounts;
}

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_RECORDS_AGE_H_
