// Reads the kubelet's record files. Each file is one JSON object:
//
//   image_manager/pulled/sha256-<hex of imageRef>
//     kind               "ImagePulledRecord"
//     apiVersion         "kubelet.config.k8s.io/v1alpha1" or "/v1beta1"; in the text of KEP-2535
//                        also "imagemanager.kubelet.config.k8s.io/v1alpha1"
//     lastUpdatedTime RFC 3339; null, absent or the start of year 1: no time
//     imageRef           string
//     credentialMapping  {image name: {kubernetesSecrets: [{uid, namespace, name, credentialHash}],
//                                      kubernetesServiceAccounts: [{uid, namespace, name}],
//                                      nodePodsAccessible: bool}}
//                        the KEP's text calls the first list kubernetesSecretCoordinates
//   image_manager/pulling/sha256-<hex of image>
//     kind "ImagePullIntent", apiVersion, image
//   image_manager/observed-preloaded/sha256-<hex of imageRef>
//     kind "ImagePreloadedRecord", apiVersion, lastUpdatedTime, imageRef,
//     observedImages     {image name: {}}
//
// All fields but kind and apiVersion may be null or absent, which means empty, as in Go. Any other
// field is refused. A file holds credential hashes, so messages contain nothing from it except the
// names of these fields.

#include <algorithm>
#include <array>
#include <utility>

#include "store/base/caught.h"
#include "store/base/json_document.h"
#include "waybill/kubelet_format.h"
#include "waybill/limits.h"

namespace waybill {
namespace {

using internal::CheckArray;
using internal::CheckCount;
using internal::CheckObject;
using internal::JsonDocument;
using internal::JsonValue;
using internal::QuoteForMessage;
using internal::ReadBool;
using internal::ReadString;

constexpr std::array<std::string_view, 3> kApiVersions = {
    "kubelet.config.k8s.io/v1beta1",
    "kubelet.config.k8s.io/v1alpha1",
    "imagemanager.kubelet.config.k8s.io/v1alpha1",
};
constexpr std::array<std::string_view, 15> kRecordFields = {"kind",
                                                            "apiVersion",
                                                            "lastUpdatedTime",
                                                            "imageRef",
                                                            "image",
                                                            "credentialMapping",
                                                            "kubernetesSecrets",
                                                            "kubernetesSecretCoordinates",
                                                            "kubernetesServiceAccounts",
                                                            "nodePodsAccessible",
                                                            "uid",
                                                            "namespace",
                                                            "name",
                                                            "credentialHash",
                                                            "observedImages"};
// Go's zero time.
constexpr Timestamp kGoZeroTime{-62135596800, 0};

// Checked first, so that a file of a later version is reported as such, not for an unknown field.
Result<void> CheckHeader(JsonValue root, std::string_view kind) {
  if (root.kind() != internal::JsonKind::kObject) return root.Expected("an object");
  for (const std::string_view name : {"kind", "apiVersion"}) {
    const auto field = root.Find(name);
    if (!field) return root.Fail("field " + QuoteForMessage(name) + " is missing");
    if (!field->is_string()) return field->Expected("a string");
    const std::string_view text = field->text();
    const bool known = name == "kind" ? text == kind
                                      : std::find(kApiVersions.begin(), kApiVersions.end(), text) !=
                                            kApiVersions.end();
    if (known) continue;
    const std::string_view wanted = name == "kind" ? kind : kApiVersions[0];
    return field->Fail("expected " + QuoteForMessage(wanted));
  }
  return {};
}

bool IsHeaderField(std::string_view key) { return key == "kind" || key == "apiVersion"; }

Result<void> ReadTime(JsonValue value, std::optional<Timestamp>& out) {
  if (value.is_null()) return {};
  if (!value.is_string()) return value.Expected("a string");
  const auto time = ParseTimestamp(value.text());
  if (!time) return value.Fail(time.error().message);
  if (*time != kGoZeroTime) out = *time;
  return {};
}

// A Secret's or a ServiceAccount's coordinates; `hash` is null for the latter.
Result<void> ReadCoordinates(JsonValue value, std::string& uid, std::string& namespace_name,
                             std::string& name, std::string* hash) {
  if (auto object = CheckObject(value); !object) return object;
  for (const JsonValue field : value.members()) {
    std::string* target = nullptr;
    if (field.key() == "uid") target = &uid;
    if (field.key() == "namespace") target = &namespace_name;
    if (field.key() == "name") target = &name;
    if (field.key() == "credentialHash") target = hash;
    if (target == nullptr) return field.UnknownField();
    if (auto read = ReadString(field, kMaxCoordinateBytes, *target); !read) return read;
  }
  return {};
}

Result<void> ReadSecrets(JsonValue value, std::vector<ImagePullSecret>& out) {
  if (auto array = CheckArray(value); !array) return array;
  if (auto count = CheckCount(value, kMaxCredentialsPerName, "secrets"); !count) return count;
  for (const JsonValue item : value.members()) {
    ImagePullSecret& secret = out.emplace_back();
    auto read = ReadCoordinates(item, secret.uid, secret.namespace_name, secret.name,
                                &secret.credential_hash);
    if (!read) return read;
  }
  return {};
}

Result<void> ReadServiceAccounts(JsonValue value, std::vector<ImagePullServiceAccount>& out) {
  if (auto array = CheckArray(value); !array) return array;
  if (auto count = CheckCount(value, kMaxCredentialsPerName, "service accounts"); !count) {
    return count;
  }
  for (const JsonValue item : value.members()) {
    ImagePullServiceAccount& account = out.emplace_back();
    auto read = ReadCoordinates(item, account.uid, account.namespace_name, account.name, nullptr);
    if (!read) return read;
  }
  return {};
}

Result<void> ReadCredentials(JsonValue value, ImagePullCredentials& out) {
  if (auto object = CheckObject(value); !object) return object;
  std::string_view list;  // the name under which the secrets came
  for (const JsonValue field : value.members()) {
    Result<void> read;
    if (field.key() == "kubernetesSecrets" || field.key() == "kubernetesSecretCoordinates") {
      if (!list.empty()) return field.Fail("stands beside " + QuoteForMessage(list));
      list = field.key();
      read = ReadSecrets(field, out.kubernetes_secrets);
    } else if (field.key() == "kubernetesServiceAccounts") {
      read = ReadServiceAccounts(field, out.kubernetes_service_accounts);
    } else if (field.key() == "nodePodsAccessible") {
      read = ReadBool(field, out.node_pods_accessible);
    } else {
      return field.UnknownField();
    }
    if (!read) return read;
  }
  return {};
}

Result<void> CheckNameKeys(JsonValue mapping) {
  if (auto object = CheckObject(mapping); !object) return object;
  if (auto count = CheckCount(mapping, kMaxImageNamesPerRecord, "image names"); !count) {
    return count;
  }
  for (const JsonValue entry : mapping.members()) {
    if (entry.key().size() <= kMaxImageBytes) continue;
    return entry.Fail("image name above " + std::to_string(kMaxImageBytes) + " bytes",
                      ErrorCode::kLimitExceeded);
  }
  return {};
}

Result<void> ReadMapping(JsonValue value, std::map<std::string, ImagePullCredentials>& out) {
  if (auto names = CheckNameKeys(value); !names) return names;
  for (const JsonValue entry : value.members()) {
    auto read = ReadCredentials(entry, out[std::string(entry.key())]);
    if (!read) return read;
  }
  return {};
}

Result<void> ReadObservedImages(JsonValue value, std::vector<std::string>& out) {
  if (auto names = CheckNameKeys(value); !names) return names;
  for (const JsonValue entry : value.members()) {
    if (auto object = CheckObject(entry); !object) return object;
    for (const JsonValue field : entry.members()) return field.UnknownField();
    out.emplace_back(entry.key());
  }
  std::sort(out.begin(), out.end());
  return {};
}

// Reads the header; `read` takes each other field.
template <typename Record>
Result<Record> Decode(std::string_view json, std::string_view kind,
                      Result<void> (*read)(JsonValue field, Record& out)) try {
  const auto document = JsonDocument::ParseSecret(json, kMaxRecordFileBytes, kRecordFields);
  if (!document) return document.error();
  const JsonValue root = document->root();
  if (auto header = CheckHeader(root, kind); !header) return header.error();

  Record record;
  for (const JsonValue field : root.members()) {
    if (IsHeaderField(field.key())) continue;
    if (auto done = read(field, record); !done) return done.error();
  }
  return record;
} catch (...) {
  return internal::Caught();
}

Result<void> ReadPulledField(JsonValue field, ImagePulledRecord& out) {
  if (field.key() == "lastUpdatedTime") return ReadTime(field, out.last_updated);
  if (field.key() == "imageRef") return ReadString(field, kMaxImageRefBytes, out.image_ref);
  if (field.key() == "credentialMapping") return ReadMapping(field, out.credential_mapping);
  return field.UnknownField();
}

Result<void> ReadIntentField(JsonValue field, ImagePullIntent& out) {
  if (field.key() == "image") return ReadString(field, kMaxImageBytes, out.image);
  return field.UnknownField();
}

Result<void> ReadPreloadedField(JsonValue field, ImagePreloadedRecord& out) {
  if (field.key() == "lastUpdatedTime") return ReadTime(field, out.last_updated);
  if (field.key() == "imageRef") return ReadString(field, kMaxImageRefBytes, out.image_ref);
  if (field.key() == "observedImages") return ReadObservedImages(field, out.observed_images);
  return field.UnknownField();
}

}  // namespace

Result<ImagePulledRecord> DecodePulledRecord(std::string_view json) {
  return Decode<ImagePulledRecord>(json, "ImagePulledRecord", ReadPulledField);
}

Result<ImagePullIntent> DecodePullIntent(std::string_view json) {
  return Decode<ImagePullIntent>(json, "ImagePullIntent", ReadIntentField);
}

Result<ImagePreloadedRecord> DecodePreloadedRecord(std::string_view json) {
  return Decode<ImagePreloadedRecord>(json, "ImagePreloadedRecord", ReadPreloadedField);
}

}  // namespace waybill
