// The page walk on stores written by liblmdb: every state is sound, and every value is visited.

#include <boost/test/unit_test.hpp>
#include <optional>

#include "store/disk/page_walk/page_check.h"
#include "tests/support/draw.h"
#include "tests/support/raw_lmdb.h"
#include "tests/support/temp_dir.h"
#include "tests/support/walk_recorder.h"

namespace {

BOOST_AUTO_TEST_SUITE(page_walk)

using namespace waybill;
using namespace waybill::testing;

const std::vector<std::string> kTables = {"", "table-of-images1", "table-of-intents",
                                          "table-of-users12"};

void RequireSound(const TempDir& dir, const RawModel& model) {
  const Walked walked = WalkPath(dir / "data.mdb");
  BOOST_REQUIRE_MESSAGE(walked.result.sound, FirstFinding(walked.result));
  BOOST_REQUIRE(walked.shown.text == ModelText(model));
  BOOST_REQUIRE(walked.shown.aligned);
}

void CommitMany(RawStore& store, const std::string& table, unsigned first, unsigned count, bool put,
                std::size_t bytes, RawModel& model) {
  RawTxn txn(store);
  const MDB_dbi dbi = txn.Table(table, MDB_CREATE);
  for (unsigned i = first; i < first + count; ++i) {
    const std::string key = std::to_string(100000000 + i) + "-------";
    if (put) {
      const std::string value(bytes, static_cast<char>('a' + i % 26));
      txn.Put(dbi, key, value);
      model[table][key] = value;
    } else {
      txn.Delete(dbi, key);
      model[table].erase(key);
    }
  }
  txn.Commit();
}

struct WrittenByLmdb {
  TempDir dir;
  RawModel model;
  RawStore store{dir.path()};
};

BOOST_AUTO_TEST_CASE(every_commit_of_a_random_history_is_sound) {
  const unsigned seed = static_cast<unsigned>(SeedOfThisRun());
  BOOST_TEST_MESSAGE("seed " << seed);
  BOOST_TEST_CONTEXT("seed " << seed) {
    TempDir dir;
    RawChanger changer(seed, kTables, {});
    RawModel model;
    auto store = std::make_unique<RawStore>(dir.path());
    std::optional<RawTxn> reader;
    for (int i = 0; i < 1200; ++i) {
      changer.Commit(*store, model);
      RequireSound(dir, model);
      const unsigned event = changer.Below(60);
      if (event == 0) changer.Abort(*store, model);
      if (event == 1 && !reader) {
        reader.emplace(*store, MDB_RDONLY);
      } else if (event < 4 && reader) {
        reader.reset();
      } else if (event == 4 && !reader) {
        store.reset();
        RequireSound(dir, model);
        store = std::make_unique<RawStore>(dir.path());
      }
    }
  }
}

BOOST_FIXTURE_TEST_CASE(a_free_list_with_overflow_pages_is_followed, WrittenByLmdb) {
  for (const std::size_t bytes : {std::size_t{288}, std::size_t{9000}}) {
    for (unsigned round = 0; round < 3; ++round) {
      CommitMany(store, kTables[1], 0, 6000, true, bytes, model);
      RequireSound(dir, model);
      CommitMany(store, kTables[1], 10, 5980, false, bytes, model);
      RequireSound(dir, model);
      for (unsigned i = 0; i < 5; ++i) CommitMany(store, kTables[2], i, 1, true, 64, model);
      RequireSound(dir, model);
    }
  }
  BOOST_TEST(WalkPath(dir / "data.mdb").result.free_pages > 2000U);
}

BOOST_AUTO_TEST_CASE(a_file_longer_than_its_pages_or_without_its_last_free_pages_is_sound) {
  TempDir dir;
  RawModel model;
  {
    RawStore store(dir.path());
    CommitMany(store, kTables[1], 0, 50, true, 9000, model);
    CommitMany(store, kTables[1], 1, 49, false, 9000, model);
    // These move the pages in use down to where the values were.
    for (unsigned i = 0; i < 6; ++i) CommitMany(store, kTables[2], i, 1, true, 64, model);
    CommitMany(store, kTables[1], 0, 1, true, 9000, model);
  }
  const std::string bytes = ReadFile(dir / "data.mdb");
  WriteFile(dir / "data.mdb", bytes + std::string(10000, 'z'));
  RequireSound(dir, model);
  const auto result = WalkPath(dir / "data.mdb").result;
  BOOST_TEST(result.free_pages > 50U);
  // The highest page in use decides.
  unsigned removed = 0;
  while (true) {
    WriteFile(dir / "data.mdb", bytes.substr(0, bytes.size() - (removed + 1) * 4096));
    const Walked walked = WalkPath(dir / "data.mdb");
    if (!walked.result.sound) break;
    BOOST_REQUIRE(walked.shown.text == ModelText(model));
    BOOST_REQUIRE(ReadByLmdb(dir.path(), walked.shown.tables) == walked.shown.text);
    ++removed;
  }
  BOOST_TEST(removed > 0U);
}

// Violations that LMDB itself ignores, or does not notice at once.
BOOST_AUTO_TEST_CASE(tables_of_another_kind_are_damage) {
  const auto walk_with = [](unsigned flags, const std::string& name, std::size_t key_bytes,
                            std::size_t value_bytes) {
    TempDir dir;
    RawStore store(dir.path());
    RawTxn txn(store);
    txn.Put(txn.Table(name, MDB_CREATE | flags), std::string(key_bytes, 'k'),
            std::string(value_bytes, 'v'));
    txn.Commit();
    return WalkPath(dir / "data.mdb").result.sound;
  };
  BOOST_TEST(walk_with(0, kTables[1], 16, 64));
  BOOST_TEST(!walk_with(MDB_DUPSORT, kTables[1], 16, 64));
  BOOST_TEST(!walk_with(MDB_REVERSEKEY, kTables[1], 16, 64));
  BOOST_TEST(!walk_with(MDB_INTEGERKEY, kTables[1], 8, 64));
  BOOST_TEST(!walk_with(0, "short-name", 16, 64));
  BOOST_TEST(!walk_with(0, kTables[1], 8, 64));
  BOOST_TEST(!walk_with(0, kTables[1], 16, 60));
  BOOST_TEST(!walk_with(0, kTables[1], 16, 8));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
