#include "waybill/platform.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

namespace waybill {

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

BOOST_AUTO_TEST_CASE(normal_form_is_its_own_normal_form) {
  for (const std::string architecture :
       {"i386", "x86_64", "aarch64", "armhf", "armel", "arm", ""}) {
    for (const std::string variant : {"", "v1", "v8", "9", "7", "v4", "x"}) {
      const Platform once = NormalisePlatform({.architecture = architecture,
                                               .os = "macOS",
                                               .os_features = {"b", "a", "b"},
                                               .variant = variant});
      BOOST_TEST((NormalisePlatform(once) == once), architecture << '/' << variant);
    }
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

}  // namespace waybill
