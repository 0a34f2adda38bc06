// A stored pulled record: it decodes to what was encoded, and matches compare every byte.

#include "store/node/records/pulled_record.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "store/base/hex.h"
#include "store/base/sha256.h"
#include "store/engine/database/tables.h"
#include "waybill/limits.h"

BOOST_AUTO_TEST_SUITE(pulled_record)

namespace {

using namespace waybill;            // NOLINT(google-build-using-namespace): the subject
using namespace waybill::internal;  // NOLINT(google-build-using-namespace): the subject

std::string HashOf(std::string_view text) { return HexEncode(*Sha256(text)); }
std::string UidOf(char digit) {
  return "5b1e0000-0000-4000-8000-00000000000" + std::string(1, digit);
}

ImagePulledRecord RecordWith(const ImagePullSecret& secret) {
  ImagePulledRecord record;
  record.image_ref = "sha256:" + HashOf("ref");
  record.last_updated = Timestamp{1'700'000'000, 5};
  record.credential_mapping["docker.io/library/nginx"].kubernetes_secrets.push_back(secret);
  record.stamp = 7;
  return record;
}

SecretMatch MatchOf(const ImagePullSecret& stored, const ImagePullSecret& asked) {
  const auto payload = EncodePulledRecordValue(RecordWith(stored));
  BOOST_REQUIRE(payload);
  const auto entry = PulledRecordView(*payload).Find("docker.io/library/nginx");
  BOOST_REQUIRE(entry);
  return entry->Match(0, ProbeSecret{ImagePullSecretView(asked)});
}

}  // namespace

BOOST_AUTO_TEST_CASE(raw_and_text_forms_come_back_as_they_went_in) {
  for (const std::string& uid : {UidOf('1'), std::string("uid-1"), std::string(),
                                 std::string("5B1E0000-0000-4000-8000-000000000001")}) {
    for (const std::string& hash : {HashOf("a"), std::string("h"), std::string(),
                                    std::string(64, 'A'), std::string(64, '0')}) {
      const ImagePulledRecord record = RecordWith({uid, "ns", "name", hash});
      const auto payload = EncodePulledRecordValue(record);
      BOOST_REQUIRE(payload);
      BOOST_TEST((DecodePulledRecordValue(*payload) == record), uid << " " << hash);
      const auto key = KeyOfPulledRecord(*payload, 42);
      BOOST_REQUIRE(key);
      BOOST_TEST((*key == HashKey(record.image_ref, 42)));
    }
  }
}

BOOST_AUTO_TEST_CASE(another_hash_matches_nothing) {
  const ImagePullSecret stored{UidOf('1'), "ns", "name", HashOf("a")};
  BOOST_TEST(MatchOf(stored, {UidOf('2'), "other", "pod", HashOf("a")}).hash);
  BOOST_TEST(!MatchOf(stored, {UidOf('2'), "other", "pod", HashOf("b")}).hash);
  BOOST_TEST(!MatchOf(stored, {UidOf('2'), "other", "pod", std::string(64, '0')}).hash);
  BOOST_TEST(!MatchOf(stored, {UidOf('2'), "other", "pod", ""}).hash);
  BOOST_TEST(!MatchOf({UidOf('1'), "ns", "name", ""}, {UidOf('2'), "other", "pod", ""}).hash);
  BOOST_TEST(!MatchOf({UidOf('1'), "ns", "name", "h"}, {UidOf('2'), "other", "pod", "hh"}).hash);
}

BOOST_AUTO_TEST_CASE(coordinates_match_as_a_whole) {
  const ImagePullSecret stored{UidOf('1'), "ns", "name", HashOf("a")};
  BOOST_TEST(MatchOf(stored, {UidOf('1'), "ns", "name", HashOf("b")}).coordinates);
  BOOST_TEST(!MatchOf(stored, {UidOf('2'), "ns", "name", HashOf("b")}).coordinates);
  BOOST_TEST(!MatchOf(stored, {UidOf('1'), "n", "name", HashOf("b")}).coordinates);
  BOOST_TEST(!MatchOf(stored, {UidOf('1'), "ns", "names", HashOf("b")}).coordinates);
  BOOST_TEST(!MatchOf(stored, {"", "ns", "name", HashOf("b")}).coordinates);
  BOOST_TEST(!MatchOf({"u", "ns", "name", ""}, {UidOf('1'), "ns", "name", ""}).coordinates);
}

BOOST_AUTO_TEST_CASE(a_ref_is_compared_byte_for_byte) {
  const auto payload = EncodePulledRecordValue(RecordWith({}));
  BOOST_REQUIRE(payload);
  const PulledRecordView view(*payload);
  BOOST_TEST(view.RefIs("sha256:" + HashOf("ref")));
  BOOST_TEST(!view.RefIs("sha256:" + HashOf("other")));
  BOOST_TEST(!view.RefIs("sha512:" + HashOf("ref")));
  BOOST_TEST(!view.RefIs(HashOf("ref")));
  BOOST_TEST(!view.RefIs(""));
}

BOOST_AUTO_TEST_CASE(a_record_with_one_secret_is_small) {
  ImagePulledRecord record;
  record.image_ref = "sha256:" + HashOf("ref");
  record.last_updated = Timestamp{1'700'000'000, 5};
  record.credential_mapping["registry.example.com/team-0/app"].kubernetes_secrets.push_back(
      {UidOf('1'), "tenant-a", "pull-secret", HashOf("a")});
  const auto payload = EncodePulledRecordValue(record);
  BOOST_REQUIRE(payload);
  BOOST_TEST(payload->size() + 16 <= 280U);
}

BOOST_AUTO_TEST_CASE(limits_name_what_is_too_long) {
  ImagePulledRecord record = RecordWith({std::string(kMaxCoordinateBytes + 1, 'u'), "", "", ""});
  auto payload = EncodePulledRecordValue(record);
  BOOST_REQUIRE(!payload);
  BOOST_TEST((payload.error().code == ErrorCode::kLimitExceeded));
  BOOST_TEST(payload.error().message.find("uid") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
