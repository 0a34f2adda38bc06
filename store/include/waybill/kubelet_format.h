// The kubelet's JSON: its record files, lists of images and of pods, and the documents that hold
// pull credentials. Decoding is strict: an unknown or repeated field, a field in another case, a
// wrong kind, version or type, broken JSON or text after it is kInvalidArgument. The error names
// the field. A document beyond the bounds in limits.h is kLimitExceeded. Pure, thread-safe.

#ifndef WAYBILL_KUBELET_FORMAT_H_
#define WAYBILL_KUBELET_FORMAT_H_

#include <string>
#include <string_view>
#include <vector>

#include "waybill/credential_hash.h"
#include "waybill/maintenance.h"
#include "waybill/result.h"
#include "waybill/types.h"

namespace [[gnu::visibility("default")]] waybill {

// Reads a file of the kubelet's pulled/, strictly: kInvalidArgument names the field that is
// unknown, repeated, in another case or of another type; kLimitExceeded names the bound. Accepts
// apiVersion kubelet.config.k8s.io/v1alpha1 and /v1beta1, and the form in KEP-2535: the group
// imagemanager.kubelet.config.k8s.io/v1alpha1, and the list kubernetesSecretCoordinates (one of the
// two lists, not both).
Result<ImagePulledRecord> DecodePulledRecord(std::string_view json);
// Reads a file of the kubelet's pulling/. Errors as of DecodePulledRecord.
Result<ImagePullIntent> DecodePullIntent(std::string_view json);
// Reads a file of the kubelet's observed-preloaded/. Errors as of DecodePulledRecord.
Result<ImagePreloadedRecord> DecodePreloadedRecord(std::string_view json);

// The bytes that kubelet v1.36.3 writes, or, for v1alpha1, kubelets up to v1.34: times cut to the
// second, the mapping sorted by name. Runtime handlers and manifests are left out.
std::string EncodePulledRecord(const ImagePulledRecord& record,
                               KubeletApiVersion version = KubeletApiVersion::kV1Beta1);
// As kubelets of that API version write it.
std::string EncodePullIntent(const ImagePullIntent& intent,
                             KubeletApiVersion version = KubeletApiVersion::kV1Beta1);
// As kubelets of that API version write it.
std::string EncodePreloadedRecord(const ImagePreloadedRecord& record,
                                  KubeletApiVersion version = KubeletApiVersion::kV1Beta1);

// Reads `crictl images -o json`: {"images":[{"id":…,"repoTags":[…],"repoDigests":[…],
// "pinned":…,"spec":{"runtimeHandler":…},…}]}. Other fields are ignored. kInvalidArgument: "images"
// or the id of an image is missing. kLimitExceeded: more than kMaxListedImages.
Result<std::vector<ListedImage>> DecodeImageList(std::string_view json);
// The same, but an image with a name may lack its id (NodeStoreOptions::preloaded).
Result<std::vector<ListedImage>> DecodePreloadedList(std::string_view json);

// The UIDs of the pods in a list that `kubectl get pods -o json`, the kubelet's /pods or `crictl
// pods -o json` prints: {"items":[{"metadata":{"uid":…},…},…]}. For a static pod, the UID under
// which its node knows it is included (annotations kubernetes.io/config.hash and .mirror). A UID
// may occur more than once. kInvalidArgument: "items" or the UID of a pod is missing, or the list
// is only one page of several.
Result<std::vector<std::string>> DecodePodList(std::string_view json);

// One registry's credentials out of a docker config (config.json or .dockercfg form) or of a Secret
// of type kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg.
struct RegistryAuth {
  std::string registry = {};
  AuthConfig auth = {};
};
// Reads a docker config, or a Secret that holds one, in the document's order. Other fields are
// ignored, as by the kubelet. kInvalidArgument: an `auth` is not base64 of "user:password"; the
// error names the registry.
Result<std::vector<RegistryAuth>> DecodeAuthDocument(std::string_view json);

// "2026-01-02T03:04:05Z", with a fraction if the time has one.
std::string FormatTimestamp(Timestamp time);
// Reads RFC 3339 with any offset, a fraction of up to nine digits, and years 1 to 9999, but no leap
// second (kubelet behaviour). kInvalidArgument for anything else.
Result<Timestamp> ParseTimestamp(std::string_view text);

}  // namespace waybill

#endif  // WAYBILL_KUBELET_FORMAT_H_
