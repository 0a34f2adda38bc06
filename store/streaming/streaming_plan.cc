
#include "store/streaming/streaming_plan.h"

#include <algorithm>

#include "store/base/names.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "store/streaming/streaming_facts.h"
#include "waybill/values.h"

namespace waybill {
namespace {

using internal::CheckVersion, internal::IsGateOn, internal::NameIn;

constexpr std::size_t kMaxVersionBytes = 128;
// A kubelet may be this much older than its API server; from 1.25 on, more (Kubernetes' version
// skew policy; kubeadm constants.go of v1.29.0).
constexpr std::uint32_t kSupportedSkew = 2;
constexpr std::uint32_t kLaterSupportedSkew = 3;
constexpr std::uint32_t kLaterSkewFrom = 25;

constexpr std::string_view kGateNames[] = {
    "StreamingProxyRedirects",
    "ValidateProxyRedirects",
    "TranslateStreamCloseWebsocketRequests",
    "PortForwardWebsockets",
    "ExtendWebSocketsToKubelet",
    "NodeDeclaredFeatures",
    "AllAlpha",
    "AllBeta",
};

// A number without a sign or a zero in front, up to 4 digits; takes it off `text`.
std::optional<std::uint32_t> TakeNumber(std::string_view& text) {
  std::size_t digits = 0;
  std::uint32_t number = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    if (digits == 4) return std::nullopt;
    number = number * 10 + static_cast<std::uint32_t>(text[digits] - '0');
    ++digits;
  }
  if (digits == 0 || (digits > 1 && text[0] == '0')) return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

// What semver allows behind the numbers: "-rc.1", "+k3s1"; and the bare "+" of a minor version.
bool IsVersionTail(std::string_view tail) {
  if (tail.empty() || tail == "+") return true;
  if (tail[0] != '-' && tail[0] != '+') return false;
  int builds = 0;
  for (std::size_t i = 0; i < tail.size(); ++i) {
    const char c = tail[i];
    const bool ends = i + 1 == tail.size();
    if (c == '+') ++builds;
    if (c == '+' || c == '.' || (c == '-' && i == 0)) {
      if (ends || tail[i + 1] == '.' || tail[i + 1] == '+') return false;
      continue;
    }
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!plain && c != '-') return false;
  }
  return builds <= 1;
}

std::optional<KubernetesVersion> ReadVersion(std::string_view text) {
  constexpr std::string_view kPrefix = "Kubernetes ";
  if (text.starts_with(kPrefix)) text.remove_prefix(kPrefix.size());
  if (text.starts_with('v')) text.remove_prefix(1);
  const auto major = TakeNumber(text);
  if (!major || !text.starts_with('.')) return std::nullopt;
  text.remove_prefix(1);
  const auto minor = TakeNumber(text);
  if (!minor) return std::nullopt;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (!TakeNumber(text)) return std::nullopt;
  }
  if (!IsVersionTail(text)) return std::nullopt;
  return KubernetesVersion{*major, *minor};
}

VersionSkew SkewOf(KubernetesVersion api_server, KubernetesVersion kubelet) {
  if (kubelet > api_server) return VersionSkew::kKubeletNewer;
  const std::uint32_t most = kubelet.minor >= kLaterSkewFrom ? kLaterSupportedSkew : kSupportedSkew;
  return api_server.minor - kubelet.minor > most ? VersionSkew::kKubeletTooOld
                                                 : VersionSkew::kSupported;
}

// The kubelet translates what it declares that it does; a gate of the API server that is off makes
// no difference then, since its plain proxy passes WebSockets on (v1.36.0
// pkg/registry/core/pod/rest/subresources.go, pkg/kubelet/server/server.go).
WebSocketTranslator TranslatorOf(const StreamingPlanRequest& request, StreamingGate gate) {
  constexpr StreamingGate kExtend = StreamingGate::kExtendWebSocketsToKubelet;
  constexpr StreamingGate kDeclared = StreamingGate::kNodeDeclaredFeatures;
  const auto& kubelet_gates = request.kubelet_settings.gates;
  const auto& api_gates = request.api_server_settings.gates;
  const bool kubelet_can = IsGateOn(kubelet_gates, kExtend, request.kubelet);
  const bool kubelet_says_so = kubelet_can && IsGateOn(kubelet_gates, kDeclared, request.kubelet) &&
                               IsGateOn(api_gates, kDeclared, request.api_server);
  if (IsGateOn(api_gates, gate, request.api_server)) {
    return kubelet_says_so && IsGateOn(api_gates, kExtend, request.api_server)
               ? WebSocketTranslator::kKubelet
               : WebSocketTranslator::kApiServer;
  }
  return kubelet_can ? WebSocketTranslator::kKubelet : WebSocketTranslator::kNobody;
}

void JudgeSettings(StreamingComponent component, KubernetesVersion version,
                   const StreamingSettings& settings, std::vector<StreamFinding>& findings) {
  if (component == StreamingComponent::kKubelet && settings.redirect_container_streaming) {
    const std::string name = "--" + std::string(internal::kRedirectFlag);
    const auto* fact = internal::FindFlagFact(component, internal::kRedirectFlag, version);
    if (auto finding = fact == nullptr ? std::nullopt : internal::JudgeFlag(*fact, name)) {
      finding->setting = name + (*settings.redirect_container_streaming ? "=true" : "=false");
      findings.push_back(std::move(*finding));
    }
  }
  std::vector<StreamingGate> judged;
  for (auto setting = settings.gates.rbegin(); setting != settings.gates.rend(); ++setting) {
    if (std::find(judged.begin(), judged.end(), setting->gate) != judged.end()) continue;
    judged.push_back(setting->gate);
    if (auto finding = internal::JudgeGate(component, version, *setting)) {
      findings.push_back(std::move(*finding));
    }
  }
  for (auto& finding : internal::JudgeGatesTogether(component, version, settings.gates)) {
    findings.push_back(std::move(finding));
  }
}

void NoteVersion(StreamingComponent component, KubernetesVersion version,
                 std::vector<std::string>& notes) {
  if (version <= kNewestStreamingVersion) return;
  notes.push_back(std::string(ProgramOf(component)) + " " + version.ToString() +
                  " is newer than what is known: taken for " + kNewestStreamingVersion.ToString());
}

void NoteRedirects(const StreamingPlanRequest& request, StreamPlan& answer) {
  switch (answer.follower) {
    case RedirectFollower::kNotNeeded:
      return;
    case RedirectFollower::kNobody:
      answer.notes.emplace_back(
          "the client gets the redirect, or from API server 1.18.6 on the error \"invalid upgrade "
          "response: status code 302\"");
      answer.notes.emplace_back(
          request.api_server.minor < 24
              ? "take --redirect-container-streaming out of the kubelet's flags; until then "
                "StreamingProxyRedirects=true at the API server helps"
              : "take --redirect-container-streaming out of the kubelet's flags: this API server "
                "can't follow redirects");
      return;
    case RedirectFollower::kApiServer:
      answer.notes.emplace_back(
          answer.check == RedirectCheck::kSameHost
              ? "a redirect to another host than the kubelet's is the error \"hostname mismatch\""
              : "the API server follows a redirect to any host: a kubelet in the wrong hands sends "
                "it anywhere (SSRF)");
      return;
  }
}

void NoteSkew(const StreamingPlanRequest& request, StreamPlan& answer) {
  if (answer.skew == VersionSkew::kSupported) return;
  answer.notes.push_back("version skew is not supported: kubelet " + request.kubelet.ToString() +
                         (answer.skew == VersionSkew::kKubeletNewer
                              ? " is newer than API server "
                              : " is too old for API server ") +
                         request.api_server.ToString());
}

}  // namespace

std::string KubernetesVersion::ToString() const {
  return std::to_string(major) + "." + std::to_string(minor);
}

Result<KubernetesVersion> ParseKubernetesVersion(std::string_view text) {
  const auto version =
      text.size() <= kMaxVersionBytes ? ReadVersion(text) : std::optional<KubernetesVersion>();
  if (!version) {
    return Error{ErrorCode::kInvalidArgument,
                 internal::QuoteForMessage(text) + " is no version of Kubernetes",
                 "write it like v1.22.3 or 1.22"};
  }
  TRY(CheckVersion("version ", *version));
  return *version;
}

std::string_view ProgramOf(StreamingComponent component) {
  return component == StreamingComponent::kKubelet ? "kubelet" : "kube-apiserver";
}

std::string_view StreamingGateName(StreamingGate gate) { return NameIn(kGateNames, gate); }

std::optional<StreamingGate> FindStreamingGate(std::string_view name) {
  const auto* found = std::find(std::begin(kGateNames), std::end(kGateNames), name);
  if (found == std::end(kGateNames)) return std::nullopt;
  return static_cast<StreamingGate>(found - std::begin(kGateNames));
}

Result<StreamPlan> StreamingPlan(const StreamingPlanRequest& request) {
  TRY(CheckVersion("kube-apiserver ", request.api_server));
  TRY(CheckVersion("kubelet ", request.kubelet));
  if (request.kubelet_settings.gates.size() > kMaxStreamingArguments ||
      request.api_server_settings.gates.size() > kMaxStreamingArguments) {
    return Error{ErrorCode::kLimitExceeded,
                 "more than " + std::to_string(kMaxStreamingArguments) + " feature gates",
                 {}};
  }
  StreamPlan answer;
  answer.skew = SkewOf(request.api_server, request.kubelet);
  const auto& api_gates = request.api_server_settings.gates;
  if (request.kubelet_settings.redirect_container_streaming.value_or(false) &&
      request.kubelet.minor <= internal::kLastRedirectingKubelet) {
    answer.proxy = StreamingProxy::kRedirect;
    if (IsGateOn(api_gates, StreamingGate::kStreamingProxyRedirects, request.api_server)) {
      const bool checked =
          request.api_server.minor >= internal::kRedirectsValidatedFrom &&
          IsGateOn(api_gates, StreamingGate::kValidateProxyRedirects, request.api_server);
      answer.follower = RedirectFollower::kApiServer;
      answer.check = checked ? RedirectCheck::kSameHost : RedirectCheck::kNone;
      answer.outcome = checked ? StreamingOutcome::kWorksOnSameHost : StreamingOutcome::kWorks;
    } else {
      answer.follower = RedirectFollower::kNobody;
      answer.outcome = StreamingOutcome::kFails;
    }
  }
  answer.exec_websockets =
      TranslatorOf(request, StreamingGate::kTranslateStreamCloseWebsocketRequests);
  answer.port_forward_websockets = TranslatorOf(request, StreamingGate::kPortForwardWebsockets);

  JudgeSettings(StreamingComponent::kKubelet, request.kubelet, request.kubelet_settings,
                answer.findings);
  JudgeSettings(StreamingComponent::kApiServer, request.api_server, request.api_server_settings,
                answer.findings);
  if (std::any_of(answer.findings.begin(), answer.findings.end(), [](const auto& finding) {
        return finding.severity == StreamingSeverity::kFatal;
      })) {
    answer.outcome = StreamingOutcome::kDoesNotStart;
  }
  NoteRedirects(request, answer);
  NoteSkew(request, answer);
  NoteVersion(StreamingComponent::kKubelet, request.kubelet, answer.notes);
  NoteVersion(StreamingComponent::kApiServer, request.api_server, answer.notes);
  return answer;
}

}  // namespace waybill
