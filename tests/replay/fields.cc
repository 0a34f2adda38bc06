#include "tests/replay/fields.h"

#include <algorithm>

#include "store/base/timestamp.h"
#include "tests/replay/log.h"
#include "waybill/values.h"

namespace waybill::replay {

namespace {

using nlohmann::json;

const json& Require(const json& object, const char* field) {
  if (!object.is_object()) throw MalformedLine("an object was expected, not " + Text(object));
  const auto it = object.find(field);
  if (it == object.end()) throw MalformedLine(std::string("field \"") + field + "\" is missing");
  return *it;
}

[[noreturn]] void WrongType(const char* field, const char* wanted) {
  throw MalformedLine(std::string("field \"") + field + "\" is not " + wanted);
}

bool Has(const json& object, const char* field) {
  return object.is_object() && object.contains(field);
}

std::string StringOr(const json& object, const char* field, const char* otherwise) {
  return Has(object, field) ? RequireString(object, field) : otherwise;
}

}  // namespace

void RequireOnly(const json& object, std::initializer_list<std::string_view> known) {
  if (!object.is_object()) throw MalformedLine("an object was expected, not " + Text(object));
  for (const auto& item : object.items()) {
    if (std::find(known.begin(), known.end(), item.key()) == known.end()) {
      throw MalformedLine("field \"" + item.key() + "\" is not known");
    }
  }
}

std::string RequireString(const json& object, const char* field) {
  const json& value = Require(object, field);
  if (!value.is_string()) WrongType(field, "a string");
  return value.get<std::string>();
}

std::optional<std::string> RequireStringOrNull(const json& object, const char* field) {
  if (Require(object, field).is_null()) return std::nullopt;
  return RequireString(object, field);
}

bool RequireBool(const json& object, const char* field) {
  const json& value = Require(object, field);
  if (!value.is_boolean()) WrongType(field, "true or false");
  return value.get<bool>();
}

Timestamp RequireTime(const json& object, const char* field) {
  const Result<Timestamp> time = ParseTimestamp(RequireString(object, field));
  if (!time) WrongType(field, "a time");
  return *time;
}

bool FlagOf(const json& object, const char* field) {
  return Has(object, field) && RequireBool(object, field);
}

const json& ArrayOf(const json& object, const char* field) {
  static const json kEmpty = json::array();
  if (!Has(object, field)) return kEmpty;
  const json& value = Require(object, field);
  if (!value.is_array()) WrongType(field, "a list");
  return value;
}

std::vector<std::string> StringsOf(const json& object, const char* field) {
  std::vector<std::string> strings;
  for (const json& value : ArrayOf(object, field)) {
    if (!value.is_string()) WrongType(field, "a list of strings");
    strings.push_back(value.get<std::string>());
  }
  return strings;
}

std::vector<ImagePullSecret> SecretsOf(const json& object, const char* field) {
  std::vector<ImagePullSecret> secrets;
  for (const json& value : ArrayOf(object, field)) {
    RequireOnly(value, {"uid", "namespace", "name", "credentialHash"});
    secrets.push_back({RequireString(value, "uid"), RequireString(value, "namespace"),
                       RequireString(value, "name"), StringOr(value, "credentialHash", "")});
  }
  return secrets;
}

ImagePullServiceAccount ServiceAccountOf(const json& value) {
  RequireOnly(value, {"uid", "namespace", "name"});
  return {RequireString(value, "uid"), RequireString(value, "namespace"),
          RequireString(value, "name")};
}

ImagePullCredentials CredentialsOf(const json& value) {
  RequireOnly(value, {"kubernetesSecrets", "kubernetesServiceAccounts", "nodePodsAccessible"});
  ImagePullCredentials credentials;
  credentials.node_pods_accessible = FlagOf(value, "nodePodsAccessible");
  credentials.kubernetes_secrets = SecretsOf(value, "kubernetesSecrets");
  for (const json& account : ArrayOf(value, "kubernetesServiceAccounts")) {
    credentials.kubernetes_service_accounts.push_back(ServiceAccountOf(account));
  }
  return credentials;
}

std::vector<ListedImage> ImagesOf(const json& object, const char* field) {
  std::vector<ListedImage> images;
  for (const json& value : ArrayOf(object, field)) {
    images.push_back(value.is_string() ? ListedImage{.id = value.get<std::string>()}
                                       : ImageOf(value));
  }
  return images;
}

ListedImage ImageOf(const json& value) {
  RequireOnly(value,
              {"id", "repoTags", "repoDigests", "handler", "pinned", "imported", "moreDigests"});
  ListedImage image{.id = StringOr(value, "id", ""),
                    .repo_tags = StringsOf(value, "repoTags"),
                    .repo_digests = StringsOf(value, "repoDigests"),
                    .runtime_handler = StringOr(value, "handler", ""),
                    .pinned = FlagOf(value, "pinned"),
                    .imported = FlagOf(value, "imported")};
  for (int i = 0; Has(value, "moreDigests") && i < value["moreDigests"].get<int>(); ++i) {
    const std::string number = std::to_string(i);
    image.repo_digests.push_back(
        "registry.example.com/more@sha256:" + std::string(64 - number.size(), '0') + number);
  }
  return image;
}

std::string Text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace waybill::replay
