#include "runtime/files/containerd_config.h"

#include <span>
#include <utility>

#include "runtime/files/config_fields.h"
#include "store/base/ascii.h"
#include "store/base/try.h"
#include "waybill/limits.h"

namespace waybill::internal {
namespace {

// From version 3 of the file on, the last two alone count.
constexpr std::string_view kPlugins[] = {"cri", "io.containerd.grpc.v1.cri",
                                         "io.containerd.cri.v1.images",
                                         "io.containerd.cri.v1.runtime"};
constexpr std::size_t kOlderPlugins = 2;

// /run/… of unix:///var/run/….
void ReadSocket(const ConfigFields& fields, std::string_view name, std::string& socket) {
  std::string address = fields.Text(name);
  if (address.starts_with("unix://")) address.erase(0, 7);
  if (address.starts_with("/var/run/")) address.erase(0, 4);
  if (!address.empty()) socket = std::move(address);
}

void ReadContainerd(const ConfigFields& containerd, ContainerdConfig& config) {
  containerd.Read("default_runtime_name", config.default_handler);
  containerd.Read("snapshotter", config.snapshotter);
  containerd.Each("runtimes", [&](const std::string& name, const ConfigFields& runtime) {
    ContainerdHandler& handler = config.handlers[name];
    runtime.Read("runtime_type", handler.type);
    runtime.Read("snapshotter", handler.snapshotter);
    runtime.Table("options").Read("ConfigPath", handler.kata_config);
  });
}

void ReadRegistry(const ConfigFields& registry, const std::string& place,
                  ContainerdConfig& config) {
  std::string config_path = registry.Text("config_path");
  if (!config_path.empty()) config.config_path.insert(std::move(config_path));
  registry.Each("mirrors", [&](const std::string& name, const ConfigFields& mirror) {
    config.mirrors.push_back({name, mirror.Texts("endpoint"), mirror.Where(place)});
  });
  registry.Each("configs", [&](const std::string& name, const ConfigFields& of_host) {
    const std::string certificate = of_host.Table("tls").Text("cert_file");
    if (!certificate.empty()) config.own_credentials.push_back(name);
  });
  for (const std::string& header : registry.Table("headers").Keys()) {
    if (ShowsCredentials(header)) config.own_credentials.emplace_back("*");
  }
}

void ReadPlugin(const ConfigFields& plugin, const std::string& place, ContainerdConfig& config) {
  ReadRegistry(plugin.Table("registry"), place, config);
  plugin.Read("snapshotter", config.snapshotter);
  for (const std::string_view name : {"runtime_platforms", "runtime_platform"}) {
    plugin.Each(name, [&](const std::string& handler, const ConfigFields& platform) {
      platform.Read("snapshotter", config.handlers[handler].snapshotter);
    });
  }
  ReadContainerd(plugin.Table("containerd"), config);
}

}  // namespace

bool ShowsCredentials(std::string_view header) {
  const std::string name = ToLower(header);
  return name == "authorization" || name == "cookie";
}

Result<void> ReadContainerdStatus(std::string_view json, ContainerdConfig& config) {
  const toml::table root = TRY(TomlOf(json));
  ConfigFields::Document document = {.is_json = true};
  const ConfigFields own = ConfigFields(&root, document).Table("config");
  ReadSocket(own, "containerd_endpoint", config.socket);
  ReadContainerd(own.Table("containerd"), config);
  const ConfigFields registry = own.Table("registry");
  config.registry_known = registry.is_there();
  ReadRegistry(registry, "registry.mirrors of containerd's configuration", config);
  return document.sound;
}

Result<void> ReadContainerdToml(std::string_view text, const std::string& place,
                                ContainerdConfig& config, std::vector<std::string>& imports) {
  const toml::table table = TRY(ReadToml(text, kMaxPullConfigBytes));
  ConfigFields::Document document;
  const ConfigFields root(&table, document);
  ReadSocket(root.Table("grpc"), "address", config.socket);
  std::span<const std::string_view> names = kPlugins;
  if (const toml::node* version = root.Node("version")) {
    if (!version->is_integer()) root.Refuse(version, "version is not a number");
    if (version->value_or(0) >= 3) names = names.subspan(kOlderPlugins);
  }
  for (const std::string_view name : names) {
    ReadPlugin(root.Table("plugins").Table(name), place, config);
  }
  imports = root.Texts("imports");
  return document.sound;
}

}  // namespace waybill::internal
