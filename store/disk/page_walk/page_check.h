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

#ifndef WAYBILL_STORE_DISK_PAGE_WALK_PAGE_CHECK_H_
#define WAYBILL_STORE_DISK_PAGE_WALK_PAGE_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/files.h"
#include "store/disk/page_walk/page_format.h"
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

// The first things that are wrong.
struct PageFindings {
  std::vector<std::string> findings;

  void Add(std::string finding) {
    if (findings.size() < kMaxPageFindings) findings.push_back(std::move(finding));
  }
};

struct WalkResult : PageFindings, MetaPages {
  bool sound = false;
  // 0 bytes long. LMDB would make it a new store; here it is a loss.
  bool empty_file = false;
  std::uint64_t tree_pages = 0;
  std::uint64_t free_pages = 0;
};

// All these functions fail with kIo if the disk refuses a read, and with kUnsafePath if the file is
// not a regular one. Damage is not an error but part of the result; with OnReadError::kSkip, so are
// refused reads. `which` (0 or 1) is a meta page.

// The meta page that LMDB would choose, and the other one.
inline constexpr int kNewerMeta = -1;

// Walks the newer tree by every rule but one, which needs the store's header and so is the
// caller's: in the tree of each rooted meta page, the header's transaction ID equals that page's
// (FindInMain). A compact copy fails that rule; its IDs (0, 1) alone look like those of a first
// commit. With `which`: the tree of that page, whatever the other one says, which may be of a
// commit that was cut short; `newer_meta` is then `which`, and a page without roots is unsound.
Result<WalkResult> WalkFile(int fd, PageVisitor& visitor, OnReadError on_error = OnReadError::kFail,
                            int which = kNewerMeta);

// Shows what can still be reached from meta page `which` of a damaged file. Leaves out each page
// that breaks a rule, with all below it, and shows no key twice. Without a sound count, there may
// have been more. No finding: nothing was left out, which does not make the file sound. kDamaged:
// not even the page size is known.
Result<PageFindings> SalvageTree(int fd, int which, PageVisitor& visitor,
                                 OnReadError on_error = OnReadError::kFail);

// The value of one key in the main tree of meta page `which`, newer or older, also if other pages
// of that tree break a rule. Reads and checks that tree alone, which is small. kNotFound: it is
// sound, and holds no such value. kDamaged: it breaks a rule, and the value is not found.
Result<std::vector<std::byte>> FindInMain(int fd, int which, PageKey key,
                                          OnReadError on_error = OnReadError::kFail);

// Where in the file meta page `which` has the size of LMDB's map: eight bytes, aligned.
std::uint64_t MapBytesOffset(int which, std::uint32_t page_bytes);

// The first bytes of a meta page without roots, to take the place of the other page than `which`,
// whose commit is then the newest. kDamaged: page `which` is not sound.
Result<std::vector<std::byte>> MetaWithoutRoots(int fd, int which);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DISK_PAGE_WALK_PAGE_CHECK_H_
