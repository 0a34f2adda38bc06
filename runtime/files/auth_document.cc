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
// two credentials: a repeated key, and a known field in another case. Messages contain nothing from
// a document except the names of the fields above.

#include "runtime/files/auth_document.h"

#include <array>

#include "runtime/files/documents.h"
#include "store/base/base64.h"
#include "store/base/caught.h"
#include "store/base/json_document.h"
#include "store/base/try.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {
namespace {

using internal::Base64Padding, internal::DecodeBase64, internal::JsonDocument, internal::JsonKind,
    internal::JsonValue, internal::QuoteForMessage, internal::WipedString;

struct SecretType {
  std::string_view name;
  std::string_view key;
  bool legacy;
};
constexpr std::array<SecretType, 2> kSecretTypes = {{
    {"kubernetes.io/dockerconfigjson", ".dockerconfigjson", false},
    {"kubernetes.io/dockercfg", ".dockercfg", true},
}};

constexpr std::array<std::string_view, 11> kAuthFields = {
    "auths",      "kind",     "type",     "data",  "stringData", ".dockerconfigjson",
    ".dockercfg", "username", "password", "email", "auth"};

// Wipes the credentials, unless they are moved out.
struct AuthList {
  AuthList() = default;
  ~AuthList() {
    for (RegistryAuth& entry : entries) {
      internal::Wipe(entry.auth.username);
      internal::Wipe(entry.auth.password);
    }
  }
  AuthList(const AuthList&) = delete;
  AuthList& operator=(const AuthList&) = delete;

  std::vector<RegistryAuth> entries;
};

Result<void> ReadEntry(JsonValue value, AuthConfig& out) {
  if (auto object = internal::CheckObject(value); !object) return object;
  WipedString auth;
  const auto read_field = [&](std::string_view name, std::string& out_field) {
    return internal::ReadStringField(value, name, kMaxDocumentBytes, out_field);
  };
  TRY(read_field("username", out.username));
  TRY(read_field("password", out.password));
  TRY(read_field("email", out.email));
  TRY(read_field("auth", auth.text));
  if (auth.text.empty()) return {};

  WipedString decoded;
  std::size_t colon = std::string::npos;
  if (DecodeBase64(auth.text, Base64Padding::kOptional, decoded)) colon = decoded.text.find(':');
  if (colon == std::string::npos) {
    return value.Find("auth")->Fail("not the base64 of \"user:password\"");
  }
  const std::string_view pair = decoded.text;
  internal::Wipe(out.username);
  internal::Wipe(out.password);
  out.username = pair.substr(0, colon);
  out.password = pair.substr(colon + 1);
  return {};
}

Result<void> ReadRegistries(JsonValue value, AuthList& out) {
  if (auto object = internal::CheckObject(value); !object) return object;
  // Growing would leave copies of short strings behind.
  out.entries.reserve(value.members().size());
  for (const JsonValue entry : value.members()) {
    RegistryAuth& registry = out.entries.emplace_back();
    registry.registry = entry.key();
    if (auto read = ReadEntry(entry, registry.auth); !read) return read;
  }
  return {};
}

Result<void> ReadConfigJson(JsonValue root, AuthList& out) {
  if (auto fields = internal::CheckFields(root, {"auths"}); !fields) return fields;
  const auto auths = root.Find("auths");
  return auths ? ReadRegistries(*auths, out) : Result<void>();
}

// The document inside a Secret, from stringData or data. False: neither has one.
Result<bool> ReadPayload(JsonValue secret, std::string_view key, WipedString& out,
                         std::string& path) {
  for (const std::string_view holder : {"stringData", "data"}) {
    const auto map = TRY(internal::FindField(secret, holder));
    if (!map) continue;
    TRY(internal::CheckObject(*map));
    const auto payload = map->Find(key);
    if (!payload || payload->is_null()) continue;
    if (!payload->is_string()) return payload->Expected("a string");
    path = payload->Path();
    if (holder == "stringData") {
      out.text = payload->text();
    } else if (!DecodeBase64(payload->text(), Base64Padding::kRequired, out)) {
      return payload->Fail("not base64");
    }
    return true;
  }
  return false;
}

// `path`: where in the Secret the payload was.
Result<void> ReadInner(const SecretType& type, std::string_view payload, const std::string& path,
                       AuthList& out) {
  const auto inner = JsonDocument::ParseSecret(payload, kMaxDocumentBytes, kAuthFields);
  auto read = inner ? internal::CheckFields(inner->root(), {}) : inner.error();
  if (read) {
    read = type.legacy ? ReadRegistries(inner->root(), out) : ReadConfigJson(inner->root(), out);
  }
  if (!read) read.error().message = path + ": " + read.error().message;
  return read;
}

Result<void> ReadSecret(JsonValue secret, AuthList& out) {
  const auto kind = secret.Find("kind");
  if (kind && !(kind->is_string() && kind->text() == "Secret")) {
    return kind->Fail("expected \"Secret\"");
  }
  const auto type = TRY(internal::Require(secret, "type", JsonKind::kString));
  for (const SecretType& known : kSecretTypes) {
    if (type.text() != known.name) continue;
    WipedString payload;
    std::string path;
    if (!TRY(ReadPayload(secret, known.key, payload, path))) {
      return secret.Fail("neither data nor stringData has " + QuoteForMessage(known.key));
    }
    return ReadInner(known, payload.text, path, out);
  }
  return type.Fail("expected " + QuoteForMessage(kSecretTypes[0].name) + " or " +
                   QuoteForMessage(kSecretTypes[1].name));
}

// No entry of a .dockercfg is a string, and a config.json has neither field.
bool LooksLikeSecret(JsonValue root) {
  for (const std::string_view name : {"kind", "type"}) {
    const auto field = root.Find(name);
    if (field && field->is_string()) return true;
  }
  return false;
}

}  // namespace

Result<std::vector<RegistryAuth>> DecodeAuthDocument(std::string_view json) try {
  const auto document = TRY(JsonDocument::ParseSecret(json, kMaxDocumentBytes, kAuthFields));
  const JsonValue root = document.root();
  if (root.kind() != JsonKind::kObject) return root.Expected("an object");

  AuthList list;
  if (root.Find("auths")) {
    TRY(ReadConfigJson(root, list));
  } else if (LooksLikeSecret(root)) {
    TRY(ReadSecret(root, list));
  } else {
    TRY(internal::CheckCase(root, "auths"));
    TRY(ReadRegistries(root, list));
  }
  return std::move(list.entries);
} catch (...) {
  return internal::Caught();
}

Result<std::optional<std::vector<internal::RegistryHash>>> internal::HashPullSecret(
    JsonValue secret) try {
  TRY(CheckFields(secret, {"type"}));
  const auto type = secret.Find("type");
  for (const SecretType& known : kSecretTypes) {
    if (!type || !type->is_string() || type->text() != known.name) continue;
    WipedString payload;
    std::string path;
    const auto found = TRY(ReadPayload(secret, known.key, payload, path));
    if (!found || payload.text.empty()) break;
    AuthList list;
    TRY(ReadInner(known, payload.text, path, list));
    std::vector<RegistryHash> hashed;
    for (const RegistryAuth& entry : list.entries) {
      auto hash = TRY(HashCredentials(entry.auth));
      hashed.push_back({entry.registry, std::move(hash)});
    }
    return hashed;
  }
  return std::nullopt;
} catch (...) {
  return Caught();
}

}  // namespace waybill
