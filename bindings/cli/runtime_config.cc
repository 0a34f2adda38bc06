#include "bindings/cli/runtime_config.h"

#include <fmt/core.h>

#include <algorithm>

#include "store/base/platform.h"
#include "store/base/toml_document.h"
#include "store/base/try.h"
#include "store/maintenance/for_the_command.h"
#include "waybill/limits.h"

namespace waybill::cli {
namespace {

constexpr std::string_view kRuntimePlugins[] = {"io.containerd.grpc.v1.cri",
                                                "io.containerd.cri.v1.runtime"};
constexpr std::string_view kImagesPlugin = "io.containerd.cri.v1.images";

Error Refused(const toml::node& node, std::string_view what,
              ErrorCode code = ErrorCode::kInvalidArgument) {
  return internal::AboutLine(node.source(), what, code);
}

// The table `name` in `parent`; null if it is missing.
Result<const toml::table*> TableIn(const toml::table* parent, std::string_view name) {
  const toml::node* node = parent == nullptr ? nullptr : parent->get(name);
  if (node == nullptr) return nullptr;
  if (const toml::table* table = node->as_table()) return table;
  return Refused(*node, fmt::format("{} is not a table", name));
}

Result<const toml::table*> TableAt(const toml::table& root,
                                   std::initializer_list<std::string_view> path) {
  Result<const toml::table*> table = &root;
  for (const std::string_view name : path) {
    if (table) table = TableIn(*table, name);
  }
  return table;
}

Result<void> ReadText(const toml::node& node, std::string_view what, std::size_t most,
                      std::string& out) {
  const auto* text = node.as_string();
  if (text == nullptr) return Refused(node, fmt::format("{} is not a string", what));
  if (text->get().size() > most) {
    return Refused(node, fmt::format("{} has more than {} bytes", what, most),
                   ErrorCode::kLimitExceeded);
  }
  out = text->get();
  return {};
}

Result<void> ReadFeatures(const toml::node& node, std::vector<std::string>& out) {
  const toml::array* array = node.as_array();
  if (array == nullptr) return Refused(node, "the OS features are not an array");
  if (array->size() > kMaxOsFeatures) {
    return Refused(node, fmt::format("more than {} OS features", kMaxOsFeatures),
                   ErrorCode::kLimitExceeded);
  }
  for (const toml::node& feature : *array) {
    TRY(ReadText(feature, "an OS feature", kMaxPlatformFieldBytes, out.emplace_back()));
  }
  return {};
}

Result<std::optional<Platform>> ReadGuestPlatform(const toml::table& table) {
  internal::GuestPlatformFields fields;
  for (const auto& [key, node] : table) {
    const auto target = fields.Find(key.str());
    if (target.repeated) return Refused(node, fmt::format("{} is there twice", key.str()));
    if (target.text != nullptr) {
      TRY(ReadText(node, key.str(), kMaxPlatformFieldBytes, *target.text));

    } else if (target.list != nullptr) {
      TRY(ReadFeatures(node, *target.list));
    }
  }
  if (fields.is_unset()) return std::nullopt;
  if (!fields.is_complete()) return Refused(table, fields.kIncomplete);
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
  for (bool first = true; first || !options.empty(); first = false) {
    const std::size_t plus = options.find('+');
    const std::string part = options.substr(0, plus);
    options.erase(0, plus == std::string::npos ? plus : plus + 1);
    if (first) {
      platform->os_version = part;
    } else if (!part.empty()) {
      platform->os_features.push_back(part);
    }
  }
  if (platform->os_features.size() > kMaxOsFeatures) {
    return Refused(node, fmt::format("more than {} OS features", kMaxOsFeatures),
                   ErrorCode::kLimitExceeded);
  }
  return NormalisePlatform(*std::move(platform));
}

void SortByName(std::vector<RuntimeHandler>& handlers) {
  std::sort(handlers.begin(), handlers.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
}

RuntimeHandler* Find(std::vector<RuntimeHandler>& handlers, std::string_view name) {
  const auto found = std::find_if(handlers.begin(), handlers.end(), [&](const auto& handler) {
    return handler.name == name && !name.empty();
  });
  return found == handlers.end() ? nullptr : &*found;
}

Result<void> SetDefault(const toml::node& node, std::vector<RuntimeHandler>& handlers) {
  std::string name;
  TRY(ReadText(node, "default_runtime_name", kMaxRuntimeHandlerBytes, name));
  if (name.empty()) return {};
  const auto marked = std::find_if(handlers.begin(), handlers.end(),
                                   [](const auto& handler) { return handler.is_default; });
  if (marked != handlers.end() && !marked->name.empty()) {
    if (marked->name == name) return {};
    Error error = Refused(
        node, fmt::format("the default handler is {} here, and {} elsewhere", name, marked->name));
    error.hint = "if the file was changed, restart the runtime and ask for its status again";
    return error;
  }
  if (RuntimeHandler* named = Find(handlers, name)) {
    named->is_default = true;
    if (marked != handlers.end()) handlers.erase(marked);
  } else if (marked != handlers.end()) {
    marked->name = name;
    SortByName(handlers);
  }
  return {};
}

Result<void> SetGuest(const toml::node& node, std::optional<Platform> guest,
                      RuntimeHandler& handler) {
  if (!guest) return {};
  if (handler.guest_platform && *handler.guest_platform != *guest) {
    return Refused(
        node, fmt::format("the guest platform of {} is {} here, and {} elsewhere", handler.name,
                          FormatPlatform(*guest), FormatPlatform(*handler.guest_platform)));
  }
  handler.guest_platform = std::move(guest);
  return {};
}

// `runtimes` has a table for each handler. Calls `read` for those of known handlers.
template <typename Read>
Result<void> ForEachKnown(const toml::table* runtimes, std::vector<RuntimeHandler>& handlers,
                          const Read& read) {
  if (runtimes == nullptr) return {};
  for (const auto& [name, node] : *runtimes) {
    RuntimeHandler* handler = Find(handlers, name.str());
    if (handler == nullptr) continue;
    const toml::table* table = node.as_table();
    if (table == nullptr) return Refused(node, fmt::format("{} is not a table", name.str()));
    TRY(read(*table, *handler));
  }
  return {};
}

Result<void> MergeRuntimes(const toml::table& root, std::string_view plugin,
                           std::vector<RuntimeHandler>& handlers) {
  const auto containerd = TRY(TableAt(root, {"plugins", plugin, "containerd"}));
  if (containerd == nullptr) return {};
  if (const toml::node* name = containerd->get("default_runtime_name")) {
    TRY(SetDefault(*name, handlers));
  }
  const auto runtimes = TRY(TableIn(containerd, "runtimes"));
  return ForEachKnown(runtimes, handlers,
                      [](const toml::table& runtime, RuntimeHandler& handler) -> Result<void> {
                        const auto table = TRY(TableIn(&runtime, "guest_platform"));
                        if (table == nullptr) return {};
                        auto guest = TRY(ReadGuestPlatform(*table));
                        return SetGuest(*table, std::move(guest), handler);
                      });
}

Result<void> MergePlatforms(const toml::table& root, std::vector<RuntimeHandler>& handlers) {
  const auto platforms = TRY(TableAt(root, {"plugins", kImagesPlugin, "runtime_platforms"}));
  return ForEachKnown(platforms, handlers,
                      [](const toml::table& runtime, RuntimeHandler& handler) -> Result<void> {
                        const toml::node* text = runtime.get("platform");
                        if (text == nullptr) return {};
                        auto guest = TRY(ReadSpecifier(*text));
                        return SetGuest(*text, std::move(guest), handler);
                      });
}

}  // namespace

Result<void> MergeRuntimeConfig(std::string_view toml, std::vector<RuntimeHandler>& handlers) {
  const auto root = TRY(internal::ReadToml(toml, kMaxRuntimeConfigBytes));
  std::vector<RuntimeHandler> merged = handlers;
  for (const std::string_view plugin : kRuntimePlugins) {
    TRY(MergeRuntimes(root, plugin, merged));
  }
  TRY(MergePlatforms(root, merged));
  handlers = std::move(merged);
  return {};
}

}  // namespace waybill::cli
