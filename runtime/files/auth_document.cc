// The documents that hold pull credentials:
//
//   docker config.json  {"auths":{registry: entry}, …}
//   legacy .dockercfg   {registry: entry}
//   Secret              {"kind":"Secret","type":"kubernetes.io/dockerconfigjson",
//                        "data":{".dockerconfigjson":base64 of a config.json}, …}
//                       {"kind":"Secret","type":"kubernetes.io/dockercfg",
//                        "data":{".dockercfg":base64 of a .dockercfg}, …}
//                       the same under stringData, not in base64, which has precedence, as in the
//                       API server
//   entry               {"username":…,"password":…,"email":…,"auth":base64 of "user:password", …}
//                       a non-empty auth replaces username and password
//
// Read as the kubelet does, except that two things are refused, since they make one document mean
// two credentials: a repeated field, and a field in another case. Messages contain nothing from
// a document except the names of the fields above.

#include "runtime/files/auth_document.h"

#include <array>
#include <map>

#include "runtime/files/documents.h"
#include "store/base/base64.h"
#include "store/base/caught.h"
#include "store/base/described.h"
#include "store/base/json.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {
namespace {

using internal::Base64Padding, internal::DecodeBase64, internal::JsonText,
    internal::QuoteForMessage, internal::ReadForeign, internal::WipedString, internal::WrongAt;

struct SecretType {
  std::string_view name;
  const char* key;
  bool legacy;
};
constexpr std::array<SecretType, 2> kSecretTypes = {{
    {"kubernetes.io/dockerconfigjson", ".dockerconfigjson", false},
    {"kubernetes.io/dockercfg", ".dockercfg", true},
}};

// "user:password", decoded; empty: there is none.
struct BasicAuth {
  WipedString pair = {};
};
bool FromText(std::string_view text, BasicAuth& auth) {
  if (text.empty()) return true;
  return DecodeBase64(text, Base64Padding::kOptional, auth.pair) &&
         auth.pair.text.find(':') != std::string::npos;
}
constexpr std::string_view FormOf(const BasicAuth*) { return "the base64 of \"user:password\""; }

struct AuthEntry {
  WipedString username = {};
  WipedString password = {};
  std::string email = {};
  std::optional<BasicAuth> auth = {};

  void Describe(auto& v) const {
    v.Optional("username", username.text);
    v.Optional("password", password.text);
    v.Optional("email", email);
    v.Optional("auth", auth);
  }
};
using Registries = std::map<std::string, AuthEntry>;

struct ConfigJson {
  Registries auths = {};

  void Describe(auto& v) const { v.Optional("auths", auths); }
};

struct PullSecret {
  JsonText kind = {};
  JsonText type = {};
  std::map<std::string, JsonText> string_data = {};
  std::map<std::string, JsonText> data = {};

  void Describe(auto& v) const {
    v.Optional("kind", kind);
    v.Optional("type", type);
    v.Optional("stringData", string_data);
    v.Optional("data", data);
  }
};

// No entry of a .dockercfg is a string, and a config.json has neither field.
bool LooksLikeSecret(std::string_view json) {
  return internal::MemberOf(json, "kind").starts_with('"') ||
         internal::MemberOf(json, "type").starts_with('"');
}

Result<void> ReadRegistries(std::string_view json, bool legacy, Registries& out) {
  if (legacy) return ReadForeign(json, kMaxDocumentBytes, out);
  ConfigJson config;
  TRY(ReadForeign(json, kMaxDocumentBytes, config));
  out.swap(config.auths);
  return {};
}

// The document inside a Secret, from stringData or data. False: neither has one.
Result<bool> ReadPayload(const PullSecret& secret, const SecretType& type, Registries& out) {
  for (const auto* const map : {&secret.string_data, &secret.data}) {
    const auto found = map->find(type.key);
    if (found == map->end() || found->second.text == "null") continue;
    const bool is_data = map == &secret.data;
    WipedString payload;
    auto read = ReadForeign(found->second.text, kMaxDocumentBytes, payload.text);
    if (read && is_data) {
      WipedString decoded;
      if (!DecodeBase64(payload.text, Base64Padding::kRequired, decoded)) {
        read = Error{ErrorCode::kInvalidArgument, "not base64", {}};
      }
      payload.text.swap(decoded.text);
    }
    if (read && payload.text.empty()) return false;
    if (read) read = ReadRegistries(payload.text, type.legacy, out);
    if (read) return true;
    return internal::Inside(std::string(is_data ? "data" : "stringData") + "[\"" + type.key + "\"]",
                            read.error());
  }
  return false;
}

// The Secret's type as one that is known; null: another.
const SecretType* TypeOfSecret(const PullSecret& secret) {
  std::string name;
  if (!ReadForeign(secret.type.text, kMaxDocumentBytes, name)) return nullptr;
  for (const SecretType& known : kSecretTypes) {
    if (name == known.name) return &known;
  }
  return nullptr;
}

Result<void> ReadSecret(std::string_view json, Registries& out) {
  PullSecret secret;
  TRY(ReadForeign(json, kMaxDocumentBytes, secret));
  std::string kind;
  if (!secret.kind.text.empty() &&
      (!ReadForeign(secret.kind.text, kMaxDocumentBytes, kind) || kind != "Secret")) {
    return WrongAt("kind", "expected \"Secret\"");
  }
  const SecretType* const type = TypeOfSecret(secret);
  if (type == nullptr) {
    return WrongAt("type", "expected " + QuoteForMessage(kSecretTypes[0].name) + " or " +
                               QuoteForMessage(kSecretTypes[1].name));
  }
  if (TRY(ReadPayload(secret, *type, out))) return {};
  return WrongAt("data", "neither this nor stringData has " + QuoteForMessage(type->key));
}

// A non-empty auth replaces username and password. In place: moving leaves short strings behind.
void Fill(const AuthEntry& entry, AuthConfig& auth) {
  auth.email = entry.email;
  const std::string_view pair = entry.auth ? entry.auth->pair.text : std::string_view();
  const std::size_t colon = pair.find(':');
  auth.username = colon == std::string::npos ? entry.username.text : pair.substr(0, colon);
  auth.password = colon == std::string::npos ? entry.password.text : pair.substr(colon + 1);
}

// What docker leaves beside a credsStore, {"registry.example.com": {}}, is none.
bool IsCredential(const AuthConfig& auth) {
  return !auth.username.empty() || !auth.password.empty();
}

}  // namespace

Result<std::vector<RegistryAuth>> DecodeAuthDocument(std::string_view json) try {
  Registries registries;
  if (!internal::MemberOf(json, "auths").empty()) {
    TRY(ReadRegistries(json, false, registries));
  } else if (LooksLikeSecret(json)) {
    TRY(ReadSecret(json, registries));
  } else {
    ConfigJson without_auths;  // also in another case
    TRY(ReadForeign(json, kMaxDocumentBytes, without_auths));
    TRY(ReadRegistries(json, true, registries));
  }
  std::vector<RegistryAuth> list;
  // Growing would leave copies of short strings behind.
  list.reserve(registries.size());
  for (const auto& [registry, entry] : registries) {
    RegistryAuth& one = list.emplace_back();
    one.registry = registry;
    Fill(entry, one.auth);
    if (!IsCredential(one.auth)) list.pop_back();
  }
  return list;
} catch (...) {
  return internal::Caught();
}

Result<std::optional<std::vector<internal::RegistryHash>>> internal::HashPullSecret(
    std::string_view json) try {
  PullSecret secret;
  TRY(ReadForeign(json, kMaxDocumentBytes, secret));
  const SecretType* const type = TypeOfSecret(secret);
  Registries registries;
  if (type == nullptr || !TRY(ReadPayload(secret, *type, registries))) return std::nullopt;
  std::vector<RegistryHash> hashed;
  for (const auto& [registry, entry] : registries) {
    AuthConfig auth;
    Fill(entry, auth);
    if (!IsCredential(auth)) continue;
    auto hash = HashCredentials(auth);
    Wipe(auth.username);
    Wipe(auth.password);
    if (!hash) return hash.error();
    hashed.push_back({registry, *std::move(hash)});
  }
  return hashed;
} catch (...) {
  return Caught();
}

}  // namespace waybill
