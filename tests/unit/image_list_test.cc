#include <boost/test/unit_test.hpp>

#include "waybill/kubelet_format.h"
#include "waybill/limits.h"

namespace waybill {
namespace {

std::string ErrorOf(std::string_view json) {
  const auto list = DecodeImageList(json);
  return list ? "accepted" : list.error().message;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(image_list)

BOOST_AUTO_TEST_CASE(reads_what_crictl_prints) {
  const auto list = DecodeImageList(R"({
    "images": [
      {"id": "sha256:1", "repoTags": ["docker.io/library/nginx:1.27", "nginx:latest"],
       "repoDigests": ["docker.io/library/nginx@sha256:2"], "size": "72", "uid": null,
       "username": "", "spec": {"image": "sha256:1", "annotations": {}}, "pinned": false},
      {"id": "sha256:3", "repoTags": [], "repoDigests": null}
    ]
  })");
  BOOST_REQUIRE_MESSAGE(list, list.error().message);
  BOOST_REQUIRE(list->size() == 2u);
  BOOST_TEST(list->at(0).id == "sha256:1");
  BOOST_TEST(list->at(0).repo_tags.size() == 2u);
  BOOST_TEST(list->at(0).repo_tags[1] == "nginx:latest");
  BOOST_TEST(list->at(0).repo_digests.size() == 1u);
  BOOST_TEST(list->at(1).repo_tags.empty());
  BOOST_TEST(list->at(1).repo_digests.empty());
}

BOOST_AUTO_TEST_CASE(empty_list_is_a_list) {
  const auto list = DecodeImageList(R"({"images":[]})");
  BOOST_REQUIRE(list);
  BOOST_TEST(list->empty());
}

// An empty list would let prune delete every record.
BOOST_AUTO_TEST_CASE(no_list_is_not_an_empty_list) {
  BOOST_TEST(ErrorOf("{}") == R"(document: field "images" is missing)");
  BOOST_TEST(ErrorOf("[]") == "document: expected an object, got an array");
  BOOST_TEST(ErrorOf(R"({"images":null})") == "images: expected an array, got null");
  BOOST_TEST(ErrorOf(R"({"Images":[]})") ==
             R"(Images: expected this field to be spelled "images")");
  BOOST_TEST(ErrorOf(R"({"images":[],"images":[]})") == R"(document: key "images" is there twice)");
}

BOOST_AUTO_TEST_CASE(image_without_id_is_refused) {
  BOOST_TEST(ErrorOf(R"({"images":[{"id":"a"},{}]})") == R"(images[1]: field "id" is missing)");
  BOOST_TEST(ErrorOf(R"({"images":[{"id":""}]})") == "images[0].id: is empty");
  BOOST_TEST(ErrorOf(R"({"images":[{"id":null}]})") == "images[0].id: expected a string, got null");
  BOOST_TEST(ErrorOf(R"({"images":[null]})") == "images[0]: expected an object, got null");
  BOOST_TEST(ErrorOf(R"({"images":[{"id":"a","repoTags":"b"}]})") ==
             "images[0].repoTags: expected an array, got a string");
  BOOST_TEST(ErrorOf(R"({"images":[{"id":"a","repoDigests":["b",1]}]})") ==
             "images[0].repoDigests[1]: expected a string, got a number");
  BOOST_TEST(ErrorOf(R"({"images":[{"id":"a","repotags":["b"]}]})") ==
             R"(images[0].repotags: expected this field to be spelled "repoTags")");
}

BOOST_AUTO_TEST_CASE(long_names_are_refused) {
  const auto list =
      DecodeImageList(R"({"images":[{"id":")" + std::string(kMaxImageRefBytes + 1, 'a') + "\"}]}");
  BOOST_REQUIRE(!list);
  BOOST_TEST((list.error().code == ErrorCode::kLimitExceeded));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
