// Whole pages of a store lost, swapped, or replaced by older ones: what had to be pulled still
// must. WAYBILL_PAGES_ONE_IN=N: of many such files only each Nth, from a random one on.

#include <fcntl.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "store/base/files.h"
#include "store/disk/page_walk/page_format.h"
#include "tests/support/damage.h"
#include "tests/support/damage_judge.h"
#include "tests/support/draw.h"
#include "tests/support/node_store.h"
#include "tests/support/pod.h"
#include "tests/support/rows.h"
#include "tests/support/store_fixture.h"
#include "tests/support/temp_dir.h"

namespace {

using namespace waybill;
using namespace waybill::testing;
using waybill::testing::NodeStore;

// Enough for branch pages.
struct Sample {
  Sample() : judge(MakeSampleStore(Thorough() ? 120 : 40)) {
    BOOST_TEST_MESSAGE(pages << " pages, " << judge.sample().history.size() << " earlier states");
  }

  void Run(std::size_t count, const DamageJudge::Damage& damage, OpenedBy by) {
    const std::size_t one_in = count < 200 ? 1 : NumberFromEnv("WAYBILL_PAGES_ONE_IN", 1);
    const std::size_t first = seed % one_in;
    const DamageVerdicts verdicts =
        judge.Run((count - first + one_in - 1) / one_in,
                  [&](std::size_t i, std::string& bytes) { damage(first + i * one_in, bytes); }, by,
                  Thorough());
    BOOST_TEST_MESSAGE(verdicts);
    BOOST_TEST(verdicts.judged > 0U);
    BOOST_TEST(verdicts.Good(), verdicts);
  }
  void RunForAll(std::size_t count, const DamageJudge::Damage& damage) {
    for (const OpenedBy by : {OpenedBy::kOwner, OpenedBy::kOwnerWithWitness, OpenedBy::kObserver}) {
      Run(count, damage, by);
    }
  }

  const std::uint64_t seed = SeedOfThisRun();
  DamageJudge judge;
  const std::size_t pages = judge.sample().database.size() / kPage;
};

// More than one page of the main table holds.
std::vector<std::string> Pulled() {
  std::vector<std::string> images;
  for (int i = 0; i < 100; ++i) {
    images.push_back("pulls.example.com/" + std::to_string(i) + ":v1");
  }
  return images;
}

BOOST_FIXTURE_TEST_SUITE(page_damage, Sample)

BOOST_AUTO_TEST_CASE(a_file_cut_short_at_each_page) {
  RunForAll(pages, [](std::size_t i, std::string& bytes) { bytes.resize(i * kPage); });
  RunForAll(pages, [](std::size_t i, std::string& bytes) { bytes.resize(i * kPage + 1 + i); });
}

BOOST_AUTO_TEST_CASE(each_page_zeroed) {
  RunForAll(pages, [](std::size_t i, std::string& bytes) {
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(i * kPage), kPage, '\0');
  });
}

BOOST_AUTO_TEST_CASE(each_pair_of_pages_swapped) {
  for (const bool renumber : {false, true}) {
    RunForAll(pages * pages, [&](std::size_t i, std::string& bytes) {
      if (i / pages < i % pages) SwapPages(bytes, i / pages, i % pages, renumber);
    });
  }
}

// Without a witness a meta page that went back by two commits can't be told; with one it is.
BOOST_AUTO_TEST_CASE(each_page_as_it_once_was) {
  const auto& history = judge.sample().history;
  const std::size_t others = pages - internal::kMetaPages;
  RunForAll(others * history.size(), [&](std::size_t i, std::string& bytes) {
    PutPageBack(bytes, history[i / others], internal::kMetaPages + i % others);
  });
  Run(
      internal::kMetaPages * history.size(),
      [&](std::size_t i, std::string& bytes) {
        PutPageBack(bytes, history[i / internal::kMetaPages], i % internal::kMetaPages);
      },
      OpenedBy::kOwnerWithWitness);
}

BOOST_AUTO_TEST_CASE(both_meta_pages_as_they_once_were) {
  const auto& history = judge.sample().history;
  Run(
      history.size(),
      [&](std::size_t i, std::string& bytes) {
        bytes.replace(0, internal::kMetaPages * kPage, history[i], 0, internal::kMetaPages * kPage);
      },
      OpenedBy::kOwnerWithWitness);
}

// A pull that is hidden by a damaged separator would let its image pass for preloaded.
BOOST_FIXTURE_TEST_CASE(a_separator_of_open_pulls_damaged_under_its_owner, TempDir) {
  const auto store = Must(NodeStore::Open(OptionsIn(path())));
  for (const std::string& image : Pulled()) Must(store->RecordPullIntent({.image = image}));
  const std::string sound = ReadFile(*this / "store/data.mdb");
  std::string bytes = sound;
  for (std::size_t at = 0; at < bytes.size(); at += kPage) {
    internal::PageHeader header{};
    std::memcpy(&header, bytes.data() + at, sizeof(header));
    if (header.flags != internal::kPageBranch) continue;
    // The first node of a branch page has no key, the second one has the separator.
    std::uint16_t node = 0;
    std::memcpy(&node, bytes.data() + at + internal::kPageHeaderBytes + sizeof(node), sizeof(node));
    constexpr std::size_t kBeforeKey = 8;
    FlipBit(bytes, 8 * (at + node + kBeforeKey) + 7);
  }
  const auto file = Must(internal::OpenFile(*this / "store/data.mdb", O_RDWR));
  Must(internal::PWriteAll(file, bytes, 0, "data.mdb"));
  std::size_t refused = 0;
  for (const std::string& image : Pulled()) {
    const auto has = store->HasIntent({.image = image});
    BOOST_TEST((!has || *has), image);
    refused += has ? 0U : 1U;
  }
  BOOST_TEST(refused > 0U);
  Must(internal::PWriteAll(file, sound, 0, "data.mdb"));
}

// Pulls lie beside the state, in pages of their own if there are many. A page that is lost takes
// along its pulls, and neither the state nor what a record proves.
BOOST_FIXTURE_TEST_CASE(each_page_of_open_pulls_zeroed, TempDir) {
  {
    const auto store = Must(NodeStore::Open(OptionsIn(path())));
    for (const std::string& image : Pulled()) Must(store->RecordPullIntent({.image = image}));
    Must(store->RecordImagePulled({.image = kImage, .image_ref = kRef}, WithSecret(kSecretA)));
    Must(store->Close());
  }
  for (const std::string file : {"store", "witness"}) {
    std::filesystem::rename(*this / file, *this / ("sound " + file));
  }
  const std::string sound = ReadFile(*this / "sound store/data.mdb");
  int lost = 0;
  for (std::size_t at = 0; at < sound.size(); at += kPage) {
    const std::string_view page = std::string_view(sound).substr(at, kPage);
    if (page.find("pulls.example.com/") == page.npos || page.find("waybill-state") != page.npos) {
      continue;
    }
    for (const std::string file : {"store", "witness"}) {
      std::filesystem::remove_all(*this / file);
      std::filesystem::copy(*this / ("sound " + file), *this / file);
    }
    WriteFile(*this / "store/data.mdb", std::string(sound).replace(at, kPage, kPage, '\0'));
    const auto store = Must(NodeStore::Open(OptionsIn(path())));
    if (store->recovery_report().set_aside) ++lost;
    Pod pod(kSecretA);
    const Decision decision = store->MustAttemptPull({.image = kImage, .image_ref = kRef}, pod);
    BOOST_TEST(!decision.pull, "page " << at / kPage << ": " << ReasonName(decision.reason));
  }
  BOOST_TEST(lost > 3);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
