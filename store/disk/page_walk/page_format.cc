#include "store/disk/page_walk/page_format.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

namespace waybill::internal {

Result<PageFile> PageFile::Open(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return SystemError(errno, "look at", PathOf(fd));
  if (!S_ISREG(info.st_mode)) {
    return Error{ErrorCode::kUnsafePath, "the data file is not a regular file", ""};
  }
  PageFile file;
  file.fd_ = fd;
  file.size_bytes_ = static_cast<std::uint64_t>(info.st_size);
  file.fetched_.resize(file.size_bytes_ / kChunkBytes + 1);
  return file;
}

const std::byte* PageFile::Read(std::uint64_t offset, std::uint64_t count, Scratch& scratch) {
  if (offset > size_bytes_ || count > size_bytes_ - offset) {
    why_ = "it lies past the end of the file";
    return nullptr;
  }
  if (count > kMaxExtentBytes) {
    why_ = "it is larger than any value may be";
    return nullptr;
  }
  for (std::uint64_t chunk = offset / kChunkBytes; chunk * kChunkBytes < offset + count; ++chunk) {
    if (fetched_[chunk]) continue;
    fetched_[chunk] = true;
    posix_fadvise(fd_, static_cast<off_t>(chunk * kChunkBytes), kChunkBytes, POSIX_FADV_WILLNEED);
  }
  std::byte* const to = scratch.Reserve(static_cast<std::size_t>(count));
  for (std::uint64_t done = 0; done < count;) {
    const ssize_t got = pread(fd_, to + done, count - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got > 0) {
      done += static_cast<std::uint64_t>(got);
      continue;
    }
    if (got < 0 && failure_) failure_ = CanBeSkipped(SystemError(errno, "read", PathOf(fd_)));
    why_ = got < 0 ? "the operating system cannot read it" : "the file shrank";
    return nullptr;
  }
  return to;
}

// ---- The meta pages: rule 1

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

// Whether the bytes may be a meta page of a file with that page size.
bool LooksLikeMeta(const RawMeta& meta, std::uint32_t page_bytes) {
  return meta.record.magic == kMetaMagic && meta.record.free_tree.pad == page_bytes;
}

// LMDB finds page 1 by the page size in page 0. If page 0 is damaged, page 1 is searched for.
std::uint32_t FindPageBytes(PageFile& file, const std::optional<RawMeta>& first) {
  const std::uint32_t claimed =
      first && IsPageSize(first->record.free_tree.pad) ? first->record.free_tree.pad : 0;
  if (claimed != 0 && LooksLikeMeta(*first, claimed)) {
    const auto second = ReadMeta(file, claimed);
    if (second && LooksLikeMeta(*second, claimed)) return claimed;
  }
  for (std::uint32_t bytes = kMinPageBytes; bytes <= kMaxPageBytes; bytes *= 2) {
    const auto second = ReadMeta(file, bytes);
    if (second && LooksLikeMeta(*second, bytes) && second->header.number == 1) return bytes;
  }
  return claimed;
}

const char* RootProblem(const TreeRecord& tree, std::uint64_t file_pages) {
  if (tree.root == kNoPage) {
    const bool empty = tree.depth == 0 && tree.branch_pages == 0 && tree.leaf_pages == 0 &&
                       tree.overflow_pages == 0 && tree.entries == 0;
    return empty ? nullptr : "a tree without a root has counts";
  }
  if (tree.root < kMetaPages || tree.root >= file_pages) return "a root lies outside the file";
  if (tree.depth == 0 || tree.depth > kMaxTreeDepth) return "a tree's depth is not possible";
  return nullptr;
}

// Checks fields with one legal value, and those that later readers rely on: not the map size.
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
  if (const char* problem = RootProblem(record.free_tree, file_pages)) return problem;
  if (const char* problem = RootProblem(record.main_tree, file_pages)) return problem;
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
    MetaSummary& meta = metas.meta[number];
    const auto raw = number == 0 ? first : ReadMeta(file, metas.page_bytes);
    if (!raw) continue;
    static_cast<MetaRecord&>(meta) = raw->record;
    meta.problem = file_pages < kMetaPages
                       ? "the file ends within the meta pages"
                       : MetaProblem(*raw, number, metas.page_bytes, file_pages);
    meta.valid = meta.problem == nullptr;
    meta.rooted = meta.valid && meta.main_tree.root != kNoPage;
    meta.past_end = !meta.valid && file_pages >= kMetaPages &&
                    MetaProblem(*raw, number, metas.page_bytes, kNoPage) == nullptr;
  }
  const auto& [zero, one] = metas.meta;
  if (zero.valid && one.valid) {
    metas.newer_meta = zero.txn_id < one.txn_id ? 1 : 0;
    metas.fresh = zero.txn_id == 0 && one.txn_id == 0;
  } else if (zero.valid || one.valid) {
    metas.newer_meta = zero.valid ? 0 : 1;
  }
  return metas;
}

// ---- One page of a tree: rule 3

int CompareKeys(TreeKind kind, const std::byte* a, const std::byte* b) {
  if (kind != TreeKind::kFree) return std::memcmp(a, b, kTableKeyBytes);
  const auto left = Load<std::uint64_t>(a);
  const auto right = Load<std::uint64_t>(b);
  return left < right ? -1 : left > right ? 1 : 0;
}

const char* NodePage::Open(const std::byte* bytes, PageNumber number, std::uint32_t page_bytes,
                           TreeKind kind) {
  const auto header = Load<PageHeader>(bytes);
  if (header.number != number) return "it carries another page number";
  if (header.pad != 0) return "its padding is not zero";
  if (header.flags != kPageBranch && header.flags != kPageLeaf) {
    return "it is neither a branch nor a leaf";
  }
  if (header.lower < kPageHeaderBytes || header.lower % 2 != 0 || header.lower > header.upper ||
      header.upper > page_bytes) {
    return "its bounds of free space are wrong";
  }
  bytes_ = bytes;
  kind_ = kind;
  key_bytes_ = kind == TreeKind::kFree ? kFreeKeyBytes : kTableKeyBytes;
  is_leaf_ = header.flags == kPageLeaf;
  count_ = static_cast<unsigned>((header.lower - kPageHeaderBytes) / 2);
  // LMDB aborts on a branch with one child, but makes such in the free tree.
  if (count_ < (is_leaf_ || kind == TreeKind::kFree ? 1U : 2U)) return "it has too few nodes";
  if (const char* problem = CheckHeap(header.upper, page_bytes)) return problem;
  return CheckOrder();
}

// Sets `bytes` to the size of what follows a leaf node's key. nullptr: the node is legal.
const char* NodePage::LeafDataBytes(const NodeHeader& node, TreeKind kind, std::size_t& bytes) {
  const std::uint32_t size = node.DataBytes();
  if (node.flags == kNodeTree && kind == TreeKind::kMain) {
    bytes = size;
    return size == sizeof(TreeRecord) ? nullptr : "a table's entry has a wrong size";
  }
  if (node.flags != 0 && node.flags != kNodeOverflow) {
    return "a node has flags that are not legal here";
  }
  const std::uint32_t least = kind == TreeKind::kFree ? sizeof(std::uint64_t) : kMinValueBytes;
  if (size < least || size % kGranule != 0) return "a value has a size that is not legal here";
  bytes = node.flags == kNodeOverflow ? sizeof(PageNumber) : size;
  return nullptr;
}

const char* NodePage::CheckHeap(std::size_t upper, std::uint32_t page_bytes) const {
  // Node sizes by their starts, both in granules. Each node is entered once. Then a walk from
  // `upper` must meet all of them, end to end.
  // Not initialised as a whole: it is the size of the largest page.
  std::array<std::uint16_t, kMaxPageBytes / kGranule> sizes;  // NOLINT(*-member-init)
  std::memset(sizes.data(), 0, page_bytes / kGranule * sizeof(sizes[0]));
  for (unsigned i = 0; i < count_; ++i) {
    const std::size_t offset = Offset(i);
    if (offset % kGranule != 0) return "a node is not aligned";
    if (offset < upper || offset + kNodeHeaderBytes > page_bytes) {
      return "a node lies outside the heap";
    }
    const auto node = Load<NodeHeader>(bytes_ + offset);
    const bool first_of_branch = !is_leaf_ && i == 0;
    if (node.key_bytes != (first_of_branch ? 0 : key_bytes_)) return "a key has a wrong size";
    std::size_t size = kNodeHeaderBytes + node.key_bytes;
    if (is_leaf_) {
      std::size_t data_bytes = 0;
      if (const char* problem = LeafDataBytes(node, kind_, data_bytes)) return problem;
      size += data_bytes;
      if (size > MaxNodeBytes(page_bytes)) return "a value is too large to lie in the page";
    }
    if (size > page_bytes - offset) return "a node reaches past the page";
    // LMDB opens tables by C strings: it would never read a table with such a name.
    if (is_leaf_ && node.flags == kNodeTree &&
        std::memchr(bytes_ + offset + kNodeHeaderBytes, 0, key_bytes_) != nullptr) {
      return "a table's name holds a byte 0";
    }
    std::uint16_t& slot = sizes[offset / kGranule];
    if (slot != 0) return "two keys share a node";
    slot = static_cast<std::uint16_t>(size / kGranule);
  }
  unsigned met = 0;
  std::size_t at = upper;
  while (at % kGranule == 0 && at < page_bytes && sizes[at / kGranule] != 0) {
    at += sizes[at / kGranule] * kGranule;
    ++met;
  }
  if (at != page_bytes || met != count_) return "its nodes overlap or leave a gap";
  return nullptr;
}

const char* NodePage::CheckOrder() const {
  for (unsigned i = is_leaf_ ? 1 : 2; i < count_; ++i) {
    if (CompareKeys(kind_, Key(i - 1), Key(i)) >= 0) return "its keys are not in order";
  }
  return nullptr;
}

// The keys are in order, so only the outermost are compared. A branch's key 1 must be above the
// lower bound, or child 0 could have no keys.
bool NodePage::IsWithin(KeyBounds bounds) const {
  const unsigned first = is_leaf_ ? 0 : 1;
  if (count_ <= first) return true;
  if (bounds.low != nullptr) {
    const int order = CompareKeys(kind_, bounds.low, Key(first));
    if (is_leaf_ ? order > 0 : order >= 0) return false;
  }
  return bounds.high == nullptr || CompareKeys(kind_, Key(count_ - 1), bounds.high) < 0;
}

}  // namespace waybill::internal
