package waybill_test

import (
	"errors"
	"fmt"
	"testing"

	"waybill.dev/go"
)

// Every enumeration has a name for each of its values, and prints the number of an unknown one.
func TestNames(t *testing.T) {
	each := []struct {
		value fmt.Stringer
		want  string
	}{
		{waybill.CodeInvalidArgument, "invalidArgument"}, {waybill.Code(99), "Code(99)"},
		{waybill.RulesClosed, "closed"}, {waybill.RulesKubelet, "kubelet"}, {waybill.Rules(-1), "Rules(-1)"},
		{waybill.NeverVerify, "NeverVerify"}, {waybill.AlwaysVerify, "AlwaysVerify"},
		{waybill.VerificationMode(9), "VerificationMode(9)"},
		{waybill.CheckNotCounted, ""}, {waybill.CheckCredentialPolicyAllowed, "credentialPolicyAllowed"},
		{waybill.CheckError, "error"}, {waybill.CheckResult(9), "CheckResult(9)"},
		{waybill.ReasonSecretHashMatches, "secretHashMatches"}, {waybill.Reason(200), "Reason(200)"},
		{waybill.PullAlways, "Always"}, {waybill.PullIfNotPresent, "IfNotPresent"}, {waybill.PullPolicy(9), "PullPolicy(9)"},
		{waybill.EnsureNeverPull, "ErrImageNeverPull"}, {waybill.EnsureAction(9), "EnsureAction(9)"},
		{waybill.GapDetect, "detect"}, {waybill.GapYes, "yes"}, {waybill.GapNo, "no"}, {waybill.Gap(-3), "Gap(-3)"},
		{waybill.FirstStartPresume, "presume"}, {waybill.FirstStartClose, "close"}, {waybill.FirstStart(7), "FirstStart(7)"},
		{waybill.SettledPreloaded, "preloaded"}, {waybill.SettledClosed, "closed"}, {waybill.Settled(7), "Settled(7)"},
		{waybill.AllowlistAnyImage, "anyImage"}, {waybill.AllowlistPreloadedOnly, "preloadedOnly"},
		{waybill.OriginKubeletPulled, "kubeletPulled"}, {waybill.OriginPreloaded, "preloaded"}, {waybill.OriginUnknown, "unknown"},
		{waybill.PullFailed, "failed"}, {waybill.PullOutcomeUnknown, "outcomeUnknown"}, {waybill.PullNothingTransferred, "nothingTransferred"},
		{waybill.PullErrorAuth, "auth"}, {waybill.PullErrorOther, "other"}, {waybill.PullErrorClass(7), "PullErrorClass(7)"},
		{waybill.PullRunning, "running"}, {waybill.PullStateFailed, "failed"}, {waybill.PullStateUnknown, "unknown"}, {waybill.PullState(0), "PullState(0)"},
		{waybill.ShortNamesAnywhere, "anywhere"}, {waybill.ShortNamesDockerHub, "docker.io"}, {waybill.ShortNames(7), "ShortNames(7)"},
		{waybill.QuarantinedImageRef, "imageRef"}, {waybill.QuarantinedImage, "image"}, {waybill.QuarantineKind(0), "QuarantineKind(0)"},
		{waybill.ModePod, "POD"}, {waybill.ModeNode, "NODE"}, {waybill.NamespaceMode(1), "NamespaceMode(1)"},
		{waybill.PoolInside, "inPool"}, {waybill.PoolOutside, "outsidePool"}, {waybill.PoolOtherLength, "otherLength"},
		{waybill.RevokedSecret, "secret"}, {waybill.RevokedServiceAccount, "serviceAccount"}, {waybill.RevokedNamespace, "namespace"},
		{waybill.RevokedImage, "image"}, {waybill.RevokedCredential, "credential"}, {waybill.RevocationKind(0), "RevocationKind(0)"},
		{waybill.RevocationKind(6), "RevocationKind(6)"},
		{waybill.KubeletV1Beta1, "v1beta1"}, {waybill.KubeletV1Alpha1, "v1alpha1"},
	}
	for _, c := range each {
		got := c.value.String()
		errorIf(t, got != c.want, "%T(%d): %q, want %q", c.value, c.value, got, c.want)
	}
	for r := waybill.ReasonImageAbsent; r <= waybill.ReasonProofNotByRegistry; r++ {
		errorIf(t, r.Text() == "" || r.Text() == r.String(), "%v has no sentence", r)
	}
}

func TestNamesParse(t *testing.T) {
	for _, r := range []waybill.Rules{waybill.RulesClosed, waybill.RulesKubelet} {
		got, err := waybill.ParseRules(r.String())
		errorIf(t, got != r || err != nil, "%v: %v, %v", r, got, err)
	}
	for m := waybill.NeverVerify; m <= waybill.AlwaysVerify; m++ {
		got, err := waybill.ParseVerificationMode(m.String())
		errorIf(t, got != m || err != nil, "%v: %v, %v", m, got, err)
	}
	for p := waybill.PullAlways; p <= waybill.PullNever; p++ {
		got, err := waybill.ParsePullPolicy(p.String())
		errorIf(t, got != p || err != nil, "%v: %v, %v", p, got, err)
	}
	for n := waybill.ShortNamesAnywhere; n <= waybill.ShortNamesDockerHub; n++ {
		got, err := waybill.ParseShortNames(n.String())
		errorIf(t, got != n || err != nil, "%v: %v, %v", n, got, err)
	}
	wantCode(t, second(waybill.ParseShortNames("docker")), waybill.ErrInvalidArgument)
	wantCode(t, second(waybill.ParseRules("Closed")), waybill.ErrInvalidArgument)
	wantCode(t, second(waybill.ParseVerificationMode("")), waybill.ErrInvalidArgument)
	wantCode(t, second(waybill.ParsePullPolicy("ifnotpresent")), waybill.ErrInvalidArgument)
}

func TestErrors(t *testing.T) {
	_, err := waybill.ParseRules("open")
	wrapped := fmt.Errorf("reading flags: %w", err)
	var e *waybill.Error
	errorIf(t, !errors.As(wrapped, &e) || e.Code != waybill.CodeInvalidArgument || e.Message == "", "%#v", err)
	errorIf(t, !errors.Is(wrapped, waybill.ErrInvalidArgument) || errors.Is(wrapped, waybill.ErrNotFound) || !errors.Is(err, e), "%v", err)
	wantEqual(t, (&waybill.Error{Code: waybill.CodeIO, Message: "it failed", Hint: "try again"}).Error(), "it failed; try again")
	wantEqual(t, waybill.ErrNotFound.Error(), "waybill: notFound")
	errorIf(t, errors.Is(waybill.ErrNotFound, (*waybill.Error)(nil)), "something is a nil error")
}
