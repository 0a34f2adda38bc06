// What a call returns if it is given another member of a copy of an image than it needs; which code
// it returns if the store can't be read.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>

#include "tests/support/expect_error.h"
#include "tests/support/rows.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(image_copy)

// With positional strings the answer would be "no record, no intent", as if nothing had been
// pulled.
BOOST_FIXTURE_TEST_CASE(the_other_member_alone_is_refused_and_is_no_answer, ClosedStore) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  constexpr auto kWrong = ErrorCode::kInvalidArgument;
  const ImageCopy only_ref = {.image_ref = kRef};
  ExpectError(store->RecordPullIntent(only_ref), kWrong);
  ExpectError(store->RecordImagePullFailed(only_ref), kWrong);
  ExpectError(store->RecordImagePulled(only_ref, WithSecret(kSecretA)), kWrong);
  ExpectError(store->HasIntent(only_ref), kWrong);
  ExpectError(store->PutIntent(only_ref), kWrong);
  ExpectError(store->DeleteIntent(only_ref), kWrong);
  BOOST_TEST(DecisionOf(*store, only_ref).pull);

  const ImageCopy only_image = {.image = kImage};
  ExpectError(store->GetRecord(only_image), kWrong);
  ExpectError(store->DeleteRecord(only_image), kWrong);
  ExpectError(store->RecordImagePulled(only_image, WithSecret(kSecretA)), kWrong);
  BOOST_TEST(Must(store->ListRecords()).size() == 1U);
  BOOST_TEST(Must(store->ListIntents()).empty());
}

BOOST_FIXTURE_TEST_CASE(a_closed_store_says_that_it_is_closed, ClosedStore) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  Must(store->Close());
  const ImageCopy copy = {.image = kImage, .image_ref = kRef};
  constexpr auto kClosed = ErrorCode::kClosed;
  ExpectError(store->GetRecord(copy), kClosed);
  ExpectError(store->ListRecords(), kClosed);
  ExpectError(store->HasIntent(copy), kClosed);
  ExpectError(store->GetTrust(), kClosed);
  ExpectError(store->GetStatistics(), kClosed);
  ExpectError(store->GetUserNamespace("pod-1"), kClosed);
  ExpectError(store->RecordPullIntent(copy), kClosed);
  ExpectError(store->DeleteRecord(copy), kClosed);
  ExpectError(store->BeginList(), kClosed);
  BOOST_TEST(DecisionOf(*store, copy, Pod({kSecretA})).pull);
}

BOOST_FIXTURE_TEST_CASE(reading_from_a_store_that_was_taken_away_says_so_and_not_damaged,
                        ClosedStore) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  std::filesystem::remove(store.directory() / "owner.lock");
  const ImageCopy copy = {.image = kImage, .image_ref = kRef};
  ExpectError(store->PutIntent(copy), ErrorCode::kOwned);
  ExpectError(store->GetRecord(copy), ErrorCode::kOwned);
  ExpectError(store->ListIntents(), ErrorCode::kOwned);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
