// The kubelet's record files. Each is one JSON object:
//
//   image_manager/pulled/sha256-<hex of imageRef>
//     kind               "ImagePulledRecord"
//     apiVersion         "kubelet.config.k8s.io/v1alpha1" or "/v1beta1"; in the text of KEP-2535
//                        also "imagemanager.kubelet.config.k8s.io/v1alpha1"
//     lastUpdatedTime    RFC 3339; null, absent or the start of year 1: no time
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
//
// Written byte for byte as v1.36.3 does: compact, fields in this order, map keys sorted by their
// bytes, a line feed at the end. Omitted if empty: credentialMapping, observedImages, and each
// field of an entry. A missing time is null. v1alpha1, as v1.33 and v1.34 write it, differs in two
// things: apiVersion, and an entry without secrets has "kubernetesSecrets":null. (v1.33 does not
// know kubernetesServiceAccounts and refuses a record that has some.)

#include "migrations/kubelet/kubelet_records.h"

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "store/base/caught.h"
#include "store/base/go_json.h"
#include "store/base/json_document.h"
#include "store/base/options.h"
#include "store/base/timestamp.h"
#include "store/base/try.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {
namespace {

using internal::CheckArray, internal::CheckCount, internal::CheckObject, internal::JsonDocument,
    internal::JsonKind, internal::JsonValue, internal::QuoteForMessage, internal::ReadBool,
    internal::ReadString, internal::Require;

constexpr std::string_view kApiVersions[] = {"kubelet.config.k8s.io/v1beta1",
                                             "kubelet.config.k8s.io/v1alpha1",
                                             "imagemanager.kubelet.config.k8s.io/v1alpha1"};
constexpr std::string_view kRecordFields[] = {"kind",
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
  if (root.kind() != JsonKind::kObject) return root.Expected("an object");
  for (const std::string_view name : {"kind", "apiVersion"}) {
    const auto field = TRY(Require(root, name, JsonKind::kString));
    const std::string_view text = field.text();
    if (name == "kind") {
      if (text != kind) return field.Fail("expected " + QuoteForMessage(kind));
    } else if (std::count(std::begin(kApiVersions), std::end(kApiVersions), text) == 0) {
      return field.Fail("expected " + QuoteForMessage(kApiVersions[0]));
    }
  }
  return {};
}

Result<void> ReadTime(JsonValue value, std::optional<Timestamp>& out) {
  if (value.is_null()) return {};
  if (!value.is_string()) return value.Expected("a string");
  const auto time = ParseTimestamp(value.text());
  if (!time) return value.Fail(time.error().message);
  if (*time != kGoZeroTime) out = *time;
  return {};
}

// `T` is ImagePullSecret or ImagePullServiceAccount; the latter has no hash.
template <typename T>
Result<void> ReadList(JsonValue list, std::string_view what, std::vector<T>& out) {
  if (auto array = CheckArray(list); !array) return array;
  if (auto count = CheckCount(list, kMaxCredentialsPerName, what); !count) return count;
  for (const JsonValue item : list.members()) {
    T& one = out.emplace_back();
    if (auto object = CheckObject(item); !object) return object;
    for (const JsonValue field : item.members()) {
      std::string* target = nullptr;
      if (field.key() == "uid") target = &one.uid;
      if (field.key() == "namespace") target = &one.namespace_name;
      if (field.key() == "name") target = &one.name;
      if constexpr (std::is_same_v<T, ImagePullSecret>) {
        if (field.key() == "credentialHash") target = &one.credential_hash;
      }
      if (target == nullptr) return field.UnknownField();
      if (auto read = ReadString(field, kMaxCoordinateBytes, *target); !read) return read;
    }
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
      read = ReadList(field, "secrets", out.kubernetes_secrets);
    } else if (field.key() == "kubernetesServiceAccounts") {
      read = ReadList(field, "service accounts", out.kubernetes_service_accounts);
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
  TRY(CheckCount(mapping, kMaxImageNamesPerRecord, "image names"));
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
    TRY(ReadCredentials(entry, out[std::string(entry.key())]));
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
  const auto document = TRY(JsonDocument::ParseSecret(json, kMaxRecordFileBytes, kRecordFields));
  const JsonValue root = document.root();
  TRY(CheckHeader(root, kind));

  Record record;
  for (const JsonValue field : root.members()) {
    if (field.key() == "kind" || field.key() == "apiVersion") continue;
    TRY(read(field, record));
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

// --- Writing -------------------------------------------------------------------------------------

// Writes one object. The caller writes all values but strings.
class ObjectWriter {
 public:
  explicit ObjectWriter(std::string& out) : out_(out) { out_ += '{'; }
  ~ObjectWriter() { out_ += '}'; }
  ObjectWriter(const ObjectWriter&) = delete;
  ObjectWriter& operator=(const ObjectWriter&) = delete;

  std::string& Key(std::string_view key) {
    if (!first_) out_ += ',';
    first_ = false;
    AppendGoJsonString(key, out_);
    out_ += ':';
    return out_;
  }
  void String(std::string_view key, std::string_view value) { AppendGoJsonString(value, Key(key)); }

 private:
  std::string& out_;
  bool first_ = true;
};

// The file of a record: its header, then what `write` adds.
template <typename Write>
std::string Encode(std::string_view kind, KubeletApiVersion version, Write write) {
  std::string out;
  {
    ObjectWriter object(out);
    object.String("kind", kind);
    object.String("apiVersion", kApiVersions[version == KubeletApiVersion::kV1Alpha1 ? 1 : 0]);
    write(object);
  }
  out += '\n';
  return out;
}

void WriteTime(const std::optional<Timestamp>& time, ObjectWriter& object) {
  if (time) {
    object.String("lastUpdatedTime", FormatTimestamp({time->seconds, 0}));
  } else {
    object.Key("lastUpdatedTime") += "null";
  }
}

template <typename T>
void WriteList(std::string_view key, const std::vector<T>& items, ObjectWriter& parent) {
  if (items.empty()) return;
  std::string& out = parent.Key(key);
  char separator = '[';
  for (const T& item : items) {
    out += separator;
    separator = ',';
    ObjectWriter object(out);
    object.String("uid", item.uid);
    object.String("namespace", item.namespace_name);
    object.String("name", item.name);
    if constexpr (std::is_same_v<T, ImagePullSecret>) {
      object.String("credentialHash", item.credential_hash);
    }
  }
  out += ']';
}

void WriteCredentials(const ImagePullCredentials& credentials, KubeletApiVersion version,
                      std::string& out) {
  ObjectWriter object(out);
  if (version == KubeletApiVersion::kV1Alpha1 && credentials.kubernetes_secrets.empty()) {
    object.Key("kubernetesSecrets") += "null";
  }
  WriteList("kubernetesSecrets", credentials.kubernetes_secrets, object);
  WriteList("kubernetesServiceAccounts", credentials.kubernetes_service_accounts, object);
  if (credentials.node_pods_accessible) object.Key("nodePodsAccessible") += "true";
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

std::string EncodePulledRecord(const ImagePulledRecord& record, KubeletApiVersion version) {
  return Encode("ImagePulledRecord", version, [&](ObjectWriter& object) {
    WriteTime(record.last_updated, object);
    object.String("imageRef", record.image_ref);
    if (record.credential_mapping.empty()) return;
    ObjectWriter mapping(object.Key("credentialMapping"));
    for (const auto& [image_name, credentials] : record.credential_mapping) {
      WriteCredentials(credentials, version, mapping.Key(image_name));
    }
  });
}

std::string EncodePullIntent(const ImagePullIntent& intent, KubeletApiVersion version) {
  return Encode("ImagePullIntent", version,
                [&](ObjectWriter& object) { object.String("image", intent.image); });
}

std::string EncodePreloadedRecord(const ImagePreloadedRecord& record, KubeletApiVersion version) {
  std::vector<std::string> names = record.observed_images;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return Encode("ImagePreloadedRecord", version, [&](ObjectWriter& object) {
    WriteTime(record.last_updated, object);
    object.String("imageRef", record.image_ref);
    if (names.empty()) return;
    ObjectWriter observed(object.Key("observedImages"));
    for (const std::string& name : names) observed.Key(name) += "{}";
  });
}

}  // namespace waybill
