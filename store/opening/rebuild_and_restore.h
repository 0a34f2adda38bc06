// A database that takes the place of another: a rebuild of one that failed its check, from its
// sound parts, and a restore, from a backup. What it keeps the product says (product.h). It is
// distrustful.
//
// What is replaced is kept unchanged as quarantine/<time>-<inode>/data.mdb. Their number is
// bounded: the oldest go beyond kMaxKeptAside, but a database that verifies stays, unless backup/
// has a backup of the same commit that verifies.
//
// Crash-safe at any point: until the rename the old file is in place, and whoever comes next starts
// over.

#ifndef WAYBILL_STORE_OPENING_REBUILD_AND_RESTORE_H_
#define WAYBILL_STORE_OPENING_REBUILD_AND_RESTORE_H_

#include "store/base/files.h"
#include "store/base/options.h"
#include "store/opening/inspect.h"
#include "store/opening/product.h"
#include "store/opening/stale.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// `file` is data.mdb in options.directory, and failed `inspection`. kDamaged: nothing in it says
// that it is that product's, or it says otherwise, and nothing was changed.
Result<void> Rebuild(const NodeStoreOptions& options, const Fd& file, const Inspection& inspection,
                     const Signs& signs, const Product& product, OpeningReport& report);

// Restore of maintenance.h.
Result<RestoreReport> RestoreBackup(const RestoreOptions& options, const Products& products);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OPENING_REBUILD_AND_RESTORE_H_
