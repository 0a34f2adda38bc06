// A file system that is full when a store is opened, migrated, observed or put back: an error that
// says so, never a crash. LMDB maps lock.mdb, and a page of it that the disk has no room for is
// SIGBUS.

#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>

#include "tests/support/child_process.h"
#include "tests/support/mounts.h"
#include "tests/support/versioned_store.h"

namespace waybill::testing {

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
       return WithoutValue(Migrate({.directory = store, .to = 1}));
     }},
    {"restoring", [](const fs::path& store, const fs::path& backup) {
       return WithoutValue(Restore({.directory = store, .backup = backup}));
     }}};

std::string TryOn(const fs::path& at, const Attempt& attempt, std::size_t left) {
  if (!MountSmallFileSystem(at, "1m")) return kMayNotMount;
  const fs::path store = at / "store";
  PlaceGolden(store, 1);
  const std::string backup = Must(Migrate({.directory = store})).backup;
  fs::remove(store / "lock.mdb");
  WriteFile(at / "ballast", std::string(fs::space(at).available - left, 'x'));
  const auto result = attempt.run(store, backup);
  if (result || result.error().code == ErrorCode::kDiskFull) return "as it should";
  return result.error().ToString();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(full_disk)

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

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
