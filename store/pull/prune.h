// Garbage collection of records (KEP-2535, PruneUnknownRecords; store/README.md, rule 4).

#ifndef WAYBILL_STORE_PULL_PRUNE_H_
#define WAYBILL_STORE_PULL_PRUNE_H_

#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "store/database/store_txn.h"
#include "waybill/report.h"
#include "waybill/rules.h"
#include "waybill/types.h"

namespace waybill::internal {

// What a record must be to go: not in the list, and old enough by one of the two measures.
struct PruneLimit {
  bool by_stamp = true;
  std::uint64_t token = 0;  // by_stamp: goes with a stamp of this or less
  Timestamp until;          // otherwise: goes if last updated before this, or never
  // Not 0: from this commit on records are younger than an `until` that is ahead of the clock,
  // since the clock was ahead before, and was put right then.
  std::uint64_t mended_at = 0;
  bool* met_ahead = nullptr;  // set where a record stays whose time came from a clock ahead
};

// Handlers in `images` are given as they are stored, "" included; nullopt: listed without one.
struct PruneImage {
  std::string_view image_ref;
  std::optional<std::string_view> runtime_handler;
};

// What of the table one transaction looks at: from `first` on, up to the end of the ref with which
// `most` records changed.
struct PrunePart {
  Key16 first;
  std::size_t most = std::numeric_limits<std::size_t>::max();
};
struct PrunedPart {
  PruneReport report;
  std::optional<Key16> next;  // the first of the next part; none: that was the last
};

Result<PrunedPart> PruneRecords(StoreTxn& txn, Rules rules, const std::vector<PruneImage>& images,
                                const PruneLimit& limit, const PrunePart& part);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_PULL_PRUNE_H_
