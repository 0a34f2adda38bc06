// Ranges for pods in user namespaces: who gets which, and what is said to whom.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/draw.h"
#include "tests/support/userns_store.h"

namespace waybill::testing {

namespace {

void ExpectError(const Error& error, ErrorCode code, const std::string& words) {
  BOOST_TEST((error.code == code), error.ToString());
  BOOST_TEST(error.message.find(words) != std::string::npos, error.ToString());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(userns)

BOOST_AUTO_TEST_CASE(host_users_unset_or_true_is_the_node_and_nothing_is_stored) {
  UsernsStore store;
  for (const std::optional<bool> host_users : {std::optional<bool>(), std::optional<bool>(true)}) {
    const UserNamespace got =
        Must(store->GetOrCreateUserNamespace({.pod_uid = "", .host_users = host_users}));
    BOOST_TEST((got == UserNamespace{}));
    BOOST_TEST((got.mode == NamespaceMode::kNode));
  }
  BOOST_TEST(Must(store->ListUserNamespaces()).empty());
}

BOOST_AUTO_TEST_CASE(a_pod_has_the_same_mapping_every_time) {
  UsernsStore store;
  const std::uint32_t a = store.Get("a");
  const std::uint32_t b = store.Get("b");
  BOOST_TEST(a != b);
  BOOST_TEST(store.Get("a") == a);
  store.Reopen();
  BOOST_TEST(store.Get("a") == a);
  BOOST_TEST(store.Get("b") == b);
  const auto found = Must(store->GetUserNamespace("a"));
  BOOST_TEST(found.pod_uid == "a");
  BOOST_TEST(found.host_id == a * kIdsPerBlock);
  BOOST_TEST(found.length == kIdsPerBlock);
  BOOST_TEST((store->GetUserNamespace("c").error().code == ErrorCode::kNotFound));
}

BOOST_AUTO_TEST_CASE(a_full_pool_says_so_and_what_is_released_is_free_again) {
  UsernsStore store(SmallPool(10, 4));
  std::set<std::uint32_t> blocks;
  for (const char* pod : {"a", "b", "c", "d"}) blocks.insert(store.Get(pod));
  BOOST_TEST((blocks == std::set<std::uint32_t>{10, 11, 12, 13}));
  ExpectError(store.Try("e").error(), ErrorCode::kLimitExceeded,
              "could not find an empty slot to allocate a user namespace");
  const std::uint32_t c = store.Get("c");
  BOOST_TEST(Must(store->ReleaseUserNamespace("c")));
  BOOST_TEST(!Must(store->ReleaseUserNamespace("c")));
  BOOST_TEST(store.Get("e") == c);
}

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
    // From before it and, after the second time, from behind it.
    for (int round = 0; round < 2; ++round) {
      for (std::uint32_t i = 0; i < ranges; ++i) {
        const std::uint32_t first = (round == 0 ? i + 1 : ranges - i) * size;
        std::string& pod = pods[first];
        Must(store->ReleaseUserNamespace(pod));
        // Taken in part it is not free.
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

BOOST_AUTO_TEST_CASE(every_free_range_is_handed_out_and_no_other_whatever_was_adopted) {
  const std::uint64_t seed = SeedOfThisRun();
  BOOST_TEST_MESSAGE("seed " << seed);
  BOOST_TEST_CONTEXT("seed " << seed) {
    Draw draw(seed);
    for (int round = 0; round < 12; ++round) {
      const std::uint32_t size = static_cast<std::uint32_t>(1 + draw.Below(4));
      const std::uint32_t ranges = static_cast<std::uint32_t>(2 + draw.Below(30));
      UsernsStore store(SmallPool(size, std::uint64_t{ranges} * size, size));
      std::vector<bool> taken((ranges + 8) * size + 8);
      for (int i = 0; i < 20; ++i) {
        const std::uint32_t length = 1U << draw.Below(3);
        const auto first =
            static_cast<std::uint32_t>(draw.Below((ranges + 2) * size / length)) * length;
        if (first == 0) continue;
        const bool is_free = std::find(taken.begin() + first, taken.begin() + first + length,
                                       true) == taken.begin() + first + length;
        const auto adopted =
            store->AdoptUserNamespace("adopted" + std::to_string(i),
                                      std::uint64_t{first} * kIdsPerBlock, length * kIdsPerBlock);
        BOOST_TEST(adopted.has_value() == is_free);
        if (is_free) std::fill_n(taken.begin() + first, length, true);
      }
      std::set<std::uint32_t> expected;
      std::uint64_t run = 0;
      std::uint64_t largest_run = 0;
      for (std::uint32_t first = size; first < (ranges + 1) * size; first += size) {
        const auto end = taken.begin() + first + size;
        const bool is_free = std::find(taken.begin() + first, end, true) == end;
        if (is_free) expected.insert(first);
        run = is_free ? run + 1 : 0;
        largest_run = std::max(largest_run, run);
      }
      const auto statistics = Must(store->GetUserNamespaceStatistics());
      BOOST_TEST(statistics.free == expected.size());
      BOOST_TEST(statistics.largest_free_run == largest_run);
      std::set<std::uint32_t> got;
      while (auto mapping = store.Try("new" + std::to_string(got.size()))) {
        const auto first = static_cast<std::uint32_t>(mapping->uids.front().host_id / kIdsPerBlock);
        BOOST_TEST_REQUIRE(got.insert(first).second);
      }
      BOOST_TEST((got == expected));
    }
  }
}

BOOST_AUTO_TEST_CASE(longer_ranges) {
  UsernsStore store(SmallPool(4, 16, 4));
  std::set<std::uint32_t> blocks;
  for (const char* pod : {"a", "b", "c", "d"}) blocks.insert(store.Get(pod));
  BOOST_TEST((blocks == std::set<std::uint32_t>{4, 8, 12, 16}));
  BOOST_TEST(!store.Try("e").has_value());
  BOOST_TEST(Must(store->GetUserNamespace("a")).length == 4 * kIdsPerBlock);
}

BOOST_AUTO_TEST_CASE(the_length_that_a_caller_counts_on) {
  UsernsStore store;
  ExpectError(store.Try("a", 2 * kIdsPerBlock).error(), ErrorCode::kInvalidArgument, "131072");
  Must(store.Try("a", kIdsPerBlock));
  ExpectError(store.Try("a", 2 * kIdsPerBlock).error(), ErrorCode::kConflict, "65536");
  store.SetPool(SmallPool(2, 64, 2));
  store.Reopen();
  ExpectError(store.Try("a", 2 * kIdsPerBlock).error(), ErrorCode::kConflict, "65536");
  Must(store.Try("b", 2 * kIdsPerBlock));
}

BOOST_AUTO_TEST_CASE(another_pool_moves_nobody_and_what_it_overlaps_stays_blocked) {
  UsernsStore store(SmallPool(1, 4));
  for (const char* pod : {"a", "b", "c"}) store.Get(pod);
  const auto before = Must(store->ListUserNamespaces());
  store.SetPool(SmallPool(2, 8, 2));
  const auto& report = store.Reopen();
  BOOST_TEST(report.allocations == 3U);
  BOOST_TEST(report.off_pool.size() == 3U);
  BOOST_TEST(report.outside_pool + report.other_length == 3U);
  const auto after = Must(store->ListUserNamespaces());
  BOOST_TEST_REQUIRE(after.size() == 3U);
  std::set<std::uint32_t> taken;
  for (std::size_t i = 0; i < 3; ++i) {
    BOOST_TEST(after[i].host_id == before[i].host_id);
    BOOST_TEST((after[i].relation != PoolRelation::kInPool));
    taken.insert(static_cast<std::uint32_t>(after[i].host_id / kIdsPerBlock));
  }
  while (auto got = store.Try("new" + std::to_string(taken.size()))) {
    const auto first = static_cast<std::uint32_t>(got->uids.front().host_id / kIdsPerBlock);
    BOOST_TEST(taken.insert(first).second);
    BOOST_TEST(taken.insert(first + 1).second);
  }
  for (const char* pod : {"a", "b", "c"}) Must(store->ReleaseUserNamespace(pod));
  BOOST_TEST(Must(store->GetUserNamespaceStatistics()).outside_pool == 0U);
  BOOST_TEST(Must(store->GetUserNamespaceStatistics()).other_length == 0U);
}

BOOST_AUTO_TEST_CASE(switched_off_hands_out_nothing_and_still_releases) {
  UsernsStore store;
  store.Get("a");
  store.Get("b");
  store.SwitchOff();
  store.Reopen();
  for (const bool host_users : {true, false}) {
    const auto refused =
        store->GetOrCreateUserNamespace({.pod_uid = "a", .host_users = host_users});
    ExpectError(refused.error(), ErrorCode::kConflict,
                "the feature gate \"UserNamespacesSupport\" is disabled: can't set spec.HostUsers");
  }
  BOOST_TEST((Must(store->GetOrCreateUserNamespace({.pod_uid = "a", .host_users = {}})) ==
              UserNamespace{}));
  BOOST_TEST(Must(store->ListUserNamespaces()).size() == 2U);
  BOOST_TEST(Must(store->ReleaseUserNamespace("a")));
  const PruneToken token = Must(store->BeginPrune());
  BOOST_TEST(Must(store->CleanUpUserNamespaces({}, {}, token, {.allow_empty = true})).released ==
             1U);
}

BOOST_AUTO_TEST_CASE(handlers_in_the_kubelets_words) {
  UsernsStore store;
  const auto try_handler = [&](const char* handler) {
    return store->GetOrCreateUserNamespace(
        {.pod_uid = "a", .host_users = false, .runtime_handler = handler});
  };
  ExpectError(try_handler("gvisor").error(), ErrorCode::kInvalidArgument,
              "can't set `spec.hostUsers: false`, RuntimeClass handler \"gvisor\" does not support "
              "user namespaces");
  ExpectError(try_handler("kata").error(), ErrorCode::kInvalidArgument,
              "does not support user namespaces: the handler \"kata\" is not known");
  Must(try_handler("runc"));
  Must(try_handler(""));
  Must(store->ReplaceRuntimeHandlers({{.name = "", .is_default = true}}));
  ExpectError(try_handler("").error(), ErrorCode::kInvalidArgument,
              "can't set `spec.hostUsers: false`, runtime does not support user namespaces");
  Must(store->ReplaceRuntimeHandlers({}, {.allow_empty = true}));
  ExpectError(try_handler("").error(), ErrorCode::kInvalidArgument,
              "can't set `spec.hostUsers: false`, runtime does not support user namespaces");
  BOOST_TEST(Must(store->ListUserNamespaces()).size() == 1U);
}

BOOST_AUTO_TEST_CASE(uids_that_are_none) {
  UsernsStore store;
  for (const std::string& uid :
       {std::string(), std::string("."), std::string(".."), std::string(254, 'a'),
        std::string("a/b"), std::string("a\0b", 3), std::string("a\nb")}) {
    BOOST_TEST((store.Try(uid).error().code == ErrorCode::kInvalidArgument));
    BOOST_TEST((store->GetUserNamespace(uid).error().code == ErrorCode::kInvalidArgument));
    BOOST_TEST((store->ReleaseUserNamespace(uid).error().code == ErrorCode::kInvalidArgument));
    BOOST_TEST((store->AdoptUserNamespace(uid, kIdsPerBlock, kIdsPerBlock).error().code ==
                ErrorCode::kInvalidArgument));
  }
  store.Get(std::string(253, 'a'));
}

BOOST_AUTO_TEST_CASE(cleanup_takes_what_is_in_neither_list_and_older_than_both) {
  UsernsStore store;
  for (const char* pod : {"existing", "running", "gone"}) store.Get(pod);
  const PruneToken token = Must(store->BeginPrune());
  store.Get("new");
  const auto report = Must(store->CleanUpUserNamespaces({"existing"}, {"running"}, token));
  BOOST_TEST(report.examined == 4U);
  BOOST_TEST(report.released == 1U);
  BOOST_TEST(report.kept_in_lists == 2U);
  BOOST_TEST(report.kept_newer == 1U);
  BOOST_TEST((report.released_pods == std::vector<std::string>{"gone"}));
  BOOST_TEST((store->CleanUpUserNamespaces({}, {}, {token.value + 100}).error().code ==
              ErrorCode::kInvalidArgument));
  BOOST_TEST(Must(store->ListUserNamespaces()).size() == 3U);
}

BOOST_AUTO_TEST_CASE(adoption) {
  UsernsStore store(SmallPool(1, 16));
  Must(store->AdoptUserNamespace("a", 3 * kIdsPerBlock, kIdsPerBlock));
  BOOST_TEST(store.Get("a") == 3U);
  Must(store->AdoptUserNamespace("a", 3 * kIdsPerBlock, kIdsPerBlock));
  ExpectError(store->AdoptUserNamespace("a", 4 * kIdsPerBlock, kIdsPerBlock).error(),
              ErrorCode::kConflict, "pod a has host IDs 196608 to 262143");
  ExpectError(store->AdoptUserNamespace("b", 2 * kIdsPerBlock, 2 * kIdsPerBlock).error(),
              ErrorCode::kConflict, "pod a");
  Must(store->AdoptUserNamespace("outside", 1000 * kIdsPerBlock, 2 * kIdsPerBlock));
  for (const auto& [first, length] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {0, kIdsPerBlock},
           {kIdsPerBlock + 1, kIdsPerBlock},
           {kIdsPerBlock, kIdsPerBlock - 1},
           {kIdsPerBlock, 0},
           {kIdsPerBlock, 2 * kIdsPerBlock},
           {kHostIds - kIdsPerBlock, kIdsPerBlock},
           {kHostIds, kIdsPerBlock},
           {kIdsPerBlock, UINT64_MAX - kIdsPerBlock + 1},
           {UINT64_MAX - kIdsPerBlock + 1, kIdsPerBlock}}) {
    BOOST_TEST((store->AdoptUserNamespace("bad", first, length).error().code ==
                ErrorCode::kInvalidArgument),
               first << " " << length);
  }
  BOOST_TEST(Must(store->ListUserNamespaces()).size() == 2U);
}

BOOST_AUTO_TEST_CASE(statistics_count_in_ranges_of_the_pool) {
  UsernsStore store(SmallPool(2, 20, 2));
  auto statistics = Must(store->GetUserNamespaceStatistics());
  BOOST_TEST(statistics.ranges == 10U);
  BOOST_TEST(statistics.free == 10U);
  BOOST_TEST(statistics.largest_free_run == 10U);
  Must(store->AdoptUserNamespace("a", 7 * kIdsPerBlock, kIdsPerBlock));
  statistics = Must(store->GetUserNamespaceStatistics());
  BOOST_TEST(statistics.used == 1U);
  BOOST_TEST(statistics.free == 9U);
  BOOST_TEST(statistics.largest_free_run == 7U);
  BOOST_TEST(statistics.other_length == 1U);
  BOOST_TEST(statistics.allocations == 1U);
}

BOOST_AUTO_TEST_CASE(an_observer_answers_for_pods_that_have_one) {
  UsernsStore store;
  const std::uint32_t a = store.Get("a");
  store.Close();
  auto observer = Must(NodeStore::Observe({.directory = store.directory()}));
  const auto got = Must(observer->GetOrCreateUserNamespace({.pod_uid = "a", .host_users = false}));
  BOOST_TEST(got.uids.front().host_id == a * kIdsPerBlock);
  BOOST_TEST(
      (observer->GetOrCreateUserNamespace({.pod_uid = "b", .host_users = false}).error().code ==
       ErrorCode::kNotOwner));
  BOOST_TEST((observer->ReleaseUserNamespace("a").error().code == ErrorCode::kNotOwner));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
