// Streaming: who proxies, follows and translates, and what each release makes of the settings.

#include "bindings/c/convert.h"
#include "store/base/try.h"

using namespace waybill::c;
using waybill::Result;

namespace {

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

waybill_streaming_lint ToC(const waybill::StreamingLint& lint, Memory& memory) {
  return {.findings =
              ListOf<waybill_streaming_findings, waybill_streaming_finding>(lint.findings, memory),
          .redirect_container_streaming = FlagToC(lint.settings.redirect_container_streaming),
          .gates = EachToC<waybill_streaming_gate_setting>(lint.settings.gates, memory),
          .gate_count = lint.settings.gates.size(),
          .notes = CopyStrings(lint.notes, memory)};
}

}  // namespace

bool waybill_find_streaming_gate(waybill_string name, int32_t* gate) {
  const auto found = waybill::FindStreamingGate(View(name));
  if (found && gate != nullptr) *gate = static_cast<std::int32_t>(*found);
  return found.has_value();
}

waybill_code waybill_streaming_plan(const waybill_streaming_plan_request* request,
                                    waybill_streaming_answer** answer, waybill_error** error) {
  if (answer != nullptr) *answer = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    const auto from = arguments.Options(request, "request");
    if (!arguments.Given(answer, "answer")) return arguments.error();
    waybill::StreamingPlanRequest to;
    to.api_server = FromC(from.api_server, arguments);
    to.kubelet = FromC(from.kubelet, arguments);
    to.kubelet_settings.redirect_container_streaming =
        ToFlag(from.redirect_container_streaming, arguments);
    to.api_server_settings.gates =
        ListFromC(from.api_server_gates, from.api_server_gate_count, "api_server_gates", arguments);
    to.kubelet_settings.gates =
        ListFromC(from.kubelet_gates, from.kubelet_gate_count, "kubelet_gates", arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(waybill::StreamingPlan(to), answer);
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
    to.version = FromC(from.version, arguments);
    to.arguments = arguments.Strings(from.arguments, "arguments");
    if (!arguments.ok()) return arguments.error();
    const auto linted = TRY(waybill::LintStreaming(to));
    *lint = NewResult<waybill_streaming_lint>(
        [&](auto& c, Memory& memory) { c = ToC(linted, memory); });
    return {};
  });
}
