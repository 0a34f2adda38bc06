// The three reports on user namespaces that users of the kubelet wrote: each is closed here.

#include <boost/test/unit_test.hpp>
#include <set>
#include <string>

#include "tests/support/userns_store.h"

namespace waybill::testing {

namespace {

constexpr std::uint32_t kLastBlock = 65535;

// All blocks that a pool has left.
std::set<std::uint32_t> UseUp(UsernsStore& store) {
  std::set<std::uint32_t> blocks;
  for (int i = 0;; ++i) {
    const auto got = store.Try("filler-" + std::to_string(i));
    if (!got) {
      BOOST_TEST((got.error().code == ErrorCode::kLimitExceeded), got.error().ToString());
      return blocks;
    }
    const IdMapping& mapping = got->uids.front();
    for (std::uint64_t id = mapping.host_id; id < mapping.host_id + std::uint64_t{mapping.length};
         id += kIdsPerBlock) {
      BOOST_TEST(blocks.insert(static_cast<std::uint32_t>(id / kIdsPerBlock)).second);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(userns_reports)

// kubernetes#141941: a kubelet does not start where a stored mapping lies outside its pool.
BOOST_AUTO_TEST_CASE(a_mapping_outside_the_pool_of_today) {
  UsernsStore store(SmallPool(1, 8));
  const std::uint32_t before = store.Get("stored");
  store.WriteMapping("from-a-kubelet", 300);
  store.SetPool(SmallPool(100, 4));
  const UserNamespaceReport& report = store.Reopen();
  BOOST_TEST(report.imported == 1U);
  BOOST_TEST(report.outside_pool == 2U);
  BOOST_TEST(store.Get("stored") == before);
  BOOST_TEST(store.Get("from-a-kubelet") == 300U);
  BOOST_TEST((UseUp(store) == std::set<std::uint32_t>{100, 101, 102, 103}));
  // Half in, half out: it blocks what it overlaps.
  UsernsStore overlapping(SmallPool(100, 4));
  overlapping.WriteMapping("longer", 96, 6);
  overlapping.Open();
  BOOST_TEST(overlapping.report().other_length == 1U);
  BOOST_TEST((UseUp(overlapping) == std::set<std::uint32_t>{102, 103}));
}

// kubernetes#137912: nor where one has another length than its idsPerPod of today.
BOOST_AUTO_TEST_CASE(a_mapping_of_another_length_than_today) {
  for (const std::uint64_t blocks : {1U, 4U}) {
    UsernsStore store(SmallPool(4, 16, blocks));
    const std::uint32_t before = store.Get("stored");
    store.WriteMapping("from-a-kubelet", 16, 4 / blocks);
    store.SetPool(SmallPool(4, 16, blocks == 1 ? 2 : 1));
    const UserNamespaceReport& report = store.Reopen();
    BOOST_TEST(report.other_length + report.imported >= 2U);
    BOOST_TEST(report.off_pool.size() >= 1U);
    BOOST_TEST(store.Get("stored") == before);
    BOOST_TEST(Must(store->GetUserNamespace("stored")).length == blocks * kIdsPerBlock);
    BOOST_TEST(store.Get("from-a-kubelet") == 16U);
    const auto used = UseUp(store);
    for (std::uint64_t i = 0; i < blocks; ++i) {
      BOOST_TEST(!used.contains(static_cast<std::uint32_t>(before + i)));
    }
    for (std::uint32_t block = 16; block < 16 + 4 / blocks; ++block) {
      BOOST_TEST(!used.contains(block));
    }
    // Gone when it is released.
    BOOST_TEST(Must(store->ReleaseUserNamespace("stored")));
    BOOST_TEST(!UseUp(store).empty());
  }
}

// kubernetes#139916: a kubelet hands out the last block, with which no pod can start: the kernel
// maps no range that ends at 2^32.
BOOST_AUTO_TEST_CASE(the_last_block_is_never_handed_out) {
  UsernsStore store(SmallPool(kLastBlock - 3, 4));
  BOOST_TEST(
      (UseUp(store) == std::set<std::uint32_t>{kLastBlock - 3, kLastBlock - 2, kLastBlock - 1}));
  BOOST_TEST(Must(store->GetUserNamespaceStatistics()).ranges == 3U);
  // Nor a longer range with it inside.
  UsernsStore longer(SmallPool(65536 - 16, 16, 4));
  const auto used = UseUp(longer);
  BOOST_TEST(used.size() == 12U);
  BOOST_TEST(*used.rbegin() == 65536U - 5);
  // It is not room for a pod.
  OpenOptions options = store.Options();
  options.directory = store.kubelet() / "another";
  options.witness = Witness::None();
  options.user_namespaces.pool = SmallPool(kLastBlock - 3, 4);
  options.user_namespaces.pool.max_pods = 4;
  const auto refused = NodeStore::Open(options);
  BOOST_TEST_REQUIRE(!refused.has_value());
  BOOST_TEST(
      refused.error().message.find("kubelet user assigned IDs are not enough to support 4 pods") !=
      std::string::npos);
  // A kubelet's pod that has it never ran: it is told so, and its file stays as it is.
  UsernsStore taken_over(SmallPool(4, 4));
  taken_over.WriteMapping("never-ran", kLastBlock);
  taken_over.Open();
  BOOST_TEST(taken_over.report().held == 1U);
  BOOST_TEST((taken_over.Try("never-ran").error().code == ErrorCode::kConflict));
  BOOST_TEST(UseUp(taken_over).size() == 4U);
}

BOOST_AUTO_TEST_CASE(the_default_pool_has_room_for_65534) {
  UsernsStore store;
  BOOST_TEST(Must(store->GetUserNamespaceStatistics()).ranges == 65534U);
  BOOST_TEST(Must(store->GetUserNamespaceStatistics()).largest_free_run == 65534U);
}

BOOST_AUTO_TEST_CASE(so_many_pods_fit) {
  UsernsStore store;
  std::set<std::uint32_t> blocks;
  for (int i = 0; i < 65534; ++i) blocks.insert(store.Get("pod-" + std::to_string(i)));
  BOOST_TEST(blocks.size() == 65534U);
  BOOST_TEST(*blocks.begin() == 1U);
  BOOST_TEST(*blocks.rbegin() == kLastBlock - 1);
  BOOST_TEST((store.Try("too-many").error().code == ErrorCode::kLimitExceeded));
  store.Reopen();
  BOOST_TEST(Must(store->GetUserNamespaceStatistics()).free == 0U);
  BOOST_TEST(blocks.contains(store.Get("pod-0")));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
