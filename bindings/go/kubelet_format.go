package waybill

// #include "shim.h"
import "C"

import "time"

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
