// Checks a raw LMDB data file before liblmdb maps it. liblmdb trusts its pages: a flipped bit can
// crash it, hide records from lookups, or undo a commit. These functions only read (pread), never
// crash on any bytes, and take time linear in the file's size. Where memory runs out std::bad_alloc
// leaves them: that is no verdict on the file. The rules are in page_check.cc.
//
// A file that WalkFile calls sound, opened without a lock.mdb by liblmdb 0.9.24, holds exactly what
// the visitor was shown: an iteration, a lookup of each key and a lookup of any other key agree
// with it; and a later commit overwrites no page in use. What the walk cannot know: whether a value
// is what was once written (checksums), whether a page or a whole file went back in time with all
// its counts (table digests, the header's transaction ID, the witness). The visitor sees every
// value in the same pass, so that these are checked along with it.

#ifndef WAYBILL_STORE_LMDB_CHECK_PAGE_CHECK_H_
#define WAYBILL_STORE_LMDB_CHECK_PAGE_CHECK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/files.h"
#include "waybill/result.h"

namespace waybill::internal {

using PageKey = std::span<const std::byte, 16>;

// Called in this order: the main tree's OnTable, then its values in key order; then each named
// table in order of the names, likewise. The main tree's name is "". What is passed lives until the
// call returns; a value starts at a multiple of 8. Until the result says so, nothing of it is
// proven.
class PageVisitor {
 public:
  virtual ~PageVisitor() = default;
  // `entries`: as the tree's record says. The main tree's entries include the named tables.
  virtual void OnTable(std::string_view name, std::uint64_t entries) = 0;
  virtual void OnValue(std::string_view table, PageKey key, std::span<const std::byte> value) = 0;
};

// How many findings are told in words.
inline constexpr std::size_t kMaxPageFindings = 50;

struct MetaSummary {
  bool valid = false;
  std::uint64_t txn_id = 0;
  bool rooted = false;  // the main tree has a root
  std::string problem;  // if not valid
};

struct WalkResult {
  bool sound = false;
  // 0 bytes long. LMDB would make a new store of it; here it is a loss.
  bool empty_file = false;
  // Both meta pages (0, 0) without roots: created, never committed to.
  bool fresh = false;
  // The meta page LMDB would choose, whose tree was walked; −1: none is valid.
  int newer_meta = -1;
  std::array<MetaSummary, 2> meta;
  std::uint32_t page_bytes = 0;
  std::uint64_t last_page = 0;
  std::uint64_t tree_pages = 0;
  std::uint64_t free_pages = 0;
  // What is wrong: the first kMaxPageFindings, and how many in all.
  std::vector<std::string> findings;
  std::uint64_t finding_count = 0;
};

// Walks the newer tree by every rule. Two rules are left to the caller, who alone can read a
// header: in each rooted meta page's tree the header's transaction ID equals that page's
// (FindInMain); a compact copy, whose IDs (0, 1) are also those of a first commit, fails it too.
// Error: kIo where the disk refuses a read, kUnsafePath (not a regular file). A damaged file is a
// result; with OnReadError::kSkip so is one that can't be read everywhere. This goes for all
// three functions.
Result<WalkResult> WalkFile(int fd, PageVisitor& visitor,
                            OnReadError on_error = OnReadError::kFail);

struct SalvageResult {
  // Nothing was left out. It does not make the file sound.
  bool complete = false;
  std::uint64_t values = 0;
  std::uint64_t tables = 0;
  std::uint64_t skipped = 0;  // subtrees, pages and values left out
  std::vector<std::string> findings;
  std::uint64_t finding_count = 0;
};

// Shows what can still be reached from meta page `which` (0 or 1) of a damaged file. A page that
// breaks a rule is left out with all below it, so every key is shown once at most. Without a sound
// count nothing shown proves that there was no more. kDamaged: not even the page size can be told.
Result<SalvageResult> SalvageTree(int fd, int which, PageVisitor& visitor,
                                  OnReadError on_error = OnReadError::kFail);

// The value of one key in the main tree of meta page `which`, newer or older, by lookup: only the
// pages on its path are read and checked. kNotFound: the path is sound and ends without it.
// kDamaged: the meta page or a page on the path breaks a rule.
Result<std::vector<std::byte>> FindInMain(int fd, int which, PageKey key,
                                          OnReadError on_error = OnReadError::kFail);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_LMDB_CHECK_PAGE_CHECK_H_
