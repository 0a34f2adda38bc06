// Open pulls (waybill/values.h, schema/v2/pull_intent.fbs). They lie in the main table.

#ifndef WAYBILL_STORE_IMAGES_PULL_ROW_H_
#define WAYBILL_STORE_IMAGES_PULL_ROW_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "store/disk/store_txn.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

std::vector<std::uint8_t> EncodeUnresolvedPull(const UnresolvedPull& pull);
// nullopt: not a FlatBuffer of that table, or a field is missing or above limits.h.
std::optional<UnresolvedPull> DecodeUnresolvedPull(Payload payload);

// In place, from an envelope that verified (see PulledRecordView).
struct IntentView {
  std::string_view image;
  std::string_view runtime_handler;
  bool anything = false;  // or none any more (UnresolvedPull::nothing_at): no intent of the string
};
IntentView ViewIntent(Payload payload);

// Below, the default runtime handler is "".

// Those of this string and handler, the oldest first; unreadable ones are left out.
enum class Brought : std::uint8_t { kMaybe, kNothing };  // UnresolvedPull::nothing_at
Result<std::vector<UnresolvedPull>> FindOpenPulls(const StoreTxn& txn, std::string_view image,
                                                  std::string_view runtime_handler,
                                                  Brought brought = Brought::kMaybe);
// All that can be read, the oldest first.
Result<std::vector<UnresolvedPull>> AllOpenPulls(const StoreTxn& txn);
// How many, but for those that brought nothing. What can't be read counts.
Result<std::uint64_t> CountOpenPulls(const StoreTxn& txn);
// The next ID: above all others, also above those of a store that was lost (the commit sequence
// goes on past its witness).
PullId NextPullId(StoreTxn& txn);
// Whether NextPullId may have given it, here or in a store whose place this one took.
bool WasGiven(const StoreTxn& txn, PullId id);
// All up to this commit: where nothing tells which were given.
void CountAllAsGiven(StoreTxn& txn);
// Of no pull, and no mistake: what is recorded of it ends none. The last that the first commit
// could give; no commit begins so many.
inline constexpr PullId kNoPull{(std::uint64_t{2} << 16U) - 1};
Result<void> PutOpenPull(StoreTxn& txn, const UnresolvedPull& pull);
Result<void> EraseOpenPull(StoreTxn& txn, const UnresolvedPull& pull);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_PULL_ROW_H_
