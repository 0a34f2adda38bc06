#include "store/pull/clock_ahead.h"

#include <utility>
#include <vector>

#include "store/database/pulled_record.h"
#include "store/database/typed_tables.h"

namespace waybill::internal {

bool IsFromClockAhead(Timestamp time, Timestamp clock) {
  return clock.seconds >= kEarliestClockSeconds &&
         time.seconds > clock.seconds + kMaxClockLeadSeconds;
}

Result<std::uint64_t> MendTimes(StoreTxn& txn) {
  if (IsFromClockAhead(txn.state().latest_time, txn.clock())) txn.TrustClock();
  std::vector<ImagePulledRecord> ahead;
  auto walked = txn.ForEach(Table::kPulled, [&](const Key16&, Payload payload) -> Result<bool> {
    auto record = DecodePulledRecordValue(payload);
    if (record && record->last_updated && IsFromClockAhead(*record->last_updated, txn.clock())) {
      ahead.push_back(std::move(*record));
    }
    return true;
  });
  if (!walked) return walked.error();
  for (ImagePulledRecord& record : ahead) {
    record.last_updated = txn.now();
    if (auto r = StoreRecord(txn, std::move(record)); !r) return r.error();
  }
  return ahead.size();
}

}  // namespace waybill::internal
