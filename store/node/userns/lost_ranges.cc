#include "store/node/userns/lost_ranges.h"

#include <string>
#include <string_view>

#include "store/base/try.h"

namespace waybill::internal {

Result<void> HoldLostRanges(StoreTxn& txn, std::string_view reason) {
  // The migration of an older store notes this.
  if (!txn.schema().has(Table::kUsernsHeld)) return {};
  return StoreHeld(txn, {"", {}, "", std::string(reason), {}, PodQuarantineKind::kLostRanges});
}

Result<void> HoldUntilImport(StoreTxn& txn, std::string_view why) {
  auto lost = TRY(FindHeld(txn, {}));
  if (lost || !txn.schema().has(Table::kUsernsHeld)) return {};
  // Waybills of schema version 3 recognise the entry by its first words.
  const std::string reason =
      "the ID mappings of the kubelet's pods are not taken over: " + std::string(why);
  return StoreHeld(txn, {"", {}, "", reason, {}, PodQuarantineKind::kUntilImport});
}

Result<void> HoldRangesOfKubelet(StoreTxn& txn) {
  return HoldUntilImport(txn, "the store comes from a version that kept none");
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
