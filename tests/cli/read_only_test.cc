// Commands that read, on a store that they can't write to, and on a copy: they say what they say of
// the store itself, or refuse, and leave not a trace.

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "store/base/options.h"
#include "tests/support/cli_store.h"
#include "tests/support/forked_child.h"
#include "tests/support/mounts.h"
#include "tests/support/node_store.h"
#include "tests/support/pod.h"
#include "tests/support/store_fixture.h"
#include "tests/support/tree.h"
#include "waybill/waybill.h"

namespace waybill::testing {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;

constexpr uid_t kNobody = 65534;

const Strings kApp = {"--image", "registry.example.com/team/app:v1", "--image-ref", "sha256:aaaa"};

Strings operator+(Strings first, const Strings& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// A store with something of everything, its witness, and copies of it.
class ReadOnly {
 public:
  ReadOnly() {
    fs::permissions(dir_.path(), fs::perms(0755));
    WriteFile(dir_ / "images.json",
              R"({"images":[{"id":"sha256:eeee","repoTags":["registry.example.com/early:1"]}]})");
    WriteFile(dir_ / "pods.json",
              R"({"kind":"PodList","items":[{"metadata":{"namespace":"x","name":"web","uid":"u"},)"
              R"("spec":{"nodeName":"n","containers":[{"name":"app",)"
              R"("image":"registry.example.com/team/app:v1"}]}}]})");
    WriteFile(dir_ / "secrets", "");
    const std::string store = Name("store");
    Must(
        {"start", "--store", store, "--witness", Name("witness"), "--images", Name("images.json")});
    Must(Strings{"pulled", "--store", store, "--secret", "tenant/pull/uid-1/cafe"} + kApp);
    Must({"pulled", "--store", store, "--image=quay.io/o/t:1", "--image-ref=sha256:bbbb",
          "--secret", "tenant/other/uid-2/beef"});
    Must({"forget", "--store", store, "secret", "tenant/other/uid-2"});
    Must({"intent", "--store", store, "--image", "nginx"});
    // Once read, lock.mdb is as it stays.
    Must({"stats", "--store", store});
  }

  std::string Name(const std::string& name) const { return (dir_ / name).string(); }

  void Must(const Strings& command) const {
    const CommandResult result = RunWaybill(command);
    BOOST_REQUIRE_MESSAGE(result.exit_code == 0, command[0] << ": " << result.err);
  }

  // Only data.mdb.
  void Copy(const std::string& from, const std::string& to) const {
    fs::create_directory(dir_ / to);
    fs::permissions(dir_ / to, fs::perms(0700));
    fs::copy_file(dir_ / from / "data.mdb", dir_ / to / "data.mdb");
  }

  // Each command that reads; the first lines are of those that decide.
  std::vector<Strings> Commands(const std::string& store) const {
    std::vector<Strings> all = {
        Strings{"check", "--secret", "tenant/pull/uid-1/cafe"} + kApp,
        Strings{"check"} + kApp,
        Strings{"check", "--image=nginx", "--image-ref=sha256:cccc"},
        Strings{"explain", "--secret", "tenant/pull/uid-1/cafe"} + kApp,
        {"preview", "--pods", Name("pods.json"), "--images", Name("images.json")},
        {"trust"},
        {"show", "--image-ref", "sha256:aaaa"},
        {"show", "nginx"},
        {"show", "--image-ref", "sha256:9999"},
        {"verify"},
        {"stats"},
        {"metrics"},
        {"userns", "list"},
        {"userns", "pool"},
        {"userns", "owner", "65536"},
        {"list"},
        {"list", "--intents"},
        {"list", "--quarantine"},
        {"dump", "--with-hashes"},
        {"preload", "list"},
        {"pulls", "list"},
        {"forget", "list"},
        {"runtimes"}};
    for (Strings& command : all) {
      command.insert(command.end(), {"--store", store, "-o", "json"});
    }
    return all;
  }
  static constexpr std::size_t kDecide = 15;

  // What they say; in a child of its own, so that `enter` may mount, or become another user.
  // nullopt: it may not.
  std::optional<Json> Said(const std::string& store,
                           const std::function<bool()>& enter = {}) const {
    const std::string file = Name("said");
    WriteFile(dir_ / "said", "");
    fs::permissions(file, fs::perms(0666));
    Child child([&] {
      if (enter && !enter()) return 1;
      Json said = Json::array();
      for (const Strings& command : Commands(store)) {
        const CommandResult result = RunWaybill(command);
        said.push_back({{"command", command[0] + " " + command[1]},
                        {"code", result.exit_code},
                        {"out", Replaced(result.out, store, "STORE")},
                        {"err", Replaced(result.err, store, "STORE")}});
      }
      WriteFile(file, said.dump());
      return 0;
    });
    if (child.Wait() != 0) return std::nullopt;
    return Json::parse(ReadFile(file));
  }

 protected:
  TempDir dir_;
};

// But for what is about lock.mdb, or counts what was asked, or says that this is a copy.
std::string Comparable(const Json& said) {
  static const std::regex kIsCopy("warning: STORE was copied or moved from .*\nhint: .*\n");
  static const std::regex kReaders("\"(readers|waybill_reader_slots_used)\":[0-9]+");
  Json line = said;
  line["err"] = std::regex_replace(said["err"].get<std::string>(), kIsCopy, "");
  line["out"] = std::regex_replace(said["out"].get<std::string>(), kReaders, "");
  return line.dump();
}

void ExpectSame(const Json& said, const Json& expected) {
  BOOST_TEST_REQUIRE(said.size() == expected.size());
  for (std::size_t i = 0; i < said.size(); ++i) {
    BOOST_TEST(Comparable(said[i]) == Comparable(expected[i]));
  }
}

// All refuse, with this code, and say this.
void ExpectRefusals(const Json& said, const std::string& code, const std::string& part) {
  for (const Json& one : said) {
    BOOST_TEST_CONTEXT(one.dump()) {
      BOOST_TEST(one["code"] == (code == "invalidArgument" ? 2 : 3));
      BOOST_TEST(Contains(std::string(one["out"]), "\"" + code + "\""));
      BOOST_TEST(Contains(std::string(one["err"]), part));
    }
  }
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(read_only, ReadOnly)

BOOST_AUTO_TEST_CASE(a_copied_data_file_says_what_its_store_says) {
  Copy("store", "copy");
  const auto before = EverythingIn(dir_ / "copy");
  const auto expected = Said(Name("store"));
  BOOST_TEST_REQUIRE(expected.has_value());
  BOOST_TEST((*expected)[0]["code"] == 0);
  const auto said = Said(Name("copy"));
  BOOST_TEST_REQUIRE(said.has_value());
  ExpectSame(*said, *expected);
  BOOST_TEST(before == EverythingIn(dir_ / "copy"));
  // What is written elsewhere.
  const CommandResult backup = RunWaybill({"backup", Name("backup"), "--store", Name("copy")});
  BOOST_TEST(backup.exit_code == 0, backup.err);
  Must({"backup", Name("of-store"), "--store", Name("store")});
  BOOST_TEST((ReadFile(dir_ / "backup") == ReadFile(dir_ / "of-store")));
  fs::create_directory(dir_ / "kubelet");
  const CommandResult exported = RunWaybill({"export", "--kubelet-dir", Name("kubelet"), "--images",
                                             Name("images.json"), "--store", Name("copy")});
  BOOST_TEST(exported.exit_code == 0, exported.err);
  BOOST_TEST(before == EverythingIn(dir_ / "copy"));
}

BOOST_AUTO_TEST_CASE(a_read_only_mount_says_what_its_store_says) {
  const auto expected = Said(Name("store"));
  const auto before = EverythingIn(dir_ / "store");
  const auto said = Said(Name("store"), [&] { return MountReadOnly(Name("store")); });
  if (!said) {
    BOOST_TEST_MESSAGE("left out: " << kMayNotMount);
    return;
  }
  ExpectSame(*said, *expected);
  BOOST_TEST(before == EverythingIn(dir_ / "store"));
}

BOOST_AUTO_TEST_CASE(a_user_who_may_only_read_is_told_the_same) {
  if (geteuid() != 0) {
    BOOST_TEST_MESSAGE("left out: needs another user");
    return;
  }
  const auto expected = Said(Name("store"));
  for (const char* name : {"store", "witness"}) {
    BOOST_TEST_REQUIRE(chown(Name(name).c_str(), kNobody, kNobody) == 0);
  }
  for (const auto& entry : fs::directory_iterator(dir_ / "store")) {
    BOOST_TEST_REQUIRE(chown(entry.path().c_str(), kNobody, kNobody) == 0);
    fs::permissions(entry.path(), fs::perms(0400));
  }
  fs::permissions(dir_ / "store", fs::perms(0500));
  const auto before = EverythingIn(dir_ / "store");
  const auto said = Said(Name("store"), [] {
    return setgroups(0, nullptr) == 0 && setresgid(kNobody, kNobody, kNobody) == 0 &&
           setresuid(kNobody, kNobody, kNobody) == 0 && access(WAYBILL_CLI, X_OK) == 0;
  });
  if (!said) {
    BOOST_TEST_MESSAGE("left out: another user can't run " WAYBILL_CLI);
    return;
  }
  ExpectSame(*said, *expected);
  BOOST_TEST(before == EverythingIn(dir_ / "store"));
  // Whoever does not own it is told so.
  const auto refused = Said(Name("store"));
  ExpectRefusals(*refused, "unsafePath", "belongs to user 65534");
}

// Beside an owner nothing is read without a slot: it would be torn.
BOOST_AUTO_TEST_CASE(an_owner_behind_a_read_only_mount_is_named) {
  const auto owner =
      NodeStore::Open({.directory = Name("store"), .witness = Witness::Remembered()}).value();
  const auto said = Said(Name("store"), [&] { return MountReadOnly(Name("store")); });
  if (!said) {
    BOOST_TEST_MESSAGE("left out: " << kMayNotMount);
    return;
  }
  ExpectRefusals(*said, "owned", "is in use by a process that owns its store");
}

// The same inode under another name, as a container sees it, and without lock.mdb.
BOOST_AUTO_TEST_CASE(an_owner_is_seen_through_another_name_of_its_file) {
  fs::create_directory(dir_ / "link");
  fs::permissions(dir_ / "link", fs::perms(0700));
  fs::create_hard_link(dir_ / "store" / "data.mdb", dir_ / "link" / "data.mdb");
  const auto owner =
      NodeStore::Open({.directory = Name("store"), .witness = Witness::Remembered()}).value();
  ExpectRefusals(*Said(Name("link")), "owned", "is in use by a process that owns its store");
}

// What the store itself would not be believed, its copy is not: the witness has gone on.
BOOST_AUTO_TEST_CASE(an_older_copy_decides_nothing) {
  Copy("store", "copy");
  const auto before = EverythingIn(dir_ / "copy");
  Must({"forget", "--store", Name("store"), "secret", "tenant/pull/uid-1"});
  for (const bool is_gone : {false, true}) {
    // As on another machine.
    if (is_gone) fs::rename(dir_ / "witness", dir_ / "elsewhere");
    const std::string why = is_gone ? "is gone: the store may be older" : "older than its witness";
    const auto said = Said(Name("copy"));
    for (std::size_t i = 0; i < said->size(); ++i) {
      const Json& one = (*said)[i];
      BOOST_TEST_CONTEXT(one.dump()) {
        BOOST_TEST(Contains(std::string(one["err"]), why));
        if (i < kDecide) {
          BOOST_TEST(one["code"] == 3);
          BOOST_TEST(Contains(std::string(one["out"]), "\"damaged\""));
          BOOST_TEST(!Contains(std::string(one["err"]), "hint: run `waybill start` to"));
        } else {
          BOOST_TEST(one["code"] == 0);
          BOOST_TEST(Contains(std::string(one["err"]), "warning: "));
        }
      }
    }
  }
  BOOST_TEST(before == EverythingIn(dir_ / "copy"));
  // The store itself, without its witness, is treated alike.
  const auto itself = Said(Name("store"));
  BOOST_TEST((*itself)[0]["code"] == 3);
  fs::rename(dir_ / "elsewhere", dir_ / "witness");
  BOOST_TEST((*Said(Name("store")))[0]["code"] == 1);
}

BOOST_AUTO_TEST_CASE(damage_is_an_error_and_never_an_answer) {
  Copy("store", "copy");
  const std::string sound = ReadFile(dir_ / "copy" / "data.mdb");
  const std::size_t page = 4096;
  std::string broken = sound;
  for (std::size_t i = 2 * page; i < broken.size(); i += 64) broken[i] ^= 1;
  std::string later = sound;
  // The second commit after it need not write over pages of the tree that counts, nor of the older.
  for (const char* image : {"later", "latest", "last"}) {
    Must(Strings{"intent", "--store", Name("store"), "--image", image});
  }
  // Half of one state, half of another: as if a writer had been at work.
  const std::string now = ReadFile(dir_ / "store" / "data.mdb");
  std::string torn = sound.substr(0, 2 * page) + now.substr(2 * page);
  std::string mixed = now.substr(0, 2 * page) + sound.substr(2 * page);
  for (const std::string& content :
       {broken, torn, mixed, sound.substr(0, 3 * page), std::string(), std::string("no")}) {
    WriteFile(dir_ / "copy" / "data.mdb", content);
    const auto said = Said(Name("copy"));
    for (const Json& one : *said) {
      BOOST_TEST_CONTEXT(one.dump()) { BOOST_TEST(one["code"] == 3); }
    }
    BOOST_TEST(TreeOf(dir_ / "copy").size() == 1U);
  }
}

BOOST_AUTO_TEST_CASE(an_older_schema_is_refused) {
  for (std::uint32_t version = 1; version < kNewestSchema; ++version) {
    PlaceGolden(dir_ / ("v" + std::to_string(version)), version);
    fs::remove(dir_ / ("v" + std::to_string(version)) / "lock.mdb");
  }
  for (std::uint32_t version = 1; version < kNewestSchema; ++version) {
    const std::string name = "v" + std::to_string(version);
    const auto before = EverythingIn(dir_ / name);
    for (const Strings& command : {Strings{"check"} + kApp, Strings{"list"}, Strings{"stats"},
                                   Strings{"preview", "--pods", Name("pods.json")}}) {
      const CommandResult result = RunWaybill(command + Strings{"--store", Name(name)});
      BOOST_TEST(result.exit_code == 3);
      BOOST_TEST(Contains(result.err, name + " has schema version "), result.err);
    }
    BOOST_TEST(before == EverythingIn(dir_ / name));
  }
}

BOOST_AUTO_TEST_CASE(a_store_of_streaming_requests) {
  Must({"streaming", "prepare", "exec", "--store", Name("streams"), "--witness", "none",
        "--container", "c1", "--stdout", "--", "ls"});
  Copy("streams", "copy");
  const auto before = EverythingIn(dir_ / "copy");
  const CommandResult verified = RunWaybill({"verify", "--store", Name("copy")});
  BOOST_TEST(verified.exit_code == 0, verified.err);
  BOOST_TEST(verified.out == RunWaybill({"verify", "--store", Name("streams")}).out);
  BOOST_TEST(RunWaybill({"list", "--store", Name("copy")}).exit_code == 2);
  BOOST_TEST(before == EverythingIn(dir_ / "copy"));
}

BOOST_AUTO_TEST_CASE(a_file_in_place_of_the_directory) {
  Copy("store", "copy");
  const CommandResult file = RunWaybill({"list", "--store", Name("copy/data.mdb")});
  BOOST_TEST(file.exit_code == 3);
  BOOST_TEST(Contains(file.err, "hint: name the directory that data.mdb lies in"), file.err);
  BOOST_TEST(TreeOf(dir_ / "copy").size() == 1U);
}

// Whoever reads without a slot keeps owners out, since a writer would not know of the reader.
BOOST_AUTO_TEST_CASE(an_owner_comes_once_the_reader_has_gone) {
  Copy("store", "copy");
  const auto reader =
      testing::Must(NodeStore::Observe({.directory = Name("copy"), .needs_slot = false}));
  const Strings open = {"start", "--store", Name("copy"), "--no-witness"};
  const CommandResult refused = RunWaybill(open);
  BOOST_TEST(refused.exit_code == 3);
  BOOST_TEST(Contains(refused.err, "is read by a process that keeps owners out"), refused.err);
  BOOST_TEST(testing::Must(reader->ListRecords()).size() == 2U);
  BOOST_TEST(reader->Close().has_value());
  BOOST_TEST(RunWaybill(open).exit_code == 0);
}

// As beyond an overlay, or on another machine.
BOOST_AUTO_TEST_CASE(a_writer_that_no_lock_shows_is_noticed) {
  Copy("store", "copy");
  const auto reader =
      testing::Must(NodeStore::Observe({.directory = Name("copy"), .needs_slot = false}));
  BOOST_TEST(testing::Must(reader->ListRecords()).size() == 2U);
  Must({"intent", "--store", Name("store"), "--image", "later"});
  const std::string later = ReadFile(dir_ / "store" / "data.mdb");
  std::fstream(dir_ / "copy" / "data.mdb", std::ios::in | std::ios::out) << later;
  BOOST_TEST(!reader->ListRecords());
  const ImageCopy app = {.image = "registry.example.com/team/app:v1", .image_ref = "sha256:aaaa"};
  Pod pod(ImagePullSecret{
      .uid = "uid-1", .namespace_name = "tenant", .name = "pull", .credential_hash = "cafe"});
  BOOST_TEST(reader->MustAttemptPull(app, pod).pull);
  BOOST_TEST((reader->Close().error().code == ErrorCode::kOwned));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
