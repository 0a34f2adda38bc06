// Backups of a store that is in use. What a backup is, and those of migrations: backup_test.cc.

#include <fcntl.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <thread>

#include "store/recovery/inspect.h"
#include "tests/support/in_threads.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

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

BOOST_AUTO_TEST_SUITE(live_backup)

BOOST_AUTO_TEST_CASE(it_is_the_store_as_it_is_and_can_be_put_back) {
  ScratchStore store(Rules::kClosed);
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

BOOST_AUTO_TEST_CASE(the_last_three_states_are_kept) {
  ScratchStore store(Rules::kClosed);
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

BOOST_AUTO_TEST_CASE(what_is_in_the_way_is_an_error) {
  ScratchStore store(Rules::kClosed);
  PullMany(store, 0, 1);
  const fs::path folder = store.directory() / "backup";
  fs::create_directory(store.scratch() / "elsewhere");
  fs::create_symlink(store.scratch() / "elsewhere", folder);
  auto refused = store->MakeBackup();
  BOOST_TEST_REQUIRE(!refused.has_value());
  BOOST_TEST((refused.error().code == ErrorCode::kUnsafePath), refused.error().ToString());
  BOOST_TEST(fs::is_empty(store.scratch() / "elsewhere"));
  fs::remove(folder);
  WriteFile(folder, "precious");
  refused = store->MakeBackup();
  BOOST_TEST_REQUIRE(!refused.has_value());
  BOOST_TEST((refused.error().code == ErrorCode::kUnsafePath), refused.error().ToString());
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
BOOST_AUTO_TEST_CASE(others_go_on_meanwhile) {
  ScratchStore store(Rules::kClosed);
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

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
