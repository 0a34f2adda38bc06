// What each release makes of the settings that decide how streaming requests go: one row a fact,
// with the place in the released sources that shows it. Where they differ from KEP-1558's text, the
// sources count:
//
//  1. The KEP removes --redirect-container-streaming in 1.24. The kubelet has no such flag from
//     v1.22.0 on; v1.21.14 is the last release with it.
//  2. The KEP has the kubelet log an error in 1.20 if the flag is set. It prints the line that
//     pflag
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

#ifndef WAYBILL_STORE_STREAMS_STREAMING_FACTS_H_
#define WAYBILL_STORE_STREAMS_STREAMING_FACTS_H_

#include <cstdint>
#include <string_view>

// As everywhere in this room, a release is the minor version of 1.x.
namespace waybill::streaming {

enum class State : std::uint8_t {
  kWorks,          // a flag, or a group of gates
  kAlpha,          // a gate that is off by default; likewise on in the next two
  kBeta,           //
  kGa,             // any other value is fatal
  kDeprecated,     // warned about; a gate is on by default
  kDeprecatedOff,  // the same, but off
  kRemoved,        // parsed, warned about, and without effect
  kGone,           // the component does not start
};
// Which component has the flag, or reads the gate: every component accepts all gates.
enum class Reader : std::uint8_t { kKubelet, kApiServer, kBoth, kNobody };

// Holds from that release until the setting's next row.
struct Fact {
  std::string_view name;
  std::uint32_t from;
  State state;
  Reader reader;
  std::string_view source;      // of a gate: behind kGatesFile
  std::string_view words = {};  // after pflag's "Flag --… has been deprecated, "
  std::string_view advice = {};
};

inline constexpr std::string_view kGatesFile = "pkg/features/kube_features.go of ";

inline constexpr std::string_view kRedirectFlag = "redirect-container-streaming";
inline constexpr std::string_view kIdleTimeoutFlag = "streaming-connection-idle-timeout";
inline constexpr std::string_view kBytesPerSecFlag = "max-connection-bytes-per-sec";
inline constexpr std::string_view kGatesFlag = "feature-gates";

inline constexpr std::string_view kFollowGate = "StreamingProxyRedirects";
inline constexpr std::string_view kValidateGate = "ValidateProxyRedirects";
// Of the API server: it translates WebSockets of exec and attach, and of port-forward.
inline constexpr std::string_view kExecGate = "TranslateStreamCloseWebsocketRequests";
inline constexpr std::string_view kForwardGate = "PortForwardWebsockets";
// The kubelet translates them, and declares it in its Node, for which it needs the other.
inline constexpr std::string_view kExtendGate = "ExtendWebSocketsToKubelet";
inline constexpr std::string_view kDeclaredGate = "NodeDeclaredFeatures";
// Every alpha or beta gate that is not set by itself.
inline constexpr std::string_view kAllAlpha = "AllAlpha";
inline constexpr std::string_view kAllBeta = "AllBeta";

inline constexpr std::string_view kConfigFileWords =
    "This parameter should be set via the config file specified by the Kubelet's --config flag. "
    "See https://kubernetes.io/docs/tasks/administer-cluster/kubelet-config-file/ for more "
    "information.";

inline constexpr Fact kFacts[] = {
    {kFollowGate, 6, State::kBeta, Reader::kApiServer, "kubernetes v1.11.0"},
    {kFollowGate, 18, State::kDeprecated, Reader::kApiServer, "kubernetes v1.18.0 (#88290)"},
    {kFollowGate, 22, State::kDeprecatedOff, Reader::kApiServer, "kubernetes v1.22.0 (#101647)"},
    {kFollowGate, 24, State::kGone, Reader::kApiServer, "apiserver v0.24.0 (#106830)"},

    {kValidateGate, 12, State::kAlpha, Reader::kNobody,
     "apiserver v0.18.0: alpha v1.12 (kubernetes/website#19192)"},
    {kValidateGate, 13, State::kAlpha, Reader::kApiServer,
     "apiserver v0.18.0; kubernetes v1.13.0 pkg/registry/core/pod/rest/subresources.go"},
    {kValidateGate, 14, State::kBeta, Reader::kApiServer, "kubernetes v1.14.0 (#72552)"},
    {kValidateGate, 22, State::kDeprecated, Reader::kApiServer, "kubernetes v1.22.0"},
    {kValidateGate, 24, State::kGone, Reader::kApiServer, "apiserver v0.24.0 (#106830)"},

    {kExecGate, 29, State::kAlpha, Reader::kApiServer, "kubernetes v1.29.0"},
    {kExecGate, 30, State::kBeta, Reader::kApiServer, "kubernetes v1.30.0 (#123281)"},
    {kExecGate, 38, State::kGa, Reader::kApiServer, "kubernetes v1.38.0-beta.0"},
    {kForwardGate, 30, State::kAlpha, Reader::kApiServer, "kubernetes v1.30.0"},
    {kForwardGate, 31, State::kBeta, Reader::kApiServer, "kubernetes v1.31.0 (#125528)"},
    {kForwardGate, 38, State::kGa, Reader::kApiServer, "kubernetes v1.38.0-beta.0"},

    {kExtendGate, 36, State::kBeta, Reader::kBoth, "kubernetes v1.36.0 (#136256)"},
    {kExtendGate, 38, State::kGa, Reader::kBoth, "kubernetes v1.38.0-beta.0"},
    {kDeclaredGate, 35, State::kAlpha, Reader::kBoth, "kubernetes v1.35.0"},
    {kDeclaredGate, 36, State::kBeta, Reader::kBoth, "kubernetes v1.36.0"},
    {kDeclaredGate, 37, State::kGa, Reader::kBoth, "kubernetes v1.37.2"},

    // component-base v0.17.0 featuregate/feature_gate.go.
    {kAllAlpha, 11, State::kWorks, Reader::kBoth, "component-base v0.17.0"},
    {kAllBeta, 17, State::kWorks, Reader::kBoth, "component-base v0.17.0"},

    {kRedirectFlag, 11, State::kWorks, Reader::kKubelet,
     "kubernetes v1.11.0 pkg/kubelet/config/flags.go; kubernetes/kubernetes#64006"},
    {kRedirectFlag, 18, State::kDeprecated, Reader::kKubelet,
     "kubernetes v1.18.0 pkg/kubelet/config/flags.go; kubernetes/kubernetes#88290",
     "Container streaming redirection will be removed from the kubelet in v1.20, and this flag "
     "will be removed in v1.22. For more details, see "
     "http://git.k8s.io/enhancements/keps/sig-node/20191205-container-streaming-requests.md",
     "take it out: the kubelet then proxies, and from 1.20 on it always does"},
    {kRedirectFlag, 20, State::kRemoved, Reader::kKubelet,
     "kubernetes v1.20.0 pkg/kubelet/config/flags.go; kubernetes/kubernetes#95935",
     "Container streaming redirection has been removed from the kubelet as of v1.20, and this flag "
     "will be removed in v1.22. For more details, see "
     "http://git.k8s.io/enhancements/keps/sig-node/20191205-container-streaming-requests.md",
     "take it out: the kubelet proxies whatever it says, and 1.22 does not start with it"},
    {kRedirectFlag, 22, State::kGone, Reader::kKubelet,
     "kubernetes v1.22.0 pkg/kubelet/config/flags.go: no such flag", "",
     "take it out: the kubelet always proxies"},

    // Read by the streaming server of dockershim alone, which 1.24 no longer has (v1.23.0 and
    // v1.24.0 pkg/kubelet/kubelet.go: getStreamingConfig).
    {kIdleTimeoutFlag, 11, State::kDeprecated, Reader::kKubelet,
     "kubernetes v1.11.0 cmd/kubelet/app/options/options.go", kConfigFileWords,
     "with another runtime than dockershim take it out: the runtime's own timeout counts; "
     "otherwise set streamingConnectionIdleTimeout in the configuration file"},
    {kIdleTimeoutFlag, 24, State::kRemoved, Reader::kKubelet,
     "kubernetes v1.24.0 pkg/kubelet/kubelet.go: stored, and read by nothing", kConfigFileWords,
     "take it out: only dockershim read it; set the timeout in the runtime"},

    {kBytesPerSecFlag, 11, State::kWorks, Reader::kApiServer,
     "kubernetes v1.11.0 cmd/kube-apiserver/app/options/options.go"},
};

// The kubelet redirects up to this release, if the flag says so (v1.19.0 and v1.20.0
// pkg/kubelet/server/server.go).
inline constexpr std::uint32_t kLastRedirectingKubelet = 19;
// The API server takes "kube:Gate=true" (apiserver v0.31.0 pkg/util/version/registry.go).
inline constexpr std::uint32_t kGatePrefixFrom = 31;
// From this release on a gate that is on needs those that it depends on, or nothing starts
// (component-base v0.36.3 featuregate/feature_gate.go; pkg/features/kube_features.go of v1.36.0:
// ExtendWebSocketsToKubelet: {NodeDeclaredFeatures}).
inline constexpr std::uint32_t kGateDependenciesFrom = 36;
// The warning about deprecated and GA gates is worded anew (component-base v0.35.0 and v0.36.3
// featuregate/feature_gate.go).
inline constexpr std::uint32_t kNewGateWarningFrom = 36;

// The row that holds in that release; nullptr: the setting came later.
constexpr const Fact* Find(std::string_view name, std::uint32_t release) {
  const Fact* found = nullptr;
  for (const Fact& fact : kFacts) {
    if (fact.name == name && fact.from <= release) found = &fact;
  }
  return found;
}
// The rows of one setting rise.
static_assert([] {
  for (const Fact& fact : kFacts) {
    if (Find(fact.name, fact.from) != &fact || fact.source.empty()) return false;
  }
  return true;
}());

}  // namespace waybill::streaming

#endif  // WAYBILL_STORE_STREAMS_STREAMING_FACTS_H_
