// Checks a raw LMDB data file before liblmdb maps it. liblmdb trusts its pages: a flipped bit can
// crash it, hide records from lookups, or undo a commit. These functions only read (pread), do not
// crash on any bytes, and take time linear in the file's size. If memory runs out they throw
// std::bad_alloc, which says nothing about the file. The rules are in page_check.cc.
//
// If WalkFile calls a file sound, and a tested liblmdb opens it without a lock.mdb, then it holds
// exactly what the visitor was shown: iterating, looking up each key and looking up any other key
// agree with that, and a later commit overwrites no page in use. The walk can't know whether a
// value is what was written (see checksums), or whether a page or the whole file went back in time
// with all its counts (see table digests, the header's transaction ID, the witness). The visitor
// sees every value in the same pass, so the caller checks these along with it.

#ifndef WAYBILL_STORE_ENGINE_LMDB_CHECK_PAGE_CHECK_H_
#define WAYBILL_STORE_ENGINE_LMDB_CHECK_PAGE_CHECK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/files.h"
#include "waybill/result.h"

namespace waybill::internal {

// No store's map is larger.
inline constexpr std::uint64_t kMaxMapBytes = std::uint64_t{1} << 44;

using PageKey = std::span<const std::byte, 16>;

// Called in this order: OnTable for the main tree, named "", then OnValue for its values in key
// order; then the same for each named table, in order of the names. Arguments live until the call
// returns; a value starts at a multiple of 8. Nothing is proven until the result says so.
class PageVisitor {
 public:
  virtual ~PageVisitor() = default;
  // `entries` is what the tree's record says. Those of the main tree include the named tables.
  virtual void OnTable(std::string_view name, std::uint64_t entries) = 0;
  virtual void OnValue(std::string_view table, PageKey key, std::span<const std::byte> value) = 0;
  // Before each page of a tree, with the bytes of such pages so far. False leaves out it and all
  // that follow: the result then says nothing.
  virtual bool GoesOn(std::uint64_t /*bytes*/) { return true; }
};

inline constexpr std::size_t kMaxPageFindings = 50;

// What is wrong: the first kMaxPageFindings in words, and the count of all.
struct PageFindings {
  std::vector<std::string> findings;
  std::uint64_t finding_count = 0;

  void Add(std::string finding) {
    ++finding_count;
    if (findings.size() < kMaxPageFindings) findings.push_back(std::move(finding));
  }
};

struct MetaSummary {
  bool valid = false;
  std::uint64_t txn_id = 0;
  bool rooted = false;          // the main tree has a root
  bool past_end = false;        // not valid, for this alone: a root lies outside the file
  std::uint64_t map_bytes = 0;  // unchecked: no rule is about it
  std::string problem;          // if not valid
};

struct WalkResult : PageFindings {
  bool sound = false;
  // 0 bytes long. LMDB would make it a new store; here it is a loss.
  bool empty_file = false;
  // Both meta pages have transaction ID 0 and no roots: created, but never committed to.
  bool fresh = false;
  // The meta page LMDB would choose, whose tree was walked; −1: none is valid.
  int newer_meta = -1;
  std::array<MetaSummary, 2> meta;
  std::uint32_t page_bytes = 0;
  std::uint64_t last_page = 0;
  std::uint64_t tree_pages = 0;
  std::uint64_t free_pages = 0;
};

// Walks the newer tree by every rule but one, which needs the store's header and so is the
// caller's: in the tree of each rooted meta page, the header's transaction ID equals that page's
// (FindInMain). A compact copy fails that rule; its IDs (0, 1) alone look like those of a first
// commit.
//
// All these functions fail with kIo if the disk refuses a read, and with kUnsafePath if the file is
// not a regular one. Damage is not an error but part of the result; with OnReadError::kSkip, so are
// refused reads.
Result<WalkResult> WalkFile(int fd, PageVisitor& visitor,
                            OnReadError on_error = OnReadError::kFail);

// The same for the tree of meta page `which` (0 or 1), whatever the other page says: it may be of a
// commit that was cut short. `newer_meta` is then `which`. Unsound, too, if that page has no roots.
Result<WalkResult> WalkTreeOf(int fd, int which, PageVisitor& visitor,
                              OnReadError on_error = OnReadError::kFail);

// Where in the file meta page `which` has the size of LMDB's map: eight bytes, aligned.
std::uint64_t MapBytesOffset(int which, std::uint32_t page_bytes);

// The first bytes of a meta page without roots, to take the place of the other page than `which`,
// whose commit is then the newest. kDamaged: page `which` is not sound.
Result<std::vector<std::byte>> MetaWithoutRoots(int fd, int which);

struct SalvageResult : PageFindings {
  // Nothing was left out. That does not make the file sound.
  bool complete = false;
  std::uint64_t values = 0;
  std::uint64_t tables = 0;
  std::uint64_t skipped = 0;  // subtrees, pages and values left out
};

// Shows what can still be reached from meta page `which` (0 or 1) of a damaged file. Leaves out
// each page that breaks a rule, with all below it, and shows no key twice. Without a sound count,
// there may have been more. kDamaged: not even the page size is known.
Result<SalvageResult> SalvageTree(int fd, int which, PageVisitor& visitor,
                                  OnReadError on_error = OnReadError::kFail);

// Looks up one key in the main tree of meta page `which`, newer or older. Reads and checks only the
// pages on its path. kNotFound: the path is sound, and the key is not there. kDamaged: the meta
// page or a page on the path breaks a rule.
Result<std::vector<std::byte>> FindInMain(int fd, int which, PageKey key,
                                          OnReadError on_error = OnReadError::kFail);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_ENGINE_LMDB_CHECK_PAGE_CHECK_H_
