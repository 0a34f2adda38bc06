// Pools of host IDs by their numbers. What is wrong with one, with a range or with a pod UID:
// texts/userns-pools.jsonl, host-id-ranges.jsonl, pod-uids.jsonl.

#include <boost/test/unit_test.hpp>
#include <limits>
#include <string>
#include <vector>

#include "store/node/userns/pool.h"
#include "waybill/limits.h"

namespace waybill::internal {

BOOST_AUTO_TEST_SUITE(userns_pool)

namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

std::string ErrorOf(const Result<void>& result) {
  if (result) return "accepted";
  BOOST_TEST((result.error().code == ErrorCode::kInvalidArgument));
  BOOST_TEST(!result.error().hint.empty());
  return result.error().message;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_default_pool_is_all_but_the_hosts_ids) {
  const UserNamespacePool pool = UserNamespacePool::Default();
  BOOST_TEST((pool == UserNamespacePool()));
  BOOST_TEST(pool.first_id == 65536);
  BOOST_TEST(pool.id_count == kHostIds - 65536);
  BOOST_TEST(SlotsOf(pool).count == 65534);
  BOOST_TEST(ErrorOf(CheckUserNamespacePool(UserNamespacePool::Default(65536, 65534))) ==
             "accepted");
  BOOST_TEST(ErrorOf(CheckUserNamespacePool(UserNamespacePool::Default(65536, 65535))) ==
             "kubelet user assigned IDs are not enough to support 65535 pods");
  // No multiple of it is 2^32.
  const UserNamespacePool threes = UserNamespacePool::Default(3 * 65536, 110);
  BOOST_TEST(ErrorOf(CheckUserNamespacePool(threes)) == "accepted");
  BOOST_TEST(threes.first_id == 3 * 65536);
  BOOST_TEST(SlotsOf(threes).count == 21844);
  for (const std::uint64_t ids : {std::uint64_t{0}, std::uint64_t{1}, kHostIds, kMost}) {
    BOOST_TEST(!CheckUserNamespacePool(UserNamespacePool::Default(ids, 0)));
  }
}

BOOST_AUTO_TEST_CASE(slots_with_the_hosts_block_or_the_last_are_not_handed_out) {
  for (std::uint64_t blocks = 1; blocks < kBlocks; blocks += blocks < 300 ? 1 : 77) {
    const std::uint64_t ids = blocks * kIdsPerBlock;
    const UserNamespacePool pool = UserNamespacePool::Default(ids, 0);
    const Slots slots = SlotsOf(pool);
    BOOST_TEST_REQUIRE(slots.count <= kBlocks / blocks - 1);
    // At most the last is missing.
    BOOST_TEST_REQUIRE(slots.count + 2 >= kBlocks / blocks);
    if (slots.count == 0) continue;
    BOOST_TEST_REQUIRE(slots.At(0).first == blocks);
    const BlockRange last = slots.At(slots.count - 1);
    BOOST_TEST_REQUIRE(last.end() <= kLastBlock);
    BOOST_TEST_REQUIRE(last.end() + blocks >= kLastBlock);
  }
  // No range is missing if the pool ends before the last block.
  BOOST_TEST(SlotsOf({65536, 10 * 65536, 65536, 1}).count == 10);
  BOOST_TEST(SlotsOf({kHostIds / 2, kHostIds / 2, kHostIds / 2, 0}).count == 0);
  // Invalid pools have no slots.
  BOOST_TEST(SlotsOf({0, kHostIds, 0, 0}).count == 0);
  BOOST_TEST(SlotsOf({kMost, kMost, kMost, 0}).count == 0);
  BOOST_TEST(SlotsOf({65536, kMost, 65536, 0}).count == 0);
  BOOST_TEST(SlotsOf({0, 2 * 65536, 65536, 0}).count == 1);
  BOOST_TEST(SlotsOf({0, 2 * 65536, 65536, 0}).At(0).first == 1);
}

BOOST_AUTO_TEST_CASE(blocks_of_a_range) {
  BOOST_TEST((BlocksOf(65536, 65536) == BlockRange{1, 1}));
  BOOST_TEST((BlocksOf(65535, 2) == BlockRange{0, 2}));
  BOOST_TEST((BlocksOf(65536, 65537) == BlockRange{1, 2}));
  BOOST_TEST((BlocksOf(0, 1) == BlockRange{0, 1}));
  BOOST_TEST((BlocksOf(7, 0) == BlockRange{}));
  BOOST_TEST((BlocksOf(kHostIds, 1) == BlockRange{}));
  BOOST_TEST((BlocksOf(kMost, kMost) == BlockRange{}));
  BOOST_TEST((BlocksOf(kHostIds - 1, 1) == BlockRange{65535, 1}));
  BOOST_TEST((BlocksOf(kHostIds - 1, kMost) == BlockRange{65535, 1}));
  BOOST_TEST((BlocksOf(0, kMost) == BlockRange{0, 65536}));
  BOOST_TEST((BlocksOf(1, kHostIds) == BlockRange{0, 65536}));
}

BOOST_AUTO_TEST_CASE(relation_to_the_pool) {
  const UserNamespacePool pool{10 * 65536, 5 * 65536, 65536, 1};
  const auto relation = [&](std::uint64_t block, std::uint64_t blocks) {
    return RelationTo(pool, block * 65536, blocks * 65536);
  };
  BOOST_TEST((relation(9, 1) == PoolRelation::kOutsidePool));
  BOOST_TEST((relation(10, 1) == PoolRelation::kInPool));
  BOOST_TEST((relation(14, 1) == PoolRelation::kInPool));
  BOOST_TEST((relation(15, 1) == PoolRelation::kOutsidePool));
  BOOST_TEST((relation(10, 2) == PoolRelation::kOtherLength));
  // Like the kubelet, compare the length first.
  BOOST_TEST((relation(20, 2) == PoolRelation::kOtherLength));
  BOOST_TEST((RelationTo({65536, 0, kMost, 0}, kMost, kMost) == PoolRelation::kOutsidePool));
  BOOST_TEST((RelationTo({0, kMost, 2, 0}, kMost - 1, 2) == PoolRelation::kOutsidePool));
}

BOOST_AUTO_TEST_CASE(a_pod_uid_of_any_bytes) {
  BOOST_TEST(bool{CheckPodUid("\xff")});
  const std::string error = ErrorOf(CheckPodUid(std::string(kMaxPodUidBytes + 1, 'x')));
  BOOST_TEST(error.size() < 300);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::internal
