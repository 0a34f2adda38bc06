#include "store/node/records/clock_ahead.h"

#include <utility>
#include <vector>

#include "store/base/try.h"
#include "store/node/records/pulled_record.h"
#include "store/node/records/typed_tables.h"

namespace waybill::internal {

bool IsFromClockAhead(Timestamp time, Timestamp clock) {
  return clock.seconds >= kEarliestClockSeconds &&
         time.seconds > clock.seconds + kMaxClockLeadSeconds;
}

namespace {

// When a proof from a clock that was ahead really was is unknown. Returns whether there was one.
bool ForgetProofsAhead(ImagePulledRecord& record, Timestamp clock) {
  bool any = false;
  const auto forget = [&](Proof& proof) {
    if (!proof.proven || !IsFromClockAhead(*proof.proven, clock)) return;
    proof.proven.reset();
    any = true;
  };
  for (auto& [name, entry] : record.credential_mapping) {
    forget(entry.node_pods_proof);
    for (ImagePullSecret& secret : entry.kubernetes_secrets) forget(secret.proof);
    for (auto& account : entry.kubernetes_service_accounts) forget(account.proof);
  }
  return any;
}

}  // namespace

Result<std::uint64_t> MendTimes(StoreTxn& txn) {
  if (IsFromClockAhead(txn.state().latest_time, txn.clock())) txn.TrustClock();
  std::vector<ImagePulledRecord> ahead;
  TRY(txn.ForEach(Table::kPulled, [&](const Key16&, Payload payload) -> Result<bool> {
    auto record = DecodePulledRecordValue(payload);
    if (!record) return true;
    const bool proofs = ForgetProofsAhead(*record, txn.clock());
    const bool updated =
        record->last_updated && IsFromClockAhead(*record->last_updated, txn.clock());
    if (updated) record->last_updated = txn.now();
    if (updated || proofs) ahead.push_back(std::move(*record));
    return true;
  }));
  for (ImagePulledRecord& record : ahead) TRY(StoreRecord(txn, std::move(record)));
  return ahead.size();
}

}  // namespace waybill::internal
