// What each release makes of the settings that decide how streaming requests go: one row a fact,
// with the place in the released sources that shows it. Where they differ from KEP-1558's text, the
// sources count:
//
//  1. The KEP removes --redirect-container-streaming in 1.24. The kubelet has no such flag from
//     v1.22.0 on; v1.21.14 is the last release with it.
//  2. The KEP has the kubelet log an error in 1.20 if the flag is set. It prints the line that
//  pflag
//     prints for any deprecated flag, whatever the value, and nothing else.
//  3. The KEP says that StreamingProxyRedirects=false by default (1.22) breaks nodes that are >= 2
//     releases behind. Those that still redirect are 1.19 and older, so it takes 3, which no policy
//     supported then.
//  4. The KEP dates ValidateProxyRedirects to 1.10. It came in 1.12 (kubernetes/website#19192), and
//     nothing in v1.12.0's pod subresources reads it: from 1.13 on it has an effect. The KEP does
//     not say that it is deprecated since 1.22.
//  5. The KEP has the API server pass the redirect on to the client. From v1.18.6 and v1.19.0 on it
//     answers "invalid upgrade response: status code 302" itself
//     (apimachinery pkg/util/proxy/upgradeaware.go).
//  6. The KEP's MaxConnectionBytesPerSec of the kubelet was never built, neither as a flag nor in
//     KubeletConfiguration (no trace in cmd/kubelet and pkg/kubelet, v1.18.0 to v1.37.2).

#ifndef WAYBILL_STORE_STREAMING_STREAMING_FACTS_H_
#define WAYBILL_STORE_STREAMING_STREAMING_FACTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/streaming/streaming_plan.h"
#include "waybill/values.h"

namespace waybill::internal {

// --- Feature gates ---

enum class GateStage : std::uint8_t { kAlpha, kBeta, kDeprecated, kGa, kGone };

// Holds from release 1.`from` until the gate's next row.
struct GateFact {
  StreamingGate gate;
  std::uint32_t from;
  GateStage stage;
  bool on_by_default;
  bool locked;  // any other value is fatal
  std::string_view source;
};

inline constexpr GateFact kGateFacts[] = {
    {StreamingGate::kStreamingProxyRedirects, 5, GateStage::kAlpha, false, false,
     "apiserver v0.17.0 pkg/features/kube_features.go: alpha v1.5"},
    {StreamingGate::kStreamingProxyRedirects, 6, GateStage::kBeta, true, false,
     "kubernetes v1.11.0 pkg/features/kube_features.go"},
    {StreamingGate::kStreamingProxyRedirects, 18, GateStage::kDeprecated, true, false,
     "kubernetes v1.18.0 pkg/features/kube_features.go; kubernetes/kubernetes#88290"},
    {StreamingGate::kStreamingProxyRedirects, 22, GateStage::kDeprecated, false, false,
     "kubernetes v1.22.0 pkg/features/kube_features.go; kubernetes/kubernetes#101647"},
    {StreamingGate::kStreamingProxyRedirects, 24, GateStage::kGone, false, false,
     "apiserver v0.24.0 pkg/features/kube_features.go; kubernetes/kubernetes#106830"},

    {StreamingGate::kValidateProxyRedirects, 12, GateStage::kAlpha, false, false,
     "apiserver v0.18.0 pkg/features/kube_features.go: alpha v1.12; kubernetes/website#19192"},
    {StreamingGate::kValidateProxyRedirects, 14, GateStage::kBeta, true, false,
     "kubernetes v1.14.0 pkg/features/kube_features.go; kubernetes/kubernetes#72552"},
    {StreamingGate::kValidateProxyRedirects, 22, GateStage::kDeprecated, true, false,
     "kubernetes v1.22.0 pkg/features/kube_features.go"},
    {StreamingGate::kValidateProxyRedirects, 24, GateStage::kGone, false, false,
     "apiserver v0.24.0 pkg/features/kube_features.go; kubernetes/kubernetes#106830"},

    {StreamingGate::kTranslateStreamCloseWebsocketRequests, 29, GateStage::kAlpha, false, false,
     "kubernetes v1.29.0 pkg/features/kube_features.go"},
    {StreamingGate::kTranslateStreamCloseWebsocketRequests, 30, GateStage::kBeta, true, false,
     "kubernetes v1.30.0 pkg/features/kube_features.go; kubernetes/kubernetes#123281"},

    {StreamingGate::kPortForwardWebsockets, 30, GateStage::kAlpha, false, false,
     "kubernetes v1.30.0 pkg/features/kube_features.go"},
    {StreamingGate::kPortForwardWebsockets, 31, GateStage::kBeta, true, false,
     "kubernetes v1.31.0 pkg/features/kube_features.go; kubernetes/kubernetes#125528"},

    {StreamingGate::kExtendWebSocketsToKubelet, 36, GateStage::kBeta, true, false,
     "kubernetes v1.36.0 pkg/features/kube_features.go; kubernetes/kubernetes#136256"},

    {StreamingGate::kNodeDeclaredFeatures, 35, GateStage::kAlpha, false, false,
     "kubernetes v1.35.0 pkg/features/kube_features.go"},
    {StreamingGate::kNodeDeclaredFeatures, 36, GateStage::kBeta, true, false,
     "kubernetes v1.36.0 pkg/features/kube_features.go"},
    {StreamingGate::kNodeDeclaredFeatures, 37, GateStage::kGa, true, true,
     "kubernetes v1.37.2 pkg/features/kube_features.go"},
};

// From this release on the gate of the API server is read where streams are proxied (v1.12.0 and
// v1.13.0 pkg/registry/core/pod/rest/subresources.go).
inline constexpr std::uint32_t kRedirectsValidatedFrom = 13;
// AllBeta (component-base v0.17.0 featuregate/feature_gate.go).
inline constexpr std::uint32_t kAllBetaFrom = 17;
// From this release on a gate that is on needs those that it depends on, or nothing starts
// (component-base v0.36.3 featuregate/feature_gate.go; pkg/features/kube_features.go of v1.36.0:
// ExtendWebSocketsToKubelet: {NodeDeclaredFeatures}).
inline constexpr std::uint32_t kGateDependenciesFrom = 36;
// The warning about deprecated and GA gates is worded anew (component-base v0.35.0 and v0.36.3
// featuregate/feature_gate.go).
inline constexpr std::uint32_t kNewGateWarningFrom = 36;
// The API server takes "kube:Gate=true" (apiserver v0.31.0 pkg/util/version/registry.go).
inline constexpr std::uint32_t kGatePrefixFrom = 31;

// --- Flags ---

enum class FlagState : std::uint8_t {
  kWorks,
  kDeprecated,
  kRemoved,  // parsed, warned about, and without effect
  kUnknown,  // the component does not start
};
enum class FlagType : std::uint8_t { kBool, kDuration, kInteger };

// Holds from release 1.`from` until the next row of the component's flag.
struct FlagFact {
  StreamingComponent component;
  std::string_view flag;
  FlagType type;
  std::uint32_t from;
  FlagState state;
  // After pflag's "Flag --… has been deprecated, ".
  std::string_view words;
  std::string_view advice;
  std::string_view source;
};

inline constexpr std::string_view kRedirectFlag = "redirect-container-streaming";
inline constexpr std::string_view kIdleTimeoutFlag = "streaming-connection-idle-timeout";
inline constexpr std::string_view kBytesPerSecFlag = "max-connection-bytes-per-sec";
inline constexpr std::string_view kKubeletHttpsFlag = "kubelet-https";

inline constexpr std::string_view kConfigFileWords =
    "This parameter should be set via the config file specified by the Kubelet's --config flag. "
    "See https://kubernetes.io/docs/tasks/administer-cluster/kubelet-config-file/ for more "
    "information.";

inline constexpr FlagFact kFlagFacts[] = {
    {StreamingComponent::kKubelet,
     kRedirectFlag,
     FlagType::kBool,
     11,
     FlagState::kWorks,
     {},
     {},
     "kubernetes v1.11.0 pkg/kubelet/config/flags.go; kubernetes/kubernetes#64006"},
    {StreamingComponent::kKubelet, kRedirectFlag, FlagType::kBool, 18, FlagState::kDeprecated,
     "Container streaming redirection will be removed from the kubelet in v1.20, and this flag "
     "will be removed in v1.22. For more details, see "
     "http://git.k8s.io/enhancements/keps/sig-node/20191205-container-streaming-requests.md",
     "take it out: the kubelet then proxies, and from 1.20 on it always does",
     "kubernetes v1.18.0 pkg/kubelet/config/flags.go; kubernetes/kubernetes#88290"},
    {StreamingComponent::kKubelet, kRedirectFlag, FlagType::kBool, 20, FlagState::kRemoved,
     "Container streaming redirection has been removed from the kubelet as of v1.20, and this flag "
     "will be removed in v1.22. For more details, see "
     "http://git.k8s.io/enhancements/keps/sig-node/20191205-container-streaming-requests.md",
     "take it out: the kubelet proxies whatever it says, and 1.22 does not start with it",
     "kubernetes v1.20.0 pkg/kubelet/config/flags.go; kubernetes/kubernetes#95935"},
    {StreamingComponent::kKubelet,
     kRedirectFlag,
     FlagType::kBool,
     22,
     FlagState::kUnknown,
     {},
     "take it out: the kubelet always proxies",
     "kubernetes v1.22.0 pkg/kubelet/config/flags.go: no such flag"},

    // Read by the streaming server of dockershim alone, which 1.24 no longer has (v1.23.0 and
    // v1.24.0 pkg/kubelet/kubelet.go: getStreamingConfig).
    {StreamingComponent::kKubelet, kIdleTimeoutFlag, FlagType::kDuration, 11,
     FlagState::kDeprecated, kConfigFileWords,
     "with another runtime than dockershim take it out: the runtime's own timeout counts; "
     "otherwise set streamingConnectionIdleTimeout in the configuration file",
     "kubernetes v1.11.0 cmd/kubelet/app/options/options.go"},
    {StreamingComponent::kKubelet, kIdleTimeoutFlag, FlagType::kDuration, 24, FlagState::kRemoved,
     kConfigFileWords, "take it out: only dockershim read it; set the timeout in the runtime",
     "kubernetes v1.24.0 pkg/kubelet/kubelet.go: stored, and read by nothing"},

    {StreamingComponent::kKubelet,
     kBytesPerSecFlag,
     FlagType::kInteger,
     11,
     FlagState::kUnknown,
     {},
     "take it out: it is a flag of the API server; the kubelet has no such limit",
     "kubernetes v1.18.0 to v1.37.2 cmd/kubelet: no such flag"},
    {StreamingComponent::kKubelet,
     kKubeletHttpsFlag,
     FlagType::kBool,
     11,
     FlagState::kUnknown,
     {},
     "take it out: it was a flag of the API server",
     "kubernetes v1.11.0 to v1.37.2 cmd/kubelet: no such flag"},

    {StreamingComponent::kApiServer,
     kRedirectFlag,
     FlagType::kBool,
     11,
     FlagState::kUnknown,
     {},
     "take it out: it was a flag of the kubelet",
     "kubernetes v1.11.0 to v1.37.2 cmd/kube-apiserver: no such flag"},
    {StreamingComponent::kApiServer,
     kIdleTimeoutFlag,
     FlagType::kDuration,
     11,
     FlagState::kUnknown,
     {},
     "take it out: it is a flag of the kubelet",
     "kubernetes v1.11.0 to v1.37.2 cmd/kube-apiserver: no such flag"},
    {StreamingComponent::kApiServer,
     kBytesPerSecFlag,
     FlagType::kInteger,
     11,
     FlagState::kWorks,
     {},
     {},
     "kubernetes v1.11.0 cmd/kube-apiserver/app/options/options.go"},
    {StreamingComponent::kApiServer,
     kKubeletHttpsFlag,
     FlagType::kBool,
     11,
     FlagState::kWorks,
     {},
     {},
     "kubernetes v1.11.0 cmd/kube-apiserver/app/options/options.go"},
    {StreamingComponent::kApiServer, kKubeletHttpsFlag, FlagType::kBool, 19, FlagState::kRemoved,
     "API Server connections to kubelets always use https. This flag will be removed in 1.22.",
     "take it out: the API server always uses https, and 1.22 does not start with it",
     "kubernetes v1.19.0 cmd/kube-apiserver/app/options/options.go"},
    {StreamingComponent::kApiServer,
     kKubeletHttpsFlag,
     FlagType::kBool,
     22,
     FlagState::kUnknown,
     {},
     "take it out: the API server always uses https",
     "kubernetes v1.22.0 cmd/kube-apiserver/app/options/options.go: no such flag"},
};

// The kubelet redirects up to this release, if the flag says so (v1.19.0 and v1.20.0
// pkg/kubelet/server/server.go).
inline constexpr std::uint32_t kLastRedirectingKubelet = 19;
// From this release on the API server refuses arguments that are not flags; before, it ignores them
// (v1.18.20 and v1.19.0 cmd/kube-apiserver/app/server.go).
inline constexpr std::uint32_t kApiServerRefusesArgumentsFrom = 19;

// --- Looking up ---

// nullptr: the release does not know the gate. Not for kAllAlpha and kAllBeta.
const GateFact* FindGateFact(StreamingGate gate, KubernetesVersion version);
// Whether the gate is on, as these settings of a component of this release leave it.
bool IsGateOn(const std::vector<StreamingGateSetting>& settings, StreamingGate gate,
              KubernetesVersion version);
// `flag` in dashes, without those in front. nullptr: not a flag of the table.
const FlagFact* FindFlagFact(StreamingComponent component, std::string_view flag,
                             KubernetesVersion version);
// Whether the version is one of the table, or newer. `what` stands before it in the message.
Result<void> CheckVersion(std::string_view what, KubernetesVersion version);

// --- Judging ---

// A setting as it was written, for StreamFinding::setting.
std::string ShownSetting(std::string_view text);

// What a component of this release makes of a gate that is set to `enabled`; nullopt: it does what
// it says, without a warning.
std::optional<StreamFinding> JudgeGate(StreamingComponent component, KubernetesVersion version,
                                       StreamingGateSetting setting);
// Gates that are sound one by one, but not together.
std::vector<StreamFinding> JudgeGatesTogether(StreamingComponent component,
                                              KubernetesVersion version,
                                              const std::vector<StreamingGateSetting>& gates);
// A flag of the fact's component that was written `name`, with dashes in front.
std::optional<StreamFinding> JudgeFlag(const FlagFact& fact, std::string_view name);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_STREAMING_STREAMING_FACTS_H_
