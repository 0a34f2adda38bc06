#include "store/base/json_value.h"

#include "store/base/json.h"
#include "waybill/limits.h"

namespace waybill::internal {

// What nlohmann's reader takes has any depth, and what it made is gone through by recursion.
Json ParseJson(std::string_view text) {
  JsonReader from(text, waybill::kMaxJsonDepth);
  std::string_view whole;
  if (!from.Skip(whole) || !from.End()) return nullptr;
  Json json = Json::parse(whole, nullptr, false);
  return json.is_discarded() ? Json() : json;
}

std::string TextOf(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string AsciiOf(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

const Json* FieldAt(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string TextAt(const Json& object, std::string_view key) {
  const Json* const field = FieldAt(object, key);
  return field != nullptr && field->is_string() ? field->get<std::string>() : std::string();
}

std::uint64_t NumberAt(const Json& object, std::string_view key) {
  const Json* const field = FieldAt(object, key);
  return field != nullptr && field->is_number_unsigned() ? field->get<std::uint64_t>() : 0;
}

}  // namespace waybill::internal
