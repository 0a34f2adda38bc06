#include <fcntl.h>

#include "store/base/files.h"
#include "store/base/try.h"
#include "store/engine/recovery/inspect.h"
#include "store/engine/recovery/open_store.h"
#include "store/engine/recovery/salvage.h"
#include "store/maintenance/for_the_command.h"
#include "store/node/records/evidence_tables.h"
#include "store/node/records/open_pulls_table.h"
#include "store/node/records/pulled_record.h"
#include "store/node/records/revocations_table.h"
#include "store/node/records/typed_tables.h"

namespace waybill::internal {

Result<BackupContent> ReadBackup(const std::filesystem::path& path) {
  const auto file = TRY(OpenFile(path, O_RDONLY));
  const auto inspection = TRY(InspectFile(file, FileIs::kCompactCopy));
  if (inspection.newer_schema) return NewerSchema(path);
  if (!inspection.sound || !inspection.state) {
    return Error{
        ErrorCode::kDamaged,
        path.string() + " fails the check of a backup" + inspection.Why() + "; nothing was changed",
        "name a store's directory, or a file in its backup/"};
  }
  const auto values = TRY(Salvage(file, inspection.newer_meta));
  BackupContent content;
  content.records = values.All(Table::kPulled, DecodePulledRecordValue);
  content.ledger = values.All(Table::kLedger, DecodeLedgerEntry);
  content.pulls = values.All(Table::kIntents, DecodeOpenPull);
  std::erase_if(content.pulls, [](const OpenPull& pull) { return pull.nothing_at != 0; });
  content.quarantine = values.All(Table::kQuarantine, DecodeQuarantineValue);
  content.revocations = values.All(Table::kRevocations, DecodeRevocation);
  content.distrustful = inspection.state->distrustful;
  content.ages = inspection.state->ages;
  content.clocks = inspection.state->clocks;
  return content;
}

}  // namespace waybill::internal
