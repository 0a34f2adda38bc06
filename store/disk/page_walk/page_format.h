// The data file of LMDB 0.9 (64-bit, little-endian), as far as it is checked: how pages are read,
// and what each must be by itself. page_check.cc has the numbered rules.
//
//   file      page 0 (meta) · page 1 (meta) · pages 2 … last page, each of them in exactly one of:
//             the free tree, the main tree, a named table's tree, an overflow extent, the free list
//
//   page      0  number u64 · 8  pad u16 (0) · 10 flags u16 · 12 lower u16 · 14 upper u16
//             16 offsets u16 × n, in key order, up to `lower`      n = (lower − 16) / 2
//             lower … upper: unused, any content
//             upper … end: the heap, n nodes in any order, without a gap
//   overflow  0  number u64 · 8  pad u16 (0) · 10 flags u16 · 12 pages u32 · 16 the value
//             one header for all its pages; more pages than the value needs are legal
//   node      0  low u16 · 2 high u16 · 4 flags u16 · 6 key bytes u16 · 8 key · then the data
//             leaf: low and high are the data's bytes; flags 0: the data follows;
//                   kNodeOverflow: a page number follows; kNodeTree: a TreeRecord follows
//             branch: low, high, flags are the child's page number; the first key is empty
//   meta      a page header (flags kPageMeta), then a MetaRecord at 16; the rest is unused
//   free list a tree with u64 transaction IDs as keys; a value is u64 count, then `count` page
//             numbers in descending order, then room of any content
//
// Keys have 16 or 8 bytes and values sizes in multiples of 8, so every node starts at a multiple
// of 8.

#ifndef WAYBILL_STORE_DISK_PAGE_WALK_PAGE_FORMAT_H_
#define WAYBILL_STORE_DISK_PAGE_WALK_PAGE_FORMAT_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "store/base/files.h"
#include "waybill/result.h"

namespace waybill::internal {

using PageNumber = std::uint64_t;
inline constexpr PageNumber kNoPage = ~PageNumber{0};
inline constexpr PageNumber kMetaPages = 2;

inline constexpr std::uint32_t kMetaMagic = 0xBEEFC0DE;
inline constexpr std::uint32_t kMetaVersion = 1;

inline constexpr std::uint16_t kPageBranch = 0x01;
inline constexpr std::uint16_t kPageLeaf = 0x02;
inline constexpr std::uint16_t kPageOverflow = 0x04;
inline constexpr std::uint16_t kPageMeta = 0x08;

inline constexpr std::uint16_t kNodeOverflow = 0x01;
inline constexpr std::uint16_t kNodeTree = 0x02;

// The free tree's flag. Other trees have none.
inline constexpr std::uint16_t kTreeIntegerKeys = 0x08;

// An LMDB cursor has no more levels.
inline constexpr unsigned kMaxTreeDepth = 32;
inline constexpr std::uint32_t kMinPageBytes = 512;
inline constexpr std::uint32_t kMaxPageBytes = 32768;

inline constexpr std::size_t kTableKeyBytes = 16;
inline constexpr std::size_t kFreeKeyBytes = 8;
inline constexpr std::uint32_t kMinValueBytes = 16;

struct PageHeader {
  PageNumber number;
  std::uint16_t pad;
  std::uint16_t flags;
  std::uint16_t lower;
  std::uint16_t upper;
};
static_assert(sizeof(PageHeader) == 16 && offsetof(PageHeader, lower) == 12);
inline constexpr std::size_t kPageHeaderBytes = sizeof(PageHeader);
inline constexpr std::size_t kOverflowPagesOffset = offsetof(PageHeader, lower);

struct NodeHeader {
  std::uint16_t low;
  std::uint16_t high;
  std::uint16_t flags;
  std::uint16_t key_bytes;

  std::uint32_t DataBytes() const { return low | std::uint32_t{high} << 16; }
  PageNumber Child() const { return DataBytes() | PageNumber{flags} << 32; }
};
static_assert(sizeof(NodeHeader) == 8);
inline constexpr std::size_t kNodeHeaderBytes = sizeof(NodeHeader);

// A tree's root and counts: in a meta page for the free and the main tree, in a leaf of the main
// tree for a named table.
struct TreeRecord {
  std::uint32_t pad = 0;  // the free tree's is the page size, any other's is 0
  std::uint16_t flags = 0;
  std::uint16_t depth = 0;
  std::uint64_t branch_pages = 0;
  std::uint64_t leaf_pages = 0;
  std::uint64_t overflow_pages = 0;
  std::uint64_t entries = 0;
  PageNumber root = kNoPage;
};
static_assert(sizeof(TreeRecord) == 48);

struct MetaRecord {
  std::uint32_t magic = kMetaMagic;
  std::uint32_t version = kMetaVersion;
  std::uint64_t address = 0;    // no fixed map
  std::uint64_t map_bytes = 0;  // no rule is about it
  TreeRecord free_tree;
  TreeRecord main_tree;
  PageNumber last_page = kMetaPages - 1;
  std::uint64_t txn_id = 0;
};
static_assert(sizeof(MetaRecord) == 136);
inline constexpr std::size_t kMetaBytes = kPageHeaderBytes + sizeof(MetaRecord);

template <typename T>
T Load(const std::byte* at) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value{};
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// The most bytes of a node with its data in the page. A larger value has an overflow extent.
constexpr std::size_t MaxNodeBytes(std::uint32_t page_bytes) {
  return (((page_bytes - kPageHeaderBytes) / 2) & ~std::size_t{1}) - 2;
}

constexpr bool IsPageSize(std::uint32_t bytes) {
  return std::has_single_bit(bytes) && bytes >= kMinPageBytes && bytes <= kMaxPageBytes;
}

// Reads with pread only, so that a shrinking file or a bad sector is an error and not a signal.
class PageFile {
 public:
  // The kernel fetches so much at once, ahead of the reads. What no tree uses, much of a file after
  // a migration, is not fetched.
  static constexpr std::uint64_t kChunkBytes = std::uint64_t{2} << 20;
  // No single extent is larger.
  static constexpr std::uint64_t kMaxExtentBytes = std::uint64_t{1} << 30;

  // Memory for an extent that is read. Use one for each extent in use at the same time.
  class Scratch {
   public:
    std::byte* Reserve(std::size_t bytes) {
      if (bytes > capacity_) {
        bytes_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
        capacity_ = bytes;
      }
      return bytes_.get();
    }

   private:
    std::unique_ptr<std::byte[]> bytes_;
    std::size_t capacity_ = 0;
  };

  // Does not take over the descriptor or move the file's offset.
  static Result<PageFile> Open(int fd);

  std::uint64_t size_bytes() const { return size_bytes_; }

  // `count` bytes at `offset`, aligned to 8 in memory. Valid until `scratch` is used again.
  // nullptr: past the end, unreadable or too large; why() says which.
  const std::byte* Read(std::uint64_t offset, std::uint64_t count, Scratch& scratch);
  const char* why() const { return why_; }
  // The first error of the disk, unless the caller goes on without what can't be read. Such an
  // error says nothing about the file.
  Result<void> CheckReads(OnReadError on_error) const {
    return on_error == OnReadError::kFail ? failure_ : Result<void>();
  }

 private:
  int fd_ = -1;
  std::uint64_t size_bytes_ = 0;
  std::vector<bool> fetched_;  // each chunk
  const char* why_ = "";
  Result<void> failure_;  // the first read that failed
};

// ---- The meta pages: rule 1

struct MetaSummary : MetaRecord {
  bool valid = false;
  bool rooted = false;    // valid, and the main tree has a root
  bool past_end = false;  // not valid, for this alone: a root lies outside the file
  const char* problem = "it cannot be read";  // if not valid
};

struct MetaPages {
  std::array<MetaSummary, kMetaPages> meta;
  std::uint32_t page_bytes = 0;  // 0: unknown, so nothing in the file can be found
  // The valid page that LMDB would choose; −1: none is valid.
  int newer_meta = -1;
  bool fresh = false;  // both have transaction ID 0 and no roots: never committed to
};

MetaPages ReadMetaPages(PageFile& file);

// ---- One page of a tree: rule 3

enum class TreeKind : std::uint8_t {
  kFree,   // 8-byte integer keys
  kMain,   // 16-byte keys: values, and named tables
  kTable,  // 16-byte keys: values
};

// Below, equal to or above zero, as LMDB orders the keys of such a tree.
int CompareKeys(TreeKind kind, const std::byte* a, const std::byte* b);

// All keys below a page are ≥ low and < high. nullptr: no bound.
struct KeyBounds {
  const std::byte* low = nullptr;
  const std::byte* high = nullptr;
};

// A branch or leaf page. Checks its layout, then gives access to its nodes.
class NodePage {
 public:
  // nullptr: the header, the offsets, every node, the heap and the order of the keys are sound.
  // Otherwise what is wrong, and nothing else may be called.
  const char* Open(const std::byte* bytes, PageNumber number, std::uint32_t page_bytes,
                   TreeKind kind);

  bool is_leaf() const { return is_leaf_; }
  unsigned count() const { return count_; }
  NodeHeader Header(unsigned i) const { return Load<NodeHeader>(bytes_ + Offset(i)); }
  // Not for key 0 of a branch, which is empty.
  const std::byte* Key(unsigned i) const { return bytes_ + Offset(i) + kNodeHeaderBytes; }
  const std::byte* Data(unsigned i) const { return Key(i) + key_bytes_; }

  bool IsWithin(KeyBounds bounds) const;
  // The bounds of child `i` of this branch, whose own are `own`.
  KeyBounds ChildBounds(unsigned i, KeyBounds own) const {
    return {i == 0 ? own.low : Key(i), i + 1 == count_ ? own.high : Key(i + 1)};
  }

 private:
  static constexpr std::size_t kGranule = 8;

  std::size_t Offset(unsigned i) const {
    return Load<std::uint16_t>(bytes_ + kPageHeaderBytes + std::size_t{2} * i);
  }
  static const char* LeafDataBytes(const NodeHeader& node, TreeKind kind, std::size_t& bytes);
  const char* CheckHeap(std::size_t upper, std::uint32_t page_bytes) const;
  const char* CheckOrder() const;

  const std::byte* bytes_ = nullptr;
  std::size_t key_bytes_ = 0;
  unsigned count_ = 0;
  bool is_leaf_ = false;
  TreeKind kind_ = TreeKind::kMain;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DISK_PAGE_WALK_PAGE_FORMAT_H_
