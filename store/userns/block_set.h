// Which blocks are not free: one bit each, 8 KiB for all host IDs.

#ifndef WAYBILL_STORE_USERNS_BLOCK_SET_H_
#define WAYBILL_STORE_USERNS_BLOCK_SET_H_

#include <array>
#include <cstdint>
#include <optional>

#include "store/userns/pool.h"

namespace waybill::internal {

class BlockSet {
 public:
  void Clear() { words_ = {}; }
  void Add(BlockRange blocks);
  void Remove(BlockRange blocks);
  bool Has(std::uint32_t block) const { return (words_[block / 64] >> (block % 64) & 1) != 0; }
  // Whether one of them is in the set.
  bool HasAnyOf(BlockRange blocks) const;
  // The first slot, from `from` on and then from the beginning, of which no block is in the set.
  // Looks at up to 64 blocks at once: a full set costs some 2,000 such looks at most.
  std::optional<std::uint32_t> FindFree(const Slots& slots, std::uint32_t from) const;

  struct Count {
    std::uint32_t free = 0;         // slots
    std::uint32_t largest_run = 0;  // of free slots side by side
  };
  Count CountFree(const Slots& slots) const;

 private:
  // Some slots side by side that were looked at together.
  struct Window {
    std::uint32_t slots = 0;
    std::uint64_t free = 0;    // a bit for each of them of which no block is in the set,
    std::uint32_t stride = 1;  // so many bits apart
  };

  // Slots from `slot` on; at least one, and none at or behind `end`.
  Window LookAt(const Slots& slots, std::uint32_t slot, std::uint32_t end) const;
  std::optional<std::uint32_t> FindFree(const Slots& slots, std::uint32_t from,
                                        std::uint32_t end) const;
  // 64 blocks from `block` on.
  std::uint64_t BitsFrom(std::uint32_t block) const;

  std::array<std::uint64_t, kBlocks / 64> words_{};
};
static_assert(sizeof(BlockSet) == 8192);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_USERNS_BLOCK_SET_H_
