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

// When a record is removed: it is not in the list, and old enough by one of two measures.
struct PruneLimit {
  bool by_stamp = true;
  std::uint64_t token = 0;  // by_stamp: removed if its stamp is not above this
  Timestamp until;          // otherwise: removed if last updated before this, or never
  // If not 0: the commit in which a clock that was ahead was corrected. Records since then are
  // newer than an `until` that is ahead of the clock.
  std::uint64_t mended_at = 0;
  bool* met_ahead = nullptr;  // set if a kept record's time came from a clock ahead
};

// `runtime_handler` is as stored, "" for the default one; nullopt: listed without a handler.
struct PruneImage {
  std::string_view image_ref;
  std::optional<std::string_view> runtime_handler;
};

// The part of the table that one transaction prunes: from `first` to the end of the ref with which
// `most` records have changed.
struct PrunePart {
  Key16 first;
  std::size_t most = std::numeric_limits<std::size_t>::max();
};
struct PrunedPart {
  PruneReport report;
  std::optional<Key16> next;  // where the next part begins; nullopt: this was the last
};

Result<PrunedPart> PruneRecords(StoreTxn& txn, Rules rules, const std::vector<PruneImage>& images,
                                const PruneLimit& limit, const PrunePart& part);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_PULL_PRUNE_H_
