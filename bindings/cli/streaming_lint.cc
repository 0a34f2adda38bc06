// waybill streaming lint

#include <string>
#include <vector>

#include "bindings/cli/parse.h"
#include "bindings/cli/streaming_actions.h"
#include "store/base/try.h"
#include "waybill/streaming_plan.h"

namespace waybill::cli {
namespace {

Result<KubernetesVersion> ParseVersion(std::string_view flag, std::string_view text) {
  auto version = ParseKubernetesVersion(text);
  if (!version) return BadFlag(flag, version.error().message, version.error().hint);
  return version;
}

void WriteFindings(const StreamingLint& lint, Output& out) {
  for (const StreamingFinding& finding : lint.findings) {
    out.Line("{:<10}  {}", StreamingSeverityName(finding.severity), finding.setting);
    if (!finding.words.empty()) out.Line("{:<10}  says: {}", "", finding.words);
    out.Line("{:<10}  do: {}", "", finding.advice);
  }
  if (lint.findings.empty()) out.Line("nothing found");
  for (const std::string& note : lint.notes) out.Line("note: {}", note);
}

Json JsonOfFindings(const std::vector<StreamingFinding>& findings) {
  Json list = Json::array();
  for (const StreamingFinding& finding : findings) {
    list.push_back({{"severity", StreamingSeverityName(finding.severity)},
                    {"subject", finding.subject},
                    {"setting", finding.setting},
                    {"words", finding.words},
                    {"advice", finding.advice},
                    {"source", finding.source}});
  }
  return list;
}

class StreamingLintCall final : public Call {
 public:
  void Declare(Flags& flags) override {
    flags.Value("--kubelet-version", &kubelet_, "V", "the flags are a kubelet's: as v1.36.3",
                ParseVersion);
    flags.Value("--apiserver-version", &api_server_, "V", "they are an API server's: as v1.36.3",
                ParseVersion);
    flags
        .Positionals("FLAG", &request_.arguments,
                     "as the component gets it, with its value, behind --")
        .Required("write the component's flags behind --");
    flags.OneOf({"--kubelet-version", "--apiserver-version"},
                "give what `kubelet --version` or `kube-apiserver --version` prints");
  }

  Result<ExitCode> Run(Output& out) override {
    request_.component = kubelet_ ? StreamingComponent::kKubelet : StreamingComponent::kApiServer;
    request_.version = kubelet_ ? *kubelet_ : *api_server_;
    const auto lint = TRY(LintStreaming(request_));
    out.WriteJson({{"component", StreamingComponentName(request_.component)},
                   {"version", request_.version.ToString()},
                   {"findings", JsonOfFindings(lint.findings)},
                   {"notes", lint.notes}});
    out.Line("{} {}", StreamingComponentName(request_.component), request_.version.ToString());
    WriteFindings(lint, out);
    return lint.findings.empty() ? ExitCode::kYes : ExitCode::kNo;
  }

 private:
  std::optional<KubernetesVersion> kubelet_;
  std::optional<KubernetesVersion> api_server_;
  StreamingLintRequest request_;
};

}  // namespace

Command StreamingLintAction() {
  return {
      .name = "lint",
      .summary = "what a release makes of a kubelet's or an API server's flags of streaming",
      .notes = R"(Says which are deprecated, ignored, removed or fatal there; 1 if there are any.)",
      .examples =
          "waybill streaming lint --kubelet-version v1.24.0 -- --redirect-container-streaming",
      .call = New<StreamingLintCall>};
}

}  // namespace waybill::cli
