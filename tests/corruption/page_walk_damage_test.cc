// What the page walk alone guarantees, on damaged files: it never crashes, and what it calls sound
// liblmdb reads without a crash and exactly as shown, by iteration and by lookup. Damage inside
// values and pages that went back in time with all counts unchanged are called sound and shown as
// they are: checksums and table digests, computed over what is shown, must find those.
// WAYBILL_WALKS_ONE_IN=N: where there are many such files each Nth, from a random one on.

#include <boost/test/unit_test.hpp>
#include <random>

#include "store/disk/page_walk/page_check.h"
#include "tests/support/damage.h"
#include "tests/support/draw.h"
#include "tests/support/raw_lmdb.h"
#include "tests/support/store_fixture.h"
#include "tests/support/temp_dir.h"
#include "tests/support/walk_judge.h"
#include "tests/support/walk_recorder.h"

namespace {

BOOST_AUTO_TEST_SUITE(page_walk_damage)

using namespace waybill;
using namespace waybill::testing;

const std::vector<std::string> kTables = {"", "table-of-images1", "table-of-intents"};

struct History {
  unsigned seed = 0;
  std::vector<std::string> files;  // after each of the last commits
  const std::string& last() const { return files.back(); }
};

History MakeHistory(int commits, std::size_t keep, int max_keys, unsigned max_large_bytes = 20000) {
  History history;
  history.seed = static_cast<unsigned>(SeedOfThisRun());
  TempDir dir;
  RawStore store(dir.path());
  RawChanger changer(history.seed, kTables,
                     {.max_changes = 3,
                      .max_keys = max_keys,
                      .large_percent = 2,
                      .max_large_bytes = max_large_bytes});
  RawModel model;
  for (int i = 0; i < commits; ++i) {
    changer.Commit(store, model);
    if (static_cast<std::size_t>(commits - i) <= keep) {
      history.files.push_back(ReadFile(dir / "data.mdb"));
    }
  }
  return history;
}

void Report(const WalkVerdicts& verdicts) {
  BOOST_TEST_MESSAGE(verdicts.judged << " files: " << verdicts.flagged << " flagged, "
                                     << verdicts.sound_same << " sound and the same, "
                                     << verdicts.sound_other << " sound with other values");
  BOOST_TEST(verdicts.lies == 0U, verdicts.lies << " lies, first: " << verdicts.first_lie.data());
  BOOST_TEST(verdicts.walk_crashes == 0U);
}

// All bits where nearly every bit matters: page headers, offsets, meta pages. Elsewhere one bit of
// each fourth byte, or all with WAYBILL_TEST_FULL.
std::vector<std::size_t> BitsToFlip(std::size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::size_t> bits;
  for (std::size_t at = 0; at < bytes; ++at) {
    const std::size_t in_page = at % kPage;
    const bool dense = in_page < (at < 2 * kPage ? 160U : 24U);
    if (Thorough() || dense) {
      for (std::size_t bit = 0; bit < 8; ++bit) bits.push_back(at * 8 + bit);
    } else if (random() % 4 == 0) {
      bits.push_back(at * 8 + random() % 8);
    }
  }
  return bits;
}

BOOST_AUTO_TEST_CASE(a_single_flipped_bit) {
  const History history = MakeHistory(120, 1, 50, 6000);
  const auto bits = BitsToFlip(history.last().size(), history.seed);
  BOOST_TEST_MESSAGE("bytes " << history.last().size());
  WalkJudge judge(history.last(), history.seed);
  Report(judge.Run(
      bits.size(), [&](std::size_t i, std::string& bytes) { FlipBit(bytes, bits[i]); }, 16));
}

BOOST_AUTO_TEST_CASE(a_file_cut_short) {
  const History history = MakeHistory(150, 1, 100);
  WalkJudge judge(history.last(), history.seed);
  const auto verdicts = judge.Run(history.last().size() / 512,
                                  [](std::size_t i, std::string& bytes) { bytes.resize(i * 512); });
  Report(verdicts);
  // Only free pages may be missing, so no value can be.
  BOOST_TEST(verdicts.sound_other == 0U);
}

BOOST_AUTO_TEST_CASE(any_two_pages_swapped) {
  const History history = MakeHistory(150, 1, 60);
  const std::size_t pages = history.last().size() / kPage;
  WalkJudge judge(history.last(), history.seed);
  for (const bool renumber : {false, true}) {
    Report(judge.Run(pages * pages, [&](std::size_t i, std::string& bytes) {
      if (i / pages < i % pages) SwapPages(bytes, i / pages, i % pages, renumber);
    }));
  }
}

BOOST_AUTO_TEST_CASE(each_page_as_it_once_was) {
  constexpr std::size_t kVersions = 12;
  const History history = MakeHistory(200, kVersions + 1, 100);
  const std::size_t pages = history.last().size() / kPage;
  WalkJudge judge(history.last(), history.seed);
  Report(judge.Run(pages * kVersions, [&](std::size_t i, std::string& bytes) {
    PutPageBack(bytes, history.files[i / pages], i % pages);
  }));
}

BOOST_AUTO_TEST_CASE(random_bytes_and_runs) {
  const History history = MakeHistory(150, 1, 100);
  WalkJudge judge(history.last(), history.seed);
  const auto verdicts = judge.Run(6000, [&](std::size_t i, std::string& bytes) {
    std::mt19937 random(history.seed + static_cast<unsigned>(i));
    const std::size_t pieces = 1 + random() % 4;
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      const std::size_t page = random() % (bytes.size() / kPage);
      const std::size_t within = random() % 3 == 0 ? random() % kPage : random() % 160;
      const std::size_t length = std::min<std::size_t>(1 + random() % 12, kPage - within);
      const int kind = static_cast<int>(random() % 4);
      for (std::size_t k = 0; k < length; ++k) {
        char& c = bytes[page * kPage + within + k];
        c = kind == 0 ? '\0' : kind == 1 ? '\xff' : static_cast<char>(random());
      }
    }
  });
  Report(verdicts);
}

// liblmdb takes names up to their first byte 0, and so would not find such a table.
BOOST_AUTO_TEST_CASE(zeros_in_the_name_of_a_table) {
  const History history = MakeHistory(30, 1, 20);
  const std::string& name = kTables.back();
  std::vector<std::size_t> places;
  for (const std::size_t at : PlacesOf(history.last(), name)) {
    for (std::size_t i = 0; i < name.size(); ++i) places.push_back(at + i);
  }
  BOOST_REQUIRE(!places.empty());
  WalkJudge judge(history.last(), history.seed);
  Report(judge.Run(places.size(),
                   [&places](std::size_t i, std::string& bytes) { bytes[places[i]] = '\0'; }));
}

BOOST_AUTO_TEST_CASE(a_damaged_leaf_costs_only_its_own_values) {
  const History history = MakeHistory(200, 1, 150);
  const TempDir dir;
  const auto walk = [&](const std::string& bytes) {
    WriteFile(dir / "data.mdb", bytes);
    return WalkPath(dir / "data.mdb");
  };
  const Walked before = walk(history.last());
  const int which = before.result.newer_meta;
  WalkRecorder shown;
  const auto salvage = [&] {
    shown = {};
    return Must(internal::SalvageTree(OpenedFile(dir / "data.mdb").fd(), which, shown))
        .findings.empty();
  };
  BOOST_TEST(salvage());
  BOOST_TEST(shown.text == before.shown.text);
  const std::uint64_t whole = shown.values;
  std::uint64_t worst = whole;
  for (std::size_t page = 2; page < history.last().size() / kPage; ++page) {
    std::string bytes = history.last();
    FlipBit(bytes, (page * kPage + 14) * 8 + 3);
    const bool sound = walk(bytes).result.sound;
    salvage();
    BOOST_TEST(shown.values <= whole);
    if (sound) BOOST_TEST(shown.values == whole);
    if (shown.values > 0) worst = std::min(worst, shown.values);
  }
  BOOST_TEST(worst > 0U);
  // A wrong field of the meta page does not keep its tree from being read.
  std::string bytes = history.last();
  FlipBit(bytes, (static_cast<std::size_t>(which) * kPage + 20) * 8 + 1);
  BOOST_TEST(!walk(bytes).result.sound);
  BOOST_TEST(!salvage());
  BOOST_TEST(shown.values == whole);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
