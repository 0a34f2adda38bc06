// `waybill manifest`, as a user runs it.

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/run_command.h"
#include "tests/support/store_fixture.h"

namespace waybill {
namespace {

using testing::CommandResult;
using testing::Must;
using testing::RunWaybill;
using testing::ScratchStore;
using Strings = std::vector<std::string>;

std::string Digest(char digit) { return "sha256:" + std::string(64, digit); }

std::string Manifest(char digit, const std::string& platform) {
  return R"({"mediaType":"application/vnd.oci.image.manifest.v1+json","size":7,"digest":")" +
         Digest(digit) + R"(","platform":{)" + platform + "}}";
}

const std::string kIndex =
    R"({"schemaVersion":2,"manifests":[)" +
    Manifest('1', R"("architecture":"amd64","os":"linux")") + "," +
    Manifest('2', R"("architecture":"arm","os":"linux","variant":"v6")") + "," +
    Manifest('3', R"("architecture":"amd64","os":"windows","os.version":"10.0.20348.1970")") + "," +
    Manifest('4', R"("architecture":"amd64","os":"windows","os.version":"10.0.17763.4851")") + "]}";

CommandResult Run(Strings more, const std::string& input = kIndex) {
  more.insert(more.begin(), {"manifest", "--index", "-"});
  return RunWaybill(more, input);
}

void CheckRefused(const CommandResult& result, int exit_code, const std::string& about) {
  BOOST_TEST(result.exit_code == exit_code, result.err);
  BOOST_TEST(result.out == "");
  BOOST_TEST(result.err.starts_with("error: "), result.err);
  BOOST_TEST(result.err.find(about) != std::string::npos, result.err);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_manifest)

BOOST_AUTO_TEST_CASE(prints_what_is_chosen) {
  const CommandResult text = Run({"--platform", "linux/arm"});
  BOOST_TEST(text.exit_code == 0, text.err);
  BOOST_TEST(text.out == Digest('2') + "  linux/arm/v6\n");

  const CommandResult json =
      Run({"--platform", "windows/x86_64", "--os-version", "10.0.26100", "--json"});
  BOOST_TEST(json.exit_code == 0, json.err);
  BOOST_TEST(json.out == R"({"digest":")" + Digest('3') +
                             R"(","mediaType":"application/vnd.oci.image.manifest.v1+json",)"
                             R"("size":7,"platform":{"architecture":"amd64","os":"windows",)"
                             R"("osVersion":"10.0.20348.1970"}})"
                             "\n");
}

BOOST_AUTO_TEST_CASE(index_is_read_from_a_file) {
  const testing::TempDir dir;
  testing::WriteFile(dir / "index.json", kIndex);
  const CommandResult result = RunWaybill(
      {"manifest", "--index", (dir / "index.json").string(), "--platform", "linux/amd64"});
  BOOST_TEST(result.out == Digest('1') + "  linux/amd64\n", result.err);
  CheckRefused(RunWaybill({"manifest", "--index", (dir / "none").string()}), 2,
               "could not be read");
}

// Of whatever this machine is, an index for each architecture has one.
BOOST_AUTO_TEST_CASE(platform_of_this_machine) {
  std::string index;
  for (const std::string architecture :
       {"amd64", "arm64", "386", "ppc64le", "s390x", "riscv64", "loong64", "arm"}) {
    index += (index.empty() ? "" : ",") +
             Manifest('a', R"("os":"linux","variant":"","architecture":")" + architecture + "\"");
  }
  const CommandResult result = Run({}, R"({"schemaVersion":2,"manifests":[)" + index + "]}");
  BOOST_TEST(result.exit_code == 0, result.err);
}

BOOST_AUTO_TEST_CASE(no_match_lists_the_offer) {
  const Strings none = {"--platform", "linux/s390x"};
  CheckRefused(Run(none), 1,
               "no manifest for linux/s390x; the index offers linux/amd64, linux/arm/v6, "
               "windows/amd64 10.0.20348.1970, windows/amd64 10.0.17763.4851");
  const CommandResult json = Run({"--platform", "linux/s390x", "--json"});
  BOOST_TEST(json.exit_code == 1);
  BOOST_TEST(nlohmann::json::parse(json.out)["error"]["code"] == "notFound");
  CheckRefused(Run({"--platform", "windows/amd64"}), 1, "OS version");
}

BOOST_AUTO_TEST_CASE(wrong_usage) {
  CheckRefused(Run({}, "{}"), 2, "standard input: document: field \"schemaVersion\" is missing");
  CheckRefused(Run({"--platform", "amd64"}), 2, "--platform: no platform: \"amd64\"");
  CheckRefused(Run({"--platform", ""}), 2, "--platform");
  CheckRefused(Run({"--os-version", ""}), 2, "--os-version: the value is empty");
  CheckRefused(Run({"--platform", "windows/amd64", "--os-version", "2022"}), 2,
               "no version of Windows: \"2022\"");
  CheckRefused(Run({"--runtime", "kata"}), 2, "--store is missing");
  CheckRefused(Run({"--store", ""}), 2, "--store: the value is empty");
  CheckRefused(RunWaybill({"manifest"}), 2, "--index");
}

BOOST_AUTO_TEST_CASE(guest_platform_of_a_handler) {
  ScratchStore store(Rules::kClosed);
  const Platform guest = {.architecture = "amd64", .os = "windows", .os_version = "10.0.17763"};
  Must(store->ReplaceRuntimeHandlers(
      {{.name = "hyperv", .guest_platform = guest}, {.name = "process", .is_default = true}}));
  const auto run = [&](Strings more) {
    more.insert(more.begin(), {"--store", store.directory().string(), "--platform", "windows/amd64",
                               "--os-version", "10.0.20348"});
    return Run(more);
  };
  BOOST_TEST(run({"--runtime", "hyperv"}).out == Digest('4') + "  windows/amd64 10.0.17763.4851\n");
  for (const Strings& default_handler : {Strings{}, {"--runtime", ""}, {"--runtime", "process"}}) {
    BOOST_TEST(run(default_handler).out == Digest('3') + "  windows/amd64 10.0.20348.1970\n");
  }
  CheckRefused(run({"--runtime", "kata"}), 2, "hyperv, process");
  CheckRefused(Run({"--store", (store.scratch() / "none").string()}), 3, "none");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
