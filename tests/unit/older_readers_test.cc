// After a migration down, the older version's code must find the store sound. That code reads the
// header under both meta pages, and knows only its own version.

#include <fcntl.h>

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <vector>

#include "store/base/files.h"
#include "store/engine/database/tables.h"
#include "store/engine/lmdb/check/page_check.h"
#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(older_readers)

namespace {

// The version in the envelope of the state record in the tree of one meta page.
int HeaderVersion(const std::filesystem::path& database, int meta) {
  const auto file = Must(internal::OpenFile(database, O_RDONLY));
  const auto value = Must(internal::FindInMain(file.get(), meta, internal::kStateKey.bytes));
  std::uint16_t version = 0;
  std::memcpy(&version, value.data() + 2, sizeof(version));
  return version;
}

void ExpectBothHeaders(const ScratchStore& store, int version) {
  for (const int meta : {0, 1}) {
    BOOST_TEST(HeaderVersion(store.directory() / "data.mdb", meta) == version);
  }
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(both_meta_pages_lead_to_a_header_of_the_version_that_was_gone_to,
                        ClosedStore) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  store.Stop();
  BOOST_TEST(Must(Migrate({.directory = store.directory(), .to = 1})).steps.size() ==
             kNewestSchema - 1);
  ExpectBothHeaders(store, 1);
  // If an earlier call was cut short, the same call repairs that.
  Must(Migrate({.directory = store.directory(), .to = 1}));
  ExpectBothHeaders(store, 1);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
