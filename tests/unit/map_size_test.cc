// The file of a store.

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "store/base/options.h"
#include "store/disk/store_txn.h"
#include "store/maintenance.h"
#include "tests/support/draw.h"
#include "tests/support/inspect_path.h"
#include "tests/support/node_store.h"
#include "tests/support/raw_lmdb.h"
#include "tests/support/store_fixture.h"
#include "tests/support/streaming_scene.h"
#include "tests/support/temp_dir.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::testing {

// The size of the map: what a store remembers of it, and who changes that, where the transcript
// `map-size` does not reach.
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

  NodeStoreOptions Options(std::uint64_t bytes) const {
    NodeStoreOptions options = OptionsIn(scratch_.path());
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

BOOST_AUTO_TEST_SUITE_END()

// CompareKeys stands in for LMDB's own order of keys, by which the files are written and checked.
BOOST_AUTO_TEST_SUITE(key_order)

namespace {

int Sign(int order) { return (order > 0) - (order < 0); }

MDB_val ValOf(std::string& text) { return {text.size(), text.data()}; }

}  // namespace

BOOST_AUTO_TEST_CASE(it_is_lmdb_s_own) {
  const TempDir dir;
  const RawStore store(dir.path());
  const RawTxn txn(store);
  const MDB_dbi table = txn.Table("keys", MDB_CREATE);
  Draw draw(SeedOfThisRun());
  for (int i = 0; i < 200'000; ++i) {
    // Most have a key's length; many begin alike, in one half or both.
    std::string a(draw.OneIn(8) ? 1 + draw.Below(20) : 16, '\0');
    for (char& byte : a) byte = static_cast<char>(draw.Below(256));
    std::string b = a;
    if (draw.OneIn(8)) b.resize(1 + draw.Below(20), '\x80');
    if (!draw.OneIn(16)) b[draw.Below(b.size())] = static_cast<char>(draw.Below(256));
    MDB_val left = ValOf(a);
    MDB_val right = ValOf(b);
    BOOST_REQUIRE_EQUAL(Sign(internal::CompareKeys(&left, &right)),
                        Sign(mdb_cmp(txn.get(), table, &left, &right)));
  }
}

BOOST_AUTO_TEST_SUITE_END()

// The progress of verifying. What verifying finds: tests/corruption.
BOOST_AUTO_TEST_SUITE(verify)

namespace {

using Calls = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

Progress Into(Calls& calls) {
  return [&calls](std::uint64_t done, std::uint64_t total) {
    calls.emplace_back(done, total);
    return true;
  };
}

void CheckSame(const VerifyReport& one, const VerifyReport& other) {
  BOOST_TEST(one.sound == other.sound);
  BOOST_TEST(one.pages == other.pages);
  BOOST_TEST(one.values == other.values);
  BOOST_TEST((one.findings == other.findings));
}

// Of several calls: forward, and up to the file's size.
void CheckForward(const Calls& calls, std::uint64_t file_bytes) {
  BOOST_TEST_REQUIRE(!calls.empty());
  std::uint64_t before = 0;
  for (const auto& [done, total] : calls) {
    BOOST_TEST(done >= before);
    BOOST_TEST(total == file_bytes);
    before = done;
  }
  BOOST_TEST(before == file_bytes);
}

// A store of some MiB.
void Fill(ScratchStore& store) {
  for (int i = 0; i < 120; ++i) {
    ImagePulledRecord record{.image_ref = "ref-" + std::to_string(i)};
    auto& secrets = record.credential_mapping["registry.example/app"].kubernetes_secrets;
    for (int j = 0; j < 200; ++j) {
      const std::string number = std::to_string(200 * i + j);
      secrets.push_back(MakeSecret("ns", "pull-" + number, "uid-" + number, "hash-" + number));
    }
    Must(store->PutRecord(record));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(it_ends_at_the_total_and_changes_no_answer) {
  ScratchStore store(Mode::kStrict);
  Fill(store);
  const auto file_bytes = std::filesystem::file_size(store.directory() / "data.mdb");
  const VerifyReport plain = Must(store->Verify());
  BOOST_TEST(plain.sound);
  const auto check = [&](NodeStore& one) {
    Calls calls;
    CheckSame(Must(one.Verify(Into(calls))), plain);
    BOOST_TEST(calls.size() > 1U);
    CheckForward(calls, file_bytes);
  };
  check(*store);
  store.Stop();
  check(*Must(NodeStore::Observe({.directory = store.directory()})));
}

BOOST_AUTO_TEST_CASE(stopped_at_any_call_it_gives_no_answer_and_the_store_goes_on) {
  ScratchStore store(Mode::kStrict);
  Fill(store);
  Calls all;
  Must(store->Verify(Into(all)));
  for (std::size_t last = 1; last <= all.size(); ++last) {
    std::size_t calls = 0;
    const auto report = store->Verify([&](std::uint64_t, std::uint64_t) { return ++calls < last; });
    BOOST_TEST_REQUIRE(!report.has_value());
    BOOST_TEST((report.error().code == ErrorCode::kInterrupted));
    BOOST_TEST(calls == last);
  }
  store.Pull("registry.example/more:v1", "ref-more", std::nullopt);
  BOOST_TEST(Must(store->Verify()).sound);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
