// A stored row: it decodes to what was encoded, and matches compare every byte.

#include "store/images/image_row.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "store/base/hex.h"
#include "store/base/image_spellings.h"
#include "store/base/sha256.h"
#include "store/disk/tables.h"
#include "waybill/limits.h"

BOOST_AUTO_TEST_SUITE(image_row)

namespace {

using namespace waybill;            // NOLINT(google-build-using-namespace): the subject
using namespace waybill::internal;  // NOLINT(google-build-using-namespace): the subject

std::string HashOf(std::string_view text) { return HexEncode(*Sha256(text)); }
std::string UidOf(char digit) {
  return "5b1e0000-0000-4000-8000-00000000000" + std::string(1, digit);
}

ImageRow RowWith(const ImagePullSecret& secret) {
  ImageRow row{.subject = "sha256:" + HashOf("ref"), .stamp = 7};
  row.pulled = PulledPart{.last_updated = Timestamp{1'700'000'000, 5}};
  row.pulled->entries["docker.io/library/nginx"].kubernetes_secrets.push_back(secret);
  return row;
}

struct SecretMatch {
  bool hash = false;
  bool coordinates = false;
};
SecretMatch MatchOf(const ImagePullSecret& stored, const ImagePullSecret& asked) {
  const auto payload = EncodeImage(RowWith(stored));
  BOOST_REQUIRE(payload);
  const auto entry = ImageView(*payload).Find("docker.io/library/nginx");
  BOOST_REQUIRE(entry);
  const ImagePullSecretView view(asked);
  const ProbeSecret probe(view);
  return {.hash = entry->HasHash(0, probe), .coordinates = entry->IsSecret(0, probe)};
}

}  // namespace

BOOST_AUTO_TEST_CASE(raw_and_text_forms_come_back_as_they_went_in) {
  for (const std::string& uid : {UidOf('1'), std::string("uid-1"), std::string(),
                                 std::string("5B1E0000-0000-4000-8000-000000000001"),
                                 std::string("00000000-0000-0000-0000-000000000000")}) {
    for (const std::string& hash : {HashOf("a"), std::string("h"), std::string(),
                                    std::string(64, 'A'), std::string(64, '0')}) {
      const ImageRow row = RowWith({uid, "ns", "name", hash});
      const auto payload = EncodeImage(row);
      BOOST_REQUIRE(payload);
      BOOST_TEST((DecodeImage(*payload) == row), uid << " " << hash);
      const auto key = KeyOfImage(*payload, 42);
      BOOST_REQUIRE(key);
      BOOST_TEST((*key == HashKey(row.subject, 42)));
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

BOOST_AUTO_TEST_CASE(a_subject_is_compared_byte_for_byte) {
  const auto payload = EncodeImage(RowWith({}));
  BOOST_REQUIRE(payload);
  const ImageView view(*payload);
  BOOST_TEST(view.SubjectIs("sha256:" + HashOf("ref")));
  BOOST_TEST(!view.SubjectIs("sha256:" + HashOf("other")));
  BOOST_TEST(!view.SubjectIs("sha512:" + HashOf("ref")));
  BOOST_TEST(!view.SubjectIs(HashOf("ref")));
  BOOST_TEST(!view.SubjectIs(""));
}

BOOST_AUTO_TEST_CASE(a_slash_belongs_to_its_side) {
  const ImagePullSecret stored{"", "a", "b/c", ""};
  BOOST_TEST(MatchOf(stored, {"", "a", "b/c", ""}).coordinates);
  BOOST_TEST(!MatchOf(stored, {"", "a/b", "c", ""}).coordinates);
  BOOST_TEST(MatchOf({"", "a/b", "c", ""}, {"", "a/b", "c", ""}).coordinates);
  BOOST_TEST(!MatchOf({"", "a/b", "c", ""}, stored).coordinates);
  BOOST_TEST(MatchOf({"", "", "/", ""}, {"", "", "/", ""}).coordinates);
  BOOST_TEST(!MatchOf({"", "", "/", ""}, {"", "/", "", ""}).coordinates);
}

BOOST_AUTO_TEST_CASE(each_part_comes_back_as_it_went_in) {
  ImageRow row = RowWith({UidOf('1'), "ns", "name", HashOf("a")});
  row.runtime_handler = "kata";
  row.ref = "registry.example.com/team/app@sha256:" + HashOf("index");
  row.absent = 7;
  row.listed = true;
  row.alias_since = 3;
  row.aliases = {"mirror.example.com/app@sha256:" + HashOf("index"),
                 "registry.example.com/team/app@sha256:" + HashOf("other"),
                 "sha256:" + HashOf("plain"), "sha512:" + std::string(128, 'a')};
  row.preloaded = PreloadedPart{.names = {"a:v1"}, .source = "listed", .since = {5, 6}, .as_of = 2};
  row.alias = AliasPart{.image = "sha256:" + HashOf("x"), .taken_for = {"y"}, .stamp = 4};
  row.pulled->entries["x"].node_pods_accessible = true;
  row.pulled->entries["x"].node_pods_proof = {Timestamp{9, 0}, 3, VerifiedBy::kRegistry, {}};
  row.pulled->guest_platform = Platform{.architecture = "arm64"};
  for (const ClosedBy by : {ClosedBy::kNobody, ClosedBy::kList, ClosedBy::kOperator,
                            ClosedBy::kOther, ClosedBy::kRestore}) {
    row.pulled->closed_by = by;
    row.preloaded->source = by == ClosedBy::kList ? "a word of ours" : "imported";
    const auto payload = EncodeImage(row);
    BOOST_REQUIRE(payload);
    BOOST_TEST((DecodeImage(*payload) == row));
    const ImageView view(*payload);
    for (const std::string& alias : row.aliases) {
      BOOST_TEST(view.HasAlias(SpellingOf(alias)), alias);
    }
    BOOST_TEST(!view.HasAlias("sha256:" + HashOf("a")));
  }
}

BOOST_AUTO_TEST_CASE(a_record_with_one_secret_is_small) {
  ImageRow row{.subject = "sha256:" + HashOf("ref"), .stamp = 1};
  row.pulled = PulledPart{.last_updated = Timestamp{1'700'000'000, 5}};
  row.pulled->entries["registry.example.com/team-0/app"].kubernetes_secrets.push_back(
      {UidOf('1'), "tenant-a", "pull-secret", HashOf("a")});
  const auto pulled = EncodeImage(row);
  BOOST_REQUIRE(pulled);
  BOOST_TEST(pulled->size() + 16 <= 312U);
  row.listed = true;
  row.alias_since = 2;
  row.aliases = {"registry.example.com/team-0/app@sha256:" + HashOf("index")};
  const auto listed = EncodeImage(row);
  BOOST_REQUIRE(listed);
  BOOST_TEST(listed->size() + 16 <= 376U);
}

BOOST_AUTO_TEST_CASE(limits_name_what_is_too_long) {
  const auto payload =
      EncodeImage(RowWith({std::string(kMaxCoordinateBytes + 1, 'u'), "", "", ""}));
  BOOST_REQUIRE(!payload);
  BOOST_TEST((payload.error().code == ErrorCode::kLimitExceeded));
  BOOST_TEST(payload.error().message.find("uid") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
