// Reads the fields of one line; whatever is not as it should be is a MalformedLine that says so.

#ifndef WAYBILL_TESTS_REPLAY_FIELDS_H_
#define WAYBILL_TESTS_REPLAY_FIELDS_H_

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/values.h"

namespace waybill::replay {

// A field that the player does not know could change what a line means: it is refused.
void RequireOnly(const nlohmann::json& object, std::initializer_list<std::string_view> known);

std::string RequireString(const nlohmann::json& object, const char* field);
// nullopt: the field is there and null.
std::optional<std::string> RequireStringOrNull(const nlohmann::json& object, const char* field);
bool RequireBool(const nlohmann::json& object, const char* field);
Timestamp RequireTime(const nlohmann::json& object, const char* field);

// Absent: false; an empty list.
bool FlagOf(const nlohmann::json& object, const char* field);
std::vector<std::string> StringsOf(const nlohmann::json& object, const char* field);
// The array under `field`, or an empty one.
const nlohmann::json& ArrayOf(const nlohmann::json& object, const char* field);

std::vector<ImagePullSecret> SecretsOf(const nlohmann::json& object, const char* field);
ImagePullServiceAccount ServiceAccountOf(const nlohmann::json& value);
ImagePullCredentials CredentialsOf(const nlohmann::json& value);
// Each {id, repoTags, repoDigests, handler, pinned, moreDigests (how many)}, or an ID alone.
std::vector<ListedImage> ImagesOf(const nlohmann::json& object, const char* field);
ListedImage ImageOf(const nlohmann::json& value);

// Compact, any bytes.
std::string Text(const nlohmann::json& value);

}  // namespace waybill::replay

#endif  // WAYBILL_TESTS_REPLAY_FIELDS_H_
