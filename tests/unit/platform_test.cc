// Platforms, indexes of manifests, lists of images.

#include "store/base/platform.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/files/documents.h"
#include "tests/support/expect_error.h"
#include "tests/support/store_fixture.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(platform)

namespace {

struct Spelling {
  std::string architecture;
  std::string variant;
  std::string normal;  // as FormatPlatform writes it behind "linux/"
};

std::string Normal(const std::string& architecture, const std::string& variant) {
  return FormatPlatform(
      NormalisePlatform({.architecture = architecture, .os = "linux", .variant = variant}));
}

}  // namespace

// github.com/containerd/platforms, database.go (normalizeArch) at main.
BOOST_AUTO_TEST_CASE(architectures_have_one_spelling) {
  const std::vector<Spelling> rows = {{"i386", "", "386"},
                                      {"i386", "v7", "386"},
                                      {"386", "", "386"},
                                      {"x86_64", "", "amd64"},
                                      {"x86-64", "", "amd64"},
                                      {"X86_64", "V1", "amd64"},
                                      {"amd64", "v1", "amd64"},
                                      {"amd64", "v3", "amd64/v3"},
                                      {"x86_64", "v2", "amd64/v2"},
                                      {"aarch64", "", "arm64"},
                                      {"arm64", "v8", "arm64"},
                                      {"aarch64", "8", "arm64"},
                                      {"arm64", "v8.0", "arm64"},
                                      {"arm64", "v8.2", "arm64/v8.2"},
                                      {"arm64", "9", "arm64/v9"},
                                      {"arm64", "9.0", "arm64/v9"},
                                      {"arm64", "v9.0", "arm64/v9"},
                                      {"arm64", "v9.1", "arm64/v9.1"},
                                      {"armhf", "", "arm/v7"},
                                      {"armhf", "v6", "arm/v7"},
                                      {"armel", "", "arm/v6"},
                                      {"arm", "", "arm/v7"},
                                      {"arm", "7", "arm/v7"},
                                      {"arm", "5", "arm/v5"},
                                      {"arm", "6", "arm/v6"},
                                      {"arm", "8", "arm/v8"},
                                      {"arm", "V8", "arm/v8"},
                                      {"arm", "v4", "arm/v4"},
                                      {"arm", "4", "arm/4"},
                                      {"ppc64le", "", "ppc64le"},
                                      {"riscv64", "rva23u64", "riscv64/rva23u64"}};
  for (const Spelling& row : rows) {
    BOOST_TEST(Normal(row.architecture, row.variant) == "linux/" + row.normal,
               row.architecture << '/' << row.variant);
  }
}

BOOST_AUTO_TEST_CASE(operating_systems_and_features_have_one_spelling) {
  BOOST_TEST(NormalisePlatform({.architecture = "amd64", .os = "macOS"}).os == "darwin");
  BOOST_TEST(NormalisePlatform({.architecture = "amd64", .os = "Windows"}).os == "windows");
  // Not filled in from this machine: what an image does not state stays empty.
  BOOST_TEST(NormalisePlatform({.architecture = "amd64", .os = ""}).os == "");
  const auto features =
      NormalisePlatform({.architecture = "amd64", .os = "windows", .os_features = {"w", "a", "w"}})
          .os_features;
  BOOST_TEST(features == (std::vector<std::string>{"a", "w"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(platforms_are_written_as_text) {
  BOOST_TEST(FormatPlatform({.architecture = "arm", .os = "linux", .variant = "v7"}) ==
             "linux/arm/v7");
  BOOST_TEST(
      FormatPlatform({.architecture = "amd64", .os = "windows", .os_version = "10.0.20348.1970"}) ==
      "windows/amd64 10.0.20348.1970");
  BOOST_TEST(FormatPlatform({.architecture = "amd64",
                             .os = "windows",
                             .os_version = "10.0.20348",
                             .os_features = {"win32k", "other"}}) ==
             "windows/amd64 10.0.20348 (win32k, other)");
  BOOST_TEST(FormatPlatform({}) == "unknown/unknown");
}

BOOST_AUTO_TEST_SUITE_END()

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
  BOOST_REQUIRE_MESSAGE(index, (index ? "" : index.error().message));
  return *std::move(index);
}

std::string ErrorOf(const std::string& json, ErrorCode code = ErrorCode::kInvalidArgument) {
  const auto index = DecodeImageIndex(json);
  if (index) return "accepted";
  BOOST_TEST((index.error().code == code), index.error().message);
  return index.error().message;
}

}  // namespace

BOOST_AUTO_TEST_CASE(limits) {
  constexpr auto kLimit = ErrorCode::kLimitExceeded;
  const std::string full = Index(Manifest());
  const std::string padding(kMaxImageIndexBytes - full.size(), ' ');
  BOOST_TEST(ErrorOf(full + padding) == "accepted");
  BOOST_TEST(ErrorOf(full + padding + " ", kLimit).starts_with("the document has 4194305 bytes"));

  std::string many = Manifest();
  for (std::size_t i = 1; i < kMaxManifestsPerIndex; ++i) many += "," + Manifest();
  BOOST_TEST(Decode(Index(many)).size() == kMaxManifestsPerIndex);
  BOOST_TEST(ErrorOf(Index(many + "," + Manifest()), kLimit).starts_with("manifests: it has more"));
}

BOOST_AUTO_TEST_SUITE_END()

// Lists of images: what only some of them may have (fixtures/texts/image-lists.jsonl has the rest).
BOOST_AUTO_TEST_SUITE(image_list)

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

// Which manifest is chosen. Indexes are written as "linux/amd64" or "windows/amd64 10.0.20348.1".
BOOST_AUTO_TEST_SUITE(choose_manifest)

namespace {

using Strings = std::vector<std::string>;

constexpr const char* kManifest = "application/vnd.oci.image.manifest.v1+json";
constexpr const char* kIndex = "application/vnd.oci.image.index.v1+json";

Platform Read(const std::string& text) {
  const std::size_t space = text.find(' ');
  Platform platform = ParsePlatform(text.substr(0, space)).value();
  if (space != std::string::npos) platform.os_version = text.substr(space + 1);
  return platform;
}

ManifestDescriptor Manifest(const std::string& name, std::optional<Platform> platform) {
  return {.media_type = kManifest, .digest = name, .platform = std::move(platform)};
}

std::vector<ManifestDescriptor> Index(const Strings& platforms) {
  std::vector<ManifestDescriptor> index;
  for (const std::string& text : platforms) index.push_back(Manifest(text, Read(text)));
  return index;
}

// The chosen manifest, or "none".
std::string Chosen(const std::vector<ManifestDescriptor>& index, const Platform& host,
                   const std::optional<Platform>& guest = std::nullopt) {
  const auto manifest = ManifestFor(index, host, guest);
  if (manifest) return manifest->digest;
  BOOST_TEST((manifest.error().code == ErrorCode::kNotFound), manifest.error().message);
  return "none";
}

std::string Chosen(const Strings& platforms, const std::string& host) {
  return Chosen(Index(platforms), Read(host));
}

// What runs where, by the tables of containerd and Microsoft.
std::vector<nlohmann::json> RowsWith(const char* field) {
  std::ifstream in(WAYBILL_FIXTURES "/manifests.jsonl");
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(in, line);) {
    const auto row = nlohmann::json::parse(line);
    if (row.contains(field)) rows.push_back(row);
  }
  BOOST_TEST_REQUIRE(!rows.empty());
  return rows;
}

}  // namespace

BOOST_AUTO_TEST_CASE(containerds_fallbacks) {
  for (const auto& row : RowsWith("host")) {
    const std::string host = row["host"];
    const Strings does_not_run = row["doesNotRun"];
    for (const std::string& image : does_not_run) {
      BOOST_TEST(Chosen({image}, host) == "none", image << " on " << host);
    }
    // The best of what is left is chosen, whatever its place in the index.
    Strings left = row["runs"];
    while (!left.empty()) {
      Strings backwards = does_not_run;
      backwards.insert(backwards.end(), left.rbegin(), left.rend());
      BOOST_TEST(Chosen(backwards, host) == left.front(), "on " << host);
      BOOST_TEST(Chosen(left, host) == left.front(), "on " << host);
      left.erase(left.begin());
    }
  }
}

BOOST_AUTO_TEST_CASE(hostile_variants_have_no_fallbacks) {
  for (const std::string variant : {"v99999999999999999999", "v4294967295", "v0", "v", "x", "v8x",
                                    "v9.", "v9.x", "v.9", "v9.10", "v-1", "7.1.1.1"}) {
    for (const std::string architecture : {"amd64", "arm", "arm64"}) {
      const Platform host = {.architecture = architecture, .os = "linux", .variant = variant};
      BOOST_TEST(Chosen({Manifest("own", host)}, host) == "own", variant);
      BOOST_TEST(Chosen({"linux/arm64", "linux/amd64"}, FormatPlatform(host)) == "none", variant);
    }
  }
}

BOOST_AUTO_TEST_CASE(windows_runs_what_microsoft_says) {
  const auto rows = RowsWith("windows");
  for (const auto& row : rows) {
    const Strings images = row["runs"];
    const std::string host = "windows/amd64 " + row["version"].get<std::string>();
    for (const auto& other : rows) {
      const bool runs = std::find(images.begin(), images.end(),
                                  other["windows"].get<std::string>()) != images.end();
      // Revisions do not matter, on either side.
      const std::string image = "windows/amd64 " + other["version"].get<std::string>() + ".9999";
      BOOST_TEST((Chosen({image}, host) == image) == runs, image << " on " << host);
      BOOST_TEST((Chosen({image}, host + ".1") == image) == runs, image << " on " << host);
    }
  }
}

BOOST_AUTO_TEST_CASE(windows_takes_the_newest) {
  // github.com/containerd/platforms, platform_windows_compat_test.go (Test_PlatformOrder).
  const Strings index = {"linux/amd64", "windows/amd64 10.0.20348.3091",
                         "windows/amd64 10.0.26100.2894"};
  BOOST_TEST(Chosen(index, "windows/amd64 10.0.20348.3091") == index[1]);
  BOOST_TEST(Chosen(index, "windows/amd64 10.0.26100.2894") == index[2]);
  BOOST_TEST(Chosen({index[0], index[1], "windows/amd64 10.0.26100.3000"},
                    "windows/amd64 10.0.26100.2894") == "windows/amd64 10.0.26100.3000");
  // Compared as numbers: containerd compares letters, and takes .9 for newer than .10.
  BOOST_TEST(Chosen({"windows/amd64 10.0.20348.9", "windows/amd64 10.0.20348.10"},
                    "windows/amd64 10.0.20348") == "windows/amd64 10.0.20348.10");
}

BOOST_AUTO_TEST_CASE(windows_of_another_kind) {
  const std::string host = "windows/amd64 10.0.20348";
  for (const std::string image :
       {"windows/arm64 10.0.20348", "windows/386 10.0.20348", "windows/amd64/v2 10.0.20348",
        "linux/amd64", "windows/amd64 11.0.20348", "windows/amd64 10.1.20348",
        "windows/amd64 20348", "windows/amd64 10.0", "windows/amd64 10.0.", "windows/amd64 10.0.x",
        "windows/amd64 10.0.20348.", "windows/amd64 10.0.20348.1.1", "windows/amd64 10.0.85884",
        "windows/amd64 266.0.20348", "windows/amd64 10.0.20348 "}) {
    BOOST_TEST(Chosen({image}, host) == "none", image);
  }
}

// Host-process images have no version and run everywhere (containerd, pull request 8101).
BOOST_AUTO_TEST_CASE(windows_image_without_a_version_comes_last) {
  const Strings index = {"windows/amd64", "windows/amd64 10.0.17763.1"};
  BOOST_TEST(Chosen(index, "windows/amd64 10.0.17763") == index[1]);
  BOOST_TEST(Chosen(index, "windows/amd64 10.0.20348") == index[0]);
  BOOST_TEST(Chosen(index, "windows/amd64") == index[0]);
}

// KEP-4216, "Motivation": an image for the utility VM, on a newer host.
BOOST_AUTO_TEST_CASE(guest_takes_the_place_of_the_host) {
  const auto index =
      Index({"linux/amd64", "windows/amd64 10.0.20348.1970", "windows/amd64 10.0.17763.4851"});
  const Platform host = Read("windows/amd64 10.0.20348");
  BOOST_TEST(Chosen(index, host) == "windows/amd64 10.0.20348.1970");
  BOOST_TEST(Chosen(index, host, Read("windows/amd64 10.0.17763")) ==
             "windows/amd64 10.0.17763.4851");
  BOOST_TEST(Chosen(index, host, Read("linux/amd64")) == "linux/amd64");
  BOOST_TEST(Chosen(index, host, Read("windows/amd64 10.0.14393")) == "none");
  // The host's version does not fill in for the guest's.
  BOOST_TEST(Chosen(index, host, Read("windows/amd64")) == "none");
}

BOOST_AUTO_TEST_CASE(features_that_are_demanded_must_be_there) {
  Platform demanding = Read("windows/amd64 10.0.20348");
  demanding.os_features = {"win32k", "a"};
  const auto only = [&](const Strings& has) {
    Platform host = Read("windows/amd64 10.0.20348");
    host.os_features = has;
    return Chosen({Manifest("it", demanding)}, host);
  };
  BOOST_TEST(only({"a", "b", "win32k"}) == "it");
  BOOST_TEST(only({"win32k", "a"}) == "it");
  BOOST_TEST(only({"win32k"}) == "none");
  BOOST_TEST(only({"b"}) == "none");
  BOOST_TEST(only({}) == "it");
  Platform host = demanding;
  BOOST_TEST(
      Chosen({"windows/amd64 10.0.20348"}, FormatPlatform(Read("windows/amd64 10.0.20348"))) ==
      "windows/amd64 10.0.20348");
  BOOST_TEST(Chosen(Index({"windows/amd64 10.0.20348"}), host) == "windows/amd64 10.0.20348");
}

BOOST_AUTO_TEST_CASE(what_is_no_image_is_never_chosen) {
  const Platform host = Read("linux/amd64");
  ManifestDescriptor attestation = Manifest("attestation", host);
  attestation.is_attestation = true;
  ManifestDescriptor nested = Manifest("nested", host);
  nested.media_type = kIndex;
  ManifestDescriptor other = Manifest("other", host);
  other.media_type = "application/vnd.oci.image.config.v1+json";
  const std::vector<ManifestDescriptor> index = {
      attestation,
      nested,
      other,
      Manifest("empty", Platform{}),
      Manifest("no os", Platform{.architecture = "amd64", .os = ""}),
      Manifest("no architecture", Platform{.architecture = "", .os = "linux"}),
      Manifest("unknown", Platform{.architecture = "unknown", .os = "unknown"}),
      Manifest("unknown os", Platform{.architecture = "amd64", .os = "unknown"}),
      Manifest("unknown architecture", Platform{.architecture = "unknown", .os = "linux"})};
  for (const Platform& target : {host, Platform{.architecture = "unknown", .os = "unknown"},
                                 Platform{.architecture = "amd64", .os = "unknown"},
                                 Platform{.architecture = "unknown", .os = "linux"}}) {
    BOOST_TEST(Chosen(index, target) == "none");
  }
  const auto manifest = ManifestFor(index, host);
  BOOST_TEST(manifest.error().message ==
             "no manifest for linux/amd64; the index offers no image of a known platform; 9 of 9 "
             "manifests are attestations, nested indexes or of no known platform");
}

// As containerd sorts them (images.go, Manifest).
BOOST_AUTO_TEST_CASE(who_says_no_platform_comes_last) {
  const Platform host = Read("linux/amd64");
  std::vector<ManifestDescriptor> index = {Manifest("first", std::nullopt),
                                           Manifest("other", std::nullopt)};
  BOOST_TEST(Chosen(index, host) == "first");
  index.push_back(Manifest("386", Read("linux/386")));
  BOOST_TEST(Chosen(index, host) == "386");
  index.insert(index.begin(), Manifest("nydus", host));
  index[0].platform->os_features = {"nydus.remoteimage.v1"};
  BOOST_TEST(Chosen(index, host) == "386");
  index.pop_back();
  BOOST_TEST(Chosen(index, host) == "nydus");
}

BOOST_AUTO_TEST_CASE(offer_is_listed_and_bounded) {
  const auto none = ManifestFor(
      Index({"linux/amd64", "linux/arm/v7", "linux/amd64", "windows/amd64 10.0.20348.1"}),
      Read("linux/s390x"));
  BOOST_TEST(none.error().message ==
             "no manifest for linux/s390x; the index offers linux/amd64, linux/arm/v7, "
             "windows/amd64 10.0.20348.1");
  std::vector<ManifestDescriptor> many;
  for (int i = 0; i < 60; ++i) {
    many.push_back(Manifest("m", Platform{.architecture = "a" + std::to_string(i), .os = "linux"}));
  }
  const std::string message = ManifestFor(many, Read("linux/s390x")).error().message;
  BOOST_TEST(message.find("linux/a49 and 10 more") != std::string::npos, message);
  BOOST_TEST(message.find("linux/a50") == std::string::npos, message);

  const Platform huge = {.architecture = "x\n\x1b[31m" + std::string(4000, 'a'),
                         .os = "linux",
                         .os_features = Strings(64, std::string(4000, '\xc3'))};
  const std::string cut = ManifestFor({Manifest("m", huge)}, Read("linux/s390x")).error().message;
  BOOST_TEST(cut.size() < 300u);
  BOOST_TEST(cut.find("linux/x??[31maaa") != std::string::npos, cut);

  BOOST_TEST(ManifestFor({}, Read("linux/s390x")).error().message ==
             "no manifest for linux/s390x; the index offers no image of a known platform");
}

BOOST_AUTO_TEST_CASE(platforms_that_can_not_be_matched_are_refused) {
  const auto index = Index({"linux/amd64", "windows/amd64"});
  const auto error_of = [&](const Platform& host, const std::optional<Platform>& guest = {}) {
    const auto manifest = ManifestFor(index, host, guest);
    if (manifest) return std::string("accepted");
    BOOST_TEST((manifest.error().code == ErrorCode::kInvalidArgument));
    return manifest.error().message;
  };
  const Platform sound = Read("linux/amd64");
  BOOST_TEST(error_of({}) == "the platform unknown/unknown has no OS");
  BOOST_TEST(error_of({.architecture = "", .os = "linux"}) ==
             "the platform linux/unknown has no architecture");
  BOOST_TEST(error_of(sound, Platform{}) == "the platform unknown/unknown has no OS");
  BOOST_TEST(error_of({}, sound) == "accepted");
  for (const std::string version :
       {"10", "10.0", "ltsc2022", "10.0.20348.1.1", "10.0.99999", "-1.0.20348", "10.0.+1",
        " 10.0.1", "10.0.20348.", "10.0.20348.99999999999"}) {
    BOOST_TEST(error_of({.architecture = "amd64", .os = "windows", .os_version = version})
                   .starts_with("no version of Windows: "),
               version);
    // On other systems the OS version does not matter.
    BOOST_TEST(error_of({.architecture = "amd64", .os = "linux", .os_version = version}) ==
               "accepted");
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
