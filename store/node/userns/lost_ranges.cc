#include "store/node/userns/lost_ranges.h"

#include <string>
#include <string_view>

#include "store/base/try.h"

namespace waybill::internal {

Result<void> HoldLostRanges(StoreTxn& txn, std::string_view reason) {
  return StoreHeld(txn, {"", {}, "", std::string(reason), {}, PodQuarantineKind::kLostRanges});
}

Result<void> HoldUntilImport(StoreTxn& txn, std::string_view why) {
  auto lost = TRY(FindHeld(txn, {}));
  if (lost) return {};
  const std::string reason =
      "the ID mappings of the kubelet's pods are not taken over: " + std::string(why);
  return StoreHeld(txn, {"", {}, "", reason, {}, PodQuarantineKind::kUntilImport});
}

bool IsUntilImport(const QuarantinedPod& held) {
  return held.kind == PodQuarantineKind::kUntilImport;
}

Result<void> ReleaseAfterImport(StoreTxn& txn) {
  auto lost = TRY(FindHeld(txn, {}));
  if (!lost || !IsUntilImport(lost->pod)) return {};
  auto erased = EraseHeld(txn, {});
  return erased ? Result<void>() : erased.error();
}

}  // namespace waybill::internal
