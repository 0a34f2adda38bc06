// waybill migrate: takes a store to another schema version.

#include "bindings/cli/change_report.h"
#include "bindings/cli/command.h"
#include "bindings/cli/described_json.h"
#include "bindings/cli/owner_wait.h"
#include "bindings/cli/progress.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

class MigrateCommand final : public Command {
 public:
  std::string name() const override { return "migrate"; }
  std::string summary() const override { return "take the store to another schema version"; }
  std::string notes() const override {
    return R"(Makes and verifies a backup first. Each step is one transaction: after a crash or an
interruption the store is whole, and the same command continues. Going down is refused
(1) if it would lose something, unless --accept-loss is given; images whose records
are lost must be verified again. A dry run exits as the run itself would. `waybill
restore` puts a backup back.)";
  }

  void Declare(Flags& flags) override {
    store_.Declare(flags);
    store_.DeclareWait(flags);
    flags.Value("--to", &to_, "N",
                fmt::format("the schema version, {} to {} (default {})", kOldestSchema,
                            kNewestSchema, kNewestSchema));
    flags.Switch("--dry-run", &dry_run_, "say what would be done, and change nothing");
    flags.Switch("--accept-loss", &accept_loss_, "go down even if that loses something");
  }

  Result<ExitCode> Run(Output& out) override {
    TRY(store_.Parse());
    MigrateOptions options{.directory = store_.store};
    options.dry_run = dry_run_;
    options.accept_loss = accept_loss_;
    if (to_) {
      auto version = TRY(ParseNumber("--to", *to_));
      if (version > UINT32_MAX) {
        return BadFlag("--to", fmt::format("there is no schema version {}", version));
      }
      options.to = static_cast<std::uint32_t>(version);
    }
    ProgressLine line("migrating", "values");
    options.progress = line.UntilStopped();
    auto report = WhileOwned(store_, [&] { return Migrate(options); });
    line.Clear();
    bool refused = dry_run_ && !accept_loss_ && report && !report->losses.empty();
    if (!report && report.error().code == ErrorCode::kConflict && !accept_loss_) {
      // A dry run lists each loss.
      options.dry_run = true;
      auto would = Migrate(options);
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
    const bool done = !dry_run_ && !refused;
    if (out.json()) {
      Json answer = JsonOf(report);
      answer["done"] = done;
      answer["refused"] = refused;
      out.WriteJson(answer);
    } else {
      WriteMigration(report, done, out);
    }
    if (!refused) return;
    // The warning comes last. main reports a failed write.
    (void)out.Flush();
    Warn(fmt::format("going down to schema version {} would lose what is listed: {}", report.to,
                     dry_run_ ? "it would be refused" : "nothing was changed"),
         "if that is meant, add --accept-loss; a backup is made first");
  }

  StoreFlags store_;
  std::optional<std::string> to_;
  bool dry_run_ = false;
  bool accept_loss_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeMigrateCommand() { return std::make_unique<MigrateCommand>(); }

}  // namespace waybill::cli
