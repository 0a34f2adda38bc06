// A store whose map is full: what it refuses, and what makes room again.

#include <lmdb.h>

#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "store/base/hex.h"
#include "store/base/sha256.h"
#include "tests/support/child_process.h"
#include "tests/support/draw.h"
#include "tests/support/expect_error.h"
#include "tests/support/fake_clock.h"
#include "tests/support/raw_lmdb.h"
#include "tests/support/store_fixture.h"
#include "tests/support/temp_dir.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(full_store)

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

NodeStoreOptions SmallStore(const TempDir& scratch, const FakeClock& clock,
                            std::uint64_t map_bytes) {
  NodeStoreOptions options{.directory = scratch / "store", .witness = Witness::None()};
  options.clock = clock.AsClock();
  options.map_bytes = map_bytes;
  return options;
}

// Adds what has these names, of `bytes` each, until one is refused. Returns the names.
template <typename Add>
std::vector<std::string> FillWith(char tag, std::size_t bytes, Add add) {
  for (std::vector<std::string> names;;) {
    std::string number = std::to_string(names.size());
    names.push_back(std::string(bytes - number.size(), tag) + number);
    const auto added = add(names.back());
    if (added) continue;
    BOOST_TEST((added.error().code == ErrorCode::kStoreFull));
    names.pop_back();
    return names;
  }
}
std::vector<std::string> Fill(NodeStore& store, char tag,
                              std::size_t ref_bytes = kMaxImageRefBytes - 10) {
  return FillWith(tag, ref_bytes, [&](const std::string& ref) {
    return store.PutRecord({ref, {}, {}});
  });
}

std::vector<ListedImage> ImagesWithDigests(std::size_t first, std::size_t count,
                                           std::size_t digests) {
  std::vector<ListedImage> images;
  for (std::size_t i = first; i < first + count; ++i) {
    const std::string name = "registry.example/app-" + std::to_string(i);
    images.push_back(
        {.id = "sha256:" + internal::HexEncode(*internal::Sha256(name)), .repo_tags = {name}});
    for (std::size_t k = 0; k < digests; ++k) {
      const std::string digest = internal::HexEncode(*internal::Sha256(name + std::to_string(k)));
      images.back().repo_digests.push_back(name + "@sha256:" + digest);
    }
  }
  return images;
}

std::vector<ListedImage> EveryOther(const std::vector<std::string>& refs) {
  std::vector<ListedImage> listed;
  for (std::size_t i = 0; i < refs.size(); i += 2) listed.push_back({.id = refs[i]});
  return listed;
}

// Of a process that holds on to the snapshot of the last commit until it is killed.
ChildProcess::Serve PinningReader(const std::filesystem::path& directory) {
  const auto store = std::make_shared<RawStore>(directory, MDB_RDONLY);
  const auto txn = std::make_shared<RawTxn>(*store, MDB_RDONLY);
  return [store, txn](const std::string&) { return std::string("pinned"); };
}

}  // namespace

// A commit that used the last pages that can be used at once would be the store's last: what it
// freed can be used only after one more.
BOOST_AUTO_TEST_CASE(whatever_a_full_store_took_it_can_still_delete) {
  const std::uint64_t seed = SeedOfThisRun();
  for (std::uint64_t history = 0; history < 2; ++history) {
    Draw draw(seed + history);
    const TempDir scratch;
    FakeClock clock;
    NodeStoreOptions options = SmallStore(scratch, clock, kMiB);
    options.rules = draw.OneIn(2) ? Mode::kStrict : Mode::kKubelet;
    options.evidence.remember = std::chrono::seconds(0);
    const auto store = Must(NodeStore::Open(options));
    std::vector<std::string> refs;
    std::uint64_t next = 0;
    const std::uint64_t crowded = draw.OneIn(2) ? 8 : 1000;
    for (int step = 0; step < 40; ++step) {
      for (bool full = false; !full;) {
        const std::uint64_t i = next++;
        ImagePulledRecord record{.image_ref = "registry.example/app@" + std::to_string(i)};
        auto& secrets = record.credential_mapping["registry.example/app"].kubernetes_secrets;
        for (std::uint64_t n = draw.OneIn(crowded) ? 20 : 1; n > 0; --n) {
          const std::string number = std::to_string(i) + "-" + std::to_string(n);
          secrets.push_back(MakeSecret("ns-" + std::to_string(i % 7), "pull-" + number,
                                       "uid-" + number, "hash-" + number));
        }
        full = !store->PutRecord(record).has_value();
        if (!full) refs.push_back(record.image_ref);
      }
      switch (draw.Below(4)) {
        case 0:
          static_cast<void>(store->ForgetNamespace("ns-" + std::to_string(draw.Below(7))));
          break;
        case 1: {
          const std::uint64_t one_in = draw.OneIn(2) ? 1 : 3;
          std::vector<ListedImage> listed;
          std::erase_if(refs, [&](const std::string& ref) {
            const bool stays = !draw.OneIn(one_in);
            if (stays) listed.push_back({.id = ref});
            return !stays;
          });
          Must(store->Prune(listed, Must(store->BeginList()), {.allow_empty = true}));
          break;
        }
        default:
          break;
      }
      for (std::uint64_t n = draw.Below(12); n > 0 && !refs.empty(); --n) {
        const std::size_t at = draw.Below(refs.size());
        Must(store->DeleteRecord({.image_ref = refs[at]}));
        refs.erase(refs.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    BOOST_TEST(Must(store->ListRecords()).size() == refs.size());
    BOOST_TEST(Must(store->Verify()).sound);
  }
}

// Large values first: a single one would use up the reserve for deletions.
BOOST_AUTO_TEST_CASE(no_single_change_takes_what_deletions_need) {
  const TempDir scratch;
  FakeClock clock;
  const auto store = Must(NodeStore::Open(SmallStore(scratch, clock, 8 * kMiB)));
  std::vector<std::string> refs;
  for (std::size_t names = 200; names > 0; names /= 2) {
    ImagePulledRecord record;
    for (std::size_t i = 0; i < names; ++i) {
      record.credential_mapping[std::string(2000, 'n') + std::to_string(i)];
    }
    for (Result<void> added; added;) {
      record.image_ref = "ref-" + std::to_string(refs.size());
      added = store->PutRecord(record);
      if (added) refs.push_back(record.image_ref);
    }
  }
  for (std::string& ref : Fill(*store, 'a', 20)) refs.push_back(std::move(ref));
  const std::vector<ListedImage> listed = EveryOther(refs);
  const PruneReport pruned = Must(store->Prune(listed, Must(store->BeginList())));
  BOOST_TEST(pruned.removed == refs.size() - listed.size());
  BOOST_TEST(Must(store->Verify()).sound);
}

BOOST_AUTO_TEST_CASE(a_full_store_deletes_while_a_reader_holds_an_old_snapshot) {
  const TempDir scratch;
  FakeClock clock;
  const NodeStoreOptions options = SmallStore(scratch, clock, 64 * kMiB);
  const auto store = Must(NodeStore::Open(options));
  const std::vector<std::string> refs = Fill(*store, 'a', 4000);
  {
    ChildProcess reader([&] { return PinningReader(options.directory); });
    BOOST_TEST_REQUIRE(reader.Ask("?") == "pinned");
    for (std::size_t i = 0; i < 40; ++i) Must(store->DeleteRecord({.image_ref = refs[i]}));
    Must(store->ClearDistrust("a reason is written to a full store, too"));
    // The freed pages are pinned by the reader, so there is no more room than before.
    ExpectError(store->PutRecord({std::string(4000, 'b'), {}, {}}), ErrorCode::kStoreFull);
    for (std::size_t i = 40; i < 60; ++i) Must(store->DeleteRecord({.image_ref = refs[i]}));
    reader.Kill();
  }
  // The reader died without releasing its snapshot.
  const std::vector<ListedImage> listed = EveryOther(refs);
  Must(store->Prune(listed, Must(store->BeginList())));
  BOOST_TEST(Must(store->ListRecords()).size() == listed.size() - 30);
  Must(store->PutRecord({std::string(4000, 'b'), {}, {}}));
  BOOST_TEST(Must(store->Verify()).sound);
}

// A store that is full, with so many pulls that run that no commit could end them all.
struct FullWithPulls {
  static constexpr std::size_t kPulls = 450;
  FullWithPulls() {
    store = Must(NodeStore::Open(options));
    for (std::size_t i = 0; i < kPulls; ++i) {
      pulls.push_back(Must(store->RecordPullIntent({.image = Image(i)})));
    }
    Fill(*store, 'a');
  }
  static std::string Image(std::size_t i) {
    return "registry.example/" + std::string(200, 'a') + std::to_string(i) + ":v1";
  }

  const TempDir scratch;
  FakeClock clock;
  const NodeStoreOptions options = SmallStore(scratch, clock, kMiB);
  std::unique_ptr<NodeStore> store;
  std::vector<PullId> pulls;
};

BOOST_FIXTURE_TEST_CASE(pulls_end_in_a_full_store, FullWithPulls) {
  for (const auto& [i, failure] :
       {std::pair{0U, PullOutcome::kNothing}, std::pair{1U, PullOutcome::kFailed},
        std::pair{2U, PullOutcome::kUnknown}}) {
    Must(store->RecordImagePullFailed({.image = Image(i)}, failure, pulls[i]));
  }
  Must(store->DropOpenPull(pulls[1], "a reason is written to a full store, too"));
  BOOST_TEST(Must(store->ListOpenPulls()).size() == FullWithPulls::kPulls - 2);
}

BOOST_FIXTURE_TEST_CASE(a_full_store_opens_after_the_process_that_pulled_died, FullWithPulls) {
  store.reset();
  store = Must(NodeStore::Open(options));
  for (const UnresolvedPull& pull : Must(store->ListOpenPulls())) {
    BOOST_TEST((pull.state == PullState::kUnknown));
  }
  BOOST_TEST(Must(store->Verify()).sound);
}

// It judges and removes in one transaction, so it is refused as a whole. Pruning needs no room.
BOOST_AUTO_TEST_CASE(a_list_that_a_full_store_has_no_room_for_changes_nothing) {
  const TempDir scratch;
  FakeClock clock;
  const auto store = Must(NodeStore::Open(SmallStore(scratch, clock, kMiB)));
  const std::vector<std::string> refs = Fill(*store, 'a', 300);
  ImageList list;
  for (std::size_t i = 0; i < 200; ++i) {
    const std::string number = std::to_string(i);
    list.images.push_back(
        {.id = "preloaded-" + number, .repo_tags = {"registry.example/a" + number + ":v1"}});
  }
  list.token = Must(store->BeginList());
  ExpectError(store->ObserveImages(list), ErrorCode::kStoreFull);
  BOOST_TEST(Must(store->ListLedger()).empty());
  BOOST_TEST(Must(store->ListRecords()).size() == refs.size());

  Must(store->Prune({{.id = refs[0]}}, Must(store->BeginList())));
  list.token = Must(store->BeginList());
  // No list had the records that went, so the images may be theirs.
  BOOST_TEST(Must(store->ObserveImages(list)).closed == 200U);
  BOOST_TEST(Must(store->Verify()).sound);
}

// Long lists and short ones, until there is room for none.
BOOST_AUTO_TEST_CASE(what_lists_filled_can_be_pruned) {
  Draw draw(SeedOfThisRun());
  const TempDir scratch;
  FakeClock clock;
  NodeStoreOptions options = SmallStore(scratch, clock, (1 + draw.Below(2)) * kMiB);
  options.evidence.remember = std::chrono::seconds(0);
  const auto store = Must(NodeStore::Open(options));
  std::vector<ListedImage> there;
  for (std::size_t next = 0, round = 0; round < 5; ++round) {
    std::size_t most = 1000;
    while (most > 0) {
      ImageList list{.images = ImagesWithDigests(next, 1 + draw.Below(most), draw.Below(4))};
      list.token = Must(store->BeginList());
      next += list.images.size();
      const auto observed = store->ObserveImages(list);
      if (observed) {
        there.insert(there.end(), list.images.begin(), list.images.end());
      } else {
        BOOST_TEST((observed.error().code == ErrorCode::kStoreFull), observed.error().ToString());
        most /= 2;
      }
    }
    const std::size_t one_in = 1 + draw.Below(3);
    std::erase_if(there, [&](const ListedImage&) { return draw.OneIn(one_in); });
    const auto pruned = store->Prune(there, Must(store->BeginList()), {.allow_empty = true});
    BOOST_TEST(pruned.has_value(), "round " << round);
  }
  BOOST_TEST(Must(store->Verify()).sound);
}

BOOST_AUTO_TEST_CASE(id_mappings_of_a_full_store_can_be_cleaned_up) {
  const TempDir scratch;
  FakeClock clock;
  NodeStoreOptions options = SmallStore(scratch, clock, kMiB);
  options.runtime_handlers = {{"", true, true, {}}};
  options.user_namespaces.pool = {kIdsPerBlock, 60'000 * kIdsPerBlock, kIdsPerBlock};
  const auto store = Must(NodeStore::Open(options));
  const auto pods = FillWith('p', 108, [&](const std::string& pod) {
    return store->GetOrCreateUserNamespace({.pod_uid = pod, .host_users = false});
  });
  BOOST_TEST(pods.size() > 500U);
  std::vector<std::string> living;
  for (std::size_t i = 0; i < pods.size(); i += 2) living.push_back(pods[i]);
  const auto report = Must(store->CleanUpUserNamespaces(living, {}, Must(store->BeginList())));
  BOOST_TEST(report.examined == pods.size());
  BOOST_TEST(report.released == pods.size() - living.size());
  BOOST_TEST(report.released_pods.size() == std::min<std::size_t>(report.released, 1000));
  BOOST_TEST(Must(store->ListUserNamespaces()).size() == living.size());
  BOOST_TEST(Must(store->Verify()).sound);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
