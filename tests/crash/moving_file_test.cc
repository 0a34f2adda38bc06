// Another process ignores the locks and writes to data.mdb while opening checks it: the error says
// so, and nothing is rebuilt.

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "store/base/files.h"
#include "store/disk/page_walk/page_format.h"
#include "tests/crash/recorder.h"
#include "tests/support/forked_child.h"
#include "tests/support/memory_dir.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(moving_file)

namespace {

namespace fs = std::filesystem;

// Writes `byte` at `offset` of the file. The byte that was there.
char Poke(const fs::path& path, off_t offset, char byte) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  char before = 0;
  if (syscall(SYS_pread64, fd, &before, 1, offset) != 1 || pwrite(fd, &byte, 1, offset) != 1) {
    throw std::runtime_error("cannot change the file");
  }
  close(fd);
  return before;
}

}  // namespace

// A byte changes at each read of the check in turn; if `heals`, it changes back at the next read.
BOOST_AUTO_TEST_CASE(is_not_rebuilt) {
  const MemoryDir scratch;
  const NodeStoreOptions options = OptionsIn(scratch.path());
  const fs::path database = options.directory / "data.mdb";
  const auto open_once = [&]() -> Result<void> {
    auto store = NodeStore::Open(options);
    if (!store) return store.error();
    BOOST_TEST(!(*store)->recovery_report().set_aside);
    BOOST_TEST(!(*store)->recovery_report().distrustful);
    return (*store)->Close();
  };
  {
    auto store = Must(NodeStore::Open(options));
    for (int i = 0; i < 200; ++i) {
      Must(store->PutIntent({.image = "registry.example/app/" + std::to_string(i)}));
    }
    Must(store->Close());
  }
  const auto id = Must(internal::FileIdOf(database));
  // The check begins and ends with a look at the meta pages.
  int reads = 0;
  std::vector<int> looks;
  before_read = [&](std::size_t bytes) {
    ++reads;
    if (bytes == 2 * internal::kMaxPageBytes) looks.push_back(reads);
  };
  Must(open_once());
  before_read = nullptr;
  BOOST_REQUIRE(looks.size() == 2U);
  const auto middle = static_cast<off_t>(fs::file_size(database) / 2);
  for (const bool heals : {false, true}) {
    for (int at = looks[0] + 1; at < looks[1]; ++at) {
      int read = 0;
      char was = 0;
      before_read = [&](std::size_t) {
        ++read;
        if (read == at) was = Poke(database, middle, '\x5a');
        if (heals && read == at + 1) Poke(database, middle, was);
      };
      const auto opened = open_once();
      before_read = nullptr;
      if (read >= at && (!heals || read == at)) Poke(database, middle, was);
      BOOST_TEST_CONTEXT("at read " << at << (heals ? ", and back" : "")) {
        BOOST_REQUIRE(!opened);
        BOOST_TEST((opened.error().code == ErrorCode::kOwned), opened.error().ToString());
        BOOST_TEST(opened.error().message.find("changes while it is being checked") !=
                   std::string::npos);
        BOOST_TEST(!fs::exists(options.directory / "quarantine"));
        BOOST_TEST((Must(internal::FileIdOf(database)) == id));
        Must(open_once());
      }
    }
  }
}

// Whether another process holds the exclusive lock of LMDB's opening, for which every command
// waits.
bool IsLocked(const fs::path& locks) {
  struct flock lock {};
  lock.l_type = F_RDLCK;
  const int file = open(locks.c_str(), O_RDWR | O_CLOEXEC);
  const bool is_locked = fcntl(file, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK;
  close(file);
  return is_locked;
}

// A command opens the store, writes and goes, between any two reads of an observer: it looks again,
// and blames nothing.
BOOST_AUTO_TEST_CASE(an_observer_looks_again_while_commands_write) {
  const MemoryDir scratch;
  const NodeStoreOptions options = OptionsIn(scratch.path());
  constexpr char kWaits = 'w';
  int asks[2];
  int answers[2];
  BOOST_TEST_REQUIRE(pipe(asks) == 0);
  BOOST_TEST_REQUIRE(pipe(answers) == 0);
  Child commands([&] {
    close(asks[1]);
    char byte = 0;
    for (int n = 0; read(asks[0], &byte, 1) == 1; ++n) {
      if (IsLocked(options.directory / "lock.mdb")) {
        byte = kWaits;
        if (write(answers[1], &byte, 1) != 1) return 3;
        continue;
      }
      auto owner = NodeStore::Open(options);
      if (!owner) return 1;
      const std::string image = "registry.example/app/" + std::to_string(n);
      if (!(*owner)->PutIntent({.image = image}) || !(*owner)->Close()) return 2;
      if (write(answers[1], &byte, 1) != 1) return 3;
    }
    return 0;
  });
  close(answers[1]);
  int wrote = 0;
  const auto command = [&] {
    char byte = 0;
    BOOST_TEST_REQUIRE(write(asks[1], &byte, 1) == 1);
    BOOST_TEST_REQUIRE(read(answers[0], &byte, 1) == 1);
    if (byte != kWaits) ++wrote;
    return byte != kWaits;
  };
  BOOST_TEST_REQUIRE(command());
  // `most`: of commands. Returns how often the observer read.
  const auto observe = [&](int first, int most) {
    int read = 0;
    int left = most;
    before_read = [&](std::size_t) {
      if (++read >= first && left > 0 && command()) --left;
    };
    const auto observer = NodeStore::Observe({.directory = options.directory});
    before_read = nullptr;
    BOOST_TEST(observer.has_value(), (observer ? "" : observer.error().ToString()));
    if (observer) BOOST_TEST(!Must((*observer)->ListIntents()).empty());
    return read;
  };
  const int reads = observe(1, 0);
  for (int at = 1; at <= reads; ++at) {
    BOOST_TEST_CONTEXT("at read " << at) { observe(at, 1); }
  }
  // At every read for some time, which ends before its patience does.
  observe(1, 3 * reads);
  BOOST_TEST(wrote > 1 + 3 * reads);
  close(asks[1]);
  BOOST_TEST(commands.Wait() == 0);
  close(asks[0]);
  close(answers[0]);
}

// At the file: before and after all, before a walk, and at both ends of it.
constexpr int kLooksOfOneWalk = 5;

// What is wrong with a store that stands still is said at once.
BOOST_AUTO_TEST_CASE(an_observer_looks_once_at_a_store_that_stands_still) {
  const MemoryDir scratch;
  const NodeStoreOptions options = OptionsIn(scratch.path());
  const fs::path database = options.directory / "data.mdb";
  const auto write = [&](const std::string& image) {
    auto owner = Must(NodeStore::Open(options));
    Must(owner->PutIntent({.image = image}));
    Must(owner->Close());
  };
  write("registry.example/app/1");
  const std::string older = ReadFile(database);
  write("registry.example/app/2");
  WriteFile(database, older);
  int looks = 0;
  before_read = [&](std::size_t bytes) {
    if (bytes == 2 * internal::kMaxPageBytes) ++looks;
  };
  const auto observer = NodeStore::Observe({.directory = options.directory});
  before_read = nullptr;
  BOOST_REQUIRE(!observer);
  BOOST_TEST((observer.error().code == ErrorCode::kDamaged), observer.error().ToString());
  BOOST_TEST(looks == kLooksOfOneWalk);
}

// Without an owner, an observer walks the file itself, but not again until it changes.
BOOST_AUTO_TEST_CASE(an_observer_walks_an_unsound_file_once_until_it_changes) {
  const MemoryDir scratch;
  const NodeStoreOptions options = OptionsIn(scratch.path());
  const fs::path database = options.directory / "data.mdb";
  const std::string ref = "sha256:" + std::string(64, 'a');
  {
    auto owner = Must(NodeStore::Open(options));
    Must(owner->AddToLedger({.id = ref}, "test", "a test"));
    Must(owner->Close());
  }
  auto store = Must(NodeStore::Observe({.directory = options.directory}));
  const auto walks_of_a_decision = [&](bool pulls) {
    int looks = 0;
    before_read = [&](std::size_t bytes) {
      if (bytes == 2 * internal::kMaxPageBytes) ++looks;
    };
    const Decision decision =
        DecisionOf(*store, {.image = "registry.example/app:v1", .image_ref = ref});
    before_read = nullptr;
    BOOST_TEST(decision.pull == pulls);
    return (looks + 1) / kLooksOfOneWalk;  // where it opens, the last look is left out
  };
  BOOST_TEST(walks_of_a_decision(false) == 0);
  // A write in the same tick as the file's time would be missed: only older results are remembered.
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  const fs::path sound = scratch / "sound";
  fs::copy_file(database, sound);
  fs::copy_file(database, scratch / "damaged");
  for (off_t page = 2; page < static_cast<off_t>(fs::file_size(database) / 4096); ++page) {
    Poke(scratch / "damaged", page * 4096 + 20, '\x5a');
  }
  fs::last_write_time(scratch / "damaged", long_ago);
  fs::rename(scratch / "damaged", database);
  BOOST_TEST(walks_of_a_decision(true) == 1);
  for (int i = 0; i < 5; ++i) BOOST_TEST(walks_of_a_decision(true) == 0);
  fs::last_write_time(database, long_ago + std::chrono::minutes(1));
  BOOST_TEST(walks_of_a_decision(true) == 1);
  BOOST_TEST(walks_of_a_decision(true) == 0);
  fs::rename(sound, database);
  BOOST_TEST(walks_of_a_decision(false) == 1);
  BOOST_TEST(walks_of_a_decision(false) == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
