// The commands of `waybill`, as data. Each has a file of its own, command_<name>.cc, with all that
// there is to it.

#ifndef WAYBILL_BINDINGS_CLI_COMMAND_H_
#define WAYBILL_BINDINGS_CLI_COMMAND_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bindings/cli/output.h"
#include "bindings/cli/parse.h"
#include "waybill/result.h"

namespace waybill::cli {

// One call of a command: its flags, and what it does with their values.
class Call {
 public:
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  virtual void Declare(Flags& flags) = 0;
  // For a command that runs for long: reads the same command line anew, with the settings of that
  // moment. Null: it can't.
  using Again = std::function<Result<std::shared_ptr<Call>>()>;
  virtual void set_again(const Again&) {}
  // Called once, after the flags have their values. main.cc turns an error into an exit code.
  virtual Result<ExitCode> Run(Output& out) = 0;

 protected:
  Call() = default;
};

// Of a store.
class StoreCall : public Call {
 public:
  void Declare(Flags& flags) override { store_.Declare(flags); }

 protected:
  StoreFlags store_;
};

template <typename T>
std::unique_ptr<Call> New() {
  return std::make_unique<T>();
}

// What a command is for, as help and the manual head it.
inline constexpr const char* kTaskTakeOver = "Take over a node";
inline constexpr const char* kTaskAsk = "Ask";
inline constexpr const char* kTaskOpenClose = "Open, close, remove";
inline constexpr const char* kTaskRecord = "Record pulls";
inline constexpr const char* kTaskLook = "Look";
inline constexpr const char* kTaskPods = "Pods";
inline constexpr const char* kTaskRepair = "Repair";
inline constexpr const char* kTaskPlan = "Plan";
inline constexpr const char* kTaskHelp = "Help";

struct Command {
  std::string name = {};
  const char* task = "";  // of an action, that of its command
  // One line for the list of commands.
  std::string summary = {};
  // What --help says below the flags: lines, or nothing.
  std::string notes = {};
  // How it is usually called: lines of a shell. The store is that of the configuration file.
  std::string examples = {};
  std::unique_ptr<Call> (*call)() = nullptr;  // null: it has actions
  std::vector<Command> actions = {};
  std::string default_action = {};  // where none is named; empty: one must be
};

Command StartCommand(), GuardCommand(), DoctorCommand(), InstallCommand(), ObserveCommand(),
    PreloadCommand(), RuntimesCommand(), ExportCommand(), CheckCommand(), ExplainCommand(),
    PreviewCommand(), AllowCommand(), ForgetCommand(), ReconcileCommand(), PruneCommand(),
    IntentCommand(), PulledCommand(), FailedCommand(), PullsCommand(), ListCommand(), ShowCommand(),
    StatsCommand(), MetricsCommand(), DumpCommand(), CallCommand(), UsernsCommand(),
    StreamingCommand(), VerifyCommand(), TrustCommand(), BackupCommand(), RestoreCommand(),
    MigrateCommand(), TraceCommand(), AdviseCommand(), ManifestCommand(), HashCommand(),
    CompletionCommand(), ManCommand(), VersionCommand();

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_COMMAND_H_
