// Streaming: who proxies, follows and translates, and what each release makes of the settings.

#include "bindings/c/convert.h"

using namespace waybill::c;
using waybill::Result;

namespace {

static_assert(WAYBILL_STREAMING_API_SERVER ==
              static_cast<int>(waybill::StreamingComponent::kApiServer));
static_assert(WAYBILL_GATE_ALL_BETA == static_cast<int>(waybill::StreamingGate::kAllBeta));
static_assert(WAYBILL_STREAMING_FATAL == static_cast<int>(waybill::StreamingSeverity::kFatal));
static_assert(WAYBILL_STREAMING_CONFIGURATION ==
              static_cast<int>(waybill::StreamingOrigin::kConfiguration));
static_assert(WAYBILL_STREAMING_PROXY_REDIRECT ==
              static_cast<int>(waybill::StreamingProxy::kRedirect));
static_assert(WAYBILL_REDIRECT_NOBODY == static_cast<int>(waybill::RedirectFollower::kNobody));
static_assert(WAYBILL_REDIRECT_CHECK_NONE == static_cast<int>(waybill::RedirectCheck::kNone));
static_assert(WAYBILL_WEBSOCKETS_KUBELET ==
              static_cast<int>(waybill::WebSocketTranslator::kKubelet));
static_assert(WAYBILL_STREAMING_DOES_NOT_START ==
              static_cast<int>(waybill::StreamingOutcome::kDoesNotStart));
static_assert(WAYBILL_SKEW_KUBELET_NEWER == static_cast<int>(waybill::VersionSkew::kKubeletNewer));

waybill::KubernetesVersion ToVersion(waybill_kubernetes_version version) {
  return {version.major, version.minor};
}

// A flag in three states: not given, false, true.
enum class Given : std::uint8_t { kNot = WAYBILL_FLAG_NOT_GIVEN, kFalse, kTrue };

std::optional<bool> ToFlag(std::int32_t flag, Arguments& arguments) {
  const Given given = arguments.OneOf(flag, Given::kTrue, "redirect_container_streaming");
  return given == Given::kNot ? std::nullopt : std::optional(given == Given::kTrue);
}

std::int32_t FlagToC(std::optional<bool> flag) {
  if (!flag) return WAYBILL_FLAG_NOT_GIVEN;
  return *flag ? WAYBILL_FLAG_TRUE : WAYBILL_FLAG_FALSE;
}

std::vector<waybill::StreamingGateSetting> ToGates(const waybill_streaming_gate_setting* gates,
                                                   std::size_t count, const char* name,
                                                   Arguments& arguments) {
  std::vector<waybill::StreamingGateSetting> to;
  for (const auto& gate : arguments.Array(gates, count, name)) {
    to.push_back(
        {arguments.OneOf(gate.gate, waybill::StreamingGate::kAllBeta, name), gate.enabled});
  }
  return to;
}

waybill_streaming_findings FindingsToC(const std::vector<waybill::StreamingFinding>& findings,
                                       Memory& memory) {
  const auto convert = [](const waybill::StreamingFinding& finding, Memory& to) {
    waybill_streaming_finding c{};
    c.component = static_cast<std::int32_t>(finding.component);
    c.origin = static_cast<std::int32_t>(finding.origin);
    c.severity = static_cast<std::int32_t>(finding.severity);
    c.subject = Copy(finding.subject, to);
    c.setting = Copy(finding.setting, to);
    c.words = Copy(finding.words, to);
    c.advice = Copy(finding.advice, to);
    c.source = Copy(finding.source, to);
    return c;
  };
  return {CopyEach<waybill_streaming_finding>(findings, memory, convert), findings.size()};
}

void AnswerToC(const waybill::StreamingAnswer& answer, waybill_streaming_answer& c,
               Memory& memory) {
  c.proxy = static_cast<std::int32_t>(answer.proxy);
  c.follower = static_cast<std::int32_t>(answer.follower);
  c.check = static_cast<std::int32_t>(answer.check);
  c.exec_websockets = static_cast<std::int32_t>(answer.exec_websockets);
  c.port_forward_websockets = static_cast<std::int32_t>(answer.port_forward_websockets);
  c.outcome = static_cast<std::int32_t>(answer.outcome);
  c.skew = static_cast<std::int32_t>(answer.skew);
  c.findings = FindingsToC(answer.findings, memory);
  c.notes = CopyStrings(answer.notes, memory);
}

void LintToC(const waybill::StreamingLint& lint, waybill_streaming_lint& c, Memory& memory) {
  c.findings = FindingsToC(lint.findings, memory);
  c.redirect_container_streaming = FlagToC(lint.settings.redirect_container_streaming);
  c.gates = CopyEach<waybill_streaming_gate_setting>(
      lint.settings.gates, memory, [](const waybill::StreamingGateSetting& gate, Memory&) {
        waybill_streaming_gate_setting to{};
        to.gate = static_cast<std::int32_t>(gate.gate);
        to.enabled = gate.enabled;
        return to;
      });
  c.gate_count = lint.settings.gates.size();
  c.notes = CopyStrings(lint.notes, memory);
}

}  // namespace

waybill_code waybill_parse_kubernetes_version(waybill_string text,
                                              waybill_kubernetes_version* version,
                                              waybill_error** error) {
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    arguments.Given(version, "version");
    const auto view = arguments.Text(text, "text");
    if (!arguments.ok()) return arguments.error();
    const auto parsed = waybill::ParseKubernetesVersion(view);
    if (!parsed) return parsed.error();
    *version = {parsed->major, parsed->minor};
    return {};
  });
}

waybill_string waybill_streaming_gate_name(int32_t gate) {
  if (gate < 0 || gate > WAYBILL_GATE_ALL_BETA) return Borrow("");
  return Borrow(waybill::StreamingGateName(static_cast<waybill::StreamingGate>(gate)));
}

bool waybill_find_streaming_gate(waybill_string name, int32_t* gate) {
  const auto found = waybill::FindStreamingGate(View(name));
  if (found && gate != nullptr) *gate = static_cast<std::int32_t>(*found);
  return found.has_value();
}

bool waybill_is_streaming_flag(waybill_string name) {
  bool known = false;
  // Out of memory: whatever can't be told matters.
  const waybill_code code = Call(nullptr, [&](Arguments& arguments) -> Result<void> {
    const auto view = arguments.Text(name, "name");
    if (arguments.ok()) known = waybill::IsStreamingFlag(view);
    return {};
  });
  return known || code != WAYBILL_OK;
}

waybill_string waybill_streaming_severity_name(int32_t severity) {
  if (severity < 0 || severity > WAYBILL_STREAMING_FATAL) return Borrow("");
  return Borrow(waybill::StreamingSeverityName(static_cast<waybill::StreamingSeverity>(severity)));
}

waybill_code waybill_streaming_plan(const waybill_streaming_plan_request* request,
                                    waybill_streaming_answer** answer, waybill_error** error) {
  if (answer != nullptr) *answer = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    const auto from = arguments.Options(request, "request");
    if (!arguments.Given(answer, "answer")) return arguments.error();
    waybill::StreamingPlanRequest to;
    to.api_server = ToVersion(from.api_server);
    to.kubelet = ToVersion(from.kubelet);
    to.kubelet_settings.redirect_container_streaming =
        ToFlag(from.redirect_container_streaming, arguments);
    to.api_server_settings.gates =
        ToGates(from.api_server_gates, from.api_server_gate_count, "api_server_gates", arguments);
    to.kubelet_settings.gates =
        ToGates(from.kubelet_gates, from.kubelet_gate_count, "kubelet_gates", arguments);
    if (!arguments.ok()) return arguments.error();
    const auto planned = waybill::StreamingPlan(to);
    if (!planned) return planned.error();
    *answer = NewResult<waybill_streaming_answer>(
        [&](auto& c, Memory& memory) { AnswerToC(*planned, c, memory); });
    return {};
  });
}

waybill_code waybill_lint_streaming(const waybill_streaming_lint_request* request,
                                    waybill_streaming_lint** lint, waybill_error** error) {
  if (lint != nullptr) *lint = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    const auto from = arguments.Options(request, "request");
    if (!arguments.Given(lint, "lint")) return arguments.error();
    waybill::StreamingLintRequest to;
    to.component =
        arguments.OneOf(from.component, waybill::StreamingComponent::kApiServer, "component");
    to.version = ToVersion(from.version);
    to.arguments = arguments.Strings(from.arguments, "arguments");
    if (from.has_configuration) {
      auto& values = to.configuration.emplace();
      for (const auto& value :
           arguments.Array(from.configuration, from.configuration_count, "configuration")) {
        values.push_back(
            {arguments.String(value.key, "key"), arguments.String(value.value, "value")});
      }
    }
    if (!arguments.ok()) return arguments.error();
    const auto linted = waybill::LintStreaming(to);
    if (!linted) return linted.error();
    *lint = NewResult<waybill_streaming_lint>(
        [&](auto& c, Memory& memory) { LintToC(*linted, c, memory); });
    return {};
  });
}
