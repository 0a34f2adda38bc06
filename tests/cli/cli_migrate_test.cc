// `waybill migrate` and `waybill restore`.

#include <boost/test/unit_test.hpp>

#include "tests/support/cli_store.h"
#include "waybill/waybill.h"

namespace waybill {
namespace {

using testing::CliStore;
using testing::CommandResult;
using testing::ReadFile;
using Strings = std::vector<std::string>;

const std::string kHandlers =
    R"({"runtimeHandlers":[{"features":{}},{"name":"runc"},{"name":"kata"}],
    "config":{"containerd":{"defaultRuntimeName":"runc"}}})";

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void CheckError(const CommandResult& result, int exit_code, const std::string& about) {
  BOOST_TEST(result.exit_code == exit_code, about << ": " << result.out << result.err);
  BOOST_TEST(result.err.starts_with("error: "), about << ": " << result.err);
  BOOST_TEST(result.out == "", about << ": " << result.out);
}

std::string Golden() {
  return ReadFile(std::filesystem::path(WAYBILL_FIXTURES) / "golden/v1/dump.jsonl");
}

// As version 1 would have said it: without the line that its kubelet's ID mappings are not taken
// over, and without the kind of what is in the journal.
std::string DumpOf(const CliStore& store) {
  std::istringstream dump(store.Run("dump", {"--with-hashes"}).out);
  std::string kept;
  for (std::string line; std::getline(dump, line);) {
    if (line.starts_with("{\"type\":\"heldPod\"")) continue;
    const std::string kind = R"("kind":"operator","action":"trust",)";
    if (const auto at = line.find(kind); at != std::string::npos) line.erase(at, kind.size());
    kept += line + '\n';
  }
  return kept;
}

// A store of version 1, as that version wrote it.
struct Old {
  Old() { store.PlaceGolden(1); }
  CliStore store;
};

// A store of the newest version with something that version 1 has no place for.
struct Lossy {
  Lossy() {
    store.Start({"--runtimes", "-"}, kHandlers);
    store.Run("pulled", {"--image", "app", "--image-ref", "ref", "--runtime", "kata"});
    store.Run("intent", {"--image", "other", "--runtime", "kata"});
  }
  CliStore store;
};

BOOST_AUTO_TEST_SUITE(cli_migrate)

BOOST_FIXTURE_TEST_CASE(up_down_and_up_again, Old) {
  auto dry = store.Json("migrate", {"--dry-run"});
  BOOST_TEST(dry["from"] == 1);
  BOOST_TEST(dry["to"] == kNewestSchema);
  BOOST_TEST(dry["steps"].size() == kNewestSchema - 1);
  BOOST_TEST(dry["done"] == false);
  BOOST_TEST(!std::filesystem::exists(store / "store/backup"));

  const CommandResult up = store.Run("migrate");
  BOOST_TEST(up.exit_code == 0, up.err);
  BOOST_TEST(Contains(up.out, "migrated    schema version 1 to 2: "), up.out);
  BOOST_TEST(Contains(up.out, "backup      " + store.store() + "/backup/v1-"), up.out);
  BOOST_TEST(DumpOf(store) == Golden());
  BOOST_TEST(Contains(store.Run("migrate").out, "nothing to do"));

  // The records of version 1 lose nothing.
  auto down = store.Json("migrate", {"--to", "1"});
  BOOST_TEST(down["done"] == true);
  BOOST_TEST(down["losses"].empty());
  BOOST_TEST(Contains(down["backup"].get<std::string>(),
                      "/backup/v" + std::to_string(kNewestSchema) + "-"));
  BOOST_TEST(store.Json("migrate")["done"] == true);
  BOOST_TEST(DumpOf(store) == Golden());
  BOOST_TEST(store.Run("verify").exit_code == 0);
}

BOOST_FIXTURE_TEST_CASE(start_migrates_and_says_so, Old) {
  const std::string before = ReadFile(store / "store/data.mdb");
  const CommandResult refused = store.Run("start", {"--no-migrate"});
  CheckError(refused, 3, "--no-migrate");
  BOOST_TEST(store.Json("start", {"--no-migrate"})["error"]["code"] == "olderSchema");
  BOOST_TEST(ReadFile(store / "store/data.mdb") == before);
  auto started = store.Json("start");
  BOOST_TEST(started["migration"]["from"] == 1);
  BOOST_TEST(started["migration"]["steps"].size() == kNewestSchema - 1);
  BOOST_TEST(std::filesystem::exists(started["migration"]["backup"].get<std::string>()));
  BOOST_TEST(started["records"] == 15);
  BOOST_TEST(store.Json("start")["migration"].is_null());
  BOOST_TEST(DumpOf(store) == Golden());
}

BOOST_FIXTURE_TEST_CASE(other_commands_leave_an_older_store_as_it_is, Old) {
  const std::string before = ReadFile(store / "store/data.mdb");
  const std::string kubelet = store.KubeletDirectory("kubelet-v1.36").string();
  for (const Strings& command : std::vector<Strings>{{"stats"},
                                                     {"list"},
                                                     {"runtimes"},
                                                     {"intent", "--image", "nginx"},
                                                     {"prune", "--begin"},
                                                     {"runtimes", "collapse"},
                                                     {"userns", "list"},
                                                     {"userns", "get", "pod"},
                                                     {"trust", "--clear", "--reason", "why"},
                                                     {"export", "--kubelet-dir", kubelet}}) {
    const CommandResult result = store.Run(command[0], {command.begin() + 1, command.end()});
    CheckError(result, 3, command[0]);
    BOOST_TEST(Contains(result.err, "hint: "), result.err);
    BOOST_TEST(Contains(result.err, "waybill migrate"), result.err);
  }
  BOOST_TEST(ReadFile(store / "store/data.mdb") == before);
}

BOOST_FIXTURE_TEST_CASE(a_loss_is_refused_until_it_is_accepted, Lossy) {
  const std::string before = store.Run("dump", {"--with-hashes"}).out;
  for (const Strings& more : {Strings{"--to", "1"}, Strings{"--to", "1", "--dry-run"}}) {
    const CommandResult refused = store.Run("migrate", more);
    BOOST_TEST(refused.exit_code == 1, refused.err);
    BOOST_TEST(Contains(refused.out, "would lose  "), refused.out);
    BOOST_TEST(Contains(refused.out, "kata"), refused.out);
    BOOST_TEST(Contains(refused.err, "--accept-loss"), refused.err);
    auto json = store.Json("migrate", more);
    BOOST_TEST(json["refused"] == true);
    BOOST_TEST(json["done"] == false);
    BOOST_TEST(json["losses"].size() >= 2U);
    BOOST_TEST(json["backup"] == "");
  }
  BOOST_TEST(store.Run("dump", {"--with-hashes"}).out == before);
  BOOST_TEST(!std::filesystem::exists(store / "store/backup"));

  const CommandResult dry = store.Run("migrate", {"--to", "1", "--dry-run", "--accept-loss"});
  BOOST_TEST(dry.exit_code == 0, dry.err);
  auto done = store.Json("migrate", {"--to", "1", "--accept-loss"});
  BOOST_TEST(done["done"] == true);
  BOOST_TEST(!done["losses"].empty());
  BOOST_TEST(store.Run("migrate").exit_code == 0);
  // Known, and open to nobody.
  auto check = store.Json("check", {"--image", "app", "--image-ref", "ref"});
  BOOST_TEST(check["pull"] == true);
  BOOST_TEST(store.Run("show", {"other"}).exit_code == 0);
}

BOOST_FIXTURE_TEST_CASE(versions_that_do_not_exist, Old) {
  const std::string before = ReadFile(store / "store/data.mdb");
  for (const std::string& version :
       {std::string("0"), std::to_string(kNewestSchema + 1), std::string("99"),
        std::string("4294967297"), std::string("18446744073709551616"), std::string("-1"),
        std::string(), std::string("x"), std::string("1.0"), std::string("v1")}) {
    for (const Strings& more : {Strings{}, Strings{"--dry-run"}}) {
      Strings arguments = {"--to=" + version};
      arguments.insert(arguments.end(), more.begin(), more.end());
      CheckError(store.Run("migrate", arguments), 2, version);
    }
  }
  CheckError(store.Run("migrate", {"1"}), 2, "positional");
  BOOST_TEST(ReadFile(store / "store/data.mdb") == before);
}

BOOST_FIXTURE_TEST_CASE(stores_that_cannot_be_migrated, Old) {
  const CliStore none;
  CheckError(none.Run("migrate"), 3, "none");
  CheckError(none.Run("restore"), 3, "none");
  BOOST_TEST(!std::filesystem::exists(none.store()));

  // Damage is for `start` to recover, not for a migration.
  std::string damaged = ReadFile(store / "store/data.mdb");
  for (std::size_t i = 8192; i < damaged.size(); i += 97) damaged[i] = '?';
  testing::WriteFile(store / "store/data.mdb", damaged);
  BOOST_TEST(store.Json("migrate")["error"]["code"] == "damaged");
  BOOST_TEST(ReadFile(store / "store/data.mdb") == damaged);

  BOOST_TEST(store.Run("start").exit_code == 0);
  auto owner = NodeStore::Open({.directory = store.store(), .witness = Witness::Remembered()});
  BOOST_REQUIRE(owner.has_value());
  BOOST_TEST(store.Json("migrate", {"--to", "1"})["error"]["code"] == "owned");
  CheckError(store.Run("migrate", {"--dry-run"}), 3, "owned");
}

BOOST_FIXTURE_TEST_CASE(restore_lists_and_puts_back, Old) {
  BOOST_TEST(store.Json("restore")["backups"].empty());
  BOOST_TEST(store.Run("migrate").exit_code == 0);
  auto backups = store.Json("restore")["backups"];
  BOOST_REQUIRE(backups.size() == 1U);
  const std::string name = backups[0]["name"];
  BOOST_TEST(backups[0]["schemaVersion"] == 1);
  BOOST_TEST(backups[0]["path"] == store.store() + "/backup/" + name);
  const CommandResult list = store.Run("restore");
  BOOST_TEST(list.out.starts_with("BACKUP "), list.out);
  BOOST_TEST(Contains(list.out, "\n" + name + "  1  "), list.out);

  store.Run("pulled", {"--image", "later", "--image-ref", "later-ref"});
  const CommandResult dry = store.Run("restore", {name, "--dry-run"});
  BOOST_TEST(dry.exit_code == 0, dry.err);
  BOOST_TEST(Contains(dry.out, "15 records"), dry.out);
  BOOST_TEST(store.Run("trust").exit_code == 0);
  const CommandResult restored = store.Run("restore", {name});
  BOOST_TEST(restored.exit_code == 0, restored.err);
  BOOST_TEST(Contains(restored.out, "15 records"), restored.out);
  BOOST_TEST(Contains(restored.out, "DISTRUSTFUL"), restored.out);
  BOOST_TEST(Contains(restored.err, "waybill migrate --store " + store.store()), restored.err);
  BOOST_TEST(Contains(restored.err, "waybill trust --store " + store.store() + " --clear"),
             restored.err);
  BOOST_TEST(store.Run("migrate").exit_code == 0);
  BOOST_TEST(store.Run("trust").exit_code == 1);
  BOOST_TEST(store.Json("check", {"--image", "later", "--image-ref", "later-ref"})["reason"] ==
             "storeDistrustful");

  // By its path, and as JSON. In a store of the newest version the restore left a note, that ranges
  // of pods may be lost, for which an older one has no place.
  auto again = store.Json("restore", {store.store() + "/backup/" + name});
  BOOST_TEST(again["schemaVersion"] == kNewestSchema);
  BOOST_TEST(again["records"] == 15);
  BOOST_TEST(std::filesystem::exists(again["replacedPath"].get<std::string>()));
}

BOOST_FIXTURE_TEST_CASE(backups_that_cannot_be_put_back, Old) {
  BOOST_TEST(store.Run("migrate").exit_code == 0);
  const std::string dump = store.Run("dump", {"--with-hashes"}).out;
  const std::string name = store.Json("restore")["backups"][0]["name"];
  const std::string backup = ReadFile(store / ("store/backup/" + name));

  CheckError(store.Run("restore", {""}), 2, "empty");
  CheckError(store.Run("restore", {name, name}), 2, "two");
  const CommandResult missing = store.Run("restore", {"missing"});
  CheckError(missing, 3, "missing");
  BOOST_TEST(Contains(missing.err, store.store() + "/backup/missing"), missing.err);
  BOOST_TEST(Contains(missing.err, "lists the backups"), missing.err);
  CheckError(store.Run("restore", {"/etc/passwd"}), 3, "no database");
  CheckError(store.Run("restore", {"/dev/null"}), 3, "device");
  CheckError(store.Run("restore", {"/"}), 3, "directory");

  for (const std::size_t at : {std::size_t{0}, std::size_t{20}, backup.size() / 2}) {
    std::string damaged = backup;
    damaged.replace(at, 8, "????????");
    testing::WriteFile(store / "damaged.mdb", damaged);
    CheckError(store.Run("restore", {(store / "damaged.mdb").string()}), 3, std::to_string(at));
  }
  testing::WriteFile(store / "cut.mdb", backup.substr(0, backup.size() - 1));
  CheckError(store.Run("restore", {(store / "cut.mdb").string()}), 3, "cut");

  const CliStore other;
  other.Start();
  const CommandResult foreign = store.Run("restore", {(other / "store/data.mdb").string()});
  CheckError(foreign, 3, "of another store");
  BOOST_TEST(store.Json("restore", {(other / "store/data.mdb").string()})["error"]["code"] ==
             "conflict");
  BOOST_TEST(store.Run("dump", {"--with-hashes"}).out == dump);
  BOOST_TEST(store.Run("trust").exit_code == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waybill
