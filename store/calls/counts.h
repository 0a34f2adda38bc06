// What metrics count in tables. Counted anew only if the table has changed.

#ifndef WAYBILL_STORE_CALLS_COUNTS_H_
#define WAYBILL_STORE_CALLS_COUNTS_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "store/disk/header.h"

namespace waybill::internal {

struct RecordCounts {
  TableDigest of;
  std::map<std::string, std::uint64_t> by_handler;  // ordered: "" is the default one
  std::uint64_t preloaded = 0;                      // on the node or away
  std::uint64_t with_aliases = 0;
  std::uint64_t closed = 0;
  std::int64_t oldest_proof = 0;  // as ImageView::Proofs
  std::uint64_t undated = 0;
  std::uint64_t ending = 0;
  std::array<std::uint64_t, 5> by_checker{};

  std::uint64_t records() const {
    std::uint64_t sum = 0;
    for (const auto& [handler, records] : by_handler) sum += records;
    return sum;
  }
  // Of other handlers than the default.
  std::uint64_t nondefault() const {
    std::uint64_t sum = 0;
    for (const auto& [handler, records] : by_handler) sum += handler.empty() ? 0 : records;
    return sum;
  }
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_CALLS_COUNTS_H_
