#include "store/lmdb/check/page_walk.h"

#include <cstring>
#include <memory>
#include <utility>

#include "store/lmdb/check/findings.h"
#include "store/lmdb/check/free_list.h"
#include "store/lmdb/check/meta_pages.h"
#include "store/lmdb/check/node_page.h"
#include "store/lmdb/check/page_claims.h"
#include "store/lmdb/check/page_file.h"
#include "store/lmdb/check/tree_walk.h"

namespace waybill::internal {
namespace {

struct NamedTree {
  std::string name;
  TreeRecord tree;
};

// Hands values to the visitor, and keeps the named tables of the main tree for later.
class VisitorSink : public LeafSink {
 public:
  explicit VisitorSink(PageVisitor& visitor) : visitor_(visitor) {}

  void Begin(std::string_view table, std::uint64_t entries) {
    table_ = table;
    visitor_.OnTable(table, entries);
  }
  void OnLeafValue(const std::byte* key, std::span<const std::byte> value) override {
    ++values_;
    visitor_.OnValue(table_, PageKey(key, kTableKeyBytes), value);
  }
  void OnLeafTree(const std::byte* name, const TreeRecord& tree) override {
    std::string text(kTableKeyBytes, '\0');
    std::memcpy(text.data(), name, kTableKeyBytes);
    tables_.push_back({std::move(text), tree});
  }

  const std::vector<NamedTree>& tables() const { return tables_; }
  std::uint64_t values() const { return values_; }

 private:
  PageVisitor& visitor_;
  std::string_view table_;
  std::vector<NamedTree> tables_;
  std::uint64_t values_ = 0;
};

void WalkMainAndTables(TreeWalk& walk, const MetaRecord& meta, VisitorSink& sink) {
  sink.Begin("", meta.main_tree.entries);
  walk.Walk(TreeKind::kMain, "", meta.main_tree, sink);
  for (const NamedTree& table : sink.tables()) {
    sink.Begin(table.name, table.tree.entries);
    walk.Walk(TreeKind::kTable, table.name, table.tree, sink);
  }
}

void WalkNewer(PageFile& file, const MetaPages& metas, PageVisitor& visitor, Findings& findings,
               WalkResult& result) {
  const MetaRecord& meta = metas.page[static_cast<std::size_t>(metas.newer)].record;
  const std::uint64_t file_pages = file.size_bytes() / metas.page_bytes;
  result.last_page = meta.last_page;
  // Each page past the file's end is named in the free list, by 8 bytes that lie in the file.
  if (meta.last_page > file_pages + file.size_bytes() / sizeof(PageNumber)) {
    findings.Add("meta page " + std::to_string(metas.newer) + ": its last page is not possible");
    return;
  }
  PageClaims claims(meta.last_page + 1);
  const auto walk =
      std::make_unique<TreeWalk>(file, metas.page_bytes, claims, findings, TreeWalk::Mode::kExact);
  VisitorSink sink(visitor);
  WalkMainAndTables(*walk, meta, sink);
  FreeList free_list(meta.txn_id, claims, findings);
  walk->Walk(TreeKind::kFree, "", meta.free_tree, free_list);
  CheckCoverage(claims, findings);
  result.tree_pages = walk->pages();
  result.free_pages = free_list.pages();
}

WalkResult WalkOpened(PageFile& file, PageVisitor& visitor) {
  WalkResult result;
  Findings findings;
  if (file.size_bytes() == 0) {
    result.empty_file = true;
    findings.Add("the data file has 0 bytes");
  } else {
    const MetaPages metas = ReadMetaPages(file);
    result.newer_meta = metas.newer;
    result.fresh = metas.fresh;
    result.page_bytes = metas.page_bytes;
    for (std::size_t i = 0; i < result.meta.size(); ++i) {
      const MetaPage& page = metas.page[i];
      MetaSummary& summary = result.meta[i];
      summary.valid = page.problem == nullptr;
      if (page.problem != nullptr) summary.problem = page.problem;
      summary.txn_id = page.record.txn_id;
      summary.rooted = summary.valid && page.rooted();
    }
    CheckMetaPair(metas, findings);
    if (metas.newer >= 0) WalkNewer(file, metas, visitor, findings, result);
  }
  result.sound = findings.count() == 0;
  result.finding_count = findings.count();
  result.findings = findings.TakeTexts();
  return result;
}

// What was read proves nothing where the disk refused a part of it.
Result<void> Judge(const PageFile& file, OnReadError on_error) {
  return on_error == OnReadError::kFail ? file.failure() : Result<void>();
}

Error BadMeta(int which, const char* problem) {
  return {
      ErrorCode::kDamaged,
      "meta page " + std::to_string(which) + " cannot be used: " + problem + "; nothing was read",
      ""};
}

Result<MetaPages> FindMetaPages(PageFile& file, int which) {
  if (which != 0 && which != 1) {
    return Error{ErrorCode::kInvalidArgument, "a data file has the meta pages 0 and 1 only", ""};
  }
  const MetaPages metas = ReadMetaPages(file);
  if (metas.page_bytes == 0) return BadMeta(which, "the page size cannot be told");
  return metas;
}

SalvageResult SalvageOpened(PageFile& file, const MetaPages& metas, int which,
                            PageVisitor& visitor) {
  const MetaPage& meta = metas.page[static_cast<std::size_t>(which)];
  SalvageResult result;
  Findings findings;
  // A wrong field elsewhere in it need not keep the tree below its root from being read.
  if (meta.problem != nullptr) {
    findings.Add("meta page " + std::to_string(which) + ": " + meta.problem);
  }
  // The file bounds the pages here: the last page may be what is damaged.
  PageClaims claims(file.size_bytes() / metas.page_bytes);
  const auto walk = std::make_unique<TreeWalk>(file, metas.page_bytes, claims, findings,
                                               TreeWalk::Mode::kSalvage);
  VisitorSink sink(visitor);
  WalkMainAndTables(*walk, meta.record, sink);
  result.values = sink.values();
  result.tables = sink.tables().size();
  result.skipped = walk->skipped();
  result.complete = findings.count() == 0;
  result.finding_count = findings.count();
  result.findings = findings.TakeTexts();
  return result;
}

Error DamagedPath(PageNumber number, const char* problem) {
  return {ErrorCode::kDamaged, "main: page " + std::to_string(number) + ": " + problem, ""};
}

// The child LMDB would follow: the last whose separator is not above the key.
unsigned ChildFor(const NodePage& page, PageKey key) {
  unsigned low = 0;
  unsigned high = page.count() - 1;
  while (low < high) {
    const unsigned middle = low + (high - low + 1) / 2;
    if (CompareKeys(TreeKind::kMain, page.Key(middle), key.data()) <= 0) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

Result<std::vector<std::byte>> ValueInLeaf(PageFile& file, std::uint32_t page_bytes,
                                           PageNumber number, const NodePage& page, PageKey key) {
  for (unsigned i = 0; i < page.count(); ++i) {
    if (CompareKeys(TreeKind::kMain, page.Key(i), key.data()) != 0) continue;
    const NodeHeader node = page.Header(i);
    if (node.flags == kNodeTree) return DamagedPath(number, "the key names a table");
    const std::byte* value = page.Data(i);
    PageFile::Scratch scratch;
    if (node.flags == kNodeOverflow) {
      const Extent extent = OpenExtent(file, page_bytes, Load<PageNumber>(value), node.DataBytes());
      if (extent.problem != nullptr) return DamagedPath(number, extent.problem);
      value = file.Read(extent.value_offset, node.DataBytes(), scratch);
      if (value == nullptr) return DamagedPath(number, file.why());
    }
    return std::vector<std::byte>(value, value + node.DataBytes());
  }
  return Error{ErrorCode::kNotFound, "main: there is no such key", ""};
}

Result<std::vector<std::byte>> FindOpened(PageFile& file, const MetaPages& metas,
                                          const TreeRecord& tree, PageKey key) {
  if (tree.root == kNoPage) return Error{ErrorCode::kNotFound, "main: it is empty", ""};
  const std::uint64_t file_pages = file.size_bytes() / metas.page_bytes;
  PageNumber number = tree.root;
  KeyBounds bounds;
  std::array<PageFile::Scratch, kMaxTreeDepth> scratch;  // the bounds point into it
  for (unsigned level = 1; level <= tree.depth; ++level) {
    if (number < kMetaPages || number >= file_pages) {
      return DamagedPath(number, "it lies outside the file");
    }
    const std::byte* bytes =
        file.Read(number * metas.page_bytes, metas.page_bytes, scratch[level - 1]);
    if (bytes == nullptr) return DamagedPath(number, file.why());
    NodePage page;
    if (const char* problem = page.Open(bytes, number, metas.page_bytes, TreeKind::kMain)) {
      return DamagedPath(number, problem);
    }
    if (page.is_leaf() != (level == tree.depth)) {
      return DamagedPath(number, "it is a leaf or a branch on the wrong level");
    }
    if (!page.IsWithin(bounds)) {
      return DamagedPath(number, "a key lies outside its ancestors' separators");
    }
    if (page.is_leaf()) return ValueInLeaf(file, metas.page_bytes, number, page, key);
    const unsigned child = ChildFor(page, key);
    number = page.Header(child).Child();
    bounds = page.ChildBounds(child, bounds);
  }
  return DamagedPath(number, "it lies too deep");
}

}  // namespace

Result<WalkResult> WalkFile(int fd, PageVisitor& visitor, OnReadError on_error) {
  auto file = PageFile::Open(fd, PageFile::Mode::kWhole);
  if (!file) return file.error();
  WalkResult walked = WalkOpened(*file, visitor);
  if (auto r = Judge(*file, on_error); !r) return r.error();
  return walked;
}

Result<SalvageResult> SalvageTree(int fd, int which, PageVisitor& visitor, OnReadError on_error) {
  auto file = PageFile::Open(fd, PageFile::Mode::kWhole);
  if (!file) return file.error();
  const auto metas = FindMetaPages(*file, which);
  if (auto r = Judge(*file, on_error); !r) return r.error();
  if (!metas) return metas.error();
  SalvageResult salvaged = SalvageOpened(*file, *metas, which, visitor);
  if (auto r = Judge(*file, on_error); !r) return r.error();
  return salvaged;
}

Result<std::vector<std::byte>> FindInMain(int fd, int which, PageKey key, OnReadError on_error) {
  auto file = PageFile::Open(fd, PageFile::Mode::kOnDemand);
  if (!file) return file.error();
  const auto metas = FindMetaPages(*file, which);
  if (auto r = Judge(*file, on_error); !r) return r.error();
  if (!metas) return metas.error();
  const MetaPage& meta = metas->page[static_cast<std::size_t>(which)];
  if (meta.problem != nullptr) return BadMeta(which, meta.problem);
  auto found = FindOpened(*file, *metas, meta.record.main_tree, key);
  if (auto r = Judge(*file, on_error); !r) return r.error();
  return found;
}

}  // namespace waybill::internal
