// Sets a failed database aside and replaces it with a new one that has its sound parts.

#ifndef WAYBILL_STORE_ENGINE_RECOVERY_REBUILD_H_
#define WAYBILL_STORE_ENGINE_RECOVERY_REBUILD_H_

#include "store/base/files.h"
#include "store/base/options.h"
#include "store/engine/recovery/inspect.h"
#include "store/engine/recovery/stale.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

class Product;

// `file` is data.mdb in options.directory, and failed `inspection`. The failed file stays unchanged
// under quarantine/, at report.set_aside_path. The new store is distrustful; what it keeps the
// product says. kDamaged: nothing in it says that it is that product's, or it says otherwise, and
// nothing was changed.
// Crash-safe at any point: until the rename the old file is in place, and the next opening starts
// over.
Result<void> Rebuild(const NodeStoreOptions& options, const Fd& file, const Inspection& inspection,
                     const Signs& signs, const Product& product, OpeningReport& report);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_ENGINE_RECOVERY_REBUILD_H_
