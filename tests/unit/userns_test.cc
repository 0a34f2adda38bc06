// Ranges of host IDs: who gets which.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <limits>
#include <string>

#include "store/base/options.h"
#include "store/pods/pool.h"
#include "tests/support/expect_error.h"
#include "tests/support/node_store.h"
#include "tests/support/userns_store.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::testing {

// Ranges for pods in user namespaces: who gets which. More of it is in
// histories/user-namespaces.jsonl; what holds in every pool and every history, in
// model/userns_model.
BOOST_AUTO_TEST_SUITE(userns)

BOOST_AUTO_TEST_CASE(a_released_range_is_the_last_to_be_handed_out_again) {
  UsernsStore store(SmallPool(1, 8));
  const std::uint32_t first = store.Get("a");
  Must(store->ReleaseUserNamespace("a"));
  for (int i = 0; i < 7; ++i) BOOST_TEST(store.Get("p" + std::to_string(i)) != first);
  BOOST_TEST(store.Get("last") == first);
}

BOOST_FIXTURE_TEST_CASE(an_observer_answers_for_pods_that_have_one, WithUserns) {
  const std::uint32_t a = store.Get("a");
  store.Close();
  auto observer = Must(NodeStore::Observe({.directory = store.directory()}));
  const auto got = Must(observer->GetOrCreateUserNamespace({.pod_uid = "a", .host_users = false}));
  BOOST_TEST(got.uids.front().host_id == a * kIdsPerBlock);
  ExpectError(observer->GetOrCreateUserNamespace({.pod_uid = "b", .host_users = false}),
              ErrorCode::kNotOwner);
  ExpectError(observer->ReleaseUserNamespace("a"), ErrorCode::kNotOwner);
}

BOOST_FIXTURE_TEST_CASE(a_directory_of_pods_that_is_not_there_is_a_mistake_where_it_was_named,
                        WithUserns) {
  NodeStoreOptions options = store.Options();
  options.pods_directory = store.kubelet() / "pots";
  ExpectError(NodeStore::Open(options), ErrorCode::kNotFound);
  BOOST_TEST(!std::filesystem::exists(store.directory()));
  // In a kubelet directory it is found by itself, and may be missing.
  options.pods_directory.clear();
  options.kubelet_directory = store.kubelet();
  BOOST_TEST(Must(NodeStore::Open(options))->recovery_report().user_namespaces.files_seen == 0U);
  store.WriteMapping("a", 9);
  BOOST_TEST(Must(NodeStore::Open(options))->recovery_report().user_namespaces.imported == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(subordinate_ids)

namespace {

const std::string kLine = "0: kubelet 65536 2147483648\n";

Result<IdPool> PoolOf(const std::string& uids, const std::string& gids) {
  return PoolOfSubordinateIds(
      {.user_exists = true, .tool_exists = true, .uids = uids, .gids = gids});
}

std::string ErrorOf(const std::string& uids, const std::string& gids) {
  const auto pool = PoolOf(uids, gids);
  if (pool) return "accepted";
  BOOST_TEST((pool.error().code == ErrorCode::kInvalidArgument));
  BOOST_TEST(!pool.error().hint.empty());
  return pool.error().message;
}

std::string ErrorOf(const std::string& both) { return ErrorOf(both, both); }

}  // namespace

// As v1.37.2 and v1.38.0-beta.0 have it.
BOOST_AUTO_TEST_CASE(each_release_has_its_own_rules) {
  const std::string missing = "exec: \"getsubids\": executable file not found in $PATH";
  const std::string past = " ends past the last mappable ID 4294967294";
  const std::string to_end = "0: kubelet 65536 4294901760\n";
  const std::string one_less = "0: kubelet 65536 4294836224\n";
  const struct {
    SubordinateIds found;
    std::string of_37;  // how many IDs, or the error
    std::string of_38;
  } rows[] = {
      {{}, "4294901760", "4294836224"},
      {{.tool_exists = true}, "4294901760", "4294836224"},
      {{.user_exists = true}, missing, "4294836224"},
      {{true, true, one_less, one_less}, "4294836224", "4294836224"},
      {{true, true, to_end, to_end},
       "4294901760",
       "kubelet user assigned ID 65536 with assigned IDs length 4294901760" + past},
  };
  for (const auto& row : rows) {
    for (const int minor : {36, 37, 38, 39}) {
      const auto pool = PoolOfSubordinateIds(row.found, kIdsPerBlock, 110, PoolRulesOf(minor));
      BOOST_TEST((pool ? std::to_string(pool->id_count) : pool.error().message) ==
                     (minor < 38 ? row.of_37 : row.of_38),
                 minor);
    }
  }
  static_assert(PoolRulesOf(38).asks_getent && !PoolRulesOf(37).asks_getent);
}

BOOST_AUTO_TEST_CASE(without_the_user_or_the_tool_it_is_the_default) {
  for (const SubordinateIds& found :
       {SubordinateIds{false, false, "", ""}, SubordinateIds{true, false, kLine, kLine},
        SubordinateIds{false, true, "a", "b"}}) {
    const auto pool = PoolOfSubordinateIds(found, 131072, 50);
    BOOST_TEST_REQUIRE(pool.has_value());
    BOOST_TEST((*pool == IdPool::Default(131072, 50)));
  }
  // The default, too, must be a valid pool.
  BOOST_TEST(!PoolOfSubordinateIds({}, 0));
  BOOST_TEST(!PoolOfSubordinateIds({}, 65537));
  BOOST_TEST(!PoolOfSubordinateIds({}, 65536, 65535));
}

BOOST_AUTO_TEST_CASE(the_two_outputs_must_agree) {
  for (const char* const gids : {"0: kubelet 65536 2147418112\n", ""}) {
    BOOST_TEST(ErrorOf(kLine, gids) == "mismatched subuids and subgids for user \"kubelet\"");
  }
}

BOOST_AUTO_TEST_CASE(hostile_output_is_quoted_and_cut) {
  const std::string escape = "0: kubelet \x1b[2J\x7f \xc2\x9b \xff";
  BOOST_TEST(ErrorOf(escape) == "invalid line \"0: kubelet \\u001b[2J\\u007f \\u009b \\ufffd\"");
  BOOST_TEST(ErrorOf(std::string("0: kubelet\0 1 1", 15)).find('\0') == std::string::npos);
  for (const std::string& flood :
       {std::string(1 << 20, 'x'), std::string(1 << 20, ' '), std::string(1 << 20, '\n') + "x",
        std::string(1 << 20, '\0'), "0: kubelet 1 " + std::string(1 << 20, '9'),
        "0: kubelet " + std::string(1 << 20, '0') + "x 1"}) {
    const std::string error = ErrorOf(flood);
    BOOST_TEST(error.size() < 4000);
    BOOST_TEST(error != "accepted");
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing

namespace waybill::internal {

// Pools of host IDs by their numbers. What is wrong with one, with a range or with a pod UID:
// texts/userns-pools.jsonl, host-id-ranges.jsonl, pod-uids.jsonl.
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
  const IdPool pool = IdPool::Default();
  BOOST_TEST((pool == IdPool()));
  BOOST_TEST(pool.first_id == 65536);
  BOOST_TEST(pool.id_count == kHostIds - 65536);
  BOOST_TEST(SlotsOf(pool).count == 65534);
  BOOST_TEST(ErrorOf(CheckIdPool(IdPool::Default(65536, 65534))) == "accepted");
  BOOST_TEST(ErrorOf(CheckIdPool(IdPool::Default(65536, 65535))) ==
             "kubelet user assigned IDs are not enough to support 65535 pods");
  // No multiple of it is 2^32.
  const IdPool threes = IdPool::Default(3 * 65536, 110);
  BOOST_TEST(ErrorOf(CheckIdPool(threes)) == "accepted");
  BOOST_TEST(threes.first_id == 3 * 65536);
  BOOST_TEST(SlotsOf(threes).count == 21844);
  for (const std::uint64_t ids : {std::uint64_t{0}, std::uint64_t{1}, kHostIds, kMost}) {
    BOOST_TEST(!CheckIdPool(IdPool::Default(ids, 0)));
  }
}

BOOST_AUTO_TEST_CASE(slots_with_the_hosts_block_or_the_last_are_not_handed_out) {
  for (std::uint64_t blocks = 1; blocks < kBlocks; blocks += blocks < 300 ? 1 : 77) {
    const std::uint64_t ids = blocks * kIdsPerBlock;
    const IdPool pool = IdPool::Default(ids, 0);
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
  const IdPool pool{10 * 65536, 5 * 65536, 65536, 1};
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

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::internal
