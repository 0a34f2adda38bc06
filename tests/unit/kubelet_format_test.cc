// What kubelets write and read. Their own files, and their verdicts: `replay`, kubelet_export.

#include "waybill/kubelet_format.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "store/base/base64.h"
#include "tests/support/draw.h"
#include "tests/support/mutation.h"
#include "tests/support/temp_dir.h"
#include "waybill/limits.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(kubelet_format)

namespace {

using namespace std::string_literals;
// Keeps the order of the keys, so that a dump is the file that Go wrote.
using Json = nlohmann::ordered_json;

const std::filesystem::path kFixtures = WAYBILL_FIXTURES;

std::string FileOf(const Json& line) {
  if (line.contains("file")) return line["file"];
  internal::WipedString bytes;
  if (line.contains("fileBase64")) {
    BOOST_REQUIRE(internal::DecodeBase64(line["fileBase64"].get<std::string>(),
                                         internal::Base64Padding::kRequired, bytes));
  }
  return bytes.text;
}

std::string PulledFile(const std::string& fields) {
  return R"({"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1")" + fields +
         "}";
}

}  // namespace

BOOST_AUTO_TEST_CASE(time_is_kept_as_the_file_says) {
  const auto whole = DecodePulledRecord(PulledFile(R"(,"lastUpdatedTime":"2026-01-02T03:04:05Z")"));
  BOOST_TEST((whole->last_updated == Timestamp{1767323045, 0}));
  const auto fraction =
      DecodePulledRecord(PulledFile(R"(,"lastUpdatedTime":"2026-01-02T03:04:05.678Z")"));
  BOOST_TEST((fraction->last_updated == Timestamp{1767323045, 678000000}));
  const auto never = DecodePulledRecord(PulledFile(R"(,"lastUpdatedTime":"0001-01-01T00:00:00Z")"));
  BOOST_TEST(!never->last_updated);
}

BOOST_AUTO_TEST_CASE(strings_are_escaped_as_go_does) {
  ImagePulledRecord record;
  record.image_ref = "<&>\"\\\b\f\n\r\t\x01\x7f\0é\u2028\u2029\xff/"s;
  const std::string expected =
      R"({"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1",)"
      R"("lastUpdatedTime":null,"imageRef":"\u003c\u0026\u003e\"\\\b\f\n\r\t\u0001)"
      "\x7f"
      R"(\u0000é\u2028\u2029\ufffd/"})"
      "\n";
  BOOST_TEST(EncodePulledRecord(record) == expected);
}

BOOST_AUTO_TEST_CASE(mapping_is_sorted_by_bytes) {
  const auto record = DecodePulledRecord(
      PulledFile(R"(,"credentialMapping":{"é":{},"a":{},"Z":{},"a/b":{},"":null})"));
  BOOST_REQUIRE(record);
  const Json written = Json::parse(EncodePulledRecord(*record));
  std::vector<std::string> names;
  for (const auto& [name, entry] : written["credentialMapping"].items()) names.push_back(name);
  const std::vector<std::string> expected = {"", "Z", "a", "a/b", "é"};
  BOOST_TEST(names == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(preloaded_record_round_trips) {
  const std::string file =
      R"({"kind":"ImagePreloadedRecord","apiVersion":"kubelet.config.k8s.io/v1beta1",)"
      R"("lastUpdatedTime":"2026-01-02T03:04:05Z","imageRef":"sha256:1",)"
      R"("observedImages":{"docker.io/testing/test":{},"nginx":{}}})"
      "\n";
  const auto record = DecodePreloadedRecord(file);
  BOOST_REQUIRE_MESSAGE(record, record.error().message);
  BOOST_TEST(record->observed_images.size() == 2u);
  BOOST_TEST(EncodePreloadedRecord(*record) == file);
  BOOST_TEST(!DecodePreloadedRecord(
      R"({"kind":"ImagePreloadedRecord","apiVersion":"kubelet.config.k8s.io/v1beta1",)"
      R"("observedImages":{"a":{"x":1}}})"));
}

BOOST_AUTO_TEST_CASE(errors_are_safe_to_print) {
  const auto message = [](const std::string& json) {
    return DecodePulledRecord(json).error().message;
  };
  BOOST_TEST(message(PulledFile(",\"" + std::string(100000, 'a') + "\":1")).size() < 300u);
  BOOST_TEST(message("{\"a\":\"\xff\"}") == "not UTF-8 at byte 6");
}

BOOST_AUTO_TEST_CASE(errors_never_quote_a_hash) {
  const std::string secret = "5ecret5ecret";
  const std::string file =
      PulledFile(R"(,"credentialMapping":{"a":{"kubernetesSecrets":[{"credentialHash":")" + secret +
                 R"("}]}})");
  for (std::size_t size = 0; size < file.size(); ++size) {
    for (const std::string_view tail : {"", "\x01", "\xff", "x", "}"}) {
      const auto record = DecodePulledRecord(file.substr(0, size) + std::string(tail));
      if (!record) BOOST_TEST(record.error().ToString().find("5ecret") == std::string::npos);
    }
  }
}

// In place of a key, of a value, or of the file's kind.
BOOST_AUTO_TEST_CASE(errors_never_quote_what_a_record_holds) {
  const std::string files[] = {
      R"({"kind":"5ecret"})",
      R"({"kind":"ImagePulledRecord","apiVersion":"5ecret"})",
      PulledFile(R"(,"5ecret":1)"),
      PulledFile(R"(,"lastUpdatedTime":"5ecret")"),
      PulledFile(R"(,"credentialMapping":"5ecret")"),
      PulledFile(R"(,"credentialMapping":{"5ecret":7})"),
      PulledFile(R"(,"credentialMapping":{"5ecret":{},"5ecret":{}})"),
      PulledFile(R"(,"credentialMapping":{"a":{"5ecret":7}})"),
      PulledFile(R"(,"credentialMapping":{"a":{"kubernetesSecrets":[{"5ecret":"x"}]}})"),
      PulledFile(R"(,"credentialMapping":{"a":{"kubernetesSecrets":["5ecret"]}})"),
      PulledFile(R"(,"credentialMapping":{"a":{"nodePodsAccessible":"5ecret"}})")};
  for (const std::string& file : files) {
    const auto record = DecodePulledRecord(file);
    BOOST_REQUIRE_MESSAGE(!record, file);
    BOOST_TEST(record.error().ToString().find("5ecret") == std::string::npos,
               record.error().ToString());
    BOOST_TEST(!DecodePullIntent(file).has_value());
  }
}

BOOST_AUTO_TEST_CASE(bounds_are_errors) {
  const auto code = [](const std::string& fields) {
    const auto record = DecodePulledRecord(PulledFile(fields));
    return record ? "accepted" : std::string(ErrorCodeName(record.error().code));
  };
  const auto ref = [&](std::size_t size) {
    return code(",\"imageRef\":\"" + std::string(size, 'r') + "\"");
  };
  BOOST_TEST(ref(kMaxImageRefBytes) == "accepted");
  BOOST_TEST(ref(kMaxImageRefBytes + 1) == "limitExceeded");

  const auto uid = [&](std::size_t size) {
    return code(R"(,"credentialMapping":{"a":{"kubernetesServiceAccounts":[{"uid":")" +
                std::string(size, 'u') + "\"}]}}");
  };
  BOOST_TEST(uid(kMaxCoordinateBytes) == "accepted");
  BOOST_TEST(uid(kMaxCoordinateBytes + 1) == "limitExceeded");

  const auto names = [&](std::size_t count) {
    std::string mapping;
    for (std::size_t i = 0; i < count; ++i) {
      mapping += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":null";
    }
    return code(",\"credentialMapping\":{" + mapping + "}");
  };
  BOOST_TEST(names(kMaxImageNamesPerRecord) == "accepted");
  BOOST_TEST(names(kMaxImageNamesPerRecord + 1) == "limitExceeded");

  const auto secrets = [&](std::size_t count) {
    std::string list = "{}";
    for (std::size_t i = 1; i < count; ++i) list += ",{}";
    return code(R"(,"credentialMapping":{"a":{"kubernetesSecrets":[)" + list + "]}}");
  };
  BOOST_TEST(secrets(kMaxCredentialsPerName) == "accepted");
  BOOST_TEST(secrets(kMaxCredentialsPerName + 1) == "limitExceeded");

  BOOST_TEST(code(std::string(kMaxRecordFileBytes, ' ')) == "limitExceeded");
  const auto depth = static_cast<std::size_t>(kMaxJsonDepth);
  // The root is the first level.
  BOOST_TEST(code(",\"x\":" + std::string(depth - 1, '[') + std::string(depth - 1, ']')) ==
             "invalidArgument");
  BOOST_TEST(code(",\"x\":" + std::string(depth, '[') + std::string(depth, ']')) ==
             "limitExceeded");
  BOOST_TEST(code(",\"x\":" + std::string(1000000, '[')) == "limitExceeded");
}

BOOST_AUTO_TEST_CASE(damaged_documents_never_crash) {
  std::vector<std::string> documents = {
      R"({"images":[{"id":"sha256:1","repoTags":["a:1"],"repoDigests":null,"size":"1"}]})",
      R"({"auths":{"r":{"auth":"dXNlcjpwYXNz"},"s":{"username":"u","password":"p"}}})",
      R"({"kind":"Secret","type":"kubernetes.io/dockercfg","data":{".dockercfg":"e30="}})",
      R"({"kind":"ImagePreloadedRecord","apiVersion":"kubelet.config.k8s.io/v1beta1",)"
      R"("imageRef":"x","observedImages":{"a":{}}})",
      "2026-01-02T03:04:05.678+02:00",
  };
  std::ifstream lines(kFixtures / "records.jsonl");
  for (std::string text; std::getline(lines, text);) {
    documents.push_back(FileOf(Json::parse(text)));
  }

  std::mt19937_64 random(testing::SeedOfThisRun());
  for (int round = 0; round < 20000; ++round) {
    const std::string text = testing::Mutate(documents[random() % documents.size()], random);
    (void)DecodeImageList(text);
    (void)DecodeAuthDocument(text);
    (void)ParseTimestamp(text);
    (void)DecodePreloadedRecord(text);
    if (const auto intent = DecodePullIntent(text)) {
      const auto again = DecodePullIntent(EncodePullIntent(*intent));
      BOOST_REQUIRE(again);
      BOOST_TEST((*again == *intent));
    }
    if (auto record = DecodePulledRecord(text)) {
      const auto again = DecodePulledRecord(EncodePulledRecord(*record));
      BOOST_REQUIRE(again);
      if (record->last_updated) record->last_updated->nanoseconds = 0;
      BOOST_TEST((*again == *record));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
