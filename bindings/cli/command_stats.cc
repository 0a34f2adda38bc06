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
    auto statistics = TRY(WithStore(ObserveStore(store_), &NodeStore::GetStatistics));
    out.WriteFields(FieldsOf(statistics, {{"nondefaultHandlerRecords", "under other handlers"},
                                          {"maxReaders", "readers at most"}}));
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
