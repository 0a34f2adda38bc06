// What an observer may conclude from owner.lock.

#include "store/engine/recovery/owner_lock.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "store/base/files.h"
#include "tests/support/expect_error.h"
#include "tests/support/store_fixture.h"
#include "tests/support/temp_dir.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(owner_lock)

// The moment between an owner's lock and its first line, in a store whose last owner was killed.
BOOST_AUTO_TEST_CASE(an_owner_that_has_not_walked_vouches_for_nothing) {
  const TempDir scratch;
  WriteFile(scratch / "data.mdb", "");
  const internal::FileId id = Must(internal::FileIdOf(scratch / "data.mdb"));
  internal::OwnerLock owner = Must(internal::OwnerLock::Take(scratch.path()));
  BOOST_TEST(!Must(internal::OwnerVouchesFor(scratch.path(), id)));
  WriteFile(scratch / "owner.lock",
            "1 recovered " + std::to_string(id.device) + " " + std::to_string(id.inode) + "\n");
  BOOST_TEST(!Must(internal::OwnerVouchesFor(scratch.path(), id)));
  Must(owner.AnnounceRecovered(id));
  BOOST_TEST(Must(internal::OwnerVouchesFor(scratch.path(), id)));
  ExpectError(internal::OwnerLock::Take(scratch.path()), ErrorCode::kOwned);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
