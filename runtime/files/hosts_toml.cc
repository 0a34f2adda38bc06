#include "runtime/files/hosts_toml.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "runtime/files/toml_fields.h"
#include "waybill/limits.h"

namespace waybill::internal {
namespace {

Result<void> ReadCapabilities(const toml::table& table, HostsTomlEntry& entry) {
  const auto capabilities = TRY(TomlTexts(&table, "capabilities"));
  if (capabilities.empty()) return {};
  entry.pulls = entry.resolves = false;
  for (const std::string& capability : capabilities) {
    const std::string name = ToLower(capability);
    if (name == "pull") entry.pulls = true;
    if (name == "resolve") entry.resolves = true;
    if (name != "pull" && name != "resolve" && name != "push" && name != "referrers") {
      return AboutLine(table.source(), "a capability that containerd does not know");
    }
  }
  return {};
}

Result<void> ReadOwnCredentials(const toml::table& table, HostsTomlEntry& entry) {
  if (const toml::node* client = TRY(TomlField(table, "client"))) {
    const toml::array* pairs = client->as_array();
    if (pairs == nullptr || !pairs->empty()) entry.own_credentials = "a client certificate";
  }
  const toml::table* header = TRY(TomlTable(&table, "header"));
  if (header == nullptr) return {};
  for (const auto& [key, node] : *header) {
    const std::string name = ToLower(key.str());
    if (name == "authorization" || name == "cookie") {
      entry.own_credentials = "the header " + std::string(key.str());
    }
  }
  return {};
}

// `url` empty: the registry itself.
Result<HostsTomlEntry> ReadEntry(std::string_view url, const toml::table& table) {
  HostsTomlEntry entry;
  TRY(ReadCapabilities(table, entry));
  TRY(ReadOwnCredentials(table, entry));
  entry.skip_verify = TRY(TomlBool(&table, "skip_verify"));
  const bool override_path = TRY(TomlBool(&table, "override_path"));
  if (url.empty()) return entry;
  auto endpoint = ParseRegistryEndpoint(url, true);
  if (!endpoint) return AboutLine(table.source(), endpoint.error().message);
  entry.endpoint = *std::move(endpoint);
  // As Go's path.Clean, after which containerd adds /v2.
  std::string path = std::filesystem::path(entry.endpoint.path).lexically_normal().string();
  while (path.ends_with('/')) path.pop_back();
  entry.usual_path = path == "/v2" || (path.empty() && !override_path);
  return entry;
}

}  // namespace

Result<std::vector<HostsTomlEntry>> ReadHostsToml(std::string_view text) {
  const toml::table root = TRY(ReadToml(text, kMaxPullConfigBytes));
  std::vector<HostsTomlEntry> entries;
  if (const toml::table* hosts = TRY(TomlTable(&root, "host"))) {
    for (const auto& [url, node] : *hosts) {
      const toml::table* table = node.as_table();
      if (table == nullptr) return AboutLine(node.source(), "a host that is not a table");
      if (url.str().empty()) return AboutLine(node.source(), "a host without a name");
      auto entry = TRY(ReadEntry(url.str(), *table));
      entry.line = url.source().begin.line;
      entries.push_back(std::move(entry));
    }
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.line < b.line; });
  const auto server = TRY(TomlText(&root, "server"));
  auto last = TRY(ReadEntry(server, root));
  if (const toml::node* node = root.get("server")) last.line = node->source().begin.line;
  entries.push_back(std::move(last));
  return entries;
}

}  // namespace waybill::internal
