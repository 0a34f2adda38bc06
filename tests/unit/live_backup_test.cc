// Backups of a store that is in use. What a backup is, and those of migrations: backup_test.cc.

#include <fcntl.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>

#include "store/engine/recovery/inspect.h"
#include "tests/support/expect_error.h"
#include "tests/support/in_threads.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(live_backup)

namespace {

namespace fs = std::filesystem;

std::string Image(int i) { return "registry.example/app" + std::to_string(i) + ":v1"; }
std::string Ref(int i) { return "ref-" + std::to_string(i); }

void PullMany(ScratchStore& store, int from, int to) {
  const auto credentials = WithSecret(MakeSecret("ns", "pull", "uid", "hash"));
  for (int i = from; i < to; ++i) store.Pull(Image(i), Ref(i), credentials);
}

internal::Inspection Inspect(const Backup& backup) {
  return Must(internal::InspectFile(Must(internal::OpenFile(backup.path, O_RDONLY)),
                                    internal::FileIs::kCompactCopy));
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(it_is_the_store_as_it_is_and_can_be_put_back, ClosedStore) {
  PullMany(store, 0, 20);
  const Statistics statistics = Must(store->GetStatistics());
  const Backup backup = Must(store->MakeBackup());
  BOOST_TEST(backup.commit_sequence == statistics.commit_sequence);
  BOOST_TEST(backup.schema_version == kNewestSchema);
  BOOST_TEST(backup.bytes == fs::file_size(backup.path));
  BOOST_TEST(backup.path.parent_path() == store.directory() / "backup");
  const internal::Inspection inspection = Inspect(backup);
  BOOST_TEST(inspection.sound);
  BOOST_TEST(inspection.state->commit_sequence == statistics.commit_sequence);
  BOOST_TEST(!fs::exists(store.directory() / "backup/new.tmp"));
  const auto listed = Must(ListBackups(store.directory()));
  BOOST_TEST_REQUIRE(listed.size() == 1U);
  BOOST_TEST(listed[0].path == backup.path);
  // The store goes on.
  PullMany(store, 20, 21);
  Pod owner(MakeSecret("ns", "pull", "uid", "hash"));
  BOOST_TEST(!store.Check(Image(20), Ref(20), owner).pull);
  store.Stop();
  const RestoreReport restored = Must(Restore({.directory = store.directory(),
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

BOOST_FIXTURE_TEST_CASE(the_last_three_states_are_kept, ClosedStore) {
  std::vector<fs::path> made;
  for (int i = 0; i < 5; ++i) {
    PullMany(store, i, i + 1);
    store.clock().AdvanceSeconds(60);
    const Backup earlier = Must(store->MakeBackup());
    store.clock().AdvanceSeconds(60);
    // Of the same state: the last one.
    made.push_back(Must(store->MakeBackup()).path);
    BOOST_TEST(!fs::exists(earlier.path));
  }
  const auto listed = Must(ListBackups(store.directory()));
  BOOST_TEST_REQUIRE(listed.size() == 3U);
  for (std::size_t i = 0; i < 3; ++i) BOOST_TEST(listed[i].path == made[4 - i]);
}

BOOST_FIXTURE_TEST_CASE(what_is_in_the_way_is_an_error, ClosedStore) {
  PullMany(store, 0, 1);
  const fs::path folder = store.directory() / "backup";
  fs::create_directory(store.scratch() / "elsewhere");
  fs::create_symlink(store.scratch() / "elsewhere", folder);
  ExpectError(store->MakeBackup(), ErrorCode::kUnsafePath);
  BOOST_TEST(fs::is_empty(store.scratch() / "elsewhere"));
  fs::remove(folder);
  WriteFile(folder, "precious");
  ExpectError(store->MakeBackup(), ErrorCode::kUnsafePath);
  BOOST_TEST(ReadFile(folder) == "precious");
  fs::remove(folder);
  // What a crash left of one.
  fs::create_directory(folder);
  fs::permissions(folder, fs::perms::owner_all);
  WriteFile(folder / "new.tmp", "half");
  Must(store->MakeBackup());
  BOOST_TEST(!fs::exists(folder / "new.tmp"));
}

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
  for (const Backup& backup : Must(ListBackups(store.directory()))) {
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
  const Statistics statistics = Must(store->GetStatistics());
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
  BOOST_TEST(Must(ListBackups(store.directory())).empty());
  PullMany(store, 20, 21);
  store.Stop();
  const RestoreReport restored = Must(Restore({.directory = store.directory(),
                                               .backup = backup.path,
                                               .clock = store.clock().AsClock(),
                                               .boot_clock = store.clock().AsBootClock()}));
  BOOST_TEST(restored.records == 20U);
  BOOST_TEST(restored.records_without_credentials == 0U);
  store.Start();
  Pod owner(MakeSecret("ns", "pull", "uid", "hash"));
  BOOST_TEST(!store.Check(Image(3), Ref(3), owner).pull);
  BOOST_TEST(store.Check(Image(20), Ref(20), owner).pull);
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
