package waybill_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"waybill.dev/go"
)

func TestStreamingPlan(t *testing.T) {
	request := waybill.StreamingPlanRequest{
		APIServer:       waybill.KubernetesVersion{Major: 1, Minor: 21},
		Kubelet:         waybill.KubernetesVersion{Major: 1, Minor: 19},
		KubeletSettings: waybill.StreamingSettings{RedirectContainerStreaming: new(true)},
	}
	plan, err := waybill.StreamingPlan(request)
	if err != nil || plan.Proxy != waybill.StreamingProxyRedirect || plan.Follower != waybill.RedirectAPIServer ||
		plan.Check != waybill.RedirectCheckSameHost || plan.Outcome != waybill.StreamingWorksOnSameHost ||
		plan.Skew != waybill.SkewSupported || len(plan.Findings) != 1 || len(plan.Notes) != 1 {
		t.Fatalf("%+v, %v", plan, err)
	}
	f := plan.Findings[0]
	errorIf(t, f.Severity != waybill.StreamingDeprecated || f.Subject != "--redirect-container-streaming" ||
		!strings.Contains(f.Words, "has been deprecated") || f.Advice == "" || f.Source == "", "%+v", f)
	request.APIServerSettings.Gates = []waybill.StreamingGateSetting{{Gate: waybill.GateStreamingProxyRedirects}}
	plan, err = waybill.StreamingPlan(request)
	errorIf(t, err != nil || plan.Follower != waybill.RedirectNobody ||
		plan.Outcome != waybill.StreamingFails, "%+v, %v", plan, err)
	newest := waybill.KubernetesVersion{Major: 1, Minor: 36}
	plan, err = waybill.StreamingPlan(waybill.StreamingPlanRequest{APIServer: newest, Kubelet: newest})
	errorIf(t, err != nil || plan.ExecWebSockets != waybill.WebSocketsKubelet || plan.PortForwardWebSockets != waybill.WebSocketsKubelet, "%+v, %v", plan, err)
	_, err = waybill.StreamingPlan(waybill.StreamingPlanRequest{})
	errorIf(t, !errors.Is(err, waybill.ErrInvalidArgument), "%v", err)
	request.KubeletSettings.Gates = []waybill.StreamingGateSetting{{Gate: 99}}
	_, err = waybill.StreamingPlan(request)
	errorIf(t, !errors.Is(err, waybill.ErrInvalidArgument), "%v", err)
}

func TestLintStreaming(t *testing.T) {
	request := waybill.StreamingLintRequest{
		Component: waybill.StreamingKubelet,
		Version:   waybill.KubernetesVersion{Major: 1, Minor: 22},
		Arguments: []string{"--config=/etc/kubelet.yaml", "--feature-gates", "StreamingProxyRedirects=T"},
	}
	lint, err := waybill.LintStreaming(request)
	errorIf(t, err != nil || len(lint.Findings) != 1 || lint.Findings[0].Severity != waybill.StreamingDeprecated || len(lint.Notes) != 1 ||
		lint.Settings.RedirectContainerStreaming != nil ||
		!reflect.DeepEqual(lint.Settings.Gates, []waybill.StreamingGateSetting{{Gate: waybill.GateStreamingProxyRedirects, Enabled: true}}), "%+v, %v", lint, err)
	request.Arguments = []string{"--feature-gates=PortForwardWebsockets=true"}
	lint, err = waybill.LintStreaming(request)
	errorIf(t, err != nil || len(lint.Findings) != 1 || lint.Findings[0].Severity != waybill.StreamingFatal || len(lint.Notes) != 0, "%+v, %v", lint, err)
	request.Version.Minor = 18
	request.Arguments = []string{"--redirect_container_streaming=0"}
	lint, err = waybill.LintStreaming(request)
	redirect := lint.Settings.RedirectContainerStreaming
	errorIf(t, err != nil || redirect == nil || *redirect, "%+v, %v", lint, err)
}

func TestStreamingNames(t *testing.T) {
	version, err := waybill.ParseKubernetesVersion("v1.36.0-rc.1+k3s1")
	errorIf(t, err != nil || version.String() != "1.36", "%v, %v", version, err)
	_, err = waybill.ParseKubernetesVersion("latest")
	errorIf(t, !errors.Is(err, waybill.ErrInvalidArgument), "%v", err)
	for gate := waybill.GateStreamingProxyRedirects; gate <= waybill.GateAllBeta; gate++ {
		found, ok := waybill.FindStreamingGate(gate.String())
		errorIf(t, !ok || found != gate, "%v: %v, %v", gate, found, ok)
	}
	_, ok := waybill.FindStreamingGate("x")
	errorIf(t, ok, "found x")
	for got, want := range map[string]string{
		waybill.StreamingAPIServer.String(): "kube-apiserver", waybill.StreamingFatal.String(): "fatal",
		waybill.StreamingProxyRedirect.String(): "redirect", waybill.RedirectNobody.String(): "nobody",
		waybill.RedirectCheckNone.String(): "none", waybill.WebSocketsKubelet.String(): "kubelet",
		waybill.StreamingDoesNotStart.String(): "doesNotStart", waybill.SkewKubeletNewer.String(): "kubeletNewer",
		waybill.StreamingGate(99).String(): "StreamingGate(99)", waybill.StreamingSeverity(9).String(): "StreamingSeverity(9)",
	} {
		errorIf(t, got != want, "%q, want %q", got, want)
	}
}
