// The content of a store and the library's reports as JSON, and as fields with a label in text. The
// names in records are those of the kubelet's own files; others are those of described.h.

#ifndef WAYBILL_BINDINGS_CLI_RECORD_JSON_H_
#define WAYBILL_BINDINGS_CLI_RECORD_JSON_H_

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "bindings/cli/described.h"
#include "bindings/cli/output.h"
#include "waybill/maintenance.h"
#include "waybill/platform.h"
#include "waybill/report.h"
#include "waybill/runtime_handler.h"
#include "waybill/types.h"
#include "waybill/user_namespace.h"

namespace waybill::cli {

// Whether credential hashes are shown. kRedacted: "redacted" in their place; an empty one stays
// empty.
enum class Hashes { kRedacted, kShown };

Json JsonOf(const std::optional<Timestamp>& time);  // RFC 3339, or null
Json JsonOf(const Platform& platform);
Json JsonOf(const RuntimeHandler& handler);
// Empty fields of runtime handlers and manifests are left out.
Json JsonOf(const ImagePulledRecord& record, Hashes hashes);
Json JsonOf(const ImagePullIntent& intent);
Json JsonOf(const Backup& backup);
Json JsonOf(const Revocation& what, Hashes hashes);

// Sorts by image ref, then by runtime handler.
void SortForReading(std::vector<ImagePulledRecord>& records);
void SortForReading(std::vector<Revocation>& revocations);

std::string_view QuarantineKindName(QuarantineKind kind);  // "imageRef", "image"
std::string_view PoolRelationName(PoolRelation relation);  // "inPool", "outsidePool", "otherLength"

// "all pods of the node", "2 secrets, 1 service account", "nobody until pulled again".
std::string AccessText(const ImagePullCredentials& credentials);

inline std::string_view NameOf(QuarantineKind kind) { return QuarantineKindName(kind); }
inline std::string_view NameOf(PoolRelation relation) { return PoolRelationName(relation); }

template <typename T>
concept Described = requires(const T& value) {
  EachMember(value, [](std::string_view, const auto&) {});
};

template <Described T>
Json JsonOf(const T& value);

template <typename T>
Json JsonOfMember(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return NameOf(value);
  } else if constexpr (std::is_same_v<T, Timestamp>) {
    return JsonOf(std::optional(value));
  } else if constexpr (requires { value.has_value(); }) {
    return value ? JsonOfMember(*value) : Json(nullptr);
  } else if constexpr (std::is_convertible_v<T, std::string_view> || std::is_arithmetic_v<T>) {
    return value;
  } else if constexpr (requires { value.begin(); }) {
    Json list = Json::array();
    for (const auto& item : value) list.push_back(JsonOfMember(item));
    return list;
  } else {
    return JsonOf(value);
  }
}

// Each member; but the empty name of the default handler is left out.
template <Described T>
Json JsonOf(const T& value) {
  Json object = Json::object();
  EachMember(value, [&](std::string_view name, const auto& member) {
    Json json = JsonOfMember(member);
    if (name == "runtimeHandler" && json == "") return;
    object[std::string(name)] = std::move(json);
  });
  return object;
}

// Each member, with the label that `labels` has for it ({name in JSON, label}), or its own name. An
// empty label: only in JSON.
template <Described T>
std::vector<Field> FieldsOf(
    const T& value, std::initializer_list<std::pair<std::string_view, std::string_view>> labels) {
  std::vector<Field> fields;
  EachMember(value, [&](std::string_view name, const auto& member) {
    std::string label = LabelOf(name);
    for (const auto& [of, given] : labels) {
      if (of == name) label = given;
    }
    fields.push_back({std::string(name), std::move(label), JsonOfMember(member)});
  });
  return fields;
}

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_RECORD_JSON_H_
