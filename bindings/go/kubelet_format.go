package waybill

// #include "shim.h"
import "C"

import "time"

// DecodePulledRecord reads a file of the kubelet's pulled/, strictly: ErrInvalidArgument names the
// field that is unknown, repeated, in another case or of another type; ErrLimitExceeded names the
// bound. It accepts v1alpha1, v1beta1 and the form that the text of KEP-2535 shows.
func DecodePulledRecord(json []byte) (ImagePulledRecord, error) {
	var record *C.waybill_image_pulled_record
	var e *C.waybill_error
	code := C.waybill_decode_pulled_record(borrowBytes(json), &record, &e)
	return take(record, goImagePulledRecord), takeError(code, e)
}

// DecodePullIntent reads a file of the kubelet's pulling/. Errors as of [DecodePulledRecord].
func DecodePullIntent(json []byte) (ImagePullIntent, error) {
	var intent *C.waybill_image_pull_intent
	var e *C.waybill_error
	code := C.waybill_decode_pull_intent(borrowBytes(json), &intent, &e)
	return take(intent, goImagePullIntent), takeError(code, e)
}

// DecodePreloadedRecord reads a file of the kubelet's observed-preloaded/. Errors as of
// [DecodePulledRecord].
func DecodePreloadedRecord(json []byte) (ImagePreloadedRecord, error) {
	var record *C.waybill_image_preloaded_record
	var e *C.waybill_error
	code := C.waybill_decode_preloaded_record(borrowBytes(json), &record, &e)
	return take(record, goImagePreloadedRecord), takeError(code, e)
}

// EncodePulledRecord returns a record as kubelets of that API version write it: times cut to the
// second, the mapping sorted by name, without runtime handler and manifest.
func EncodePulledRecord(r ImagePulledRecord, v KubeletAPIVersion) ([]byte, error) {
	var a arena
	defer a.free()
	var json *C.waybill_string
	var e *C.waybill_error
	code := C.waybill_encode_pulled_record(cRecord(&a, &r), C.int32_t(v), &json, &e)
	return takeBytes(json), takeError(code, e)
}

// EncodePullIntent returns an intent as kubelets of that API version write it.
func EncodePullIntent(i ImagePullIntent, v KubeletAPIVersion) ([]byte, error) {
	var a arena
	defer a.free()
	intent := one[C.waybill_image_pull_intent](&a)
	intent.image = a.string(i.Image)
	intent.runtime_handler = a.string(i.RuntimeHandler)
	var json *C.waybill_string
	var e *C.waybill_error
	code := C.waybill_encode_pull_intent(intent, C.int32_t(v), &json, &e)
	return takeBytes(json), takeError(code, e)
}

// EncodePreloadedRecord returns a record as kubelets of that API version write it.
func EncodePreloadedRecord(r ImagePreloadedRecord, v KubeletAPIVersion) ([]byte, error) {
	var a arena
	defer a.free()
	record := one[C.waybill_image_preloaded_record](&a)
	record.image_ref = a.string(r.ImageRef)
	record.last_updated = a.time(r.LastUpdatedTime)
	record.observed_images = a.strings(r.ObservedImages)
	var json *C.waybill_string
	var e *C.waybill_error
	code := C.waybill_encode_preloaded_record(record, C.int32_t(v), &json, &e)
	return takeBytes(json), takeError(code, e)
}

// DecodeImageList reads `crictl images -o json`. ErrInvalidArgument: no "images", or an image without
// id.
func DecodeImageList(json []byte) ([]ImageOnNode, error) {
	var images *C.waybill_images_on_node
	var e *C.waybill_error
	code := C.waybill_decode_image_list(borrowBytes(json), &images, &e)
	return take(images, func(i *C.waybill_images_on_node) []ImageOnNode {
		// Not nil: an empty list says that there are no images.
		return append([]ImageOnNode{}, goList(i.items, i.count, goImageOnNode)...)
	}), takeError(code, e)
}

// DecodePodList reads the UIDs of the pods in `kubectl get pods -o json`, the kubelet's /pods or
// `crictl pods -o json`; for a static pod also the UID that its node uses. ErrInvalidArgument: no
// "items", a pod without UID, or a list that is only one page.
func DecodePodList(json []byte) ([]string, error) {
	var uids *C.waybill_strings
	var e *C.waybill_error
	code := C.waybill_decode_pod_list(borrowBytes(json), &uids, &e)
	return take(uids, func(u *C.waybill_strings) []string { return goStrings(*u) }), takeError(code, e)
}

// DecodeRuntimeStatus reads the runtime handlers out of `crictl info` (CRI's StatusResponse).
// ErrInvalidArgument: not JSON, no "runtimeHandlers", a field of another type, a name twice or
// malformed; ErrLimitExceeded.
func DecodeRuntimeStatus(json []byte) ([]RuntimeHandler, error) {
	var handlers *C.waybill_runtime_handlers
	var e *C.waybill_error
	code := C.waybill_decode_runtime_status(borrowBytes(json), &handlers, &e)
	return take(handlers, goRuntimeHandlers), takeError(code, e)
}

// RegistryAuth is one registry's credentials.
type RegistryAuth struct {
	Registry string
	Auth     AuthConfig
}

// DecodeAuthDocument reads a docker config (config.json or .dockercfg form), or a Secret of type
// kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg, in the document's order. The C copy of
// the result is wiped; the memory that decoding used, and the Go strings, are not. ErrInvalidArgument
// names the registry whose `auth` is not base64 of "user:password".
func DecodeAuthDocument(json []byte) ([]RegistryAuth, error) {
	var auths *C.waybill_registry_auths
	var e *C.waybill_error
	code := C.waybill_decode_auth_document(borrowBytes(json), &auths, &e)
	return take(auths, func(r *C.waybill_registry_auths) []RegistryAuth {
		return goList(r.items, r.count, func(r *C.waybill_registry_auth) RegistryAuth {
			return RegistryAuth{goString(r.registry), AuthConfig{
				Username: goString(r.username),
				Password: goString(r.password),
				Email:    goString(r.email),
			}}
		})
	}), takeError(code, e)
}

// FormatTimestamp returns "2026-01-02T03:04:05Z", with a fraction if t has one. ErrInvalidArgument: the
// year is not 1 to 9999.
func FormatTimestamp(t time.Time) (string, error) {
	var text *C.waybill_string
	var e *C.waybill_error
	code := C.waybill_format_timestamp(cTime(t), &text, &e)
	return takeString(text), takeError(code, e)
}

// ParseTimestamp reads RFC 3339 with any offset, a fraction of up to nine digits, and years 1 to 9999,
// but no leap second (kubelet behaviour). ErrInvalidArgument for anything else.
func ParseTimestamp(text string) (time.Time, error) {
	var t C.waybill_timestamp
	var e *C.waybill_error
	if err := takeError(C.waybill_parse_timestamp(borrow(text), &t, &e), e); err != nil {
		return time.Time{}, err
	}
	return goTime(t), nil
}
