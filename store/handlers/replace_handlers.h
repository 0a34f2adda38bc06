// The registry of runtime handlers, replaced as a whole, and what that means for the records
// (KEP-4216).

#ifndef WAYBILL_STORE_HANDLERS_REPLACE_HANDLERS_H_
#define WAYBILL_STORE_HANDLERS_REPLACE_HANDLERS_H_

#include <string_view>
#include <vector>

#include "store/database/store_txn.h"
#include "waybill/result.h"
#include "waybill/runtime_handler.h"

namespace waybill::internal {

// `handlers` passed CheckRuntimeHandlers. kInvalidArgument: there are none, but the registry has
// some, and allow_empty is false.
Result<RuntimesReport> ReplaceHandlers(StoreTxn& txn, std::vector<RuntimeHandler> handlers,
                                       bool allow_empty);

// Whether a pull that began under `old` for the handler that records are kept under as `stored`
// would bring an image for another default handler or guest platform under `handlers`. One that
// vanished changes nothing: such a pull ends without credentials.
bool ChangesHandler(const std::vector<RuntimeHandler>& old,
                    const std::vector<RuntimeHandler>& handlers, std::string_view stored);

// NodeStore::CollapseRuntimeHandlers.
Result<CollapseReport> CollapseHandlers(StoreTxn& txn);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_HANDLERS_REPLACE_HANDLERS_H_
