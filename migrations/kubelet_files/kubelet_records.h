// The kubelet's record files. Decoding is strict: an unknown or repeated field, a field in another
// case, a wrong kind, version or type, broken JSON or text after it is kInvalidArgument. The error
// names the field. A document beyond the bounds in limits.h is kLimitExceeded. Pure, thread-safe.

#ifndef WAYBILL_MIGRATIONS_KUBELET_FILES_KUBELET_RECORDS_H_
#define WAYBILL_MIGRATIONS_KUBELET_FILES_KUBELET_RECORDS_H_

#include <string>
#include <string_view>

#include "store/base/options.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill {

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

}  // namespace waybill

#endif  // WAYBILL_MIGRATIONS_KUBELET_FILES_KUBELET_RECORDS_H_
