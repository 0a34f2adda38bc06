package waybill

// #cgo noescape waybill_go_parse_image
// #cgo nocallback waybill_go_parse_image
// #include "shim.h"
import "C"

// HashCredentials returns the hash under which a Secret's credentials are remembered: byte for byte
// what the kubelet computes, the lower-case hex SHA-256 of the auth config's compact JSON.
// ErrOutOfMemory.
func HashCredentials(auth AuthConfig) (string, error) {
	var hash *C.waybill_string
	var e *C.waybill_error
	code := C.waybill_hash_credentials(borrow(auth.Username), borrow(auth.Password),
		borrow(auth.Email), &hash, &e)
	return takeString(hash), takeError(code, e)
}

// AuthConfig is one entry of a docker config, with its base64 `auth` decoded into Username and
// Password.
type AuthConfig struct {
	Username, Password, Email string
}

// ImageParts are the parts of an image string, by the grammar of the distribution/reference library
// (kubelet behaviour). Name is the image name, under which credentials are kept: the string without
// tag and digest, otherwise unchanged.
type ImageParts struct {
	Name   string
	Domain string // "registry.example.com:443"; may be empty
	Path   string // what follows domain and '/'
	Tag    string // without ':'
	Digest string // "sha256:…", without '@'
}

// ParseImage cuts an image string into its parts; false: it does not parse. Any bytes are safe.
func ParseImage(image string) (ImageParts, bool) {
	var out C.waybill_go_image_parts
	if !C.waybill_go_parse_image(borrow(image), &out) {
		return ImageParts{}, false
	}
	part := func(i int) string {
		begin := int(out.parts[i][0])
		return image[begin : begin+int(out.parts[i][1])]
	}
	return ImageParts{Name: part(0), Domain: part(1), Path: part(2), Tag: part(3), Digest: part(4)}, true
}

// NormaliseImage returns the full form: registry and `library/` filled in, and the tag `latest` if
// there is neither tag nor digest. ErrInvalidArgument: image does not parse or would be ambiguous (64
// hex digits). Decisions do not use it (kubelet behaviour).
func NormaliseImage(image string) (string, error) {
	var full *C.waybill_string
	var e *C.waybill_error
	code := C.waybill_normalise_image(borrow(image), &full, &e)
	return takeString(full), takeError(code, e)
}

// ChooseManifest returns the manifest that a runtime on host pulls, for a handler with the guest
// platform guest, nil for none (KEP-4216; containerd's platform matchers; for Windows, its container
// version compatibility). ErrNotFound: no manifest matches; the error lists what the index offers.
// ErrInvalidArgument: a platform without OS or architecture, or with a malformed Windows version.
func ChooseManifest(index []ManifestDescriptor, host Platform, guest *Platform) (ManifestDescriptor, error) {
	var a arena
	defer a.free()
	list := one[C.waybill_image_index](&a)
	list.items, list.count = cList(&a, index, cManifestDescriptor)
	var chosen C.size_t
	var e *C.waybill_error
	code := C.waybill_choose_manifest(list, put(&a, cPlatform(&a, &host)), cIfAny(&a, guest, cPlatform), &chosen, &e)
	if err := takeError(code, e); err != nil {
		return ManifestDescriptor{}, err
	}
	return index[chosen], nil
}
