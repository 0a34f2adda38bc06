// data.mdb or lock.mdb is truncated while it is mapped: no decision, no write and no closing after
// the store has looked at its files again ends in SIGBUS. An owner looks at each write, and before
// a decision once a tick of the kernel's coarse clock; an observer before each decision.

#include <time.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>

#include "tests/support/child_process.h"
#include "tests/support/memory_dir.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(truncated_files)

namespace {

namespace fs = std::filesystem;

const std::string kImage = "registry.example/team/app:v1";
const std::string kRef = "sha256:" + std::string(64, 'a');

bool Pulls(NodeStore& store) {
  return DecisionOf(store, {.image = kImage, .image_ref = kRef}).pull;
}

void WaitForTheNextTick() {
  const auto tick = [] {
    struct timespec now {};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return std::pair(now.tv_sec, now.tv_nsec);
  };
  for (const auto before = tick(); tick() == before;) {
  }
}

void Truncate(const fs::path& path, std::uintmax_t bytes) {
  if (truncate(path.c_str(), static_cast<off_t>(bytes)) != 0) throw std::runtime_error("truncate");
}

// Not the room behind the last page of data.mdb: without it the store is whole.
void TruncateTo(int quarters, const NodeStore& store, const fs::path& path) {
  const bool is_data = path.filename() == "data.mdb";
  const std::uint64_t in_use =
      is_data ? Must(store.GetStatistics()).used_bytes : std::uint64_t{fs::file_size(path)};
  Truncate(path, in_use * static_cast<std::uint64_t>(quarters) / 4);
}

void Fill(NodeStore& store) {
  Must(store.AddToLedger({.id = kRef}, "test", "a test"));
  for (int i = 0; i < 100; ++i) {
    Must(store.PutIntent({.image = "registry.example/other/" + std::to_string(i)}));
  }
}

std::string UnderAnOwner(const MemoryDir& scratch, const std::string& name, int part,
                         bool writes_first) {
  auto store = Must(NodeStore::Open(OptionsIn(scratch.path())));
  Fill(*store);
  if (Pulls(*store)) return "it did not open before";
  const fs::path path = scratch / "store" / name;
  TruncateTo(part, *store, path);
  WaitForTheNextTick();
  if (!writes_first && !Pulls(*store)) return "it opens";
  const auto written = store->PutIntent({.image = "registry.example/late"});
  if (written) return "it writes";
  if (written.error().code != ErrorCode::kOwned) return written.error().ToString();
  if (written.error().message.find(name + " was truncated") == std::string::npos) {
    return written.error().ToString();
  }
  if (!Pulls(*store)) return "it opens";
  static_cast<void>(store->Close());
  return "closed";
}

std::string UnderAnObserver(const MemoryDir& scratch, const std::string& name, int part) {
  {
    auto store = Must(NodeStore::Open(OptionsIn(scratch.path())));
    Fill(*store);
    Must(store->Close());
  }
  auto store = Must(NodeStore::Observe({.directory = scratch / "store"}));
  if (Pulls(*store)) return "it did not open before";
  const fs::path path = scratch / "store" / name;
  TruncateTo(part, *store, path);
  // With another lock.mdb the store is whole: it may open again.
  for (int i = 0; i < 3; ++i) {
    if (!Pulls(*store) && name == "data.mdb") return "it opens";
  }
  store.reset();
  return "closed";
}

}  // namespace

BOOST_AUTO_TEST_CASE(end_no_process) {
  for (const std::string name : {"data.mdb", "lock.mdb"}) {
    for (int part = 0; part < 4; ++part) {
      BOOST_TEST_CONTEXT(name << " to " << part << " quarters") {
        for (const bool writes_first : {false, true}) {
          const MemoryDir scratch;
          BOOST_TEST(InChild([&] { return UnderAnOwner(scratch, name, part, writes_first); }) ==
                     "closed");
          // Recovered, or nothing was lost.
          auto next = Must(NodeStore::Open(OptionsIn(scratch.path())));
          BOOST_TEST(next->recovery_report().distrustful == (name == "data.mdb"));
          BOOST_TEST(Pulls(*next) == (name == "data.mdb"));
        }
        const MemoryDir scratch;
        BOOST_TEST(InChild([&] { return UnderAnObserver(scratch, name, part); }) == "closed");
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
