// Streaming requests (exec, attach, port-forward): who proxies them, who follows redirects and who
// translates WebSockets, for a kubelet and an API server of given releases and flags (KEP-1558,
// KEP-4006); and what a release makes of such a flag.
//
// Pure functions over one table of facts (store/streams/streaming_facts.h), which are those of
// the released sources: no file is read, and any thread may call them at any time.

#ifndef WAYBILL_STORE_STREAMS_STREAMING_PLAN_H_
#define WAYBILL_STORE_STREAMS_STREAMING_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill {

// A release of Kubernetes is its minor version, of 1.x: no fact of the table depends on a patch.
//
// The oldest release that the table knows: the kubelet's flag came with it. Older ones are refused.
inline constexpr std::uint32_t kOldestStreamingRelease = 11;
// The newest release whose sources were read. A newer one is treated like it, and a note says so.
inline constexpr std::uint32_t kNewestStreamingRelease = 37;

// Bounds of a command line. Above them: kLimitExceeded.
inline constexpr std::size_t kMaxStreamingArguments = 10'000;
inline constexpr std::size_t kMaxStreamingSettingsBytes = std::size_t{1} << 20;

// Reads what `kubelet --version`, `kubectl version` and packages print: "v1.22.3", "1.22",
// "1.22+", "Kubernetes v1.36.0-rc.1+k3s1". kInvalidArgument for anything else, and for another
// major version than 1.
Result<std::uint32_t> ParseKubernetesRelease(std::string_view text);
// "1.36"
std::string ReleaseName(std::uint32_t release);

// Of the program: "kubelet", "kube-apiserver".
std::string_view ProgramOf(StreamingComponent component);

struct StreamingSetup {
  StreamingComponent component = StreamingComponent::kKubelet;
  std::uint32_t release = 0;
  // What stands behind the program's name on its command line.
  std::vector<std::string> arguments = {};
};

struct StreamingLint {
  // Flags in their order, then feature gates. A repeated setting is one finding, with its last
  // spelling, unless it is wrong in several ways.
  std::vector<StreamFinding> findings;
  std::vector<std::string> notes;  // what could not be judged, and why
  // --redirect-container-streaming, the last one that parses.
  std::optional<bool> redirects;
  // Of each gate of the table the last setting that parses.
  std::map<std::string_view, bool> gates;
};

// What the release makes of each flag and gate of the table; other arguments are passed over. It
// does not know which other flags take a value, and so reads whatever looks like a flag as one,
// behind "--" too: no kubelet starts with what stands there. kInvalidArgument: a release
// before kOldestStreamingRelease.
Result<StreamingLint> LintStreaming(const StreamingSetup& setup);

// Unsupported version skew is not an error: the answer covers it, too.
Result<StreamPlan> StreamingPlan(const StreamingSetup& api_server, const StreamingSetup& kubelet);

}  // namespace waybill

#endif  // WAYBILL_STORE_STREAMS_STREAMING_PLAN_H_
