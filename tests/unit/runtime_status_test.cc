#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "waybill/limits.h"
#include "waybill/runtime_handler.h"

namespace waybill {
namespace {

using Handlers = std::vector<RuntimeHandler>;

// `crictl info` on a node with containerd, cut to a few of its fields; the guest platform as
// KEP-4216 shows it.
const std::string kContainerd = R"({
  "status": {"conditions": [{"type": "RuntimeReady", "status": true, "reason": "", "message": ""}]},
  "cniconfig": {"PluginDirs": ["/opt/cni/bin"]},
  "config": {
    "containerd": {
      "defaultRuntimeName": "runc",
      "ignoreBlockIONotEnabledErrors": false,
      "runtimes": {
        "runc": {"runtimeType": "io.containerd.runc.v2", "options": {"SystemdCgroup": true}},
        "runhcs-wcow-hypervisor": {
          "runtimeType": "io.containerd.runhcs.v1",
          "guest_platform": {"Architecture": "amd64", "OS": "windows", "OSFeatures": [],
                             "OSVersion": "10.0.17763", "Variant": ""}
        },
        "not-served": {"guest_platform": {"OS": "plan9", "Architecture": "mips"}}
      }
    },
    "maxContainerLogSize": 16384
  },
  "runtimeHandlers": [
    {"features": {"recursive_read_only_mounts": true, "user_namespaces": true}},
    {"features": {"recursive_read_only_mounts": true, "user_namespaces": true}, "name": "runc"},
    {"features": {}, "name": "runhcs-wcow-hypervisor"}
  ],
  "features": {"supplemental_groups_policy": true}
})";

std::string Status(const std::string& handlers, const std::string& containerd = "") {
  const std::string config =
      containerd.empty() ? "" : R"(,"config":{"containerd":{)" + containerd + "}}";
  return R"({"runtimeHandlers":[)" + handlers + "]" + config + "}";
}

Handlers Decode(const std::string& json) {
  auto handlers = DecodeRuntimeStatus(json);
  BOOST_REQUIRE_MESSAGE(handlers, handlers.error().message);
  return *std::move(handlers);
}

std::string ErrorOf(const std::string& json, ErrorCode code = ErrorCode::kInvalidArgument) {
  const auto handlers = DecodeRuntimeStatus(json);
  if (handlers) return "accepted";
  BOOST_TEST((handlers.error().code == code), handlers.error().message);
  return handlers.error().message;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(runtime_status)

BOOST_AUTO_TEST_CASE(reads_what_crictl_prints_of_containerd) {
  const Handlers expected = {
      {.name = "runc", .is_default = true, .user_namespaces = true},
      {.name = "runhcs-wcow-hypervisor",
       .guest_platform =
           Platform{.architecture = "amd64", .os = "windows", .os_version = "10.0.17763"}}};
  BOOST_TEST((Decode(kContainerd) == expected));
}

BOOST_AUTO_TEST_CASE(no_handlers_are_an_empty_list) {
  BOOST_TEST(Decode(Status("")).empty());
  BOOST_TEST(Decode(Status("", R"("defaultRuntimeName":"runc")")).empty());
}

BOOST_AUTO_TEST_CASE(result_is_sorted) {
  const Handlers handlers = Decode(Status(R"({"name":"c"},{"name":"a"},{"name":"b"})"));
  BOOST_REQUIRE(handlers.size() == 3u);
  BOOST_TEST(handlers[0].name == "a");
  BOOST_TEST(handlers[2].name == "c");
}

BOOST_AUTO_TEST_CASE(features_in_either_spelling) {
  for (const std::string name : {"user_namespaces", "userNamespaces"}) {
    BOOST_TEST(
        Decode(Status(R"({"name":"a","features":{")" + name + R"(":true}})"))[0].user_namespaces);
    BOOST_TEST(
        !Decode(Status(R"({"name":"a","features":{")" + name + R"(":false}})"))[0].user_namespaces);
    BOOST_TEST(
        !Decode(Status(R"({"name":"a","features":{")" + name + R"(":null}})"))[0].user_namespaces);
  }
  BOOST_TEST(!Decode(Status(R"({"name":"a","features":null})"))[0].user_namespaces);
  BOOST_TEST(!Decode(Status(R"({"name":"a"})"))[0].user_namespaces);
  BOOST_TEST(
      ErrorOf(
          Status(R"({"name":"a","features":{"userNamespaces":true,"user_namespaces":false}})")) ==
      R"(runtimeHandlers[0].features.userNamespaces: this field is there as "user_namespaces", too)");
}

BOOST_AUTO_TEST_CASE(nameless_handler_is_the_default) {
  const std::string nameless = R"({"features":{"user_namespaces":true}})";
  const std::string runc = R"({"name":"runc","features":{}})";
  // Nobody says what the default is called.
  BOOST_TEST(
      (Decode(Status(nameless + "," + runc)) ==
       Handlers{{.name = "", .is_default = true, .user_namespaces = true}, {.name = "runc"}}));
  for (const std::string empty : {R"("name":"",)", R"("name":null,)"}) {
    BOOST_TEST((Decode(Status("{" + empty + R"("features":{}})")) ==
                Handlers{{.name = "", .is_default = true}}));
  }
  for (const std::string name :
       {R"("defaultRuntimeName":"runc")", R"("default_runtime_name":"runc")"}) {
    // The named one is listed: its own features count.
    BOOST_TEST((Decode(Status(nameless + "," + runc, name)) ==
                Handlers{{.name = "runc", .is_default = true, .user_namespaces = false}}));
    BOOST_TEST((Decode(Status(runc, name)) == Handlers{{.name = "runc", .is_default = true}}));
    // It is not: the nameless one's do, under the name, and in its place.
    BOOST_TEST((Decode(Status(nameless + R"(,{"name":"a"},{"name":"z"})", name)) ==
                Handlers{{.name = "a"},
                         {.name = "runc", .is_default = true, .user_namespaces = true},
                         {.name = "z"}}));
  }
  // What the runtime does not serve is no handler.
  BOOST_TEST((Decode(Status(R"({"name":"a"})", R"("defaultRuntimeName":"runc")")) ==
              Handlers{{.name = "a"}}));
  BOOST_TEST((Decode(Status(nameless, R"("defaultRuntimeName":"")")) ==
              Handlers{{.name = "", .is_default = true, .user_namespaces = true}}));
}

BOOST_AUTO_TEST_CASE(guest_platforms_in_each_spelling) {
  const Platform guest = {.architecture = "arm64",
                          .os = "windows",
                          .os_version = "10.0.20348",
                          .os_features = {"a", "b"}};
  for (const std::string fields :
       {R"("Architecture":"arm64","OS":"windows","OSVersion":"10.0.20348","OSFeatures":["b","a"],
           "Variant":"v8")",
        R"("architecture":"arm64","os":"windows","osVersion":"10.0.20348","osFeatures":["a","b"],
           "variant":"")",
        R"("architecture":"aarch64","os":"Windows","os.version":"10.0.20348",
           "os.features":["a","b","a"],"unknown":{}})",
        R"("architecture":"arm64","os":"windows","os_version":"10.0.20348",
           "os_features":["a","b"],"variant":null)"}) {
    for (const std::string name : {"guest_platform", "guestPlatform"}) {
      std::string closed = fields;
      if (closed.ends_with("}}")) closed.pop_back();
      const Handlers handlers = Decode(
          Status(R"({"name":"a"})", R"("runtimes":{"a":{")" + name + R"(":{)" + closed + "}}}"));
      BOOST_TEST((handlers[0].guest_platform == guest), fields);
    }
  }
}

BOOST_AUTO_TEST_CASE(guest_platform_that_was_not_set) {
  for (const std::string runtimes :
       {R"({})", R"(null)", R"({"a":null})", R"({"a":{}})", R"({"a":{"guest_platform":null}})",
        R"({"a":{"guest_platform":{}}})",
        R"({"a":{"guest_platform":{"OS":"","Architecture":"","OSFeatures":null}}})",
        // Of a handler that is not listed, whatever it may be.
        R"({"b":{"guest_platform":{"OS":"linux"}},"c":1})"}) {
    const Handlers handlers = Decode(Status(R"({"name":"a"})", R"("runtimes":)" + runtimes));
    BOOST_TEST(!handlers[0].guest_platform, runtimes);
  }
}

BOOST_AUTO_TEST_CASE(bad_guest_platforms) {
  const auto error_of = [](const std::string& guest, ErrorCode code = ErrorCode::kInvalidArgument) {
    const std::string path = "config.containerd.runtimes.a.guest_platform";
    const std::string message = ErrorOf(
        Status(R"({"name":"a"})", R"("runtimes":{"a":{"guest_platform":)" + guest + "}}"), code);
    return message.starts_with(path) ? message.substr(path.size()) : message;
  };
  BOOST_TEST(error_of("[]") == ": expected an object, got an array");
  BOOST_TEST(error_of(R"({"OS":1})") == ".OS: expected a string, got a number");
  BOOST_TEST(error_of(R"({"OSFeatures":"a"})") == ".OSFeatures: expected an array, got a string");
  BOOST_TEST(error_of(R"({"OS":"linux","os":"linux"})") == ".os: this field is there twice");
  BOOST_TEST(error_of(R"({"OSVersion":"","os.version":""})") ==
             R"(["os.version"]: this field is there twice)");
  BOOST_TEST(error_of(R"({"OS":"linux"})") == ": a guest platform needs an OS and an architecture");
  BOOST_TEST(error_of(R"({"OSVersion":"10.0.17763"})") ==
             ": a guest platform needs an OS and an architecture");
  const std::string long_field(kMaxPlatformFieldBytes + 1, 'x');
  error_of(R"({"OS":")" + long_field + "\"}", ErrorCode::kLimitExceeded);
  error_of(R"({"OSFeatures":[")" + long_field + "\"]}", ErrorCode::kLimitExceeded);
  BOOST_TEST(
      ErrorOf(Status(R"({"name":"a"})",
                     R"("runtimes":{"a":{"guest_platform":{},"guestPlatform":{}}})")) ==
      R"(config.containerd.runtimes.a.guestPlatform: this field is there as "guest_platform", too)");
}

BOOST_AUTO_TEST_CASE(handlers_listed_twice) {
  BOOST_TEST(ErrorOf(Status(R"({"name":"kata"},{"name":"a"},{"name":"kata"})")) ==
             "runtime handler \"kata\" is listed twice");
  BOOST_TEST(
      ErrorOf(Status(R"({"name":"kata"},{"name":"kata"},{})", R"("defaultRuntimeName":"kata")")) ==
      "runtime handler \"kata\" is listed twice");
  for (const std::string containerd : {"", R"("defaultRuntimeName":"kata")"}) {
    BOOST_TEST(ErrorOf(Status(R"({"name":"kata"},{},{"name":""})", containerd)) ==
               "runtimeHandlers: the nameless runtime handler is listed twice");
  }
}

BOOST_AUTO_TEST_CASE(malformed_names) {
  for (const std::string name : {"a/b", "a b", " ", "a\\n", "\\u0001"}) {
    BOOST_TEST(ErrorOf(Status(R"({"name":")" + name + "\"}")).starts_with("runtime handler \""),
               name);
  }
  BOOST_TEST(
      Decode(Status("{\"name\":\"" + std::string(kMaxRuntimeHandlerBytes, 'n') + "\"}")).size() ==
      1u);
  ErrorOf(Status("{\"name\":\"" + std::string(kMaxRuntimeHandlerBytes + 1, 'n') + "\"}"),
          ErrorCode::kLimitExceeded);
}

BOOST_AUTO_TEST_CASE(what_is_no_status) {
  BOOST_TEST(ErrorOf("") == "empty document");
  BOOST_TEST(ErrorOf("[]") == "document: expected an object, got an array");
  BOOST_TEST(ErrorOf("{}") == R"(document: field "runtimeHandlers" is missing)");
  BOOST_TEST(ErrorOf(R"({"runtimeHandlers":null})") ==
             "runtimeHandlers: expected an array, got null");
  BOOST_TEST(ErrorOf(R"({"RuntimeHandlers":[]})") ==
             R"(RuntimeHandlers: expected this field to be spelled "runtimeHandlers")");
  BOOST_TEST(ErrorOf(R"({"runtimeHandlers":[],"runtimeHandlers":[]})") ==
             R"(document: key "runtimeHandlers" is there twice)");
  BOOST_TEST(ErrorOf(Status("null")) == "runtimeHandlers[0]: expected an object, got null");
  BOOST_TEST(ErrorOf(Status(R"({"name":1})")) ==
             "runtimeHandlers[0].name: expected a string, got a number");
  BOOST_TEST(ErrorOf(Status(R"({"Name":"a"})")) ==
             R"(runtimeHandlers[0].Name: expected this field to be spelled "name")");
  BOOST_TEST(ErrorOf(Status(R"({"features":[]})")) ==
             "runtimeHandlers[0].features: expected an object, got an array");
  BOOST_TEST(ErrorOf(Status(R"({"features":{"user_namespaces":1}})")) ==
             "runtimeHandlers[0].features.user_namespaces: expected a boolean, got a number");
  BOOST_TEST(ErrorOf(Status("", R"("defaultRuntimeName":1)")) ==
             "config.containerd.defaultRuntimeName: expected a string, got a number");
  BOOST_TEST(ErrorOf(Status("", R"("runtimes":[])")) ==
             "config.containerd.runtimes: expected an object, got an array");
}

// Other runtimes say other things there.
BOOST_AUTO_TEST_CASE(config_that_is_not_containerds_passes) {
  for (const std::string config :
       {"null", "\"text\"", "{}", R"({"sandboxImage":"registry.k8s.io/pause:3.10"})",
        R"({"containerd":null})"}) {
    BOOST_TEST(Decode(R"({"runtimeHandlers":[{"name":"crun"}],"config":)" + config + "}").size() ==
               1u);
  }
}

BOOST_AUTO_TEST_CASE(limits) {
  std::string many = "{}";
  for (std::size_t i = 0; i < kMaxRuntimeHandlers; ++i) {
    many += R"(,{"name":"h)" + std::to_string(i) + "\"}";
  }
  // With the nameless one merged there are as many as may be.
  BOOST_TEST(Decode(Status(many, R"("defaultRuntimeName":"h7")")).size() == kMaxRuntimeHandlers);
  BOOST_TEST(ErrorOf(Status(many), ErrorCode::kLimitExceeded) ==
             "the list has 1025 runtime handlers, and 1024 are allowed");
  BOOST_TEST(ErrorOf(Status(many + R"(,{"name":"x"})"), ErrorCode::kLimitExceeded) ==
             "runtimeHandlers: has 1026 runtime handlers, above the 1025 allowed");
}

BOOST_AUTO_TEST_CASE(every_prefix_and_flipped_byte_ends_well) {
  for (std::size_t at = 0; at < kContainerd.size(); ++at) {
    BOOST_TEST(!DecodeRuntimeStatus(std::string_view(kContainerd).substr(0, at)));
    std::string flipped = kContainerd;
    for (const char bit : {'\x01', '\x20', '\x80'}) {
      flipped[at] = static_cast<char>(kContainerd[at] ^ bit);
      if (const auto handlers = DecodeRuntimeStatus(flipped)) BOOST_TEST(handlers->size() <= 3u);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
