#include "runtime/files/containerd_config.h"

#include <optional>
#include <span>
#include <utility>

#include "runtime/files/toml_fields.h"
#include "store/base/ascii.h"
#include "store/base/json_document.h"
#include "store/base/try.h"
#include "waybill/limits.h"

namespace waybill::internal {
namespace {

// From version 3 of the file on, the last two alone count.
constexpr std::string_view kPlugins[] = {"cri", "io.containerd.grpc.v1.cri",
                                         "io.containerd.cri.v1.images",
                                         "io.containerd.cri.v1.runtime"};
constexpr std::size_t kOlderPlugins = 2;

bool IsShown(std::string_view header) {
  const std::string name = ToLower(header);
  return name == "authorization" || name == "cookie";
}

Result<std::string> JsonText(JsonValue object, std::string_view name) {
  std::string text;
  TRY(ReadStringField(object, name, kMaxPullConfigBytes, text));
  return text;
}

// The members of an object; none where it is missing or null.
Result<std::vector<JsonValue>> MembersOf(JsonValue object, std::string_view name) {
  std::vector<JsonValue> members;
  const auto value = TRY(FindField(object, name));
  if (!value) return members;
  TRY(CheckObject(*value));
  for (const JsonValue member : value->members()) members.push_back(member);
  return members;
}

Result<void> ReadHandlers(JsonValue containerd, ContainerdConfig& config) {
  TRY(CheckObject(containerd));
  config.default_handler = TRY(JsonText(containerd, "defaultRuntimeName"));
  config.snapshotter = TRY(JsonText(containerd, "snapshotter"));
  const auto runtimes = TRY(MembersOf(containerd, "runtimes"));
  for (const JsonValue runtime : runtimes) {
    TRY(CheckObject(runtime));
    ContainerdHandler& handler = config.handlers[std::string(runtime.key())];
    handler.type = TRY(JsonText(runtime, "runtimeType"));
    handler.snapshotter = TRY(JsonText(runtime, "snapshotter"));
    const auto options = TRY(FindField(runtime, "options"));
    if (!options || options->is_null()) continue;
    TRY(CheckObject(*options));
    handler.kata_config = TRY(JsonText(*options, "ConfigPath"));
  }
  return {};
}

Result<void> ReadRegistry(JsonValue registry, ContainerdConfig& config) {
  TRY(CheckObject(registry));
  auto config_path = TRY(JsonText(registry, "configPath"));
  if (!config_path.empty()) config.config_path.insert(std::move(config_path));
  const auto mirrors = TRY(MembersOf(registry, "mirrors"));
  for (const JsonValue mirror : mirrors) {
    TRY(CheckObject(mirror));
    RegistryEndpoints endpoints = {.registry = std::string(mirror.key()),
                                   .where = "registry.mirrors of containerd's configuration"};
    const auto list = TRY(FindField(mirror, "endpoint"));
    if (list) TRY(ReadStrings(*list, kMaxPullConfigBytes, endpoints.endpoints));
    config.mirrors.push_back(std::move(endpoints));
  }
  const auto configs = TRY(MembersOf(registry, "configs"));
  for (const JsonValue one : configs) {
    TRY(CheckObject(one));
    const auto tls = TRY(FindField(one, "tls"));
    if (!tls || tls->is_null()) continue;
    TRY(CheckObject(*tls));
    const auto certificate = TRY(JsonText(*tls, "certFile"));
    if (!certificate.empty()) config.own_credentials.emplace_back(one.key());
  }
  const auto headers = TRY(MembersOf(registry, "headers"));
  for (const JsonValue header : headers) {
    if (IsShown(header.key())) config.own_credentials.emplace_back("*");
  }
  return {};
}

// Each table in a table of tables.
Result<std::vector<std::pair<std::string, const toml::table*>>> TablesIn(const toml::table* parent,
                                                                         std::string_view name) {
  std::vector<std::pair<std::string, const toml::table*>> tables;
  const toml::table* table = TRY(TomlTable(parent, name));
  if (table == nullptr) return tables;
  for (const auto& [key, node] : *table) {
    const toml::table* value = node.as_table();
    if (value == nullptr) {
      return AboutLine(node.source(), std::string(key.str()) + " is not a table");
    }
    tables.emplace_back(key.str(), value);
  }
  return tables;
}

// Where `text` says something, it counts.
void Replace(std::string& value, std::string text) {
  if (!text.empty()) value = std::move(text);
}

Result<void> ReadRegistryTable(const toml::table& registry, const std::string& place,
                               ContainerdConfig& config) {
  auto config_path = TRY(TomlText(&registry, "config_path"));
  if (!config_path.empty()) config.config_path.insert(std::move(config_path));
  const auto mirrors = TRY(TablesIn(&registry, "mirrors"));
  for (const auto& [name, table] : mirrors) {
    auto endpoints = TRY(TomlTexts(table, "endpoint"));
    config.mirrors.push_back(
        {.registry = name,
         .endpoints = std::move(endpoints),
         .where = place + ", line " + std::to_string(table->source().begin.line)});
  }
  const auto configs = TRY(TablesIn(&registry, "configs"));
  for (const auto& [name, table] : configs) {
    const toml::table* tls = TRY(TomlTable(table, "tls"));
    const auto certificate = TRY(TomlText(tls, "cert_file"));
    if (!certificate.empty()) config.own_credentials.push_back(name);
  }
  if (const toml::table* headers = TRY(TomlTable(&registry, "headers"))) {
    for (const auto& [name, value] : *headers) {
      if (IsShown(name.str())) config.own_credentials.emplace_back("*");
    }
  }
  return {};
}

Result<void> ReadPlugin(const toml::table& plugin, const std::string& place,
                        ContainerdConfig& config) {
  if (const toml::table* registry = TRY(TomlTable(&plugin, "registry"))) {
    TRY(ReadRegistryTable(*registry, place, config));
  }
  auto snapshotter = TRY(TomlText(&plugin, "snapshotter"));
  Replace(config.snapshotter, std::move(snapshotter));
  for (const std::string_view name : {"runtime_platforms", "runtime_platform"}) {
    const auto platforms = TRY(TablesIn(&plugin, name));
    for (const auto& [handler, table] : platforms) {
      auto its_own = TRY(TomlText(table, "snapshotter"));
      Replace(config.handlers[handler].snapshotter, std::move(its_own));
    }
  }
  const toml::table* containerd = TRY(TomlTable(&plugin, "containerd"));
  auto default_handler = TRY(TomlText(containerd, "default_runtime_name"));
  Replace(config.default_handler, std::move(default_handler));
  auto older = TRY(TomlText(containerd, "snapshotter"));
  Replace(config.snapshotter, std::move(older));
  const auto runtimes = TRY(TablesIn(containerd, "runtimes"));
  for (const auto& [name, table] : runtimes) {
    ContainerdHandler& handler = config.handlers[name];
    auto type = TRY(TomlText(table, "runtime_type"));
    Replace(handler.type, std::move(type));
    auto its_own = TRY(TomlText(table, "snapshotter"));
    Replace(handler.snapshotter, std::move(its_own));
    const toml::table* options = TRY(TomlTable(table, "options"));
    auto kata_config = TRY(TomlText(options, "ConfigPath"));
    Replace(handler.kata_config, std::move(kata_config));
  }
  return {};
}

}  // namespace

std::string ContainerdSocket(std::string_view address) {
  if (address.starts_with("unix://")) address.remove_prefix(7);
  if (address.starts_with("/var/run/")) address.remove_prefix(4);
  return std::string(address);
}

Result<void> ReadContainerdStatus(std::string_view json, ContainerdConfig& config) {
  // Registries may have passwords: no message quotes anything.
  const auto document = TRY(JsonDocument::ParseSecret(json, kMaxDocumentBytes, {}));
  TRY(CheckObject(document.root()));
  const auto own = document.root().Find("config");
  if (!own) return {};
  TRY(CheckObject(*own));
  const auto socket = TRY(JsonText(*own, "containerdEndpoint"));
  config.socket = ContainerdSocket(socket);
  if (const auto containerd = own->Find("containerd")) TRY(ReadHandlers(*containerd, config));
  if (const auto registry = own->Find("registry")) {
    TRY(ReadRegistry(*registry, config));
    config.registry_known = true;
  }
  return {};
}

Result<void> ReadContainerdToml(std::string_view text, const std::string& place,
                                ContainerdConfig& config, std::vector<std::string>& imports) {
  const toml::table root = TRY(ReadToml(text, kMaxPullConfigBytes));
  const toml::table* grpc = TRY(TomlTable(&root, "grpc"));
  const auto socket = TRY(TomlText(grpc, "address"));
  if (!socket.empty()) config.socket = ContainerdSocket(socket);
  const toml::table* plugins = TRY(TomlTable(&root, "plugins"));
  std::span<const std::string_view> names = kPlugins;
  if (const toml::node* version = TRY(TomlField(root, "version"))) {
    const auto* number = version->as_integer();
    if (number == nullptr) return AboutLine(version->source(), "version is not a number");
    if (number->get() >= 3) names = names.subspan(kOlderPlugins);
  }
  for (const std::string_view name : names) {
    const toml::table* plugin = TRY(TomlTable(plugins, name));
    if (plugin != nullptr) TRY(ReadPlugin(*plugin, place, config));
  }
  imports = TRY(TomlTexts(&root, "imports"));
  return {};
}

}  // namespace waybill::internal
