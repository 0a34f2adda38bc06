// The runtime handlers of a node: what a RuntimeClass selects (KEP-4216). An image on the node is
// (image ref, runtime handler); the empty name selects the default handler, and is how everything
// behaved before there were handlers.

#ifndef WAYBILL_RUNTIME_HANDLER_H_
#define WAYBILL_RUNTIME_HANDLER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/platform.h"
#include "waybill/result.h"

namespace [[gnu::visibility("default")]] waybill {

struct RuntimeHandler {
  // 1 to kMaxRuntimeHandlerBytes bytes above 0x20, without '/'. Empty only for the default handler
  // where its name is not known.
  std::string name;
  bool is_default = false;       // what the empty name selects; at most one of a node
  bool user_namespaces = false;  // CRI, RuntimeHandlerFeatures.user_namespaces
  // What its images must be built for where that is not the host: a utility VM's.
  std::optional<Platform> guest_platform = std::nullopt;

  friend bool operator==(const RuntimeHandler&, const RuntimeHandler&) = default;
};

// `crictl info` (CRI's StatusResponse): the handlers under "runtimeHandlers", features in either
// spelling; the default's name and guest platforms out of containerd's own configuration under
// "config" where that is there. CRI's nameless handler is merged with the named default.
// kInvalidArgument: not JSON, no "runtimeHandlers", a field of another type, a name twice or
// malformed. kLimitExceeded: above kMaxDocumentBytes, kMaxJsonDepth, kMaxRuntimeHandlers.
Result<std::vector<RuntimeHandler>> DecodeRuntimeStatus(std::string_view json);

// What loading a list of handlers changed.
struct RuntimesReport {
  std::vector<std::string> added;
  std::vector<std::string> vanished;  // their records stay until they are pruned
  // Handlers whose guest platform, or, of the default, whose name is another than when images were
  // pulled: those must be verified again.
  std::vector<std::string> changed;
  std::uint64_t records_to_verify = 0;  // that lost their credentials thereby
  // Runtime classes were off before: what an earlier time left under handlers was cleaned up.
  bool turned_on = false;
  std::uint64_t records_collapsed = 0;
  std::uint64_t intents_collapsed = 0;
};

// What turning runtime classes off changed.
struct CollapseReport {
  std::uint64_t records = 0;  // taken from other handlers than the default
  std::uint64_t intents = 0;
  std::uint64_t records_to_verify = 0;  // under the default handler, without credentials now
  std::vector<std::string> handlers;    // whose they were
};

}  // namespace waybill

#endif  // WAYBILL_RUNTIME_HANDLER_H_
