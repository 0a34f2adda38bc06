#include "store/lmdb/check/tree_walk.h"

#include <algorithm>

namespace waybill::internal {

Extent OpenExtent(PageFile& file, std::uint32_t page_bytes, PageNumber number,
                  std::uint32_t value_bytes) {
  const std::uint64_t file_pages = file.size_bytes() / page_bytes;
  if (number < kMetaPages || number >= file_pages) {
    return {.problem = "its overflow page lies outside the file"};
  }
  PageFile::Scratch scratch;
  const std::byte* bytes = file.Read(number * page_bytes, kPageHeaderBytes, scratch);
  if (bytes == nullptr) return {.problem = file.why()};
  const auto header = Load<PageHeader>(bytes);
  if (header.number != number) return {.problem = "its overflow page carries another page number"};
  if (header.flags != kPageOverflow || header.pad != 0) {
    return {.problem = "its overflow page has wrong flags"};
  }
  const auto pages = Load<std::uint32_t>(bytes + kOverflowPagesOffset);
  const std::uint64_t used_bytes = kPageHeaderBytes + std::uint64_t{value_bytes};
  if (pages > file_pages - number || std::uint64_t{pages} * page_bytes < used_bytes) {
    return {.problem = "its overflow page has a wrong number of pages"};
  }
  return {.value_offset = number * page_bytes + kPageHeaderBytes, .pages = pages};
}

std::string TreeLabel(TreeKind kind, std::string_view name) {
  if (kind == TreeKind::kFree) return "free list";
  if (kind == TreeKind::kMain) return "main";
  const bool prints =
      std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7f && c != '"'; });
  if (prints) return "table " + std::string(name);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string label = "table 0x";
  for (const char c : name) {
    const auto value = static_cast<unsigned char>(c);
    label += kDigits[value >> 4];
    label += kDigits[value & 15];
  }
  return label;
}

void TreeWalk::Walk(TreeKind kind, std::string_view name, const TreeRecord& tree, LeafSink& sink) {
  kind_ = kind;
  name_ = name;
  sink_ = &sink;
  depth_ = tree.depth;
  seen_ = TreeRecord{};
  if (tree.root != kNoPage) Visit(tree.root, 1, KeyBounds{});
  CheckRecord(tree);
}

void TreeWalk::CheckRecord(const TreeRecord& tree) {
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

void TreeWalk::Skip(PageNumber number, const char* problem) {
  ++skipped_;
  Report("page " + std::to_string(number) + ": " + problem);
}

void TreeWalk::Visit(PageNumber number, unsigned level, KeyBounds bounds) {
  if (level > kMaxTreeDepth) return Skip(number, "it lies too deep");
  // Before the claim: a page that is claimed can be multiplied by the page size.
  if (number >= file_.size_bytes() / page_bytes_)
    return Skip(number, "it lies past the file's end");
  if (!claims_.Claim(number)) return Skip(number, "it is past the last page or in use elsewhere");
  const std::byte* bytes = file_.Read(number * page_bytes_, page_bytes_, level_scratch_[level - 1]);
  if (bytes == nullptr) return Skip(number, file_.why());
  NodePage page;
  if (const char* problem = page.Open(bytes, number, page_bytes_, kind_)) {
    return Skip(number, problem);
  }
  if (mode_ == Mode::kExact && page.is_leaf() != (level == depth_)) {
    return Skip(number, "it is a leaf or a branch on the wrong level");
  }
  if (!page.IsWithin(bounds)) return Skip(number, "a key lies outside its ancestors' separators");
  ++pages_;
  if (page.is_leaf()) {
    ++seen_.leaf_pages;
    VisitLeaf(number, page);
  } else {
    ++seen_.branch_pages;
    VisitBranch(page, level, bounds);
  }
}

void TreeWalk::VisitBranch(const NodePage& page, unsigned level, KeyBounds bounds) {
  for (unsigned i = 0; i < page.count(); ++i) {
    Visit(page.Header(i).Child(), level + 1, page.ChildBounds(i, bounds));
  }
}

void TreeWalk::VisitLeaf(PageNumber number, const NodePage& page) {
  for (unsigned i = 0; i < page.count(); ++i) {
    const NodeHeader node = page.Header(i);
    if (node.flags == kNodeTree) {
      ++seen_.entries;
      sink_->OnLeafTree(page.Key(i), Load<TreeRecord>(page.Data(i)));
      continue;
    }
    const std::byte* value = page.Data(i);
    if (node.flags == kNodeOverflow) {
      const char* problem = nullptr;
      value = OverflowValue(Load<PageNumber>(value), node.DataBytes(), &problem);
      if (value == nullptr) {
        ++skipped_;
        Report("page " + std::to_string(number) + ", value " + std::to_string(i) + ": " + problem);
        continue;
      }
    }
    ++seen_.entries;
    sink_->OnLeafValue(page.Key(i), {value, node.DataBytes()});
  }
}

const std::byte* TreeWalk::OverflowValue(PageNumber first, std::uint32_t bytes,
                                         const char** problem) {
  const Extent extent = OpenExtent(file_, page_bytes_, first, bytes);
  if (extent.problem != nullptr) {
    *problem = extent.problem;
    return nullptr;
  }
  // Claimed before the value is read: no extent is read twice.
  if (!claims_.Claim(first, extent.pages)) {
    *problem = "its overflow pages are past the last page or in use elsewhere";
    return nullptr;
  }
  pages_ += extent.pages;
  seen_.overflow_pages += extent.pages;
  const std::byte* value = file_.Read(extent.value_offset, bytes, extent_scratch_);
  if (value == nullptr) *problem = file_.why();
  return value;
}

}  // namespace waybill::internal
