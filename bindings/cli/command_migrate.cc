// waybill migrate: takes a store to another schema version.

#include "bindings/cli/command.h"
#include "bindings/cli/evidence_report.h"
#include "bindings/cli/progress.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"
#include "store/maintenance.h"

namespace waybill::cli {
namespace {

class MigrateCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    flags.Value("--to", &options_.to, "N",
                fmt::format("the schema version, {} to {} (default {})", kOldestSchema,
                            kNewestSchema, kNewestSchema),
                Number{kOldestSchema, kNewestSchema});
    flags.Switch("--dry-run", &options_.dry_run, "say what would be done, and change nothing");
    flags.Switch("--accept-loss", &options_.accept_loss, "go down even if that loses something");
  }

  Result<ExitCode> Run(Output& out) override {
    MigrateOptions options = options_;
    options.directory = store_.store;
    ProgressLine line("migrating", "values");
    options.progress = line.UntilStopped();
    auto report = WhileOwned(store_, [&] { return MigrateStore(options); });
    line.Clear();
    bool refused = options_.dry_run && !options_.accept_loss && report && !report->losses.empty();
    if (!report && report.error().code == ErrorCode::kConflict && !options_.accept_loss) {
      // A dry run lists each loss.
      options.dry_run = true;
      auto would = MigrateStore(options);
      if (would && !would->losses.empty()) {
        refused = true;
        report = std::move(would);
      }
    }
    if (!report) return WithResumeHint(WithStartHint(report.error()));
    Write(*report, refused, out);
    return refused ? ExitCode::kNo : ExitCode::kYes;
  }

 private:
  void Write(const MigrationReport& report, bool refused, Output& out) const {
    const bool done = !options_.dry_run && !refused;
    Json answer = JsonOf(report);
    answer["done"] = done;
    answer["refused"] = refused;
    out.WriteJson(answer);
    WriteMigration(report, done, out);
    if (!refused) return;
    // The warning comes last. main reports a failed write.
    (void)out.Flush();
    Warn(fmt::format("going down to schema version {} would lose what is listed: {}", report.to,
                     options_.dry_run ? "it would be refused" : "nothing was changed"),
         "if that is meant, add --accept-loss; a backup is made first");
  }

  MigrateOptions options_;
};

}  // namespace

Command MigrateCommand() {
  return {
      .name = "migrate",
      .task = kTaskRepair,
      .summary = "take the store to another schema version",
      .notes =
          R"(Makes and verifies a backup first. After a crash or an interruption the store is whole,
and the same command continues. Going down is refused (1) if it would lose something,
unless --accept-loss is given. A dry run exits as the run itself would.)",
      .examples = R"(waybill migrate --dry-run)",
      .call = New<MigrateCall>};
}

}  // namespace waybill::cli
