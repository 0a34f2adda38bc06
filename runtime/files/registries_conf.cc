#include "runtime/files/registries_conf.h"

#include <algorithm>
#include <utility>

#include "runtime/files/toml_fields.h"
#include "store/base/quote.h"
#include "waybill/limits.h"

namespace waybill::internal {
namespace {

Result<std::string> ReadLocation(const toml::table& table, std::string_view name) {
  auto location = TRY(TomlText(&table, name));
  while (location.ends_with('/')) location.pop_back();
  // A scheme, too.
  const auto usual = [](char c) {
    return IsDigit(c) || (ToLower(c) >= 'a' && ToLower(c) <= 'z') ||
           std::string_view("*.-_:/@[]").find(c) != std::string_view::npos;
  };
  if (location.find("://") != std::string::npos ||
      !std::all_of(location.begin(), location.end(), usual)) {
    return AboutLine(table.source(), std::string(name) + " is not the name of a registry");
  }
  return location;
}

std::string Place(const std::string& place, const toml::node& node) {
  return place + ", line " + std::to_string(node.source().begin.line);
}

Result<RegistriesConfMirror> ReadMirror(const toml::table& table, bool digest_only) {
  RegistriesConfMirror mirror;
  mirror.location = TRY(ReadLocation(table, "location"));
  if (mirror.location.empty()) return AboutLine(table.source(), "a mirror without a location");
  mirror.insecure = TRY(TomlBool(&table, "insecure"));
  const auto pulls = TRY(TomlText(&table, "pull-from-mirror"));
  if (!pulls.empty() && digest_only) {
    return AboutLine(table.source(), "pull-from-mirror beside mirror-by-digest-only");
  }
  mirror.by_tag = pulls != "digest-only" && !digest_only;
  mirror.by_digest = pulls != "tag-only";
  if (!pulls.empty() && pulls != "all" && pulls != "digest-only" && pulls != "tag-only") {
    return AboutLine(table.source(), "pull-from-mirror is none of all, digest-only and tag-only");
  }
  return mirror;
}

// The tables of an array; a missing array has none.
Result<std::vector<const toml::table*>> Tables(const toml::table& parent, std::string_view name) {
  std::vector<const toml::table*> tables;
  const toml::node* node = TRY(TomlField(parent, name));
  if (node == nullptr) return tables;
  const toml::array* array = node->as_array();
  if (array == nullptr) return AboutLine(node->source(), std::string(name) + " is not an array");
  for (const toml::node& item : *array) {
    if (!item.is_table()) {
      return AboutLine(item.source(), std::string(name) + " has what is not a table");
    }
    tables.push_back(item.as_table());
  }
  return tables;
}

Result<std::pair<std::string, RegistriesConfEntry>> ReadRegistry(const toml::table& table,
                                                                 const std::string& place) {
  RegistriesConfEntry entry;
  entry.where = Place(place, table);
  entry.location = TRY(ReadLocation(table, "location"));
  auto prefix = TRY(ReadLocation(table, "prefix"));
  const bool wild = prefix.starts_with("*.");
  if (entry.location.empty() && !wild) {
    return AboutLine(table.source(), "a registry without a location");
  }
  if (wild && prefix.find_first_of("/@:") != std::string::npos) {
    return AboutLine(table.source(), "a prefix with * is not of the form *.example.com");
  }
  if (prefix.empty()) prefix = entry.location;
  entry.insecure = TRY(TomlBool(&table, "insecure"));
  TRY(TomlBool(&table, "blocked"));
  const bool digest_only = TRY(TomlBool(&table, "mirror-by-digest-only"));
  const auto own = TRY(TomlText(&table, "pull-from-mirror"));
  if (!own.empty()) return AboutLine(table.source(), "pull-from-mirror is not in a mirror");
  const auto mirrors = TRY(Tables(table, "mirror"));
  for (const toml::table* item : mirrors) {
    auto mirror = TRY(ReadMirror(*item, digest_only));
    mirror.where = Place(place, *item);
    entry.mirrors.push_back(std::move(mirror));
  }
  return std::pair(std::move(prefix), std::move(entry));
}

Result<void> ReadVersion1(const toml::table& registries, RegistriesConf& conf) {
  for (const std::string_view list : {"search", "insecure", "block"}) {
    const toml::table* table = TRY(TomlTable(&registries, list));
    auto names = TRY(TomlTexts(table, "registries"));
    if (list == "search" && !names.empty()) conf.search = std::move(names);
  }
  return {};
}

}  // namespace

Result<void> ReadRegistriesConf(std::string_view text, const std::string& place, bool drop_in,
                                RegistriesConf& conf) {
  const toml::table root = TRY(ReadToml(text, kMaxPullConfigBytes));
  const auto entries = TRY(Tables(root, "registry"));
  if (const toml::table* version1 = TRY(TomlTable(&root, "registries"))) {
    if (drop_in || !entries.empty()) {
      return AboutLine(version1->source(), "version 1 of the format, where only version 2 may be");
    }
    TRY(ReadVersion1(*version1, conf));
  }
  // Within a file, the first of a prefix counts.
  std::map<std::string, RegistriesConfEntry> here;
  for (const toml::table* table : entries) {
    auto entry = TRY(ReadRegistry(*table, place));
    here.insert(std::move(entry));
  }
  for (auto& [prefix, entry] : here) conf.by_prefix[prefix] = std::move(entry);
  if (root.contains("unqualified-search-registries")) {
    conf.search = TRY(TomlTexts(&root, "unqualified-search-registries"));
  } else {
    TRY(TomlField(root, "unqualified-search-registries"));
  }
  if (const toml::table* aliases = TRY(TomlTable(&root, "aliases"))) {
    for (const auto& [name, node] : *aliases) {
      const auto* value = node.as_string();
      if (value == nullptr) return AboutLine(node.source(), "an alias that is not a string");
      conf.aliases[std::string(name.str())] = value->get();
    }
  }
  return {};
}

std::size_t MatchRegistryPrefix(std::string_view image, std::string_view prefix) {
  std::size_t end = prefix.size();
  if (prefix.starts_with("*.")) {
    const std::string_view suffix = prefix.substr(1);
    const std::size_t at = image.find(suffix);
    if (at == std::string_view::npos || image.substr(0, at).find('/') != std::string_view::npos) {
      return std::string_view::npos;
    }
    end = at + suffix.size();
  } else if (!image.starts_with(prefix)) {
    return std::string_view::npos;
  }
  if (end == image.size() || image[end] == ':' || image[end] == '/' || image[end] == '@') {
    return end;
  }
  return std::string_view::npos;
}

const std::pair<const std::string, RegistriesConfEntry>* FindRegistryEntry(
    const RegistriesConf& conf, std::string_view image) {
  const std::pair<const std::string, RegistriesConfEntry>* found = nullptr;
  for (const auto& entry : conf.by_prefix) {
    const bool matches = MatchRegistryPrefix(image, entry.first) != std::string_view::npos;
    if (matches && (found == nullptr || entry.first.size() > found->first.size())) found = &entry;
  }
  return found;
}

}  // namespace waybill::internal
