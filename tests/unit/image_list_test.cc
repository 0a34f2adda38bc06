// Lists of images: what only some of them may have (fixtures/texts/image-lists.jsonl has the rest).

#include <boost/test/unit_test.hpp>
#include <string>

#include "tests/support/expect_error.h"
#include "tests/support/store_fixture.h"
#include "waybill/kubelet_format.h"
#include "waybill/limits.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(image_list)

BOOST_AUTO_TEST_CASE(pinned_is_read) {
  const auto list = Must(DecodeImageList(
      R"({"images":[{"id":"a","pinned":true},{"id":"b","pinned":false},{"id":"c","pinned":null},{"id":"d"}]})"));
  BOOST_TEST_REQUIRE(list.size() == 4U);
  BOOST_TEST(list[0].pinned);
  for (std::size_t i = 1; i < list.size(); ++i) BOOST_TEST(!list[i].pinned);
  for (const char* wrong : {R"("pinned":"true")", R"("pinned":1)", R"("Pinned":true)"}) {
    const auto refused = DecodeImageList(R"({"images":[{"id":"a",)" + std::string(wrong) + "}]}");
    BOOST_TEST_REQUIRE(!refused.has_value(), wrong);
    BOOST_TEST((refused.error().code == ErrorCode::kInvalidArgument));
  }
}

BOOST_AUTO_TEST_CASE(a_size_is_read_or_unknown) {
  const auto list = Must(DecodeImageList(
      R"({"images":[{"id":"a","size":"636128"},{"id":"b","size":18446744073709551615},{"id":"c"},
          {"id":"d","size":"-1"},{"id":"e","size":"1 MB"},{"id":"f","size":{}},{"id":"g","size":""},
          {"id":"h","size":"18446744073709551616"}]})"));
  BOOST_TEST_REQUIRE(list.size() == 8U);
  BOOST_TEST(list[0].bytes == 636128U);
  BOOST_TEST(list[1].bytes == 18446744073709551615U);
  for (std::size_t i = 2; i < list.size(); ++i) BOOST_TEST(list[i].bytes == 0U, list[i].id);
}

BOOST_AUTO_TEST_CASE(a_list_of_preloaded_images_may_lack_ids_but_not_names) {
  const std::string without_ids =
      R"({"images":[{"repoTags":["a:1"]},{"id":"","repoDigests":["a@sha256:1"]},{"id":null,"repoTags":["b"]},{"id":"c"}]})";
  const auto list = Must(DecodePreloadedList(without_ids));
  BOOST_TEST_REQUIRE(list.size() == 4U);
  for (std::size_t i = 0; i < 3; ++i) BOOST_TEST(list[i].id.empty());
  BOOST_TEST(list[0].repo_tags.front() == "a:1");
  BOOST_TEST(list[1].repo_digests.front() == "a@sha256:1");
  BOOST_TEST(list[3].id == "c");
  BOOST_TEST(!DecodeImageList(without_ids).has_value());
  for (const char* nameless : {"{}", R"({"repoTags":[]})", R"({"id":""})", R"({"id":7})"}) {
    const auto refused = DecodePreloadedList(R"({"images":[)" + std::string(nameless) + "]}");
    BOOST_TEST_REQUIRE(!refused.has_value(), nameless);
    BOOST_TEST((refused.error().code == ErrorCode::kInvalidArgument));
  }
}

BOOST_AUTO_TEST_CASE(a_list_is_bounded) {
  std::string json = R"({"images":[)";
  for (std::size_t i = 0; i < kMaxListedImages; ++i) json += R"({"id":"a"},)";
  json.pop_back();
  BOOST_TEST(Must(DecodeImageList(json + "]}")).size() == kMaxListedImages);
  for (const auto decode : {DecodeImageList, DecodePreloadedList}) {
    ExpectError(decode(json + R"(,{"id":"a"}]})"), ErrorCode::kLimitExceeded);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
