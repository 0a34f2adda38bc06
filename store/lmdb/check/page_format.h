// The data file of LMDB 0.9 (64-bit, host byte order), as far as the page walk reads it.
//
//   file      page 0 (meta) · page 1 (meta) · pages 2 … last page, each of them in exactly one of:
//             the free tree, the main tree, a named table's tree, an overflow extent, the free list
//
//   page      0  number u64 · 8  pad u16 (0) · 10 flags u16 · 12 lower u16 · 14 upper u16
//             16 offsets u16 × n, in key order, up to `lower`      n = (lower − 16) / 2
//             lower … upper: not in use, any content
//             upper … end: the heap, n nodes in any order, without a gap
//   overflow  0  number u64 · 8  pad u16 (0) · 10 flags u16 · 12 pages u32 · 16 the value
//             one header for all its pages; more pages than the value needs are legal
//   node      0  low u16 · 2 high u16 · 4 flags u16 · 6 key bytes u16 · 8 key · then the data
//             leaf: low and high are the data's bytes; flags 0: the data follows;
//                   kNodeOverflow: a page number follows; kNodeTree: a TreeRecord follows
//             branch: low, high, flags are the child's page number; the first key is empty
//   meta      a page header (flags kPageMeta), then a MetaRecord at 16; the rest is not in use
//   free list a tree with u64 transaction IDs as keys; a value is u64 count, then `count` page
//             numbers in descending order, then room of any content
//
// Values with 16-byte keys have sizes in multiples of 8, so every node here starts at a multiple
// of 8.

#ifndef WAYBILL_STORE_LMDB_CHECK_PAGE_FORMAT_H_
#define WAYBILL_STORE_LMDB_CHECK_PAGE_FORMAT_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

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

// Flags of a tree. Tables and the main tree have none.
inline constexpr std::uint16_t kTreeIntegerKeys = 0x08;

// LMDB's cursor holds no more levels.
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
  std::uint16_t first;
  std::uint16_t second;
  std::uint16_t flags;
  std::uint16_t key_bytes;

  std::uint32_t Low32() const {
    constexpr bool kLittle = std::endian::native == std::endian::little;
    const std::uint32_t low = kLittle ? first : second;
    const std::uint32_t high = kLittle ? second : first;
    return low | high << 16;
  }
  std::uint32_t DataBytes() const { return Low32(); }
  PageNumber Child() const { return Low32() | PageNumber{flags} << 32; }
};
static_assert(sizeof(NodeHeader) == 8);
inline constexpr std::size_t kNodeHeaderBytes = sizeof(NodeHeader);

// A tree's root and counts: in a meta page for the free and the main tree, in a leaf of the main
// tree for a named table.
struct TreeRecord {
  std::uint32_t pad;  // the free tree's is the page size, any other's is 0
  std::uint16_t flags;
  std::uint16_t depth;
  std::uint64_t branch_pages;
  std::uint64_t leaf_pages;
  std::uint64_t overflow_pages;
  std::uint64_t entries;
  PageNumber root;
};
static_assert(sizeof(TreeRecord) == 48);

struct MetaRecord {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint64_t address;  // 0: no fixed map
  std::uint64_t map_bytes;
  TreeRecord free_tree;
  TreeRecord main_tree;
  PageNumber last_page;
  std::uint64_t txn_id;
};
static_assert(sizeof(MetaRecord) == 136);
inline constexpr std::size_t kMetaBytes = kPageHeaderBytes + sizeof(MetaRecord);

template <typename T>
T Load(const std::byte* at) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// The most bytes of a node that keeps its data in the page; a larger one has an overflow extent.
constexpr std::size_t MaxNodeBytes(std::uint32_t page_bytes) {
  return (((page_bytes - kPageHeaderBytes) / 2) & ~std::size_t{1}) - 2;
}

constexpr bool IsPageSize(std::uint32_t bytes) {
  return std::has_single_bit(bytes) && bytes >= kMinPageBytes && bytes <= kMaxPageBytes;
}

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_LMDB_CHECK_PAGE_FORMAT_H_
