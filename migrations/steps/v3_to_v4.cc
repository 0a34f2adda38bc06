// Version 4 has kinds where version 3 has sentences: in each entry of the trust journal and in each
// held pod. The digests of all tables are one list in the state record.
//
// Up: kinds come from the sentences (store/engine/trust/trust_journal.cc,
// store/node/records/userns_tables.cc).
//
// Down: the sentences that version 3 looks for are written again. Entries that were taken back
// leave the journal, as in version 3. No decision changes.

#include <string>
#include <vector>

#include "migrations/steps/steps.h"
#include "store/base/try.h"
#include "store/node/records/userns_tables.h"

namespace waybill::internal {

namespace v3_to_v4 {
namespace {

// Writes each held pod in the schema's form. RunStep writes the header's records.
Result<void> WriteHeld(StepRun& run, const Schema& schema) {
  auto held = TRY(ReadHeld(run.txn));
  for (const UsernsHeld& one : held) {
    TRY(run.txn.PutAs(schema, Table::kUsernsHeld, HashKey(one.pod.pod_uid, run.txn.seed()),
                      EncodeUsernsHeld(one, schema.version(Table::kUsernsHeld))));
    ++run.values_written;
  }
  return {};
}

Result<void> Up(StepRun& run) { return WriteHeld(run, SchemaOf(4)); }
Result<void> Down(StepRun& run) { return WriteHeld(run, SchemaOf(3)); }
Result<std::vector<std::string>> Losses(const StoreTxn&) { return std::vector<std::string>(); }

}  // namespace
}  // namespace v3_to_v4

const Step kStepV3ToV4 = {3, 4, "kinds", v3_to_v4::Up, v3_to_v4::Down, v3_to_v4::Losses};

}  // namespace waybill::internal
