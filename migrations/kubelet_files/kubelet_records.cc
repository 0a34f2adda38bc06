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

#include "migrations/kubelet_files/kubelet_records.h"

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "store/base/caught.h"
#include "store/base/described.h"
#include "store/base/go_json.h"
#include "store/base/options.h"
#include "store/base/quote.h"
#include "store/base/timestamp.h"
#include "store/base/try.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {
namespace {

using internal::Bounds, internal::Strangers;

constexpr std::string_view kApiVersions[] = {"kubelet.config.k8s.io/v1beta1",
                                             "kubelet.config.k8s.io/v1alpha1",
                                             "imagemanager.kubelet.config.k8s.io/v1alpha1"};
constexpr Bounds kRecordCoordinate = {.bytes = kMaxCoordinateBytes};
constexpr Bounds kRecordCredentials = {.count = kMaxCredentialsPerName, .may_be_null = true};
constexpr Bounds kRecordNames = {.bytes = kMaxImageBytes, .count = kMaxImageNamesPerRecord};

struct RecordTime {
  std::optional<Timestamp> time = {};
};
bool FromText(std::string_view text, RecordTime& out) {
  constexpr Timestamp kGoZeroTime{-62135596800, 0};
  const auto time = ParseTimestamp(text);
  if (time && *time != kGoZeroTime) out.time = *time;
  return time.has_value();
}
constexpr std::string_view FormOf(const RecordTime*) { return "a time like 2026-01-02T03:04:05Z"; }

struct RecordSecret : ImagePullSecret {
  void Describe(auto& v) const {
    v.Optional("uid", uid, kRecordCoordinate);
    v.Optional("namespace", namespace_name, kRecordCoordinate);
    v.Optional("name", name, kRecordCoordinate);
    v.Optional("credentialHash", credential_hash, kRecordCoordinate);
  }
};

struct RecordAccount : ImagePullServiceAccount {
  void Describe(auto& v) const {
    v.Optional("uid", uid, kRecordCoordinate);
    v.Optional("namespace", namespace_name, kRecordCoordinate);
    v.Optional("name", name, kRecordCoordinate);
  }
};

struct RecordCredentials {
  std::vector<RecordSecret> secrets = {};
  std::vector<RecordAccount> service_accounts = {};
  bool node_pods_accessible = false;

  void Describe(auto& v) const {
    v.Optional("kubernetesSecrets", secrets, kRecordCredentials);
    v.Also("kubernetesSecretCoordinates", secrets);
    v.Optional("kubernetesServiceAccounts", service_accounts, kRecordCredentials);
    v.Optional("nodePodsAccessible", node_pods_accessible);
  }
};

struct RecordHeader {
  std::string kind = {};
  std::string api_version = {};

  void Describe(auto& v) const {
    v("kind", kind);
    v("apiVersion", api_version);
  }
};

struct PulledFile : RecordHeader {
  std::optional<RecordTime> last_updated = {};
  std::string image_ref = {};
  std::map<std::string, RecordCredentials> credential_mapping = {};

  void Describe(auto& v) const {
    RecordHeader::Describe(v);
    v.Optional("lastUpdatedTime", last_updated);
    v.Optional("imageRef", image_ref, {.bytes = kMaxImageRefBytes});
    v.Optional("credentialMapping", credential_mapping, kRecordNames);
  }
};

struct IntentFile : RecordHeader {
  ImagePullIntent intent = {};

  void Describe(auto& v) const {
    RecordHeader::Describe(v);
    v.Optional("image", intent.image, {.bytes = kMaxImageBytes});
  }
};

struct NoFields {
  void Describe(auto& /*v*/) const {}
};

struct PreloadedFile : RecordHeader {
  std::optional<RecordTime> last_updated = {};
  std::string image_ref = {};
  std::map<std::string, NoFields> observed_images = {};

  void Describe(auto& v) const {
    RecordHeader::Describe(v);
    v.Optional("lastUpdatedTime", last_updated);
    v.Optional("imageRef", image_ref, {.bytes = kMaxImageRefBytes});
    v.Optional("observedImages", observed_images, kRecordNames);
  }
};

// The header goes first, so that a file of a later version is reported as such, not for an unknown
// field.
template <typename File>
Result<File> ReadRecord(std::string_view json, std::string_view kind) {
  RecordHeader header;
  TRY(internal::ReadForeign(json, kMaxRecordFileBytes, header));
  if (header.kind != kind) {
    return internal::WrongAt("kind", "expected " + internal::QuoteForMessage(kind));
  }
  if (std::ranges::count(kApiVersions, header.api_version) == 0) {
    return internal::WrongAt("apiVersion",
                             "expected " + internal::QuoteForMessage(kApiVersions[0]));
  }
  File file;
  TRY(internal::ReadForeign(json, kMaxRecordFileBytes, file, Strangers::kGoStrict));
  return file;
}

std::optional<Timestamp> RecordTimeOf(const std::optional<RecordTime>& read) {
  return read ? read->time : std::nullopt;
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
  return internal::Guarded([&]() -> Result<ImagePulledRecord> {
    const auto file = TRY(ReadRecord<PulledFile>(json, "ImagePulledRecord"));
    ImagePulledRecord record{.image_ref = file.image_ref,
                             .last_updated = RecordTimeOf(file.last_updated)};
    for (const auto& [name, read] : file.credential_mapping) {
      ImagePullCredentials& credentials = record.credential_mapping[name];
      credentials.kubernetes_secrets = {read.secrets.begin(), read.secrets.end()};
      credentials.kubernetes_service_accounts = {read.service_accounts.begin(),
                                                 read.service_accounts.end()};
      credentials.node_pods_accessible = read.node_pods_accessible;
    }
    return record;
  });
}

Result<ImagePullIntent> DecodePullIntent(std::string_view json) {
  return internal::Guarded([&]() -> Result<ImagePullIntent> {
    return TRY(ReadRecord<IntentFile>(json, "ImagePullIntent")).intent;
  });
}

Result<ImagePreloadedRecord> DecodePreloadedRecord(std::string_view json) {
  return internal::Guarded([&]() -> Result<ImagePreloadedRecord> {
    const auto file = TRY(ReadRecord<PreloadedFile>(json, "ImagePreloadedRecord"));
    ImagePreloadedRecord record{.image_ref = file.image_ref,
                                .last_updated = RecordTimeOf(file.last_updated)};
    for (const auto& [name, nothing] : file.observed_images) record.observed_images.push_back(name);
    return record;
  });
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
