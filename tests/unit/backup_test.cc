// Backups. Putting one back: restore_test.cc.

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <iterator>
#include <set>
#include <string>

#include "store/maintenance.h"
#include "store/opening/inspect.h"
#include "tests/support/expect_error.h"
#include "tests/support/good_in_child.h"
#include "tests/support/in_threads.h"
#include "tests/support/store_fixture.h"
#include "tests/support/versioned_store.h"

namespace waybill::testing {

// When one is made, what it is, how many are kept, what stands in the way.
BOOST_AUTO_TEST_SUITE(backup)

namespace {

namespace fs = std::filesystem;

fs::path FolderOf(const VersionedStore& store) { return store.directory() / "backup"; }

void MakeFolder(const VersionedStore& store) {
  fs::create_directory(FolderOf(store));
  fs::permissions(FolderOf(store), fs::perms::owner_all);
}

std::set<std::string> NamesIn(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

std::string Digits(std::uint64_t sequence) {
  const std::string digits = std::to_string(sequence);
  return std::string(20 - digits.size(), '0') + digits;
}

}  // namespace

// They are ordered by sequence: after the clock went back, the newest must not be deleted.
BOOST_AUTO_TEST_CASE(the_last_three_are_kept) {
  VersionedStore store(1);
  std::vector<std::string> made;
  for (int i = 0; i < 6; ++i) {
    made.push_back(store.Migrate(i % 2 == 0 ? 2 : 1).backup);
    store.clock().AdvanceSeconds(-40'000'000);
    const auto listed = Must(BackupsOf(store.directory()));
    BOOST_TEST(listed.size() == std::min<std::size_t>(made.size(), 3));
    for (std::size_t j = 0; j < listed.size(); ++j) {
      BOOST_TEST(listed[j].path.string() == made[made.size() - 1 - j]);
    }
  }
  BOOST_TEST(NamesIn(FolderOf(store)).size() == 3U);
}

// A migration that fails again and again must not push out the backups of earlier states.
BOOST_AUTO_TEST_CASE(backups_of_one_state_count_once) {
  VersionedStore store(1);
  store.Migrate(2);
  store.Open([](NodeStore& opened) { Must(opened.PutIntent({.image = "registry.example/a:v1"})); });
  store.Migrate(1, true);
  const auto earlier = Must(BackupsOf(store.directory()));
  BOOST_TEST(earlier.size() == 2U);
  store.Migrate(2);
  MigrateOptions options = store.To(1);
  options.progress = [](std::uint64_t, std::uint64_t) { return false; };
  for (int i = 0; i < 5; ++i) {
    store.clock().AdvanceSeconds(1);
    BOOST_TEST(!MigrateStore(options).has_value());
  }
  const auto now = Must(BackupsOf(store.directory()));
  BOOST_TEST_REQUIRE(now.size() == 3U);
  BOOST_TEST(now[0].commit_sequence > now[1].commit_sequence);
  BOOST_TEST(now[1].commit_sequence > now[2].commit_sequence);
  BOOST_TEST(now[2].path == earlier[0].path);
}

// An earlier store's backups in this directory may have higher sequence numbers.
BOOST_FIXTURE_TEST_CASE(the_one_just_made_is_always_kept, OldestStore) {
  MakeFolder(store);
  for (const char* digit : {"1", "2", "3", "4"}) {
    WriteFile(FolderOf(store) / ("v1-" + Digits(1'000'000) + "-2026010" + digit + "T000000Z.mdb"),
              "older");
  }
  const std::string made = store.Migrate(2).backup;
  BOOST_TEST(fs::exists(made));
  const auto listed = Must(BackupsOf(store.directory()));
  BOOST_TEST_REQUIRE(listed.size() == 3U);
  BOOST_TEST(listed[2].path == fs::path(made));
}

BOOST_FIXTURE_TEST_CASE(other_names_in_the_folder_are_left_alone, OldestStore) {
  MakeFolder(store);
  const std::set<std::string> foreign = {"notes.txt",
                                         "v1-123-20270101T000000Z.mdb",
                                         "v1-.mdb",
                                         "v-00000000000000000001-x.mdb",
                                         "v1-000000000000000000001-x.mdb",
                                         "v99999999999-00000000000000000001-x.mdb",
                                         "v1-99999999999999999999-x.mdb",
                                         "x1-00000000000000000001-x.mdb"};
  for (const std::string& name : foreign) WriteFile(FolderOf(store) / name, "mine");
  for (int i = 0; i < 5; ++i) store.Migrate(i % 2 == 0 ? 2 : 1);
  BOOST_TEST(Must(BackupsOf(store.directory())).size() == 3U);
  const auto names = NamesIn(FolderOf(store));
  for (const std::string& name : foreign) BOOST_TEST(names.contains(name), name);
  BOOST_TEST(names.size() == foreign.size() + 3);
}

BOOST_AUTO_TEST_CASE(listing_where_there_is_none) {
  const VersionedStore none;
  ExpectError(BackupsOf(none.directory()), ErrorCode::kNotFound);

  const VersionedStore store(1);
  BOOST_TEST(Must(BackupsOf(store.directory())).empty());
  fs::create_directory(store.scratch() / "elsewhere");
  fs::create_symlink(store.scratch() / "elsewhere", FolderOf(store));
  ExpectError(BackupsOf(store.directory()), ErrorCode::kUnsafePath);
}

BOOST_AUTO_TEST_CASE(what_an_earlier_one_left_unfinished_is_replaced) {
  for (const bool symlink : {false, true}) {
    const VersionedStore store(1);
    MakeFolder(store);
    WriteFile(store.scratch() / "elsewhere", "not ours");
    if (symlink) {
      fs::create_symlink(store.scratch() / "elsewhere", FolderOf(store) / "new.tmp");
    } else {
      WriteFile(FolderOf(store) / "new.tmp", std::string(100'000, 'x'));
    }
    store.Migrate(2);
    BOOST_TEST(NamesIn(FolderOf(store)).size() == 1U);
    BOOST_TEST(ReadFile(store.scratch() / "elsewhere") == "not ours");
    BOOST_TEST(Must(BackupsOf(store.directory())).size() == 1U);
  }
}

BOOST_AUTO_TEST_CASE(a_folder_that_is_not_safe) {
  const TempDir elsewhere;
  const auto folder = [](const fs::path& place, fs::perms more) {
    fs::create_directory(place);
    fs::permissions(place, fs::perms::owner_all | more);
  };
  const std::function<void(const fs::path&)> ways[] = {
      [&](const fs::path& place) { fs::create_symlink(elsewhere.path(), place); },
      [&](const fs::path& place) { fs::create_symlink(elsewhere / "nowhere", place); },
      [&](const fs::path& place) { folder(place, fs::perms::group_write); },
      [&](const fs::path& place) { folder(place, fs::perms::others_write); },
      [](const fs::path& place) { WriteFile(place, "a file"); },
      [&](const fs::path& place) {
        folder(place, fs::perms::none);
        BOOST_REQUIRE(chown(place.c_str(), 12345, 12345) == 0);  // only root can
      }};
  const std::size_t count = std::size(ways) - (geteuid() == 0 ? 0 : 1);
  for (std::size_t way = 0; way < count; ++way) {
    BOOST_TEST_CONTEXT("way " << way) {
      const VersionedStore store(1);
      ways[way](FolderOf(store));
      const Tree before = store.Files();
      ExpectError(MigrateStore(store.To(2)), ErrorCode::kUnsafePath);
      BOOST_TEST((store.Files() == before));
      BOOST_TEST(fs::is_empty(elsewhere.path()));
    }
  }
}

// A limit: "A backup is made inside the store"
BOOST_AUTO_TEST_CASE(no_room_and_nothing_is_touched) {
  const MemoryDir scratch;
  ExpectGoodInChild([&]() -> std::string {
    if (!MountSmallFileSystem(scratch.path(), "1m")) return kMayNotMount;
    const fs::path directory = scratch / "store";
    PlaceGolden(directory, 1);
    const auto free = fs::space(scratch.path()).available;
    const std::uint64_t left = 32'768;  // less than a backup has
    WriteFile(scratch / "ballast", std::string(free - left, 'x'));
    const Tree before = TreeOf(directory);
    const auto unchanged = [&]() -> bool {
      Tree now = TreeOf(directory);
      now.erase("owner.lock");
      now.erase("lock.mdb");
      return now == before;
    };
    const auto refused = MigrateStore({.directory = directory});
    if (refused) return "migrated";
    if (refused.error().code != ErrorCode::kDiskFull) return refused.error().ToString();
    if (!unchanged()) return "migrating changed something";
    const auto opened = NodeStore::Open({.directory = directory, .witness = Witness::None()});
    if (opened) return "opened";
    if (opened.error().code != ErrorCode::kDiskFull) return opened.error().ToString();
    if (!unchanged()) return "opening changed something";
    fs::remove(scratch / "ballast");
    const auto migrated = MigrateStore({.directory = directory});
    return migrated ? "good" : migrated.error().ToString();
  });
}

BOOST_AUTO_TEST_SUITE_END()

// Of a store that is in use.
BOOST_AUTO_TEST_SUITE(live_backup)

namespace {

namespace fs = std::filesystem;

std::string Image(int i) { return "registry.example/app" + std::to_string(i) + ":v1"; }
std::string Ref(int i) { return "ref-" + std::to_string(i); }

void PullMany(ScratchStore& store, int from, int to) {
  const auto credentials = WithSecret(MakeSecret("ns", "pull", "uid", "hash"));
  for (int i = from; i < to; ++i) store.Pull(Image(i), Ref(i), credentials);
}

// A backup of images 0 to 19, of a store that went on: it becomes what it was.
void PutBack(ScratchStore& store, const Backup& backup) {
  PullMany(store, 20, 21);
  Pod owner(MakeSecret("ns", "pull", "uid", "hash"));
  BOOST_TEST(!store.Check(Image(20), Ref(20), owner).pull);
  store.Stop();
  const RestoreReport restored = Must(RestoreStore({.directory = store.directory(),
                                                    .backup = backup.path,
                                                    .clock = store.clock().AsClock(),
                                                    .boot_clock = store.clock().AsBootClock()}));
  BOOST_TEST(restored.records == 20U);
  BOOST_TEST(restored.backup_commit_sequence == backup.commit_sequence);
  BOOST_TEST(restored.records_without_credentials == 0U);
  store.Start();
  BOOST_TEST(!store.Check(Image(3), Ref(3), owner).pull);
  BOOST_TEST(store.Check(Image(20), Ref(20), owner).pull);
}

internal::Inspection Inspect(const Backup& backup) {
  return Must(internal::InspectFile(Must(internal::OpenFile(backup.path, O_RDONLY)),
                                    internal::FileIs::kCompactCopy));
}

}  // namespace

// Each copy is of one state, and of none that a crash could take back.
BOOST_FIXTURE_TEST_CASE(others_go_on_meanwhile, ClosedStore) {
  PullMany(store, 0, 200);
  std::atomic<bool> done{false};
  std::atomic<int> busy{0};
  std::atomic<int> made{0};
  const std::size_t failed = InThreads(4, [&](std::size_t which) {
    if (which == 0) {
      for (int i = 200; i < 400; ++i) {
        Must(store->RecordPullIntent({.image = Image(i)}));
        Must(store->RecordImagePullFailed({.image = Image(i)}));
      }
      done = true;
      return;
    }
    do {
      const std::uint64_t before = Must(store->GetStatistics()).commit_sequence;
      const auto backup = store->MakeBackup();
      if (!backup) {
        if (backup.error().code != ErrorCode::kUnavailable) Must(Result<Backup>(backup));
        ++busy;
        continue;
      }
      ++made;
      if (backup->commit_sequence < before) {
        throw std::runtime_error("the backup is older than what was acknowledged");
      }
    } while (!done || made == 0);
  });
  BOOST_TEST(failed == 0U);
  BOOST_TEST(made > 0);
  BOOST_TEST_MESSAGE(made << " made, " << busy << " refused");
  for (const Backup& backup : Must(BackupsOf(store.directory()))) {
    BOOST_TEST(Inspect(backup).sound);
  }
  BOOST_TEST(Must(store->Verify()).sound);
}

// --- Into a file

ErrorCode CodeOfWriting(NodeStore& store, const fs::path& file) {
  const auto refused = store.WriteBackup(file);
  return refused ? ErrorCode{} : refused.error().code;
}

BOOST_FIXTURE_TEST_CASE(a_file_anywhere_is_the_same_and_can_be_put_back, ClosedStore) {
  PullMany(store, 0, 20);
  const StoreCounts statistics = Must(store->GetStatistics());
  const fs::path folder = store.scratch() / "elsewhere";
  fs::create_directory(folder);
  std::uint64_t shown = 0;
  const Backup backup =
      Must(store->WriteBackup(folder / "backup", [&](std::uint64_t done, std::uint64_t total) {
        BOOST_TEST(done > shown);
        BOOST_TEST(done <= total);
        shown = done;
        return true;
      }));
  BOOST_TEST(shown == backup.bytes);
  BOOST_TEST(backup.path == folder / "backup");
  BOOST_TEST(backup.commit_sequence == statistics.commit_sequence);
  BOOST_TEST(backup.schema_version == kNewestSchema);
  BOOST_TEST(backup.bytes == fs::file_size(backup.path));
  BOOST_TEST(
      (fs::status(backup.path).permissions() == (fs::perms::owner_read | fs::perms::owner_write)));
  BOOST_TEST(Inspect(backup).sound);
  BOOST_TEST(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 1);
  BOOST_TEST(Must(BackupsOf(store.directory())).empty());
  PutBack(store, backup);
}

BOOST_FIXTURE_TEST_CASE(it_replaces_no_file_and_does_not_go_into_the_store, ClosedStore) {
  PullMany(store, 0, 1);
  const fs::path scratch = store.scratch();
  WriteFile(scratch / "precious", "precious");
  fs::create_symlink("nowhere", scratch / "dangling");
  fs::create_symlink(store.directory(), scratch / "way-in");
  fs::create_directory(scratch / "folder");
  for (const fs::path& file :
       {scratch / "precious", scratch / "dangling", scratch / "folder", scratch / "folder/",
        scratch / "missing/backup", scratch / "precious/backup", scratch / "folder/..",
        store.directory() / "backup.mdb", store.directory() / "data.mdb",
        store.directory() / "backup/new", store.directory() / "../store/x", scratch / "way-in/x",
        fs::path()}) {
    BOOST_TEST_CONTEXT(file) {
      const auto code = CodeOfWriting(*store, file);
      // A file as a directory is an error of the system.
      const bool is_error = code == ErrorCode::kInvalidArgument || code == ErrorCode::kIo;
      BOOST_TEST(is_error, static_cast<int>(code));
    }
  }
  BOOST_TEST(ReadFile(scratch / "precious") == "precious");
  BOOST_TEST(fs::is_symlink(scratch / "dangling"));
  BOOST_TEST(!fs::exists(scratch / "nowhere"));
  BOOST_TEST(fs::is_empty(scratch / "folder"));
  BOOST_TEST(!fs::exists(store.directory() / "backup"));
}

BOOST_FIXTURE_TEST_CASE(it_can_be_stopped_and_leaves_nothing, ClosedStore) {
  // More than a pipe holds.
  PullMany(store, 0, 1'000);
  const fs::path folder = store.scratch() / "elsewhere";
  fs::create_directory(folder);
  for (int stops_after = 1; stops_after < 4; ++stops_after) {
    int calls = 0;
    const auto stopped = store->WriteBackup(
        folder / "backup", [&](std::uint64_t, std::uint64_t) { return ++calls < stops_after; });
    ExpectError(stopped, ErrorCode::kInterrupted);
    BOOST_TEST(calls == stops_after);
    BOOST_TEST(fs::is_empty(folder));
  }
  Must(store->WriteBackup(folder / "backup"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
