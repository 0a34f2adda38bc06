// `waybill` where a session in a shell (transcripts_test.cc) does not reach: beside a process that
// owns the store, stopped by a signal, on a disk with a bad sector.

#include <signal.h>

#include <boost/test/unit_test.hpp>
#include <cstdio>

#include "tests/support/cli_store.h"
#include "tests/support/forked_child.h"
#include "tests/support/mounts.h"
#include "waybill/waybill.h"

namespace waybill {
namespace {

using testing::CliStore;
using testing::CommandResult;
using Strings = std::vector<std::string>;

const Strings kApp = {"--image", "app:v1", "--image-ref", "ref"};

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A store that this process owns.
struct Owned {
  Owned() {
    BOOST_TEST(store.Start().exit_code == 0);
    owner = NodeStore::Open({.directory = store.store(), .witness = Witness::Remembered()}).value();
  }
  CliStore store;
  std::unique_ptr<NodeStore> owner;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cli)

BOOST_FIXTURE_TEST_CASE(what_reads_works_beside_an_owner, Owned) {
  BOOST_TEST(owner->RecordPullIntent({.image = "app:v1"}).has_value());
  const nlohmann::json answer = store.Json("check", kApp);
  BOOST_TEST(answer["reason"] == "noEvidence");
  BOOST_TEST(answer["explanation"]["pulls"].size() == 1U);
  BOOST_TEST(store.Json("pulls")["pulls"].size() == 1U);
  BOOST_TEST(store.Json("preload")["ledger"].empty());
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

BOOST_FIXTURE_TEST_CASE(what_writes_is_refused_beside_an_owner, Owned) {
  testing::WriteFile(store / "backup.mdb", testing::ReadFile(store / "store/data.mdb"));
  const std::string images = store / "images.json";
  testing::WriteFile(images, R"({"images":[{"id":"ref","repoTags":["app:v1"]}]})");
  const std::string token = "1.1.1." + std::string(32, '0');
  for (const Strings& command : std::vector<Strings>{
           {"start"},
           {"start", "--dry-run"},
           {"observe", "--begin"},
           {"observe", "--images", images, "--token", token},
           {"preload", "add", "sha256:" + std::string(64, 'a'), "--reason", "why"},
           {"preload", "remove", "sha256:" + std::string(64, 'a'), "--reason", "why"},
           {"pulls", "drop", "1", "--reason", "why"},
           {"intent", "--image", "app:v1"},
           {"pulled", "--image=app:v1", "--image-ref=r"},
           {"prune", "--begin"},
           {"trust", "--clear", "--reason", "why"},
           {"runtimes", "collapse"},
           {"migrate"},
           {"migrate", "--to", "1"},
           {"migrate", "--dry-run"},
           {"restore", store / "backup.mdb"}}) {
    BOOST_TEST_CONTEXT(command[0]) {
      const Strings more(command.begin() + 1, command.end());
      const CommandResult result = store.Run(command[0], more);
      BOOST_TEST(result.exit_code == 3, result.out);
      BOOST_TEST(result.err.starts_with("error: "), result.err);
      BOOST_TEST(store.Json(command[0], more)["error"]["code"] == "owned");
    }
  }
  BOOST_TEST(store.Json("runtimes")["runtimeHandlers"].size() == 1U);
  BOOST_TEST(store.Json("stats")["records"] == 0);
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
  BOOST_TEST(store.Json("stats")["quarantineEntries"] == 500);
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
