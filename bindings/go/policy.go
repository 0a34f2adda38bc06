package waybill

// #include "shim.h"
import "C"

import "runtime"

// VerificationPolicy says which images need their pull credentials verified. It is immutable, and
// any number of stores and goroutines may share one. A nil or zero policy is the kubelet's default,
// NeverVerifyPreloadedImages.
type VerificationPolicy struct {
	made *madePolicy // shared by copies
}

type madePolicy struct {
	policy *C.waybill_policy
}

// NewVerificationPolicy checks a policy once. Patterns are image names, or prefixes that end in
// "/*", and belong to NeverVerifyAllowlistedImages only. ErrInvalidArgument names the pattern and
// the reason; ErrLimitExceeded: there are more than 65,536.
func NewVerificationPolicy(mode VerificationMode, patterns []string, scope AllowlistScope) (*VerificationPolicy, error) {
	var a arena
	defer a.free()
	var policy *C.waybill_policy
	var e *C.waybill_error
	code := C.waybill_policy_make(C.int32_t(mode), a.strings(patterns), C.int32_t(scope), &policy, &e)
	if err := takeError(code, e); err != nil {
		return nil, err
	}
	return ownedPolicy(policy), nil
}

// WithProofs returns the same policy with other rules for proofs. Of several that name an image,
// that with its very name counts, else that with the longest prefix. ErrInvalidArgument names the
// pattern that is refused or that two rules have; ErrLimitExceeded: there are more than 65,536.
func (p *VerificationPolicy) WithProofs(rules ...ProofRule) (*VerificationPolicy, error) {
	var a arena
	defer a.free()
	list, count := cList(&a, rules, cProofRule)
	from, made := p.c()
	var policy *C.waybill_policy
	var e *C.waybill_error
	code := C.waybill_policy_with_proofs(from, list, count, &policy, &e)
	runtime.KeepAlive(made)
	if err := takeError(code, e); err != nil {
		return nil, err
	}
	return ownedPolicy(policy), nil
}

func ownedPolicy(policy *C.waybill_policy) *VerificationPolicy {
	made := &madePolicy{policy}
	runtime.AddCleanup(made, func(policy *C.waybill_policy) { C.waybill_policy_free(policy) }, policy)
	return &VerificationPolicy{made}
}

// c returns what C gets for p, and what to keep alive until C has finished.
func (p *VerificationPolicy) c() (*C.waybill_policy, *madePolicy) {
	if p == nil || p.made == nil {
		return nil, nil
	}
	return p.made.policy, p.made
}

// Mode returns the mode that the policy was made with.
func (p *VerificationPolicy) Mode() VerificationMode {
	policy, made := p.c()
	mode := C.waybill_policy_mode(policy)
	runtime.KeepAlive(made)
	return VerificationMode(mode)
}

// Scope returns the scope that the policy was made with.
func (p *VerificationPolicy) Scope() AllowlistScope {
	policy, made := p.c()
	scope := C.waybill_policy_scope(policy)
	runtime.KeepAlive(made)
	return AllowlistScope(scope)
}

// RequiresVerification says whether the credentials of a pod that wants this image must be verified.
// imageName is its name or, if it does not parse, its image string. true for an unknown origin.
func (p *VerificationPolicy) RequiresVerification(imageName string, origin ImageOrigin) bool {
	policy, made := p.c()
	required := C.waybill_policy_requires_verification(policy, borrow(imageName), C.int32_t(origin))
	runtime.KeepAlive(made)
	return bool(required)
}

// ProofCounts says whether a proof that the checker checked counts under the image name. false for an
// unknown checker.
func (p *VerificationPolicy) ProofCounts(imageName string, checker ProofChecker) bool {
	policy, made := p.c()
	counts := C.waybill_policy_proof_counts(policy, borrow(imageName), C.int32_t(checker))
	runtime.KeepAlive(made)
	return bool(counts)
}
