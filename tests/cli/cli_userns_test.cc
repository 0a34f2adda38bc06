// `waybill userns`, and what `start` and the reading commands say of host ID ranges.

#include <boost/test/unit_test.hpp>
#include <set>

#include "tests/support/cli_store.h"

namespace waybill {
namespace {

using testing::CliStore;
using testing::CommandResult;
using Strings = std::vector<std::string>;
using nlohmann::json;

constexpr const char* kStatus =
    R"({"runtimeHandlers":[{"features":{"user_namespaces":true}},
    {"name":"runc","features":{"user_namespaces":true}},{"name":"kata","features":{}}],
    "config":{"containerd":{"defaultRuntimeName":"runc"}}})";

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

json MappingOf(std::uint64_t host_id, std::uint64_t length) {
  return {{{"hostId", host_id}, {"containerId", 0}, {"length", length}}};
}

std::string UsernsFile(std::uint64_t host_id, std::uint64_t length = 65536) {
  const json mapping = MappingOf(host_id, length);
  return json{{"uidMappings", mapping}, {"gidMappings", mapping}}.dump();
}

std::string PodList(const Strings& uids) {
  json items = json::array();
  for (const std::string& uid : uids) items.push_back({{"metadata", {{"uid", uid}}}});
  return json{{"items", items}}.dump();
}

// A store whose default handler supports user namespaces.
struct Node {
  Node() { BOOST_TEST(store.Start({"--runtimes", "-"}, kStatus).exit_code == 0); }

  CommandResult Run(Strings arguments, const std::string& input = {}) const {
    return store.Run("userns", arguments, input);
  }
  json Json(Strings arguments) const { return store.Json("userns", arguments); }
  std::string Place(const std::string& name, const std::string& content) const {
    testing::WriteFile(store / name, content);
    return (store / name).string();
  }
  // A pod's directory with that file in it.
  void PlacePod(const std::string& uid, const std::string& content) const {
    std::filesystem::create_directories(store / "pods" / uid);
    testing::WriteFile(store / "pods" / uid / "userns", content);
  }
  CommandResult StartWithPods(Strings more = {}) const {
    more.insert(more.end(), {"--pods-dir", (store / "pods").string()});
    return store.Run("start", more);
  }
  std::string Token() const {
    std::string token = Run({"cleanup", "--begin"}).out;
    token.pop_back();
    return token;
  }

  CliStore store;
};

BOOST_AUTO_TEST_SUITE(cli_userns)

BOOST_FIXTURE_TEST_CASE(a_pod_has_the_same_range_every_time, Node) {
  const CommandResult got = Run({"get", "pod-a", "--pool", "131072:65536", "--max-pods", "1"});
  BOOST_TEST(got.exit_code == 0, got.err);
  BOOST_TEST(got.out == "POD: UIDs and GIDs 0-65535 of the pod are 131072-196607 of the host\n");
  const json pod = {
      {"mode", "POD"}, {"uids", MappingOf(131072, 65536)}, {"gids", MappingOf(131072, 65536)}};
  BOOST_TEST(Json({"get", "pod-a", "--runtime", "runc", "--host-users", "false"}) == pod);
  BOOST_TEST(Json({"get", "pod-a", "--length", "65536"}) == pod);
  BOOST_TEST(Json({"get", "pod-b"})["uids"] != pod["uids"]);
}

BOOST_FIXTURE_TEST_CASE(a_pod_with_the_hosts_ids_gets_nothing, Node) {
  BOOST_TEST(Run({"get", "pod", "--host-users", "true"}).out ==
             "NODE: the pod has the host's IDs\n");
  BOOST_TEST(Json({"get", "pod", "--host-users", "true"}) ==
             (json{{"mode", "NODE"}, {"uids", json::array()}, {"gids", json::array()}}));
  BOOST_TEST(Json({"list"})["mappings"].empty());
}

BOOST_FIXTURE_TEST_CASE(release_says_whether_there_was_something, Node) {
  Run({"get", "pod"});
  BOOST_TEST(Run({"release", "pod"}).out == "released: pod\n");
  const CommandResult again = Run({"release", "pod"});
  BOOST_TEST(again.exit_code == 1);
  BOOST_TEST(again.out == "pod has no range, and is not held\n");
  BOOST_TEST(Json({"release", "pod"}) ==
             (json{{"podUid", "pod"}, {"released", false}, {"dryRun", false}}));
  BOOST_TEST(Run({"release", "--lost"}).exit_code == 1);
  BOOST_TEST(Json({"release", "--lost"}) == (json{{"released", false}, {"dryRun", false}}));
}

BOOST_FIXTURE_TEST_CASE(list_says_how_ranges_relate_to_the_pool, Node) {
  const Strings small = {"--pool", "65536:131072", "--max-pods", "2"};
  const auto with = [](Strings arguments, const Strings& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  Run({"adopt", "pod-a", "65536", "65536"});
  Run({"adopt", "pod-b", "1310720", "65536"});
  Run({"adopt", "pod-c", "262144", "131072"});
  const CommandResult listed = Run(with({"list"}, small));
  BOOST_TEST(listed.exit_code == 0, listed.err);
  BOOST_TEST(listed.out.starts_with("POD UID  HOST IDS         CREATED"), listed.out);
  BOOST_TEST(Contains(listed.out, "\npod-a    65536-131071 "), listed.out);
  BOOST_TEST(Contains(listed.out, "Z  in the pool\n"), listed.out);
  BOOST_TEST(Contains(listed.out, "\npod-c    262144-393215 "), listed.out);
  BOOST_TEST(Contains(listed.out, "Z  of another length\n"), listed.out);
  BOOST_TEST(Contains(listed.out, "\npod-b    1310720-1376255 "), listed.out);
  BOOST_TEST(Contains(listed.out, "Z  outside the pool\n"), listed.out);
  const json mappings = Json(with({"list"}, small))["mappings"];
  BOOST_REQUIRE(mappings.size() == 3U);
  BOOST_TEST(mappings[0]["podUid"] == "pod-a");
  BOOST_TEST(mappings[0]["relation"] == "inPool");
  BOOST_TEST(mappings[1]["hostId"] == 262144);
  BOOST_TEST(mappings[1]["length"] == 131072);
  BOOST_TEST(mappings[1]["relation"] == "otherLength");
  BOOST_TEST(mappings[2]["relation"] == "outsidePool");
  BOOST_TEST(mappings[2].contains("created"));
}

BOOST_FIXTURE_TEST_CASE(pool_says_how_full_it_is, Node) {
  json pool = Json({"pool"});
  BOOST_TEST(pool["available"] == true);
  BOOST_TEST(pool["ranges"] == 65534);
  BOOST_TEST(pool["free"] == 65534);
  BOOST_TEST(pool["largestFreeRun"] == 65534);
  BOOST_TEST(pool["idsPerPod"] == 65536);
  BOOST_TEST(pool["maxPods"] == 110);
  const Strings two = {"pool", "--pool", "65536:131072", "--max-pods", "2"};
  const auto fill = [&](const char* pod) {
    return Run({"get", pod, "--pool", "65536:131072", "--max-pods", "2"});
  };
  BOOST_TEST(fill("pod-a").exit_code == 0);
  BOOST_TEST(Run(two).exit_code == 0);
  BOOST_TEST(fill("pod-b").exit_code == 0);
  const CommandResult full = Run(two);
  BOOST_TEST(full.exit_code == 1);
  BOOST_TEST(Contains(full.out, "new ranges         no\n"), full.out);
  BOOST_TEST(Contains(full.out, "used               2\n"), full.out);
  BOOST_TEST(Contains(full.out, "refused because    -\n"), full.out);
  const CommandResult off = Run({"pool", "--no-user-namespaces"});
  BOOST_TEST(off.exit_code == 1);
  BOOST_TEST(Contains(off.out, "enabled            no\n"), off.out);
  const CommandResult refused = fill("pod-c");
  BOOST_TEST(refused.exit_code == 2);
  BOOST_TEST(Contains(refused.err, "could not find an empty slot to allocate a user namespace"),
             refused.err);
  BOOST_TEST(store.Json("stats")["idMappings"] == 2);
  BOOST_TEST(store.Json("stats")["heldPods"] == 0);
}

BOOST_FIXTURE_TEST_CASE(longer_ranges, Node) {
  BOOST_TEST(Json({"get", "pod-a", "--ids-per-pod", "131072"})["uids"][0]["length"] == 131072);
  // Two to the 32nd is no multiple of this.
  BOOST_TEST(Json({"get", "pod-b", "--ids-per-pod", "196608"})["uids"][0]["length"] == 196608);
  BOOST_TEST(Json({"pool", "--ids-per-pod", "131072"})["otherLength"] == 1);
  BOOST_TEST(Json({"get", "pod-a"})["uids"][0]["length"] == 131072);
}

BOOST_FIXTURE_TEST_CASE(cleanup_frees_what_is_in_neither_list_and_older, Node) {
  for (const char* const pod : {"gone", "there", "runs", "static"}) Run({"get", pod});
  const std::string token = Token();
  Run({"get", "newer"});
  const std::string mirror =
      R"({"items":[{"metadata":{"uid":"there"}},{"metadata":{"uid":"m","annotations":
      {"kubernetes.io/config.mirror":"static"}}}]})";
  const Strings cleanup = {
      "cleanup", "--token", token, "--existing", Place("existing.json", mirror), "--running", "-"};
  const CommandResult cleaned = Run(cleanup, PodList({"runs"}));
  BOOST_TEST(cleaned.exit_code == 0, cleaned.err);
  BOOST_TEST(cleaned.out ==
             "examined         5\n"
             "released         1\n"
             "kept: in a list  3\n"
             "kept: newer      1\n"
             "released pod     gone\n");
  std::set<std::string> left;
  const json listed = Json({"list"});
  for (const json& mapping : listed["mappings"]) left.insert(mapping["podUid"]);
  BOOST_TEST((left == std::set<std::string>{"there", "runs", "static", "newer"}));
  Strings again = cleanup;
  again.back() = Place("running.json", PodList({"runs"}));
  const json report = Json(again);
  BOOST_TEST(report["released"] == 0);
  BOOST_TEST(report["releasedPods"].empty());
  BOOST_TEST(report["keptInLists"] == 3);
  BOOST_TEST(Json({"cleanup", "--begin"})["token"].is_number());
}

BOOST_FIXTURE_TEST_CASE(two_empty_lists_release_nothing_unless_it_is_meant, Node) {
  Run({"get", "living"});
  const std::string none = Place("none.json", PodList({}));
  Strings cleanup = {"cleanup", "--token", Token(), "--existing", none, "--running", none};
  const CommandResult refused = Run(cleanup);
  BOOST_TEST(refused.exit_code == 2);
  BOOST_TEST(refused.err.find("--allow-empty") != std::string::npos, refused.err);
  cleanup.insert(cleanup.end(), {"--allow-empty", "--dry-run"});
  BOOST_TEST(Json(cleanup)["released"] == 1);
  BOOST_TEST(Json({"release", "living", "--dry-run"})["released"] == true);
  BOOST_TEST(Json({"list"})["mappings"].size() == 1U);
  cleanup.pop_back();
  BOOST_TEST(Json(cleanup)["released"] == 1);
  BOOST_TEST(Json({"list"})["mappings"].empty());
  BOOST_TEST(Run({"list", "--dry-run"}).exit_code == 2);
  BOOST_TEST(Run({"release", "living", "--allow-empty"}).exit_code == 2);
}

BOOST_FIXTURE_TEST_CASE(start_takes_over_what_a_kubelet_kept, Node) {
  PlacePod("pod-a", UsernsFile(131072));
  PlacePod("pod-b", UsernsFile(262144, 131072));
  const CommandResult started = StartWithPods();
  BOOST_TEST(started.exit_code == 0, started.err);
  BOOST_TEST(Contains(started.out, "host IDs    2 mappings taken over from 2 files, 0 unchanged\n"),
             started.out);
  BOOST_TEST(Contains(started.out, "off pool    pod-b\n"), started.out);
  BOOST_TEST(Json({"get", "pod-a"})["uids"] == MappingOf(131072, 65536));
  const json report =
      store.Json("start", {"--pods-dir", (store / "pods").string()})["userNamespaces"];
  BOOST_TEST(report["filesSeen"] == 2);
  BOOST_TEST(report["unchanged"] == 2);
  BOOST_TEST(report["allocations"] == 2);
  BOOST_TEST(report["offPool"] == json({"pod-b"}));
  BOOST_TEST(Contains(store.Run("dump").out,
                      R"({"type":"idMapping","podUid":"pod-a","hostId":131072,"length":65536,)"));
}

BOOST_FIXTURE_TEST_CASE(export_writes_the_kubelets_files, Node) {
  Run({"adopt", "pod-a", "131072", "65536"});
  std::filesystem::create_directory(store / "kubelet");
  const Strings there = {"--kubelet-dir", (store / "kubelet").string()};
  const CommandResult exported = store.Run("export", there);
  BOOST_TEST(Contains(exported.out, "ID mappings written        1\n"), exported.out + exported.err);
  BOOST_TEST(json::parse(testing::ReadFile(store / "kubelet/pods/pod-a/userns")) ==
             json::parse(UsernsFile(131072)));
  BOOST_TEST(store.Json("export", there)["idMappings"] == 1);
  // No kubelet starts beside both.
  Run({"adopt", "pod-b", "262144", "131072"});
  BOOST_TEST(store.Run("export", there).exit_code == 3);
}

BOOST_FIXTURE_TEST_CASE(a_kubelet_directory_has_its_pods_in_it, Node) {
  const std::string kubelet = store.KubeletDirectory("kubelet-v1.36").string();
  const json report = store.Json("start", {"--kubelet-dir", kubelet})["userNamespaces"];
  BOOST_TEST(report["filesSeen"] > 0);
  BOOST_TEST(store.Json("stats")["idMappings"] == report["allocations"]);
}

BOOST_FIXTURE_TEST_CASE(an_unreadable_range_refuses_all_until_somebody_knows, Node) {
  PlacePod("broken", "{");
  const CommandResult started = StartWithPods();
  BOOST_TEST(started.exit_code == 0, started.err);
  BOOST_TEST(Contains(started.out, "held        1 pod"), started.out);
  BOOST_TEST(Contains(started.err, "waybill userns adopt POD FIRST LENGTH"), started.err);
  BOOST_TEST(Run({"pool"}).exit_code == 1);
  BOOST_TEST(Json({"pool"})["refusedBecause"] != "");
  BOOST_TEST(Run({"get", "other"}).exit_code == 3);
  BOOST_TEST(store.Json("userns", {"get", "other"})["error"]["code"] == "conflict");
  const CommandResult listed = Run({"list"});
  BOOST_TEST(Contains(listed.out, "HELD POD  HOST IDS   SINCE"), listed.out);
  BOOST_TEST(Contains(listed.out, "\nbroken    not known  "), listed.out);
  const json held = Json({"list"})["heldPods"];
  BOOST_REQUIRE(held.size() == 1U);
  BOOST_TEST(held[0]["podUid"] == "broken");
  BOOST_TEST(held[0]["ranges"].empty());
  BOOST_TEST(held[0]["source"] == "pods/broken/userns");
  BOOST_TEST(Contains(store.Run("dump").out, R"({"type":"heldPod","podUid":"broken")"));
  BOOST_TEST(store.Json("stats")["heldPods"] == 1);

  const CommandResult adopted = Run({"adopt", "broken", "65536", "65536"});
  BOOST_TEST(adopted.exit_code == 0, adopted.err);
  BOOST_TEST(adopted.out == "adopted: broken has host IDs 65536-131071, in the pool\n");
  BOOST_TEST(Json({"adopt", "broken", "65536", "65536"})["relation"] == "inPool");
  BOOST_TEST(Json({"get", "other"})["uids"] != MappingOf(65536, 65536));
  BOOST_TEST(Run({"pool"}).exit_code == 0);
}

BOOST_FIXTURE_TEST_CASE(switched_off_nothing_new_is_given_out, Node) {
  Run({"get", "pod"});
  const CommandResult refused = Run({"get", "pod", "--no-user-namespaces"});
  BOOST_TEST(refused.exit_code == 3);
  BOOST_TEST(
      Contains(refused.err,
               "the feature gate \"UserNamespacesSupport\" is disabled: can't set spec.HostUsers"),
      refused.err);
  BOOST_TEST(store.Run("start", {"--no-user-namespaces"}).exit_code == 0);
  BOOST_TEST(Json({"list", "--no-user-namespaces"})["mappings"].size() == 1U);
  BOOST_TEST(Run({"release", "pod"}).exit_code == 0);
}

BOOST_FIXTURE_TEST_CASE(a_handler_that_does_not_support_it, Node) {
  const CommandResult kata = Run({"get", "pod", "--runtime", "kata"});
  BOOST_TEST(kata.exit_code == 2);
  BOOST_TEST(Contains(kata.err,
                      "can't set `spec.hostUsers: false`, RuntimeClass handler \"kata\" does not "
                      "support user namespaces"),
             kata.err);
  BOOST_TEST(Run({"get", "pod", "--runtime", "nope"}).exit_code == 2);
  const CliStore bare;
  bare.Start();
  const CommandResult none = bare.Run("userns", {"get", "pod"});
  BOOST_TEST(none.exit_code == 2);
  BOOST_TEST(
      Contains(none.err,
               "can't set `spec.hostUsers: false`, runtime does not support user namespaces"),
      none.err);
  BOOST_TEST(Contains(none.err, "hint: "), none.err);
}

BOOST_FIXTURE_TEST_CASE(conflicts_change_nothing, Node) {
  Run({"adopt", "pod-a", "65536", "65536"});
  const std::string before = store.Run("dump").out;
  BOOST_TEST(Run({"get", "pod-a", "--length", "131072"}).exit_code == 3);
  BOOST_TEST(Run({"get", "pod-b", "--length", "131072"}).exit_code == 2);
  BOOST_TEST(Run({"adopt", "pod-b", "65536", "65536"}).exit_code == 3);
  BOOST_TEST(Run({"adopt", "pod-a", "131072", "65536"}).exit_code == 3);
  BOOST_TEST(store.Run("dump").out == before);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waybill
