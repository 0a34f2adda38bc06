// How a data file is checked, and which rules it must keep.
//
// The file is read page by page with pread, and never mapped. In this order:
//
//   1  The meta pages. Every field with one legal value has it: magic, version, flags, page size,
//      page number, zeros in the header. Roots lie in the file, depths are possible.
//   2  The pair of them. Transaction IDs are consecutive, each on page ID & 1; or both are 0 and
//      nothing has a root. The newer does not have fewer pages. LMDB, and this walk, use the newer.
//   3  The main tree from its root, then each named table that its leaves hold, then the free tree.
//      A page's layout (NodePage): the number is its own; offsets, nodes and heap meet end to end
//      without gap or overlap; sizes of keys and values are legal; keys are in order.
//   4  A page's place (Walk): every key lies between the separators of all its ancestors, since
//      lookups would miss others, which an iteration finds; all leaves lie on the last level.
//   5  A value too large for its page: its extent lies in the file, carries its number and is large
//      enough.
//   6  The tree's record: entries, branch, leaf and overflow pages are what the walk counted.
//   7  Each page from 2 to the last is claimed once, by a tree, an extent or the free list. One
//      more claim fails, which also ends every loop in a hostile file. A free-list record belongs
//      to a past transaction, and its pages descend.
//
// These may differ, since LMDB leaves them so: extents larger than their value needs, free pages
// past the end of the file, free-list records with room after their count, the content of free
// pages and free space, a branch of the free tree with one child, any map size.
//
// A page that breaks a rule is reported, and left out with all below it (a leaf on a wrong level is
// shown). The file is then unsound.
// A salvage (SalvageTree) shows the rest: from either meta page, bounded by the file's end instead
// of the last page.
//
// Time is linear in the file's size, most of it for reading; memory is a bit a page.
// Tested by tests/unit/page_walk_test.cc (sound files of every shape), tests/corruption (flipped
// bits; swapped, stale and zeroed pages: each is found, or LMDB reads what is shown here) and
// tests/crash/page_walk_states_test.cc (what a power cut leaves is sound).

#include "store/disk/page_walk/page_check.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "store/base/hex.h"
#include "store/base/try.h"

namespace waybill::internal {
namespace {

std::size_t AsIndex(int which) { return static_cast<std::size_t>(which); }

// Rule 7.
class PageClaims {
 public:
  // Pages from kMetaPages to end − 1 can be claimed.
  explicit PageClaims(PageNumber end) : end_(end) {}

  // Claims page by page up to the first that is taken. So a page is looked at twice only if that
  // ends the call, and all claims of a walk together take linear time.
  bool Claim(PageNumber first, std::uint64_t count = 1) {
    if (first < kMetaPages || first >= end_ || count > end_ - first) return false;
    // A sparse file may be much longer than what its trees use.
    if (taken_.size() < first + count) taken_.resize(first + count);
    for (PageNumber page = first; page < first + count; ++page) {
      if (taken_[page]) return false;
      taken_[page] = true;
    }
    return true;
  }

  void ReportUnclaimed(PageFindings& findings) const {
    const auto free = [this](PageNumber page) {
      return page < end_ && (page >= taken_.size() || !taken_[page]);
    };
    for (PageNumber page = kMetaPages; page < end_; ++page) {
      if (!free(page)) continue;
      PageNumber last = page;
      while (free(last + 1)) ++last;
      findings.Add("pages " + std::to_string(page) + " to " + std::to_string(last) +
                   ": neither in a tree nor in the free list");
      page = last;
    }
  }

 private:
  PageNumber end_;
  std::vector<bool> taken_;
};

// ---- Rule 2: the pair of meta pages

// A first commit and a compact copy both leave the IDs (0, 1): they look the same here.
void CheckMetaPair(const MetaPages& metas, PageFindings& findings) {
  for (const int number : {0, 1}) {
    const MetaSummary& meta = metas.meta[AsIndex(number)];
    if (meta.valid) continue;
    findings.Add("meta page " + std::to_string(number) + ": " + meta.problem);
  }
  if (!findings.findings.empty() || metas.fresh) return;
  const MetaSummary& newer = metas.meta[AsIndex(metas.newer_meta)];
  const MetaSummary& older = metas.meta[AsIndex(1 - metas.newer_meta)];
  if (newer.txn_id - older.txn_id != 1 || newer.txn_id % kMetaPages != AsIndex(metas.newer_meta)) {
    findings.Add("meta pages: transactions " + std::to_string(metas.meta[0].txn_id) + " and " +
                 std::to_string(metas.meta[1].txn_id) + " cannot follow each other");
  }
  if (older.last_page > newer.last_page) {
    findings.Add("meta pages: the newer one has fewer pages than the older one");
  }
}

// ---- Rules 3 to 7: whole trees

// A table's name that can't be printed is shown in hex.
std::string TreeLabel(TreeKind kind, std::string_view name) {
  if (kind == TreeKind::kFree) return "free list";
  if (kind == TreeKind::kMain) return "main";
  const bool prints =
      std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7f && c != '"'; });
  if (prints) return "table " + std::string(name);
  return "table 0x" + HexEncode({reinterpret_cast<const std::uint8_t*>(name.data()), name.size()});
}

class Walk {
 public:
  // Trees may have pages below `end`.
  Walk(PageFile& file, const MetaPages& metas, int which, PageNumber end, PageVisitor& visitor,
       PageFindings& findings)
      : file_(file),
        meta_(metas.meta[AsIndex(which)]),
        page_bytes_(metas.page_bytes),
        file_pages_(file.size_bytes() / metas.page_bytes),
        claims_(end),
        visitor_(visitor),
        findings_(findings) {}

  // To be called in this order. The last one also checks that every page is claimed.
  void Main();
  void Tables();
  void FreeListAndCoverage();

  std::uint64_t tree_pages() const { return tree_pages_; }
  std::uint64_t free_pages() const { return free_pages_; }

 private:
  struct NamedTree {
    std::string name;
    TreeRecord tree;
  };

  // Shows what keeps the rules to the visitor, and reports the rest.
  void Tree(TreeKind kind, std::string_view name, const TreeRecord& tree);
  void CheckRecord(const TreeRecord& tree);
  void Visit(PageNumber number, unsigned level, KeyBounds bounds);
  void VisitLeaf(PageNumber number, const NodePage& page);
  // Rule 5. nullptr: `value` is read, and valid until the next one is.
  const char* ReadOverflow(PageNumber first, std::uint32_t bytes, const std::byte*& value);
  void OnValue(const std::byte* key, std::span<const std::byte> value);
  void OnFreeRecord(const std::byte* key, std::span<const std::byte> value);
  void Blame(PageNumber number, const char* problem) {
    Report("page " + std::to_string(number) + ": " + problem);
  }
  void Report(const std::string& text) { findings_.Add(TreeLabel(kind_, name_) + ": " + text); }

  PageFile& file_;
  const MetaRecord& meta_;
  const std::uint32_t page_bytes_;
  const std::uint64_t file_pages_;
  PageClaims claims_;
  PageVisitor& visitor_;
  PageFindings& findings_;
  // The pages on the path from the root hold the separators that bound those below.
  std::array<PageFile::Scratch, kMaxTreeDepth> levels_;
  PageFile::Scratch extent_;

  // About the tree being walked:
  TreeKind kind_ = TreeKind::kMain;
  std::string_view name_;
  unsigned depth_ = 0;  // that its record says
  TreeRecord seen_;

  std::vector<NamedTree> tables_;  // found in the main tree's leaves
  std::uint64_t tree_pages_ = 0;
  std::uint64_t free_pages_ = 0;
};

void Walk::Main() {
  visitor_.OnTable("", meta_.main_tree.entries);
  Tree(TreeKind::kMain, "", meta_.main_tree);
}

void Walk::Tables() {
  for (const NamedTree& table : tables_) {
    visitor_.OnTable(table.name, table.tree.entries);
    Tree(TreeKind::kTable, table.name, table.tree);
  }
}

void Walk::FreeListAndCoverage() {
  Tree(TreeKind::kFree, "", meta_.free_tree);
  claims_.ReportUnclaimed(findings_);
}

void Walk::Tree(TreeKind kind, std::string_view name, const TreeRecord& tree) {
  kind_ = kind;
  name_ = name;
  depth_ = tree.depth;
  seen_ = TreeRecord{};
  if (tree.root != kNoPage) Visit(tree.root, 1, KeyBounds{});
  CheckRecord(tree);
}

void Walk::CheckRecord(const TreeRecord& tree) {
  const bool is_free = kind_ == TreeKind::kFree;
  if (tree.flags != (is_free ? kTreeIntegerKeys : 0) || tree.pad != (is_free ? page_bytes_ : 0)) {
    Report("its record has flags or padding that are not legal here");
  }
  if (tree.root == kNoPage ? tree.depth != 0 : tree.depth == 0 || tree.depth > kMaxTreeDepth) {
    Report("its depth is not possible");
  }
  const auto compare = [this](const char* what, std::uint64_t said, std::uint64_t found) {
    if (said == found) return;
    Report("its record says " + std::to_string(said) + " " + what + ", the walk found " +
           std::to_string(found));
  };
  compare("entries", tree.entries, seen_.entries);
  compare("branch pages", tree.branch_pages, seen_.branch_pages);
  compare("leaf pages", tree.leaf_pages, seen_.leaf_pages);
  compare("overflow pages", tree.overflow_pages, seen_.overflow_pages);
}

void Walk::Visit(PageNumber number, unsigned level, KeyBounds bounds) {
  if (!visitor_.GoesOn(tree_pages_ * page_bytes_)) return;
  if (level > kMaxTreeDepth) return Blame(number, "it lies too deep");
  // Before the claim: multiplying a claimed page by the page size must not overflow.
  if (number >= file_pages_) return Blame(number, "it lies past the file's end");
  if (!claims_.Claim(number)) return Blame(number, "it is past the last page or in use elsewhere");
  const std::byte* bytes = file_.Read(number * page_bytes_, page_bytes_, levels_[level - 1]);
  if (bytes == nullptr) return Blame(number, file_.why());
  NodePage page;
  if (const char* problem = page.Open(bytes, number, page_bytes_, kind_)) {
    return Blame(number, problem);
  }
  if (!page.IsWithin(bounds)) return Blame(number, "a key lies outside its ancestors' separators");
  ++tree_pages_;
  if (page.is_leaf()) {
    ++seen_.leaf_pages;
    if (level != depth_) Blame(number, "it is a leaf on the wrong level");
    return VisitLeaf(number, page);
  }
  ++seen_.branch_pages;
  for (unsigned i = 0; i < page.count(); ++i) {
    Visit(page.Header(i).Child(), level + 1, page.ChildBounds(i, bounds));
  }
}

void Walk::VisitLeaf(PageNumber number, const NodePage& page) {
  for (unsigned i = 0; i < page.count(); ++i) {
    const NodeHeader node = page.Header(i);
    const std::byte* value = page.Data(i);
    if (node.flags == kNodeTree) {
      ++seen_.entries;
      tables_.push_back({std::string(reinterpret_cast<const char*>(page.Key(i)), kTableKeyBytes),
                         Load<TreeRecord>(value)});
      continue;
    }
    if (node.flags == kNodeOverflow) {
      const auto first = Load<PageNumber>(value);
      if (const char* problem = ReadOverflow(first, node.DataBytes(), value)) {
        Report("page " + std::to_string(number) + ", value " + std::to_string(i) + ": " + problem);
        continue;
      }
    }
    ++seen_.entries;
    OnValue(page.Key(i), {value, node.DataBytes()});
  }
}

const char* Walk::ReadOverflow(PageNumber first, std::uint32_t bytes, const std::byte*& value) {
  if (first < kMetaPages || first >= file_pages_) return "its overflow page lies outside the file";
  const std::uint64_t at = first * page_bytes_;
  const std::byte* const head = file_.Read(at, kPageHeaderBytes, extent_);
  if (head == nullptr) return file_.why();
  const auto header = Load<PageHeader>(head);
  if (header.number != first) return "its overflow page carries another page number";
  if (header.flags != kPageOverflow || header.pad != 0) return "its overflow page has wrong flags";
  const auto pages = Load<std::uint32_t>(head + kOverflowPagesOffset);
  const std::uint64_t used_bytes = kPageHeaderBytes + std::uint64_t{bytes};
  if (pages > file_pages_ - first || std::uint64_t{pages} * page_bytes_ < used_bytes) {
    return "its overflow page has a wrong number of pages";
  }
  // Claimed before the value is read: no extent is read twice.
  if (!claims_.Claim(first, pages)) {
    return "its overflow pages are past the last page or in use elsewhere";
  }
  tree_pages_ += pages;
  seen_.overflow_pages += pages;
  value = file_.Read(at + kPageHeaderBytes, bytes, extent_);
  return value == nullptr ? file_.why() : nullptr;
}

void Walk::OnValue(const std::byte* key, std::span<const std::byte> value) {
  if (kind_ == TreeKind::kFree) return OnFreeRecord(key, value);
  visitor_.OnValue(name_, PageKey(key, kTableKeyBytes), value);
}

void Walk::OnFreeRecord(const std::byte* key, std::span<const std::byte> value) {
  const auto id = Load<std::uint64_t>(key);
  const std::string where = "free list, transaction " + std::to_string(id) + ": ";
  if (id == 0 || id > meta_.txn_id) findings_.Add(where + "there was no such transaction");
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
    ++free_pages_;
  }
}

// ---- Results

void WalkTree(PageFile& file, int which, PageVisitor& visitor, WalkResult& result) {
  const PageNumber last_page = result.meta[AsIndex(which)].last_page;
  const std::uint64_t file_pages = file.size_bytes() / result.page_bytes;
  // The free list names each page past the file's end, by 8 bytes in the file. A sparse file may be
  // much longer than any map, and the walk takes memory for each page.
  if (last_page > file_pages + file.size_bytes() / sizeof(PageNumber) ||
      last_page >= kMaxMapBytes / result.page_bytes) {
    result.Add("meta page " + std::to_string(which) + ": its last page is not possible");
    return;
  }
  Walk walk(file, result, which, last_page + 1, visitor, result);
  walk.Main();
  walk.Tables();
  walk.FreeListAndCoverage();
  result.tree_pages = walk.tree_pages();
  result.free_pages = walk.free_pages();
}

Error BadMeta(int which, const char* problem) {
  return {
      ErrorCode::kDamaged,
      "meta page " + std::to_string(which) + " cannot be used: " + problem + "; nothing was read",
      ""};
}

struct OpenedFile {
  PageFile file;
  MetaPages metas;
};

// kDamaged: the page size is not known, so nothing can be found.
Result<OpenedFile> OpenPages(int fd, int which, OnReadError on_error) {
  auto file = TRY(PageFile::Open(fd));
  MetaPages metas = ReadMetaPages(file);
  TRY(file.CheckReads(on_error));
  if (metas.page_bytes == 0) return BadMeta(which, "the page size cannot be told");
  return OpenedFile{std::move(file), metas};
}

class Finder final : public PageVisitor {
 public:
  explicit Finder(PageKey key) : key_(key) {}
  void OnTable(std::string_view, std::uint64_t) override {}
  void OnValue(std::string_view, PageKey key, std::span<const std::byte> value) override {
    if (std::ranges::equal(key, key_)) found.emplace(value.begin(), value.end());
  }

  std::optional<std::vector<std::byte>> found;

 private:
  const PageKey key_;
};

}  // namespace

Result<WalkResult> WalkFile(int fd, PageVisitor& visitor, OnReadError on_error, int which) {
  auto file = TRY(PageFile::Open(fd));
  WalkResult result;
  if (file.size_bytes() == 0) {
    result.empty_file = true;
    result.Add("the data file has 0 bytes");
  } else {
    static_cast<MetaPages&>(result) = ReadMetaPages(file);
    if (which == kNewerMeta) {
      CheckMetaPair(result, result);
    } else {
      result.newer_meta = which;
    }
    const bool has_tree =
        which == kNewerMeta ? result.newer_meta >= 0 : result.meta[AsIndex(which)].rooted;
    if (which != kNewerMeta && !has_tree) {
      result.Add("meta page " + std::to_string(which) + ": no tree");
    }
    if (has_tree) WalkTree(file, result.newer_meta, visitor, result);
  }
  result.sound = result.findings.empty();
  TRY(file.CheckReads(on_error));
  return result;
}

Result<PageFindings> SalvageTree(int fd, int which, PageVisitor& visitor, OnReadError on_error) {
  auto [file, metas] = TRY(OpenPages(fd, which, on_error));
  PageFindings findings;
  // The tree below the root may be readable even if another field of the meta page is wrong.
  const MetaSummary& meta = metas.meta[AsIndex(which)];
  if (!meta.valid) findings.Add("meta page " + std::to_string(which) + ": " + meta.problem);
  // Bounded by the file's end: the meta page's last page may be wrong.
  Walk walk(file, metas, which, file.size_bytes() / metas.page_bytes, visitor, findings);
  walk.Main();
  walk.Tables();
  TRY(file.CheckReads(on_error));
  return findings;
}

Result<std::vector<std::byte>> FindInMain(int fd, int which, PageKey key, OnReadError on_error) {
  auto [file, metas] = TRY(OpenPages(fd, which, on_error));
  const MetaSummary& meta = metas.meta[AsIndex(which)];
  if (!meta.valid) return BadMeta(which, meta.problem);
  PageFindings findings;
  Finder finder(key);
  // Not bounded by the meta page's last page: one that LMDB could not write names the old one.
  const PageNumber end = file.size_bytes() / metas.page_bytes;
  Walk(file, metas, which, end, finder, findings).Main();
  TRY(file.CheckReads(on_error));
  if (finder.found) return *std::move(finder.found);
  if (!findings.findings.empty()) return Error{ErrorCode::kDamaged, findings.findings.front(), ""};
  return Error{ErrorCode::kNotFound, "main: there is no such value", ""};
}

std::uint64_t MapBytesOffset(int which, std::uint32_t page_bytes) {
  constexpr std::size_t kInPage = kPageHeaderBytes + offsetof(MetaRecord, map_bytes);
  static_assert(kInPage % sizeof(MetaRecord::map_bytes) == 0);
  return AsIndex(which) * page_bytes + kInPage;
}

Result<std::vector<std::byte>> MetaWithoutRoots(int fd, int which) {
  const auto opened = TRY(OpenPages(fd, which, OnReadError::kFail));
  const MetaSummary& newest = opened.metas.meta[AsIndex(which)];
  if (!newest.valid) return BadMeta(which, newest.problem);
  PageHeader header{};
  header.number = static_cast<PageNumber>(1 - which);
  header.flags = kPageMeta;
  MetaRecord record;
  record.map_bytes = newest.map_bytes;
  record.free_tree.pad = opened.metas.page_bytes;
  record.free_tree.flags = kTreeIntegerKeys;
  record.txn_id = newest.txn_id - 1;
  std::vector<std::byte> bytes(kMetaBytes);
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + kPageHeaderBytes, &record, sizeof(record));
  return bytes;
}

}  // namespace waybill::internal
