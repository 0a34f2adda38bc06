// A subcommand of `waybill`. Each has a file of its own, command_<name>.cc.

#ifndef WAYBILL_BINDINGS_CLI_COMMAND_H_
#define WAYBILL_BINDINGS_CLI_COMMAND_H_

#include <functional>
#include <memory>
#include <string>

#include "bindings/cli/output.h"
#include "bindings/cli/parse.h"
#include "waybill/result.h"

namespace waybill::cli {

class Registry;

class Command {
 public:
  virtual ~Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  virtual std::string name() const = 0;
  // One line for the list of commands.
  virtual std::string summary() const = 0;
  // What --help says below the flags: lines, or nothing.
  virtual std::string notes() const { return {}; }
  virtual void Declare(Flags& flags) = 0;
  // For a command that runs for long: reads the same command line anew, with the settings of that
  // moment. Null: it can't.
  using Again = std::function<Result<std::shared_ptr<Command>>()>;
  virtual void set_again(const Again&) {}
  // Called once, after the flags have their values. main.cc turns an error into an exit code.
  virtual Result<ExitCode> Run(Output& out) = 0;

 protected:
  Command() = default;
};

std::unique_ptr<Command> MakeStartCommand();
std::unique_ptr<Command> MakeCheckCommand();
std::unique_ptr<Command> MakeIntentCommand();
std::unique_ptr<Command> MakePulledCommand();
std::unique_ptr<Command> MakeFailedCommand();
std::unique_ptr<Command> MakeObserveCommand();
std::unique_ptr<Command> MakePreloadCommand();
std::unique_ptr<Command> MakeAllowCommand();
std::unique_ptr<Command> MakePullsCommand();
std::unique_ptr<Command> MakePruneCommand();
std::unique_ptr<Command> MakeForgetCommand();
std::unique_ptr<Command> MakeReconcileCommand();
std::unique_ptr<Command> MakeRmCommand();
std::unique_ptr<Command> MakeHashCommand();
std::unique_ptr<Command> MakeListCommand();
std::unique_ptr<Command> MakeShowCommand();
std::unique_ptr<Command> MakeDumpCommand();
std::unique_ptr<Command> MakeStatsCommand();
std::unique_ptr<Command> MakeMetricsCommand();
std::unique_ptr<Command> MakeVerifyCommand();
std::unique_ptr<Command> MakeTrustCommand();
std::unique_ptr<Command> MakeManifestCommand();
std::unique_ptr<Command> MakeRuntimesCommand();
std::unique_ptr<Command> MakeMigrateCommand();
std::unique_ptr<Command> MakeBackupCommand();
std::unique_ptr<Command> MakeRestoreCommand();
std::unique_ptr<Command> MakeExportCommand();
std::unique_ptr<Command> MakeUsernsCommand();
std::unique_ptr<Command> MakeStreamingCommand();
std::unique_ptr<Command> MakeAdviseCommand();
std::unique_ptr<Command> MakePreviewCommand();
std::unique_ptr<Command> MakeExplainCommand();
std::unique_ptr<Command> MakeDiffCommand();
std::unique_ptr<Command> MakeGuardCommand();
std::unique_ptr<Command> MakeCompletionCommand();
// `registry` outlives the command.
std::unique_ptr<Command> MakeManCommand(const Registry& registry);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_COMMAND_H_
