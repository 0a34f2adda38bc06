// Each command of `waybill`, used rightly.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <sstream>

#include "tests/support/cli_store.h"
#include "waybill/waybill.h"

namespace waybill {
namespace {

using testing::CliStore;
using testing::CommandResult;
using testing::RunWaybill;
using Strings = std::vector<std::string>;

const Strings kCommands = {"start",   "check",   "intent", "pulled",   "failed",
                           "prune",   "hash",    "list",   "show",     "dump",
                           "stats",   "metrics", "verify", "trust",    "runtimes",
                           "migrate", "restore", "export", "manifest", "userns"};
const std::string kImage = "registry.example.com/team/app:v1";
const std::string kRef = "sha256:aaaa";
const std::string kSecret = "tenant/pull/uid-1/cafe";

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<nlohmann::json> Lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

BOOST_AUTO_TEST_SUITE(cli)

BOOST_AUTO_TEST_CASE(help_names_the_exit_codes) {
  const CommandResult help = RunWaybill({"--help"});
  BOOST_TEST(help.exit_code == 0);
  for (const std::string& command : kCommands) {
    BOOST_TEST(Contains(help.out, "\n  " + command + " "), command);
    const CommandResult one = RunWaybill({command, "--help"});
    BOOST_TEST(one.exit_code == 0, command);
    BOOST_TEST(one.err == "", command);
    BOOST_TEST(Contains(one.out, "Exit codes:"), command);
    BOOST_TEST(Contains(one.out, "--json"), command);
  }
  BOOST_TEST(RunWaybill({"--version"}).out.starts_with("waybill "));
}

BOOST_AUTO_TEST_CASE(start_makes_a_store_and_opens_it_again) {
  const CliStore store;
  const CommandResult made = store.Start();
  BOOST_TEST(made.exit_code == 0, made.err);
  BOOST_TEST(Contains(made.out, "was created"), made.out);
  BOOST_TEST(made.err == "");
  BOOST_TEST(std::filesystem::exists(store / "witness"));
  auto again = store.Json("start");
  BOOST_TEST(again["created"] == false);
  BOOST_TEST(again["distrustful"] == false);
  BOOST_TEST(again["records"] == 0);
}

BOOST_AUTO_TEST_CASE(start_takes_over_a_kubelet_directory_once) {
  const CliStore store;
  const std::string kubelet = store.KubeletDirectory("kubelet-v1.36").string();
  auto first = store.Json("start", {"--kubelet-dir", kubelet});
  BOOST_TEST(first["created"] == true);
  BOOST_TEST(first["import"]["records"] == 11);
  BOOST_TEST(first["import"]["intents"] == 5);
  BOOST_TEST(first["import"]["problems"].empty());
  BOOST_TEST(first["intentsLeft"] == 5);
  BOOST_TEST(std::filesystem::exists(kubelet + "/image_manager/waybill"));
  auto second = store.Json("start", {"--kubelet-dir", kubelet});
  BOOST_TEST(second["import"]["records"] == 0);
  BOOST_TEST(second["import"]["unchanged"] == 16);
  BOOST_TEST(second["records"] == 11);
}

BOOST_AUTO_TEST_CASE(start_quarantines_a_damaged_file) {
  const CliStore store;
  const auto kubelet = store.KubeletDirectory("kubelet-v1.36");
  const auto pulled = kubelet / "image_manager" / "pulled";
  testing::WriteFile(*std::filesystem::directory_iterator(pulled), "{");
  const CommandResult started = store.Run("start", {"--kubelet-dir", kubelet.string()});
  BOOST_TEST(started.exit_code == 0, started.err);
  BOOST_TEST(Contains(started.out, "quarantined 1"), started.out);
  BOOST_TEST(store.Json("list", {"--quarantine"})["quarantine"].size() == 1U);
  BOOST_TEST(Contains(store.Run("list", {"--quarantine"}).out, "imageRef"));
}

BOOST_AUTO_TEST_CASE(start_replays_pulls_that_were_cut_short) {
  const CliStore store;
  store.Start();
  BOOST_TEST(store.Run("intent", {"--image", kImage}).exit_code == 0);
  const std::string images =
      R"({"images":[{"id":")" + kRef + R"(","repoTags":[")" + kImage + R"("],"repoDigests":[]}]})";
  const CommandResult replayed = store.Run("start", {"--images", "-"}, images);
  BOOST_TEST(replayed.exit_code == 0, replayed.err);
  BOOST_TEST(Contains(replayed.out, "replayed    " + kImage), replayed.out);
  // Nobody's credentials are known for it.
  const Strings check = {"--image", kImage, "--image-ref", kRef, "--secret", kSecret};
  BOOST_TEST(store.Run("check", check).exit_code == 1);
}

BOOST_AUTO_TEST_CASE(check_answers_by_secret) {
  const CliStore store;
  store.Start();
  const Strings pulled = {"--image", kImage, "--image-ref", kRef, "--secret", kSecret};
  BOOST_TEST(store.Run("pulled", pulled).exit_code == 0);

  const CommandResult yes = store.Run("check", pulled);
  BOOST_TEST(yes.exit_code == 0, yes.out + yes.err);
  BOOST_TEST(yes.out.starts_with("no pull: "), yes.out);
  BOOST_TEST(std::count(yes.out.begin(), yes.out.end(), '\n') == 1);
  auto json = store.Json("check", pulled);
  BOOST_TEST(json["pull"] == false);
  BOOST_TEST(json["result"] == "credentialRecordFound");
  BOOST_TEST(json["reason"] == "secretHashMatches");
  BOOST_TEST(json["credentialsRead"] == true);

  const Strings other = {"--image", kImage,     "--image-ref",
                         kRef,      "--secret", "other/pull/uid-2/beef"};
  const CommandResult no = store.Run("check", other);
  BOOST_TEST(no.exit_code == 1);
  BOOST_TEST(no.out.starts_with("pull: "), no.out);
  BOOST_TEST(store.Json("check", other)["result"] == "mustAuthenticate");
  BOOST_TEST(store.Run("check", {"--image", kImage, "--image-ref", kRef}).exit_code == 1);

  // Coordinates alone, in each spelling of "no hash".
  for (const char* secret : {"tenant/pull/uid-1", "tenant/pull/uid-1/"}) {
    const Strings bare = {"--image", kImage, "--image-ref", kRef, "--secret", secret};
    BOOST_TEST(store.Json("check", bare)["reason"] == "secretCoordinatesMatch", secret);
  }
}

BOOST_AUTO_TEST_CASE(check_answers_by_service_account) {
  const CliStore store;
  store.Start();
  const Strings pulled = {
      "--image", kImage, "--image-ref", kRef, "--service-account", "tenant/builder/uid-9"};
  BOOST_TEST(store.Run("pulled", pulled).exit_code == 0);
  BOOST_TEST(store.Json("check", pulled)["reason"] == "serviceAccountMatches");
  const Strings other = {"--image",           kImage, "--image-ref", kRef, "--service-account",
                         "tenant/other/uid-9"};
  BOOST_TEST(store.Run("check", other).exit_code == 1);
}

BOOST_AUTO_TEST_CASE(check_follows_policy_and_allowlist) {
  const CliStore store;
  store.Start();
  const auto check = [&](Strings more) {
    more.insert(more.end(), {"--image", kImage, "--image-ref", kRef});
    return store.Run("check", more).exit_code;
  };
  BOOST_TEST(check({}) == 0);  // presumed preloaded
  BOOST_TEST(check({"--policy", "NeverVerify"}) == 0);
  BOOST_TEST(check({"--policy", "AlwaysVerify"}) == 1);
  const Strings listed = {"--policy", "NeverVerifyAllowlistedImages"};
  BOOST_TEST(check(listed) == 1);
  Strings by_prefix = listed;
  by_prefix.insert(by_prefix.end(), {"--allow", "other", "--allow=registry.example.com/*"});
  BOOST_TEST(check(by_prefix) == 0);
  by_prefix.emplace_back("--allow-preloaded-only");
  BOOST_TEST(check(by_prefix) == 0);
}

BOOST_AUTO_TEST_CASE(check_says_what_the_kubelet_does_next) {
  const CliStore store;
  store.Start();
  const auto check = [&](const std::string& policy, const std::string& ref) {
    return store.Json("check", {"--image", kImage, "--image-ref=" + ref, "--pull-policy", policy});
  };
  BOOST_TEST(check("Always", kRef)["pull"] == true);
  BOOST_TEST(check("Always", kRef)["reason"].is_null());
  BOOST_TEST(check("IfNotPresent", kRef)["pull"] == false);
  BOOST_TEST(check("IfNotPresent", "")["pull"] == true);
  auto never = check("Never", "");
  BOOST_TEST(never["pull"] == true);
  BOOST_TEST(never["action"] == "ErrImageNeverPull");
  BOOST_TEST(Contains(never["message"].get<std::string>(), kImage));
  const Strings use = {"--image", kImage, "--image-ref", kRef, "--pull-policy", "Never"};
  BOOST_TEST(store.Run("check", use).exit_code == 0);
}

BOOST_AUTO_TEST_CASE(check_works_beside_a_live_owner) {
  const CliStore store;
  store.Start();
  auto owner = NodeStore::Open({.directory = store.store(), .witness = Witness::Remembered()});
  BOOST_REQUIRE(owner.has_value());
  BOOST_TEST((*owner)->RecordPullIntent({.image = kImage}).has_value());
  const Strings check = {"--image", kImage, "--image-ref", kRef};
  BOOST_TEST(store.Json("check", check)["reason"] == "pullInFlight");
  BOOST_TEST(store.Run("list", {"--intents"}).out ==
             "IMAGE                             RUNTIME\n" + kImage + "  (default)\n");
  BOOST_TEST(store.Run("verify").exit_code == 0);
  BOOST_TEST(store.Run("dump").exit_code == 0);
}

BOOST_AUTO_TEST_CASE(an_intent_lives_until_its_image_is_pulled) {
  const CliStore store;
  store.Start();
  const Strings image = {"--image", kImage};
  BOOST_TEST(store.Run("show", {kImage}).exit_code == 1);
  BOOST_TEST(store.Run("intent", image).out == "intent recorded: " + kImage + "\n");
  BOOST_TEST(store.Run("show", {kImage}).exit_code == 0);
  BOOST_TEST(store.Json("failed", image)["intent"] == true);
  BOOST_TEST(store.Run("pulled", {"--image", kImage, "--image-ref", kRef}).exit_code == 0);
  BOOST_TEST(store.Json("show", {kImage})["intent"] == false);

  // The kubelet's rules let a failure take an inherited intent with it.
  BOOST_TEST(store.Run("intent", image).exit_code == 0);
  BOOST_TEST(store.Json("failed", {"--image", kImage, "--rules", "kubelet"})["intent"] == false);
}

BOOST_AUTO_TEST_CASE(pulled_says_to_whom_it_opens) {
  const CliStore store;
  store.Start();
  const CommandResult all = store.Run("pulled", {"--image", "a", "--image-ref", "ref-a"});
  BOOST_TEST(Contains(all.out, "all pods of the node"), all.out);
  auto unknown =
      store.Json("pulled", {"--image", "b", "--image-ref", "ref-b", "--credentials-unknown"});
  BOOST_TEST(unknown["nodePodsAccessible"] == false);
  BOOST_TEST(store.Run("check", {"--image", "a", "--image-ref", "ref-a"}).exit_code == 0);
  BOOST_TEST(store.Run("check", {"--image", "b", "--image-ref", "ref-b"}).exit_code == 1);
}

BOOST_AUTO_TEST_CASE(prune_spares_what_is_listed_or_newer) {
  const CliStore store;
  store.Start();
  for (const std::string name : {"kept", "gone"}) {
    store.Run("pulled", {"--image", name, "--image-ref", "ref-" + name});
  }
  std::string token = store.Run("prune", {"--begin"}).out;
  BOOST_REQUIRE(token.ends_with('\n'));
  token.pop_back();
  store.Run("pulled", {"--image", "newer", "--image-ref", "ref-newer"});
  const std::string images = R"({"images":[{"id":"ref-kept","repoTags":[],"repoDigests":[]}]})";
  testing::WriteFile(store / "images.json", images);
  std::vector<std::string> prune = {"--images", (store / "images.json").string(), "--token", token};
  prune.emplace_back("--dry-run");
  const CommandResult dry = store.Run("prune", prune);
  BOOST_TEST(dry.exit_code == 0, dry.err);
  BOOST_TEST(dry.out.starts_with("dry run: nothing was changed"), dry.out);
  BOOST_TEST(store.Json("prune", prune)["removed"] == 1);
  BOOST_TEST(store.Json("stats")["records"] == 3);
  prune.pop_back();
  auto report = store.Json("prune", prune);
  BOOST_TEST(report["dryRun"] == false);
  BOOST_TEST(report["removed"] == 1);
  BOOST_TEST(report["keptInList"] == 1);
  BOOST_TEST(report["keptNewer"] == 1);
  BOOST_TEST(store.Run("show", {"--image-ref", "ref-gone"}).exit_code == 1);
  BOOST_TEST(store.Run("show", {"--image-ref", "ref-newer"}).exit_code == 0);

  const CommandResult by_time =
      store.Run("prune", {"--images", "-", "--until", "9998-01-01T00:00:00+01:00"}, images);
  BOOST_TEST(by_time.exit_code == 0, by_time.err);
  BOOST_TEST(store.Json("stats")["records"] == 1);
}

BOOST_AUTO_TEST_CASE(an_empty_list_of_images_is_refused_unless_it_is_meant) {
  const CliStore store;
  const std::string empty = R"({"images":[]})";
  // Nothing is there that it could be wrong about.
  BOOST_TEST(store.Start({"--images", "-"}, empty).exit_code == 0);
  store.Run("pulled", {"--image", "kept", "--image-ref", "ref-kept"});
  std::string token = store.Run("prune", {"--begin"}).out;
  token.pop_back();
  const std::vector<std::string> prune = {"--images", "-", "--token", token};
  const CommandResult refused = store.Run("prune", prune, empty);
  BOOST_TEST(refused.exit_code == 2);
  BOOST_TEST(Contains(refused.err, "--allow-empty"), refused.err);
  BOOST_TEST(store.Start({"--images", "-"}, empty).exit_code == 2);
  BOOST_TEST(store.Start({"--images", "-", "--after-gap"}, empty).exit_code == 2);
  BOOST_TEST(store.Start({"--images", "-", "--allow-empty"}, empty).exit_code == 0);
  BOOST_TEST(store.Json("stats")["records"] == 1);
  BOOST_TEST(
      store.Run("prune", {"--images", "-", "--token", token, "--allow-empty"}, empty).exit_code ==
      0);
  BOOST_TEST(store.Json("stats")["records"] == 0);
}

BOOST_AUTO_TEST_CASE(hash_prints_hashes_and_never_secrets) {
  const std::string config =
      R"({"auths":{"a.example":{"auth":"dXNlcjpodW50ZXIy"},"b.example":{"username":"u","password":"hunter2"}}})";
  const CommandResult text = RunWaybill({"hash"}, config);
  BOOST_TEST(text.exit_code == 0, text.err);
  const auto expected = HashCredentials({.username = "user", .password = "hunter2", .email = ""});
  BOOST_REQUIRE(expected.has_value());
  BOOST_TEST(text.out.starts_with("a.example  " + *expected + "\nb.example  "), text.out);
  BOOST_TEST(!Contains(text.out, "hunter2"));
  auto one =
      nlohmann::json::parse(RunWaybill({"hash", "--json", "--registry", "a.example"}, config).out);
  BOOST_TEST(one["credentials"].size() == 1U);
  BOOST_TEST(one["credentials"][0]["hash"] == *expected);
  BOOST_TEST(RunWaybill({"hash", "--registry", "c.example"}, config).exit_code == 1);
}

BOOST_AUTO_TEST_CASE(list_show_and_dump_redact_hashes) {
  const CliStore store;
  store.Start();
  store.Run("pulled", {"--image", kImage, "--image-ref", kRef, "--secret", kSecret});
  store.Run("intent", {"--image", "nginx"});
  const CommandResult list = store.Run("list");
  BOOST_TEST(list.out.starts_with("IMAGE REF"), list.out);
  BOOST_TEST(Contains(list.out, "registry.example.com/team/app  1 secret"), list.out);
  const CommandResult show = store.Run("show", {"--image-ref", kRef});
  BOOST_TEST(Contains(show.out, "secret tenant/pull/uid-1\n"), show.out);
  const Strings as_json = {"--image-ref", kRef, "--json"};
  for (const std::string& text : {list.out, show.out, store.Run("list", {"--json"}).out,
                                  store.Run("show", as_json).out, store.Run("dump").out}) {
    BOOST_TEST(!Contains(text, "cafe"), text);
  }
  auto lines = Lines(store.Run("dump", {"--with-hashes"}).out);
  BOOST_REQUIRE(lines.size() == 2U);
  BOOST_TEST(lines[0]["type"] == "intent");
  BOOST_TEST(lines[1]["type"] == "record");
  auto& entry = lines[1]["credentialMapping"]["registry.example.com/team/app"];
  BOOST_TEST(entry["kubernetesSecrets"][0]["credentialHash"] == "cafe");
}

BOOST_AUTO_TEST_CASE(text_never_steers_the_terminal) {
  const CliStore store;
  store.Start();
  const std::string hostile = "a\x1b[2J\n\u202eb\x9b";
  store.Run("intent", {"--image", hostile});
  store.Run("pulled", {"--image", kImage, "--image-ref", hostile});
  const CommandResult list = store.Run("list", {"--intents"});
  BOOST_TEST(list.out.ends_with("\na\\x1b[2J\\n\\u202eb\\x9b  (default)\n"), list.out);
  const CommandResult refused = store.Run("check", {"--image", hostile, "--policy", hostile});
  BOOST_TEST(refused.exit_code == 2);
  for (const std::string& text : {store.Run("list").out, store.Run("dump").out, refused.err}) {
    BOOST_TEST(!Contains(text, "\x1b"), text);
    BOOST_TEST(!Contains(text, "\u202e"), text);
  }
}

BOOST_AUTO_TEST_CASE(stats_metrics_and_verify) {
  const CliStore store;
  store.Start();
  store.Run("pulled", {"--image", kImage, "--image-ref", kRef});
  auto stats = store.Json("stats");
  BOOST_TEST(stats["records"] == 1);
  BOOST_TEST(stats["schemaVersion"] == kNewestSchema);
  BOOST_TEST(Contains(store.Run("stats").out, "commit sequence"));
  BOOST_TEST(Contains(store.Run("metrics").out, "\nkubelet_imagemanager_ondisk_pulledrecords 1\n"));
  BOOST_TEST(stats["nondefaultHandlerRecords"] == 0);
  auto metrics = store.Json("metrics");
  BOOST_TEST(metrics["kubelet_imagemanager_ondisk_pulledrecords"] == 1);
  BOOST_TEST(metrics["waybill_nondefault_runtime_handler_images"] == 0);
  BOOST_TEST(store.Run("verify").exit_code == 0);
  BOOST_TEST(store.Json("verify")["sound"] == true);
}

BOOST_AUTO_TEST_CASE(a_wiped_store_is_distrustful_until_cleared) {
  const CliStore store;
  store.Start();
  BOOST_TEST(store.Run("trust").exit_code == 0);
  std::filesystem::remove_all(store.store());
  const CommandResult started = store.Start();
  BOOST_TEST(started.exit_code == 0);
  BOOST_TEST(Contains(started.out, "DISTRUSTFUL"), started.out);
  BOOST_TEST(Contains(started.err, "waybill trust --store " + store.store() + " --clear"),
             started.err);
  BOOST_TEST(store.Run("trust").exit_code == 1);
  BOOST_TEST(store.Json("check", {"--image", kImage, "--image-ref", kRef})["reason"] ==
             "storeDistrustful");
  const CommandResult cleared = store.Run("trust", {"--clear", "--reason", "new disk"});
  BOOST_TEST(cleared.exit_code == 0, cleared.err);
  auto trust = store.Json("trust");
  BOOST_TEST(trust["distrustful"] == false);
  BOOST_TEST(trust["journal"].size() == 2U);
  BOOST_TEST(trust["journal"][1]["reason"] == "new disk");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waybill
