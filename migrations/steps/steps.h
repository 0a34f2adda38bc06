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
#include "store/disk/store_txn.h"
#include "waybill/result.h"

namespace waybill::internal {

// Values done so far in this step, and in all; false stops it.
using StepProgress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

// What a step works on. The tables of both versions exist: those of the version that the step goes
// to are made before, those that it does not have are dropped after. `txn` reads and writes as the
// newer version.
struct StepRun {
  StoreTxn& txn;
  const StepProgress& progress;
  std::uint64_t total = 0;  // values that the step will write; it says so before the first
  std::uint64_t values_written = 0;
};

// Writes each value of a table in the form of schema version `version`, as `change` leaves it.
// kInterrupted: the progress stops the step. kDamaged: a value does not verify.
Result<void> Rewrite(StepRun& run, Table table, std::uint32_t version,
                     FunctionRef<Result<void>(std::vector<std::uint8_t>& payload)> change);

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

// All of them. Tests of what carries them out add one of their own (tests/support/third_version.h).
std::span<const Step>& Steps();

extern const Step kStepV1ToV2;

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_STEPS_STEPS_H_
