// waybill stats: how much the store holds, and how full it is.

#include "bindings/cli/command.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

class StatsCall final : public StoreCall {
 public:
  Result<ExitCode> Run(Output& out) override {
    const StoreCounts counts = TRY(WithStore(ObserveStore(store_), &NodeStore::GetStatistics));
    out.WriteFields(FieldsOf(counts,
                             {{"otherHandlerRecords", "under other handlers"},
                              {"handlers", "runtime handlers"},
                              {"quarantinedFiles", "quarantine entries"},
                              {"observedPreloaded", "preloaded records"},
                              {"preloaded", "ledger entries"},
                              {"aliases", "spellings"},
                              {"quarantinedPods", "held pods"},
                              {"maxReaders", "readers at most"}},
                             {{"storeUuid", "store UUID", counts.store_uuid},
                              {"schemaVersion", "schema version", counts.schema_version},
                              {"commit", "commit sequence", counts.commit_sequence},
                              {"degraded", "distrustful", counts.distrustful}}));
    return ExitCode::kYes;
  }
};

}  // namespace

Command StatsCommand() {
  return {.name = "stats",
          .task = kTaskLook,
          .summary = "say how much the store holds",
          .examples = R"(waybill stats)",
          .call = New<StatsCall>};
}

}  // namespace waybill::cli
