#include "store/userns/block_set.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <optional>
#include <vector>

#include "tests/support/draw.h"

namespace waybill::internal {
namespace {

using testing::Draw;
using testing::SeedOfThisRun;

// What BlockSet must do, one block at a time.
class NaiveSet {
 public:
  void Set(BlockRange blocks, bool value) {
    for (std::uint64_t block = blocks.first; block < std::uint64_t{blocks.first} + blocks.count;
         ++block) {
      if (block < kBlocks) taken_[block] = value;
    }
  }
  bool Has(std::uint32_t block) const { return taken_[block]; }
  bool HasAnyOf(BlockRange blocks) const {
    for (std::uint64_t block = blocks.first; block < std::uint64_t{blocks.first} + blocks.count;
         ++block) {
      if (block < kBlocks && taken_[block]) return true;
    }
    return false;
  }
  std::optional<std::uint32_t> FindFree(const Slots& slots, std::uint32_t from) const {
    if (from > slots.count) from = slots.count;
    for (std::uint32_t i = 0; i < slots.count; ++i) {
      const std::uint32_t slot = (from + i) % slots.count;
      if (!HasAnyOf(slots.At(slot))) return slot;
    }
    return std::nullopt;
  }
  BlockSet::Count CountFree(const Slots& slots) const {
    BlockSet::Count count;
    std::uint32_t run = 0;
    for (std::uint32_t slot = 0; slot < slots.count; ++slot) {
      run = HasAnyOf(slots.At(slot)) ? 0 : run + 1;
      count.free += run > 0 ? 1 : 0;
      count.largest_run = std::max(count.largest_run, run);
    }
    return count;
  }

 private:
  std::vector<bool> taken_ = std::vector<bool>(kBlocks, false);
};

// Short and long ones, at word borders and elsewhere, some past the end.
BlockRange AnyBlocks(Draw& draw) {
  const auto any = [&](std::size_t below) { return static_cast<std::uint32_t>(draw.Below(below)); };
  const std::uint32_t first = draw.OneIn(4) ? any(kBlocks / 64 + 1) * 64 : any(kBlocks);
  switch (draw.Below(4)) {
    case 0:
      return {first, 1};
    case 1:
      return {first, any(4)};
    case 2:
      return {first, any(200)};
    default:
      return {first, any(5000)};
  }
}

Slots AnySlots(Draw& draw) {
  const std::vector<std::uint32_t> sizes = {1,  1,  2,   3,   4,   5,    7,    16,   31,
                                            32, 33, 63,  64,  65,  100,  128,  1000, 4096,
                                            21, 22, 255, 256, 257, 8191, 16384};
  Slots slots;
  slots.blocks_per_slot = draw.From(sizes);
  const std::uint32_t all = kBlocks / slots.blocks_per_slot;
  const auto first = static_cast<std::uint32_t>(draw.OneIn(2) ? 1 : draw.Below(all));
  slots.first_block = first * slots.blocks_per_slot;
  slots.count = static_cast<std::uint32_t>(draw.OneIn(3) ? all - first : draw.Below(all - first));
  return slots;
}

void ExpectSame(const BlockSet& set, const NaiveSet& naive, const Slots& slots, Draw& draw) {
  const auto from = static_cast<std::uint32_t>(draw.Below(slots.count + 2));
  BOOST_TEST_CONTEXT("slots of " << slots.blocks_per_slot << ", " << slots.count << " from block "
                                 << slots.first_block << " on; looking from " << from) {
    const auto found = set.FindFree(slots, from);
    const auto expected = naive.FindFree(slots, from);
    BOOST_TEST((found == expected));
    const BlockSet::Count count = set.CountFree(slots);
    const BlockSet::Count expected_count = naive.CountFree(slots);
    BOOST_TEST(count.free == expected_count.free);
    BOOST_TEST(count.largest_run == expected_count.largest_run);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(block_set)

BOOST_AUTO_TEST_CASE(is_what_a_naive_set_is) {
  const std::uint64_t seed = SeedOfThisRun();
  BOOST_TEST_MESSAGE("seed " << seed);
  Draw draw(seed);
  BOOST_TEST_CONTEXT("seed " << seed) {
    for (int round = 0; round < 20; ++round) {
      BlockSet set;
      NaiveSet naive;
      // From nearly empty to nearly full.
      const bool fills = draw.OneIn(2);
      if (fills) {
        set.Add({0, kBlocks});
        naive.Set({0, kBlocks}, true);
      }
      for (int step = 0; step < 200; ++step) {
        const BlockRange blocks = AnyBlocks(draw);
        const bool add = draw.OneIn(3) == fills;
        if (add) {
          set.Add(blocks);
        } else {
          set.Remove(blocks);
        }
        naive.Set(blocks, add);
        const BlockRange asked = AnyBlocks(draw);
        BOOST_TEST(set.HasAnyOf(asked) == naive.HasAnyOf(asked));
        if (step % 8 == 0) ExpectSame(set, naive, AnySlots(draw), draw);
      }
      std::uint32_t different = 0;
      for (std::uint32_t block = 0; block < kBlocks; ++block) {
        different += set.Has(block) == naive.Has(block) ? 0 : 1;
      }
      BOOST_TEST(different == 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(each_slot_is_found_when_it_alone_is_free) {
  for (const std::uint32_t size : {1U, 2U, 3U, 31U, 32U, 33U, 63U, 64U, 65U, 1000U}) {
    const Slots slots{size, size, (kBlocks - size) / size};
    BlockSet set;
    set.Add({0, kBlocks});
    std::uint32_t wrong = 0;
    // Each way round: from behind it, from before it, and from itself.
    for (std::uint32_t slot = 0; slot < slots.count; slot += slot < 300 ? 1 : 97) {
      set.Remove(slots.At(slot));
      for (const std::uint32_t from : {0U, slot, slot + 1, slots.count, kBlocks}) {
        wrong += set.FindFree(slots, from) == slot ? 0 : 1;
      }
      set.Add({slots.At(slot).first + size - 1, 1});
      wrong += set.FindFree(slots, 0) ? 1 : 0;
      set.Add(slots.At(slot));
    }
    BOOST_TEST(wrong == 0, "slots of " << size);
  }
}

BOOST_AUTO_TEST_CASE(bounds_hold) {
  BlockSet set;
  set.Add({kBlocks - 1, 5});
  set.Add({kBlocks, 5});
  set.Add({0xffffffff, 0xffffffff});
  BOOST_TEST(set.Has(kBlocks - 1));
  BOOST_TEST(!set.Has(0));
  BOOST_TEST(set.HasAnyOf({kBlocks - 2, 0xffffffff}));
  BOOST_TEST(!set.HasAnyOf({kBlocks, 0xffffffff}));
  BOOST_TEST(!set.HasAnyOf({0, kBlocks - 1}));
  BOOST_TEST(!set.HasAnyOf({kBlocks - 1, 0}));
  BOOST_TEST((set.FindFree({1, 1, 0}, 0) == std::nullopt));
  BOOST_TEST(set.CountFree({1, 1, 0}).free == 0);
  BOOST_TEST((set.FindFree({kBlocks - 1, 1, 1}, 0) == std::nullopt));
  set.Clear();
  BOOST_TEST((set.FindFree({kBlocks - 1, 1, 1}, 0) == 0U));
  BOOST_TEST(set.CountFree({1, 1, kBlocks - 2}).largest_run == kBlocks - 2);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::internal
