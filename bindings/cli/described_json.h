// Values of the API as JSON, and as fields with a label in text: what described.h has of them.

#ifndef WAYBILL_BINDINGS_CLI_DESCRIBED_JSON_H_
#define WAYBILL_BINDINGS_CLI_DESCRIBED_JSON_H_

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "bindings/cli/described.h"
#include "bindings/cli/output.h"
#include "bindings/cli/record_json.h"

namespace waybill::cli {

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

#endif  // WAYBILL_BINDINGS_CLI_DESCRIBED_JSON_H_
