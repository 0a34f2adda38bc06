// Rules that follow from how LMDB writes and lays out pages: one case each.

#include <fcntl.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <filesystem>
#include <random>

#include "store/disk/page_walk/page_format.h"
#include "store/disk/tables.h"
#include "tests/corruption/scene.h"
#include "tests/support/draw.h"
#include "tests/support/good_in_child.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/raw_lmdb.h"
#include "tests/support/store_fixture.h"

namespace {

BOOST_AUTO_TEST_SUITE(lmdb_writes)

namespace fs = std::filesystem;
using namespace waybill;
using namespace waybill::testing;
using waybill::testing::NodeStore;

std::string RefOf(int i) { return "sha256:" + Sha256Hex(std::to_string(i)); }
std::string ImageOf(int i) { return "registry.example.com/app-" + std::to_string(i) + ":v1"; }

// An image with a credential of the usual forms and lengths.
ImagePullCredentials Usual(int i) {
  const std::string hex = Sha256Hex("uid" + std::to_string(i));
  const std::string uid = hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-4" + hex.substr(12, 3) +
                          "-8" + hex.substr(15, 3) + "-" + hex.substr(18, 12);
  return WithSecret(MakeSecret("team-" + std::to_string(i % 50), "regcred", uid,
                               Sha256Hex("hash" + std::to_string(i))));
}

// Every value as liblmdb shows it.
void ForEachValue(
    const fs::path& directory,
    const std::function<void(std::string_view table, MDB_val key, MDB_val value)>& see) {
  const RawStore raw(directory);
  const RawTxn txn(raw, MDB_RDONLY);
  const auto see_all = [&](const std::string& table) {
    txn.ForEach(txn.Table(table), [&](MDB_val key, MDB_val value) { see(table, key, value); });
  };
  see_all("");
  for (const auto& table : internal::kTables) {
    if (!internal::LiesInMain(table.table)) see_all(table.name);
  }
}

// --- Rule 12

// Fills a store until it says `full`. The records that were acknowledged.
std::vector<int> Fill(NodeStore& store, ErrorCode full, std::string& problem) {
  std::vector<int> stored;
  for (int i = 0;; ++i) {
    const auto written =
        store.RecordImagePulled({.image = ImageOf(i), .image_ref = RefOf(i)}, Usual(i));
    if (!written) {
      if (written.error().code != full) problem = written.error().ToString();
      return stored;
    }
    stored.push_back(i);
  }
}

std::string AllThere(NodeStore& store, const std::vector<int>& stored) {
  for (const int i : stored) {
    if (!store.GetRecord({.image_ref = RefOf(i)})) return "lost " + RefOf(i);
  }
  if (Must(store.GetStatistics()).records != stored.size()) return "another count";
  const VerifyReport verified = Must(store.Verify());
  return verified.sound ? "" : "does not verify: " + verified.findings.front();
}

std::string FillASmallDisk(const fs::path& at) {
  if (!MountSmallFileSystem(at, "1m")) return kMayNotMount;
  const NodeStoreOptions options = OptionsIn(at);
  auto store = Must(NodeStore::Open(options));
  // What an operator can delete.
  WriteFile(at / "ballast", std::string(200 << 10, 'x'));
  std::string problem;
  std::vector<int> stored = Fill(*store, ErrorCode::kDiskFull, problem);
  if (!problem.empty()) return problem;
  if (stored.empty()) return "nothing was stored";
  // Another record may still fit into pages that are there; if not, the error is the same.
  for (int i = 0; i < 8; ++i) {
    const int next = static_cast<int>(stored.size());
    const auto again =
        store->RecordImagePulled({.image = ImageOf(next), .image_ref = RefOf(next)}, Usual(next));
    if (again) {
      stored.push_back(next);
    } else if (again.error().code != ErrorCode::kDiskFull) {
      return "the second time: " + again.error().ToString();
    }
  }
  if (auto lost = AllThere(*store, stored); !lost.empty()) return "full: " + lost;
  if (!DecisionOf(*store, {.image = ImageOf(0), .image_ref = RefOf(0)}).pull) {
    return "opened";
  }

  // A full disk does not keep the store from being opened again.
  if (auto closed = store->Close(); !closed) return closed.error().ToString();
  store.reset();
  auto reopened = NodeStore::Open(options);
  if (!reopened && reopened.error().code != ErrorCode::kDiskFull) {
    return "reopened full: " + reopened.error().ToString();
  }
  if (reopened) store = std::move(*reopened);

  fs::remove(at / "ballast");
  if (!store) store = Must(NodeStore::Open(options));
  if (store->recovery_report().set_aside || store->recovery_report().distrustful) {
    return "not the same store";
  }
  const int next = static_cast<int>(stored.size());
  Must(store->RecordImagePulled({.image = ImageOf(next), .image_ref = RefOf(next)}, Usual(next)));
  stored.push_back(next);
  if (auto lost = AllThere(*store, stored); !lost.empty()) return "after: " + lost;
  return "good";
}

BOOST_AUTO_TEST_CASE(rule_12_a_full_disk_is_an_error_and_nothing_else) {
  const TempDir dir;
  ExpectGoodInChild([&] { return FillASmallDisk(dir.path()); });
}

// While the store is open nobody reads the free list but LMDB, which believes it.
BOOST_FIXTURE_TEST_CASE(a_free_list_with_impossible_pages_is_damage, Scene) {
  Rotate();
  auto file = Must(internal::OpenFile(database(), O_RDWR));
  auto pages = Must(internal::PageFile::Open(file.get()));
  const internal::MetaPages metas = internal::ReadMetaPages(pages);
  const auto root = metas.meta[static_cast<std::size_t>(metas.newer_meta)].free_tree.root;
  internal::PageFile::Scratch scratch;
  const auto at = static_cast<off_t>(root * metas.page_bytes);
  const std::byte* bytes = pages.Read(static_cast<std::uint64_t>(at), metas.page_bytes, scratch);
  internal::NodePage leaf;
  BOOST_REQUIRE(leaf.Open(bytes, root, metas.page_bytes, internal::TreeKind::kFree) == nullptr);
  BOOST_REQUIRE(leaf.is_leaf());
  for (unsigned i = 0; i < leaf.count(); ++i) {
    const auto count = internal::Load<std::uint64_t>(leaf.Data(i));
    for (std::uint64_t n = 1; n <= count; ++n) {
      const std::byte* const number = leaf.Data(i) + n * sizeof(std::uint64_t);
      const std::uint64_t far = internal::Load<std::uint64_t>(number) | std::uint64_t{1} << 51;
      BOOST_REQUIRE(pwrite(file.get(), &far, sizeof(far), at + (number - bytes)) == sizeof(far));
    }
  }
  ExpectError(store->RecordImagePulled({.image = kImage, .image_ref = kRef2}, NodeWide()),
              ErrorCode::kDamaged);
  BOOST_TEST(!Pulls(kRotatedA));
  BOOST_TEST(Pulls(kThief));
}

// --- Rule 14

BOOST_FIXTURE_TEST_CASE(rule_14_every_value_is_aligned, ClosedStore) {
  std::mt19937_64 random(SeedOfThisRun());
  for (int i = 0; i < 300; ++i) {
    ImagePullCredentials credentials = Usual(i);
    // Up to overflow pages of every size, with names of any length.
    const int more = i % 10 == 0 ? static_cast<int>(random() % 200) : 0;
    for (int k = 0; k < more; ++k) {
      credentials.kubernetes_secrets.push_back(
          MakeSecret("n" + std::to_string(k), std::string(1 + random() % 90, 's'), "u", "h"));
    }
    store.Pull(ImageOf(i), RefOf(i) + std::string(random() % 9, 'x'), credentials);
    Must(store->PutIntent(
        {.image = "registry.example.com/" + std::string(1 + random() % 200, 'i')}));
  }
  store.Stop();
  std::size_t overflow = 0;
  std::size_t seen = 0;
  ForEachValue(store.directory(), [&](std::string_view table, MDB_val key, MDB_val value) {
    BOOST_TEST(key.mv_size == 16U);
    // A table's own entry in main is LMDB's.
    const bool is_entry =
        table.empty() && value.mv_size == 48 && std::memcmp(key.mv_data, "waybill-", 8) != 0;
    if (is_entry) return;
    ++seen;
    if (value.mv_size > 2048) ++overflow;
    BOOST_TEST(value.mv_size % 8 == 0U);
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(value.mv_data) % 8 == 0U);
  });
  BOOST_TEST(seen > 400U);
  BOOST_TEST(overflow > 5U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
