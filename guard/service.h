// The guard as a service: one thread that waits (epoll) for the kubelet's changes, for lists of the
// runtime and for signals. A second thread waits for a runtime that is slow to answer, so that
// nothing else has to wait.

#ifndef WAYBILL_GUARD_SERVICE_H_
#define WAYBILL_GUARD_SERVICE_H_

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "guard/guard.h"
#include "runtime/cri/runtime_client.h"
#include "store/for_the_guard.h"
#include "waybill/result.h"

namespace waybill::guard {

// What a look at the node shows.
struct Examined {
  std::vector<CheckResult> checks = {};
  NodeCredentials credentials = {};
};

struct ServiceOptions {
  GuardOptions guard;
  // nullopt: no runtime is asked.
  std::optional<cri::ClientOptions> runtime;
  std::chrono::seconds wait_runtime{30};
  // A shell command for each hole, with WAYBILL_HOLE and WAYBILL_IMAGE. Empty: none.
  std::string on_hole;
  // For node_exporter's textfile collector. Empty: none.
  std::filesystem::path metrics_file;
  // Looks at the node, at the start and then now and then, on a thread of its own; `cancelled`:
  // whether nobody waits for it any more. Missing: nobody looks.
  std::function<Examined(const std::function<bool()>& cancelled)> examine;
  // Only the phase before the kubelet starts.
  bool once = false;
  // Called when the kubelet may start.
  std::function<void(const Guard&)> ready;
  // Likewise, if the guard has to stand aside: why.
  std::function<void(const std::string& why)> aside;
  // What to go on with after SIGHUP; with an error, as before. Empty: with these.
  std::function<Result<ServiceOptions>()> again;
};

// While others decide what a kubelet finds, or nothing can be written, the guard stands aside
// (aside.h); then it starts.
//
// Until SIGTERM or SIGINT; SIGHUP ends the guard in order and starts it anew, with what `again`
// says then. Blocks these signals and SIGCHLD in the calling thread. Returns what the guard counted
// (the last one). Errors: those of Guard::Start, and what ended a guard that ran: start it again.
Result<GuardStatus> RunService(const ServiceOptions& options);

// What the guard on this kubelet directory last wrote, as JSON, and whether it runs. kNotFound:
// there never was one.
struct GuardSeen {
  // Why the guard protects nothing, as the folders are now. Empty: nothing shows that.
  std::string not_protected = {};
  bool runs = false;
  std::string json;
};
Result<GuardSeen> SeeGuard(const std::filesystem::path& kubelet_directory);

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_SERVICE_H_
