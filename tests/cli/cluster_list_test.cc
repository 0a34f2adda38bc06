// What kubectl prints, read for a preview.

#include "bindings/cli/cluster_list.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "waybill/waybill.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(cluster_list)

namespace {

using cli::ClusterKind;
using cli::ClusterObjects;
using cli::DecodeClusterList;
using Json = nlohmann::json;

// base64 of {"auths":{"r.example":{"auth":"dTpoMWRkM24tcGE1NXdvcmQ="}}}, that of
// "u:h1dd3n-pa55word".
constexpr const char* kPayload =
    "eyJhdXRocyI6eyJyLmV4YW1wbGUiOnsiYXV0aCI6ImRUcG9NV1JrTTI0dGNHRTFOWGR2Y21RPSJ9fX0=";

Json Metadata(const std::string& name) {
  return {{"namespace", "x"}, {"name", name}, {"uid", "uid-" + name}};
}

Json SecretNamed(const std::string& name) {
  return {{"kind", "Secret"},
          {"metadata", Metadata(name)},
          {"type", "kubernetes.io/dockerconfigjson"},
          {"data", {{".dockerconfigjson", kPayload}}}};
}

Json PodNamed(const std::string& name) {
  return {{"kind", "Pod"},
          {"metadata", Metadata(name)},
          {"spec",
           {{"nodeName", "node"},
            {"imagePullSecrets", {{{"name", "pull"}}}},
            {"containers", {{{"name", "app"}, {"image", "r.example/app:v1"}}}}}}};
}

Json ListOf(const std::vector<Json>& items) { return {{"kind", "List"}, {"items", items}}; }

ErrorCode CodeOf(const std::string& json, ClusterKind wanted = ClusterKind::kPod) {
  const auto read = DecodeClusterList(json, wanted);
  return read ? ErrorCode{} : read.error().code;
}

}  // namespace

BOOST_AUTO_TEST_CASE(it_reads_every_form_of_a_list) {
  Json pod = PodNamed("a");
  pod.erase("kind");
  for (const Json& document :
       {ListOf({PodNamed("a")}), PodNamed("a"),
        Json{{"kind", "PodList"}, {"items", Json::array({pod})}},
        ListOf({SecretNamed("pull"), PodNamed("a"), {{"kind", "ConfigMap"}}})}) {
    const auto read = DecodeClusterList(document.dump(), ClusterKind::kPod);
    BOOST_TEST_REQUIRE(read.has_value(), document.dump());
    BOOST_TEST_REQUIRE(read->pods.size() == 1U);
    BOOST_TEST(read->pods[0].name == "a");
    BOOST_TEST(read->pods[0].node_name == "node");
    BOOST_TEST(read->pods[0].pull_secrets.front() == "pull");
    BOOST_TEST(read->pods[0].containers.front().image == "r.example/app:v1");
  }
  for (const char* empty : {R"({"items":[]})", R"({"kind":"PodList","items":null})"}) {
    BOOST_TEST(DecodeClusterList(empty, ClusterKind::kPod)->pods.empty());
  }
}

BOOST_AUTO_TEST_CASE(every_image_of_a_pod_counts) {
  Json pod = PodNamed("a");
  pod["spec"]["initContainers"] = {{{"name", "i"}, {"image", "i"}}};
  pod["spec"]["ephemeralContainers"] = {
      {{"name", "e"}, {"image", "e:1"}, {"imagePullPolicy", "Never"}}};
  pod["spec"]["volumes"] = {
      {{"name", "c"}, {"configMap", {{"name", "q"}}}},
      {{"name", "v"}, {"image", {{"reference", "v:latest"}}}},
      {{"name", "w"}, {"image", {{"reference", "w"}, {"pullPolicy", "IfNotPresent"}}}}};
  pod["status"] = {
      {"phase", "Running"},
      {"initContainerStatuses", {{{"name", "i"}, {"imageID", "sha256:i"}}}},
      {"containerStatuses", {{{"name", "app"}, {"imageID", "docker-pullable://r/x@sha256:a"}}}},
      {"ephemeralContainerStatuses", {{{"name", "e"}, {"imageID", ""}}}}};
  const auto read = DecodeClusterList(pod.dump(), ClusterKind::kPod);
  BOOST_TEST_REQUIRE(read.has_value());
  std::string said;
  for (const cli::ContainerToStart& one : read->pods[0].containers) {
    said += std::string(ContainerKindName(one.kind)) + " " + one.name + " " + one.image + " " +
            std::string(WordOf(one.pull_policy)) + " " + one.status_ref + "\n";
  }
  BOOST_TEST(said ==
             "initContainer i i Always sha256:i\n"
             "container app r.example/app:v1 IfNotPresent r/x@sha256:a\n"
             "ephemeralContainer e e:1 Never \n"
             "imageVolume v v:latest Always \n"
             "imageVolume w w IfNotPresent \n");
  BOOST_TEST(read->pods[0].phase == "Running");
}

BOOST_AUTO_TEST_CASE(secrets_are_hashed) {
  Json opaque = SecretNamed("opaque");
  opaque["type"] = "Opaque";
  Json without = SecretNamed("without");
  without["data"] = {{"other", "YQ=="}};
  Json empty = SecretNamed("empty");
  empty["data"] = {{".dockerconfigjson", ""}};
  Json unreadable = SecretNamed("unreadable");
  unreadable["data"] = {{".dockerconfigjson", "e30"}};
  Json legacy = SecretNamed("legacy");
  legacy["type"] = "kubernetes.io/dockercfg";
  // {"r.example":{"username":"u","password":"h1dd3n-pa55word"}}
  legacy["data"] = {{".dockercfg",
                     "eyJyLmV4YW1wbGUiOnsidXNlcm5hbWUiOiJ1IiwicGFzc3dvcmQiOiJoMWRkM24tcGE1NXdvcmQif"
                     "X0="}};
  const auto read = DecodeClusterList(
      ListOf({SecretNamed("pull"), opaque, without, empty, unreadable, legacy}).dump(),
      ClusterKind::kSecret);
  BOOST_TEST_REQUIRE(read.has_value());
  const std::string hash =
      HashCredentials({.username = "u", .password = "h1dd3n-pa55word"}).value();
  for (const std::size_t at : {0U, 5U}) {
    const cli::ListedSecret& secret = read->secrets[at];
    BOOST_TEST_REQUIRE(secret.registries.has_value(), secret.unreadable_because);
    BOOST_TEST_REQUIRE(secret.registries->size() == 1U);
    BOOST_TEST(secret.registries->front().registry == "r.example");
    BOOST_TEST(secret.registries->front().hash == hash);
  }
  for (const std::size_t at : {1U, 2U, 3U}) {
    BOOST_TEST(!read->secrets[at].registries.has_value(), read->secrets[at].name);
    BOOST_TEST(read->secrets[at].unreadable_because.empty());
  }
  BOOST_TEST(read->secrets[4].unreadable_because == "data[\".dockerconfigjson\"]: not base64");
}

BOOST_AUTO_TEST_CASE(the_wrong_document_is_refused) {
  for (const char* json :
       {"", "[]", "7", "{}", R"({"images":[]})", R"({"items":{}})", R"({"items":[7]})",
        R"({"items":[{"kind":7}]})", R"({"kind":"List","Items":[]})",
        R"({"items":[],"metadata":{"continue":"more"}})",
        R"({"items":[{"kind":"Pod","metadata":{"uid":"u"},"spec":{}}]})",
        R"({"items":[{"kind":"Pod","metadata":{"name":"a"}}]})",
        R"({"items":[{"kind":"Pod","metadata":{"name":"a"},"spec":{"containers":{}}}]})",
        R"({"items":[{"kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"image":7}]}}]})",
        R"({"items":[{"kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[
            {"image":"a","imagePullPolicy":"always"}]}}]})",
        R"({"items":[]} x)"}) {
    BOOST_TEST((CodeOf(json) == ErrorCode::kInvalidArgument), json);
  }
  const auto secrets = DecodeClusterList(ListOf({SecretNamed("a")}).dump(), ClusterKind::kPod);
  BOOST_TEST(secrets.error().message == "none of its 1 object is a Pod");
  BOOST_TEST((CodeOf(ListOf({PodNamed("a")}).dump(), ClusterKind::kSecret) ==
              ErrorCode::kInvalidArgument));
  for (const Json& twice : {ListOf({PodNamed("a"), PodNamed("b"), PodNamed("a")}),
                            ListOf({PodNamed("a"), SecretNamed("s"), SecretNamed("s")})}) {
    const auto read = DecodeClusterList(twice.dump(), ClusterKind::kPod);
    BOOST_TEST_REQUIRE(!read.has_value());
    BOOST_TEST(read.error().message.find("is there twice") != std::string::npos);
  }
}

// Cut off at any byte, or with one byte of a Secret changed: an error or another answer, and no
// piece of the credentials in it.
BOOST_AUTO_TEST_CASE(no_error_quotes_a_secret) {
  const std::string whole = ListOf({PodNamed("a"), SecretNamed("pull")}).dump();
  const auto check = [](const std::string& json, bool must_fail) {
    const auto read = DecodeClusterList(json, ClusterKind::kPod);
    BOOST_TEST((!must_fail || !read.has_value()));
    std::string said = read ? "" : read.error().message + read.error().hint;
    if (read) {
      for (const cli::ListedSecret& secret : read->secrets) said += secret.unreadable_because;
    }
    for (const char* piece : {"h1dd3n", "dTpo", "ImRU", "pa55"}) {
      BOOST_TEST(said.find(piece) == std::string::npos, said);
    }
  };
  for (std::size_t size = 0; size < whole.size(); ++size) check(whole.substr(0, size), true);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char c : {'"', '{', ']', '=', 'h', '\0', '\xff'}) {
      std::string changed = whole;
      changed[at] = c;
      check(changed, false);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_too_large_is_refused) {
  BOOST_TEST(
      (CodeOf(std::string(cli::kMaxClusterListBytes + 1, ' ')) == ErrorCode::kLimitExceeded));
  Json pod = PodNamed(std::string(kMaxCoordinateBytes + 1, 'n'));
  BOOST_TEST((CodeOf(pod.dump()) == ErrorCode::kLimitExceeded));
  BOOST_TEST((CodeOf(R"({"items":)" + std::string(40, '[') + std::string(40, ']') + "}") ==
              ErrorCode::kLimitExceeded));
  // One container's image of any length concerns that container only.
  pod = PodNamed("a");
  pod["spec"]["containers"][0]["image"] = std::string(100'000, 'i');
  BOOST_TEST(DecodeClusterList(pod.dump(), ClusterKind::kPod).has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
