// Which manifest is chosen. Indexes are written as "linux/amd64" or "windows/amd64 10.0.20348.1".

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "waybill/image_index.h"

namespace waybill {

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
  const auto manifest = ChooseManifest(index, host, guest);
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

BOOST_AUTO_TEST_CASE(spellings_do_not_matter) {
  BOOST_TEST(Chosen({Manifest("a", Platform{.architecture = "X86_64", .os = "Linux"})},
                    Read("linux/amd64")) == "a");
  BOOST_TEST(Chosen({"linux/arm64"}, "linux/aarch64/v8") == "linux/arm64");
  BOOST_TEST(Chosen({"linux/arm/7"}, "linux/armhf") == "linux/arm/7");
}

BOOST_AUTO_TEST_CASE(of_equals_the_first) {
  const std::vector<ManifestDescriptor> index = {Manifest("a", Read("linux/386")),
                                                 Manifest("b", Read("linux/amd64")),
                                                 Manifest("c", Read("linux/x86_64/v1"))};
  BOOST_TEST(Chosen(index, Read("linux/amd64")) == "b");
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

BOOST_AUTO_TEST_CASE(windows_platform_without_a_version_chooses_no_version) {
  const auto manifest =
      ChooseManifest(Index({"windows/amd64 10.0.17763.1"}), Read("windows/amd64"));
  BOOST_REQUIRE(!manifest);
  BOOST_TEST((manifest.error().code == ErrorCode::kNotFound));
  BOOST_TEST(manifest.error().message ==
             "no manifest for windows/amd64; the index offers windows/amd64 10.0.17763.1");
  BOOST_TEST(manifest.error().hint.find("OS version") != std::string::npos);
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
      Manifest("none", std::nullopt),
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
  const auto manifest = ChooseManifest(index, host);
  BOOST_TEST(manifest.error().message ==
             "no manifest for linux/amd64; the index offers no image of a known platform; 10 of 10 "
             "manifests are attestations, nested indexes or of no known platform");
}

BOOST_AUTO_TEST_CASE(offer_is_listed_and_bounded) {
  const auto none = ChooseManifest(
      Index({"linux/amd64", "linux/arm/v7", "linux/amd64", "windows/amd64 10.0.20348.1"}),
      Read("linux/s390x"));
  BOOST_TEST(none.error().message ==
             "no manifest for linux/s390x; the index offers linux/amd64, linux/arm/v7, "
             "windows/amd64 10.0.20348.1");
  std::vector<ManifestDescriptor> many;
  for (int i = 0; i < 60; ++i) {
    many.push_back(Manifest("m", Platform{.architecture = "a" + std::to_string(i), .os = "linux"}));
  }
  const std::string message = ChooseManifest(many, Read("linux/s390x")).error().message;
  BOOST_TEST(message.find("linux/a49 and 10 more") != std::string::npos, message);
  BOOST_TEST(message.find("linux/a50") == std::string::npos, message);

  const Platform huge = {.architecture = "x\n\x1b[31m" + std::string(4000, 'a'),
                         .os = "linux",
                         .os_features = Strings(64, std::string(4000, '\xc3'))};
  const std::string cut =
      ChooseManifest({Manifest("m", huge)}, Read("linux/s390x")).error().message;
  BOOST_TEST(cut.size() < 300u);
  BOOST_TEST(cut.find("linux/x??[31maaa") != std::string::npos, cut);

  BOOST_TEST(ChooseManifest({}, Read("linux/s390x")).error().message ==
             "no manifest for linux/s390x; the index offers no image of a known platform");
}

BOOST_AUTO_TEST_CASE(platforms_that_can_not_be_matched_are_refused) {
  const auto index = Index({"linux/amd64", "windows/amd64"});
  const auto error_of = [&](const Platform& host, const std::optional<Platform>& guest = {}) {
    const auto manifest = ChooseManifest(index, host, guest);
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

}  // namespace waybill
