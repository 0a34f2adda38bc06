// Room ahead (store/disk/lmdb/room_ahead.h): commits write where zeros are on the disk already.
// What that is worth when the power fails is played by power_cut_commits, and on a real ext4 by
// power_cut_ext4.

#include <fcntl.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "store/base/files.h"
#include "tests/crash/recorder.h"
#include "tests/support/good_in_child.h"
#include "tests/support/memory_dir.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(room_ahead)

namespace {

namespace fs = std::filesystem;
using Kind = DiskEvent::Kind;

Result<void> Pull(NodeStore& store, std::uint64_t number) {
  const std::string name = "registry.example/app-" + std::to_string(number);
  ImagePullCredentials credentials;
  credentials.kubernetes_secrets.push_back({"uid", "ns", "secret", std::to_string(number)});
  return store.RecordImagePulled({.image = name, .image_ref = "sha256:" + std::to_string(number)},
                                 credentials);
}

// What the writes to data.mdb did, pull by pull.
struct Writes {
  std::uint64_t steps = 0;            // of zeros that made the file longer
  std::uint64_t longer = 0;           // by pages of a commit
  std::uint64_t settled = 0;          // of those that were synced twice before the pull returned
  std::uint64_t pulls_that_grew = 0;  // so
};

constexpr std::size_t kPulled = 1;

Writes WritesOf(const std::vector<DiskEvent>& log, std::size_t data, std::uint64_t length) {
  Writes writes;
  int syncs = 0;
  bool grew = false;
  for (const DiskEvent& event : log) {
    if (event.kind == Kind::kMark) {
      if (grew) ++writes.pulls_that_grew;
      if (grew && syncs >= 2) ++writes.settled;
      grew = false;
    }
    if (event.file != data) continue;
    if (event.kind == Kind::kSynced) ++syncs;
    if (event.kind != Kind::kWrite || event.offset + event.bytes.size() <= length) continue;
    length = event.offset + event.bytes.size();
    if (event.bytes.find_first_not_of('\0') == std::string::npos) {
      ++writes.steps;
    } else {
      ++writes.longer;
      syncs = 0;
      grew = true;
    }
  }
  return writes;
}

// A store that was opened and closed once, then `pulls` more.
Writes PullOften(const fs::path& scratch, std::uint64_t pulls) {
  Must(Must(NodeStore::Open(OptionsIn(scratch)))->Close());
  const KnownFiles known = FilesAfter(LogOf(scratch));
  const std::uint64_t length = fs::file_size(scratch / "store" / "data.mdb");
  Recorder recorder(scratch, known);
  auto store = Must(NodeStore::Open(OptionsIn(scratch)));
  for (std::uint64_t i = 0; i < pulls; ++i) {
    Must(Pull(*store, i));
    Recorder::Mark(kPulled);
  }
  const std::vector<DiskEvent> log = recorder.Take();
  Must(store->Close());
  return WritesOf(log, known.files.at("/store/data.mdb"), length);
}

}  // namespace

// A limit: "The file grows ahead"
BOOST_AUTO_TEST_CASE(no_commit_makes_the_file_longer) {
  const MemoryDir scratch;
  const Writes writes = PullOften(scratch.path(), 1500);
  BOOST_TEST(writes.steps > 0U);
  BOOST_TEST(writes.longer == 0U);
  const auto store = Must(NodeStore::Observe({.directory = scratch / "store"}));
  const std::uint64_t used = Must(store->GetStatistics()).used_bytes;
  const std::uint64_t size = fs::file_size(scratch / "store" / "data.mdb");
  BOOST_TEST(size > used);
  constexpr std::uint64_t kMostRoom = std::uint64_t{512} << 10;  // of a store of this size
  BOOST_TEST(size < used + kMostRoom);
}

BOOST_AUTO_TEST_CASE(a_commit_that_finds_no_room_is_settled) {
  const MemoryDir scratch;
  ShowFullDisk(true);
  const Writes writes = PullOften(scratch.path(), 300);
  ShowFullDisk(false);
  BOOST_TEST(writes.steps == 0U);
  BOOST_TEST(writes.pulls_that_grew > 0U);
  BOOST_TEST(writes.settled == writes.pulls_that_grew);
}

BOOST_AUTO_TEST_CASE(holes_are_filled) {
  const MemoryDir scratch;
  const fs::path data = scratch / "store" / "data.mdb";
  Must(Must(NodeStore::Open(OptionsIn(scratch.path())))->Close());
  const std::uint64_t size = fs::file_size(data) + (std::uint64_t{1} << 20);
  fs::resize_file(data, size);
  auto store = Must(NodeStore::Open(OptionsIn(scratch.path())));
  Must(Pull(*store, 1));
  const internal::Fd file = Must(internal::OpenFile(data, O_RDONLY));
  BOOST_TEST(lseek(file.get(), 0, SEEK_HOLE) == static_cast<off_t>(size));
  Must(store->Close());
}

// Room is not taken from what others need of a small disk, and all of it can be used.
BOOST_AUTO_TEST_CASE(a_nearly_full_disk) {
  const MemoryDir scratch;
  ExpectGoodInChild([&]() -> std::string {
    if (!MountSmallFileSystem(scratch.path(), "2m")) return kMayNotMount;
    auto store = Must(NodeStore::Open(OptionsIn(scratch.path())));
    WriteFile(scratch / "ballast", std::string(std::size_t{128} << 10, 'x'));
    Result<void> pulled;
    std::uint64_t pulls = 0;
    while (pulls < 100'000 && pulled) pulled = Pull(*store, pulls++);
    if (pulled) return "the disk has no end";
    if (pulled.error().code != ErrorCode::kDiskFull) return pulled.error().ToString();
    const std::uint64_t used = Must(store->GetStatistics()).used_bytes;
    constexpr std::uint64_t kFew = std::uint64_t{64} << 10;
    if (fs::file_size(scratch / "store" / "data.mdb") > used + kFew) return "room is left";
    if (fs::space(scratch.path()).available > kFew) return "the disk is not full";
    fs::remove(scratch / "ballast");
    if (auto closed = store->Close(); !closed) return closed.error().ToString();
    auto again = NodeStore::Open(OptionsIn(scratch.path()));
    if (!again) return again.error().ToString();
    for (std::uint64_t i = 0; i + 1 < pulls; ++i) {
      if (!(*again)->GetRecord({.image_ref = "sha256:" + std::to_string(i)})) return "lost";
    }
    if (Must((*again)->GetStatistics()).records + 1 != pulls) return "another count";
    if (!Must((*again)->Verify()).sound) return "does not verify";
    return "good";
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
