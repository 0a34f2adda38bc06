#include "migrations/kubelet/userns_file.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "store/base/json_document.h"
#include "store/userns/pool.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

struct Mapping {
  std::uint64_t host_id = 0;
  std::uint64_t container_id = 0;
  std::uint64_t length = 0;

  friend bool operator==(const Mapping&, const Mapping&) = default;
};

struct Mappings {
  std::vector<Mapping> uids;
  std::vector<Mapping> gids;
};

// Go folds one letter beyond ASCII to a letter of these names: U+017F, the long s.
std::string Folded(std::string_view key) {
  constexpr std::string_view kLongS = "\xc5\xbf";
  std::string folded;
  for (std::size_t at = 0; at < key.size(); ++at) {
    if (key.substr(at, kLongS.size()) == kLongS) {
      folded += 's';
      ++at;
    } else {
      const char c = key[at];
      folded += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  return folded;
}

// The member that Go takes for the field; nullopt: missing or null.
Result<std::optional<JsonValue>> Field(JsonValue object, std::string_view name) {
  std::optional<JsonValue> found;
  for (const JsonValue member : object.members()) {
    if (Folded(member.key()) != Folded(name)) continue;
    if (found) return member.Fail("the field is there twice");
    found = member;
  }
  if (found && found->is_null()) found.reset();
  return found;
}

// `out` is unchanged if the field is missing or null.
Result<void> ReadNumber(JsonValue object, std::string_view name, std::uint64_t min,
                        std::uint64_t max, std::optional<std::uint64_t>& out) {
  const auto field = Field(object, name);
  if (!field) return field.error();
  if (!*field) return {};
  std::uint64_t value = 0;
  if (auto r = ReadUnsigned(**field, value); !r) return r;
  if (value < min || value > max) {
    return (*field)->Fail(std::to_string(value) + " is not within " + std::to_string(min) + " to " +
                          std::to_string(max));
  }
  out = value;
  return {};
}

Result<Mapping> ReadMapping(JsonValue object) {
  if (object.kind() != JsonKind::kObject) return object.Expected("an object");
  std::optional<std::uint64_t> host_id;
  std::optional<std::uint64_t> length;
  std::optional<std::uint64_t> container_id;
  auto read = ReadNumber(object, "hostId", 0, kHostIds - 1, host_id);
  if (read && !host_id) return object.Fail("has no hostId");
  if (read) read = ReadNumber(object, "length", 1, kHostIds, length);
  if (read && !length) return object.Fail("has no length");
  if (read) read = ReadNumber(object, "containerId", 0, kHostIds - 1, container_id);
  if (!read) return read.error();
  return Mapping{*host_id, container_id.value_or(0), *length};
}

Result<std::vector<Mapping>> ReadList(JsonValue root, std::string_view name) {
  std::vector<Mapping> mappings;
  const auto list = Field(root, name);
  if (!list) return list.error();
  if (!*list) return mappings;
  if (auto r = CheckArray(**list); !r) return r.error();
  if (auto r = CheckCount(**list, kMaxMappingsPerFile, "mappings"); !r) return r.error();
  for (const JsonValue item : (*list)->members()) {
    auto mapping = ReadMapping(item);
    if (!mapping) return mapping.error();
    mappings.push_back(*mapping);
  }
  return mappings;
}

Result<Mappings> Read(std::string_view content) {
  const auto document = JsonDocument::Parse(content, kMaxUsernsFileBytes);
  if (!document) return document.error();
  const JsonValue root = document->root();
  if (auto r = CheckObject(root); !r) return r.error();
  auto uids = ReadList(root, "uidMappings");
  if (!uids) return uids.error();
  auto gids = ReadList(root, "gidMappings");
  if (!gids) return gids.error();
  if (uids->size() + gids->size() > kMaxMappingsPerFile) {
    return root.Fail("has " + std::to_string(uids->size() + gids->size()) +
                     " mappings, above the " + std::to_string(kMaxMappingsPerFile) + " allowed");
  }
  return Mappings{std::move(*uids), std::move(*gids)};
}

// Why no kubelet accepts it; empty: one does.
std::string ProblemOf(const Mappings& read) {
  const auto count = [](std::string_view what, std::size_t mappings) {
    return "it has " + std::to_string(mappings) + " " + std::string(what) +
           " mappings where a kubelet takes one";
  };
  if (read.uids.empty() && read.gids.empty()) return "it has no mapping";
  if (read.uids.size() != 1) return count("UID", read.uids.size());
  if (read.gids.size() != 1) return count("GID", read.gids.size());
  const Mapping& uids = read.uids.front();
  if (uids != read.gids.front()) return "its UID and GID mappings differ";
  if (uids.container_id != 0) {
    return "it maps from container ID " + std::to_string(uids.container_id) + ", not from 0";
  }
  const auto sound = CheckMapping(uids.host_id, uids.length);
  return sound ? std::string() : sound.error().ToString();
}

}  // namespace

UsernsFile DecodeUsernsFile(std::string pod_uid, std::string source, std::string_view content) {
  UsernsFile file;
  file.pod_uid = std::move(pod_uid);
  file.source = std::move(source);
  const auto read = Read(content);
  if (!read) {
    file.problem = "it can't be read: " + read.error().message;
    return file;
  }
  file.problem = ProblemOf(*read);
  if (file.problem.empty()) {
    file.mapping = HostIdRange{read->uids.front().host_id, read->uids.front().length};
    return file;
  }
  for (const auto* mappings : {&read->uids, &read->gids}) {
    for (const Mapping& mapping : *mappings) {
      const HostIdRange range{mapping.host_id, mapping.length};
      if (std::find(file.ranges.begin(), file.ranges.end(), range) == file.ranges.end()) {
        file.ranges.push_back(range);
      }
    }
  }
  return file;
}

std::string EncodeUsernsFile(std::uint32_t host_id, std::uint32_t length) {
  const std::string mappings = R"([{"hostId":)" + std::to_string(host_id) +
                               R"(,"containerId":0,"length":)" + std::to_string(length) + "}]";
  return R"({"uidMappings":)" + mappings + R"(,"gidMappings":)" + mappings + "}";
}

}  // namespace waybill::internal
