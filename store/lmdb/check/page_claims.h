// Which pages are taken. A page belongs to one place only; the second claim fails, which also ends
// every loop a hostile file may hold.

#ifndef WAYBILL_STORE_LMDB_CHECK_PAGE_CLAIMS_H_
#define WAYBILL_STORE_LMDB_CHECK_PAGE_CLAIMS_H_

#include <cstdint>
#include <vector>

#include "store/lmdb/check/page_format.h"

namespace waybill::internal {

class PageClaims {
 public:
  // Pages kMetaPages … end − 1 can be claimed.
  explicit PageClaims(PageNumber end) : end_(end), taken_(static_cast<std::size_t>(end)) {}

  PageNumber end() const { return end_; }

  // Claims page by page up to the first that is taken or out of range: a page is looked at twice
  // only if that ends the call, so all claims of a walk together take time linear in the pages and
  // claims.
  bool Claim(PageNumber first, std::uint64_t count = 1) {
    if (first < kMetaPages || first >= end_ || count > end_ - first) return false;
    for (PageNumber page = first; page < first + count; ++page) {
      if (taken_[static_cast<std::size_t>(page)]) return false;
      taken_[static_cast<std::size_t>(page)] = true;
    }
    return true;
  }

  bool IsTaken(PageNumber page) const { return taken_[static_cast<std::size_t>(page)]; }

 private:
  PageNumber end_;
  std::vector<bool> taken_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_LMDB_CHECK_PAGE_CLAIMS_H_
