// The list of runtime handlers: its rules, looking handlers up, and replacing the list, which
// adapts the records (KEP-4216). Records are stored under a handler's name, but under the empty
// name for the default handler.

#ifndef WAYBILL_STORE_RUNTIMES_RUNTIME_HANDLERS_H_
#define WAYBILL_STORE_RUNTIMES_RUNTIME_HANDLERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/options.h"
#include "store/disk/reader_pool.h"
#include "store/disk/store_txn.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

class Images;

// kInvalidArgument: a repeated or malformed name, two defaults, or a nameless handler that is not
// the default. kLimitExceeded: too many handlers, or a name or guest platform above limits.h. The
// error names the handler.
Result<void> CheckRuntimeHandlers(const std::vector<RuntimeHandler>& handlers);

// Whether the handler supports user namespaces, by the kubelet's rules. kNeverTold: there is no
// registry, and the runtime may be too old to say.
enum class UserNamespaceSupport : std::uint8_t { kYes, kNo, kNeverTold, kUnknownHandler, kDamaged };
UserNamespaceSupport LookUpUserNamespaces(const ReaderPool::Lease& snapshot, std::string_view name);

struct FoundHandler {
  std::string stored;
  std::optional<Platform> guest_platform;
  bool known = true;  // true for the empty name
};
// kDamaged: the registry can't be read.
Result<FoundHandler> FindHandler(const StoreTxn& txn, std::string_view name);

// kInvalidArgument, listing the known handlers.
Error UnknownHandler(const StoreTxn& txn, std::string_view name);

// Empty if the default handler is not known.
std::string NameOfDefault(const std::vector<RuntimeHandler>& handlers);

// `handlers` passed CheckRuntimeHandlers. kInvalidArgument: the list is empty, the registry is not,
// and allow_empty is false.
Result<RuntimesReport> ReplaceHandlers(Images& images, std::vector<RuntimeHandler> handlers,
                                       bool allow_empty);

// Whether replacing `old` by `handlers` changes the default handler or the guest platform for a
// pull in flight under `stored` (the handler's stored name). A handler that vanished changes
// nothing: its pull ends without credentials.
bool ChangesHandler(const std::vector<RuntimeHandler>& old,
                    const std::vector<RuntimeHandler>& handlers, std::string_view stored);

// Turns runtime classes off: SetRuntimes.
Result<RuntimesReport> CollapseHandlers(Images& images);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RUNTIMES_RUNTIME_HANDLERS_H_
