// What the page walk alone guarantees, on damaged files: it never crashes, and what it calls sound
// liblmdb reads without a crash and exactly as shown, by iteration and by lookup. Damage inside
// values and pages that went back in time with all counts unchanged are called sound and shown as
// they are: checksums and table digests, computed over what is shown, must find those.
// WAYBILL_WALKS_ONE_IN=N: where there are many such files each Nth, from a random one on.

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <random>

#include "store/lmdb/check/page_check.h"
#include "tests/support/draw.h"
#include "tests/support/raw_lmdb.h"
#include "tests/support/temp_dir.h"
#include "tests/support/walk_judge.h"
#include "tests/support/walk_recorder.h"

namespace {

using namespace waybill;
using namespace waybill::testing;

constexpr std::size_t kPage = 4096;
const std::vector<std::string> kTables = {"", "table-of-images1", "table-of-intents"};

struct History {
  unsigned seed = 0;
  std::vector<std::string> files;  // after each of the last commits
  const std::string& last() const { return files.back(); }
};

History MakeHistory(int commits, std::size_t keep, int max_keys, unsigned max_large_bytes = 20000) {
  History history;
  history.seed = static_cast<unsigned>(SeedOfThisRun());
  BOOST_TEST_MESSAGE("seed " << history.seed);
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
  const bool full = std::getenv("WAYBILL_TEST_FULL") != nullptr;
  std::mt19937 random(seed);
  std::vector<std::size_t> bits;
  for (std::size_t at = 0; at < bytes; ++at) {
    const std::size_t in_page = at % kPage;
    const bool dense = in_page < (at < 2 * kPage ? 160U : 24U);
    if (full || dense) {
      for (std::size_t bit = 0; bit < 8; ++bit) bits.push_back(at * 8 + bit);
    } else if (random() % 4 == 0) {
      bits.push_back(at * 8 + random() % 8);
    }
  }
  return bits;
}

BOOST_AUTO_TEST_SUITE(page_walk_damage)

BOOST_AUTO_TEST_CASE(a_single_flipped_bit) {
  const History history = MakeHistory(120, 1, 50, 6000);
  BOOST_TEST_CONTEXT("seed " << history.seed) {
    const auto bits = BitsToFlip(history.last().size(), history.seed);
    BOOST_TEST_MESSAGE("bytes " << history.last().size());
    WalkJudge judge(history.last());
    const auto verdicts = judge.Run(
        bits.size(),
        [&bits](std::size_t i, std::string& bytes) {
          bytes[bits[i] / 8] = static_cast<char>(bytes[bits[i] / 8] ^ (1 << (bits[i] % 8)));
        },
        16);
    Report(verdicts);
  }
}

BOOST_AUTO_TEST_CASE(a_file_cut_short) {
  const History history = MakeHistory(150, 1, 100);
  BOOST_TEST_CONTEXT("seed " << history.seed) {
    WalkJudge judge(history.last());
    const auto verdicts =
        judge.Run(history.last().size() / 512,
                  [](std::size_t i, std::string& bytes) { bytes.resize(i * 512); });
    Report(verdicts);
    // Only free pages may be missing, so no value can be.
    BOOST_TEST(verdicts.sound_other == 0U);
  }
}

BOOST_AUTO_TEST_CASE(any_two_pages_swapped) {
  const History history = MakeHistory(150, 1, 60);
  BOOST_TEST_CONTEXT("seed " << history.seed) {
    const std::size_t pages = history.last().size() / kPage;
    WalkJudge judge(history.last());
    for (const bool renumber : {false, true}) {
      const auto verdicts = judge.Run(pages * pages, [&](std::size_t i, std::string& bytes) {
        const std::size_t a = i / pages * kPage;
        const std::size_t b = i % pages * kPage;
        if (a >= b) return;
        std::swap_ranges(bytes.begin() + static_cast<std::ptrdiff_t>(a),
                         bytes.begin() + static_cast<std::ptrdiff_t>(a + kPage),
                         bytes.begin() + static_cast<std::ptrdiff_t>(b));
        // The page numbers made right again: as if two child pointers had been swapped.
        if (renumber) {
          std::swap_ranges(bytes.begin() + static_cast<std::ptrdiff_t>(a),
                           bytes.begin() + static_cast<std::ptrdiff_t>(a + 8),
                           bytes.begin() + static_cast<std::ptrdiff_t>(b));
        }
      });
      Report(verdicts);
    }
  }
}

BOOST_AUTO_TEST_CASE(each_page_as_it_once_was) {
  constexpr std::size_t kVersions = 12;
  const History history = MakeHistory(200, kVersions + 1, 100);
  BOOST_TEST_CONTEXT("seed " << history.seed) {
    const std::size_t pages = history.last().size() / kPage;
    WalkJudge judge(history.last());
    const auto verdicts = judge.Run(pages * kVersions, [&](std::size_t i, std::string& bytes) {
      const std::string& older = history.files[i / pages];
      const std::size_t at = i % pages * kPage;
      if (at + kPage <= older.size()) bytes.replace(at, kPage, older, at, kPage);
    });
    Report(verdicts);
  }
}

BOOST_AUTO_TEST_CASE(random_bytes_and_runs) {
  const History history = MakeHistory(150, 1, 100);
  BOOST_TEST_CONTEXT("seed " << history.seed) {
    WalkJudge judge(history.last());
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
}

// liblmdb takes names up to their first byte 0, and so would not find such a table.
BOOST_AUTO_TEST_CASE(zeros_in_the_name_of_a_table) {
  const History history = MakeHistory(30, 1, 20);
  BOOST_TEST_CONTEXT("seed " << history.seed) {
    const std::string& name = kTables.back();
    std::vector<std::size_t> places;
    for (std::size_t at = 0; (at = history.last().find(name, at)) != std::string::npos; ++at) {
      for (std::size_t i = 0; i < name.size(); ++i) places.push_back(at + i);
    }
    BOOST_REQUIRE(!places.empty());
    WalkJudge judge(history.last());
    Report(judge.Run(places.size(),
                     [&places](std::size_t i, std::string& bytes) { bytes[places[i]] = '\0'; }));
  }
}

BOOST_AUTO_TEST_CASE(a_damaged_leaf_costs_only_its_own_values) {
  const History history = MakeHistory(200, 1, 150);
  BOOST_TEST_CONTEXT("seed " << history.seed) {
    TempDir dir;
    WriteFile(dir / "data.mdb", history.last());
    const Walked before = WalkPath(dir / "data.mdb");
    const int which = before.result.newer_meta;
    std::uint64_t all = 0;
    {
      const OpenedFile file(dir / "data.mdb");
      WalkRecorder shown;
      const auto salvaged = internal::SalvageTree(file.fd(), which, shown);
      BOOST_REQUIRE(salvaged.has_value());
      BOOST_TEST(salvaged->complete);
      BOOST_TEST(shown.text == before.shown.text);
      all = salvaged->values;
    }
    std::uint64_t worst = all;
    for (std::size_t page = 2; page < history.last().size() / kPage; ++page) {
      std::string bytes = history.last();
      bytes[page * kPage + 14] = static_cast<char>(bytes[page * kPage + 14] ^ 8);
      WriteFile(dir / "data.mdb", bytes);
      const auto result = WalkPath(dir / "data.mdb").result;
      const OpenedFile file(dir / "data.mdb");
      WalkRecorder shown;
      const auto salvaged = internal::SalvageTree(file.fd(), which, shown);
      BOOST_REQUIRE(salvaged.has_value());
      BOOST_TEST(salvaged->values <= all);
      if (result.sound) BOOST_TEST(salvaged->values == all);
      if (salvaged->values > 0) worst = std::min(worst, salvaged->values);
    }
    BOOST_TEST(worst > 0U);
    // A wrong field of the meta page does not keep its tree from being read.
    std::string bytes = history.last();
    bytes[static_cast<std::size_t>(which) * kPage + 20] ^= 2;
    WriteFile(dir / "data.mdb", bytes);
    BOOST_TEST(!WalkPath(dir / "data.mdb").result.sound);
    const OpenedFile file(dir / "data.mdb");
    WalkRecorder shown;
    const auto salvaged = internal::SalvageTree(file.fd(), which, shown);
    BOOST_REQUIRE(salvaged.has_value());
    BOOST_TEST(!salvaged->complete);
    BOOST_TEST(salvaged->values == all);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
