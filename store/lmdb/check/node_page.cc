#include "store/lmdb/check/node_page.h"

#include <array>
#include <cstring>

namespace waybill::internal {
namespace {

constexpr std::size_t kGranule = 8;

// The bytes a leaf node keeps in the page behind its key; 0: no such node is legal.
std::size_t LeafDataBytes(const NodeHeader& node, TreeKind kind, const char** problem) {
  const std::uint32_t size = node.DataBytes();
  if (node.flags == kNodeTree && kind == TreeKind::kMain) {
    if (size == sizeof(TreeRecord)) return size;
    *problem = "a table's entry has a wrong size";
    return 0;
  }
  if (node.flags != 0 && node.flags != kNodeOverflow) {
    *problem = "a node has flags that are not legal here";
    return 0;
  }
  const std::uint32_t least = kind == TreeKind::kFree ? sizeof(std::uint64_t) : kMinValueBytes;
  if (size < least || size % kGranule != 0) {
    *problem = "a value has a size that is not legal here";
    return 0;
  }
  return node.flags == kNodeOverflow ? sizeof(PageNumber) : size;
}

}  // namespace

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
  key_bytes_ = KeyBytes(kind);
  is_leaf_ = header.flags == kPageLeaf;
  count_ = static_cast<unsigned>((header.lower - kPageHeaderBytes) / 2);
  // LMDB aborts on a branch with one child, but lets the free tree have such.
  if (count_ < (is_leaf_ || kind == TreeKind::kFree ? 1U : 2U)) return "it has too few nodes";
  if (const char* problem = CheckHeap(header.upper, page_bytes)) return problem;
  return CheckOrder();
}

const char* NodePage::CheckHeap(std::size_t upper, std::uint32_t page_bytes) const {
  // Node sizes by start, in granules. Every node is entered once; then the heap is followed from
  // `upper`: it must meet all of them, end to end.
  std::array<std::uint16_t, kMaxPageBytes / kGranule> sizes;
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
      const char* problem = nullptr;
      const std::size_t data_bytes = LeafDataBytes(node, kind_, &problem);
      if (problem != nullptr) return problem;
      size += data_bytes;
      if (size > MaxNodeBytes(page_bytes)) return "a value is too large to lie in the page";
    }
    if (size > page_bytes - offset) return "a node reaches past the page";
    // LMDB opens a table by a C string: one with such a name would be walked but never read.
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

// Keys are in order already, so the outermost tell. A branch's key 1 is above the lower bound, or
// no key could lie below its child 0.
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
