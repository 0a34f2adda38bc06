// The rules for every list of runtime handlers.

#ifndef WAYBILL_STORE_HANDLERS_RUNTIME_HANDLERS_H_
#define WAYBILL_STORE_HANDLERS_RUNTIME_HANDLERS_H_

#include <vector>

#include "waybill/runtime_handler.h"

namespace waybill::internal {

// kInvalidArgument: a repeated or malformed name, two defaults, or a nameless handler that is not
// the default. kLimitExceeded: too many handlers, or a name or guest platform above limits.h. The
// error names the handler.
Result<void> CheckRuntimeHandlers(const std::vector<RuntimeHandler>& handlers);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_HANDLERS_RUNTIME_HANDLERS_H_
