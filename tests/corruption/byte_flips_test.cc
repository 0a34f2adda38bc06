// Every byte of a small store, flipped: nothing crashes, and what had to be pulled still must.
// WAYBILL_FLIPS_ONE_IN=N: one in N of these flips, at random.

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <cstring>
#include <random>

#include "store/disk/page_walk/page_format.h"
#include "tests/support/damage.h"
#include "tests/support/damage_judge.h"
#include "tests/support/draw.h"
#include "tests/support/raw_lmdb.h"
#include "tests/support/temp_dir.h"

namespace {

BOOST_AUTO_TEST_SUITE(byte_flips)

using namespace waybill;
using namespace waybill::testing;

// By page: whether it is in the free list, so that its content is from earlier commits.
std::vector<bool> FreePages(const std::string& database) {
  const TempDir dir;
  WriteFile(dir / "data.mdb", database);
  const RawStore store(dir.path());
  const RawTxn txn(store, MDB_RDONLY);
  std::vector<bool> is_free(database.size() / kPage);
  txn.ForEach(0, [&](MDB_val, MDB_val value) {
    std::vector<std::size_t> list(value.mv_size / sizeof(std::size_t));
    std::memcpy(list.data(), value.mv_data, list.size() * sizeof(std::size_t));
    for (std::size_t i = 1; i <= list.at(0); ++i) {
      if (list.at(i) < is_free.size()) is_free[list.at(i)] = true;
    }
  });
  return is_free;
}

// Whether byte `at` lies where no header, node or value is.
bool IsUnused(const std::string& database, std::size_t at) {
  const std::size_t page = at / kPage;
  const std::size_t in_page = at % kPage;
  if (page < internal::kMetaPages) return in_page >= internal::kMetaBytes;
  internal::PageHeader header{};
  std::memcpy(&header, database.data() + page * kPage, sizeof(header));
  if ((header.flags & internal::kPageOverflow) != 0) return false;
  return in_page >= header.lower && in_page < header.upper;
}

// One random bit of each byte; with `thorough`, all bits of page headers and meta pages. One byte
// in 16 of free pages, which are never read, and, unless `thorough`, of unused space.
std::vector<std::size_t> BitsToFlip(const std::string& database, std::uint64_t seed,
                                    bool thorough) {
  const std::vector<bool> is_free = FreePages(database);
  std::mt19937_64 random(seed);
  std::vector<std::size_t> bits;
  for (std::size_t at = 0; at < database.size(); ++at) {
    const std::size_t page = at / kPage;
    const bool thin_out = is_free[page] || (!thorough && IsUnused(database, at));
    if (thin_out && !Thorough() && random() % 16 != 0) continue;
    const std::size_t header =
        page < internal::kMetaPages ? internal::kMetaBytes : internal::kPageHeaderBytes;
    if (Thorough() || (thorough && !is_free[page] && at % kPage < header)) {
      for (std::size_t bit = 0; bit < 8; ++bit) bits.push_back(at * 8 + bit);
    } else {
      bits.push_back(at * 8 + random() % 8);
    }
  }
  const std::uint64_t one_in = NumberFromEnv("WAYBILL_FLIPS_ONE_IN", 1);
  if (one_in > 1) std::erase_if(bits, [&](std::size_t) { return random() % one_in != 0; });
  return bits;
}

struct Sample {
  Sample() : judge(MakeSampleStore(4)) {}

  void Flip(OpenedBy by) {
    const std::vector<std::size_t> bits =
        BitsToFlip(judge.sample().database, seed, by == OpenedBy::kOwner);
    BOOST_TEST_MESSAGE(judge.sample().database.size() << " bytes, " << bits.size() << " flips, "
                                                      << judge.sample().probes.size() << " probes");
    const DamageVerdicts verdicts = judge.Run(
        bits.size(), [&](std::size_t i, std::string& bytes) { FlipBit(bytes, bits[i]); }, by,
        Thorough());
    BOOST_TEST_MESSAGE(verdicts);
    BOOST_TEST(verdicts.judged == bits.size());
    BOOST_TEST(verdicts.Good(), verdicts);
  }

  std::uint64_t seed = SeedOfThisRun();
  DamageJudge judge;
};

BOOST_FIXTURE_TEST_CASE(an_owner_without_a_witness, Sample) { Flip(OpenedBy::kOwner); }
BOOST_FIXTURE_TEST_CASE(an_owner_with_a_witness, Sample) { Flip(OpenedBy::kOwnerWithWitness); }
BOOST_FIXTURE_TEST_CASE(an_observer_without_an_owner, Sample) { Flip(OpenedBy::kObserver); }

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
