package waybill

// #include "shim.h"
import "C"

import "encoding/binary"

// A pod's credentials on their way down (shim.h has the format).

const (
	// Two secrets of the usual lengths; eight of them, and more.
	fewPackedBytes  = 512
	somePackedBytes = 4096
	// Beyond this a pod's credentials count as unavailable. The API server takes no object larger
	// than some 3 MiB.
	maxPackedBytes = 256 << 20
)

// packedBytes is how long the packed form is; false: longer than maxPackedBytes.
func (p *PodCredentials) packedBytes() (int, bool) {
	bytes := 0
	for i := range p.Secrets {
		s := &p.Secrets[i]
		for _, n := range [...]int{len(s.UID), len(s.Namespace), len(s.Name), len(s.CredentialHash)} {
			if n > maxPackedBytes {
				return 0, false
			}
			bytes += 8 + n
		}
		if bytes > maxPackedBytes {
			return 0, false
		}
	}
	if a := p.ServiceAccount; a != nil {
		for _, n := range [...]int{len(a.UID), len(a.Namespace), len(a.Name)} {
			if n > maxPackedBytes {
				return 0, false
			}
			bytes += 8 + n
		}
	}
	return bytes, bytes <= maxPackedBytes
}

// pack fills b, of packedBytes bytes or more, and returns how many it took. Where the caller changes
// the secrets at the same time C finds what doesn't fit, and the answer is "pull".
func (p *PodCredentials) pack(b []byte) (int, C.int32_t) {
	at := 0
	for i := range p.Secrets {
		s := &p.Secrets[i]
		at = packString(b, at, s.UID)
		at = packString(b, at, s.Namespace)
		at = packString(b, at, s.Name)
		at = packString(b, at, s.CredentialHash)
	}
	if a := p.ServiceAccount; a != nil {
		at = packString(b, at, a.UID)
		at = packString(b, at, a.Namespace)
		at = packString(b, at, a.Name)
		return at, C.WAYBILL_GO_SECRETS_AND_ACCOUNT
	}
	return at, C.WAYBILL_GO_SECRETS
}

func packString(b []byte, at int, s string) int {
	binary.NativeEndian.PutUint64(b[at:], uint64(len(s)))
	return at + 8 + copy(b[at+8:], s)
}
