// waybill verify: walks the raw pages, reads every value, recomputes the digests.

#include "bindings/cli/command.h"
#include "bindings/cli/described_json.h"
#include "bindings/cli/progress.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

class VerifyCommand final : public Command {
 public:
  std::string name() const override { return "verify"; }
  std::string summary() const override { return "check every page and value; change nothing"; }
  std::string notes() const override {
    return R"(0 if the store is sound, 3 if it is not. `waybill start` sets a damaged store aside
and carries over what is sound in it.)";
  }

  void Declare(Flags& flags) override { store_.Declare(flags); }

  Result<ExitCode> Run(Output& out) override {
    TRY(store_.Parse());
    ProgressLine line("verifying", "bytes");
    auto report = WithStore(ObserveStore(store_), [&](const NodeStore& store) {
      return store.Verify(line.UntilStopped());
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

 private:
  StoreFlags store_;
};

}  // namespace

std::unique_ptr<Command> MakeVerifyCommand() { return std::make_unique<VerifyCommand>(); }

}  // namespace waybill::cli
