// Runs the steps between schema versions on a store that is open but has no readers yet.

#ifndef WAYBILL_MIGRATIONS_STEPS_MIGRATE_H_
#define WAYBILL_MIGRATIONS_STEPS_MIGRATE_H_

#include <cstdint>

#include "store/base/options.h"
#include "store/opening/open_store.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// kInvalidArgument: the schema version does not exist.
Result<void> CheckVersion(std::uint32_t version);

// Errors, and the state that they leave: Migrate of maintenance.h; kDamaged also if the migrated
// store fails its check. The directory is that of `store`. On success `store` matches the disk.
Result<MigrationReport> MigrateStore(OwnedStore& store, const MigrateOptions& options);

// Opens a store as its owner, in the newest schema version, as `product`'s. Errors:
// NodeStore::Open.
Result<OwnedStore> OpenNewest(const NodeStoreOptions& options, const Product& product,
                              OpeningReport& report);

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_STEPS_MIGRATE_H_
