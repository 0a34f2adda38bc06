// waybill stats: how much the store holds, and how full it is.

#include "bindings/cli/command.h"
#include "bindings/cli/store_access.h"

namespace waybill::cli {
namespace {

class StatsCommand final : public Command {
 public:
  std::string name() const override { return "stats"; }
  std::string summary() const override { return "say how much the store holds"; }

  void Declare(Flags& flags) override { store_.Declare(flags); }

  Result<ExitCode> Run(Output& out) override {
    if (auto parsed = store_.Parse(); !parsed) return parsed.error();
    auto statistics = WithStore(ObserveStore(store_), &NodeStore::GetStatistics);
    if (!statistics) return statistics.error();
    const Statistics& s = *statistics;
    out.WriteFields(
        {{"storeUuid", "store UUID", s.store_uuid},
         {"schemaVersion", "schema version", s.schema_version},
         {"commitSequence", "commit sequence", s.commit_sequence},
         {"records", "records", s.records},
         {"nondefaultHandlerRecords", "under other handlers", s.nondefault_handler_records},
         {"runtimeHandlers", "runtime handlers", s.runtime_handlers},
         {"intents", "intents", s.intents},
         {"ledgerEntries", "ledger entries", s.ledger_entries},
         {"spellings", "spellings", s.spellings},
         {"quarantineEntries", "quarantine entries", s.quarantine_entries},
         {"preloadedRecords", "preloaded records", s.preloaded_records},
         {"importedFiles", "imported files", s.imported_files},
         {"idMappings", "ID mappings", s.id_mappings},
         {"heldPods", "held pods", s.held_pods},
         {"distrustful", "distrustful", s.distrustful},
         {"mapBytes", "map bytes", s.map_bytes},
         {"usedBytes", "used bytes", s.used_bytes},
         {"readers", "readers", s.readers},
         {"maxReaders", "readers at most", s.max_readers}});
    return ExitCode::kYes;
  }

 private:
  StoreFlags store_;
};

}  // namespace

std::unique_ptr<Command> MakeStatsCommand() { return std::make_unique<StatsCommand>(); }

}  // namespace waybill::cli
