#include "store/userns/block_set.h"

#include <algorithm>
#include <bit>

namespace waybill::internal {
namespace {

constexpr std::uint32_t kBits = 64;

// `count` bits from `first` on; first + count <= 64.
std::uint64_t Mask(std::uint32_t first, std::uint32_t count) {
  if (count == 0) return 0;
  return (~std::uint64_t{0} >> (kBits - count)) << first;
}

// Calls `use(word index, mask)` for the words that hold `blocks`, until it returns false.
template <typename Use>
void ForEachWord(BlockRange blocks, Use use) {
  std::uint32_t block = std::min(blocks.first, kBlocks);
  const std::uint32_t end = block + std::min(blocks.count, kBlocks - block);
  while (block < end) {
    const std::uint32_t in_word = block % kBits;
    const std::uint32_t count = std::min(end - block, kBits - in_word);
    if (!use(block / kBits, Mask(in_word, count))) return;
    block += count;
  }
}

// Each bit becomes the OR of itself and the `count` - 1 above it; 0 < count < 64.
std::uint64_t SpreadDown(std::uint64_t bits, std::uint32_t count) {
  std::uint32_t spread = 1;
  for (; spread * 2 <= count; spread *= 2) bits |= bits >> spread;
  return bits | bits >> (count - spread);
}

// The lowest of each `stride` bits, `count` times; 0 < stride * count <= 64.
std::uint64_t EveryNth(std::uint32_t stride, std::uint32_t count) {
  std::uint64_t bits = 1;
  for (std::uint32_t done = 1; done < count; done *= 2) bits |= bits << (done * stride);
  return bits & Mask(0, stride * count);
}

}  // namespace

void BlockSet::Add(BlockRange blocks) {
  ForEachWord(blocks, [this](std::uint32_t word, std::uint64_t mask) {
    words_[word] |= mask;
    return true;
  });
}

void BlockSet::Remove(BlockRange blocks) {
  ForEachWord(blocks, [this](std::uint32_t word, std::uint64_t mask) {
    words_[word] &= ~mask;
    return true;
  });
}

bool BlockSet::HasAnyOf(BlockRange blocks) const {
  bool any = false;
  ForEachWord(blocks, [&](std::uint32_t word, std::uint64_t mask) {
    any = (words_[word] & mask) != 0;
    return !any;
  });
  return any;
}

std::uint64_t BlockSet::BitsFrom(std::uint32_t block) const {
  const std::uint32_t word = block / kBits;
  const std::uint32_t shift = block % kBits;
  std::uint64_t bits = words_[word] >> shift;
  if (shift != 0 && word + 1 < words_.size()) bits |= words_[word + 1] << (kBits - shift);
  return bits;
}

BlockSet::Window BlockSet::LookAt(const Slots& slots, std::uint32_t slot, std::uint32_t end) const {
  const std::uint32_t size = slots.blocks_per_slot;
  const BlockRange blocks = slots.At(slot);
  if (size >= kBits) return {1, HasAnyOf(blocks) ? 0U : 1U, 1};
  const std::uint32_t count = std::min(kBits / size, end - slot);
  const std::uint64_t taken = SpreadDown(BitsFrom(blocks.first), size);
  return {count, ~taken & EveryNth(size, count), size};
}

std::optional<std::uint32_t> BlockSet::FindFree(const Slots& slots, std::uint32_t from,
                                                std::uint32_t end) const {
  for (std::uint32_t slot = from; slot < end;) {
    const Window window = LookAt(slots, slot, end);
    if (window.free != 0) {
      return slot + static_cast<std::uint32_t>(std::countr_zero(window.free)) / window.stride;
    }
    slot += window.slots;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> BlockSet::FindFree(const Slots& slots, std::uint32_t from) const {
  from = std::min(from, slots.count);
  if (auto found = FindFree(slots, from, slots.count)) return found;
  return FindFree(slots, 0, from);
}

BlockSet::Count BlockSet::CountFree(const Slots& slots) const {
  Count count;
  std::uint32_t run = 0;
  for (std::uint32_t slot = 0; slot < slots.count;) {
    const Window window = LookAt(slots, slot, slots.count);
    for (std::uint32_t i = 0; i < window.slots; ++i) {
      const bool free = (window.free >> (i * window.stride) & 1) != 0;
      run = free ? run + 1 : 0;
      count.free += free ? 1 : 0;
      count.largest_run = std::max(count.largest_run, run);
    }
    slot += window.slots;
  }
  return count;
}

}  // namespace waybill::internal
