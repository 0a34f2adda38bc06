// Streaming requests (exec, attach, port-forward): who proxies them, who follows redirects and who
// translates WebSockets, for a kubelet and an API server of given versions and settings (KEP-1558,
// KEP-4006); and which of their settings are deprecated, ignored, removed or fatal.
//
// Pure functions over a table of facts (store/streaming/streaming_facts.h): no file is read, and
// any thread may call them at any time. The facts are those of the released sources. Where the
// KEP's text differs, the table says so.

#ifndef WAYBILL_STORE_STREAMING_STREAMING_PLAN_H_
#define WAYBILL_STORE_STREAMING_STREAMING_PLAN_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill {

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

// Of the program: "kubelet", "kube-apiserver".
std::string_view ProgramOf(StreamingComponent component);

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

struct StreamingPlanRequest {
  KubernetesVersion api_server;
  KubernetesVersion kubelet;
  StreamingSettings api_server_settings = {};
  StreamingSettings kubelet_settings = {};
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

#endif  // WAYBILL_STORE_STREAMING_STREAMING_PLAN_H_
