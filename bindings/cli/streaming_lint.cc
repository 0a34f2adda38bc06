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

Result<KubernetesVersion> ParseVersion(std::string_view flag, std::string_view text) {
  auto version = ParseKubernetesVersion(text);
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

class StreamingLintCall final : public Call {
 public:
  void Declare(Flags& flags) override {
    flags.Value("--kubelet", &kubelet_, "FILE|-", "the kubelet's command line");
    flags.Value("--kubelet-config", &kubelet_config_, "FILE|-", "the kubelet's configuration");
    flags.Value("--kubelet-version", &kubelet_version_, "V", "as v1.36.3", ParseVersion);
    flags.Value("--apiserver", &apiserver_, "FILE|-", "the API server's command line");
    flags.Value("--apiserver-version", &apiserver_version_, "V", "as v1.36.3", ParseVersion);
    flags.Needed({"--kubelet", "--kubelet-config", "--apiserver"},
                 "give --kubelet, --kubelet-config or --apiserver");
    const std::string kubelet = "give what `kubelet --version` prints";
    flags.Needs("--kubelet", {"--kubelet-version"}, kubelet);
    flags.Needs("--kubelet-config", {"--kubelet-version"}, kubelet);
    flags.Needs("--kubelet-version", {"--kubelet", "--kubelet-config"});
    flags.Needs("--apiserver", {"--apiserver-version"},
                "give what `kube-apiserver --version` prints");
    flags.Needs("--apiserver-version", {"--apiserver"});
  }

  Result<ExitCode> Run(Output& out) override {
    std::vector<Linted> all;
    if (kubelet_ || kubelet_config_) {
      auto linted = TRY(LintKubelet());
      all.push_back(std::move(linted));
    }
    if (apiserver_) {
      constexpr StreamingComponent kApiServer = StreamingComponent::kApiServer;
      auto input = TRY(ReadSettings(*apiserver_, kApiServer));
      auto linted = TRY(Judge(kApiServer, *apiserver_version_, {std::move(input)}));
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
    Json answer = {{"components", Json::array()}};
    for (const Linted& linted : all) answer["components"].push_back(JsonOfLinted(linted));
    if (plan) answer["plan"] = JsonOfPlan(*plan);
    out.WriteJson(answer);
    for (const Linted& linted : all) WriteLinted(linted, out);
    if (plan) WritePlan(*plan, out);
    return IsSound(all, plan) ? ExitCode::kYes : ExitCode::kNo;
  }

 private:
  Result<Linted> LintKubelet() const {
    constexpr StreamingComponent kKubelet = StreamingComponent::kKubelet;
    std::vector<StreamingInput> inputs;
    if (kubelet_) {
      auto input = TRY(ReadSettings(*kubelet_, kKubelet));
      inputs.push_back(std::move(input));
    }
    if (kubelet_config_) {
      auto input = TRY(ReadSettings(*kubelet_config_, kKubelet));
      if (!input.configuration) {
        return BadFlag("--kubelet-config",
                       fmt::format("{} is {}", InputName(*kubelet_config_),
                                   StreamingInputFormText(input.form)),
                       "give a KubeletConfiguration; a command line goes with --kubelet");
      }
      if (!inputs.empty() && inputs.front().configuration) {
        return BadFlag("--kubelet-config", "--kubelet names a KubeletConfiguration already",
                       "give the kubelet's command line with --kubelet");
      }
      inputs.push_back(std::move(input));
    }
    return Judge(kKubelet, *kubelet_version_, inputs);
  }

  std::optional<std::string> kubelet_;
  std::optional<std::string> kubelet_config_;
  std::optional<KubernetesVersion> kubelet_version_;
  std::optional<std::string> apiserver_;
  std::optional<KubernetesVersion> apiserver_version_;
};

}  // namespace

Command StreamingLintAction() {
  return {
      .name = "lint",
      .summary = "which settings of a kubelet and an API server are wrong in their releases",
      .notes =
          R"(Says which are deprecated, ignored, removed or fatal there; 1 if there are any, or if
streaming does not work. With both, also who proxies, who follows redirects and who
translates WebSockets. A FILE may be /proc/PID/cmdline, flags with one a line, a
KubeletConfiguration or a static pod's manifest.)",
      .examples = "waybill streaming lint --kubelet /proc/812/cmdline --kubelet-version v1.36.3",
      .call = New<StreamingLintCall>};
}

}  // namespace waybill::cli
