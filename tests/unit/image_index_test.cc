#include "waybill/image_index.h"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "waybill/limits.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(image_index)

namespace {

const std::string kDigest = "sha256:" + std::string(64, 'a');

std::string Index(const std::string& manifests, const std::string& before = "") {
  return R"({"schemaVersion":2,)" + before + R"("manifests":[)" + manifests + "]}";
}

std::string Manifest(const std::string& more = "") {
  return R"({"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":")" + kDigest +
         "\"" + more + "}";
}

std::vector<ManifestDescriptor> Decode(const std::string& json) {
  auto index = DecodeImageIndex(json);
  BOOST_REQUIRE_MESSAGE(index, index.error().message);
  return *std::move(index);
}

std::string ErrorOf(const std::string& json, ErrorCode code = ErrorCode::kInvalidArgument) {
  const auto index = DecodeImageIndex(json);
  if (index) return "accepted";
  BOOST_TEST((index.error().code == code), index.error().message);
  return index.error().message;
}

// KEP-4216, "Summary": the index of the image Python, the first text of the file.
std::string TheKepsIndex() {
  std::ifstream in(WAYBILL_FIXTURES "/texts/image-indexes.jsonl");
  std::string line;
  for (int i = 0; i < 3; ++i) std::getline(in, line);
  return nlohmann::json::parse(line)["in"];
}

}  // namespace

BOOST_AUTO_TEST_CASE(chooses_from_the_index_of_the_kep) {
  const auto index = Decode(TheKepsIndex());
  const auto begins = [&](const std::string& host, const std::string& os_version = "") {
    Platform platform = ParsePlatform(host).value();
    platform.os_version = os_version;
    const auto manifest = ChooseManifest(index, platform);
    return manifest ? manifest->digest.substr(0, 15) : "none";
  };
  BOOST_TEST(begins("linux/amd64") == "sha256:8a164692");
  BOOST_TEST(begins("linux/amd64/v3") == "sha256:8a164692");
  BOOST_TEST(begins("linux/arm") == "sha256:ea4f4ff1");
  BOOST_TEST(begins("linux/arm/v6") == "sha256:ceac4b5b");
  BOOST_TEST(begins("linux/aarch64") == "sha256:20d0d27b");
  BOOST_TEST(begins("linux/arm64/v9.2") == "sha256:20d0d27b");
  BOOST_TEST(begins("linux/386") == "sha256:717a9c1b");
  BOOST_TEST(begins("linux/s390x") == "sha256:f265d2f3");
  BOOST_TEST(begins("linux/riscv64") == "none");
  BOOST_TEST(begins("windows/amd64", "10.0.20348") == "sha256:53c5f0dd");
  BOOST_TEST(begins("windows/amd64", "10.0.26100") == "sha256:53c5f0dd");
  BOOST_TEST(begins("windows/amd64", "10.0.17763") == "sha256:5981df14");
  BOOST_TEST(begins("windows/amd64", "10.0.19042") == "none");
  BOOST_TEST(begins("windows/arm64", "10.0.20348") == "none");
}

BOOST_AUTO_TEST_CASE(limits) {
  constexpr auto kLimit = ErrorCode::kLimitExceeded;
  const std::string full = Index(Manifest());
  const std::string padding(kMaxImageIndexBytes - full.size(), ' ');
  BOOST_TEST(ErrorOf(full + padding) == "accepted");
  BOOST_TEST(ErrorOf(full + padding + " ", kLimit).starts_with("the document has 4194305 bytes"));

  std::string many = Manifest();
  for (std::size_t i = 1; i < kMaxManifestsPerIndex; ++i) many += "," + Manifest();
  BOOST_TEST(Decode(Index(many)).size() == kMaxManifestsPerIndex);
  BOOST_TEST(ErrorOf(Index(many + "," + Manifest()), kLimit) ==
             "manifests: has 4097 manifests, above the 4096 allowed");

  // The annotation's value is level 5.
  const auto deep = [](std::size_t levels) {
    const std::string value = std::string(levels, '[') + "1" + std::string(levels, ']');
    return Index(Manifest(R"(,"annotations":{"a":)" + value + "}"));
  };
  BOOST_TEST(ErrorOf(deep(kMaxJsonDepth - 4)) == "accepted");
  BOOST_TEST(ErrorOf(deep(kMaxJsonDepth - 3), kLimit).find("nests deeper") != std::string::npos);
  ErrorOf(deep(500'000), kLimit);

  const std::string long_field(kMaxPlatformFieldBytes + 1, 'x');
  for (const std::string field : {"os", "architecture", "os.version", "variant"}) {
    BOOST_TEST(
        ErrorOf(Index(Manifest(R"(,"platform":{")" + field + "\":\"" + long_field + "\"}")), kLimit)
                .find("has 257 bytes, above the 256 allowed") != std::string::npos,
        field);
  }
  ErrorOf(Index(Manifest(R"(,"platform":{"os.features":[")" + long_field + "\"]}")), kLimit);
  std::string features = "\"f\"";
  for (std::size_t i = 1; i < kMaxOsFeatures; ++i) features += ",\"f\"";
  BOOST_TEST(ErrorOf(Index(Manifest(R"(,"platform":{"os.features":[)" + features + "]}"))) ==
             "accepted");
  ErrorOf(Index(Manifest(R"(,"platform":{"os.features":[)" + features + ",\"f\"]}")), kLimit);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
