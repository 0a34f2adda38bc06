// Open pulls: how they begin, end, are kept as one, and are settled. The rules for images that they
// may have brought are in judge.h. Runtime handlers are as stored, "" for the default one.

#ifndef WAYBILL_STORE_IMAGES_OPEN_PULLS_H_
#define WAYBILL_STORE_IMAGES_OPEN_PULLS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/disk/store_txn.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// When something ended: by the wall clock it is the transaction's time.
struct Ended {
  PullState state = PullState::kUnknown;  // or kFailed
  bool nothing = false;  // nothing was transferred: from now on it counts against older lists only
  BootTime at;
};

// A running pull. If too many ended ones are kept, the oldest become one of anything.
Result<PullId> BeginPull(StoreTxn& txn, std::string_view image, std::string_view runtime_handler,
                         const BootTime& now);

// Which pull ends: that of the ID. Without one the newest of the string that runs, or else the
// newest of unknown end; it may be any of these, so it counts as begun with the oldest, and the
// older ones go on. Of several that are kept as one none can be told from the others: they stay.
struct EndingPull {
  std::string_view image;
  std::string_view runtime_handler;
  PullId id;  // 0: not named
};
// Of a pull that is named: that it is, or was, one of this string. One that is over is none to
// complain about: it was dropped, settled or ended, and may have brought the image all the same.
Result<void> CheckNamedPull(const StoreTxn& txn, const EndingPull& pull);
// nullopt: there is none.
Result<std::optional<UnresolvedPull>> FindEndingPull(const StoreTxn& txn, const EndingPull& pull);
// It brought nothing that has no record: removed.
Result<void> RemovePull(StoreTxn& txn, const EndingPull& pull);
// It may have brought something. Those of one string that ended alike are kept as one, with the
// last end.
Result<void> EndPull(StoreTxn& txn, const EndingPull& pull, const Ended& ended);

// An intent that an earlier process or a kubelet left: a pull of unknown end, which ended now. When
// a machine of theirs booted since can't be told: wall clocks jump.
Result<void> TakeOverIntent(StoreTxn& txn, std::string_view image, std::string_view runtime_handler,
                            Timestamp began, const BootTime& now);
// Stores one of another database.
Result<void> CarryPull(StoreTxn& txn, UnresolvedPull pull);
// Pulls that run have ended, with their process. Returns how many it ended of them.
Result<std::uint64_t> EndRunningPulls(StoreTxn& txn, const BootTime& now, std::uint64_t at_most);
// One open pull stands for those that can't be named; with kDropped for images of which too many
// were gone to be remembered.
Result<void> OpenPullOfAnything(StoreTxn& txn, const BootTime& now,
                                PullState state = PullState::kUnknown);

// Those that may have given one of the names, the newest first.
std::vector<UnresolvedPull> PullsOfAny(std::vector<UnresolvedPull> pulls,
                                       const std::vector<std::string>& names,
                                       ShortNames short_names);

// Drops open pulls that can bring nothing any more, after a complete list with a token: failed ones
// that ended `grace` before, unknown ones that ended `window` before, those that ended before the
// machine's last boot, and those of which the runtime showed that they are over
// (ImageList::quiet_until); kDropped once the node has run for as long as gone images are
// remembered. Not those that may have given one of the names: their images are on the list, and not
// judged yet. Returns how many.
Result<std::uint64_t> SettlePulls(StoreTxn& txn, const ImageList& list, const BootTime& now,
                                  const EvidenceOptions& options,
                                  const std::vector<std::string>& names_left);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_OPEN_PULLS_H_
