package waybill_test

import (
	"strings"
	"testing"

	"waybill.dev/go"
)

func TestPolicy(t *testing.T) {
	p, err := waybill.NewVerificationPolicy(waybill.NeverVerifyAllowlistedImages, []string{"nginx", "registry.example.com/public/*"}, waybill.AllowlistPreloadedOnly)
	must(t, err)
	if p.Mode() != waybill.NeverVerifyAllowlistedImages || p.Scope() != waybill.AllowlistPreloadedOnly {
		t.Errorf("%v, %v", p.Mode(), p.Scope())
	}
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
		if got := p.RequiresVerification(c.name, c.origin); got != c.want {
			t.Errorf("%s, %v: %v", c.name, c.origin, got)
		}
	}
	var standard *waybill.VerificationPolicy
	if standard.Mode() != waybill.NeverVerifyPreloadedImages || standard.RequiresVerification("nginx", waybill.OriginPreloaded) {
		t.Error("the default policy is another")
	}
	for _, patterns := range [][]string{{""}, {"\xff"}, {strings.Repeat("x", 1<<20)}} {
		p, err := waybill.NewVerificationPolicy(waybill.NeverVerifyAllowlistedImages, patterns, waybill.AllowlistAnyImage)
		if p != nil {
			t.Errorf("%q made a policy", patterns)
		}
		wantCode(t, err, waybill.ErrInvalidArgument)
	}
	wantCode(t, second(waybill.NewVerificationPolicy(9, nil, 0)), waybill.ErrInvalidArgument)
	wantCode(t, second(waybill.NewVerificationPolicy(waybill.AlwaysVerify, nil, 9)), waybill.ErrInvalidArgument)
}
