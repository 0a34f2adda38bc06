package store

// #cgo noescape waybill_go_decide_secret
// #cgo nocallback waybill_go_decide_secret
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

	"waybill.dev/go"
)

// ImageCopy is the copy of an image that a decision is about. Name the fields: an image string in the
// place of the ref would ask about another copy, of which the store may know nothing.
type ImageCopy struct {
	Image          string // the container's image string, as the pod wrote it
	ImageRef       string // what the runtime returned for it; empty: not on the node
	RuntimeHandler string // of the pod's RuntimeClass; empty: the default one
}

// PodCredentials are those with which the kubelet would pull the image for a pod.
type PodCredentials struct {
	Secrets        []waybill.Secret // the pod's imagePullSecrets that match the image
	ServiceAccount *waybill.ServiceAccount
}

// Result prints the kubelet's label: "credentialRecordFound"; "" if the image was not on the node.
type Result uint8

// Reason prints a word: "secretHashMatches".
type Reason uint8

// Their texts live for ever in the library. A decision compares and counts by them without a crossing.
var results, reasons, sentences = func() (results, reasons, sentences [256]string) {
	for i := range 256 {
		results[i] = C.GoString(C.waybill_result_name(C.uint8_t(i)))
		reasons[i] = C.GoString(C.waybill_reason_name(C.uint8_t(i)))
		sentences[i] = C.GoString(C.waybill_reason_text(C.uint8_t(i)))
	}
	return
}()

func (r Result) String() string { return results[r] }
func (r Reason) String() string { return reasons[r] }

// Text is the reason in one sentence without a full stop.
func (r Reason) Text() string { return sentences[r] }

// Decision is the answer to "must this pull be attempted?". Reason is for the node's own log, never
// for the pod. The zero Decision says "pull".
type Decision struct {
	Use             bool // start the container with the image on the node
	CredentialsRead bool // whether the pod's credentials were looked at
	Result          Result
	Reason          Reason
}

// String returns "pull: noCredentialMatches" or "use: secretHashMatches", for the node's log.
func (d Decision) String() string {
	if d.Use {
		return "use: " + d.Reason.String()
	}
	return "pull: " + d.Reason.String()
}

// Decide answers KEP-2535's MustAttemptImagePull for a copy of an image; it needs all of copy.
// Credentials of another runtime handler's copy do not count (KEP-4216).
//
// It never fails: if something can't be read, verified or understood, the answer is "pull". It waits
// for no write and takes no lock that another goroutine holds; with up to 8 secrets it allocates
// nothing. A credential that matched only by hash or only by name is queued to be written back (Flush).
// In mode kubelet a decision that would be "pull" first waits for the write-backs queued for the ref.
func (s *Store) Decide(copy ImageCopy, credentials PodCredentials) Decision {
	return s.decide(&question{copy: copy}, &credentials)
}

// DecideLazily is Decide for credentials that are expensive to get: fetch is called at most once, on
// this goroutine, and only if the answer depends on them. No lock or snapshot is held meanwhile: fetch
// may take its time, call the store, or panic.
//
// The credentials are compared with what was known before fetch was called, as in the kubelet. Later
// changes can make the answer stricter, but never looser. If fetch fails or panics, the decision is
// "pull", counted as `error`, and the error is fetch's own.
func (s *Store) DecideLazily(copy ImageCopy, fetch func() (PodCredentials, error)) (Decision, error) {
	first := C.waybill_go_decide_first(s.number(), borrowCopy(&copy))
	runtime.KeepAlive(s)
	if first.look == 0 {
		return goDecision(first.bits), nil
	}
	q := question{copy, first.look}
	fetched := false
	defer func() {
		if !fetched { // fetch panics
			s.decideWithout(&q)
		}
	}()
	if fetch == nil {
		fetch = func() (c PodCredentials, err error) { return c, errNoFetch }
	}
	credentials, err := fetch()
	fetched = true
	if err != nil {
		return s.decideWithout(&q), err
	}
	return s.decide(&q, &credentials), nil
}

var errNoFetch = &waybill.Error{Name: "InvalidArgument", Message: "the pod's credentials are needed, and there is no function that fetches them"}

// question has the arguments of a decision except the credentials.
type question struct {
	copy ImageCopy
	look C.uintptr_t // of the first of two calls; the second frees it. 0: there is one call only
}

// decide crosses into C once.
func (s *Store) decide(q *question, credentials *PodCredentials) Decision {
	var bits C.uint32_t
	// What the usual pod has: each argument less is some nanoseconds.
	if len(credentials.Secrets) == 1 && credentials.ServiceAccount == nil && q.look == 0 {
		bits = C.waybill_go_decide_secret(s.number(), borrowCopy(&q.copy), borrowSecret(&credentials.Secrets[0]))
		runtime.KeepAlive(s)
		return goDecision(bits)
	}
	var account C.waybill_credential
	var accounts C.size_t
	if a := credentials.ServiceAccount; a != nil {
		account, accounts = borrowCredential(a.Namespace, a.Name, a.UID, ""), 1
	}
	switch n := len(credentials.Secrets); {
	case n <= 1:
		var secret C.waybill_credential
		if n == 1 {
			secret = borrowSecret(&credentials.Secrets[0])
		}
		bits = C.waybill_go_decide_one(s.number(), q.look, borrowCopy(&q.copy), secret, C.size_t(n), account, accounts)
	case n <= C.WAYBILL_GO_FEW_SECRETS:
		bits = s.decideFew(q, credentials, account, accounts)
	default:
		bits = s.decideMany(q, credentials, account, accounts)
	}
	runtime.KeepAlive(s)
	return goDecision(bits)
}

func (s *Store) decideFew(q *question, credentials *PodCredentials, account C.waybill_credential, accounts C.size_t) C.uint32_t {
	var few C.waybill_go_few
	for i := range credentials.Secrets {
		few.secrets[i] = borrowSecret(&credentials.Secrets[i])
	}
	return C.waybill_go_decide_few(s.number(), q.look, borrowCopy(&q.copy), few, C.size_t(len(credentials.Secrets)), account, accounts)
}

func (s *Store) decideMany(q *question, credentials *PodCredentials, account C.waybill_credential, accounts C.size_t) C.uint32_t {
	var pin runtime.Pinner
	defer pin.Unpin()
	many := make([]C.waybill_credential, len(credentials.Secrets))
	for i := range many {
		secret := &credentials.Secrets[i]
		for _, text := range []string{secret.Namespace, secret.Name, secret.UID, secret.Hash} {
			if text != "" {
				pin.Pin(unsafe.StringData(text))
			}
		}
		many[i] = borrowSecret(secret)
	}
	pin.Pin(&many[0])
	return C.waybill_go_decide_many(s.number(), q.look, borrowCopy(&q.copy), &many[0], C.size_t(len(many)), account, accounts)
}

// decideWithout decides if the credentials are unavailable.
func (s *Store) decideWithout(q *question) Decision {
	bits := C.waybill_go_decide_without(s.number(), q.look, borrowCopy(&q.copy))
	runtime.KeepAlive(s)
	return goDecision(bits)
}

// number is the handle in a form that cgo does not check; 0 of a store that is not open. Keep the
// store alive.
func (s *Store) number() C.uintptr_t {
	if s == nil {
		return 0
	}
	return C.uintptr_t(uintptr(unsafe.Pointer(s.handle)))
}

func borrowCopy(c *ImageCopy) C.waybill_copy {
	return C.waybill_copy{image: borrow(c.Image), image_ref: borrow(c.ImageRef), runtime_handler: borrow(c.RuntimeHandler)}
}

func borrowSecret(s *waybill.Secret) C.waybill_credential {
	return borrowCredential(s.Namespace, s.Name, s.UID, s.Hash)
}

func borrowCredential(namespace, name, uid, hash string) C.waybill_credential {
	return C.waybill_credential{namespace_name: borrow(namespace), name: borrow(name), uid: borrow(uid), hash: borrow(hash)}
}

func goDecision(bits C.uint32_t) Decision {
	return Decision{Use: bits&1 != 0, CredentialsRead: bits&2 != 0, Result: Result(bits >> 8), Reason: Reason(bits >> 16)}
}
