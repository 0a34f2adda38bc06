// The runtime handlers of a node, which RuntimeClasses select (KEP-4216). Each handler has its own
// copy of an image: (image ref, runtime handler). The empty name selects the default handler.

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

// What a RuntimeClass selects (KEP-4216). The empty name selects the default one.
struct RuntimeHandler {
  // 1 to kMaxRuntimeHandlerBytes bytes above 0x20, without '/'. Only a default handler whose name
  // is unknown has an empty name.
  std::string name = {};
  bool is_default = false;       // the empty name selects it; at most one on a node
  bool user_namespaces = false;  // CRI, RuntimeHandlerFeatures.user_namespaces
  // The platform of a utility VM, which its images must be built for. nullopt: the host's.
  std::optional<Platform> guest_platform = std::nullopt;

  friend bool operator==(const RuntimeHandler&, const RuntimeHandler&) = default;
};

// Reads `crictl info` (CRI's StatusResponse). The handlers and their features (in either spelling)
// come from "runtimeHandlers"; the default's name and the guest platforms from containerd's
// configuration under "config", if present. CRI's nameless handler is merged with the named
// default. kInvalidArgument: not JSON, no "runtimeHandlers", a field of the wrong type, or a name
// that is malformed or occurs twice. kLimitExceeded: above kMaxDocumentBytes, kMaxJsonDepth or
// kMaxRuntimeHandlers.
Result<std::vector<RuntimeHandler>> DecodeRuntimeStatus(std::string_view json);

// What loading a list of handlers changed.
struct RuntimesReport {
  std::vector<std::string> added = {};
  std::vector<std::string> vanished = {};  // their records stay until they are pruned
  // Handlers whose guest platform changed, and the default if its name changed: their images must
  // be verified again.
  std::vector<std::string> changed = {};
  std::uint64_t records_to_verify = 0;  // lost their credentials through that
  // Runtime classes were off before. Leftovers from an earlier time with handlers were cleaned up.
  bool turned_on = false;
  std::uint64_t records_collapsed = 0;
  std::uint64_t intents_collapsed = 0;
};

// What turning runtime classes off changed.
struct CollapseReport {
  std::uint64_t records = 0;  // taken from other handlers than the default
  std::uint64_t intents = 0;
  std::uint64_t records_to_verify = 0;     // under the default handler, without credentials now
  std::vector<std::string> handlers = {};  // the handlers that had them
};

}  // namespace waybill

#endif  // WAYBILL_RUNTIME_HANDLER_H_
