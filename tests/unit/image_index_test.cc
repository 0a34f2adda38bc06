#include "waybill/image_index.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "waybill/limits.h"

namespace waybill {
namespace {

const std::string kDigest = "sha256:" + std::string(64, 'a');

// KEP-4216, "Summary": the index of the image Python.
const std::string kPython = R"({
  "schemaVersion": 2,
  "mediaType": "application/vnd.docker.distribution.manifest.list.v2+json",
  "manifests": [
    {
      "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
      "size": 2007,
      "digest": "sha256:8a164692c20c8f51986d25c16caa6bf03bde14e4b6e6a4c06b5437d5620cc96c",
      "platform": {"architecture": "amd64", "os": "linux"}
    },
    {
      "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
      "size": 2007,
      "digest": "sha256:ceac4b5b55ccba7b742e0a2d2765711c44cd228d1a990018a07b94b48c59577e",
      "platform": {"architecture": "arm", "os": "linux", "variant": "v5"}
    },
    {
      "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
      "size": 2007,
      "digest": "sha256:ea4f4ff16827bdc8e019284f964a397968c3769cc6534502009ff9516bd8c4f4",
      "platform": {"architecture": "arm", "os": "linux", "variant": "v7"}
    },
    {
      "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
      "size": 2007,
      "digest": "sha256:20d0d27bf4b7998f6deaa523de3f5dd5298d7b53e7e02adccb9b7df183b638c2",
      "platform": {"architecture": "arm64", "os": "linux", "variant": "v8"}
    },
    {
      "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
      "size": 2007,
      "digest": "sha256:717a9c1bdff7cd9e9ca31de78d7ffbdb3fb6f2b5d43f9cb3e75b21d48fd638c0",
      "platform": {"architecture": "386", "os": "linux"}
    },
    {
      "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
      "size": 2007,
      "digest": "sha256:732c0cf2c0a6cf206bb7ea71232bfec5075a8af25f1da05628959c8cdc6205f6",
      "platform": {"architecture": "ppc64le", "os": "linux"}
    },
    {
      "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
      "size": 2007,
      "digest": "sha256:f265d2f398ffce7252d6162ead0bc802afad2de309cf662ec16645d1e0e85564",
      "platform": {"architecture": "s390x", "os": "linux"}
    },
    {
      "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
      "size": 2831,
      "digest": "sha256:53c5f0dd905eef3899284d845431ccaa1045f97fc205edd87dfc2151c4331980",
      "platform": {"architecture": "amd64", "os": "windows", "os.version": "10.0.20348.1970"}
    },
    {
      "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
      "size": 2831,
      "digest": "sha256:5981df14a07aaa7fe0c7d80a4c61f33f4ad4d8d29a346fd1b2cacf090b3de8c2",
      "platform": {"architecture": "amd64", "os": "windows", "os.version": "10.0.17763.4851"}
    }
  ]
})";

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

}  // namespace

BOOST_AUTO_TEST_SUITE(image_index)

BOOST_AUTO_TEST_CASE(reads_the_index_of_the_kep) {
  const auto index = Decode(kPython);
  BOOST_REQUIRE(index.size() == 9u);
  BOOST_TEST(index[1].media_type == "application/vnd.docker.distribution.manifest.v2+json");
  BOOST_TEST(index[1].digest ==
             "sha256:ceac4b5b55ccba7b742e0a2d2765711c44cd228d1a990018a07b94b48c59577e");
  BOOST_TEST(index[1].size == 2007u);
  BOOST_TEST(!index[1].is_attestation);
  BOOST_TEST(
      (index[1].platform == Platform{.architecture = "arm", .os = "linux", .variant = "v5"}));
  BOOST_TEST((index[8].platform ==
              Platform{.architecture = "amd64", .os = "windows", .os_version = "10.0.17763.4851"}));
}

BOOST_AUTO_TEST_CASE(chooses_from_the_index_of_the_kep) {
  const auto index = Decode(kPython);
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

BOOST_AUTO_TEST_CASE(reads_an_oci_index) {
  const auto index = Decode(Index(
      Manifest(R"(,"size":18446744073709551615,"platform":{"architecture":"amd64","os":"windows",
                   "os.version":"10.0","os.features":["win32k"],"features":["sse4"],"x":[]},
                   "urls":["a"],"artifactType":"b","data":"e30=")") +
      "," + Manifest(R"(,"size":null,"platform":null,"annotations":null)") + "," +
      Manifest(R"(,"platform":{},"annotations":{"vnd.docker.reference.digest":"sha256:1"})")));
  BOOST_REQUIRE(index.size() == 3u);
  BOOST_TEST(index[0].size == UINT64_MAX);
  BOOST_TEST((index[0].platform == Platform{.architecture = "amd64",
                                            .os = "windows",
                                            .os_version = "10.0",
                                            .os_features = {"win32k"}}));
  BOOST_TEST(index[1].size == 0u);
  BOOST_TEST(!index[1].platform);
  BOOST_TEST((index[2].platform == Platform{}));
  BOOST_TEST(!index[2].is_attestation);
}

BOOST_AUTO_TEST_CASE(platforms_are_kept_as_written) {
  const auto index =
      Decode(Index(Manifest(R"(,"platform":{"architecture":"AArch64","os":"Linux"})")));
  BOOST_TEST((index[0].platform == Platform{.architecture = "AArch64", .os = "Linux"}));
}

BOOST_AUTO_TEST_CASE(attestations_are_known_by_their_annotation) {
  for (const std::string value : {"\"attestation-manifest\"", "\"\"", "null", "1", "{}"}) {
    const auto index =
        Decode(Index(Manifest(R"(,"annotations":{"vnd.docker.reference.type":)" + value + "}")));
    BOOST_TEST(index[0].is_attestation, value);
  }
  // Keys of annotations are not fields: in another case it is another annotation.
  BOOST_TEST(!Decode(Index(
      Manifest(R"(,"annotations":{"vnd.docker.reference.Type":"attestation-manifest"})")))[0]
                  .is_attestation);
}

BOOST_AUTO_TEST_CASE(media_types) {
  for (const std::string type : {"application/vnd.oci.image.index.v1+json",
                                 "application/vnd.docker.distribution.manifest.list.v2+json"}) {
    BOOST_TEST(Decode(Index(Manifest(), R"("mediaType":")" + type + "\",")).size() == 1u);
    const auto nested =
        Decode(Index(R"({"mediaType":")" + type + R"(","digest":")" + kDigest + "\"}"));
    BOOST_TEST(nested[0].media_type == type);
  }
  BOOST_TEST(Decode(Index(Manifest(), R"("mediaType":null,)")).size() == 1u);
  BOOST_TEST(ErrorOf(Index(Manifest(), R"("mediaType":"",)")) ==
             R"(mediaType: neither an image index nor a manifest list: "")");
  BOOST_TEST(
      ErrorOf(Index(Manifest(), R"("mediaType":"application/vnd.oci.image.manifest.v1+json",)")) ==
      R"(mediaType: neither an image index nor a manifest list: "application/vnd.oci.image.manifest.v1+json")");
  BOOST_TEST(ErrorOf(Index(Manifest(), R"("mediaType":[],)")) ==
             "mediaType: expected a string, got an array");
  BOOST_TEST(
      ErrorOf(Index(Manifest() + R"(,{"mediaType":"text/plain","digest":"x"})")) ==
      R"(manifests[1].mediaType: neither an image manifest nor an image index: "text/plain")");
  BOOST_TEST(ErrorOf(Index(R"({"mediaType":"APPLICATION/vnd.oci.image.manifest.v1+json"})"))
                 .starts_with("manifests[0].mediaType: neither"));
  BOOST_TEST(ErrorOf(Index(R"({"mediaType":")" + std::string(100'000, 'x') + "\"}")).size() < 500u);
  BOOST_TEST(ErrorOf(Index(R"({"mediaType":null})")) ==
             "manifests[0].mediaType: expected a string, got null");
  BOOST_TEST(ErrorOf(Index("{}")) == R"(manifests[0]: field "mediaType" is missing)");
}

BOOST_AUTO_TEST_CASE(what_is_no_index) {
  BOOST_TEST(ErrorOf("") == "empty document");
  BOOST_TEST(ErrorOf("nonsense") == "not JSON at byte 1");
  BOOST_TEST(ErrorOf("[]") == "document: expected an object, got an array");
  BOOST_TEST(ErrorOf("{}") == R"(document: field "schemaVersion" is missing)");
  BOOST_TEST(ErrorOf(R"({"schemaVersion":2})") == R"(document: field "manifests" is missing)");
  BOOST_TEST(ErrorOf(R"({"schemaVersion":2,"manifests":null})") ==
             "manifests: expected an array, got null");
  BOOST_TEST(ErrorOf(R"({"schemaVersion":2,"manifests":{}})") ==
             "manifests: expected an array, got an object");
  BOOST_TEST(ErrorOf(Index("")) == "manifests: has no manifests");
  BOOST_TEST(ErrorOf(Index("null")) == "manifests[0]: expected an object, got null");
  for (const std::string version : {"1", "3", "0", "20", "-2", "2.0", "2e0"}) {
    BOOST_TEST(ErrorOf(R"({"schemaVersion":)" + version + R"(,"manifests":[]})") ==
                   "schemaVersion: expected 2",
               version);
  }
  BOOST_TEST(ErrorOf(R"({"schemaVersion":"2","manifests":[]})") ==
             "schemaVersion: expected a number, got a string");
  BOOST_TEST(ErrorOf(Index(Manifest()) + "x") ==
             "text behind the document at byte " + std::to_string(Index(Manifest()).size()));
}

BOOST_AUTO_TEST_CASE(digests) {
  const auto error_of = [](const std::string& digest) {
    return ErrorOf(Index(R"({"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":)" +
                         digest + "}"));
  };
  for (const auto& [algorithm, digits] :
       {std::pair<std::string, std::size_t>{"sha256", 64}, {"sha384", 96}, {"sha512", 128}}) {
    const auto quoted = [&, name = algorithm](std::size_t count, char digit) {
      return "\"" + name + ":" + std::string(count, digit) + "\"";
    };
    BOOST_TEST(error_of(quoted(digits, '0')) == "accepted");
    for (const std::string& bad : {quoted(digits - 1, '0'), quoted(digits + 1, '0'),
                                   quoted(digits, 'A'), quoted(digits, 'g'), quoted(0, '0')}) {
      BOOST_TEST(error_of(bad).starts_with("manifests[0].digest: expected sha256"), bad);
    }
  }
  for (const std::string bad : {"", "sha256", "md5:00", "SHA256:00", ":", "sha256:sha256:"}) {
    BOOST_TEST(error_of("\"" + bad + "\"").starts_with("manifests[0].digest: expected"), bad);
  }
  BOOST_TEST(error_of("null") == "manifests[0].digest: expected a string, got null");
  BOOST_TEST(ErrorOf(Index(R"({"mediaType":"application/vnd.oci.image.manifest.v1+json"})")) ==
             R"(manifests[0]: field "digest" is missing)");
}

BOOST_AUTO_TEST_CASE(fields_of_another_type) {
  const auto error_of = [](const std::string& more) { return ErrorOf(Index(Manifest(more))); };
  BOOST_TEST(error_of(R"(,"size":"1")") == "manifests[0].size: expected a number, got a string");
  for (const std::string size : {"-1", "1.5", "1e3", "18446744073709551616"}) {
    BOOST_TEST(
        error_of(R"(,"size":)" + size) == "manifests[0].size: expected a whole number of 0 or more",
        size);
  }
  BOOST_TEST(error_of(R"(,"platform":"linux")") ==
             "manifests[0].platform: expected an object, got a string");
  BOOST_TEST(error_of(R"(,"platform":{"os":["linux"]})") ==
             "manifests[0].platform.os: expected a string, got an array");
  BOOST_TEST(error_of(R"(,"platform":{"os.features":"a"})") ==
             R"(manifests[0].platform["os.features"]: expected an array, got a string)");
  BOOST_TEST(error_of(R"(,"platform":{"os.features":[null]})") ==
             R"(manifests[0].platform["os.features"][0]: expected a string, got null)");
  BOOST_TEST(error_of(R"(,"annotations":[])") ==
             "manifests[0].annotations: expected an object, got an array");
}

BOOST_AUTO_TEST_CASE(fields_in_another_case_are_refused) {
  const auto refused = [](const std::string& json, const std::string& path,
                          const std::string& name) {
    BOOST_TEST(ErrorOf(json) == path + ": expected this field to be spelled \"" + name + "\"");
  };
  refused(R"({"SchemaVersion":2,"manifests":[]})", "SchemaVersion", "schemaVersion");
  refused(R"({"schemaVersion":2,"Manifests":[]})", "Manifests", "manifests");
  refused(Index(Manifest(), R"("MediaType":"x",)"), "MediaType", "mediaType");
  refused(Index(Manifest(R"(,"Digest":"x")")), "manifests[0].Digest", "digest");
  refused(Index(Manifest(R"(,"SIZE":1)")), "manifests[0].SIZE", "size");
  refused(Index(Manifest(R"(,"Platform":{})")), "manifests[0].Platform", "platform");
  refused(Index(Manifest(R"(,"Annotations":{})")), "manifests[0].Annotations", "annotations");
  refused(Index(Manifest(R"(,"platform":{"OS":"linux"})")), "manifests[0].platform.OS", "os");
  refused(Index(Manifest(R"(,"platform":{"OS.version":"1"})")),
          R"(manifests[0].platform["OS.version"])", "os.version");
  refused(Index(Manifest(R"(,"platform":{"os.Features":[]})")),
          R"(manifests[0].platform["os.Features"])", "os.features");
}

BOOST_AUTO_TEST_CASE(fields_twice_are_refused) {
  BOOST_TEST(ErrorOf(Index(Manifest(), R"("manifests":[],)")) ==
             R"(document: key "manifests" is there twice)");
  BOOST_TEST(ErrorOf(Index(Manifest(R"(,"digest":"x")"))) ==
             R"(manifests[0]: key "digest" is there twice)");
  BOOST_TEST(ErrorOf(Index(Manifest(R"(,"platform":{"os":"linux","os":"windows"})"))) ==
             R"(manifests[0].platform: key "os" is there twice)");
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

BOOST_AUTO_TEST_CASE(every_prefix_and_flipped_byte_ends_well) {
  for (std::size_t at = 0; at < kPython.size(); ++at) {
    BOOST_TEST(!DecodeImageIndex(std::string_view(kPython).substr(0, at)));
    std::string flipped = kPython;
    for (const char bit : {'\x01', '\x20', '\x80'}) {
      flipped[at] = static_cast<char>(kPython[at] ^ bit);
      if (const auto index = DecodeImageIndex(flipped)) BOOST_TEST(!index->empty());
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
