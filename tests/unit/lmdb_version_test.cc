// A version of LMDB that waybill was not tested with.

#include <lmdb.h>

#include <boost/test/unit_test.hpp>
#include <string>

#include "store/disk/lmdb/version.h"
#include "store/maintenance.h"
#include "tests/support/expect_error.h"
#include "tests/support/store_fixture.h"
#include "tests/support/tree.h"

namespace {
int patch = -1;  // of the version that is pretended; −1: none is
}

// Replaces LMDB's function, also for the library under test.
extern "C" __attribute__((visibility("default"))) char* mdb_version(int* major, int* minor,
                                                                    int* patch_out) {
  static char text[] = "LMDB as the tests have it";
  if (major != nullptr) *major = patch < 0 ? MDB_VERSION_MAJOR : 0;
  if (minor != nullptr) *minor = patch < 0 ? MDB_VERSION_MINOR : 9;
  if (patch_out != nullptr) *patch_out = patch < 0 ? MDB_VERSION_PATCH : patch;
  return text;
}

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(lmdb_version)

// A limit: "LMDB 0.9.24"
BOOST_AUTO_TEST_CASE(one_that_was_not_tested_is_refused_unless_it_is_allowed) {
  struct Reset {
    ~Reset() {
      patch = -1;
      AllowUntestedLmdb(false);
    }
  } const reset;
  ScratchStore store(Mode::kStrict);
  store.Stop();
  Must(MigrateStore({.directory = store.directory(), .to = 1}));
  const auto backup = Must(MigrateStore({.directory = store.directory()})).backup;
  const Tree before = TreeOf(store.scratch());
  patch = 99;
  const auto check = [](const auto& result) {
    const Error error = ExpectError(result, ErrorCode::kInvalidArgument, "LMDB 0.9.99");
    BOOST_TEST(error.message.find("0.9.24") != std::string::npos);
  };
  check(NodeStore::Open(store.Options({})));
  check(NodeStore::Observe({.directory = store.directory()}));
  check(MigrateStore({.directory = store.directory(), .to = 1}));
  check(RestoreStore({.directory = store.directory(), .backup = backup}));
  BOOST_TEST((TreeOf(store.scratch()) == before));
  AllowUntestedLmdb(true);
  store.Start();
  store.Stop();
  Must(NodeStore::Observe({.directory = store.directory()}));
  AllowUntestedLmdb(false);
  check(NodeStore::Open(store.Options({})));
}

BOOST_AUTO_TEST_CASE(those_that_the_message_names_are_used_and_no_others) {
  struct Reset {
    ~Reset() { patch = -1; }
  } const reset;
  ScratchStore store(Mode::kStrict);
  store.Stop();
  patch = 99;
  const auto refused = NodeStore::Observe({.directory = store.directory()});
  const std::string named =
      ExpectError(refused, ErrorCode::kInvalidArgument, "but with 0.9.24, ").message;
  for (patch = 0; patch < 99; ++patch) {
    const std::string version = " 0.9." + std::to_string(patch);
    const bool tested = named.find(version + ",") != std::string::npos ||
                        named.find(version + ";") != std::string::npos;
    BOOST_TEST(NodeStore::Observe({.directory = store.directory()}).has_value() == tested, version);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
