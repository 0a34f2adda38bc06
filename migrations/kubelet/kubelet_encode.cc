// Writes the kubelet's record files, byte for byte as v1.36.3 does: the form in kubelet_decode.cc,
// compact, fields in that order, map keys sorted by their bytes, a line feed at the end. Omitted if
// empty: credentialMapping, observedImages, and each field of an entry. A missing time is null.
//
// v1alpha1, as v1.33 and v1.34 write it, differs in two things: apiVersion, and an entry without
// secrets has "kubernetesSecrets":null. (v1.33 does not know kubernetesServiceAccounts and refuses
// a record that has some.)

#include <algorithm>

#include "store/base/go_json.h"
#include "waybill/kubelet_format.h"

namespace waybill {
namespace {

std::string_view ApiVersion(KubeletApiVersion version) {
  return version == KubeletApiVersion::kV1Alpha1 ? "kubelet.config.k8s.io/v1alpha1"
                                                 : "kubelet.config.k8s.io/v1beta1";
}

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

void WriteHeader(std::string_view kind, KubeletApiVersion version, ObjectWriter& object) {
  object.String("kind", kind);
  object.String("apiVersion", ApiVersion(version));
}

void WriteTime(const std::optional<Timestamp>& time, ObjectWriter& object) {
  if (time) {
    object.String("lastUpdatedTime", FormatTimestamp({time->seconds, 0}));
  } else {
    object.Key("lastUpdatedTime") += "null";
  }
}

template <typename T, typename WriteItem>
void WriteList(std::string_view key, const std::vector<T>& items, ObjectWriter& parent,
               WriteItem write_item) {
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
    write_item(item, object);
  }
  out += ']';
}

void WriteCredentials(const ImagePullCredentials& credentials, KubeletApiVersion version,
                      std::string& out) {
  ObjectWriter object(out);
  if (version == KubeletApiVersion::kV1Alpha1 && credentials.kubernetes_secrets.empty()) {
    object.Key("kubernetesSecrets") += "null";
  }
  WriteList("kubernetesSecrets", credentials.kubernetes_secrets, object,
            [](const ImagePullSecret& secret, ObjectWriter& item) {
              item.String("credentialHash", secret.credential_hash);
            });
  WriteList("kubernetesServiceAccounts", credentials.kubernetes_service_accounts, object,
            [](const ImagePullServiceAccount&, ObjectWriter&) {});
  if (credentials.node_pods_accessible) object.Key("nodePodsAccessible") += "true";
}

}  // namespace

std::string EncodePulledRecord(const ImagePulledRecord& record, KubeletApiVersion version) {
  std::string out;
  {
    ObjectWriter object(out);
    WriteHeader("ImagePulledRecord", version, object);
    WriteTime(record.last_updated, object);
    object.String("imageRef", record.image_ref);
    if (!record.credential_mapping.empty()) {
      ObjectWriter mapping(object.Key("credentialMapping"));
      for (const auto& [image_name, credentials] : record.credential_mapping) {
        WriteCredentials(credentials, version, mapping.Key(image_name));
      }
    }
  }
  out += '\n';
  return out;
}

std::string EncodePullIntent(const ImagePullIntent& intent, KubeletApiVersion version) {
  std::string out;
  {
    ObjectWriter object(out);
    WriteHeader("ImagePullIntent", version, object);
    object.String("image", intent.image);
  }
  out += '\n';
  return out;
}

std::string EncodePreloadedRecord(const ImagePreloadedRecord& record, KubeletApiVersion version) {
  std::vector<std::string> names = record.observed_images;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string out;
  {
    ObjectWriter object(out);
    WriteHeader("ImagePreloadedRecord", version, object);
    WriteTime(record.last_updated, object);
    object.String("imageRef", record.image_ref);
    if (!names.empty()) {
      ObjectWriter observed(object.Key("observedImages"));
      for (const std::string& name : names) observed.Key(name) += "{}";
    }
  }
  out += '\n';
  return out;
}

}  // namespace waybill
