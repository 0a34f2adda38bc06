// Taking ID mappings over from a kubelet's files: all or nothing for each pod.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>
#include <string>

#include "tests/support/userns_store.h"

namespace waybill::testing {

namespace {

bool IsHeld(UsernsStore& store, const std::string& pod_uid) {
  const auto got = store.Try(pod_uid);
  return !got && got.error().code == ErrorCode::kConflict &&
         got.error().message.find("are unverified") != std::string::npos;
}

// None of these blocks is handed out while the pool is used up.
void ExpectBlocked(UsernsStore& store, std::uint32_t first, std::uint32_t end) {
  for (int i = 0;; ++i) {
    const auto got = store.Try("filler" + std::to_string(i));
    if (!got) {
      BOOST_TEST((got.error().code == ErrorCode::kLimitExceeded), got.error().ToString());
      return;
    }
    const auto block = got->uids.front().host_id / kIdsPerBlock;
    BOOST_TEST((block < first || block >= end), "block " << block << " was handed out");
  }
}

const std::filesystem::path kFixtures =
    std::filesystem::path(WAYBILL_FIXTURES) / "kubelet-v1.36" / "pods";

}  // namespace

BOOST_AUTO_TEST_SUITE(userns_import)

BOOST_AUTO_TEST_CASE(a_real_kubelets_pods_keep_their_ids) {
  UsernsStore store;
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

BOOST_AUTO_TEST_CASE(two_files_that_overlap_hold_both_pods_and_the_rest_comes_in) {
  UsernsStore store(SmallPool(1, 12));
  store.WriteMapping("a", 4, 2);
  store.WriteMapping("b", 5);
  store.WriteMapping("c", 7);
  store.Open();
  BOOST_TEST(store.report().imported == 1U);
  BOOST_TEST(store.report().held == 2U);
  BOOST_TEST(store.report().problems.size() == 2U);
  BOOST_TEST(IsHeld(store, "a"));
  BOOST_TEST(IsHeld(store, "b"));
  BOOST_TEST(store.Get("c") == 7U);
  ExpectBlocked(store, 4, 6);
  // Still so at the next start; then one of them is gone.
  store.Reopen();
  BOOST_TEST(IsHeld(store, "a"));
  std::filesystem::remove_all(store.pods() / "b");
  store.Reopen();
  BOOST_TEST(IsHeld(store, "a"));
  Must(store->ReleaseUserNamespace("b"));
  store.Reopen();
  BOOST_TEST(store.Get("a") == 4U);
}

BOOST_AUTO_TEST_CASE(a_file_that_overlaps_what_the_store_gave_holds_its_pod_only) {
  UsernsStore store(SmallPool(1, 12));
  Must(store->AdoptUserNamespace("mine", 4 * kIdsPerBlock, kIdsPerBlock));
  store.WriteMapping("other", 4, 2);
  store.Reopen();
  BOOST_TEST(store.Get("mine") == 4U);
  BOOST_TEST(IsHeld(store, "other"));
  // Also once the one who has it is gone.
  Must(store->ReleaseUserNamespace("mine"));
  ExpectBlocked(store, 4, 6);
}

BOOST_AUTO_TEST_CASE(another_range_than_the_stores) {
  UsernsStore store(SmallPool(1, 12));
  Must(store->AdoptUserNamespace("a", 4 * kIdsPerBlock, kIdsPerBlock));
  store.WriteMapping("a", 6);
  store.Reopen();
  BOOST_TEST(IsHeld(store, "a"));
  ExpectBlocked(store, 4, 5);
  ExpectBlocked(store, 6, 7);
  Must(store->AdoptUserNamespace("a", 6 * kIdsPerBlock, kIdsPerBlock));
  BOOST_TEST(store.Get("a") == 6U);
}

BOOST_AUTO_TEST_CASE(outside_the_pool_or_of_another_length_they_come_in) {
  UsernsStore store(SmallPool(100, 10));
  store.WriteMapping("outside", 7);
  store.WriteMapping("longer", 104, 2);
  store.Open();
  BOOST_TEST(store.report().imported == 2U);
  BOOST_TEST(store.report().outside_pool == 1U);
  BOOST_TEST(store.report().other_length == 1U);
  BOOST_TEST(store.Get("outside") == 7U);
  ExpectBlocked(store, 104, 106);
}

BOOST_AUTO_TEST_CASE(what_no_kubelet_takes_stays_blocked) {
  UsernsStore store(SmallPool(1, 12));
  const auto mapping = [](std::uint64_t block, std::uint64_t container = 0) {
    return "{\"hostId\":" + std::to_string(block * kIdsPerBlock) +
           ",\"containerId\":" + std::to_string(container) + ",\"length\":65536}";
  };
  store.WriteFileOf("differ",
                    "{\"uidMappings\":[" + mapping(2) + "],\"gidMappings\":[" + mapping(3) + "]}");
  store.WriteFileOf("two", "{\"uidMappings\":[" + mapping(5) + "," + mapping(6) +
                               "],\"gidMappings\":[" + mapping(5) + "," + mapping(6) + "]}");
  store.WriteFileOf("not-root", "{\"uidMappings\":[" + mapping(8, 1) + "],\"gidMappings\":[" +
                                    mapping(8, 1) + "]}");
  store.WriteMapping("host", 0);
  store.WriteMapping("last", kHostIds / kIdsPerBlock - 1);
  store.WriteMapping("sound", 10);
  store.Open();
  BOOST_TEST(store.report().imported == 1U);
  BOOST_TEST(store.report().held == 5U);
  for (const char* pod : {"differ", "two", "not-root", "host", "last"}) {
    BOOST_TEST(IsHeld(store, pod), pod);
  }
  ExpectBlocked(store, 2, 4);
  ExpectBlocked(store, 5, 7);
  ExpectBlocked(store, 8, 9);
}

BOOST_AUTO_TEST_CASE(a_range_that_cannot_be_read_stops_new_ones_until_it_is_known) {
  for (const std::string& content : {std::string(), std::string("{"), std::string("{}"),
                                     std::string("{\"uidMappings\":[{}],\"gidMappings\":[{}]}")}) {
    UsernsStore store(SmallPool(1, 12));
    store.WriteMapping("sound", 3);
    store.WriteFileOf("broken", content);
    store.Open();
    BOOST_TEST(!store.report().refused_because.empty());
    BOOST_TEST(store.Get("sound") == 3U);
    const auto refused = store.Try("new");
    BOOST_TEST((refused.error().code == ErrorCode::kConflict));
    BOOST_TEST(refused.error().message.find("broken") != std::string::npos);
    BOOST_TEST((refused.error().hint_code == Hint::kSettleHeldPods));
    Must(store->AdoptUserNamespace("broken", 5 * kIdsPerBlock, kIdsPerBlock));
    BOOST_TEST(store.Get("broken") == 5U);
    store.Get("new");
    // The store knows better than the file from now on.
    store.Reopen();
    BOOST_TEST(store.report().refused_because.empty());
    BOOST_TEST(store.Get("broken") == 5U);
    store.Get("new2");
  }
}

BOOST_AUTO_TEST_CASE(a_broken_pod_that_is_gone) {
  UsernsStore store(SmallPool(1, 12));
  store.WriteFileOf("broken", "{");
  store.Open();
  BOOST_TEST(!store.Try("new").has_value());
  const PruneToken token = Must(store->BeginPrune());
  BOOST_TEST(Must(store->CleanUpUserNamespaces({"broken"}, {}, token)).released == 0U);
  BOOST_TEST(!store.Try("new").has_value());
  BOOST_TEST(Must(store->CleanUpUserNamespaces({}, {}, token, {.allow_empty = true})).released ==
             1U);
  store.Get("new");
}

BOOST_AUTO_TEST_CASE(a_mended_file_is_taken) {
  UsernsStore store(SmallPool(1, 12));
  store.WriteFileOf("broken", "{");
  store.Open();
  store.WriteMapping("broken", 6);
  store.Reopen();
  BOOST_TEST(store.report().imported == 1U);
  BOOST_TEST(store.Get("broken") == 6U);
  BOOST_TEST(Must(store->ListHeldPods()).empty());
}

BOOST_AUTO_TEST_CASE(a_directory_of_pods_that_is_not_there_is_a_mistake_where_it_was_named) {
  UsernsStore store;
  OpenOptions options = store.Options();
  options.pods_directory = store.kubelet() / "pots";
  const auto refused = NodeStore::Open(options);
  BOOST_TEST_REQUIRE(!refused.has_value());
  BOOST_TEST((refused.error().code == ErrorCode::kNotFound));
  BOOST_TEST(!std::filesystem::exists(store.directory()));
  // Found by itself in a kubelet directory, and not missed there.
  options.pods_directory.clear();
  options.kubelet_directory = store.kubelet();
  BOOST_TEST(Must(NodeStore::Open(options))->recovery_report().user_namespaces.files_seen == 0U);
  store.WriteMapping("a", 9);
  BOOST_TEST(Must(NodeStore::Open(options))->recovery_report().user_namespaces.imported == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
