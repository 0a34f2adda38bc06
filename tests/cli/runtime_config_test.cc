#include "bindings/cli/runtime_config.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "waybill/limits.h"

namespace waybill {
namespace {

using Handlers = std::vector<RuntimeHandler>;

// KEP-4216, "Proposal", with a default and a second handler.
const std::string kKep = R"(version = 2
[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "runhcs-wcow-process"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runhcs-wcow-process]
base_runtime_spec = ""
cni_conf_dir = ""
cni_max_conf_num = 0
container_annotations = ["io.microsoft.container.*"]
pod_annotations = []
privileged_without_host_devices = false
privileged_without_host_devices_all_devices_allowed = false
runtime_path = ""
runtime_type = "io.containerd.runhcs.v1"
sandbox_mode = ""
snapshotter = ""
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runhcs-wcow-process.guest_platform]
Architecture = "amd64"
OS = "windows"
OSFeatures = []
OSVersion = "10.0.20348"
Variant = ""
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runhcs-wcow-process.options]
)";

const std::string kContainerd = "[plugins.\"io.containerd.cri.v1.runtime\".containerd]\n";
const std::string kGuest =
    "[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.a.guest_platform]\n";
const std::string kPlatform =
    "[plugins.\"io.containerd.cri.v1.images\".runtime_platforms.a]\nplatform = ";

Handlers Merged(const std::string& toml, Handlers handlers) {
  const auto merged = cli::MergeRuntimeConfig(toml, handlers);
  BOOST_TEST_REQUIRE(bool{merged}, merged.error().message);
  return handlers;
}

std::string ErrorOf(const std::string& toml, Handlers handlers = {{.name = "a"}},
                    ErrorCode code = ErrorCode::kInvalidArgument) {
  const Handlers before = handlers;
  const auto merged = cli::MergeRuntimeConfig(toml, handlers);
  if (merged) return "accepted";
  BOOST_TEST((handlers == before));
  BOOST_TEST((merged.error().code == code), merged.error().message);
  return merged.error().message;
}

std::optional<Platform> GuestOf(const std::string& toml) {
  return Merged(toml, {{.name = "a"}})[0].guest_platform;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(runtime_config)

BOOST_AUTO_TEST_CASE(reads_the_example_of_the_kep) {
  const Platform guest = {.architecture = "amd64", .os = "windows", .os_version = "10.0.20348"};
  BOOST_TEST((Merged(kKep, {{.name = "runhcs-wcow-process", .user_namespaces = true}}) ==
              Handlers{{.name = "runhcs-wcow-process",
                        .is_default = true,
                        .user_namespaces = true,
                        .guest_platform = guest}}));
  std::string version_3 = kKep;
  for (std::size_t at = 0; (at = version_3.find("grpc.v1.cri", at)) != std::string::npos;) {
    version_3.replace(at, 11, "cri.v1.runtime");
  }
  BOOST_TEST((Merged(version_3, {{.name = "runhcs-wcow-process"}})[0].guest_platform == guest));
}

BOOST_AUTO_TEST_CASE(files_that_say_nothing_change_nothing) {
  const Handlers handlers = {{.name = "", .is_default = true, .user_namespaces = true},
                             {.name = "a"}};
  for (const std::string toml :
       {"", "\n# nothing\n", "version = 3\n", "[plugins]\n",
        "[plugins.\"io.containerd.grpc.v1.cri\"]\nsandbox_image = \"pause\"\n",
        "[plugins.\"io.containerd.cri.v1.runtime\".containerd]\ndefault_runtime_name = \"\"\n",
        "[plugins.\"io.containerd.cri.v1.images\".runtime_platforms]\n"}) {
    BOOST_TEST((Merged(toml, handlers) == handlers), toml);
  }
}

BOOST_AUTO_TEST_CASE(handlers_that_the_runtime_does_not_serve_are_passed_over) {
  const Handlers handlers = {{.name = "kata"}};
  BOOST_TEST((Merged(kKep, handlers) == handlers));
  BOOST_TEST((Merged(kGuest + "OS = 1\n", handlers) == handlers));
  BOOST_TEST((Merged(kPlatform + "\"nonsense\"\n", handlers) == handlers));
  BOOST_TEST(Merged(kKep, {}).empty());
}

BOOST_AUTO_TEST_CASE(default_handler_gets_its_name) {
  const std::string toml = kContainerd + "default_runtime_name = \"m\"\n";
  const RuntimeHandler nameless = {.name = "", .is_default = true, .user_namespaces = true};
  BOOST_TEST((Merged(toml, {nameless, {.name = "a"}, {.name = "z"}}) ==
              Handlers{{.name = "a"},
                       {.name = "m", .is_default = true, .user_namespaces = true},
                       {.name = "z"}}));
  BOOST_TEST(
      (Merged(toml, {nameless, {.name = "m"}}) == Handlers{{.name = "m", .is_default = true}}));
  BOOST_TEST((Merged(toml, {{.name = "a"}, {.name = "m"}}) ==
              Handlers{{.name = "a"}, {.name = "m", .is_default = true}}));
  BOOST_TEST((Merged(toml, {{.name = "m", .is_default = true}}) ==
              Handlers{{.name = "m", .is_default = true}}));
}

BOOST_AUTO_TEST_CASE(contradictions_are_refused) {
  BOOST_TEST(ErrorOf(kContainerd + "default_runtime_name = \"m\"\n",
                     {{.name = "a", .is_default = true}, {.name = "m"}}) ==
             "line 2: the default handler is m here, and a elsewhere");
  BOOST_TEST(ErrorOf(kContainerd + "default_runtime_name = \"m\"\n"
                                   "[plugins.\"io.containerd.grpc.v1.cri\".containerd]\n"
                                   "default_runtime_name = \"a\"\n",
                     {{.name = "a"}, {.name = "m"}}) ==
             "line 2: the default handler is m here, and a elsewhere");
  const std::string guest = kGuest + "OS = \"linux\"\nArchitecture = \"arm64\"\n";
  const Platform amd64 = {.architecture = "amd64", .os = "linux"};
  BOOST_TEST(ErrorOf(guest, {{.name = "a", .guest_platform = amd64}}) ==
             "line 1: the guest platform of a is linux/arm64 here, and linux/amd64 elsewhere");
  BOOST_TEST(ErrorOf(guest + kPlatform + "\"linux/amd64\"\n") ==
             "line 5: the guest platform of a is linux/amd64 here, and linux/arm64 elsewhere");
  BOOST_TEST(ErrorOf(guest + kPlatform + "\"linux/aarch64\"\n") == "accepted");
}

BOOST_AUTO_TEST_CASE(guest_platforms_in_each_spelling) {
  const Platform guest = {.architecture = "arm64",
                          .os = "windows",
                          .os_version = "10.0.20348",
                          .os_features = {"a", "b"}};
  for (const std::string fields :
       {"Architecture = \"arm64\"\nOS = \"windows\"\nOSVersion = \"10.0.20348\"\n"
        "OSFeatures = [\"b\", \"a\"]\nVariant = \"v8\"\n",
        "architecture = \"aarch64\"\nos = \"Windows\"\nos_version = \"10.0.20348\"\n"
        "os_features = [\"a\", \"b\"]\nother = 1\n",
        "architecture = \"arm64\"\nos = \"windows\"\n\"os.version\" = \"10.0.20348\"\n"
        "\"os.features\" = [\"a\", \"b\"]\n"}) {
    BOOST_TEST((GuestOf(kGuest + fields) == guest), fields);
  }
  BOOST_TEST((GuestOf(kPlatform + "\"windows(10.0.20348+b+a)/aarch64/v8\"") == guest));
  BOOST_TEST((GuestOf(kPlatform + "\"windows(10.0.17763)/amd64\"") ==
              Platform{.architecture = "amd64", .os = "windows", .os_version = "10.0.17763"}));
  BOOST_TEST((GuestOf(kPlatform + "\"linux/arm/v6\"") ==
              Platform{.architecture = "arm", .os = "linux", .variant = "v6"}));
  BOOST_TEST((GuestOf(kPlatform + "\"windows()/amd64\"") ==
              Platform{.architecture = "amd64", .os = "windows"}));
}

BOOST_AUTO_TEST_CASE(guest_platforms_that_were_not_set) {
  BOOST_TEST(!GuestOf(kGuest));
  BOOST_TEST(!GuestOf(kGuest + "OS = \"\"\nArchitecture = \"\"\nOSFeatures = []\n"));
  BOOST_TEST(!GuestOf(kPlatform + "\"\""));
}

BOOST_AUTO_TEST_CASE(bad_guest_platforms) {
  BOOST_TEST(ErrorOf(kGuest + "\nOS = 1\n") == "line 3: OS is not a string");
  BOOST_TEST(ErrorOf(kGuest + "OSFeatures = \"a\"\n") ==
             "line 2: the OS features are not an array");
  BOOST_TEST(ErrorOf(kGuest + "OSFeatures = [1]\n") == "line 2: an OS feature is not a string");
  BOOST_TEST(ErrorOf(kGuest + "OS = \"linux\"\n") ==
             "line 1: a guest platform needs an OS and an architecture");
  BOOST_TEST(ErrorOf(kGuest + "OS = \"linux\"\nos = \"linux\"\n").ends_with(" is there twice"));
  const std::string long_field(kMaxPlatformFieldBytes + 1, 'x');
  BOOST_TEST(ErrorOf(kGuest + "OS = \"" + long_field + "\"\n", {{.name = "a"}},
                     ErrorCode::kLimitExceeded) == "line 2: OS has more than 256 bytes");
  std::string features = "\"f\"";
  for (std::size_t i = 0; i < kMaxOsFeatures; ++i) features += ",\"f\"";
  BOOST_TEST(ErrorOf(kGuest + "OSFeatures = [" + features + "]\n", {{.name = "a"}},
                     ErrorCode::kLimitExceeded) == "line 2: more than 64 OS features");
  for (const std::string platform :
       {"amd64", "linux", "windows(10.0.17763", "windows(10.0.17763)", "windows(1)(2)/amd64",
        "linux//amd64", "linux/(x)/amd64", "(1)/amd64", "linux/amd64/v1/x"}) {
    BOOST_TEST(ErrorOf(kPlatform + "\"" + platform + "\"\n").starts_with("line 2: no platform: "),
               platform);
  }
}

BOOST_AUTO_TEST_CASE(values_of_another_type) {
  BOOST_TEST(ErrorOf("plugins = 1\n") == "line 1: plugins is not a table");
  BOOST_TEST(ErrorOf("\n[plugins]\n\"io.containerd.grpc.v1.cri\" = []\n") ==
             "line 3: io.containerd.grpc.v1.cri is not a table");
  BOOST_TEST(ErrorOf(kContainerd + "default_runtime_name = 1\n") ==
             "line 2: default_runtime_name is not a string");
  BOOST_TEST(ErrorOf(kContainerd + "runtimes = \"a\"\n") == "line 2: runtimes is not a table");
  BOOST_TEST(ErrorOf(kContainerd + "runtimes = { a = 1 }\n") == "line 2: a is not a table");
  BOOST_TEST(ErrorOf(kContainerd + "runtimes = { a = { guest_platform = 1 } }\n") ==
             "line 2: guest_platform is not a table");
  BOOST_TEST(ErrorOf(kPlatform + "1\n") == "line 2: platform is not a string");
}

BOOST_AUTO_TEST_CASE(what_is_no_toml_is_refused_with_its_line) {
  BOOST_TEST(ErrorOf("version = 2\n\nnonsense\n").starts_with("line 3: "));
  BOOST_TEST(ErrorOf("a = \n").starts_with("line 1: "));
  BOOST_TEST(ErrorOf("a = 1\na = 2\n").starts_with("line 2: "));
  BOOST_TEST(ErrorOf("a = \"\xff\"\n").starts_with("line 1: "));
  BOOST_TEST(ErrorOf(std::string("a = 1\n\0", 7)).starts_with("line 2: "));
  BOOST_TEST(ErrorOf("{\"json\":1}").starts_with("line 1: "));
  for (std::size_t at = 0; at < kKep.size(); ++at) {
    Handlers handlers = {{.name = "runhcs-wcow-process"}};
    static_cast<void>(cli::MergeRuntimeConfig(std::string_view(kKep).substr(0, at), handlers));
    std::string flipped = kKep;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x15);
    static_cast<void>(cli::MergeRuntimeConfig(flipped, handlers));
    BOOST_TEST(handlers.size() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(limits) {
  constexpr auto kLimit = ErrorCode::kLimitExceeded;
  const std::string full = "#" + std::string(cli::kMaxRuntimeConfigBytes - 1, 'x');
  BOOST_TEST(ErrorOf(full) == "accepted");
  BOOST_TEST(ErrorOf(full + "x", {}, kLimit) == "1048577 bytes of TOML, and 1048576 are allowed");

  const auto dotted = [](std::size_t dots) {
    std::string key = "a";
    for (std::size_t i = 0; i < dots; ++i) key += ".a";
    return key;
  };
  BOOST_TEST(ErrorOf(dotted(256) + " = 1\n") == "accepted");
  BOOST_TEST(ErrorOf("\n" + dotted(257) + " = 1\n", {}, kLimit) == "line 2: more than 256 dots");
  BOOST_TEST(ErrorOf(dotted(500'000) + " = 1", {}, kLimit) == "line 1: more than 256 dots");
  // The deepest that can be had: a key of tables in each array, in each table, …
  std::string deep = dotted(256) + " = 1";
  for (int i = 0; i < 7; ++i) deep = dotted(256) + " = [\n{ " + deep + " }\n]";
  BOOST_TEST(ErrorOf(deep + "\n") == "accepted");
  deep = dotted(256) + " = [\n{ " + deep + " }\n]";
  BOOST_TEST(ErrorOf(deep + "\n").find("maximum nested value depth") != std::string::npos);
  BOOST_TEST(ErrorOf("a = " + std::string(500'000, '[')).find("maximum nested value depth") !=
             std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
