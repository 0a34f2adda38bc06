package waybill_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"waybill.dev/go"
)

func TestPolicy(t *testing.T) {
	p := value(waybill.NewVerificationPolicy(waybill.NeverVerifyAllowlistedImages, []string{"nginx", "registry.example.com/public/*"}, waybill.AllowlistPreloadedOnly))
	errorIf(t, p.Mode() != waybill.NeverVerifyAllowlistedImages || p.Scope() != waybill.AllowlistPreloadedOnly, "%v, %v", p.Mode(), p.Scope())
	each := []struct {
		name   string
		origin waybill.ImageOrigin
		want   bool
	}{
		{"nginx", waybill.OriginPreloaded, false},
		{"nginx", waybill.OriginKubeletPulled, true},
		{"nginx", 9, true},
	}
	for _, c := range each {
		got := p.RequiresVerification(c.name, c.origin)
		errorIf(t, got != c.want, "%s, %v: %v", c.name, c.origin, got)
	}
	var standard *waybill.VerificationPolicy
	errorIf(t, standard.Mode() != waybill.NeverVerifyPreloadedImages || standard.RequiresVerification("nginx", waybill.OriginPreloaded), "the default policy is another")
	for _, patterns := range [][]string{{""}, {"\xff"}, {strings.Repeat("x", 1<<20)}} {
		p, err := waybill.NewVerificationPolicy(waybill.NeverVerifyAllowlistedImages, patterns, waybill.AllowlistAnyImage)
		errorIf(t, p != nil, "%q made a policy", patterns)
		wantCode(t, err, waybill.ErrInvalidArgument)
	}
	wantCode(t, second(waybill.NewVerificationPolicy(9, nil, 0)), waybill.ErrInvalidArgument)
	wantCode(t, second(waybill.NewVerificationPolicy(waybill.AlwaysVerify, nil, 9)), waybill.ErrInvalidArgument)
}

func TestOnlyWhatTheRegistryChecked(t *testing.T) {
	var standard *waybill.VerificationPolicy
	policy := value(standard.WithProofs(waybill.ProofRule{Pattern: "registry.example.com/*", Proofs: waybill.ProofsRegistry}))
	errorIf(t, policy.ProofCounts("registry.example.com/a", waybill.CheckerMirror) || !policy.ProofCounts("nginx", waybill.CheckerMirror) ||
		!standard.ProofCounts("registry.example.com/a", waybill.CheckerUnknown), "the rule is another")
	wantCode(t, second(policy.WithProofs(waybill.ProofRule{}, waybill.ProofRule{})), waybill.ErrInvalidArgument)

	options := optionsIn(scratch(t))
	options.Policy = policy
	s := value(waybill.Open(context.Background(), options))
	defer s.Close()
	image := waybill.ImageCopy{Image: "registry.example.com/a:v1", ImageRef: "sha256:a"}
	end := time.Unix(4_000_000_000, 0)
	for _, checker := range []waybill.ProofChecker{waybill.CheckerMirror, waybill.CheckerRegistry} {
		must(t, s.RecordImagePulled(waybill.PulledImage{
			ImageCopy:   image,
			Credentials: &waybill.ImagePullCredentials{NodePodsAccessible: true},
			Terms:       waybill.ProofTerms{Checker: checker, GoodUntil: end},
		}))
		d := s.MustAttemptPull(image, waybill.PodCredentials{})
		errorIf(t, d.Pull() != (checker == waybill.CheckerMirror), "%v: %+v", checker, d)
	}
	record := value(s.GetRecord(image))
	p := record.Proofs["registry.example.com/a"].NodePods
	errorIf(t, p.Checker != waybill.CheckerRegistry || !p.GoodUntil.Equal(end), "%+v", p)
}
