// A store is opened, migrated, observed or restored on a full file system: an error says so, and
// nothing crashes. LMDB maps lock.mdb; touching a page for which the disk has no room is SIGBUS.

#include <fcntl.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <functional>
#include <string>

#include "store/base/files.h"
#include "store/maintenance.h"
#include "store/opening/store_files.h"
#include "tests/support/child_process.h"
#include "tests/support/mounts.h"
#include "tests/support/versioned_store.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(full_disk)

namespace {

namespace fs = std::filesystem;

struct Attempt {
  const char* name;
  std::function<Result<void>(const fs::path& store, const fs::path& backup)> run;
};

template <typename T>
Result<void> WithoutValue(const Result<T>& result) {
  if (!result) return result.error();
  return {};
}

const Attempt kAttempts[] = {
    {"opening",
     [](const fs::path& store, const fs::path&) {
       return WithoutValue(NodeStore::Open({.directory = store, .witness = Witness::None()}));
     }},
    {"observing",
     [](const fs::path& store, const fs::path&) {
       return WithoutValue(NodeStore::Observe({.directory = store}));
     }},
    {"migrating",
     [](const fs::path& store, const fs::path&) {
       return WithoutValue(MigrateStore({.directory = store, .to = 1, .accept_loss = true}));
     }},
    {"restoring", [](const fs::path& store, const fs::path& backup) {
       return WithoutValue(RestoreStore({.directory = store, .backup = backup}));
     }}};

std::string TryOn(const fs::path& at, const Attempt& attempt, std::size_t left) {
  if (!MountSmallFileSystem(at, "1m")) return kMayNotMount;
  const fs::path store = at / "store";
  PlaceGolden(store, 1);
  const std::string backup = Must(MigrateStore({.directory = store})).backup;
  fs::remove(store / "lock.mdb");
  WriteFile(at / "ballast", std::string(fs::space(at).available - left, 'x'));
  const auto result = attempt.run(store, backup);
  if (result || result.error().code == ErrorCode::kDiskFull) return "as it should";
  return result.error().ToString();
}

bool CopiesOnWrite(const fs::path& at) { return !internal::FileSystemWarning(at).empty(); }

// Down to the last byte, if the file system allows it.
void FillUp(const fs::path& ballast) {
  const internal::Fd file = Must(internal::OpenFile(ballast, O_WRONLY | O_CREAT));
  off_t at = 0;
  for (std::size_t bytes = std::size_t{1} << 20; bytes > 0;) {
    const std::string zeros(bytes, 'x');
    const ssize_t n = pwrite(file.get(), zeros.data(), zeros.size(), at);
    if (n > 0) {
      at += n;
    } else {
      bytes /= 2;
    }
  }
  fsync(file.get());
}

std::string FillAndGoOn(const fs::path& at) {
  const fs::path store = at / "store";
  const fs::path ballast = at / "ballast";
  const NodeStoreOptions options{.directory = store, .witness = Witness::None()};
  const auto decides = [](NodeStore& of) {
    return !DecisionOf(of, {.image = "registry.example/other", .image_ref = "sha256:other"}).pull;
  };
  // Begun before this process has the store open.
  ChildProcess reader([&]() -> ChildProcess::Serve {
    return [&](const std::string&) -> std::string {
      const auto observer = NodeStore::Observe({.directory = store});
      if (!observer) return observer.error().ToString();
      return decides(**observer) ? "decides" : "pulls";
    };
  });
  NodeStoreOptions first = options;
  first.images_on_node = std::vector<ListedImage>{
      {.id = "sha256:other", .repo_tags = {"registry.example/other:latest"}}};
  auto owner = Must(NodeStore::Open(first));
  if (CopiesOnWrite(at) != !owner->recovery_report().warnings.empty()) return "no warning";
  Must(owner->PutIntent({.image = "registry.example/before"}));
  FillUp(ballast);
  // lock.mdb exists: readers need no room.
  if (const std::string answer = reader.Ask("go"); answer != "decides")
    return "observing: " + answer;
  std::string last = "no write failed";
  for (int i = 0; i < 2000; ++i) {
    const auto written = owner->PutIntent({.image = "registry.example/full/" + std::to_string(i)});
    if (written) continue;
    last = written.error().ToString();
    if (written.error().code != ErrorCode::kDiskFull) return last;
  }
  if (!decides(*owner)) return "the owner decides no more: " + last;
  if (const std::string answer = reader.Ask("go"); answer != "decides")
    return "observing late: " + answer;
  fs::remove(ballast);
  Must(owner->PutIntent({.image = "registry.example/after"}));
  Must(owner->Close());
  owner = Must(NodeStore::Open(options));
  if (owner->recovery_report().distrustful) return owner->recovery_report().distrust_reason;
  for (const char* image : {"registry.example/before", "registry.example/after"}) {
    if (!Must(owner->HasIntent({.image = image}))) return std::string(image) + " is lost";
  }
  Must(owner->Close());
  owner.reset();
  fs::remove_all(store);
  return "as it should";
}

}  // namespace

// A limit: "Little-endian 64-bit Linux"
BOOST_AUTO_TEST_CASE(says_so) {
  for (const Attempt& attempt : kAttempts) {
    for (std::size_t pages = 0; pages < 40; ++pages) {
      const MemoryDir scratch;
      const std::string answer =
          InChild([&] { return TryOn(scratch.path(), attempt, pages * 4096); });
      if (answer == kMayNotMount) {
        BOOST_TEST_MESSAGE(answer);
        return;
      }
      BOOST_TEST(answer == "as it should", attempt.name << ", " << pages << " pages: " << answer);
    }
  }
}

// On the file system that WAYBILL_FULL_DISK names, an empty one that the test may fill
// (tests/corruption/on_full_file_systems makes some); without it, on a small one in memory.
BOOST_AUTO_TEST_CASE(observers_come_and_an_owner_goes_on_when_there_is_room_again) {
  const char* const named = std::getenv("WAYBILL_FULL_DISK");
  const MemoryDir scratch;
  const std::string answer = InChild([&]() -> std::string {
    if (named == nullptr && !MountSmallFileSystem(scratch.path(), "4m")) return kMayNotMount;
    return FillAndGoOn(named == nullptr ? scratch.path() : fs::path(named));
  });
  if (answer == kMayNotMount) {
    BOOST_TEST_MESSAGE(answer);
  } else if (named != nullptr && CopiesOnWrite(named)) {
    // A known limit (docs/limits.md): only the warning is checked.
    BOOST_TEST_MESSAGE("on a file system that copies what is written: " << answer);
  } else {
    BOOST_TEST(answer == "as it should");
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
