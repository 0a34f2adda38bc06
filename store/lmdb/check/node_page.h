// One branch or leaf page: checks its layout alone, then gives access to its nodes.

#ifndef WAYBILL_STORE_LMDB_CHECK_NODE_PAGE_H_
#define WAYBILL_STORE_LMDB_CHECK_NODE_PAGE_H_

#include <cstddef>
#include <cstdint>

#include "store/lmdb/check/page_format.h"

namespace waybill::internal {

enum class TreeKind : std::uint8_t {
  kFree,   // 8-byte integer keys
  kMain,   // 16-byte keys: values, and named tables
  kTable,  // 16-byte keys: values
};

constexpr std::size_t KeyBytes(TreeKind kind) {
  return kind == TreeKind::kFree ? kFreeKeyBytes : kTableKeyBytes;
}

// Below zero, zero or above, as LMDB orders the keys of such a tree.
int CompareKeys(TreeKind kind, const std::byte* a, const std::byte* b);

// The keys below a page are ≥ low and < high; nullptr: no bound.
struct KeyBounds {
  const std::byte* low = nullptr;
  const std::byte* high = nullptr;
};

class NodePage {
 public:
  // nullptr: the header, the offsets, every node and the heap keep every rule, keys are in order,
  // and
  // `*this` may be read. Otherwise what is wrong, and `*this` may not be read.
  const char* Open(const std::byte* bytes, PageNumber number, std::uint32_t page_bytes,
                   TreeKind kind);

  bool is_leaf() const { return is_leaf_; }
  unsigned count() const { return count_; }
  NodeHeader Header(unsigned i) const { return Load<NodeHeader>(bytes_ + Offset(i)); }
  // A branch's key 0 is empty: not to be read.
  const std::byte* Key(unsigned i) const { return bytes_ + Offset(i) + kNodeHeaderBytes; }
  const std::byte* Data(unsigned i) const { return Key(i) + key_bytes_; }

  bool IsWithin(KeyBounds bounds) const;
  // The bounds of child `i` of a branch that has these.
  KeyBounds ChildBounds(unsigned i, KeyBounds own) const {
    return {i == 0 ? own.low : Key(i), i + 1 == count_ ? own.high : Key(i + 1)};
  }

 private:
  std::size_t Offset(unsigned i) const {
    return Load<std::uint16_t>(bytes_ + kPageHeaderBytes + std::size_t{2} * i);
  }
  const char* CheckHeap(std::size_t upper, std::uint32_t page_bytes) const;
  const char* CheckOrder() const;

  const std::byte* bytes_ = nullptr;
  std::size_t key_bytes_ = 0;
  unsigned count_ = 0;
  bool is_leaf_ = false;
  TreeKind kind_ = TreeKind::kMain;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_LMDB_CHECK_NODE_PAGE_H_
