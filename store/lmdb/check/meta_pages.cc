#include "store/lmdb/check/meta_pages.h"

#include <optional>
#include <string>

namespace waybill::internal {
namespace {

struct RawMeta {
  PageHeader header;
  MetaRecord record;
};

std::optional<RawMeta> ReadMeta(PageFile& file, std::uint64_t offset) {
  PageFile::Scratch scratch;
  const std::byte* bytes = file.Read(offset, kMetaBytes, scratch);
  if (bytes == nullptr) return std::nullopt;
  return RawMeta{Load<PageHeader>(bytes), Load<MetaRecord>(bytes + kPageHeaderBytes)};
}

// A table of one page size: what makes bytes look like a meta page at all.
bool LooksLikeMeta(const RawMeta& meta, std::uint32_t page_bytes) {
  return meta.record.magic == kMetaMagic && meta.record.free_tree.pad == page_bytes;
}

// LMDB takes the page size from page 0 to find page 1. If page 0 is damaged, page 1 tells.
std::uint32_t FindPageBytes(PageFile& file, const std::optional<RawMeta>& first) {
  if (first && IsPageSize(first->record.free_tree.pad) &&
      LooksLikeMeta(*first, first->record.free_tree.pad)) {
    const std::uint32_t claimed = first->record.free_tree.pad;
    const auto second = ReadMeta(file, claimed);
    if (second && LooksLikeMeta(*second, claimed)) return claimed;
  }
  for (std::uint32_t bytes = kMinPageBytes; bytes <= kMaxPageBytes; bytes *= 2) {
    const auto second = ReadMeta(file, bytes);
    if (second && LooksLikeMeta(*second, bytes) && second->header.number == 1) return bytes;
  }
  if (first && IsPageSize(first->record.free_tree.pad)) return first->record.free_tree.pad;
  return 0;
}

const char* TreeProblem(const TreeRecord& tree, std::uint64_t file_pages) {
  if (tree.root == kNoPage) {
    const bool empty = tree.depth == 0 && tree.branch_pages == 0 && tree.leaf_pages == 0 &&
                       tree.overflow_pages == 0 && tree.entries == 0;
    return empty ? nullptr : "a tree without a root has counts";
  }
  if (tree.root < kMetaPages || tree.root >= file_pages) return "a root lies outside the file";
  if (tree.depth == 0 || tree.depth > kMaxTreeDepth) return "a tree's depth is not possible";
  return nullptr;
}

// Only what has one legal value, or what a later reader relies on. The map size has neither.
const char* MetaProblem(const RawMeta& meta, PageNumber number, std::uint32_t page_bytes,
                        std::uint64_t file_pages) {
  const MetaRecord& record = meta.record;
  if (record.magic != kMetaMagic) return "it is not a meta page of LMDB";
  if (record.version != kMetaVersion) return "its format version is unknown";
  if (meta.header.flags != kPageMeta) return "its page flags are wrong";
  if (meta.header.number != number) return "it carries another page number";
  if (meta.header.pad != 0 || meta.header.lower != 0 || meta.header.upper != 0) {
    return "its page header is not zero where it must be";
  }
  if (record.address != 0) return "it asks for a fixed map address";
  if (record.free_tree.pad != page_bytes) return "its page size is wrong";
  if (record.free_tree.flags != kTreeIntegerKeys) return "its environment flags are wrong";
  if (record.main_tree.pad != 0 || record.main_tree.flags != 0) {
    return "the main tree has flags or padding";
  }
  if (const char* problem = TreeProblem(record.free_tree, file_pages)) return problem;
  if (const char* problem = TreeProblem(record.main_tree, file_pages)) return problem;
  if (record.last_page < kMetaPages - 1) return "its last page is not possible";
  if (record.txn_id == 0 &&
      (record.last_page != kMetaPages - 1 || record.main_tree.root != kNoPage ||
       record.free_tree.root != kNoPage)) {
    return "it holds data under transaction 0";
  }
  return nullptr;
}

}  // namespace

MetaPages ReadMetaPages(PageFile& file) {
  MetaPages metas;
  const auto first = ReadMeta(file, 0);
  metas.page_bytes = FindPageBytes(file, first);
  if (metas.page_bytes == 0) return metas;
  const std::uint64_t file_pages = file.size_bytes() / metas.page_bytes;
  for (PageNumber number = 0; number < kMetaPages; ++number) {
    MetaPage& page = metas.page[number];
    const auto raw = number == 0 ? first : ReadMeta(file, metas.page_bytes);
    if (!raw) continue;
    page.record = raw->record;
    page.problem = file_pages < kMetaPages
                       ? "the file ends within the meta pages"
                       : MetaProblem(*raw, number, metas.page_bytes, file_pages);
  }
  const auto& [zero, one] = metas.page;
  if (zero.problem == nullptr && one.problem == nullptr) {
    metas.newer = zero.record.txn_id < one.record.txn_id ? 1 : 0;
    metas.fresh = zero.record.txn_id == 0 && one.record.txn_id == 0;
  } else if (zero.problem == nullptr || one.problem == nullptr) {
    metas.newer = zero.problem == nullptr ? 0 : 1;
  }
  return metas;
}

void CheckMetaPair(const MetaPages& metas, Findings& findings) {
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
  const std::string ids = std::to_string(metas.page[0].record.txn_id) + " and " +
                          std::to_string(metas.page[1].record.txn_id);
  if (newer.txn_id - older.txn_id != 1 ||
      newer.txn_id % kMetaPages != static_cast<std::uint64_t>(metas.newer)) {
    findings.Add("meta pages: transactions " + ids + " cannot follow each other");
  }
  if (older.last_page > newer.last_page) {
    findings.Add("meta pages: the newer one has fewer pages than the older one");
  }
}

}  // namespace waybill::internal
