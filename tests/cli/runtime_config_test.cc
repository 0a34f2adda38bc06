// containerd's configuration, by itself: the example of the KEP, what is no TOML, limits. What it
// makes of a list of handlers: transcripts/runtime-config.txt.

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "runtime/files/documents.h"
#include "waybill/limits.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(runtime_config)

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

Handlers Merged(const std::string& toml, Handlers handlers) {
  const auto merged = MergeRuntimeConfig(toml, handlers);
  BOOST_TEST_REQUIRE(bool{merged}, merged.error().message);
  return handlers;
}

std::string ErrorOf(const std::string& toml, Handlers handlers = {{.name = "a"}},
                    ErrorCode code = ErrorCode::kInvalidArgument) {
  const Handlers before = handlers;
  const auto merged = MergeRuntimeConfig(toml, handlers);
  if (merged) return "accepted";
  BOOST_TEST((handlers == before));
  BOOST_TEST((merged.error().code == code), merged.error().message);
  return merged.error().message;
}

}  // namespace

BOOST_AUTO_TEST_CASE(reads_the_example_of_the_kep) {
  const Platform guest = {.architecture = "amd64", .os = "windows", .os_version = "10.0.20348"};
  BOOST_TEST((Merged(kKep, {{.name = "runhcs-wcow-process", .user_namespaces = true}}) ==
              Handlers{{.name = "runhcs-wcow-process",
                        .is_default = true,
                        .user_namespaces = true,
                        .guest_platform = guest}}));
  // Of a handler that the runtime does not serve nothing is taken.
  BOOST_TEST((Merged(kKep, {{.name = "kata"}}) == Handlers{{.name = "kata"}}));
  BOOST_TEST(Merged(kKep, {}).empty());
  std::string version_3 = kKep;
  for (std::size_t at = 0; (at = version_3.find("grpc.v1.cri", at)) != std::string::npos;) {
    version_3.replace(at, 11, "cri.v1.runtime");
  }
  BOOST_TEST((Merged(version_3, {{.name = "runhcs-wcow-process"}})[0].guest_platform == guest));
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
    static_cast<void>(MergeRuntimeConfig(std::string_view(kKep).substr(0, at), handlers));
    std::string flipped = kKep;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x15);
    static_cast<void>(MergeRuntimeConfig(flipped, handlers));
    BOOST_TEST(handlers.size() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(limits) {
  constexpr auto kLimit = ErrorCode::kLimitExceeded;
  const std::string full = "#" + std::string(kMaxPullConfigBytes - 1, 'x');
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
