package waybill

// #include "shim.h"
import "C"

import (
	"strconv"
	"unsafe"
)

// String returns "1.36".
func (v KubernetesVersion) String() string {
	return strconv.FormatUint(uint64(v.Major), 10) + "." + strconv.FormatUint(uint64(v.Minor), 10)
}

// FindStreamingGate is the inverse of String; false: no gate has that name.
func FindStreamingGate(name string) (StreamingGate, bool) {
	var gate C.int32_t
	found := C.waybill_find_streaming_gate(borrow(name), &gate)
	return StreamingGate(gate), bool(found)
}

// StreamingSettings are the settings of a component on which [StreamingPlan] depends.
type StreamingSettings struct {
	// RedirectContainerStreaming is the kubelet's flag --redirect-container-streaming; nil: not given.
	// For an API server it is ignored.
	RedirectContainerStreaming *bool
	Gates                      []StreamingGateSetting // if a gate occurs twice, the last counts
}

// StreamingPlanRequest is a kubelet and its API server.
type StreamingPlanRequest struct {
	APIServer, Kubelet                 KubernetesVersion
	APIServerSettings, KubeletSettings StreamingSettings
}

// StreamingPlan says who proxies exec, attach and port-forward, who follows redirects and who
// translates WebSockets (KEP-1558, KEP-4006). It is pure, and knows the releases from 1.11 on.
//
// ErrInvalidArgument: an older version, or no such gate. ErrLimitExceeded: more than 10,000 gates.
// Unsupported version skew is not an error: the answer covers it, too.
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

// StreamingLintRequest has a component's settings.
type StreamingLintRequest struct {
	Component StreamingComponent
	Version   KubernetesVersion
	Arguments []string // behind the program's name
}

// StreamingLint says what a release makes of settings.
type StreamingLint struct {
	Findings []StreamingFinding
	Settings StreamingSettings // for [StreamingPlan]
	Notes    []string          // what could not be judged, and why
}

// LintStreaming reads a command line as the component does, and says which of its streaming settings are
// deprecated, ignored, removed or fatal.
//
// ErrInvalidArgument: a version before 1.11. ErrLimitExceeded: more than 10,000 arguments, or more than
// 1 MiB of them.
func LintStreaming(request StreamingLintRequest) (StreamingLint, error) {
	var a arena
	defer a.free()
	c := one[C.waybill_streaming_lint_request](&a)
	c.struct_size = C.size_t(unsafe.Sizeof(*c))
	c.component = C.int32_t(request.Component)
	c.version = cVersion(request.Version)
	c.arguments = a.strings(request.Arguments)
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

func goStreamingLint(l *C.waybill_streaming_lint) StreamingLint {
	lint := StreamingLint{Findings: goStreamingFindings(&l.findings), Notes: goStrings(l.notes)}
	if l.redirect_container_streaming != C.WAYBILL_FLAG_NOT_GIVEN {
		lint.Settings.RedirectContainerStreaming = new(l.redirect_container_streaming == C.WAYBILL_FLAG_TRUE)
	}
	lint.Settings.Gates = goList(l.gates, l.gate_count, func(g *C.waybill_streaming_gate_setting) StreamingGateSetting {
		return StreamingGateSetting{Gate: StreamingGate(g.gate), Enabled: bool(g.enabled)}
	})
	return lint
}
