// Runs the steps between schema versions on a store that is open and that nobody reads yet.

#ifndef WAYBILL_MIGRATIONS_STEPS_MIGRATE_H_
#define WAYBILL_MIGRATIONS_STEPS_MIGRATE_H_

#include <cstdint>

#include "store/recovery/open_store.h"
#include "waybill/maintenance.h"
#include "waybill/result.h"

namespace waybill::internal {

struct MigrateRequest {
  std::uint32_t to = kNewestSchema;
  bool dry_run = false;
  bool accept_loss = false;
  Clock clock = SystemClock;
  Progress progress = {};
};

// kInvalidArgument: there is no such schema version.
Result<void> CheckVersion(std::uint32_t version);

// Errors, and what they leave: Migrate of maintenance.h; with kDamaged also what the steps left
// failed its check. On success `store` is what is on disk.
Result<MigrationReport> MigrateStore(OwnedStore& store, const MigrateRequest& request);

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_STEPS_MIGRATE_H_
