#include "store/userns/lost_ranges.h"

#include <string>

namespace waybill::internal {

namespace {
constexpr std::string_view kNotTakenOver =
    "the ID mappings of the kubelet's pods are not taken over: ";

}  // namespace

Result<void> HoldLostRanges(StoreTxn& txn, std::string_view reason) {
  // A store of an older version learns of it when it is migrated.
  if (!txn.schema().has(Table::kUsernsHeld)) return {};
  return StoreHeld(txn, {"", {}, "", std::string(reason), {}});
}

Result<void> HoldUntilImport(StoreTxn& txn, std::string_view why) {
  auto lost = FindHeld(txn, {});
  if (!lost) return lost.error();
  if (*lost) return {};
  return HoldLostRanges(txn, std::string(kNotTakenOver) + std::string(why));
}

bool IsUntilImport(const HeldPod& held) {
  return held.pod_uid.empty() && held.reason.starts_with(kNotTakenOver);
}

Result<void> ReleaseAfterImport(StoreTxn& txn) {
  auto lost = FindHeld(txn, {});
  if (!lost) return lost.error();
  if (!*lost || !IsUntilImport((*lost)->pod)) return {};
  auto erased = EraseHeld(txn, {});
  return erased ? Result<void>() : erased.error();
}

}  // namespace waybill::internal
