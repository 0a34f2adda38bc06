// The files of a store: where they may be, and whose.

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "migrations/kubelet_files/kubelet_file.h"
#include "store/base/files.h"
#include "store/base/options.h"
#include "store/calls/streaming_store.h"
#include "store/maintenance.h"
#include "store/opening/new_database.h"
#include "store/opening/store_files.h"
#include "tests/support/child_process.h"
#include "tests/support/expect_error.h"
#include "tests/support/fake_clock.h"
#include "tests/support/forked_child.h"
#include "tests/support/memory_dir.h"
#include "tests/support/node_store.h"
#include "tests/support/store_fixture.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tree.h"
#include "waybill/values.h"

namespace waybill::testing {

// A store is made in a directory of its own: neither a kubelet's, nor one with other files in it.
BOOST_AUTO_TEST_SUITE(own_directory)

namespace {

namespace fs = std::filesystem;

struct Scene {
  Scene() { fs::create_directory(store); }

  NodeStoreOptions Options() const { return OptionsIn(scratch.path()); }

  const MemoryDir scratch;
  const fs::path store = scratch / "store";
};

template <typename T>
void RequireRefused(const Result<T>& result) {
  ExpectError(result, ErrorCode::kUnsafePath, "nothing was changed");
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_directory_with_other_files_takes_no_store) {
  for (const char* name : {"image_manager/", "pods/", "notes.txt", ".bashrc", "data.mdb.old"}) {
    BOOST_TEST_CONTEXT(name) {
      const Scene scene;
      const fs::path foreign = scene.store / name;
      if (foreign.has_filename()) {
        WriteFile(foreign, "something");
      } else {
        fs::create_directory(foreign.parent_path());
      }
      const auto before = TreeOf(scene.scratch.path());
      RequireRefused(NodeStore::Open(scene.Options()));
      for (const bool continues : {false, true}) {
        RequireRefused(StreamingStore::Open(
            {.directory = scene.store, .witness = Witness::None(), .continues = continues}));
      }
      BOOST_TEST((TreeOf(scene.scratch.path()) == before));
    }
  }
}

BOOST_AUTO_TEST_CASE(nor_does_the_kubelets_own_even_while_it_is_empty) {
  const Scene scene;
  NodeStoreOptions options = scene.Options();
  options.kubelet_directory = scene.store / ".";
  const auto before = TreeOf(scene.scratch.path());
  RequireRefused(NodeStore::Open(options));
  BOOST_TEST((TreeOf(scene.scratch.path()) == before));
  options.kubelet_directory = scene.scratch.path();
  for (const char* folder : {"pods", "pods/uid", "image_manager", "image_manager/pulled"}) {
    options.directory = scene.scratch / folder;
    fs::create_directories(options.directory);
    fs::permissions(options.directory, fs::perms::owner_all);
    RequireRefused(NodeStore::Open(options));
  }
  // One in it is a directory of its own.
  options.directory = scene.store;
  Must(Must(NodeStore::Open(options))->Close());
}

BOOST_FIXTURE_TEST_CASE(a_backup_is_not_put_back_there, ClosedStore) {
  const fs::path backup = store.scratch() / "backup.mdb";
  Must(store->WriteBackup(backup));
  store.Stop();
  const Scene scene;
  RestoreOptions options{.directory = scene.store, .backup = backup};
  WriteFile(scene.store / "notes.txt", "something");
  const auto before = TreeOf(scene.scratch.path());
  RequireRefused(RestoreStore(options));
  BOOST_TEST((TreeOf(scene.scratch.path()) == before));
  fs::remove(scene.store / "notes.txt");
  Must(RestoreStore(options));
}

BOOST_AUTO_TEST_CASE(what_is_left_of_a_store_and_an_empty_file_system_take_one) {
  for (const std::vector<std::string>& names : {std::vector<std::string>{},
                                                {"lost+found/"},
                                                {"quarantine/", "notes.txt"},
                                                {"lock.mdb", "notes.txt"},
                                                {"commit.mark", "image_manager/"}}) {
    const Scene scene;
    for (const std::string& name : names) {
      const fs::path path = scene.store / name;
      if (path.has_filename()) {
        WriteFile(path, "");
        fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
      } else {
        fs::create_directory(path.parent_path());
      }
    }
    const auto opened = NodeStore::Open(scene.Options());
    BOOST_TEST(opened.has_value(), (opened ? "" : opened.error().ToString()));
  }
}

BOOST_AUTO_TEST_SUITE_END()

// Two processes with one process ID, each in a PID namespace of its own.
BOOST_AUTO_TEST_SUITE(pid_namespaces)

namespace {

constexpr int kNoNamespace = 77;

// Runs `work` as the first process of a new PID namespace, and returns what it returns.
int AsFirstProcess(const std::function<int()>& work) {
  if (unshare(CLONE_NEWPID) != 0) return kNoNamespace;
  Child first([&] { return getpid() == 1 ? work() : kNoNamespace; });
  return first.Wait();
}

// 0: it was refused, and the error says why, and what to do.
int IsRefused(const Result<std::unique_ptr<NodeStore>>& opened) {
  if (opened) return 1;
  const std::string text = opened.error().ToString();
  const bool says = text.find("another process with the process ID 1, in another PID namespace") !=
                        std::string::npos &&
                    text.find("hostPID: true") != std::string::npos;
  return says && opened.error().code == ErrorCode::kOwned ? 0 : 2;
}

}  // namespace

// A limit: "One process owns a store"
BOOST_FIXTURE_TEST_CASE(the_later_one_of_the_same_id_is_refused_and_told_why, ClosedStore) {
  store.Stop();
  int ready[2];
  int done[2];
  BOOST_TEST_REQUIRE(pipe(ready) == 0);
  BOOST_TEST_REQUIRE(pipe(done) == 0);
  Child first([&] {
    close(done[1]);
    return AsFirstProcess([&] {
      const auto observer = NodeStore::Observe({.directory = store.directory()});
      char byte = observer ? 'y' : 'n';
      if (write(ready[1], &byte, 1) != 1) return 3;
      return read(done[0], &byte, 1) == 0 ? 0 : 4;
    });
  });
  close(ready[1]);
  char byte = 0;
  const bool is_there = read(ready[0], &byte, 1) == 1;
  if (is_there) {
    BOOST_TEST(byte == 'y');
    Child observer([&] {
      return AsFirstProcess(
          [&] { return IsRefused(NodeStore::Observe({.directory = store.directory()})); });
    });
    BOOST_TEST(observer.Wait() == 0);
    Child owner([&] {
      return AsFirstProcess([&] { return IsRefused(NodeStore::Open(store.Options({}))); });
    });
    BOOST_TEST(owner.Wait() == 0);
    // Any other ID is no trouble.
    Must(NodeStore::Observe({.directory = store.directory()}));
  }
  close(done[1]);
  const int code = first.Wait();
  BOOST_TEST(code == (is_there ? 0 : kNoNamespace));
  close(ready[0]);
  close(done[0]);
  if (!is_there) BOOST_TEST_MESSAGE("skipped: only root can make a PID namespace");
}

BOOST_AUTO_TEST_SUITE_END()

// Files in the store's directory that are symlinks, somebody else's, or open to others.
BOOST_AUTO_TEST_SUITE(unsafe_files)

namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kFiles = {"data.mdb", "lock.mdb", "owner.lock", "owner.sock"};
const std::vector<std::string> kFolders = {"new.tmp", "backup", "quarantine"};

// A store with a backup, and something in each folder that it uses.
void MakeWhole(ScratchStore& store) {
  store.Pull("registry.example/app:v1", "sha256:" + std::string(64, 'a'), NodeWide());
  store.Stop();
  Must(MigrateStore({.directory = store.directory(), .to = 1}));
  Must(MigrateStore({.directory = store.directory()}));
  fs::create_directories(store.directory() / "quarantine" / "20260101T000000Z-7");
  fs::copy_file(store.directory() / "data.mdb",
                store.directory() / "quarantine" / "20260101T000000Z-7" / "data.mdb");
  fs::copy_file(Must(BackupsOf(store.directory())).front().path, store.scratch() / "kept.mdb");
}

void RequireRefused(ScratchStore& store) {
  const Tree before = TreeOf(store.scratch());
  ExpectError(NodeStore::Open(store.Options({})), ErrorCode::kUnsafePath);
  const fs::path backup = store.scratch() / "kept.mdb";
  ExpectError(RestoreStore({.directory = store.directory(), .backup = backup}),
              ErrorCode::kUnsafePath);
  ExpectError(MigrateStore({.directory = store.directory(), .to = 1}), ErrorCode::kUnsafePath);
  BOOST_TEST((TreeOf(store.scratch()) == before));
}

}  // namespace

BOOST_AUTO_TEST_CASE(nothing_in_the_directory_is_followed_through_a_symlink) {
  for (const auto* names : {&kFiles, &kFolders}) {
    for (const std::string& name : *names) {
      BOOST_TEST_CONTEXT(name) {
        ScratchStore store(Mode::kStrict);
        MakeWhole(store);
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
        RequireRefused(store);
        if (names == &kFiles) {
          ExpectError(NodeStore::Observe({.directory = store.directory()}), ErrorCode::kUnsafePath);
        }
        if (name == "backup") {
          ExpectError(BackupsOf(store.directory()), ErrorCode::kUnsafePath);
        }
      }
    }
  }
}

BOOST_FIXTURE_TEST_CASE(modes_of_our_own_files_are_mended_and_reported, ClosedStore) {
  MakeWhole(store);
  store.Restart();  // mends what MakeWhole made
  store.Stop();
  const fs::path backup = Must(BackupsOf(store.directory())).front().path;
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
      ScratchStore store(Mode::kStrict);
      MakeWhole(store);
      BOOST_REQUIRE(chown((store.directory() / name).c_str(), 12345, 12345) == 0);
      RequireRefused(store);
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

// What the system lacks is not told as a failing disk, and is no reason to go on without a part.
BOOST_AUTO_TEST_SUITE(system_errors)

namespace {

// While it lives, this process can open no file.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (next < 0 || getrlimit(RLIMIT_NOFILE, &before_) != 0) throw std::runtime_error("no limit");
    close(next);
    struct rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(next);
    if (setrlimit(RLIMIT_NOFILE, &none) != 0) throw std::runtime_error("setrlimit failed");
  }
  ~NoMoreFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;

 private:
  struct rlimit before_ {};
};

}  // namespace

BOOST_AUTO_TEST_CASE(only_what_a_disk_does_sends_to_the_disk) {
  using internal::CanBeSkipped;
  using internal::SystemError;
  const struct {
    int number;
    bool is_disk;
    const char* hint;
  } all[] = {{EIO, true, "disk errors"},      {EBADMSG, true, "disk errors"},
             {EUCLEAN, true, "disk errors"},  {EINTR, false, "signal"},
             {EAGAIN, false, "try again"},    {EMFILE, false, "LimitNOFILE="},
             {ENFILE, false, "fs.file-max"},  {ENOMEM, false, "memory"},
             {EINVAL, false, "kernel's log"}, {EMLINK, false, "kernel's log"}};
  for (const auto& one : all) {
    BOOST_TEST_CONTEXT(one.hint) {
      const Error error = SystemError(one.number, "read", "/some/file");
      BOOST_TEST((error.code == ErrorCode::kIo));
      BOOST_TEST(error.hint.find(one.hint) != std::string::npos, error.hint);
      BOOST_TEST((error.hint.find("disk") != std::string::npos) == one.is_disk, error.hint);
      const bool skips = CanBeSkipped(error).hint_code == Hint::kSkipUnreadable;
      BOOST_TEST(skips == one.is_disk);
      BOOST_TEST(CanBeSkipped(error).has_hint());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_can_not_be_opened_now_is_not_skipped) {
  const MemoryDir image_manager;
  std::filesystem::create_directory(image_manager / "pulled");
  const std::string name = "sha256-" + std::string(64, 'a');
  WriteFile(image_manager / "pulled" / name, "{}");
  const NoMoreFiles none;
  for (const auto on_error : {internal::OnReadError::kFail, internal::OnReadError::kSkip}) {
    const Error file =
        ExpectError(internal::ReadKubeletFile(image_manager.path(),
                                              internal::KubeletFolder::kPulled, name, on_error),
                    ErrorCode::kIo);
    BOOST_TEST((file.hint_code == Hint::kNone));
    BOOST_TEST(file.hint.find("LimitNOFILE=") != std::string::npos, file.hint);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
