package waybill

// #include "shim.h"
import "C"

// String returns the label, "credentialPolicyAllowed"; "" for CheckNotCounted.
func (r CheckResult) String() string {
	if r == CheckNotCounted {
		return ""
	}
	return nameOr(C.waybill_check_result_name(C.int32_t(r)), "CheckResult", int64(r))
}

// Text is the reason in one sentence without a full stop.
func (r Reason) Text() string {
	return nameOr(C.waybill_reason_text(C.int32_t(r)), "Reason", int64(r))
}

// ImageCopy is the copy of an image that a call is about. Name the fields: an image string in the
// place of the ref would ask about another copy, of which the store may know nothing. Each method
// says which fields it needs, and ignores the others, so one value serves a decision and the pull
// after it.
type ImageCopy struct {
	Image          string // the container's image string, as the pod wrote it
	ImageRef       string // what the runtime returned for it; empty: not on the node
	RuntimeHandler string // of the pod's RuntimeClass; empty: the default one
}

// Decision is the answer to "must this pull be attempted?". Reason is for the node's own log, never
// for the pod. The zero Decision says "pull": a caller that recovers from a panic of fetch has it.
type Decision struct {
	usePresent      bool
	Result          CheckResult
	Reason          Reason
	CredentialsRead bool // whether the pod's credentials were looked at
}

// Pull says whether to pull. false: start the container with the image on the node.
func (d Decision) Pull() bool { return !d.usePresent }

// NewDecision makes a decision, for tests of code that takes one.
func NewDecision(pull bool, result CheckResult, reason Reason) Decision {
	return Decision{usePresent: !pull, Result: result, Reason: reason}
}

// String returns "pull: noCredentialMatches" or "use present: secretHashMatches", for the node's log.
func (d Decision) String() string {
	if d.Pull() {
		return "pull: " + d.Reason.String()
	}
	return "use present: " + d.Reason.String()
}

var closedDecision = Decision{Result: CheckError, Reason: ReasonStoreUnavailable}

// MustAttemptPull answers KEP-2535's MustAttemptImagePull for a copy of an image; it needs all of
// copy. Credentials of another runtime handler's copy do not count (KEP-4216).
//
// It never fails: if something can't be read, verified or understood, the answer is "pull". It
// waits for no write and takes no lock that another goroutine holds; with up to 8 secrets it
// allocates nothing. A credential that matched only by hash or only by coordinates is queued to be
// written back ([Store.Flush]). Under RulesKubelet a decision that would be "pull" first waits for
// the write-backs queued for the ref.
func (s *Store) MustAttemptPull(copy ImageCopy, credentials PodCredentials) Decision {
	if s == nil || s.opened == nil {
		return closedDecision
	}
	return s.opened.decide(&question{copy: copy}, &credentials)
}

// MustAttemptPullLazily is MustAttemptPull for credentials that are expensive to get: fetch is called
// at most once, on this goroutine, and only if the answer depends on them (the policy requires
// verification, and the record has an entry for the image name that is not open to all pods: kubelet
// behaviour). No lock or snapshot is held meanwhile: fetch may take its time, call the store, or
// panic.
//
// The credentials are compared with the record as it was before fetch was called, as in the kubelet.
// Later changes can make the answer stricter, but never looser.
//
// If fetch fails or panics, the decision is "pull", counted as `error`, and the error is fetch's own.
// A nil fetch fails with ErrCredentialsUnavailable.
func (s *Store) MustAttemptPullLazily(copy ImageCopy, fetch func() (PodCredentials, error)) (Decision, error) {
	if s == nil || s.opened == nil {
		return closedDecision, nil
	}
	o, q := s.opened, question{copy: copy}
	decision := o.decideFirst(&q)
	if q.look == 0 {
		return decision, nil
	}
	decided := false
	defer func() {
		if !decided { // fetch panics
			o.decideWithout(&q)
		}
	}()
	credentials, err := fetched(fetch)
	decided = true
	if err != nil {
		return o.decideWithout(&q), err
	}
	return o.decide(&q, &credentials), nil
}

func fetched(fetch func() (PodCredentials, error)) (PodCredentials, error) {
	if fetch == nil {
		return PodCredentials{}, &Error{
			Code:    CodeCredentialsUnavailable,
			Message: "the pod's credentials are needed, and there is no function that fetches them",
		}
	}
	return fetch()
}
