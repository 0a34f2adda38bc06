// The kubelet's JSON: its record files, lists of images and of pods, and the documents that hold
// pull credentials. Decoding is strict (an unknown or repeated field, a field in another case, a
// wrong kind, version or type, broken JSON or text behind it is kInvalidArgument, naming the
// field); kLimitExceeded for a document above limits.h. Pure, thread-safe.

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

// Accepts apiVersion kubelet.config.k8s.io/v1alpha1 and /v1beta1, and what the text of KEP-2535
// shows: the group imagemanager.kubelet.config.k8s.io/v1alpha1, and the list
// kubernetesSecretCoordinates (one of the two lists, not both).
Result<ImagePulledRecord> DecodePulledRecord(std::string_view json);
Result<ImagePullIntent> DecodePullIntent(std::string_view json);
Result<ImagePreloadedRecord> DecodePreloadedRecord(std::string_view json);

// As v1.36.3 writes them, or, as v1alpha1, kubelets to v1.34: times cut to the second, mapping
// sorted by name. Runtime handlers and manifests have no place there and are left out.
std::string EncodePulledRecord(const ImagePulledRecord& record,
                               KubeletApiVersion version = KubeletApiVersion::kV1Beta1);
std::string EncodePullIntent(const ImagePullIntent& intent,
                             KubeletApiVersion version = KubeletApiVersion::kV1Beta1);
std::string EncodePreloadedRecord(const ImagePreloadedRecord& record,
                                  KubeletApiVersion version = KubeletApiVersion::kV1Beta1);

// `crictl images -o json`: {"images":[{"id":…,"repoTags":[…],"repoDigests":[…],
// "spec":{"runtimeHandler":…},…}]}. Fields beside these are the runtime's own and pass.
// kInvalidArgument without "images" or an image without id.
Result<std::vector<ImageOnNode>> DecodeImageList(std::string_view json);

// The UIDs of the pods in a list that `kubectl get pods -o json`, the kubelet's /pods or `crictl
// pods -o json` prints: {"items":[{"metadata":{"uid":…},…},…]}. Of a static pod also that by which
// its node knows it (annotations kubernetes.io/config.hash and .mirror). One UID may be there more
// than once. kInvalidArgument without "items", a pod without UID, or a list that is only a page of
// one.
Result<std::vector<std::string>> DecodePodList(std::string_view json);

// One registry's credentials out of a docker config (config.json or .dockercfg form) or of a Secret
// of type kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg.
struct RegistryAuth {
  std::string registry;
  AuthConfig auth;
};
// In the document's order. Other fields pass, as they do for the kubelet. kInvalidArgument names
// the registry whose `auth` is not base64 of "user:password".
Result<std::vector<RegistryAuth>> DecodeAuthDocument(std::string_view json);

// "2026-01-02T03:04:05Z", and back: RFC 3339, any offset, a fraction of up to nine digits; years 1
// to 9999; no leap second (kubelet behaviour).
std::string FormatTimestamp(Timestamp time);
Result<Timestamp> ParseTimestamp(std::string_view text);

}  // namespace waybill

#endif  // WAYBILL_KUBELET_FORMAT_H_
