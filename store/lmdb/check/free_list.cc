#include "store/lmdb/check/free_list.h"

#include <string>

#include "store/lmdb/check/page_format.h"

namespace waybill::internal {

void FreeList::OnLeafValue(const std::byte* key, std::span<const std::byte> value) {
  const auto id = Load<std::uint64_t>(key);
  const std::string where = "free list, transaction " + std::to_string(id) + ": ";
  if (id == 0 || id > txn_id_) findings_.Add(where + "there was no such transaction");
  const auto count = Load<std::uint64_t>(value.data());
  if (count > value.size() / sizeof(PageNumber) - 1) {
    findings_.Add(where + "it counts more pages than it has room for");
    return;
  }
  PageNumber previous = kNoPage;
  for (std::uint64_t i = 1; i <= count; ++i) {
    const auto page = Load<PageNumber>(value.data() + i * sizeof(PageNumber));
    if (page >= previous) {
      findings_.Add(where + "its pages are not in descending order");
      return;
    }
    if (!claims_.Claim(page)) {
      findings_.Add(where + "page " + std::to_string(page) +
                    " is past the last page, in use or listed twice");
    }
    previous = page;
    ++pages_;
  }
}

// NodePage lets no tree entry into the free tree.
void FreeList::OnLeafTree(const std::byte*, const TreeRecord&) {
  findings_.Add("free list: it holds a tree");
}

void CheckCoverage(const PageClaims& claims, Findings& findings) {
  for (PageNumber page = kMetaPages; page < claims.end(); ++page) {
    if (claims.IsTaken(page)) continue;
    PageNumber last = page;
    while (last + 1 < claims.end() && !claims.IsTaken(last + 1)) ++last;
    findings.Add("pages " + std::to_string(page) + " to " + std::to_string(last) +
                 ": neither in a tree nor in the free list");
    page = last;
  }
}

}  // namespace waybill::internal
