// An owner's reader slots keep their snapshot until the next commit
// (store/engine/database/reader_pool.h).

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "store/engine/database/uuid.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(kept_snapshot)

namespace {

const std::string kImage = "registry.example.com/team/app:v1";
const std::string kRef = "sha256:" + std::string(64, 'a');

}  // namespace

BOOST_AUTO_TEST_CASE(a_decision_sees_each_commit_that_was_acknowledged) {
  for (const Rules rules : kBothRules) {
    ScratchStore store(rules);
    for (int i = 0; i < 20; ++i) {
      if (rules == Rules::kClosed) {
        BOOST_CHECK(store.Check(kImage, kRef).reason == Reason::kNoEvidence);
        Must(store->AddToLedger({.id = kRef}, "test", "preloaded"));
        BOOST_CHECK(store.Check(kImage, kRef).reason == Reason::kPolicyKnownPreloaded);
        Must(store->RemoveFromLedger({.image_ref = kRef}, "collected"));
        BOOST_CHECK(store.Check(kImage, kRef).reason == Reason::kEntryWithoutCredentials);
        Must(store->DeleteRecord({.image_ref = kRef}));
      } else {
        BOOST_CHECK(store.Check(kImage, kRef).reason == Reason::kPolicyPresumedPreloaded);
      }
      Must(store->RecordPullIntent({.image = kImage}));
      BOOST_CHECK(store.Check(kImage, kRef).reason ==
                  (rules == Rules::kClosed ? Reason::kNoEvidence : Reason::kPullInFlight));
      Must(store->RecordImagePulled({.image = kImage, .image_ref = kRef}, ImagePullCredentials{}));
      BOOST_CHECK(store.Check(kImage, kRef).reason == Reason::kEntryWithoutCredentials);
      Must(store->DeleteRecord({.image_ref = kRef}));
    }
  }
}

BOOST_FIXTURE_TEST_CASE(a_snapshot_that_a_decision_left_pins_no_pages, ClosedStore) {
  const auto churn = [&] {
    for (int i = 0; i < 100; ++i) {
      store.Check(kImage, kRef);
      store.Pull(kImage, kRef, std::nullopt);
    }
    return Must(store->GetStatistics()).used_bytes;
  };
  store.Check(kImage, kRef);  // from now on there is a slot that was used once
  const auto before = churn();
  BOOST_TEST(churn() == before);
}

BOOST_AUTO_TEST_CASE(uuids_decode_to_what_they_encode_from) {
  std::array<std::uint8_t, 16> bytes{};
  for (unsigned first = 0; first < 256; ++first) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes.at(i) = static_cast<std::uint8_t>(first + 37 * i);
    }
    std::array<std::uint8_t, 16> decoded{};
    BOOST_TEST(internal::DecodeUuid(internal::EncodeUuid(bytes), decoded));
    BOOST_TEST(decoded == bytes, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_uuid_is_refused_whatever_byte_is_wrong_where) {
  const std::string sound = "0123abcd-89ef-4567-9abc-def012345678";
  std::array<std::uint8_t, 16> ignored{};
  for (std::size_t at = 0; at < sound.size(); ++at) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      const bool fits =
          sound[at] == '-' ? c == '-' : (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
      std::string text = sound;
      text[at] = c;
      BOOST_TEST(internal::DecodeUuid(text, ignored) == fits);
    }
  }
  BOOST_TEST(!internal::DecodeUuid(sound.substr(1), ignored));
  BOOST_TEST(!internal::DecodeUuid(sound + "0", ignored));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
