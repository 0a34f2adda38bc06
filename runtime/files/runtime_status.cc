// The runtime's handlers, as `crictl info` prints them: CRI's StatusResponse, and under "config"
// containerd's own configuration.
//
//   {"runtimeHandlers":[
//      {"features":{"user_namespaces":true}},                      nameless: the default handler
//      {"name":"runc","features":{"user_namespaces":true}}],       or "userNamespaces"
//    "config":{"containerd":{
//      "defaultRuntimeName":"runc",                                or "default_runtime_name"
//      "runtimes":{"hyperv":{
//        "guest_platform":{"Architecture":"amd64","OS":"windows",  or "guestPlatform"
//                          "OSVersion":"10.0.17763","OSFeatures":[],"Variant":""}}}}}}
//
// Its configuration file has what its own list of handlers may lack. In TOML:
//
//   [plugins."io.containerd.cri.v1.runtime".containerd]        version 3 of the file;
//     default_runtime_name = "runc"                            in 2, "io.containerd.grpc.v1.cri"
//   [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.hyperv.guest_platform]
//     OS = "windows"
//   [plugins."io.containerd.cri.v1.images".runtime_platforms.hyperv]
//     platform = "windows(10.0.17763)/amd64"                   the same, as containerd 2 has it

#include <algorithm>
#include <utility>

#include "runtime/files/config_fields.h"
#include "runtime/files/documents.h"
#include "store/base/ascii.h"
#include "store/base/caught.h"
#include "store/base/described.h"
#include "store/base/platform.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "store/runtimes/runtime_handlers.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {
namespace {

using internal::ConfigFields;
using internal::Json;

constexpr std::string_view kRuntimePlugins[] = {"io.containerd.grpc.v1.cri",
                                                "io.containerd.cri.v1.runtime"};
constexpr std::string_view kImagesPlugin = "io.containerd.cri.v1.images";

struct HandlerStatus : RuntimeHandler {
  void Describe(auto& v) const {
    v.Optional("name", name, {.bytes = kMaxRuntimeHandlerBytes});
    v.OptionalWithin("features", [&](auto& features) {
      features.Optional("user_namespaces", user_namespaces);
      features.Also("userNamespaces", user_namespaces);
    });
  }
};

struct RuntimeStatus {
  std::vector<HandlerStatus> handlers = {};
  internal::JsonText config = {};

  void Describe(auto& v) const {
    // One more than a node may have: the nameless handler may be merged with a named one.
    v("runtimeHandlers", handlers, {.count = kMaxRuntimeHandlers + 1});
    v.Optional("config", config);
  }
};

// --- Guest platforms -----------------------------------------------------------------------------

// Field names are compared by their letters alone: KEP-4216 prints those of Go's struct
// ("OSVersion"), JSON those of an image index ("os.version"), TOML others ("os_version"). Other
// fields are ignored.
Platform GuestPlatformOf(const ConfigFields& fields) {
  Platform platform;
  std::string* const texts[] = {&platform.architecture, &platform.os, &platform.os_version,
                                &platform.variant};
  constexpr std::string_view kTexts[] = {"architecture", "os", "osversion", "variant"};
  constexpr std::string_view kList = "osfeatures";
  const auto take = [&](const Json& node, const std::string& name, std::string& into) {
    if (!node.is_string()) return fields.Refuse(name + " is not a string");
    into = node;
  };
  std::vector<std::string> seen;
  for (const auto& [name, node] : fields.table()->items()) {
    std::string letters = internal::ToLower(name);
    std::erase_if(letters, [](char c) { return c == '.' || c == '_'; });
    const auto* const found = std::ranges::find(kTexts, letters);
    const bool is_list = letters == kList;
    if (node.is_null() || (!is_list && found == std::end(kTexts))) continue;
    if (std::ranges::count(seen, letters) != 0) fields.Refuse(name + " is there twice");
    seen.push_back(letters);
    if (!is_list) {
      take(node, name, *texts[found - std::begin(kTexts)]);
    } else if (node.is_array()) {
      for (const Json& one : node) take(one, name, platform.os_features.emplace_back());
    } else {
      fields.Refuse(name + " is not an array");
    }
  }
  const bool is_complete = !platform.os.empty() && !platform.architecture.empty();
  // Every field is empty, as containerd prints one that is not set.
  if (!is_complete && platform != Platform{}) {
    fields.Refuse("a guest platform needs an OS and an architecture");
  }
  return platform;
}

// Containerd's OS[(VERSION[+FEATURE…])]/ARCHITECTURE[/VARIANT].
Result<Platform> ReadSpecifier(std::string text) {
  if (text.empty()) return Platform();
  std::string options;
  if (const std::size_t open = text.find('('); open != std::string::npos) {
    const std::size_t close = text.find(')', open);
    if (close == std::string::npos) {
      return Error{ErrorCode::kInvalidArgument, "not a platform: its '(' is not closed", {}};
    }
    options = text.substr(open + 1, close - open - 1);
    text.erase(open, close - open + 1);
  }
  auto platform = TRY(ParsePlatform(text));
  platform.os_version = options.substr(0, options.find('+'));
  options.erase(0, platform.os_version.size());
  while (!options.empty()) {
    std::string feature = options.substr(1, options.find('+', 1) - 1);
    options.erase(0, feature.size() + 1);
    if (!feature.empty()) platform.os_features.push_back(std::move(feature));
  }
  return platform;
}

// --- Handlers ------------------------------------------------------------------------------------

void SortByName(std::vector<RuntimeHandler>& handlers) {
  std::ranges::sort(handlers, {}, &RuntimeHandler::name);
}

// `handlers` are sorted by name, and stay so.
void MarkDefault(std::vector<RuntimeHandler>& handlers, const std::string& default_name) {
  const bool nameless = !handlers.empty() && handlers.front().name.empty();
  const auto named = std::ranges::find(handlers, default_name, &RuntimeHandler::name);
  if (!default_name.empty() && named != handlers.end()) {
    named->is_default = true;
    if (nameless) handlers.erase(handlers.begin());
  } else if (nameless) {
    handlers.front().is_default = true;
    handlers.front().name = default_name;
    SortByName(handlers);
  }
}

// Takes over what containerd's configuration says of handlers: in its own answer, or its file.
class ByConfiguration {
 public:
  explicit ByConfiguration(std::vector<RuntimeHandler>& handlers) : handlers_(handlers) {}

  // The table `containerd` of its configuration.
  void Take(const ConfigFields& containerd) {
    if (const std::string name = containerd.Text("default_runtime_name"); !name.empty()) {
      const auto other = std::ranges::find_if(handlers_, [&](const RuntimeHandler& handler) {
        return handler.is_default && !handler.name.empty() && handler.name != name;
      });
      if (other == handlers_.end()) {
        MarkDefault(handlers_, name);
      } else {
        Contradicts(containerd, "the default handler is " + name + " here, and " + other->name);
      }
    }
    for (const auto& [name, runtime] : containerd.Tables("runtimes")) {
      if (!IsServed(name)) continue;
      const ConfigFields guest = runtime.Table("guest_platform");
      if (guest.table() != nullptr) SetGuest(name, GuestPlatformOf(guest), runtime);
    }
  }
  // The table of the plugin for images.
  void TakePlatforms(const ConfigFields& images) {
    for (const auto& [name, runtime] : images.Tables("runtime_platforms")) {
      if (!IsServed(name)) continue;
      const auto guest = ReadSpecifier(runtime.Text("platform"));
      if (!guest) runtime.Refuse(guest.error().message);
      if (guest) SetGuest(name, *guest, runtime);
    }
  }
  // What is wrong with what was taken.
  Result<void> End(const ConfigFields::Document& document) const {
    if (!document.problems.empty()) {
      return Error{ErrorCode::kInvalidArgument, document.problems.front(), hint_};
    }
    return internal::CheckRuntimeHandlers(handlers_);
  }

 private:
  // The runtime knows what it serves: others in its configuration are ignored.
  bool IsServed(const std::string& name) const {
    return !name.empty() && std::ranges::count(handlers_, name, &RuntimeHandler::name) != 0;
  }

  void SetGuest(const std::string& name, Platform guest, const ConfigFields& runtime) {
    if (guest == Platform{}) return;
    guest = NormalisePlatform(std::move(guest));
    auto& its = std::ranges::find(handlers_, name, &RuntimeHandler::name)->guest_platform;
    if (its && *its != guest) {
      return Contradicts(runtime, "the guest platform of " + name + " is " + FormatPlatform(guest) +
                                      " here, and " + FormatPlatform(*its));
    }
    its = std::move(guest);
  }

  void Contradicts(const ConfigFields& table, const std::string& what) {
    table.Refuse(what + " elsewhere");
    hint_ = "if the file was changed, restart the runtime and ask for its status again";
  }

  std::vector<RuntimeHandler>& handlers_;
  std::string hint_ = {};
};

}  // namespace

Result<std::vector<RuntimeHandler>> DecodeRuntimeStatus(std::string_view json) try {
  RuntimeStatus status;
  if (auto read = internal::ReadForeign(json, kMaxDocumentBytes, status); !read) {
    if (read.error().message.starts_with("runtimeHandlers: it is missing")) {
      read.error().hint =
          "a list of handlers is what `crictl info` prints of a runtime that has it, like "
          "containerd from version 2.0 on";
    }
    return read.error();
  }
  std::vector<RuntimeHandler> handlers(status.handlers.begin(), status.handlers.end());
  SortByName(handlers);
  if (handlers.size() > 1 && handlers[1].name.empty()) {
    return internal::WrongAt("runtimeHandlers", "the nameless runtime handler is listed twice");
  }
  // Other runtimes may put anything there.
  const Json config = internal::ParseJson(status.config.text);
  ConfigFields::Document document = {.is_answer = true};
  ByConfiguration said(handlers);
  said.Take(ConfigFields(config.is_object() ? &config : nullptr, document).Table("containerd"));
  // The nameless handler is the default one, whatever its name.
  MarkDefault(handlers, "");
  if (const auto end = said.End(document); !end) {
    return document.problems.empty() ? end.error()
                                     : internal::Inside("config.containerd", end.error());
  }
  return handlers;
} catch (...) {
  return internal::Caught();
}

Result<void> MergeRuntimeConfig(std::string_view toml, std::vector<RuntimeHandler>& handlers) {
  const Json table = TRY(internal::JsonOfToml(toml));
  ConfigFields::Document document;
  const ConfigFields plugins = ConfigFields(&table, document).Table("plugins");
  std::vector<RuntimeHandler> merged = handlers;
  ByConfiguration said(merged);
  for (const std::string_view plugin : kRuntimePlugins) {
    said.Take(plugins.Table(plugin).Table("containerd"));
  }
  said.TakePlatforms(plugins.Table(kImagesPlugin));
  TRY(said.End(document));
  handlers = std::move(merged);
  return {};
}

}  // namespace waybill
