// Replaces the whole registry of runtime handlers, and adapts the records (KEP-4216).

#ifndef WAYBILL_STORE_HANDLERS_REPLACE_HANDLERS_H_
#define WAYBILL_STORE_HANDLERS_REPLACE_HANDLERS_H_

#include <string_view>
#include <vector>

#include "store/database/store_txn.h"
#include "waybill/result.h"
#include "waybill/runtime_handler.h"

namespace waybill::internal {

// `handlers` passed CheckRuntimeHandlers. kInvalidArgument: the list is empty, the registry is not,
// and allow_empty is false.
Result<RuntimesReport> ReplaceHandlers(StoreTxn& txn, std::vector<RuntimeHandler> handlers,
                                       bool allow_empty);

// Whether replacing `old` by `handlers` changes the default handler or the guest platform for a
// pull in flight under `stored` (the handler's stored name). A handler that vanished changes
// nothing: its pull ends without credentials.
bool ChangesHandler(const std::vector<RuntimeHandler>& old,
                    const std::vector<RuntimeHandler>& handlers, std::string_view stored);

// NodeStore::CollapseRuntimeHandlers.
Result<CollapseReport> CollapseHandlers(StoreTxn& txn);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_HANDLERS_REPLACE_HANDLERS_H_
