// A JSON value that is made to be written, or read where no struct describes it: an answer of the
// command, the guard's status. Fields keep their order.

#ifndef WAYBILL_STORE_BASE_JSON_VALUE_H_
#define WAYBILL_STORE_BASE_JSON_VALUE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace waybill::internal {

using Json = nlohmann::ordered_json;

// Null: it is not JSON, or has more levels than waybill::kMaxJsonDepth.
Json ParseJson(std::string_view text);

// On one line; with `indent`, each field and element on a line of its own. A byte that is not UTF-8
// becomes U+FFFD.
std::string TextOf(const Json& json, int indent = -1);
// In ASCII nothing can steer a terminal.
std::string AsciiOf(const Json& json);

// Of an object. nullptr, nothing or 0: there is no such field, or one of another kind.
const Json* FieldAt(const Json& object, std::string_view key);
std::string TextAt(const Json& object, std::string_view key);
std::uint64_t NumberAt(const Json& object, std::string_view key);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_JSON_VALUE_H_
