package waybill

// #cgo noescape waybill_go_decide_first
// #cgo nocallback waybill_go_decide_first
// #cgo noescape waybill_go_decide_without
// #cgo nocallback waybill_go_decide_without
// #cgo noescape waybill_go_decide_one
// #cgo nocallback waybill_go_decide_one
// #cgo noescape waybill_go_decide_few
// #cgo nocallback waybill_go_decide_few
// #cgo noescape waybill_go_decide_many
// #cgo nocallback waybill_go_decide_many
// #include "shim.h"
import "C"

import (
	"runtime"
	"unsafe"
)

// question has the arguments of a decision except the credentials.
type question struct {
	copy ImageCopy
	// The first look of the first of two calls; the second call frees it. 0: there is one call only.
	look C.uintptr_t
}

// decide crosses into C once. Fewer arguments are cheaper, and the usual pod has one secret.
func (o *opened) decide(q *question, credentials *PodCredentials) Decision {
	switch n := len(credentials.Secrets); {
	case n <= 1:
		return o.decideOne(q, credentials)
	case n <= C.WAYBILL_GO_FEW_SECRETS:
		return o.decideFew(q, credentials)
	default:
		return o.decideMany(q, credentials)
	}
}

// decideFirst asks without credentials. If it sets q.look, the answer depends on them: decide q.
func (o *opened) decideFirst(q *question) Decision {
	first := C.waybill_go_decide_first(o.number(), borrowCopy(&q.copy))
	runtime.KeepAlive(o)
	q.look = first.look
	return goDecision(first.bits)
}

// decideWithout decides if the credentials are unavailable.
func (o *opened) decideWithout(q *question) Decision {
	bits := C.waybill_go_decide_without(o.number(), q.look, borrowCopy(&q.copy))
	runtime.KeepAlive(o)
	return goDecision(bits)
}

func (o *opened) decideOne(q *question, credentials *PodCredentials) Decision {
	var secret C.waybill_image_pull_secret
	if len(credentials.Secrets) == 1 {
		secret = borrowSecret(&credentials.Secrets[0])
	}
	account, kind := borrowServiceAccount(credentials.ServiceAccount)
	bits := C.waybill_go_decide_one(o.number(), q.look, borrowCopy(&q.copy), secret, C.size_t(len(credentials.Secrets)), account, kind)
	runtime.KeepAlive(o)
	return goDecision(bits)
}

func (o *opened) decideFew(q *question, credentials *PodCredentials) Decision {
	var few C.waybill_go_few
	for i := range credentials.Secrets {
		few.secrets[i] = borrowSecret(&credentials.Secrets[i])
	}
	account, kind := borrowServiceAccount(credentials.ServiceAccount)
	bits := C.waybill_go_decide_few(o.number(), q.look, borrowCopy(&q.copy), few, C.size_t(len(credentials.Secrets)), account, kind)
	runtime.KeepAlive(o)
	return goDecision(bits)
}

func (o *opened) decideMany(q *question, credentials *PodCredentials) Decision {
	packed, kind := credentials.packed()
	if kind == C.WAYBILL_GO_UNAVAILABLE {
		return o.decideWithout(q)
	}
	bits := C.waybill_go_decide_many(o.number(), q.look, borrowCopy(&q.copy), (*C.char)(unsafe.Pointer(unsafe.SliceData(packed))),
		C.size_t(len(packed)), C.size_t(len(credentials.Secrets)), kind)
	runtime.KeepAlive(o)
	return goDecision(bits)
}

// number is the handle in a form that cgo does not check. Keep the store alive.
func (o *opened) number() C.uintptr_t { return C.uintptr_t(uintptr(unsafe.Pointer(o.handle))) }

func borrowCopy(c *ImageCopy) C.waybill_image_copy {
	return C.waybill_image_copy{
		image:           borrow(c.Image),
		image_ref:       borrow(c.ImageRef),
		runtime_handler: borrow(c.RuntimeHandler),
	}
}

func borrowSecret(s *ImagePullSecret) C.waybill_image_pull_secret {
	return C.waybill_image_pull_secret{
		uid:             borrow(s.UID),
		namespace_name:  borrow(s.Namespace),
		name:            borrow(s.Name),
		credential_hash: borrow(s.CredentialHash),
	}
}

func borrowServiceAccount(a *ImagePullServiceAccount) (C.waybill_image_pull_service_account, C.int32_t) {
	if a == nil {
		return C.waybill_image_pull_service_account{}, C.WAYBILL_GO_SECRETS
	}
	return C.waybill_image_pull_service_account{
		uid:            borrow(a.UID),
		namespace_name: borrow(a.Namespace),
		name:           borrow(a.Name),
	}, C.WAYBILL_GO_SECRETS_AND_ACCOUNT
}

func goDecision(bits C.uint32_t) Decision {
	return Decision{
		usePresent:      bits&1 == 0,
		CredentialsRead: bits&2 != 0,
		Result:          CheckResult(bits >> 8),
		Reason:          Reason(bits >> 16),
	}
}
