// How a data file is checked, and which rules it must keep.
//
// The file is read into memory with pread, or extent by extent if it is larger than
// PageFile::kMaxWholeBytes; it is never mapped. Then, in this order:
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
// A page that breaks a rule is reported, and left out with all below it. The file is then unsound.
// A salvage (SalvageTree) shows the rest: from either meta page, bounded by the file's end instead
// of the last page, and following the pages' own kinds instead of the record's depth.
//
// Time is linear in the file's size, most of it for reading; memory is the file and a bit a page.
// Tested by tests/unit/page_walk_test.cc (sound files of every shape), tests/corruption (flipped
// bits; swapped, stale and zeroed pages: each is found, or LMDB reads what is shown here) and
// tests/crash/page_walk_states_test.cc (what a power cut leaves is sound).

#include "store/engine/lmdb/check/page_check.h"

#include <algorithm>
#include <cstring>

#include "store/base/hex.h"
#include "store/base/try.h"
#include "store/engine/lmdb/check/page_format.h"

namespace waybill::internal {
namespace {

// Rule 7.
class PageClaims {
 public:
  // Pages from kMetaPages to end − 1 can be claimed.
  explicit PageClaims(PageNumber end) : end_(end), taken_(static_cast<std::size_t>(end)) {}

  // Claims page by page up to the first that is taken. So a page is looked at twice only if that
  // ends the call, and all claims of a walk together take linear time.
  bool Claim(PageNumber first, std::uint64_t count = 1) {
    if (first < kMetaPages || first >= end_ || count > end_ - first) return false;
    for (PageNumber page = first; page < first + count; ++page) {
      if (taken_[static_cast<std::size_t>(page)]) return false;
      taken_[static_cast<std::size_t>(page)] = true;
    }
    return true;
  }

  void ReportUnclaimed(PageFindings& findings) const {
    const auto free = [this](PageNumber page) {
      return page < end_ && !taken_[static_cast<std::size_t>(page)];
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

std::size_t AsIndex(int which) { return static_cast<std::size_t>(which); }

// ---- Rule 2: the pair of meta pages

// A first commit and a compact copy both leave the IDs (0, 1): they look the same here.
void CheckMetaPair(const MetaPages& metas, PageFindings& findings) {
  bool sound = true;
  for (PageNumber number = 0; number < kMetaPages; ++number) {
    const char* problem = metas.page[number].problem;
    if (problem == nullptr) continue;
    findings.Add("meta page " + std::to_string(number) + ": " + problem);
    sound = false;
  }
  if (!sound || metas.fresh) return;
  const MetaRecord& newer = metas.page[static_cast<std::size_t>(metas.newer)].record;
  const MetaRecord& older = metas.page[static_cast<std::size_t>(1 - metas.newer)].record;
  if (newer.txn_id - older.txn_id != 1 ||
      newer.txn_id % kMetaPages != static_cast<std::uint64_t>(metas.newer)) {
    findings.Add("meta pages: transactions " + std::to_string(metas.page[0].record.txn_id) +
                 " and " + std::to_string(metas.page[1].record.txn_id) +
                 " cannot follow each other");
  }
  if (older.last_page > newer.last_page) {
    findings.Add("meta pages: the newer one has fewer pages than the older one");
  }
}

// ---- Rules 4 and 5: pages on a path from a root

constexpr unsigned kAnyDepth = ~0U;

// For walks and lookups: reads the pages of a path, one for each level, and checks each page and
// its place. Keeps the pages above, which hold the separators that bound it.
class PagePath {
 public:
  PagePath(PageFile& file, std::uint32_t page_bytes) : file_(file), page_bytes_(page_bytes) {}

  std::uint64_t file_pages() const { return file_.size_bytes() / page_bytes_; }

  // `number` must lie in the file. `depth` is the level of the leaves; kAnyDepth: any level may
  // have leaves. nullptr: sound; otherwise what is wrong.
  const char* OpenNode(PageNumber number, TreeKind kind, unsigned level, unsigned depth,
                       KeyBounds bounds, NodePage& page) {
    const std::byte* bytes = file_.Read(number * page_bytes_, page_bytes_, levels_[level - 1]);
    if (bytes == nullptr) return file_.why();
    if (const char* problem = page.Open(bytes, number, page_bytes_, kind)) return problem;
    if (depth != kAnyDepth && page.is_leaf() != (level == depth)) {
      return "it is a leaf or a branch on the wrong level";
    }
    if (!page.IsWithin(bounds)) return "a key lies outside its ancestors' separators";
    return nullptr;
  }

  // Checks the header of the extent at `first` against the value that it holds. nullptr: sound, and
  // `pages` is its size.
  const char* OpenExtent(PageNumber first, std::uint32_t value_bytes, std::uint32_t& pages);
  // nullptr: `value` is read, and valid until the next one is.
  const char* ReadExtent(PageNumber first, std::uint32_t value_bytes, const std::byte*& value) {
    value = file_.Read(first * page_bytes_ + kPageHeaderBytes, value_bytes, extent_);
    return value == nullptr ? file_.why() : nullptr;
  }

 private:
  PageFile& file_;
  const std::uint32_t page_bytes_;
  std::array<PageFile::Scratch, kMaxTreeDepth> levels_;
  PageFile::Scratch extent_;
};

const char* PagePath::OpenExtent(PageNumber first, std::uint32_t value_bytes,
                                 std::uint32_t& pages) {
  if (first < kMetaPages || first >= file_pages()) return "its overflow page lies outside the file";
  const std::byte* bytes = file_.Read(first * page_bytes_, kPageHeaderBytes, extent_);
  if (bytes == nullptr) return file_.why();
  const auto header = Load<PageHeader>(bytes);
  if (header.number != first) return "its overflow page carries another page number";
  if (header.flags != kPageOverflow || header.pad != 0) return "its overflow page has wrong flags";
  pages = Load<std::uint32_t>(bytes + kOverflowPagesOffset);
  const std::uint64_t used_bytes = kPageHeaderBytes + std::uint64_t{value_bytes};
  if (pages > file_pages() - first || std::uint64_t{pages} * page_bytes_ < used_bytes) {
    return "its overflow page has a wrong number of pages";
  }
  return nullptr;
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
  // kExact follows the record's depth; kSalvage the pages' own kinds, since the record may be
  // wrong. Both report what contradicts the record.
  enum class Mode { kExact, kSalvage };

  // Trees may have pages below `end`.
  Walk(PageFile& file, std::uint32_t page_bytes, PageNumber end, Mode mode, PageVisitor& visitor,
       PageFindings& findings)
      : path_(file, page_bytes),
        page_bytes_(page_bytes),
        claims_(end),
        mode_(mode),
        visitor_(visitor),
        findings_(findings) {}

  void MainAndTables(const MetaRecord& meta);
  // Call after MainAndTables: also checks that every page is claimed.
  void FreeListAndCoverage(const MetaRecord& meta);

  std::uint64_t tree_pages() const { return tree_pages_; }
  std::uint64_t free_pages() const { return free_pages_; }
  std::uint64_t values() const { return values_; }
  std::uint64_t tables() const { return tables_.size(); }
  std::uint64_t skipped() const { return skipped_; }

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
  // nullptr: `value` is read; otherwise why it is left out.
  const char* ReadOverflow(PageNumber first, std::uint32_t bytes, const std::byte*& value);
  void OnValue(const std::byte* key, std::span<const std::byte> value);
  void OnFreeRecord(const std::byte* key, std::span<const std::byte> value);
  void Skip(PageNumber number, const char* problem) {
    ++skipped_;
    Report("page " + std::to_string(number) + ": " + problem);
  }
  void Report(const std::string& text) { findings_.Add(TreeLabel(kind_, name_) + ": " + text); }

  PagePath path_;
  const std::uint32_t page_bytes_;
  PageClaims claims_;
  const Mode mode_;
  PageVisitor& visitor_;
  PageFindings& findings_;

  // About the tree being walked:
  TreeKind kind_ = TreeKind::kMain;
  std::string_view name_;
  unsigned depth_ = kAnyDepth;
  TreeRecord seen_{};

  std::uint64_t meta_txn_id_ = 0;
  std::vector<NamedTree> tables_;  // found in the main tree's leaves
  std::uint64_t tree_pages_ = 0;
  std::uint64_t free_pages_ = 0;
  std::uint64_t values_ = 0;
  std::uint64_t skipped_ = 0;
};

void Walk::MainAndTables(const MetaRecord& meta) {
  visitor_.OnTable("", meta.main_tree.entries);
  Tree(TreeKind::kMain, "", meta.main_tree);
  for (const NamedTree& table : tables_) {
    visitor_.OnTable(table.name, table.tree.entries);
    Tree(TreeKind::kTable, table.name, table.tree);
  }
}

void Walk::FreeListAndCoverage(const MetaRecord& meta) {
  meta_txn_id_ = meta.txn_id;
  Tree(TreeKind::kFree, "", meta.free_tree);
  claims_.ReportUnclaimed(findings_);
}

void Walk::Tree(TreeKind kind, std::string_view name, const TreeRecord& tree) {
  kind_ = kind;
  name_ = name;
  depth_ = mode_ == Mode::kExact ? tree.depth : kAnyDepth;
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
  if (level > kMaxTreeDepth) return Skip(number, "it lies too deep");
  // Before the claim: multiplying a claimed page by the page size must not overflow.
  if (number >= path_.file_pages()) return Skip(number, "it lies past the file's end");
  if (!claims_.Claim(number)) return Skip(number, "it is past the last page or in use elsewhere");
  NodePage page;
  const char* problem = path_.OpenNode(number, kind_, level, depth_, bounds, page);
  if (problem != nullptr) return Skip(number, problem);
  ++tree_pages_;
  if (page.is_leaf()) {
    ++seen_.leaf_pages;
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
        ++skipped_;
        Report("page " + std::to_string(number) + ", value " + std::to_string(i) + ": " + problem);
        continue;
      }
    }
    ++seen_.entries;
    OnValue(page.Key(i), {value, node.DataBytes()});
  }
}

const char* Walk::ReadOverflow(PageNumber first, std::uint32_t bytes, const std::byte*& value) {
  std::uint32_t pages = 0;
  if (const char* problem = path_.OpenExtent(first, bytes, pages)) return problem;
  // Claimed before the value is read: no extent is read twice.
  if (!claims_.Claim(first, pages)) {
    return "its overflow pages are past the last page or in use elsewhere";
  }
  tree_pages_ += pages;
  seen_.overflow_pages += pages;
  return path_.ReadExtent(first, bytes, value);
}

void Walk::OnValue(const std::byte* key, std::span<const std::byte> value) {
  if (kind_ == TreeKind::kFree) return OnFreeRecord(key, value);
  ++values_;
  visitor_.OnValue(name_, PageKey(key, kTableKeyBytes), value);
}

void Walk::OnFreeRecord(const std::byte* key, std::span<const std::byte> value) {
  const auto id = Load<std::uint64_t>(key);
  const std::string where = "free list, transaction " + std::to_string(id) + ": ";
  if (id == 0 || id > meta_txn_id_) findings_.Add(where + "there was no such transaction");
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

// ---- One key

Error DamagedPath(PageNumber number, const char* problem) {
  return {ErrorCode::kDamaged, "main: page " + std::to_string(number) + ": " + problem, ""};
}

Result<std::vector<std::byte>> ValueInLeaf(PagePath& path, PageNumber number, const NodePage& page,
                                           PageKey key) {
  for (unsigned i = 0; i < page.count(); ++i) {
    if (CompareKeys(TreeKind::kMain, page.Key(i), key.data()) != 0) continue;
    const NodeHeader node = page.Header(i);
    if (node.flags == kNodeTree) return DamagedPath(number, "the key names a table");
    const std::byte* value = page.Data(i);
    if (node.flags == kNodeOverflow) {
      const auto first = Load<PageNumber>(value);
      std::uint32_t pages = 0;
      const char* problem = path.OpenExtent(first, node.DataBytes(), pages);
      if (problem == nullptr) problem = path.ReadExtent(first, node.DataBytes(), value);
      if (problem != nullptr) return DamagedPath(number, problem);
    }
    return std::vector<std::byte>(value, value + node.DataBytes());
  }
  return Error{ErrorCode::kNotFound, "main: there is no such key", ""};
}

Result<std::vector<std::byte>> Find(PageFile& file, std::uint32_t page_bytes,
                                    const TreeRecord& tree, PageKey key) {
  if (tree.root == kNoPage) return Error{ErrorCode::kNotFound, "main: it is empty", ""};
  PagePath path(file, page_bytes);
  PageNumber number = tree.root;
  KeyBounds bounds;
  for (unsigned level = 1; level <= tree.depth; ++level) {
    if (number < kMetaPages || number >= path.file_pages()) {
      return DamagedPath(number, "it lies outside the file");
    }
    NodePage page;
    const char* problem = path.OpenNode(number, TreeKind::kMain, level, tree.depth, bounds, page);
    if (problem != nullptr) return DamagedPath(number, problem);
    if (page.is_leaf()) return ValueInLeaf(path, number, page, key);
    const unsigned child = page.ChildFor(key.data());
    number = page.Header(child).Child();
    bounds = page.ChildBounds(child, bounds);
  }
  return DamagedPath(number, "it lies too deep");
}

// ---- Results

void WalkNewer(PageFile& file, const MetaPages& metas, PageVisitor& visitor, WalkResult& result) {
  const MetaRecord& meta = metas.page[static_cast<std::size_t>(metas.newer)].record;
  const std::uint64_t file_pages = file.size_bytes() / metas.page_bytes;
  result.last_page = meta.last_page;
  // The free list names each page past the file's end, by 8 bytes in the file. A sparse file may be
  // much longer than any map, and the walk takes memory for each page.
  if (meta.last_page > file_pages + file.size_bytes() / sizeof(PageNumber) ||
      meta.last_page >= kMaxMapBytes / metas.page_bytes) {
    result.Add("meta page " + std::to_string(metas.newer) + ": its last page is not possible");
    return;
  }
  Walk walk(file, metas.page_bytes, meta.last_page + 1, Walk::Mode::kExact, visitor, result);
  walk.MainAndTables(meta);
  walk.FreeListAndCoverage(meta);
  result.tree_pages = walk.tree_pages();
  result.free_pages = walk.free_pages();
}

// `which` −1: the newer page's tree, and the pair of them.
WalkResult WalkOpened(PageFile& file, PageVisitor& visitor, int which) {
  WalkResult result;
  if (file.size_bytes() == 0) {
    result.empty_file = true;
    result.Add("the data file has 0 bytes");
  } else {
    MetaPages metas = ReadMetaPages(file);
    if (which >= 0) metas.newer = which;
    result.newer_meta = metas.newer;
    result.fresh = metas.fresh;
    result.page_bytes = metas.page_bytes;
    for (std::size_t i = 0; i < result.meta.size(); ++i) {
      const MetaPage& page = metas.page[i];
      MetaSummary& summary = result.meta[i];
      summary.valid = page.problem == nullptr;
      if (page.problem != nullptr) summary.problem = page.problem;
      summary.txn_id = page.record.txn_id;
      summary.rooted = summary.valid && page.record.main_tree.root != kNoPage;
      summary.past_end = page.past_end;
      summary.map_bytes = page.record.map_bytes;
    }
    if (which < 0) CheckMetaPair(metas, result);
    const bool has_tree = which < 0 ? metas.newer >= 0 : result.meta[AsIndex(which)].rooted;
    if (which >= 0 && !has_tree) result.Add("meta page " + std::to_string(which) + ": no tree");
    if (has_tree) WalkNewer(file, metas, visitor, result);
  }
  result.sound = result.finding_count == 0;
  return result;
}

SalvageResult SalvageOpened(PageFile& file, const MetaPages& metas, int which,
                            PageVisitor& visitor) {
  const MetaPage& meta = metas.page[static_cast<std::size_t>(which)];
  SalvageResult result;
  // The tree below the root may be readable even if another field of the meta page is wrong.
  if (meta.problem != nullptr) {
    result.Add("meta page " + std::to_string(which) + ": " + meta.problem);
  }
  // Bounded by the file's end: the meta page's last page may be wrong.
  Walk walk(file, metas.page_bytes, file.size_bytes() / metas.page_bytes, Walk::Mode::kSalvage,
            visitor, result);
  walk.MainAndTables(meta.record);
  result.values = walk.values();
  result.tables = walk.tables();
  result.skipped = walk.skipped();
  result.complete = result.finding_count == 0;
  return result;
}

Error BadMeta(int which, const char* problem) {
  return {
      ErrorCode::kDamaged,
      "meta page " + std::to_string(which) + " cannot be used: " + problem + "; nothing was read",
      ""};
}

// Opens the file, and calls `read(file, metas)` if its page size is known.
template <typename T, typename ReadFn>
Result<T> ReadFrom(int fd, PageFile::Mode mode, int which, OnReadError on_error, ReadFn read) {
  auto file = TRY(PageFile::Open(fd, mode));
  if (which != 0 && which != 1) {
    return Error{ErrorCode::kInvalidArgument, "a data file has the meta pages 0 and 1 only", ""};
  }
  const MetaPages metas = ReadMetaPages(file);
  TRY(file.CheckReads(on_error));
  if (metas.page_bytes == 0) return BadMeta(which, "the page size cannot be told");
  Result<T> result = read(file, metas);
  TRY(file.CheckReads(on_error));
  return result;
}

Result<WalkResult> WalkOne(int fd, int which, PageVisitor& visitor, OnReadError on_error) {
  auto file = TRY(PageFile::Open(fd, PageFile::Mode::kWhole));
  WalkResult walked = WalkOpened(file, visitor, which);
  TRY(file.CheckReads(on_error));
  return walked;
}

}  // namespace

Result<WalkResult> WalkFile(int fd, PageVisitor& visitor, OnReadError on_error) {
  return WalkOne(fd, -1, visitor, on_error);
}

Result<WalkResult> WalkTreeOf(int fd, int which, PageVisitor& visitor, OnReadError on_error) {
  return WalkOne(fd, which == 0 ? 0 : 1, visitor, on_error);
}

std::uint64_t MapBytesOffset(int which, std::uint32_t page_bytes) {
  constexpr std::size_t kInPage = kPageHeaderBytes + offsetof(MetaRecord, map_bytes);
  static_assert(kInPage % sizeof(MetaRecord::map_bytes) == 0);
  return AsIndex(which) * page_bytes + kInPage;
}

Result<std::vector<std::byte>> MetaWithoutRoots(int fd, int which) {
  const auto make = [&](PageFile&, const MetaPages& metas) -> Result<std::vector<std::byte>> {
    const MetaPage& newest = metas.page[AsIndex(which)];
    if (newest.problem != nullptr) return BadMeta(which, newest.problem);
    PageHeader header{};
    header.number = static_cast<PageNumber>(1 - which);
    header.flags = kPageMeta;
    MetaRecord record{};
    record.magic = kMetaMagic;
    record.version = kMetaVersion;
    record.map_bytes = newest.record.map_bytes;
    record.free_tree.pad = metas.page_bytes;
    record.free_tree.flags = kTreeIntegerKeys;
    record.free_tree.root = kNoPage;
    record.main_tree.root = kNoPage;
    record.last_page = kMetaPages - 1;
    record.txn_id = newest.record.txn_id - 1;
    std::vector<std::byte> bytes(kMetaBytes);
    std::memcpy(bytes.data(), &header, sizeof(header));
    std::memcpy(bytes.data() + kPageHeaderBytes, &record, sizeof(record));
    return bytes;
  };
  return ReadFrom<std::vector<std::byte>>(fd, PageFile::Mode::kOnDemand, which, OnReadError::kFail,
                                          make);
}

Result<SalvageResult> SalvageTree(int fd, int which, PageVisitor& visitor, OnReadError on_error) {
  return ReadFrom<SalvageResult>(fd, PageFile::Mode::kWhole, which, on_error,
                                 [&](PageFile& file, const MetaPages& metas) {
                                   return SalvageOpened(file, metas, which, visitor);
                                 });
}

Result<std::vector<std::byte>> FindInMain(int fd, int which, PageKey key, OnReadError on_error) {
  const auto find = [&](PageFile& file, const MetaPages& metas) -> Result<std::vector<std::byte>> {
    const MetaPage& meta = metas.page[static_cast<std::size_t>(which)];
    if (meta.problem != nullptr) return BadMeta(which, meta.problem);
    return Find(file, metas.page_bytes, meta.record.main_tree, key);
  };
  return ReadFrom<std::vector<std::byte>>(fd, PageFile::Mode::kOnDemand, which, on_error, find);
}

}  // namespace waybill::internal
