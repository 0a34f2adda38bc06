// The steps between schema versions, in order. A step takes a store from one version to the next
// and back, each way in one write transaction. Each step has one file (v<from>_to_v<to>.cc), the
// golden store of its newer version, and tests of both ways; a test checks that.

#ifndef WAYBILL_MIGRATIONS_STEPS_STEPS_H_
#define WAYBILL_MIGRATIONS_STEPS_STEPS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/function_ref.h"
#include "store/engine/database/store_txn.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// Values done so far in this step, and in all; false stops it.
using StepProgress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

// What a step works on. The tables of both versions exist: those of the version that the step goes
// to are made before, those that it does not have are dropped after. `txn` reads and writes as the
// newer version; a step down writes the remaining values as the older one, with StoreTxn::PutAs.
struct StepRun {
  StoreTxn& txn;
  const StepProgress& progress;
  BootTime now;
  std::uint64_t values_written = 0;
};

// Counts one more written value of `total`. kInterrupted: the progress stops the step.
Result<void> Report(StepRun& run, std::uint64_t total);

// A pulled record. kDamaged: it can't be decoded.
Result<ImagePulledRecord> Decoded(Payload payload);
Result<ImagePulledRecord> RecordUnder(const StoreTxn& txn, const Key16& key);
// For a step down to version `to`: writes the record as the oldest version that can hold it. So the
// steps below find it as they would write it, and its page is written once.
Result<void> PutAsOldest(StepRun& run, const Key16& key, const ImagePulledRecord& record,
                         std::uint32_t to);
// Writes every record so, as `change` leaves it.
Result<void> RewriteRecords(StepRun& run, std::uint32_t to,
                            FunctionRef<Result<void>(ImagePulledRecord&)> change);

struct Step {
  std::uint32_t from;
  std::uint32_t to;  // from + 1
  std::string_view name;
  Result<void> (*up)(StepRun& run);
  // If the older version can't hold a value, its image must end as "verify again", never as "no
  // record".
  Result<void> (*down)(StepRun& run);
  // What going down loses, in words, one line each. Only reads the store, which has the newer
  // version or a later one. kConflict: going down is impossible.
  Result<std::vector<std::string>> (*losses)(const StoreTxn& txn);
};

std::span<const Step> Steps();

extern const Step kStepV1ToV2;
extern const Step kStepV2ToV3;
extern const Step kStepV3ToV4;
extern const Step kStepV4ToV5;
extern const Step kStepV5ToV6;
extern const Step kStepV6ToV7;
extern const Step kStepV7ToV8;
extern const Step kStepV8ToV9;

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_STEPS_STEPS_H_
