package waybill

// #include "shim.h"
import "C"

import (
	"strconv"
	"unsafe"
)

// KubernetesVersion is a release of Kubernetes, without its patch.
type KubernetesVersion struct {
	Major, Minor uint32
}

// ParseKubernetesVersion reads what components print: "v1.22.3", "1.22", "v1.36.0-rc.1+k3s1".
// ErrInvalidArgument: it is no version, or one before 1.11.
func ParseKubernetesVersion(text string) (KubernetesVersion, error) {
	var version C.waybill_kubernetes_version
	var e *C.waybill_error
	code := C.waybill_parse_kubernetes_version(borrow(text), &version, &e)
	return KubernetesVersion{Major: uint32(version.major), Minor: uint32(version.minor)}, takeError(code, e)
}

// String returns "1.36".
func (v KubernetesVersion) String() string {
	return strconv.FormatUint(uint64(v.Major), 10) + "." + strconv.FormatUint(uint64(v.Minor), 10)
}

// StreamingComponent is a component with settings that decide how streaming requests go.
type StreamingComponent int32

const (
	StreamingKubelet   StreamingComponent = C.WAYBILL_STREAMING_KUBELET
	StreamingAPIServer StreamingComponent = C.WAYBILL_STREAMING_API_SERVER
)

// String returns "kubelet" or "kube-apiserver".
func (c StreamingComponent) String() string {
	return word(int64(c), "StreamingComponent", "kubelet", "kube-apiserver")
}

// StreamingGate is a feature gate that decides how streaming requests go.
type StreamingGate int32

const (
	// GateStreamingProxyRedirects: the API server follows a kubelet's redirect.
	GateStreamingProxyRedirects StreamingGate = C.WAYBILL_GATE_STREAMING_PROXY_REDIRECTS
	// GateValidateProxyRedirects: only to the kubelet's own host.
	GateValidateProxyRedirects StreamingGate = C.WAYBILL_GATE_VALIDATE_PROXY_REDIRECTS
	// GateTranslateStreamCloseWebsocketRequests: the API server translates WebSockets of exec and attach.
	GateTranslateStreamCloseWebsocketRequests StreamingGate = C.WAYBILL_GATE_TRANSLATE_STREAM_CLOSE_WEBSOCKET_REQUESTS
	// GatePortForwardWebsockets: the API server translates those of port-forward.
	GatePortForwardWebsockets StreamingGate = C.WAYBILL_GATE_PORT_FORWARD_WEBSOCKETS
	// GateExtendWebSocketsToKubelet, of both: the kubelet translates WebSockets.
	GateExtendWebSocketsToKubelet StreamingGate = C.WAYBILL_GATE_EXTEND_WEBSOCKETS_TO_KUBELET
	// GateNodeDeclaredFeatures, of both: GateExtendWebSocketsToKubelet depends on it.
	GateNodeDeclaredFeatures StreamingGate = C.WAYBILL_GATE_NODE_DECLARED_FEATURES
	// GateAllAlpha: every alpha gate that is not set by itself.
	GateAllAlpha StreamingGate = C.WAYBILL_GATE_ALL_ALPHA
	// GateAllBeta: every beta gate, likewise.
	GateAllBeta StreamingGate = C.WAYBILL_GATE_ALL_BETA
)

// String returns "StreamingProxyRedirects".
func (g StreamingGate) String() string {
	return nameOr(C.waybill_streaming_gate_name(C.int32_t(g)), "StreamingGate", int64(g))
}

// FindStreamingGate is the inverse of String; false: it is not one of them.
func FindStreamingGate(name string) (StreamingGate, bool) {
	var gate C.int32_t
	found := C.waybill_find_streaming_gate(borrow(name), &gate)
	return StreamingGate(gate), bool(found)
}

// IsStreamingFlag says whether [LintStreaming] judges the flag, for one component at least: its name
// without the dashes in front, in any case, with dashes or underscores.
func IsStreamingFlag(name string) bool { return bool(C.waybill_is_streaming_flag(borrow(name))) }

// StreamingGateSetting sets one gate.
type StreamingGateSetting struct {
	Gate    StreamingGate
	Enabled bool
}

// StreamingSettings are what of a component's settings [StreamingPlan] depends on.
type StreamingSettings struct {
	// RedirectContainerStreaming is the kubelet's flag --redirect-container-streaming; nil: not given. Of
	// an API server it is ignored.
	RedirectContainerStreaming *bool
	Gates                      []StreamingGateSetting // of one gate, the last counts
}

// StreamingSeverity says what a release makes of a setting.
type StreamingSeverity int32

const (
	// StreamingIgnored: accepted, and never had an effect in this component.
	StreamingIgnored StreamingSeverity = C.WAYBILL_STREAMING_IGNORED
	// StreamingDeprecated: still works, but the component warns that it will go.
	StreamingDeprecated StreamingSeverity = C.WAYBILL_STREAMING_DEPRECATED
	// StreamingRemoved: still accepted, but does nothing any more.
	StreamingRemoved StreamingSeverity = C.WAYBILL_STREAMING_REMOVED
	// StreamingFatal: the component does not start.
	StreamingFatal StreamingSeverity = C.WAYBILL_STREAMING_FATAL
)

// String returns "ignored", "deprecated", "removed" or "fatal".
func (s StreamingSeverity) String() string {
	return nameOr(C.waybill_streaming_severity_name(C.int32_t(s)), "StreamingSeverity", int64(s))
}

// StreamingOrigin says where a setting stands.
type StreamingOrigin int32

const (
	StreamingCommandLine   StreamingOrigin = C.WAYBILL_STREAMING_COMMAND_LINE
	StreamingConfiguration StreamingOrigin = C.WAYBILL_STREAMING_CONFIGURATION
)

// String returns "commandLine" or "configuration".
func (o StreamingOrigin) String() string {
	return word(int64(o), "StreamingOrigin", "commandLine", "configuration")
}

// StreamingFinding says what a release makes of one setting. The texts are on one line, without
// control characters.
type StreamingFinding struct {
	Component StreamingComponent
	Origin    StreamingOrigin
	Severity  StreamingSeverity
	Subject   string // "--redirect-container-streaming", "StreamingProxyRedirects"
	Setting   string // as it was written, quoted if it holds anything unusual
	Words     string // what this release prints about it; empty: nothing, or no source shows it
	Advice    string
	Source    string // where the fact is from
}

// StreamingProxy says what the kubelet does with a streaming request.
type StreamingProxy int32

const (
	// StreamingProxyKubelet: it proxies between the API server and the runtime's streaming server.
	StreamingProxyKubelet StreamingProxy = C.WAYBILL_STREAMING_PROXY_KUBELET
	// StreamingProxyRedirect: it answers 302 with the streaming server's address.
	StreamingProxyRedirect StreamingProxy = C.WAYBILL_STREAMING_PROXY_REDIRECT
)

// String returns "kubelet" or "redirect".
func (p StreamingProxy) String() string {
	return word(int64(p), "StreamingProxy", "kubelet", "redirect")
}

// RedirectFollower says who follows the kubelet's redirect.
type RedirectFollower int32

const (
	RedirectNotNeeded RedirectFollower = C.WAYBILL_REDIRECT_NOT_NEEDED
	RedirectAPIServer RedirectFollower = C.WAYBILL_REDIRECT_API_SERVER
	// RedirectNobody: the client gets a redirect or an error instead of a stream.
	RedirectNobody RedirectFollower = C.WAYBILL_REDIRECT_NOBODY
)

// String returns "notNeeded", "apiServer" or "nobody".
func (f RedirectFollower) String() string {
	return word(int64(f), "RedirectFollower", "notNeeded", "apiServer", "nobody")
}

// RedirectCheck says which redirects are followed.
type RedirectCheck int32

const (
	RedirectCheckNotNeeded RedirectCheck = C.WAYBILL_REDIRECT_CHECK_NOT_NEEDED
	// RedirectCheckSameHost: those to the kubelet's own host.
	RedirectCheckSameHost RedirectCheck = C.WAYBILL_REDIRECT_CHECK_SAME_HOST
	// RedirectCheckNone: any, which lets whoever has a kubelet send the API server anywhere.
	RedirectCheckNone RedirectCheck = C.WAYBILL_REDIRECT_CHECK_NONE
)

// String returns "notNeeded", "sameHost" or "none".
func (c RedirectCheck) String() string {
	return word(int64(c), "RedirectCheck", "notNeeded", "sameHost", "none")
}

// WebSocketTranslator says who translates WebSockets to SPDY.
type WebSocketTranslator int32

const (
	// WebSocketsNobody: they go on to the runtime's streaming server as they are.
	WebSocketsNobody    WebSocketTranslator = C.WAYBILL_WEBSOCKETS_NOBODY
	WebSocketsAPIServer WebSocketTranslator = C.WAYBILL_WEBSOCKETS_API_SERVER
	WebSocketsKubelet   WebSocketTranslator = C.WAYBILL_WEBSOCKETS_KUBELET
)

// String returns "nobody", "apiServer" or "kubelet".
func (t WebSocketTranslator) String() string {
	return word(int64(t), "WebSocketTranslator", "nobody", "apiServer", "kubelet")
}

// StreamingOutcome says what comes of a streaming request.
type StreamingOutcome int32

const (
	StreamingWorks StreamingOutcome = C.WAYBILL_STREAMING_WORKS
	// StreamingWorksOnSameHost: if the runtime's streaming server has the kubelet's host name or address.
	StreamingWorksOnSameHost StreamingOutcome = C.WAYBILL_STREAMING_WORKS_ON_SAME_HOST
	StreamingFails           StreamingOutcome = C.WAYBILL_STREAMING_FAILS
	// StreamingDoesNotStart: a setting is fatal to the kubelet or the API server.
	StreamingDoesNotStart StreamingOutcome = C.WAYBILL_STREAMING_DOES_NOT_START
)

// String returns "works", "worksOnSameHost", "fails" or "doesNotStart".
func (o StreamingOutcome) String() string {
	return word(int64(o), "StreamingOutcome", "works", "worksOnSameHost", "fails", "doesNotStart")
}

// VersionSkew judges the two releases.
type VersionSkew int32

const (
	SkewSupported VersionSkew = C.WAYBILL_SKEW_SUPPORTED
	// SkewKubeletTooOld: by more than 2 releases; by more than 3 for a kubelet from 1.25 on.
	SkewKubeletTooOld VersionSkew = C.WAYBILL_SKEW_KUBELET_TOO_OLD
	// SkewKubeletNewer than the API server: never supported.
	SkewKubeletNewer VersionSkew = C.WAYBILL_SKEW_KUBELET_NEWER
)

// String returns "supported", "kubeletTooOld" or "kubeletNewer".
func (s VersionSkew) String() string {
	return word(int64(s), "VersionSkew", "supported", "kubeletTooOld", "kubeletNewer")
}

// StreamingPlanRequest is a kubelet and its API server.
type StreamingPlanRequest struct {
	APIServer, Kubelet                 KubernetesVersion
	APIServerSettings, KubeletSettings StreamingSettings
}

// StreamingAnswer says how a streaming request goes. If Outcome is StreamingDoesNotStart, the other
// members say what holds once the fatal settings are taken out.
type StreamingAnswer struct {
	Proxy                 StreamingProxy
	Follower              RedirectFollower
	Check                 RedirectCheck
	ExecWebSockets        WebSocketTranslator // of exec and attach
	PortForwardWebSockets WebSocketTranslator
	Outcome               StreamingOutcome
	Skew                  VersionSkew
	Findings              []StreamingFinding // of the flag and the gates in the request
	Notes                 []string           // what a reader must know besides
}

// StreamingPlan says who proxies exec, attach and port-forward, who follows redirects and who
// translates WebSockets (KEP-1558, KEP-4006). It is pure, and knows the releases from 1.11 on.
//
// ErrInvalidArgument: an older version, or no such gate. ErrLimitExceeded: more than 10,000 gates.
// Version skew that is not supported is judged all the same.
func StreamingPlan(request StreamingPlanRequest) (StreamingAnswer, error) {
	var a arena
	defer a.free()
	c := one[C.waybill_streaming_plan_request](&a)
	c.struct_size = C.size_t(unsafe.Sizeof(*c))
	c.api_server = cVersion(request.APIServer)
	c.kubelet = cVersion(request.Kubelet)
	if redirect := request.KubeletSettings.RedirectContainerStreaming; redirect != nil {
		c.redirect_container_streaming = C.WAYBILL_FLAG_FALSE
		if *redirect {
			c.redirect_container_streaming = C.WAYBILL_FLAG_TRUE
		}
	}
	c.api_server_gates, c.api_server_gate_count = cList(&a, request.APIServerSettings.Gates, cGate)
	c.kubelet_gates, c.kubelet_gate_count = cList(&a, request.KubeletSettings.Gates, cGate)
	var answer *C.waybill_streaming_answer
	var e *C.waybill_error
	code := C.waybill_streaming_plan(c, &answer, &e)
	return take(answer, goStreamingAnswer), takeError(code, e)
}

// StreamingConfigValue is a value of a configuration file.
type StreamingConfigValue struct {
	Key   string // with dots between levels: "featureGates.StreamingProxyRedirects"
	Value string // as JSON: true, "4h"
}

// StreamingLintRequest has a component's settings.
type StreamingLintRequest struct {
	Component StreamingComponent
	Version   KubernetesVersion
	Arguments []string // behind the program's name
	// Configuration has a KubeletConfiguration's values; nil: not at hand.
	Configuration []StreamingConfigValue
}

// StreamingLint says what a release makes of settings.
type StreamingLint struct {
	Findings []StreamingFinding
	Settings StreamingSettings // for [StreamingPlan]
	Notes    []string          // what could not be judged, and why
}

// LintStreaming reads a command line and a configuration as the component does, and says which of their
// streaming settings are deprecated, ignored, removed or fatal.
//
// ErrInvalidArgument: a version before 1.11; an API server with a configuration. ErrLimitExceeded: more
// than 10,000 arguments or values, or more than 1 MiB of them.
func LintStreaming(request StreamingLintRequest) (StreamingLint, error) {
	var a arena
	defer a.free()
	c := one[C.waybill_streaming_lint_request](&a)
	c.struct_size = C.size_t(unsafe.Sizeof(*c))
	c.component = C.int32_t(request.Component)
	c.version = cVersion(request.Version)
	c.arguments = a.strings(request.Arguments)
	c.has_configuration = C.bool(request.Configuration != nil)
	c.configuration, c.configuration_count = cList(&a, request.Configuration,
		func(a *arena, v *StreamingConfigValue) C.waybill_streaming_config_value {
			return C.waybill_streaming_config_value{key: a.string(v.Key), value: a.string(v.Value)}
		})
	var lint *C.waybill_streaming_lint
	var e *C.waybill_error
	code := C.waybill_lint_streaming(c, &lint, &e)
	return take(lint, goStreamingLint), takeError(code, e)
}

func cVersion(v KubernetesVersion) C.waybill_kubernetes_version {
	return C.waybill_kubernetes_version{major: C.uint32_t(v.Major), minor: C.uint32_t(v.Minor)}
}

func cGate(_ *arena, g *StreamingGateSetting) C.waybill_streaming_gate_setting {
	return C.waybill_streaming_gate_setting{gate: C.int32_t(g.Gate), enabled: C.bool(g.Enabled)}
}

func goStreamingFindings(f C.waybill_streaming_findings) []StreamingFinding {
	return goList(f.items, f.count, func(f *C.waybill_streaming_finding) StreamingFinding {
		return StreamingFinding{
			Component: StreamingComponent(f.component),
			Origin:    StreamingOrigin(f.origin),
			Severity:  StreamingSeverity(f.severity),
			Subject:   goString(f.subject),
			Setting:   goString(f.setting),
			Words:     goString(f.words),
			Advice:    goString(f.advice),
			Source:    goString(f.source),
		}
	})
}

func goStreamingAnswer(a *C.waybill_streaming_answer) StreamingAnswer {
	return StreamingAnswer{
		Proxy:                 StreamingProxy(a.proxy),
		Follower:              RedirectFollower(a.follower),
		Check:                 RedirectCheck(a.check),
		ExecWebSockets:        WebSocketTranslator(a.exec_websockets),
		PortForwardWebSockets: WebSocketTranslator(a.port_forward_websockets),
		Outcome:               StreamingOutcome(a.outcome),
		Skew:                  VersionSkew(a.skew),
		Findings:              goStreamingFindings(a.findings),
		Notes:                 goStrings(a.notes),
	}
}

func goStreamingLint(l *C.waybill_streaming_lint) StreamingLint {
	lint := StreamingLint{Findings: goStreamingFindings(l.findings), Notes: goStrings(l.notes)}
	if l.redirect_container_streaming != C.WAYBILL_FLAG_NOT_GIVEN {
		lint.Settings.RedirectContainerStreaming = new(l.redirect_container_streaming == C.WAYBILL_FLAG_TRUE)
	}
	lint.Settings.Gates = goList(l.gates, l.gate_count, func(g *C.waybill_streaming_gate_setting) StreamingGateSetting {
		return StreamingGateSetting{Gate: StreamingGate(g.gate), Enabled: bool(g.enabled)}
	})
	return lint
}
