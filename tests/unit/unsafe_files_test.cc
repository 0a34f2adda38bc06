// Files in the store's directory that are symlinks, somebody else's, or open to others.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "store/engine/recovery/store_files.h"
#include "tests/support/expect_error.h"
#include "tests/support/store_fixture.h"
#include "tests/support/tree.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(unsafe_files)

namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kFiles = {"data.mdb", "lock.mdb", "owner.lock", "owner.sock"};
const std::vector<std::string> kFolders = {"new.tmp", "backup", "quarantine"};

// A store with a backup, and something in each folder that it uses.
void MakeWhole(ScratchStore& store) {
  store.Pull("registry.example/app:v1", "sha256:" + std::string(64, 'a'), NodeWide());
  store.Stop();
  Must(Migrate({.directory = store.directory(), .to = 1}));
  Must(Migrate({.directory = store.directory()}));
  fs::create_directories(store.directory() / "quarantine" / "20260101T000000Z-7");
  fs::copy_file(store.directory() / "data.mdb",
                store.directory() / "quarantine" / "20260101T000000Z-7" / "data.mdb");
}

void RequireRefused(ScratchStore& store) {
  ExpectError(NodeStore::Open(store.Options({})), ErrorCode::kUnsafePath);
  const fs::path backup = store.scratch() / "kept.mdb";
  ExpectError(Restore({.directory = store.directory(), .backup = backup}), ErrorCode::kUnsafePath);
  ExpectError(Migrate({.directory = store.directory(), .to = 1}), ErrorCode::kUnsafePath);
}

}  // namespace

BOOST_AUTO_TEST_CASE(nothing_in_the_directory_is_followed_through_a_symlink) {
  for (const auto* names : {&kFiles, &kFolders}) {
    for (const std::string& name : *names) {
      BOOST_TEST_CONTEXT(name) {
        ScratchStore store(Rules::kClosed);
        MakeWhole(store);
        fs::copy_file(Must(ListBackups(store.directory())).front().path,
                      store.scratch() / "kept.mdb");
        const fs::path place = store.directory() / name;
        const fs::path target = store.scratch() / "target";
        if (fs::exists(place)) {
          fs::rename(place, target);
        } else {
          fs::create_directory(target);
          WriteFile(target / "data.mdb", "not the store's");
          WriteFile(target / "lock.mdb", "not the store's");
        }
        fs::create_symlink(target, place);
        const Tree before = TreeOf(store.scratch());
        RequireRefused(store);
        BOOST_TEST((TreeOf(store.scratch()) == before));
        if (names == &kFiles) {
          ExpectError(NodeStore::Observe({.directory = store.directory()}), ErrorCode::kUnsafePath);
        }
        if (name == "backup") {
          ExpectError(ListBackups(store.directory()), ErrorCode::kUnsafePath);
        }
      }
    }
  }
}

BOOST_FIXTURE_TEST_CASE(modes_of_our_own_files_are_mended_and_reported, ClosedStore) {
  MakeWhole(store);
  store.Restart();  // mends what MakeWhole made
  store.Stop();
  const fs::path backup = Must(ListBackups(store.directory())).front().path;
  const std::vector<fs::path> loose = {store.directory() / "data.mdb",
                                       store.directory() / "lock.mdb",
                                       store.directory() / "owner.lock",
                                       store.directory() / "backup",
                                       backup,
                                       store.directory() / "quarantine"};
  for (const fs::path& path : loose) {
    fs::permissions(path, fs::perms::group_read | fs::perms::others_all, fs::perm_options::add);
  }
  store.Start();
  const auto& mended = store->recovery_report().mended;
  BOOST_TEST(mended.size() == loose.size());
  for (const fs::path& path : loose) {
    BOOST_TEST_CONTEXT(path) {
      BOOST_TEST(std::any_of(mended.begin(), mended.end(), [&](const std::string& line) {
        return line.starts_with(path.string() + " had mode 0");
      }));
      struct stat st {};
      BOOST_TEST(lstat(path.c_str(), &st) == 0);
      BOOST_TEST((st.st_mode & 077) == 0U);
    }
  }
  BOOST_TEST(!store->recovery_report().distrustful);
  store.Restart();
  BOOST_TEST(store->recovery_report().mended.empty());
}

BOOST_AUTO_TEST_CASE(files_of_somebody_else_are_refused) {
  if (geteuid() != 0) return;
  for (const char* name : {"data.mdb", "lock.mdb", "owner.lock", "backup", "quarantine"}) {
    BOOST_TEST_CONTEXT(name) {
      ScratchStore store(Rules::kClosed);
      MakeWhole(store);
      fs::copy_file(Must(ListBackups(store.directory())).front().path,
                    store.scratch() / "kept.mdb");
      BOOST_REQUIRE(chown((store.directory() / name).c_str(), 12345, 12345) == 0);
      const Tree before = TreeOf(store.scratch());
      RequireRefused(store);
      BOOST_TEST((TreeOf(store.scratch()) == before));
    }
  }
}

// An observer looks while an owner prepares a database, or lets go of one.
BOOST_AUTO_TEST_CASE(a_folder_that_goes_while_it_is_looked_at) {
  const TempDir scratch;
  const fs::path quarantine = scratch / "quarantine";
  fs::create_directory(quarantine);
  fs::permissions(quarantine, fs::perms::owner_all);
  std::atomic<bool> stop{false};
  std::thread owner([&] {
    while (!stop) {
      for (int i = 0; i < 64; ++i) mkdir((quarantine / std::to_string(i)).c_str(), 0700);
      for (int i = 0; i < 64; ++i) rmdir((quarantine / std::to_string(i)).c_str());
    }
  });
  std::string error;
  for (int i = 0; i < 5000 && error.empty(); ++i) {
    if (const auto looked = internal::CheckStoreFiles(scratch.path()); !looked) {
      error = looked.error().message;
    }
  }
  stop = true;
  owner.join();
  BOOST_TEST(error == "");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
