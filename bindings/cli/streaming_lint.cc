// waybill streaming lint

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "bindings/cli/input.h"
#include "bindings/cli/parse.h"
#include "bindings/cli/streaming_actions.h"
#include "bindings/cli/streaming_input.h"
#include "store/base/try.h"
#include "waybill/streaming_plan.h"

namespace waybill::cli {
namespace {

// What was read of one component, and what its release makes of it.
struct Linted {
  StreamingComponent component = StreamingComponent::kKubelet;
  KubernetesVersion version;
  std::vector<StreamingInputForm> forms;
  StreamingLint lint;
};

Result<StreamingInput> ReadSettings(const std::string& path, StreamingComponent component) {
  auto content = TRY(ReadInput(path, kMaxStreamingInputBytes));
  auto input = ReadStreamingInput(content, component);
  if (!input) return AboutInput(path, input.error(), {});
  return input;
}

Result<KubernetesVersion> ReadVersionFlag(std::string_view flag,
                                          const std::optional<std::string>& text,
                                          std::string_view program) {
  if (!text) {
    return BadFlag(flag, "it is missing", fmt::format("give what `{} --version` prints", program));
  }
  auto version = ParseKubernetesVersion(*text);
  if (!version) return BadFlag(flag, version.error().message, version.error().hint);
  return version;
}

Result<Linted> Judge(StreamingComponent component, KubernetesVersion version,
                     const std::vector<StreamingInput>& inputs) {
  Linted linted = {.component = component, .version = version, .forms = {}, .lint = {}};
  StreamingLintRequest request = {.component = component, .version = version};
  for (const StreamingInput& input : inputs) {
    linted.forms.push_back(input.form);
    request.arguments.insert(request.arguments.end(), input.arguments.begin(),
                             input.arguments.end());
    if (input.configuration) request.configuration = input.configuration;
  }
  auto lint = TRY(LintStreaming(request));
  linted.lint = std::move(lint);
  for (const StreamingInput& input : inputs) {
    linted.lint.notes.insert(linted.lint.notes.end(), input.notes.begin(), input.notes.end());
  }
  return linted;
}

Result<Linted> LintKubelet(const StreamingLintArguments& arguments) {
  constexpr StreamingComponent kKubelet = StreamingComponent::kKubelet;
  auto version = TRY(ReadVersionFlag("--kubelet-version", arguments.kubelet_version, "kubelet"));
  std::vector<StreamingInput> inputs;
  if (arguments.kubelet) {
    auto input = TRY(ReadSettings(*arguments.kubelet, kKubelet));
    inputs.push_back(std::move(input));
  }
  if (arguments.kubelet_config) {
    auto input = TRY(ReadSettings(*arguments.kubelet_config, kKubelet));
    if (!input.configuration) {
      return BadFlag("--kubelet-config",
                     fmt::format("{} is {}", InputName(*arguments.kubelet_config),
                                 StreamingInputFormText(input.form)),
                     "give a KubeletConfiguration; a command line goes with --kubelet");
    }
    if (!inputs.empty() && inputs.front().configuration) {
      return BadFlag("--kubelet-config", "--kubelet names a KubeletConfiguration already",
                     "give the kubelet's command line with --kubelet");
    }
    inputs.push_back(std::move(input));
  }
  return Judge(kKubelet, version, inputs);
}

Result<Linted> LintApiServer(const StreamingLintArguments& arguments) {
  constexpr StreamingComponent kApiServer = StreamingComponent::kApiServer;
  auto version =
      TRY(ReadVersionFlag("--apiserver-version", arguments.apiserver_version, "kube-apiserver"));
  auto input = TRY(ReadSettings(*arguments.apiserver, kApiServer));
  return Judge(kApiServer, version, {std::move(input)});
}

Result<void> CheckArguments(const StreamingLintArguments& a) {
  const bool kubelet = a.kubelet || a.kubelet_config;
  if (!kubelet && !a.apiserver) {
    return BadFlag("--kubelet", "nothing to judge was given",
                   "give --kubelet, --kubelet-config or --apiserver");
  }
  if (a.kubelet_version && !kubelet) {
    return BadFlag("--kubelet-version", "there is no --kubelet and no --kubelet-config");
  }
  if (a.apiserver_version && !a.apiserver) {
    return BadFlag("--apiserver-version", "there is no --apiserver");
  }
  return CheckStandardInput({{"--kubelet", a.kubelet},
                             {"--kubelet-config", a.kubelet_config},
                             {"--apiserver", a.apiserver}});
}

// --- Output ---

void WriteLinted(const Linted& linted, Output& out) {
  std::string forms;
  for (const StreamingInputForm form : linted.forms) {
    if (!forms.empty()) forms += " and ";
    forms += StreamingInputFormText(form);
  }
  out.Line("{} {}: {}", StreamingComponentName(linted.component), linted.version.ToString(), forms);
  for (const StreamingFinding& finding : linted.lint.findings) {
    out.Line("{:<10}  {}", StreamingSeverityName(finding.severity), finding.setting);
    if (!finding.words.empty()) out.Line("{:<10}  says: {}", "", finding.words);
    out.Line("{:<10}  do: {}", "", finding.advice);
  }
  if (linted.lint.findings.empty()) out.Line("nothing found");
  for (const std::string& note : linted.lint.notes) out.Line("note: {}", note);
}

std::string_view PlanText(StreamingProxy proxy) {
  return proxy == StreamingProxy::kKubelet ? "the kubelet proxies"
                                           : "the kubelet answers with a redirect";
}

std::string_view PlanText(RedirectFollower follower) {
  switch (follower) {
    case RedirectFollower::kNotNeeded:
      return "none";
    case RedirectFollower::kApiServer:
      return "the API server follows them";
    case RedirectFollower::kNobody:
      break;
  }
  return "nobody follows them";
}

std::string_view PlanText(WebSocketTranslator translator) {
  switch (translator) {
    case WebSocketTranslator::kApiServer:
      return "the API server";
    case WebSocketTranslator::kKubelet:
      return "the kubelet";
    case WebSocketTranslator::kNobody:
      break;
  }
  return "nobody";
}

std::string_view PlanText(StreamingOutcome outcome) {
  switch (outcome) {
    case StreamingOutcome::kWorks:
      return "works";
    case StreamingOutcome::kWorksOnSameHost:
      return "works if the runtime's streaming server has the kubelet's host";
    case StreamingOutcome::kFails:
      return "does not work";
    case StreamingOutcome::kDoesNotStart:
      break;
  }
  return "a component does not start; otherwise as above";
}

void WritePlan(const StreamingAnswer& plan, Output& out) {
  out.Line("streaming");
  out.Line("proxy       {}", PlanText(plan.proxy));
  std::string redirects(PlanText(plan.follower));
  if (plan.check == RedirectCheck::kSameHost) redirects += ", to the kubelet's host only";
  if (plan.check == RedirectCheck::kNone) redirects += ", to any host";
  out.Line("redirects   {}", redirects);
  out.Line("WebSockets  exec and attach: translated by {}; port-forward: by {}",
           PlanText(plan.exec_websockets), PlanText(plan.port_forward_websockets));
  out.Line("outcome     {}", PlanText(plan.outcome));
  for (const std::string& note : plan.notes) out.Line("note: {}", note);
}

Json JsonOfLinted(const Linted& linted) {
  Json forms = Json::array();
  for (const StreamingInputForm form : linted.forms) {
    forms.push_back(StreamingInputFormName(form));
  }
  Json findings = Json::array();
  for (const StreamingFinding& finding : linted.lint.findings) {
    findings.push_back({{"severity", StreamingSeverityName(finding.severity)},
                        {"origin", StreamingOriginName(finding.origin)},
                        {"subject", finding.subject},
                        {"setting", finding.setting},
                        {"words", finding.words},
                        {"advice", finding.advice},
                        {"source", finding.source}});
  }
  return {{"component", StreamingComponentName(linted.component)},
          {"version", linted.version.ToString()},
          {"forms", std::move(forms)},
          {"findings", std::move(findings)},
          {"notes", linted.lint.notes}};
}

Json JsonOfPlan(const StreamingAnswer& plan) {
  return {{"proxy", StreamingProxyName(plan.proxy)},
          {"follower", RedirectFollowerName(plan.follower)},
          {"check", RedirectCheckName(plan.check)},
          {"execWebSockets", WebSocketTranslatorName(plan.exec_websockets)},
          {"portForwardWebSockets", WebSocketTranslatorName(plan.port_forward_websockets)},
          {"outcome", StreamingOutcomeName(plan.outcome)},
          {"skew", VersionSkewName(plan.skew)},
          {"notes", plan.notes}};
}

bool IsSound(const std::vector<Linted>& all, const std::optional<StreamingAnswer>& plan) {
  const bool nothing_found = std::all_of(
      all.begin(), all.end(), [](const Linted& linted) { return linted.lint.findings.empty(); });
  return nothing_found && (!plan || (plan->outcome == StreamingOutcome::kWorks &&
                                     plan->skew == VersionSkew::kSupported));
}

}  // namespace

Result<ExitCode> LintStreamingSettings(const StreamingLintArguments& arguments, Output& out) {
  TRY(CheckArguments(arguments));
  std::vector<Linted> all;
  if (arguments.kubelet || arguments.kubelet_config) {
    auto linted = TRY(LintKubelet(arguments));
    all.push_back(std::move(linted));
  }
  if (arguments.apiserver) {
    auto linted = TRY(LintApiServer(arguments));
    all.push_back(std::move(linted));
  }
  std::optional<StreamingAnswer> plan;
  if (all.size() == 2) {
    plan = TRY(StreamingPlan({.api_server = all[1].version,
                              .kubelet = all[0].version,
                              .api_server_settings = all[1].lint.settings,
                              .kubelet_settings = all[0].lint.settings}));
    // A setting that could not be parsed is fatal, and not part of the plan.
    for (const Linted& linted : all) {
      for (const StreamingFinding& finding : linted.lint.findings) {
        if (finding.severity == StreamingSeverity::kFatal) {
          plan->outcome = StreamingOutcome::kDoesNotStart;
        }
      }
    }
  }
  if (out.json()) {
    Json answer = {{"components", Json::array()}};
    for (const Linted& linted : all) answer["components"].push_back(JsonOfLinted(linted));
    if (plan) answer["plan"] = JsonOfPlan(*plan);
    out.WriteJson(answer);
  } else {
    for (const Linted& linted : all) WriteLinted(linted, out);
    if (plan) WritePlan(*plan, out);
  }
  return IsSound(all, plan) ? ExitCode::kYes : ExitCode::kNo;
}

}  // namespace waybill::cli
