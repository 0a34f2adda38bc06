package waybill

// #include "shim.h"
import "C"

import "encoding/binary"

// More credentials than fit in arguments cross into C packed into one buffer; shim.h has the format.

// Above this, a pod's credentials count as unavailable. The API server accepts no object larger than
// about 3 MiB.
const maxPackedBytes = 256 << 20

// strings yields the strings of the packed form, in its order.
func (p *PodCredentials) strings(yield func(string) bool) {
	for i := range p.Secrets {
		s := &p.Secrets[i]
		if !yield(s.UID) || !yield(s.Namespace) || !yield(s.Name) || !yield(s.CredentialHash) {
			return
		}
	}
	if a := p.ServiceAccount; a != nil {
		_ = yield(a.UID) && yield(a.Namespace) && yield(a.Name)
	}
}

// packed returns the packed form on the heap, and its kind. C checks it again: the caller may change
// the credentials meanwhile.
func (p *PodCredentials) packed() ([]byte, C.int32_t) {
	size := 0
	for s := range p.strings {
		if size += 8 + len(s); size > maxPackedBytes {
			return nil, C.WAYBILL_GO_UNAVAILABLE
		}
	}
	b := make([]byte, 0, size)
	for s := range p.strings {
		b = binary.NativeEndian.AppendUint64(b, uint64(len(s)))
		b = append(b, s...)
	}
	if p.ServiceAccount != nil {
		return b, C.WAYBILL_GO_SECRETS_AND_ACCOUNT
	}
	return b, C.WAYBILL_GO_SECRETS
}
