// `waybill` on stores and outputs that refuse: exit code 3, an error that names the path, and the
// store as it was.

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdio>

#include "tests/support/cli_store.h"
#include "waybill/waybill.h"

namespace waybill {
namespace {

using testing::CliStore;
using testing::CommandResult;
using testing::ReadFile;
using testing::RunCommand;
using Strings = std::vector<std::string>;

// Every command that opens a store that is there, with what it needs beside --store.
const std::vector<Strings> kOnStore = {{"check", "--image", "nginx", "--image-ref", "ref"},
                                       {"intent", "--image", "nginx"},
                                       {"pulled", "--image", "nginx", "--image-ref", "ref"},
                                       {"failed", "--image", "nginx"},
                                       {"prune", "--begin"},
                                       {"list"},
                                       {"show", "--image-ref", "ref"},
                                       {"dump"},
                                       {"stats"},
                                       {"metrics"},
                                       {"verify"},
                                       {"trust"},
                                       {"trust", "--clear", "--reason", "why"},
                                       {"runtimes"},
                                       {"runtimes", "collapse"},
                                       {"migrate"},
                                       {"userns", "get", "pod"},
                                       {"userns", "release", "pod"},
                                       {"userns", "list"},
                                       {"userns", "cleanup", "--begin"},
                                       {"userns", "pool"},
                                       {"userns", "adopt", "pod", "65536", "65536"},
                                       {"export", "--kubelet-dir", "/proc"}};

CommandResult RunOn(const CliStore& store, const Strings& command) {
  return store.Run(command[0], {command.begin() + 1, command.end()});
}

void CheckStoreError(const CommandResult& result, const std::string& about) {
  BOOST_TEST(result.exit_code == 3, about << ": " << result.out << result.err);
  BOOST_TEST(result.err.starts_with("error: "), about << ": " << result.err);
}

// All commands, `start` too, refuse, name the store, and leave data.mdb as it is.
void CheckAllRefuse(const CliStore& store) {
  const std::string data = ReadFile(store / "store/data.mdb");
  std::vector<Strings> commands = kOnStore;
  commands.push_back({"start"});
  for (const Strings& command : commands) {
    const CommandResult result = RunOn(store, command);
    CheckStoreError(result, command[0]);
    BOOST_TEST(result.err.find(store.store()) != std::string::npos, result.err);
    BOOST_TEST(result.out == "", command[0]);
  }
  BOOST_TEST(ReadFile(store / "store/data.mdb") == data);
}

BOOST_AUTO_TEST_SUITE(cli_bad_store)

BOOST_AUTO_TEST_CASE(no_store) {
  const CliStore store;
  for (const bool directory : {false, true}) {
    if (directory) std::filesystem::create_directory(store.store());
    for (const Strings& command : kOnStore) {
      CheckStoreError(RunOn(store, command), command[0]);
      BOOST_TEST(!std::filesystem::exists(store / "store/data.mdb"), command[0]);
    }
  }
  auto json = store.Json("stats");
  BOOST_TEST(json["error"]["code"] == "notFound");
}

BOOST_AUTO_TEST_CASE(parent_missing) {
  const CommandResult result =
      testing::RunWaybill({"start", "--no-witness", "--store", "/nonexistent/waybill/store"});
  CheckStoreError(result, "start");
  BOOST_TEST(result.err.find("/nonexistent") != std::string::npos, result.err);
}

BOOST_AUTO_TEST_CASE(foreign_owner) {
  if (geteuid() != 0) return;
  const CliStore store;
  store.Start();
  BOOST_REQUIRE(chown(store.store().c_str(), 65534, 65534) == 0);
  CheckAllRefuse(store);
}

BOOST_AUTO_TEST_CASE(writable_by_others) {
  for (const mode_t mode : {mode_t{0720}, mode_t{0702}}) {
    const CliStore store;
    store.Start();
    BOOST_REQUIRE(chmod(store.store().c_str(), mode) == 0);
    CheckAllRefuse(store);
  }
}

BOOST_AUTO_TEST_CASE(a_symlink_in_its_place) {
  const CliStore store;
  store.Start();
  std::filesystem::rename(store.store(), store / "elsewhere");
  std::filesystem::create_directory_symlink(store / "elsewhere", store.store());
  CheckAllRefuse(store);
  // The kernel follows a symlink before a slash.
  for (const char* const ending : {"/", "//", "/.", "/./"}) {
    const CommandResult result = testing::RunWaybill({"stats", "--store", store.store() + ending});
    CheckStoreError(result, "stats");
  }
}

BOOST_AUTO_TEST_CASE(a_file_in_its_place) {
  const CliStore store;
  testing::WriteFile(store.store(), "not a directory");
  for (const Strings& command : kOnStore) CheckStoreError(RunOn(store, command), command[0]);
  CheckStoreError(store.Run("start"), "start");
  BOOST_TEST(ReadFile(store.store()) == "not a directory");
}

BOOST_AUTO_TEST_CASE(a_second_owner) {
  const CliStore store;
  store.Start();
  auto owner = NodeStore::Open({.directory = store.store(), .witness = Witness::Remembered()});
  BOOST_REQUIRE(owner.has_value());
  const Strings pulled = {"--image", "nginx", "--image-ref", "ref"};
  CheckStoreError(store.Run("start"), "start");
  CheckStoreError(store.Run("intent", {"--image", "nginx"}), "intent");
  CheckStoreError(store.Run("pulled", pulled), "pulled");
  CheckStoreError(store.Run("prune", {"--begin"}), "prune");
  CheckStoreError(store.Run("trust", {"--clear", "--reason", "why"}), "trust");
  CheckStoreError(store.Run("runtimes", {"collapse"}), "runtimes");
  CheckStoreError(store.Run("migrate"), "migrate");
  testing::WriteFile(store / "backup.mdb", ReadFile(store / "store/data.mdb"));
  CheckStoreError(store.Run("restore", {(store / "backup.mdb").string()}), "restore");
  BOOST_TEST(store.Json("runtimes")["runtimeHandlers"].size() == 1U);
  BOOST_TEST(store.Json("start")["error"]["code"] == "owned");
  BOOST_TEST(store.Json("stats")["records"] == 0);
}

BOOST_AUTO_TEST_CASE(no_lmdb_or_cut_short) {
  for (const bool cut : {false, true}) {
    const CliStore store;
    store.Start();
    const auto data = store / "store/data.mdb";
    if (cut) {
      std::filesystem::resize_file(data, std::filesystem::file_size(data) - 4096);
    } else {
      testing::WriteFile(data, std::string(32768, '?'));
    }
    const std::string before = ReadFile(data);
    for (const Strings& command : kOnStore) {
      const bool reads = command[0] != "intent" && command[0] != "pulled" &&
                         command[0] != "failed" && command[0] != "prune" &&
                         command.back() != "why" && command.back() != "collapse" &&
                         (command[0] != "userns" || command.size() == 2);
      if (reads) CheckStoreError(RunOn(store, command), command[0]);
    }
    const Strings check = {"check", "--image", "nginx", "--image-ref", "ref"};
    BOOST_TEST(RunOn(store, check).exit_code != 0);
    BOOST_TEST(ReadFile(data) == before);

    // An owner sets it aside, keeps it, and trusts nothing that has no record.
    const CommandResult started = store.Start();
    BOOST_TEST(started.exit_code == 0, started.err);
    BOOST_TEST(started.out.find("set aside") != std::string::npos, started.out);
    BOOST_TEST(started.err.find("DISTRUSTFUL") != std::string::npos, started.err);
    BOOST_TEST(RunOn(store, check).exit_code == 1);
    BOOST_TEST(store.Run("verify").exit_code == 0);
  }
}

BOOST_AUTO_TEST_CASE(an_output_that_cannot_be_written) {
  const CliStore store;
  store.Start();
  const std::string list = std::string(WAYBILL_CLI) + " list --store " + store.store();
  const std::string help = std::string(WAYBILL_CLI) + " --help";
  for (const std::string& line :
       {list + " >/dev/full", help + " >/dev/full", list + " >&-", list + " --json >/dev/full"}) {
    BOOST_TEST(RunCommand({"/bin/sh", "-c", line}).exit_code == 3, line);
  }
  const CommandResult full = RunCommand({"/bin/sh", "-c", list + " >/dev/full"});
  BOOST_TEST(full.err.find("error: the answer could not be written") == 0U, full.err);
  // A pipe whose reader is gone.
  int ends[2];
  BOOST_REQUIRE(pipe(ends) == 0);
  close(ends[0]);
  const CommandResult broken =
      RunCommand({"/bin/sh", "-c", list + " >&" + std::to_string(ends[1])});
  close(ends[1]);
  BOOST_TEST(broken.exit_code == 3);
  BOOST_TEST(broken.err.find("Broken pipe") != std::string::npos, broken.err);
  BOOST_TEST(store.Run("verify").exit_code == 0);
}

BOOST_AUTO_TEST_CASE(closed_streams_do_not_reach_the_store) {
  const CliStore store;
  store.Start();
  const std::string intent =
      std::string(WAYBILL_CLI) + " intent --image nginx --store " + store.store();
  BOOST_TEST(RunCommand({"/bin/sh", "-c", intent + " <&- >&- 2>&-"}).exit_code == 3);
  BOOST_TEST(store.Run("verify").exit_code == 0);
  BOOST_TEST(store.Json("show", {"nginx"})["intent"] == true);
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
  const Strings start = {"--kubelet-dir", (store / "kubelet").string()};
  for (int round = 0; round < 5; ++round) {
    Strings arguments = {WAYBILL_CLI, "start", "--store", store.store()};
    arguments.insert(arguments.end(), start.begin(), start.end());
    testing::RunningCommand running(arguments);
    kill(running.pid(), round % 2 == 0 ? SIGTERM : SIGINT);
    const CommandResult result = running.Wait();
    // Before the handler was there, in the middle, or after the import.
    const bool expected = result.exit_code > 128 || result.exit_code == 3 || result.exit_code == 0;
    BOOST_TEST(expected, result.exit_code << ": " << result.err);
  }
  BOOST_TEST(store.Run("start", start).exit_code == 0);
  BOOST_TEST(store.Json("stats")["quarantineEntries"] == 500);
  BOOST_TEST(store.Run("verify").exit_code == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waybill
