// `waybill` where a session in a shell (transcripts_test.cc) does not reach: beside a process that
// owns the store, stopped by a signal, on a disk with a bad sector.

#include <signal.h>

#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <regex>

#include "store/base/options.h"
#include "store/maintenance.h"
#include "tests/support/cli_store.h"
#include "tests/support/forked_child.h"
#include "tests/support/metrics.h"
#include "tests/support/mounts.h"
#include "tests/support/node_store.h"
#include "waybill/waybill.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(cli)

namespace {

using testing::CliStore;
using testing::CommandResult;
using testing::Contains;
using Owned = testing::OwnedCliStore;
using Strings = std::vector<std::string>;

const Strings kApp = {"--image", "app:v1", "--image-ref", "ref"};

}  // namespace

BOOST_FIXTURE_TEST_CASE(what_reads_works_beside_an_owner, Owned) {
  BOOST_TEST(owner->RecordPullIntent({.image = "app:v1"}).has_value());
  const nlohmann::json answer = store.Json("check", kApp);
  BOOST_TEST(answer["reason"] == "noEvidence");
  BOOST_TEST(answer["explanation"]["pulls"].size() == 1U);
  BOOST_TEST(store.Json("pulls")["pulls"].size() == 1U);
  BOOST_TEST(store.Json("preload")["preloaded"].empty());
  BOOST_TEST(store.Json("runtimes")["handlers"].size() == 1U);
  BOOST_TEST(store.Json("stats")["records"] == 0);
  BOOST_TEST(store.Run("list", {"--intents"}).out == "IMAGE   RUNTIME\napp:v1  (default)\n");
  BOOST_TEST(store.Run("verify").exit_code == 0);
  BOOST_TEST(store.Run("dump").exit_code == 0);
  std::filesystem::create_directory(store / "kubelet");
  const nlohmann::json exported =
      store.Json("export", {"--kubelet-dir", store / "kubelet", "--images", "-"},
                 R"({"images":[{"id":"ref","repoTags":["app:v1"]}]})");
  BOOST_TEST(exported["intents"] == 1);
  BOOST_TEST(exported["made"] == 1);
}

// What writes is refused: cli/waiting.
BOOST_FIXTURE_TEST_CASE(a_backup_into_a_file_needs_no_owners_word, Owned) {
  BOOST_TEST(owner->RecordPullIntent({.image = "app:v1"}).has_value());
  const nlohmann::json file = store.Json("backup", {store / "backup-file"});
  BOOST_TEST(file["path"] == (store / "backup-file").string());
  BOOST_TEST(file["commit"] == owner->GetStatistics()->commit_sequence);
  BOOST_TEST(store.Run("backup", {store / "backup-file"}).exit_code == 2);
  const CommandResult unserved = store.Run("backup");
  BOOST_TEST(unserved.exit_code == 3);
  BOOST_TEST(Contains(unserved.err, "does not serve owner.sock"), unserved.err);
}

// Every command that asks an owner, on a fresh store: exit codes, output and errors.
std::vector<std::string> WritingSession(const CliStore& store) {
  std::vector<std::string> said;
  const auto run = [&](const std::string& command, const Strings& more) {
    const CommandResult result = store.Run(command, more);
    std::string text = command + (more.empty() ? "" : " " + more[0]) + " -> " +
                       std::to_string(result.exit_code) + "\n" + result.out + result.err;
    for (const std::string& own : {store.store(), (store / "images.json").string()}) {
      text = testing::Replaced(text, own, "DIR");
    }
    // The sessions are made one after the other.
    static const std::regex kTime(R"(\d{4}-\d\d-\d\dT[0-9:.]+Z)");
    said.push_back(std::regex_replace(text, kTime, "TIME"));
    return result.out;
  };
  const auto draw = [&](const std::string& command) {
    std::string token = store.Run(command, {"--begin"}).out;
    token.pop_back();
    return token;
  };
  const std::string a = "sha256:" + std::string(64, 'a');
  const std::string b = "sha256:" + std::string(64, 'b');
  const std::string images = store / "images.json";
  testing::WriteFile(images, R"({"images":[{"id":")" + a + R"(","repoTags":["r.example/a:1"]}]})");
  const std::string token = draw("observe");
  run("observe", {"--images", images, "--token", token, "--dry-run"});
  run("observe", {"--images", images, "--token", token, "-o", "json"});
  run("observe", {"--images", images, "--token", "1.1.1." + std::string(32, '0')});
  run("preload", {"add", b, "--reason", "why", "--dry-run"});
  run("preload", {"add", b, "--reason", "why"});
  run("preload", {"add", "r.example/a:1", "--images", images, "--reason", "why", "-o", "json"});
  run("preload", {"add", b, "--reason", "why", "--runtime", "odd"});
  run("preload", {"remove", b, "--reason", "why"});
  run("preload", {"remove", b, "--reason", "why"});
  run("pulls", {"drop", "7", "--reason", "why"});
  run("preload", {"remove", "aaaaaa", "--reason", "why", "-o", "json"});
  for (const char* ref : {"aaaaaa", "sha256:aaaaaaaaaaaa", "bbbbbb", "r.example/a:1"}) {
    run("check", {"--image", "r.example/a:1", "--image-ref", ref});
    run("forget", {"image", ref, "--dry-run"});
    run("preload", {"remove", ref, "--reason", "why", "--dry-run"});
    std::string pull = run("intent", {"--image", "r.example/a:1", "-q"});
    pull.pop_back();
    run("pulled", {"--image", "r.example/a:1", "--image-ref", ref, "--pull", pull});
  }
  run("forget", {"image", "sha256:aaaaaa"});
  run("forget", {"image", a, "--runtime", "odd"});
  run("prune", {"--images", images, "--token", draw("prune"), "--dry-run"});
  run("prune", {"--images", images, "--token", draw("prune")});
  run("prune", {"--images", images, "--until", "2030-01-01T00:00:00Z", "-o", "json"});
  testing::WriteFile(images, R"({"images":[]})");
  run("prune", {"--images", images, "--token", draw("prune")});
  run("userns", {"adopt", "pod-1", "458752", "65536"});
  run("userns", {"adopt", "pod-2", "458752", "65536"});
  run("userns", {"release", "pod-1", "--dry-run"});
  run("userns", {"release", "pod-1"});
  run("userns", {"release", "pod-1", "-o", "json"});
  run("userns", {"release", "--lost"});
  run("call", {"Revoke", R"({"kind":"namespace","namespace":"gone"})"});
  run("call", {"Revoke", R"({"kind":"namespace","namespace":"gone","dryRunn":true})"});
  run("call", {"DropPulls", R"({"pull":7,"reason":"why"})"});
  run("backup", {"extra", "more"});
  BOOST_TEST(Contains(run("backup", {}), "/backup/v"));
  run("trust", {"--clear", "--reason", "why", "--dry-run"});
  // It tells times as well.
  BOOST_TEST(Contains(store.Run("trust", {"--clear", "--reason", "why"}).out, "trusted: "));
  return said;
}

BOOST_AUTO_TEST_CASE(what_writes_does_the_same_through_an_owner_that_serves) {
  const CliStore alone;
  BOOST_TEST(alone.Start().exit_code == 0);
  std::vector<std::string> expected = WritingSession(alone);
  Owned served;
  BOOST_TEST(served.owner->Serve().has_value());
  std::vector<std::string> got = WritingSession(served.store);
  BOOST_TEST(expected.size() == got.size());
  for (std::size_t i = 0; i < expected.size() && i < got.size(); ++i) {
    // A backup's name has the time, and its size.
    if (got[i].starts_with("backup -> 0")) continue;
    BOOST_TEST(expected[i] == got[i]);
  }
  // It was the owner that wrote.
  BOOST_TEST(served.owner->ListLedger().value().empty());
  BOOST_TEST(served.owner->GetTrust().value().journal.size() >= 2U);
  BOOST_TEST(BackupsOf(served.store.store()).value().size() == 1U);
}

BOOST_FIXTURE_TEST_CASE(an_owner_goes_by_its_own_short_names, Owned) {
  BOOST_TEST(owner->Serve().has_value());
  const std::string images = store / "images.json";
  testing::WriteFile(images, R"({"images":[{"id":"ref","repoTags":["app:v1"]}]})");
  std::string token = store.Run("observe", {"--begin"}).out;
  token.pop_back();
  const auto observe = [&](const Strings& more) {
    Strings all = {"--images", images, "--token", token};
    all.insert(all.end(), more.begin(), more.end());
    return store.Run("observe", all);
  };
  const CommandResult names = observe({"--short-names", "docker.io"});
  BOOST_TEST(names.exit_code == 2);
  BOOST_TEST(Contains(names.err, "--short-names: "), names.err);
  BOOST_TEST(observe({"--short-names", "anywhere"}).exit_code == 0);
}

BOOST_FIXTURE_TEST_CASE(an_owner_counts_how_pulls_failed, Owned) {
  BOOST_TEST(owner->Serve().has_value());
  for (const Strings& how :
       {Strings{"--class", "auth"},
        {"--error", "unexpected status from HEAD request to https://r/v2/x: 401 Unauthorized"},
        {"--unknown", "--error", "dial tcp: lookup r.example: no such host"},
        {}}) {
    const CommandResult begun = store.Run("intent", {"--image", "app:v1", "-q"});
    BOOST_TEST(begun.exit_code == 0, begun.err);
    Strings failed = {"--image", "app:v1", "--pull", begun.out.substr(0, begun.out.find('\n'))};
    failed.insert(failed.end(), how.begin(), how.end());
    const CommandResult result = store.Run("failed", failed);
    BOOST_TEST(result.exit_code == 0, result.err);
  }
  const auto metrics = owner->GetMetrics();
  const auto ended = [&](std::string_view outcome, std::string_view error_class) {
    return testing::ValueOf(metrics, "waybill_pulls_total", {outcome, error_class});
  };
  BOOST_TEST(ended("failed", "auth") == 2);
  BOOST_TEST(ended("unknown", "unavailable") == 1);
  BOOST_TEST(ended("failed", "unknown") == 1);
}

BOOST_AUTO_TEST_CASE(after_an_owner_commands_own_the_store_again) {
  const CliStore store;
  BOOST_TEST(store.Start().exit_code == 0);
  {
    auto owner =
        testing::NodeStore::Open({.directory = store.store(), .witness = Witness::Remembered()})
            .value();
    BOOST_TEST(owner->Serve().has_value());
    BOOST_TEST(store.Run("observe", {"--begin"}).exit_code == 0);
  }
  BOOST_TEST(store.Run("observe", {"--begin"}).exit_code == 0);
  testing::WriteFile(std::filesystem::path(store.store()) / "owner.sock", "in the way");
  const CommandResult refused = store.Run("observe", {"--begin"});
  BOOST_TEST(refused.exit_code == 3);
  BOOST_TEST(Contains(refused.err, "owner.sock"), refused.err);
}

BOOST_AUTO_TEST_CASE(start_can_be_stopped_and_run_again) {
  const CliStore store;
  const auto pulling = store / "kubelet/image_manager/pulling";
  std::filesystem::create_directories(pulling);
  for (int i = 0; i < 500; ++i) {
    // Unreadable files: each becomes a quarantine entry, known by its name.
    char name[72];
    std::snprintf(name, sizeof name, "sha256-%064x", static_cast<unsigned>(i));
    testing::WriteFile(pulling / name, "{");
  }
  for (int round = 0; round < 5; ++round) {
    testing::RunningCommand running(
        {WAYBILL_CLI, "start", "--store", store.store(), "--kubelet-dir", store / "kubelet"});
    kill(running.pid(), round % 2 == 0 ? SIGTERM : SIGINT);
    const CommandResult result = running.Wait();
    // Before the handler was there, in the middle, or after the import.
    const bool expected = result.exit_code > 128 || result.exit_code == 3 || result.exit_code == 0;
    BOOST_TEST(expected, result.exit_code << ": " << result.err);
  }
  BOOST_TEST(store.Run("start", {"--kubelet-dir", store / "kubelet"}).exit_code == 0);
  BOOST_TEST(store.Json("stats")["quarantinedFiles"] == 500);
  BOOST_TEST(store.Run("verify").exit_code == 0);
}

BOOST_AUTO_TEST_CASE(a_bad_sector_stops_start_unless_it_is_to_be_skipped) {
  const CliStore store;
  const auto kubelet = store / "kubelet-v1.36";
  std::filesystem::copy(WAYBILL_FIXTURES "/kubelet-v1.36", kubelet,
                        std::filesystem::copy_options::recursive);
  const std::filesystem::path bad =
      *std::filesystem::directory_iterator(kubelet / "image_manager/pulled");
  constexpr int kLeftOut = 77;
  testing::Child child([&] {
    if (!testing::MakeUnreadable(bad)) return kLeftOut;
    const CommandResult refused = store.Start({"--kubelet-dir", kubelet});
    if (refused.exit_code != 3 || !Contains(refused.err, bad.string()) ||
        !Contains(refused.err, "Input/output error") || !Contains(refused.err, "try again") ||
        !Contains(refused.err, "--skip-unreadable")) {
      return 1;
    }
    const CommandResult skipped = store.Start({"--kubelet-dir", kubelet, "--skip-unreadable"});
    if (skipped.exit_code != 0 || !Contains(skipped.out, bad.filename().string())) return 2;
    return store.Run("trust").exit_code == 0 ? 0 : 3;
  });
  const int code = child.Wait();
  if (code == kLeftOut) {
    BOOST_TEST_MESSAGE("left out: " << testing::kMayNotMount);
    return;
  }
  BOOST_TEST(code == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
