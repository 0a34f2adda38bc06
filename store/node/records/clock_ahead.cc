#include "store/node/records/clock_ahead.h"

#include <utility>
#include <vector>

#include "store/base/try.h"
#include "store/node/records/pulled_record.h"
#include "store/node/records/typed_tables.h"

namespace waybill::internal {

Result<std::uint64_t> MendTimes(StoreTxn& txn) {
  if (IsFromClockAhead(txn.state().latest_time, txn.clock())) txn.TrustClock();
  std::vector<ImagePulledRecord> ahead;
  TRY(txn.ForEach(Table::kPulled, [&](const Key16&, Payload payload) -> Result<bool> {
    auto record = DecodePulledRecordValue(payload);
    if (!record) return true;
    const bool is_ahead =
        record->last_updated && IsFromClockAhead(*record->last_updated, txn.clock());
    if (!is_ahead) return true;
    record->last_updated = txn.now();
    ahead.push_back(std::move(*record));
    return true;
  }));
  for (ImagePulledRecord& record : ahead) TRY(StoreRecord(txn, std::move(record)));
  return ahead.size();
}

}  // namespace waybill::internal
