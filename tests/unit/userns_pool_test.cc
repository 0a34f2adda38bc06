#include <boost/test/unit_test.hpp>
#include <limits>
#include <string>
#include <vector>

#include "store/userns/pool.h"
#include "waybill/limits.h"

namespace waybill::internal {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

std::string ErrorOf(const Result<void>& result) {
  if (result) return "accepted";
  BOOST_TEST((result.error().code == ErrorCode::kInvalidArgument));
  BOOST_TEST(!result.error().hint.empty());
  return result.error().message;
}

std::string ErrorOf(std::uint64_t first, std::uint64_t count, std::uint64_t ids = kIdsPerBlock,
                    std::uint64_t max_pods = 1) {
  return ErrorOf(CheckUserNamespacePool({first, count, ids, max_pods}));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(userns_pool)

BOOST_AUTO_TEST_CASE(pools_that_are_none_are_refused_in_the_kubelets_words) {
  BOOST_TEST(ErrorOf(65536, 110 * 65536, 65536, 110) == "accepted");
  BOOST_TEST(ErrorOf(65537, 65536) == "kubelet user assigned ID 65537 is not a multiple of 65536");
  BOOST_TEST(ErrorOf(0, 65536) == "kubelet user assigned ID 0 must be greater or equal to 65536");
  BOOST_TEST(ErrorOf(65536, 131072, 131072) ==
             "kubelet user assigned ID 65536 is not a multiple of 131072");
  BOOST_TEST(ErrorOf(65536, 65537) ==
             "kubelet user assigned IDs length 65537 is not a multiple of 65536");
  BOOST_TEST(ErrorOf(65536, 109 * 65536, 65536, 110) ==
             "kubelet user assigned IDs are not enough to support 110 pods");
  BOOST_TEST(ErrorOf(65536, 0) == "kubelet user assigned IDs are not enough to support 1 pods");
  BOOST_TEST(ErrorOf(65536, 65536, 65535) ==
             "kubelet user namespace length 65535 is not a multiple of 65536");
  BOOST_TEST(ErrorOf(65536, 65536, 0) ==
             "invalid configuration: userNamespaces.idsPerPod must not be less than 65536");
  BOOST_TEST(ErrorOf(65536, 65536, kHostIds) ==
             "invalid configuration: userNamespaces.idsPerPod must not be more than 4294967295");
}

BOOST_AUTO_TEST_CASE(numbers_past_32_bits_do_not_wrap) {
  const std::uint64_t high = kMost - 65535;  // a multiple of 65,536
  const std::string past = " on, reach past 4294967295";
  BOOST_TEST(ErrorOf(65536, kHostIds) == "kubelet user assigned IDs, 4294967296 from 65536" + past);
  BOOST_TEST(ErrorOf(kHostIds, 65536) == "kubelet user assigned IDs, 65536 from 4294967296" + past);
  BOOST_TEST(ErrorOf(high, 65536) ==
             "kubelet user assigned IDs, 65536 from 18446744073709486080" + past);
  BOOST_TEST(ErrorOf(65536, high) ==
             "kubelet user assigned IDs, 18446744073709486080 from 65536" + past);
  BOOST_TEST(ErrorOf(high, high) ==
             "kubelet user assigned IDs, 18446744073709486080 from 18446744073709486080" + past);
  BOOST_TEST(ErrorOf(kMost, kMost, kMost, kMost) != "accepted");
  BOOST_TEST(ErrorOf(65536, 65536, kMost) != "accepted");
  BOOST_TEST(ErrorOf(65536, 65536, 65536, kMost) ==
             "kubelet user assigned IDs are not enough to support 18446744073709551615 pods");
}

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
  // Where the pool ends before, none is missing.
  BOOST_TEST(SlotsOf({65536, 10 * 65536, 65536, 1}).count == 10);
  BOOST_TEST(SlotsOf({kHostIds / 2, kHostIds / 2, kHostIds / 2, 0}).count == 0);
  // Of pools that are none, nothing.
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
  // As the kubelet looks at them, the length first.
  BOOST_TEST((relation(20, 2) == PoolRelation::kOtherLength));
  BOOST_TEST((RelationTo({65536, 0, kMost, 0}, kMost, kMost) == PoolRelation::kOutsidePool));
  BOOST_TEST((RelationTo({0, kMost, 2, 0}, kMost - 1, 2) == PoolRelation::kOutsidePool));
}

BOOST_AUTO_TEST_CASE(pod_uids) {
  const std::string bad = "invalid pod UID ";
  const std::string longest(kMaxPodUidBytes, 'x');
  for (const std::string& uid :
       {std::string("a"), std::string("..."), std::string(".x"), longest, std::string("ä\x7f\xff"),
        std::string("5d3d9a5e-2f3b-4b0c-9b0e-6a1f6f0c8a11")}) {
    BOOST_TEST(bool{CheckPodUid(uid)}, uid);
  }
  BOOST_TEST(ErrorOf(CheckPodUid("")) == bad + "\"\": it is empty");
  BOOST_TEST(ErrorOf(CheckPodUid(".")) == bad + "\".\": it names another directory");
  BOOST_TEST(ErrorOf(CheckPodUid("..")) == bad + "\"..\": it names another directory");
  BOOST_TEST(ErrorOf(CheckPodUid("a/b")) == bad + "\"a/b\": there is a slash in it");
  const std::string control = "\": there is a space or a control character in it";
  BOOST_TEST(ErrorOf(CheckPodUid("a b")) == bad + "\"a b" + control);
  BOOST_TEST(ErrorOf(CheckPodUid("a\n")) == bad + "\"a\\n" + control);
  BOOST_TEST(ErrorOf(CheckPodUid(std::string_view("a\0", 2))) == bad + "\"a\\u0000" + control);
  const std::string error = ErrorOf(CheckPodUid(longest + "x"));
  BOOST_TEST(error.ends_with("…: it has more than 253 bytes"), error);
  BOOST_TEST(error.size() < 300);
}

BOOST_AUTO_TEST_CASE(mappings) {
  BOOST_TEST(ErrorOf(CheckMapping(65536, 65536)) == "accepted");
  BOOST_TEST(ErrorOf(CheckMapping(131072, 131072)) == "accepted");
  BOOST_TEST(ErrorOf(CheckMapping(kHostIds - 131072, 65536)) == "accepted");
  BOOST_TEST(ErrorOf(CheckMapping(65536, 0)) == "wrong user namespace length 0");
  BOOST_TEST(ErrorOf(CheckMapping(65536, 65535)) == "wrong user namespace length 65535");
  BOOST_TEST(ErrorOf(CheckMapping(65537, 65536)) == "wrong user namespace offset specified 65537");
  BOOST_TEST(ErrorOf(CheckMapping(65536, 131072)) == "wrong user namespace offset specified 65536");
  BOOST_TEST(ErrorOf(CheckMapping(0, 65536)) == "id 0 is out of range");
  BOOST_TEST(ErrorOf(CheckMapping(0, kMost - 65535)) == "id 0 is out of range");
  BOOST_TEST(ErrorOf(CheckMapping(kHostIds - 65536, 65536)) == "id 4294901760 is out of range");
  BOOST_TEST(ErrorOf(CheckMapping(kHostIds / 2, kHostIds / 2)) == "id 2147483648 is out of range");
  BOOST_TEST(ErrorOf(CheckMapping(kHostIds, 65536)) == "id 4294967296 is out of range");
  BOOST_TEST(ErrorOf(CheckMapping(kMost - 65535, 65536)) ==
             "id 18446744073709486080 is out of range");
  BOOST_TEST(ErrorOf(CheckMapping(kMost - 65535, kMost - 65535)) ==
             "id 18446744073709486080 is out of range");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::internal
