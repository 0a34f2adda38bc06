// Flags of streaming requests: no crash on any version or command line; what is reported can be
// printed; whatever is read is judged the same way twice, and what a command line has as fatal
// stays fatal whatever stands around it.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "store/streams/streaming_plan.h"
#include "waybill/values.h"

namespace {

using waybill::StreamingComponent;

void CheckText(std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) std::abort();
  }
}

bool HasFatal(const waybill::StreamingLint& lint) {
  bool fatal = false;
  for (const waybill::StreamFinding& finding : lint.findings) {
    CheckText(finding.subject);
    CheckText(finding.setting);
    CheckText(finding.words);
    CheckText(finding.advice);
    if (finding.setting.empty() || finding.advice.empty() || finding.source.empty()) std::abort();
    fatal = fatal || finding.severity == waybill::StreamingSeverity::kFatal;
  }
  for (const std::string& note : lint.notes) CheckText(note);
  return fatal;
}

void Judge(waybill::StreamingSetup request) {
  const auto lint = waybill::LintStreaming(request);
  if (!lint) return;
  const bool fatal = HasFatal(*lint);
  waybill::StreamingSetup other = request;
  other.component = request.component == StreamingComponent::kKubelet
                        ? StreamingComponent::kApiServer
                        : StreamingComponent::kKubelet;
  const bool of_kubelet = request.component == StreamingComponent::kKubelet;
  const auto answer =
      waybill::StreamingPlan(of_kubelet ? other : request, of_kubelet ? request : other);
  if (!answer || answer->skew != waybill::VersionSkew::kSupported) std::abort();
  if (fatal && answer->outcome != waybill::StreamingOutcome::kDoesNotStart) std::abort();
  // A flag before all others takes none of them away.
  request.arguments.insert(request.arguments.begin(), "--v=2");
  const auto again = waybill::LintStreaming(request);
  if (!again || HasFatal(*again) != fatal || again->redirects != lint->redirects ||
      again->gates != lint->gates)
    std::abort();
  request.arguments.insert(request.arguments.begin(), "--redirect-container-streaming");
  const auto with_flag = waybill::LintStreaming(request);
  const bool gone = request.component == StreamingComponent::kApiServer || request.release >= 22;
  if (with_flag && (gone || fatal) && !HasFatal(*with_flag)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (const auto release = waybill::ParseKubernetesRelease(input)) {
    const auto same = waybill::ParseKubernetesRelease(waybill::ReleaseName(*release));
    if (!same || *same != *release) std::abort();
  }
  const auto component =
      data[0] % 2 == 0 ? StreamingComponent::kKubelet : StreamingComponent::kApiServer;
  waybill::StreamingSetup request;
  request.component = component;
  request.release = 11 + data[0] / 2U % 30U;
  // The lines of the input as arguments.
  for (std::string_view rest = input; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    request.arguments.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  Judge(request);
  return 0;
}
