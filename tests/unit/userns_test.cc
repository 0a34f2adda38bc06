// Ranges for pods in user namespaces: who gets which. More of it is in
// histories/user-namespaces.jsonl; what holds in every pool and every history, in
// model/userns_model.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "tests/support/expect_error.h"
#include "tests/support/userns_store.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(userns)

namespace {

constexpr std::uint32_t kLastBlock = 65535;
const std::filesystem::path kFixtures =
    std::filesystem::path(WAYBILL_FIXTURES) / "kubelet-v1.36" / "pods";

}  // namespace

BOOST_AUTO_TEST_CASE(a_released_range_is_the_last_to_be_handed_out_again) {
  UsernsStore store(SmallPool(1, 8));
  const std::uint32_t first = store.Get("a");
  Must(store->ReleaseUserNamespace("a"));
  for (int i = 0; i < 7; ++i) BOOST_TEST(store.Get("p" + std::to_string(i)) != first);
  BOOST_TEST(store.Get("last") == first);
}

BOOST_AUTO_TEST_CASE(the_only_free_range_is_found_wherever_it_lies) {
  for (const std::uint32_t size : {1U, 2U, 3U}) {
    const std::uint32_t ranges = 24;
    UsernsStore store(SmallPool(size, std::uint64_t{ranges} * size, size));
    std::map<std::uint32_t, std::string> pods;  // by the first block
    for (std::uint32_t i = 0; i < ranges; ++i) {
      const std::string pod = "p" + std::to_string(i);
      pods[store.Get(pod)] = pod;
    }
    BOOST_TEST_REQUIRE(pods.size() == ranges);
    const std::uint32_t beyond = (ranges + 1) * size;
    // The search starts before it in the first round, behind it in the second.
    for (int round = 0; round < 2; ++round) {
      for (std::uint32_t i = 0; i < ranges; ++i) {
        const std::uint32_t first = (round == 0 ? i + 1 : ranges - i) * size;
        std::string& pod = pods[first];
        Must(store->ReleaseUserNamespace(pod));
        // A range taken in part is not free.
        const std::uint64_t last_block = first + size - 1;
        Must(store->AdoptUserNamespace("other", last_block * kIdsPerBlock, kIdsPerBlock));
        BOOST_TEST(!store.Try("new").has_value());
        Must(store->ReleaseUserNamespace("other"));
        pod += "x";
        BOOST_TEST(store.Get(pod) == first);
      }
    }
    BOOST_TEST(!store.Try("new").has_value());
    Must(store->AdoptUserNamespace("beyond", beyond * std::uint64_t{kIdsPerBlock}, kIdsPerBlock));
    const auto statistics = Must(store->GetUserNamespaceStatistics());
    BOOST_TEST(statistics.free == 0U);
    BOOST_TEST(statistics.used == ranges);
  }
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

BOOST_FIXTURE_TEST_CASE(a_real_kubelets_pods_keep_their_ids, WithUserns) {
  std::filesystem::create_directory(store.pods());
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFixtures)) {
    files[entry.path().filename()] = ReadFile(entry.path() / "userns");
    store.WriteFileOf(entry.path().filename(), files[entry.path().filename()]);
  }
  BOOST_TEST_REQUIRE(files.size() == 9U);
  store.Open();
  BOOST_TEST(store.report().imported == 9U);
  BOOST_TEST(store.report().held == 0U);
  for (const auto& [pod, content] : files) {
    const std::uint64_t first = store.Get(pod) * kIdsPerBlock;
    BOOST_TEST(UsernsStore::FileOf(first, kIdsPerBlock) == content);
  }
  store.Reopen();
  BOOST_TEST(store.report().unchanged == 9U);
  BOOST_TEST(store.report().imported == 0U);
}

BOOST_FIXTURE_TEST_CASE(a_directory_of_pods_that_is_not_there_is_a_mistake_where_it_was_named,
                        WithUserns) {
  OpenOptions options = store.Options();
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

// kubernetes#139916: the last block is not room for a pod, since the kernel maps no range that ends
// at 2^32.
BOOST_AUTO_TEST_CASE(a_pool_without_room_for_its_pods_is_refused) {
  const UsernsStore store;
  OpenOptions options = store.Options();
  options.user_namespaces.pool = SmallPool(kLastBlock - 3, 4);
  options.user_namespaces.pool.max_pods = 4;
  const auto refused = NodeStore::Open(options);
  ExpectError(refused, ErrorCode::kInvalidArgument,
              "kubelet user assigned IDs are not enough to support 4 pods");
}

BOOST_FIXTURE_TEST_CASE(the_default_pool_has_room_for_65534, WithUserns) {
  BOOST_TEST(Must(store->GetUserNamespaceStatistics()).ranges == 65534U);
  BOOST_TEST(Must(store->GetUserNamespaceStatistics()).largest_free_run == 65534U);
}

BOOST_FIXTURE_TEST_CASE(so_many_pods_fit, WithUserns) {
  std::set<std::uint32_t> blocks;
  for (int i = 0; i < 65534; ++i) blocks.insert(store.Get("pod-" + std::to_string(i)));
  BOOST_TEST(blocks.size() == 65534U);
  BOOST_TEST(*blocks.begin() == 1U);
  BOOST_TEST(*blocks.rbegin() == kLastBlock - 1);
  ExpectError(store.Try("too-many"), ErrorCode::kLimitExceeded);
  store.Reopen();
  BOOST_TEST(Must(store->GetUserNamespaceStatistics()).free == 0U);
  BOOST_TEST(blocks.contains(store.Get("pod-0")));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
