package waybill

// #include "shim.h"
import "C"

import "unsafe"

// EnsureOutcome is the answer to the kubelet's outer question: pull, use the image, or refuse.
type EnsureOutcome struct {
	Action EnsureAction
	// What the pod may see, in the kubelet's words. Under RulesClosed neither Message nor Action tells
	// an absent image from one that this pod may not use.
	Message string
	// For the node's own log, never for the pod. nil: no decision was needed.
	Decision *Decision
}

// EnsureImage answers the kubelet's outer question: pull, use the image on the node, or refuse. copy
// and fetch are those of [Store.MustAttemptPullLazily]. It counts
// kubelet_image_manager_ensure_image_requests_total.
//
// If fetch fails, the error is fetch's own, and the outcome is made without credentials. Otherwise
// an error means that there is no outcome (ErrClosed, ErrInvalidArgument for an unknown policy,
// ErrOutOfMemory); its Action is EnsurePull: do not start the container.
func (s *Store) EnsureImage(copy ImageCopy, policy PullPolicy, fetch func() (PodCredentials, error)) (EnsureOutcome, error) {
	var look C.uintptr_t
	var first *C.waybill_ensure_outcome
	err := s.call(func(h handle, e errorOut) C.waybill_code {
		return C.waybill_go_ensure_first(h, borrowCopy(&copy), C.int32_t(policy), &look, &first, e)
	})
	outcome := take(first, goOutcome)
	if look == 0 {
		return outcome, err
	}
	second := func(packed []byte, secrets int, kind C.int32_t) (EnsureOutcome, error) {
		var outcome *C.waybill_ensure_outcome
		err := s.call(func(h handle, e errorOut) C.waybill_code {
			return C.waybill_go_ensure_second(h, look, borrowCopy(&copy), C.int32_t(policy),
				(*C.char)(unsafe.Pointer(unsafe.SliceData(packed))), C.size_t(len(packed)),
				C.size_t(secrets), kind, &outcome, e)
		})
		return take(outcome, goOutcome), err
	}
	decided := false
	defer func() {
		if !decided { // fetch panics
			_, _ = second(nil, 0, C.WAYBILL_GO_UNAVAILABLE)
		}
	}()
	credentials, failure := fetched(fetch)
	decided = true
	packed, kind := []byte(nil), C.int32_t(C.WAYBILL_GO_UNAVAILABLE)
	if failure == nil {
		packed, kind = credentials.packed()
	}
	outcome, err = second(packed, len(credentials.Secrets), kind)
	if err == nil {
		err = failure
	}
	return outcome, err
}

func goOutcome(o *C.waybill_ensure_outcome) EnsureOutcome {
	outcome := EnsureOutcome{Action: EnsureAction(o.action), Message: goString(o.message)}
	if o.decided {
		outcome.Decision = &Decision{
			usePresent:      !bool(o.decision.pull),
			Result:          CheckResult(o.decision.result),
			Reason:          Reason(o.decision.reason),
			CredentialsRead: bool(o.decision.credentials_read),
		}
	}
	return outcome
}
