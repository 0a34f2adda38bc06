// waybill stats: how much the store holds, and how full it is.

#include "bindings/cli/command.h"
#include "bindings/cli/described_json.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

class StatsCommand final : public Command {
 public:
  std::string name() const override { return "stats"; }
  std::string summary() const override { return "say how much the store holds"; }

  void Declare(Flags& flags) override { store_.Declare(flags); }

  Result<ExitCode> Run(Output& out) override {
    TRY(store_.Parse());
    auto statistics = TRY(WithStore(ObserveStore(store_), &NodeStore::GetStatistics));
    out.WriteFields(FieldsOf(statistics, {{"nondefaultHandlerRecords", "under other handlers"},
                                          {"maxReaders", "readers at most"}}));
    return ExitCode::kYes;
  }

 private:
  StoreFlags store_;
};

}  // namespace

std::unique_ptr<Command> MakeStatsCommand() { return std::make_unique<StatsCommand>(); }

}  // namespace waybill::cli
