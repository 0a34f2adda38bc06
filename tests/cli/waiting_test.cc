// `--wait`: commands that write, while another process owns the store.

#include <signal.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <deque>
#include <set>
#include <thread>

#include "store/base/options.h"
#include "store/calls/streaming_store.h"
#include "tests/support/cli_store.h"
#include "tests/support/node_store.h"
#include "waybill/waybill.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(waiting)

namespace {

using testing::CliStore;
using testing::CommandResult;
using testing::Contains;
using testing::RunningCommand;
using Strings = std::vector<std::string>;

const std::string kLong = "600";

// Until it ends or waits: then it catches SIGTERM, which no command does before.
void UntilItWaits(const RunningCommand& command) {
  while (command.Runs()) {
    const std::string status =
        testing::ReadFile("/proc/" + std::to_string(command.pid()) + "/status");
    const std::string name = "SigCgt:\t";
    const std::size_t at = status.find(name);
    if (at == std::string::npos) continue;
    const std::uint64_t caught = std::strtoull(status.c_str() + at + name.size(), nullptr, 16);
    if (((caught >> (SIGTERM - 1)) & 1) != 0) return;
    std::this_thread::yield();
  }
}

struct Owned : testing::OwnedCliStore {
  Strings Arguments(const Strings& command, const std::string& wait) const {
    Strings all = {WAYBILL_CLI, command[0], "--store", store.store(), "--wait", wait};
    all.insert(all.end(), command.begin() + 1, command.end());
    return all;
  }
};

const Strings kIntent = {"intent", "--image", "app:v1"};

}  // namespace

BOOST_FIXTURE_TEST_CASE(without_it_a_command_fails_at_once_and_names_the_owner, Owned) {
  const std::string process = "process " + std::to_string(getpid());
  for (const Strings& wait : std::vector<Strings>{{}, {"--wait", "0"}, {"--wait", "0s"}}) {
    Strings more = {"--image", "app:v1"};
    more.insert(more.end(), wait.begin(), wait.end());
    const CommandResult result = store.Run("intent", more);
    BOOST_TEST(result.exit_code == 3);
    BOOST_TEST(Contains(result.err, "is owned by " + process), result.err);
    BOOST_TEST(Contains(result.err, "`--wait 30s` waits until it ends"), result.err);
    BOOST_TEST(!Contains(result.err, "in vain"), result.err);
  }
}

BOOST_FIXTURE_TEST_CASE(when_the_time_is_up_it_says_how_long_and_for_whom, Owned) {
  const CommandResult result = store.Run("intent", {"--image", "app:v1", "--wait", "1"});
  BOOST_TEST(result.exit_code == 3);
  BOOST_TEST(Contains(result.err, "waited 1s in vain: "), result.err);
  BOOST_TEST(Contains(result.err, "is owned by process " + std::to_string(getpid())), result.err);
  BOOST_TEST(store.Json("intent", {"--image", "app:v1", "--wait", "1s"})["error"]["code"] ==
             "owned");
  BOOST_TEST(owner->ListOpenPulls()->empty());
}

BOOST_FIXTURE_TEST_CASE(what_is_no_time_is_refused, Owned) {
  for (const std::string wait :
       {"", "-1", "1.5", "x", "s", "2d", "86401", "99999999999999999999", "1 s", "0x10", "∞"}) {
    BOOST_TEST_CONTEXT(wait) {
      const CommandResult result = store.Run("intent", {"--image", "app:v1", "--wait=" + wait});
      BOOST_TEST(result.exit_code == 2);
      BOOST_TEST(Contains(result.err, "--wait"), result.err);
    }
  }
}

BOOST_FIXTURE_TEST_CASE(it_goes_on_once_the_owner_is_gone, Owned) {
  RunningCommand waits(Arguments(kIntent, kLong));
  UntilItWaits(waits);
  BOOST_TEST(waits.Runs());
  BOOST_TEST(owner->Close().has_value());
  const CommandResult result = waits.Wait();
  BOOST_TEST(result.exit_code == 0, result.err);
  BOOST_TEST(store.Json("pulls")["pulls"].size() == 1U);
}

BOOST_FIXTURE_TEST_CASE(each_command_that_writes_waits_and_a_signal_ends_it, Owned) {
  testing::WriteFile(store / "backup.mdb", testing::ReadFile(store / "store/data.mdb"));
  const std::string images = store / "images.json";
  testing::WriteFile(images, R"({"images":[{"id":"ref","repoTags":["app:v1"]}]})");
  const std::string info = store / "info.json";
  testing::WriteFile(info, R"({"runtimeHandlers":[{"name":""}]})");
  const std::string id = "sha256:" + std::string(64, 'a');
  const std::string token = "1.1.1." + std::string(32, '0');
  bool by_term = false;
  for (const Strings& command :
       std::vector<Strings>{{"start"},
                            {"start", "--dry-run-in", store / "trial"},
                            kIntent,
                            {"pulled", "--image=app:v1", "--image-ref=r"},
                            {"failed", "--image=app:v1"},
                            {"observe", "--begin"},
                            {"observe", "--images", images, "--token", token},
                            {"preload", "add", id, "--reason", "why"},
                            {"preload", "remove", id, "--reason", "why"},
                            {"pulls", "drop", "1", "--reason", "why"},
                            {"prune", "--begin"},
                            {"forget", "namespace", "x"},
                            {"reconcile", "--begin"},
                            {"trust", "--clear", "--reason", "why"},
                            {"runtimes", "load", "--status", info},
                            {"runtimes", "collapse"},
                            {"userns", "get", "pod"},
                            {"userns", "release", "pod"},
                            {"userns", "cleanup", "--begin"},
                            {"backup"},
                            {"migrate"},
                            {"migrate", "--dry-run"},
                            {"check", "--image=app:v1", "--image-ref=r", "--write-back"},
                            {"restore", store / "backup.mdb"}}) {
    BOOST_TEST_CONTEXT(command[0] << (command.size() > 1 ? " " + command[1] : "")) {
      RunningCommand waits(Arguments(command, kLong));
      UntilItWaits(waits);
      BOOST_TEST(waits.Runs());
      by_term = !by_term;
      kill(waits.pid(), by_term ? SIGTERM : SIGINT);
      const CommandResult result = waits.Wait();
      BOOST_TEST(result.exit_code == 3);
      BOOST_TEST(Contains(result.err, "error: stopped by a signal while waiting: "), result.err);
      const bool tries = command.size() > 1 && command[1] == "--dry-run-in";
      const std::string who = tries ? "a process that owns" : "process " + std::to_string(getpid());
      BOOST_TEST(Contains(result.err, who), result.err);
    }
  }
  BOOST_TEST(owner->ListOpenPulls()->empty());
}

BOOST_AUTO_TEST_CASE(tokens_of_streams_wait_too) {
  const CliStore store;
  auto owner =
      StreamingStore::Open({.directory = store.store(), .witness = Witness::None()}).value();
  RunningCommand waits({WAYBILL_CLI, "streaming", "prepare", "exec", "--store", store.store(),
                        "--container", "c1", "--stdout", "--wait", kLong, "--", "ls"});
  UntilItWaits(waits);
  BOOST_TEST(waits.Runs());
  BOOST_TEST(owner->Close().has_value());
  const CommandResult result = waits.Wait();
  BOOST_TEST(result.exit_code == 0, result.err);
  BOOST_TEST(!result.out.empty());
}

// As many at a time as a node pulls images at worst.
constexpr int kIntents = 120;

void CheckIntentsAtTheSameTime(const CliStore& store, const Strings& more) {
  std::deque<RunningCommand> all;
  for (int i = 0; i < kIntents; ++i) {
    Strings arguments = {WAYBILL_CLI, "intent", "--store", store.store(),
                         "--image",   "app:v1", "-o",      "json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    all.emplace_back(arguments);
  }
  std::set<std::uint64_t> printed;
  for (RunningCommand& command : all) {
    const CommandResult result = command.Wait();
    BOOST_TEST(result.exit_code == 0, result.err);
    if (result.exit_code == 0)
      printed.insert(nlohmann::json::parse(result.out)["pull"].get<std::uint64_t>());
  }
  BOOST_TEST(printed.size() == static_cast<std::size_t>(kIntents));
  std::set<std::uint64_t> listed;
  const nlohmann::json pulls = store.Json("pulls");
  for (const auto& pull : pulls["pulls"]) listed.insert(pull["pull"].get<std::uint64_t>());
  BOOST_TEST(listed == printed, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(very_many_intents_at_the_same_time_are_all_recorded) {
  const CliStore store;
  BOOST_TEST(store.Start().exit_code == 0);
  CheckIntentsAtTheSameTime(store, {"--wait", kLong});
}

BOOST_FIXTURE_TEST_CASE(very_many_intents_reach_an_owner_that_serves, Owned) {
  BOOST_TEST(owner->Serve({}).has_value());
  CheckIntentsAtTheSameTime(store, {"--wait", kLong});
  BOOST_TEST(owner->ListOpenPulls()->size() == static_cast<std::size_t>(kIntents));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
