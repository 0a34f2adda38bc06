// CompareKeys stands in for LMDB's own order of keys, by which the files are written and checked.

#include <boost/test/unit_test.hpp>
#include <string>

#include "store/engine/database/store_txn.h"
#include "tests/support/draw.h"
#include "tests/support/raw_lmdb.h"
#include "tests/support/temp_dir.h"

namespace waybill::testing {

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

}  // namespace waybill::testing
