package waybill

// #include "shim.h"
import "C"

import "encoding/binary"

// More credentials than fit in arguments cross into C packed into one buffer; shim.h has the format.

// Above this, a pod's credentials count as unavailable. The API server accepts no object larger than
// about 3 MiB.
const maxPackedBytes = 256 << 20

// packedBytes returns the length of the packed form; false: it is above maxPackedBytes.
func (p *PodCredentials) packedBytes() (int, bool) {
	bytes := 0
	for i := range p.Secrets {
		s := &p.Secrets[i]
		for _, n := range [...]int{len(s.UID), len(s.Namespace), len(s.Name), len(s.CredentialHash)} {
			if bytes += 8 + n; bytes > maxPackedBytes {
				return 0, false
			}
		}
	}
	if a := p.ServiceAccount; a != nil {
		for _, n := range [...]int{len(a.UID), len(a.Namespace), len(a.Name)} {
			if bytes += 8 + n; bytes > maxPackedBytes {
				return 0, false
			}
		}
	}
	return bytes, true
}

// pack writes the credentials to the beginning of b, and returns their length; false: they don't
// fit.
func (p *PodCredentials) pack(b []byte) (int, bool) {
	at := 0
	for i := range p.Secrets {
		s := &p.Secrets[i]
		if len(b)-at < 4*8+len(s.UID)+len(s.Namespace)+len(s.Name)+len(s.CredentialHash) {
			return 0, false
		}
		at = packString(b, at, s.UID)
		at = packString(b, at, s.Namespace)
		at = packString(b, at, s.Name)
		at = packString(b, at, s.CredentialHash)
	}
	if a := p.ServiceAccount; a != nil {
		if len(b)-at < 3*8+len(a.UID)+len(a.Namespace)+len(a.Name) {
			return 0, false
		}
		at = packString(b, at, a.UID)
		at = packString(b, at, a.Namespace)
		at = packString(b, at, a.Name)
	}
	return at, true
}

func packString(b []byte, at int, s string) int {
	binary.NativeEndian.PutUint64(b[at:], uint64(len(s)))
	return at + 8 + copy(b[at+8:], s)
}

// packedKind says what the packed form holds.
func (p *PodCredentials) packedKind() C.int32_t {
	if p.ServiceAccount != nil {
		return C.WAYBILL_GO_SECRETS_AND_ACCOUNT
	}
	return C.WAYBILL_GO_SECRETS
}

// packed returns the packed form of any credentials, on the heap.
func (p *PodCredentials) packed() ([]byte, C.int32_t) {
	bytes, ok := p.packedBytes()
	if !ok {
		return nil, C.WAYBILL_GO_UNAVAILABLE
	}
	kind := C.int32_t(C.WAYBILL_GO_SECRETS)
	if p.ServiceAccount != nil {
		kind = C.WAYBILL_GO_SECRETS_AND_ACCOUNT
	}
	b := make([]byte, bytes)
	if n, ok := p.pack(b); !ok || n != bytes { // the caller changed them at the same time
		return nil, C.WAYBILL_GO_UNAVAILABLE
	}
	return b, kind
}
