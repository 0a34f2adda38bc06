// A clock that jumped forward and was put right: the future that it told does not last for ever,
// and no record looks older than it is.

#include <boost/test/unit_test.hpp>
#include <string>

#include "tests/support/rows.h"

namespace waybill::testing {

namespace {

constexpr std::int64_t kYears = 10LL * 365 * 24 * 3600;

Timestamp TimeOf(ScratchStore& store, std::string_view ref) {
  return Must(store->GetRecord({.image_ref = ref})).last_updated.value();
}

std::uint64_t Collect(ScratchStore& store, Timestamp until) {
  return Must(store->PruneBefore({std::string("sha256:another")}, until)).removed;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(clock_ahead)

BOOST_AUTO_TEST_CASE(after_the_next_opening_the_clock_is_believed_again) {
  ScratchStore store(Rules::kClosed);
  store.clock().AdvanceSeconds(kYears);
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  const Timestamp ahead = store.clock().Now();
  store.clock().AdvanceSeconds(-kYears);
  store.Restart();
  const RecoveryReport& report = store->recovery_report();
  BOOST_TEST(!report.clock_was_ahead.empty());
  BOOST_TEST(report.times_mended == 1U);
  BOOST_TEST((TimeOf(store, kRef) == store.clock().Now()));
  BOOST_TEST((TimeOf(store, kRef) < ahead));
  store.clock().AdvanceSeconds(60);
  store.Pull(kImage, kRef2, WithSecret(kSecretA));
  BOOST_TEST((TimeOf(store, kRef2) == store.clock().Now()));
  // Only what was there before.
  BOOST_TEST(Collect(store, store.clock().Now()) == 1U);
  BOOST_TEST(!Must(store->ListRecords()).empty());
  store.Restart();
  BOOST_TEST(store->recovery_report().clock_was_ahead.empty());
}

BOOST_AUTO_TEST_CASE(without_an_opening_the_second_collection_takes_them) {
  ScratchStore store(Rules::kClosed);
  store.clock().AdvanceSeconds(kYears);
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  store.clock().AdvanceSeconds(-kYears);
  store.clock().AdvanceSeconds(60);
  BOOST_TEST(Collect(store, store.clock().Now()) == 0U);
  store.Pull(kImage, kRef2, WithSecret(kSecretA));
  BOOST_TEST((TimeOf(store, kRef2) == store.clock().Now()));
  store.clock().AdvanceSeconds(60);
  BOOST_TEST(Collect(store, store.clock().Now()) == 2U);
}

// A record of another clock's future, as a kubelet's file may say.
BOOST_AUTO_TEST_CASE(a_record_that_was_put_with_a_time_to_come_is_collected_too) {
  ScratchStore store(Rules::kClosed);
  ImagePulledRecord record;
  record.image_ref = std::string(kRef);
  record.last_updated = store.clock().Now();
  record.last_updated->seconds += kYears;
  Must(store->PutRecord(record));
  BOOST_TEST(Collect(store, store.clock().Now()) == 0U);
  store.clock().AdvanceSeconds(60);
  BOOST_TEST(Collect(store, store.clock().Now()) == 1U);
}

// A collection began by the clock that was ahead; what is pulled after that was put right is newer.
BOOST_AUTO_TEST_CASE(a_time_of_the_clock_that_was_ahead_takes_nothing_that_was_written_since) {
  for (const bool reopened : {true, false}) {
    ScratchStore store(Rules::kClosed);
    store.clock().AdvanceSeconds(kYears);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.clock().AdvanceSeconds(60);
    const Timestamp until = store.clock().Now();
    store.clock().AdvanceSeconds(-kYears);
    if (reopened) {
      store.Restart();
    } else {
      Collect(store, store.clock().Now());
    }
    store.Pull(kImage, kRef2, WithSecret(kSecretA));
    Collect(store, until);
    BOOST_TEST(store->GetRecord({.image_ref = kRef2}).has_value());
  }
}

BOOST_AUTO_TEST_CASE(a_clock_that_lost_its_time_mends_nothing) {
  ScratchStore store(Rules::kClosed);
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  const Timestamp right = store.clock().Now();
  store.clock().Set({1000, 0});
  store.Restart();
  BOOST_TEST(store->recovery_report().clock_was_ahead.empty());
  store.Pull(kImage, kRef2, WithSecret(kSecretA));
  BOOST_TEST((TimeOf(store, kRef) == right));
  BOOST_TEST((TimeOf(store, kRef2) >= right));
}

// Less than a day passes by itself.
BOOST_AUTO_TEST_CASE(a_clock_that_went_back_a_little_makes_no_record_older) {
  ScratchStore store(Rules::kClosed);
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  const Timestamp until = store.clock().Now();
  store.clock().AdvanceSeconds(-3600);
  store.Restart();
  store.Pull(kImage, kRef2, WithSecret(kSecretA));
  BOOST_TEST(store->recovery_report().clock_was_ahead.empty());
  BOOST_TEST((TimeOf(store, kRef2) >= until));
  BOOST_TEST(Collect(store, until) == 0U);
}

BOOST_AUTO_TEST_CASE(kubelet_rules_keep_what_was_written) {
  ScratchStore store(Rules::kKubelet);
  store.clock().AdvanceSeconds(kYears);
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  const Timestamp ahead = store.clock().Now();
  store.clock().AdvanceSeconds(-kYears);
  store.Restart();
  BOOST_TEST(store->recovery_report().clock_was_ahead.empty());
  BOOST_TEST((TimeOf(store, kRef) == ahead));
  BOOST_TEST(Collect(store, store.clock().Now()) == 0U);
  store.Pull(kImage, kRef2, WithSecret(kSecretA));
  BOOST_TEST((TimeOf(store, kRef2) == store.clock().Now()));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
