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
#include <array>
#include <map>
#include <utility>

#include "runtime/files/config_fields.h"
#include "runtime/files/documents.h"
#include "store/base/caught.h"
#include "store/base/described.h"
#include "store/base/platform.h"
#include "store/base/quote.h"
#include "store/base/toml_document.h"
#include "store/base/try.h"
#include "store/runtimes/runtime_handlers.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {
namespace {

using internal::ConfigFields;
using internal::JsonText;
using internal::ReadForeign;
using internal::WrongAt;

constexpr std::string_view kRuntimePlugins[] = {"io.containerd.grpc.v1.cri",
                                                "io.containerd.cri.v1.runtime"};
constexpr std::string_view kImagesPlugin = "io.containerd.cri.v1.images";

// A guest platform as runtimes write it, in JSON or TOML. Field names are compared by their letters
// alone: KEP-4216 prints those of Go's struct ("OSVersion"), JSON those of an image index
// ("os.version"), TOML others ("os_version").
class GuestPlatformFields {
 public:
  // Where to put a field's value: `text` or `list`. Neither for an unknown field, which is ignored.
  struct Target {
    std::string* text = nullptr;
    std::vector<std::string>* list = nullptr;
    bool repeated = false;  // the field occurred before, perhaps in another spelling
  };

  Target Find(std::string_view key) {
    const std::array<std::pair<std::string_view, Target>, 5> fields = {{
        {"architecture", {.text = &platform_.architecture}},
        {"os", {.text = &platform_.os}},
        {"osversion", {.text = &platform_.os_version}},
        {"variant", {.text = &platform_.variant}},
        {"osfeatures", {.list = &platform_.os_features}},
    }};
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].first != LettersOf(key)) continue;
      Target target = fields[i].second;
      target.repeated = std::exchange(seen_[i], true);
      return target;
    }
    return {};
  }

  // Every field is empty, as containerd prints an unset guest platform.
  bool is_unset() const { return platform_ == Platform{}; }
  bool is_complete() const { return !platform_.os.empty() && !platform_.architecture.empty(); }
  static constexpr std::string_view kIncomplete =
      "a guest platform needs an OS and an architecture";

  Platform Take() { return NormalisePlatform(std::move(platform_)); }

 private:
  static std::string LettersOf(std::string_view key) {
    std::string letters;
    for (const char c : key) {
      if (c == '.' || c == '_') continue;
      letters += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return letters;
  }

  Platform platform_;
  std::array<bool, 5> seen_{};
};

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
  JsonText config = {};

  void Describe(auto& v) const {
    // One more than a node may have: the nameless handler may be merged with a named one.
    v("runtimeHandlers", handlers, {.count = kMaxRuntimeHandlers + 1});
    v.Optional("config", config);
  }
};

struct ContainerdStatus {
  std::string default_name = {};
  std::map<std::string, JsonText> runtimes = {};

  void Describe(auto& v) const {
    v.Optional("defaultRuntimeName", default_name, {.bytes = kMaxRuntimeHandlerBytes});
    v.Also("default_runtime_name", default_name);
    v.Optional("runtimes", runtimes);
  }
};

struct RuntimeOfContainerd {
  std::map<std::string, JsonText> guest_platform = {};

  void Describe(auto& v) const {
    v.Optional("guest_platform", guest_platform);
    v.Also("guestPlatform", guest_platform);
  }
};

Result<void> ReadGuestPlatform(const std::map<std::string, JsonText>& read,
                               std::optional<Platform>& out) {
  constexpr internal::Bounds kBounds = {.bytes = kMaxPlatformFieldBytes, .count = kMaxOsFeatures};
  GuestPlatformFields fields;
  const auto read_field = [&](const std::string& key, const JsonText& json) -> Result<void> {
    const auto target = fields.Find(key);
    if (target.repeated) return WrongAt("guest_platform." + key, "this field is there twice");
    const auto read_as = [&](auto& value) -> Result<void> {
      const auto taken =
          ReadForeign(json.text, kMaxDocumentBytes, value, internal::Strangers::kGo, kBounds);
      if (taken) return {};
      return internal::Inside("guest_platform." + key, taken.error());
    };
    if (json.text == "null") return {};
    if (target.text != nullptr) return read_as(*target.text);
    return target.list != nullptr ? read_as(*target.list) : Result<void>();
  };
  for (const auto& [key, json] : read) TRY(read_field(key, json));
  if (fields.is_unset()) return {};
  if (!fields.is_complete()) return WrongAt("guest_platform", fields.kIncomplete);
  out = fields.Take();
  return {};
}

void SortByName(std::vector<RuntimeHandler>& handlers) {
  std::sort(handlers.begin(), handlers.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
}

Result<std::vector<RuntimeHandler>> HandlersOf(const RuntimeStatus& status) {
  std::vector<RuntimeHandler> handlers(status.handlers.begin(), status.handlers.end());
  SortByName(handlers);
  if (handlers.size() > 1 && handlers[1].name.empty()) {
    return WrongAt("runtimeHandlers", "the nameless runtime handler is listed twice");
  }
  return handlers;
}

// `handlers` are sorted by name, and stay so.
void MarkDefault(std::vector<RuntimeHandler>& handlers, const std::string& default_name) {
  const bool nameless = !handlers.empty() && handlers.front().name.empty();
  const auto named = std::find_if(handlers.begin(), handlers.end(), [&](const auto& handler) {
    return !default_name.empty() && handler.name == default_name;
  });
  if (named != handlers.end()) {
    named->is_default = true;
    if (nameless) handlers.erase(handlers.begin());
  } else if (nameless) {
    handlers.front().is_default = true;
    handlers.front().name = default_name;
    SortByName(handlers);
  }
}

// Of handlers that the runtime lists.
Result<void> ReadGuestPlatforms(const ContainerdStatus& containerd,
                                std::vector<RuntimeHandler>& handlers) {
  for (RuntimeHandler& handler : handlers) {
    const auto found = containerd.runtimes.find(handler.name);
    if (found == containerd.runtimes.end() || found->second.text == "null") continue;
    RuntimeOfContainerd runtime;
    auto read = ReadForeign(found->second.text, kMaxDocumentBytes, runtime);
    if (read) read = ReadGuestPlatform(runtime.guest_platform, handler.guest_platform);
    if (!read)
      return internal::Inside(
          "config.containerd.runtimes[" + internal::QuoteForMessage(handler.name) + "]",
          read.error());
  }
  return {};
}

// Other runtimes may put anything under "config".
Result<ContainerdStatus> ReadContainerd(std::string_view config) {
  ContainerdStatus containerd;
  if (!config.starts_with('{')) return containerd;
  std::map<std::string, JsonText> members;
  auto read = ReadForeign(config, kMaxDocumentBytes, members);
  const auto found = members.find("containerd");
  if (read && found != members.end() && found->second.text != "null") {
    read = ReadForeign(found->second.text, kMaxDocumentBytes, containerd);
  }
  if (!read) return internal::Inside("config.containerd", read.error());
  return containerd;
}

// --- containerd's file ---------------------------------------------------------------------------

Error Refused(const toml::node& node, const std::string& what,
              ErrorCode code = ErrorCode::kInvalidArgument) {
  return internal::AboutLine(node.source(), what, code);
}

Result<void> ReadText(const toml::node& node, const std::string& what, std::size_t most,
                      std::string& out) {
  const auto* text = node.as_string();
  if (text == nullptr) return Refused(node, what + " is not a string");
  if (text->get().size() > most) {
    return Refused(node, what + " has more than " + std::to_string(most) + " bytes",
                   ErrorCode::kLimitExceeded);
  }
  out = text->get();
  return {};
}

Error TooManyFeatures(const toml::node& node) {
  return Refused(node, "more than " + std::to_string(kMaxOsFeatures) + " OS features",
                 ErrorCode::kLimitExceeded);
}

Result<std::optional<Platform>> ReadGuestPlatform(const toml::table& table) {
  GuestPlatformFields fields;
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    const auto target = fields.Find(name);
    if (target.repeated) return Refused(node, name + " is there twice");
    if (target.text != nullptr) TRY(ReadText(node, name, kMaxPlatformFieldBytes, *target.text));
    if (target.list == nullptr) continue;
    const toml::array* features = node.as_array();
    if (features == nullptr) return Refused(node, "the OS features are not an array");
    if (features->size() > kMaxOsFeatures) return TooManyFeatures(node);
    for (const toml::node& feature : *features) {
      TRY(ReadText(feature, "an OS feature", kMaxPlatformFieldBytes, target.list->emplace_back()));
    }
  }
  if (fields.is_unset()) return std::nullopt;
  if (!fields.is_complete()) return Refused(table, std::string(fields.kIncomplete));
  return fields.Take();
}

// Containerd's OS[(VERSION[+FEATURE…])]/ARCHITECTURE[/VARIANT]; nullopt for "".
Result<std::optional<Platform>> ReadSpecifier(const toml::node& node) {
  std::string text;
  TRY(ReadText(node, "platform", kMaxPlatformFieldBytes, text));
  if (text.empty()) return std::nullopt;
  std::string options;
  if (const std::size_t open = text.find('('); open != std::string::npos) {
    const std::size_t close = text.find(')', open);
    if (close == std::string::npos) return Refused(node, "not a platform: its '(' is not closed");
    options = text.substr(open + 1, close - open - 1);
    text.erase(open, close - open + 1);
  }
  auto platform = ParsePlatform(text);
  if (!platform) return Refused(node, platform.error().message);
  platform->os_version = options.substr(0, options.find('+'));
  options.erase(0, platform->os_version.size());
  while (!options.empty()) {
    std::string feature = options.substr(1, options.find('+', 1) - 1);
    options.erase(0, feature.size() + 1);
    if (!feature.empty()) platform->os_features.push_back(std::move(feature));
  }
  if (platform->os_features.size() > kMaxOsFeatures) return TooManyFeatures(node);
  return NormalisePlatform(*std::move(platform));
}

Result<void> SetDefault(const toml::node& node, std::vector<RuntimeHandler>& handlers) {
  std::string name;
  TRY(ReadText(node, "default_runtime_name", kMaxRuntimeHandlerBytes, name));
  for (const RuntimeHandler& handler : handlers) {
    if (name.empty() || !handler.is_default || handler.name.empty() || handler.name == name)
      continue;
    Error error = Refused(
        node, "the default handler is " + name + " here, and " + handler.name + " elsewhere");
    error.hint = "if the file was changed, restart the runtime and ask for its status again";
    return error;
  }
  if (!name.empty()) MarkDefault(handlers, name);
  return {};
}

// `read` says what the node says of the handler's guest platform.
Result<void> SetGuest(const toml::node& node, Result<std::optional<Platform>> read,
                      RuntimeHandler& handler) {
  const auto guest = TRY(std::move(read));
  if (!guest) return {};
  if (handler.guest_platform && *handler.guest_platform != *guest) {
    return Refused(node, "the guest platform of " + handler.name + " is " + FormatPlatform(*guest) +
                             " here, and " + FormatPlatform(*handler.guest_platform) +
                             " elsewhere");
  }
  handler.guest_platform = guest;
  return {};
}

}  // namespace

Result<std::vector<RuntimeHandler>> DecodeRuntimeStatus(std::string_view json) try {
  RuntimeStatus status;
  if (auto read = ReadForeign(json, kMaxDocumentBytes, status); !read) {
    if (read.error().message.starts_with("runtimeHandlers: it is missing")) {
      read.error().hint =
          "a list of handlers is what `crictl info` prints of a runtime that has it, like "
          "containerd from version 2.0 on";
    }
    return read.error();
  }
  auto handlers = TRY(HandlersOf(status));
  const auto containerd = TRY(ReadContainerd(status.config.text));
  MarkDefault(handlers, containerd.default_name);
  TRY(ReadGuestPlatforms(containerd, handlers));
  TRY(internal::CheckRuntimeHandlers(handlers));
  return handlers;
} catch (...) {
  return internal::Caught();
}

Result<void> MergeRuntimeConfig(std::string_view toml, std::vector<RuntimeHandler>& handlers) {
  const toml::table table = TRY(internal::ReadToml(toml, kMaxPullConfigBytes));
  ConfigFields::Document document;
  const ConfigFields plugins = ConfigFields(&table, document).Table("plugins");
  std::vector<RuntimeHandler> merged = handlers;
  Result<void> sound;
  const auto keep = [&](Result<void> read) {
    if (sound) sound = std::move(read);
  };
  // The handler of that name, if the runtime serves it.
  const auto served = [&](const std::string& name, const auto& set) {
    for (RuntimeHandler& handler : merged) {
      if (!name.empty() && handler.name == name) set(handler);
    }
  };
  for (const std::string_view plugin : kRuntimePlugins) {
    const ConfigFields containerd = plugins.Table(plugin).Table("containerd");
    const toml::node* name = containerd.Node("default_runtime_name");
    if (name != nullptr) keep(SetDefault(*name, merged));
    containerd.Each("runtimes", [&](const std::string& of, const ConfigFields& runtime) {
      served(of, [&](RuntimeHandler& handler) {
        const toml::table* guest = runtime.Table("guest_platform").table();
        if (guest != nullptr) keep(SetGuest(*guest, ReadGuestPlatform(*guest), handler));
      });
    });
  }
  const ConfigFields images = plugins.Table(kImagesPlugin);
  images.Each("runtime_platforms", [&](const std::string& of, const ConfigFields& runtime) {
    served(of, [&](RuntimeHandler& handler) {
      const toml::node* text = runtime.Node("platform");
      if (text != nullptr) keep(SetGuest(*text, ReadSpecifier(*text), handler));
    });
  });
  TRY(sound);
  if (!document.problems.empty()) {
    return Error{ErrorCode::kInvalidArgument, document.problems.front(), {}};
  }
  handlers = std::move(merged);
  return {};
}

}  // namespace waybill
