// waybill verify: walks the raw pages, reads every value, recomputes the digests.

#include "bindings/cli/command.h"
#include "bindings/cli/progress.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

class VerifyCall final : public StoreCall {
 public:
  Result<ExitCode> Run(Output& out) override {
    ProgressLine line("verifying", "bytes");
    auto report = WithStore(ObserveStore(store_), [&](NodeStore& store) {
      return store.Call(Verify(), line.UntilStopped());
    });
    line.Clear();
    if (!report && report.error().code == ErrorCode::kInvalidArgument) {
      // A store of streaming requests has pages and values, too.
      if (auto streams = VerifyStreams(store_)) report = *std::move(streams);
    }
    if (!report) return report.error();
    out.WriteFields(FieldsOf(*report, {{"findings", "finding"}}));
    return report->sound ? ExitCode::kYes : ExitCode::kStore;
  }
};

}  // namespace

Command VerifyCommand() {
  return {.name = "verify",
          .task = kTaskRepair,
          .summary = "check every page and value; change nothing",
          .notes =
              R"(0 if the store is sound, 3 if it is not. `waybill start` sets a damaged store aside
and carries over what is sound in it.)",
          .examples = R"(waybill verify)",
          .call = New<VerifyCall>};
}

}  // namespace waybill::cli
