// The two meta pages: what each says, and whether LMDB may leave such a pair.

#ifndef WAYBILL_STORE_LMDB_CHECK_META_PAGES_H_
#define WAYBILL_STORE_LMDB_CHECK_META_PAGES_H_

#include <array>
#include <cstdint>

#include "store/lmdb/check/findings.h"
#include "store/lmdb/check/page_file.h"
#include "store/lmdb/check/page_format.h"

namespace waybill::internal {

struct MetaPage {
  MetaRecord record{};
  const char* problem = "it cannot be read";  // nullptr: sound by itself
  bool rooted() const { return record.main_tree.root != kNoPage; }
};

struct MetaPages {
  std::array<MetaPage, kMetaPages> page;
  std::uint32_t page_bytes = 0;  // 0: unknown, nothing in the file can be found
  // The page LMDB would choose, of those that are sound by themselves; −1: none.
  int newer = -1;
  bool fresh = false;  // both (0, 0), without roots
};

MetaPages ReadMetaPages(PageFile& file);

// The rules for the pair: each on page ID & 1, IDs consecutive, or a fresh store. Not told apart
// here: the first commit and a compact copy, which both leave (0, 1).
void CheckMetaPair(const MetaPages& metas, Findings& findings);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_LMDB_CHECK_META_PAGES_H_
