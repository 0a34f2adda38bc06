// The registry of runtime handlers, replaced as a whole, and what that means for the records
// (KEP-4216).

#ifndef WAYBILL_STORE_IMAGE_REPLACE_HANDLERS_H_
#define WAYBILL_STORE_IMAGE_REPLACE_HANDLERS_H_

#include <vector>

#include "store/record/store_txn.h"
#include "waybill/result.h"
#include "waybill/runtime_handler.h"

namespace waybill::internal {

// `handlers` passed CheckRuntimeHandlers.
Result<RuntimesReport> ReplaceHandlers(StoreTxn& txn, std::vector<RuntimeHandler> handlers);

// NodeStore::CollapseRuntimeHandlers.
Result<CollapseReport> CollapseHandlers(StoreTxn& txn);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGE_REPLACE_HANDLERS_H_
