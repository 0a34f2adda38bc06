#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "waybill/kubelet_format.h"
#include "waybill/limits.h"

namespace waybill {
namespace {

using Strings = std::vector<std::string>;

Strings UidsOf(std::string_view json) {
  auto list = DecodePodList(json);
  BOOST_TEST_REQUIRE(list.has_value(), json);
  return *list;
}

std::string ErrorOf(std::string_view json, ErrorCode code = ErrorCode::kInvalidArgument) {
  const auto list = DecodePodList(json);
  if (list) return "accepted";
  BOOST_TEST((list.error().code == code));
  return list.error().message;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pod_list)

BOOST_AUTO_TEST_CASE(reads_what_kubectl_and_the_kubelet_print) {
  BOOST_TEST(UidsOf(R"({
    "apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""},
    "items": [
      {"apiVersion": "v1", "kind": "Pod",
       "metadata": {"name": "a", "namespace": "x", "uid": "uid-a", "annotations": {"b": "c"},
                    "labels": null},
       "spec": {"hostUsers": false}, "status": {"phase": "Succeeded"}},
      {"metadata": {"uid": "uid-b", "annotations": null}}
    ]})") == (Strings{"uid-a", "uid-b"}));
  BOOST_TEST(UidsOf(R"({"kind":"PodList","metadata":{},"items":[]})").empty());
  BOOST_TEST(UidsOf(R"({"kind":"PodList","metadata":{},"items":null})").empty());
  BOOST_TEST(
      UidsOf(R"({"metadata":{"continue":"","remainingItemCount":null},"items":[]})").empty());
}

BOOST_AUTO_TEST_CASE(reads_what_crictl_prints) {
  BOOST_TEST(UidsOf(R"({"items": [
      {"id": "3c7f", "metadata": {"name": "a", "uid": "uid-a", "namespace": "x", "attempt": 0},
       "state": "SANDBOX_READY", "createdAt": "1763728411123456789",
       "labels": {"io.kubernetes.pod.uid": "uid-a"}, "annotations": {}, "runtimeHandler": ""},
      {"id": "91d2", "metadata": {"name": "s", "uid": "hash-s", "namespace": "x", "attempt": 1},
       "state": "SANDBOX_NOTREADY", "annotations": {"kubernetes.io/config.hash": "hash-s"}}
    ]})") == (Strings{"uid-a", "hash-s", "hash-s"}));
}

// The kubelet goes by the UID that it gave the pod, the cluster by that of the mirror.
BOOST_AUTO_TEST_CASE(a_mirror_pod_tells_the_uid_of_its_static_pod) {
  BOOST_TEST(UidsOf(R"({"items":[{"metadata":{"uid":"mirror","annotations":{
    "kubernetes.io/config.hash":"static","kubernetes.io/config.mirror":"static-too",
    "kubernetes.io/config.source":"file"}}}]})") == (Strings{"mirror", "static", "static-too"}));
}

// Who may annotate a pod must not be able to stop the cleanup.
BOOST_AUTO_TEST_CASE(annotations_that_can_be_no_uid_pass) {
  for (const std::string& value :
       {std::string("\"\""), std::string("7"), std::string("null"), std::string("[]"),
        "\"" + std::string(kMaxPodUidBytes + 1, 'x') + "\""}) {
    BOOST_TEST(UidsOf(R"({"items":[{"metadata":{"uid":"a","annotations":)"
                      R"({"kubernetes.io/config.mirror":)" +
                      value + "}}}]}") == Strings{"a"});
  }
}

// An empty list would let a cleanup release every range.
BOOST_AUTO_TEST_CASE(no_list_is_not_an_empty_list) {
  BOOST_TEST(ErrorOf("{}") == R"(document: field "items" is missing)");
  BOOST_TEST(ErrorOf("") != "accepted");
  BOOST_TEST(ErrorOf("No resources found") != "accepted");
  BOOST_TEST(ErrorOf("[]") == "document: expected an object, got an array");
  BOOST_TEST(ErrorOf(R"({"items":{}})") == "items: expected an array, got an object");
  BOOST_TEST(ErrorOf(R"({"Items":[]})") == R"(Items: expected this field to be spelled "items")");
  BOOST_TEST(ErrorOf(R"({"items":[],"items":[]})") == R"(document: key "items" is there twice)");
  BOOST_TEST(ErrorOf(R"({"items":[]} {"items":[]})") != "accepted");
  // One pod, not a list.
  BOOST_TEST(ErrorOf(R"({"kind":"Pod","metadata":{"uid":"a"}})") ==
             R"(document: field "items" is missing)");
}

BOOST_AUTO_TEST_CASE(a_page_of_a_list_is_refused) {
  const auto list = DecodePodList(R"({"metadata":{"continue":"eyJ2"},"items":[]})");
  BOOST_TEST_REQUIRE(!list.has_value());
  BOOST_TEST(list.error().message == "metadata.continue: is set: this is a part of the list only");
  BOOST_TEST(list.error().hint == "ask for the whole list at once");
  BOOST_TEST(ErrorOf(R"({"metadata":{"continue":1},"items":[]})") ==
             "metadata.continue: expected a string, got a number");
  BOOST_TEST(ErrorOf(R"({"metadata":{"Continue":"x"},"items":[]})") ==
             R"(metadata.Continue: expected this field to be spelled "continue")");
  BOOST_TEST(ErrorOf(R"({"metadata":[],"items":[]})") ==
             "metadata: expected an object, got an array");
}

BOOST_AUTO_TEST_CASE(a_pod_without_uid_is_refused) {
  const auto item = [](const std::string& pod) {
    return ErrorOf(R"({"items":[{"metadata":{"uid":"a"}},)" + pod + "]}");
  };
  BOOST_TEST(item("null") == "items[1]: expected an object, got null");
  BOOST_TEST(item("{}") == R"(items[1]: field "metadata" is missing)");
  BOOST_TEST(item(R"({"metadata":null})") == "items[1].metadata: expected an object, got null");
  BOOST_TEST(item(R"({"metadata":{}})") == R"(items[1].metadata: field "uid" is missing)");
  BOOST_TEST(item(R"({"metadata":{"uid":""}})") == "items[1].metadata.uid: is empty");
  BOOST_TEST(item(R"({"metadata":{"uid":null}})") ==
             "items[1].metadata.uid: expected a string, got null");
  BOOST_TEST(item(R"({"metadata":{"UID":"a"}})") ==
             R"(items[1].metadata.UID: expected this field to be spelled "uid")");
  BOOST_TEST(item(R"({"metadata":{"uid":"b","annotations":"c"}})") ==
             "items[1].metadata.annotations: expected an object, got a string");
}

BOOST_AUTO_TEST_CASE(bounds_hold) {
  const auto of = [](const std::string& uid) {
    return R"({"items":[{"metadata":{"uid":")" + uid + R"("}}]})";
  };
  BOOST_TEST(UidsOf(of(std::string(kMaxPodUidBytes, 'x'))).size() == 1U);
  BOOST_TEST(ErrorOf(of(std::string(kMaxPodUidBytes + 1, 'x')), ErrorCode::kLimitExceeded) !=
             "accepted");
  const std::string deep =
      R"({"items":[],"x":)" + std::string(5000, '[') + std::string(5000, ']') + "}";
  BOOST_TEST(ErrorOf(deep, ErrorCode::kLimitExceeded) != "accepted");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
