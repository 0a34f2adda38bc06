// The size of the map: what a store remembers of it, and who changes that, where the transcript
// `map-size` does not reach.

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>

#include "store/engine/recovery/map_bytes.h"
#include "tests/support/inspect_path.h"
#include "tests/support/store_fixture.h"
#include "tests/support/temp_dir.h"
#include "waybill/limits.h"
#include "waybill/maintenance.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(map_size)

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

class Sized {
 public:
  // Opens with `bytes`, 0 for none; returns what the open store has.
  std::uint64_t Open(std::uint64_t bytes = 0) const {
    auto store = Must(NodeStore::Open(Options(bytes)));
    const std::uint64_t has = Must(store->GetStatistics()).map_bytes;
    Must(store->Close());
    return has;
  }
  std::uint64_t Observed() const {
    auto store = Must(NodeStore::Observe({.directory = directory()}));
    return Must(store->GetStatistics()).map_bytes;
  }
  // What the newest meta page says.
  std::uint64_t Remembered() const {
    const auto inspection = InspectPath(database());
    BOOST_TEST_REQUIRE(inspection.newer_meta >= 0);
    return inspection.meta[static_cast<std::size_t>(inspection.newer_meta)].map_bytes;
  }
  void Write(int commits = 1) const {
    auto store = Must(NodeStore::Open(Options(0)));
    for (int i = 0; i < commits; ++i) {
      Must(store->PutRecord({.image_ref = "ref" + std::to_string(i)}));
    }
    Must(store->Close());
  }
  // As an enemy would, into both meta pages.
  void Forge(std::uint64_t bytes) const {
    std::string file = ReadFile(database());
    for (const std::size_t page : {0U, 4096U}) {
      std::memcpy(file.data() + page + 32, &bytes, sizeof(bytes));
    }
    WriteFile(database(), file);
  }

  OpenOptions Options(std::uint64_t bytes) const {
    OpenOptions options = OptionsIn(scratch_.path());
    options.map_bytes = bytes;
    return options;
  }
  fs::path directory() const { return scratch_ / "store"; }
  fs::path database() const { return directory() / "data.mdb"; }
  fs::path scratch() const { return scratch_.path(); }

 private:
  TempDir scratch_;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(the_remembered_bound_holds, Sized) {
  Open(kMiB);
  auto store = Must(NodeStore::Open(Options(0)));
  Result<void> put;
  for (int i = 0; put && i < 1000; ++i) {
    put = store->PutRecord({.image_ref = std::string(3000, 'r') + std::to_string(i)});
  }
  BOOST_TEST_REQUIRE(!put.has_value());
  BOOST_TEST((put.error().code == ErrorCode::kStoreFull), put.error().ToString());
  BOOST_TEST(fs::file_size(database()) <= kMiB);
  Must(store->Close());
  store.reset();
  // Never less than it has.
  const auto used = fs::file_size(database());
  BOOST_TEST(Open(2 * kMiB) == 2 * kMiB);
  Write(2);
  BOOST_TEST(fs::file_size(database()) >= used);
}

BOOST_FIXTURE_TEST_CASE(the_same_size_again_writes_nothing, Sized) {
  Open(4 * kMiB);
  Open();
  const auto before = internal::RememberedMapBytes(InspectPath(database()));
  auto store = Must(NodeStore::Open(Options(4 * kMiB)));
  const auto sequence = Must(store->GetStatistics()).commit_sequence;
  Must(store->Close());
  store = Must(NodeStore::Open(Options(8 * kMiB)));
  BOOST_TEST(Must(store->GetStatistics()).commit_sequence == sequence);
  BOOST_TEST(before == 4 * kMiB);
}

BOOST_FIXTURE_TEST_CASE(a_part_of_a_page_is_rounded_up, Sized) {
  BOOST_TEST(Open(kMiB + 1) == kMiB + 4096);
  BOOST_TEST(Open() == kMiB + 4096);
}

BOOST_FIXTURE_TEST_CASE(what_a_forged_page_says_is_bounded, Sized) {
  Open(4 * kMiB);
  Write();
  for (const std::uint64_t forged :
       {std::uint64_t{0}, std::uint64_t{1}, kMiB - 1, (kMiB << 24U) + 4096, std::uint64_t{1} << 60U,
        ~std::uint64_t{0}}) {
    Forge(forged);
    BOOST_TEST(Open() == kDefaultMapBytes);
    Write(2);
    BOOST_TEST(Remembered() == kDefaultMapBytes);
    BOOST_TEST(Observed() == kDefaultMapBytes);
  }
}

BOOST_FIXTURE_TEST_CASE(migrating_and_restoring_keep_it, Sized) {
  Open(4 * kMiB);
  Write();
  const auto down =
      Must(Migrate({.directory = directory(), .to = kNewestSchema - 1, .accept_loss = true}));
  BOOST_TEST(Remembered() == 4 * kMiB);
  BOOST_TEST(Open() == 4 * kMiB);
  // The store's, and not the backup's.
  BOOST_TEST(Open(8 * kMiB) == 8 * kMiB);
  Must(Restore({.directory = directory(), .backup = down.backup}));
  BOOST_TEST(Remembered() == 8 * kMiB);
  // What is given wins.
  Must(Restore({.directory = directory(), .backup = down.backup, .map_bytes = 2 * kMiB}));
  BOOST_TEST(Remembered() == 2 * kMiB);
  // Without a store, the backup's.
  const fs::path backup = scratch() / "copy.mdb";
  fs::copy_file(down.backup, backup);
  fs::remove_all(directory());
  fs::create_directory(directory());
  fs::permissions(directory(), fs::perms::owner_all);
  fs::remove(scratch() / "witness");
  const auto restored = Restore({.directory = directory(), .backup = backup});
  if (restored) {
    BOOST_TEST(Remembered() == 4 * kMiB);
  } else {
    BOOST_TEST_MESSAGE(restored.error().ToString());
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
