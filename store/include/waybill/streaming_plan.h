// Streaming requests (exec, attach, port-forward): who proxies them, who follows redirects and who
// translates WebSockets, for a kubelet and an API server of given versions and settings (KEP-1558,
// KEP-4006); and which of their settings are deprecated, ignored, removed or fatal.
//
// Pure functions over a table of facts (store/streaming/streaming_facts.h): no file is read, and
// any thread may call them at any time. The facts are those of the released sources. Where the
// KEP's text differs, the table says so.

#ifndef WAYBILL_STREAMING_PLAN_H_
#define WAYBILL_STREAMING_PLAN_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"

namespace [[gnu::visibility("default")]] waybill {

// A release of Kubernetes, without its patch: no fact of the table depends on one.
struct KubernetesVersion {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;

  auto operator<=>(const KubernetesVersion&) const = default;
  // "1.36"
  std::string ToString() const;
};

// The oldest release that the table knows: the kubelet's flag came with it. Older ones are refused.
inline constexpr KubernetesVersion kOldestStreamingVersion = {1, 11};
// The newest release whose sources were read. A newer one is treated like it, and a note says so.
inline constexpr KubernetesVersion kNewestStreamingVersion = {1, 37};

// Bounds of what LintStreaming reads. Above them: kLimitExceeded.
inline constexpr std::size_t kMaxStreamingArguments = 10'000;
inline constexpr std::size_t kMaxStreamingSettingsBytes = std::size_t{1} << 20;
// Findings, and notes, that it returns. A note says if there are more.
inline constexpr std::size_t kMaxStreamingFindings = 256;

// Reads what `kubelet --version`, `kubectl version` and packages print: "v1.22.3", "1.22",
// "1.22+", "Kubernetes v1.36.0-rc.1+k3s1". kInvalidArgument for anything else, and for a release
// before kOldestStreamingVersion or a major version other than 1.
Result<KubernetesVersion> ParseKubernetesVersion(std::string_view text);

// Which component's settings are meant.
enum class StreamingComponent : std::uint8_t { kKubelet, kApiServer };
// "kubelet", "kube-apiserver".
std::string_view StreamingComponentName(StreamingComponent component);

// The feature gates that decide how streaming requests go.
enum class StreamingGate : std::uint8_t {
  kStreamingProxyRedirects,                // API server: follow a kubelet's redirect
  kValidateProxyRedirects,                 // API server: follow it only to the kubelet's own host
  kTranslateStreamCloseWebsocketRequests,  // API server: translate WebSockets of exec and attach
  kPortForwardWebsockets,                  // API server: translate those of port-forward
  kExtendWebSocketsToKubelet,  // both: the kubelet translates them, and declares it in its Node
  kNodeDeclaredFeatures,       // both: kExtendWebSocketsToKubelet depends on it
  kAllAlpha,                   // both: every alpha gate that is not set by itself
  kAllBeta,                    // both: every beta gate, likewise; since 1.17
};
// "StreamingProxyRedirects"
std::string_view StreamingGateName(StreamingGate gate);
// The spelling must match exactly. nullopt: not one of the gates.
std::optional<StreamingGate> FindStreamingGate(std::string_view name);

// The setting of a feature gate in a component.
struct StreamingGateSetting {
  StreamingGate gate = StreamingGate::kStreamingProxyRedirects;
  bool enabled = false;

  bool operator==(const StreamingGateSetting&) const = default;
};

// Which settings of a component the plan depends on.
struct StreamingSettings {
  // The kubelet's --redirect-container-streaming; nullopt: not given. Of an API server: ignored.
  std::optional<bool> redirect_container_streaming = std::nullopt;
  std::vector<StreamingGateSetting> gates = {};  // if a gate occurs twice, the last counts

  bool operator==(const StreamingSettings&) const = default;
};

// What a release makes of a setting.
enum class StreamingSeverity : std::uint8_t {
  kIgnored,     // accepted, and never had an effect in this component
  kDeprecated,  // still does what it says, but the component warns that it will go
  kRemoved,     // still accepted, but does nothing any more
  kFatal,       // the component does not start
};
// "ignored", "deprecated", "removed", "fatal".
std::string_view StreamingSeverityName(StreamingSeverity severity);

// What a release makes of one setting. The texts are on one line, without control characters.
struct StreamFinding {
  StreamingComponent component = StreamingComponent::kKubelet;
  StreamingSeverity severity = StreamingSeverity::kIgnored;
  // "--redirect-container-streaming", "StreamingProxyRedirects": for programs that compare.
  std::string subject;
  // As it was written, quoted if it holds anything unusual, cut if long.
  std::string setting;
  // What this release of the component prints about it; empty: nothing, or no source shows it.
  std::string words;
  std::string advice;
  std::string source;  // where the fact is from: a release and its file, or a pull request
};

// What the kubelet does with a streaming request.
enum class StreamingProxy : std::uint8_t {
  kKubelet,   // the kubelet connects to the runtime's streaming server, and proxies
  kRedirect,  // the kubelet answers 302 with the address of the runtime's streaming server
};
// Who follows the kubelet's redirect.
enum class RedirectFollower : std::uint8_t {
  kNotNeeded,  // there is no redirect
  kApiServer,
  kNobody,  // the client gets a redirect or an error instead of a stream
};
// Which redirects are followed.
enum class RedirectCheck : std::uint8_t {
  kNotNeeded,
  kSameHost,  // the redirect must name the kubelet's own host, or it is an error
  kNone,      // any host is followed: whoever controls a kubelet sends the API server anywhere
};
// Who translates WebSockets to SPDY.
enum class WebSocketTranslator : std::uint8_t {
  // The WebSocket goes on to the runtime's streaming server as it is; kubectl falls back to SPDY.
  kNobody,
  kApiServer,  // to SPDY, before the kubelet
  kKubelet,    // to SPDY, before the runtime's streaming server
};
// How a streaming request ends.
enum class StreamingOutcome : std::uint8_t {
  kWorks,
  kWorksOnSameHost,  // if the runtime's streaming server has the kubelet's host name or address
  kFails,
  kDoesNotStart,  // a setting is fatal to the kubelet or the API server
};
// Whether the two releases may run together.
enum class VersionSkew : std::uint8_t {
  kSupported,
  kKubeletTooOld,  // by more than 2 releases; by more than 3 for a kubelet from 1.25 on
  kKubeletNewer,   // than the API server: never supported
};
// "kubelet", "redirect"; "notNeeded", "apiServer", "nobody"; "notNeeded", "sameHost", "none";
// "nobody", "apiServer", "kubelet"; "works", "worksOnSameHost", "fails", "doesNotStart";
// "supported", "kubeletTooOld", "kubeletNewer".
std::string_view StreamingProxyName(StreamingProxy proxy);
std::string_view RedirectFollowerName(RedirectFollower follower);
std::string_view RedirectCheckName(RedirectCheck check);
std::string_view WebSocketTranslatorName(WebSocketTranslator translator);
std::string_view StreamingOutcomeName(StreamingOutcome outcome);
std::string_view VersionSkewName(VersionSkew skew);

struct StreamingPlanRequest {
  KubernetesVersion api_server;
  KubernetesVersion kubelet;
  StreamingSettings api_server_settings = {};
  StreamingSettings kubelet_settings = {};
};

// How a streaming request goes. If `outcome` is kDoesNotStart, the other members say what holds
// once the fatal settings are taken out.
struct StreamPlan {
  StreamingProxy proxy = StreamingProxy::kKubelet;
  RedirectFollower follower = RedirectFollower::kNotNeeded;
  RedirectCheck check = RedirectCheck::kNotNeeded;
  WebSocketTranslator exec_websockets = WebSocketTranslator::kNobody;  // of exec and attach
  WebSocketTranslator port_forward_websockets = WebSocketTranslator::kNobody;
  StreamingOutcome outcome = StreamingOutcome::kWorks;
  VersionSkew skew = VersionSkew::kSupported;
  // About the flag and the gates in the request, the kubelet's first. Each setting is written as on
  // the component's command line.
  std::vector<StreamFinding> findings;
  std::vector<std::string> notes;  // what a reader must know besides
};

// kInvalidArgument: a version before kOldestStreamingVersion, or with another major version than 1.
// kLimitExceeded: more than kMaxStreamingArguments gates. Unsupported version skew is not an error:
// the answer covers it, too.
Result<StreamPlan> StreamingPlan(const StreamingPlanRequest& request);

struct StreamingLintRequest {
  StreamingComponent component = StreamingComponent::kKubelet;
  KubernetesVersion version;
  // What stands behind the program's name on its command line.
  std::vector<std::string> arguments = {};
};

struct StreamingLint {
  // Flags in their order, then feature gates. A repeated setting is one finding, with its
  // last spelling, unless it is wrong in several ways.
  std::vector<StreamFinding> findings;
  // For StreamingPlan: the last of repeated flags; the gates, those that win last. What can't be
  // parsed is left out.
  StreamingSettings settings;
  std::vector<std::string> notes;  // what could not be judged, and why
};

// Reads a command line as the component does (pflag): "--flag", "--flag=value", "--flag value";
// underscores stand for dashes; "--" ends the flags; a value that does not parse is fatal. It does
// not know which other flags take a value, so it reads what follows such a flag as a flag if it
// looks like one.
//
// kInvalidArgument: the version, as for StreamingPlan. kLimitExceeded: more than
// kMaxStreamingArguments arguments, or more than kMaxStreamingSettingsBytes of them.
Result<StreamingLint> LintStreaming(const StreamingLintRequest& request);

}  // namespace waybill

#endif  // WAYBILL_STREAMING_PLAN_H_
