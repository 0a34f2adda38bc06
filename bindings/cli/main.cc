// waybill: the command line over NodeStore. Parses the arguments and runs one command. Only this
// file turns errors into exit codes.

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/cli/command.h"
#include "bindings/cli/output.h"
#include "bindings/cli/parse.h"

namespace waybill::cli {
namespace {

constexpr const char* kExitCodes =
    "Exit codes:\n"
    "  0  done; the answer is yes; no pull is needed\n"
    "  1  the answer is no; the image must be pulled\n"
    "  2  wrong usage: a flag, or a file that a flag names\n"
    "  3  the store or the output refused; standard error says what was left as it was";

ExitCode ExitCodeOf(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kLimitExceeded:
      return ExitCode::kUsage;
    default:
      return ExitCode::kStore;
  }
}

// If a standard stream is closed, one of the store's files would get its number, and an answer
// would be written into the database. Standard output is replaced by a descriptor that can't be
// written, so that a lost answer stays an error.
void ClaimStandardStreams() {
  constexpr int kModes[] = {O_RDONLY, O_RDONLY, O_WRONLY};
  for (int fd = 0; fd < 3; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // Descriptors below fd are open, so this one gets its number.
    if (::open("/dev/null", kModes[fd]) != fd) ::_exit(static_cast<int>(ExitCode::kStore));
  }
}

// Splits "--name=" in two: CLI11 would take the next argument for the value.
std::vector<std::string> Arguments(int argc, char** argv) {
  std::vector<std::string> arguments;
  bool flags_end = false;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    flags_end = flags_end || argument == "--";
    if (!flags_end && argument.size() > 3 && argument.starts_with("--") &&
        argument.find('=') == argument.size() - 1) {
      argument.pop_back();
      arguments.push_back(std::move(argument));
      arguments.emplace_back();
    } else {
      arguments.push_back(std::move(argument));
    }
  }
  return arguments;
}

// Whether errors of parsing are written as JSON.
bool WantsJson(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") return false;
    if (argument == "--json") return true;
  }
  return false;
}

struct Registered {
  std::unique_ptr<Command> command;
  CLI::App* app;
  Flags flags;
  bool json = false;
};

std::vector<std::unique_ptr<Registered>> RegisterAll(CLI::App& root) {
  constexpr std::unique_ptr<Command> (*kMakers[])() = {
      MakeStartCommand,    MakeCheckCommand,   MakeIntentCommand,    MakePulledCommand,
      MakeFailedCommand,   MakeObserveCommand, MakePreloadCommand,   MakePullsCommand,
      MakePruneCommand,    MakeForgetCommand,  MakeReconcileCommand, MakeHashCommand,
      MakeListCommand,     MakeShowCommand,    MakeDumpCommand,      MakeStatsCommand,
      MakeMetricsCommand,  MakeVerifyCommand,  MakeTrustCommand,     MakeRuntimesCommand,
      MakeMigrateCommand,  MakeBackupCommand,  MakeRestoreCommand,   MakeExportCommand,
      MakeManifestCommand, MakeUsernsCommand,  MakeStreamingCommand, MakeAdviseCommand,
      MakePreviewCommand,  MakeExplainCommand, MakeDiffCommand,      MakeGuardCommand};
  std::vector<std::unique_ptr<Registered>> all;
  for (const auto& make : kMakers) {
    std::unique_ptr<Command> command = make();
    CLI::App* app = root.add_subcommand(command->name(), command->summary());
    const std::string notes = command->notes();
    app->footer(notes.empty() ? kExitCodes : notes + "\n\n" + kExitCodes);
    auto& entry = *all.emplace_back(
        std::make_unique<Registered>(Registered{std::move(command), app, Flags(*app)}));
    entry.command->Declare(entry.flags);
    entry.flags.Switch("--json", &entry.json, "write JSON");
  }
  return all;
}

// CLI11 quotes an unexpected argument, which may be a secret, and logs are read by many: only what
// looks like the name of a flag is repeated.
std::string MessageOfExtras(std::string_view message) {
  const std::size_t flag = message.find(" --");
  if (flag == std::string_view::npos) return "there is one argument too many";
  const std::string_view name = message.substr(flag + 1);
  const std::size_t end = name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-");
  return "there is no flag " + std::string(name.substr(0, end));
}

// CLI11's message, except where it uses its own terms.
std::string MessageOf(const CLI::ParseError& error) {
  std::string message = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) return MessageOfExtras(message);
  if (message.find("At Most 1 required") != std::string::npos) {
    return message.substr(0, message.find(':')) + " is given more than once";
  }
  if (const std::size_t end = message.find(" was given a disallowed flag override");
      end != std::string::npos) {
    return "--" + message.substr(0, end) + " takes no value";
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return message.substr(0, message.find(':')) + ": its value is missing";
  }
  return message;
}

Error ParseErrorOf(const CLI::ParseError& error, const CLI::App& root) {
  std::string command = "waybill";
  for (const CLI::App* app : root.get_subcommands()) command += " " + app->get_name();
  return {ErrorCode::kInvalidArgument, MessageOf(error), "see " + command + " --help"};
}

Result<ExitCode> Run(const std::vector<std::string>& arguments, Output& out) {
  CLI::App root("waybill keeps which image was pulled to this node with whose credentials.",
                "waybill");
  root.set_version_flag("--version", "waybill " WAYBILL_VERSION);
  root.footer(kExitCodes);
  root.require_subcommand(1);
  auto registered = RegisterAll(root);
  if (arguments.empty()) {
    return Error{ErrorCode::kInvalidArgument, "no command was given",
                 "waybill --help lists the commands"};
  }
  if (arguments[0] == "--json") {
    return Error{ErrorCode::kInvalidArgument, "--json stands before the command",
                 "write waybill COMMAND --json"};
  }
  const auto named = [&](const auto& entry) { return entry->command->name() == arguments[0]; };
  if (!arguments[0].starts_with('-') && std::none_of(registered.begin(), registered.end(), named)) {
    return Error{ErrorCode::kInvalidArgument, "there is no command '" + arguments[0] + "'",
                 "waybill --help lists the commands"};
  }
  std::vector<std::string> parsed = arguments;
  const auto command = std::find_if(registered.begin(), registered.end(), named);
  const auto dashes = std::find(parsed.begin(), parsed.end(), "--");
  if (command != registered.end() && dashes != parsed.end() &&
      (*command)->flags.after_dashes() != nullptr) {
    (*command)->flags.after_dashes()->assign(dashes + 1, parsed.end());
    parsed.erase(dashes, parsed.end());
  }
  try {
    root.parse(std::vector<std::string>(parsed.rbegin(), parsed.rend()));
  } catch (const CLI::CallForVersion& version) {
    out.WriteRaw(std::string(version.what()) + "\n");
    return ExitCode::kYes;
  } catch (const CLI::CallForHelp&) {
    out.WriteRaw(root.help());
    return ExitCode::kYes;
  } catch (const CLI::ParseError& error) {
    return ParseErrorOf(error, root);
  }
  for (const auto& entry : registered) {
    if (!entry->app->parsed()) continue;
    entry->flags.Assign();
    return entry->command->Run(out);
  }
  return Error{ErrorCode::kInvalidArgument, "no command was given", "see waybill --help"};
}

int Main(int argc, char** argv) {
  ClaimStandardStreams();
  ::signal(SIGPIPE, SIG_IGN);
  Output out(STDOUT_FILENO);
  Result<ExitCode> result = ExitCode::kStore;
  try {
    const std::vector<std::string> arguments = Arguments(argc, argv);
    out.set_json(WantsJson(arguments));
    result = Run(arguments, out);
    if (result) {
      if (auto flushed = out.Flush(); !flushed) result = flushed.error();
    }
    if (result) return static_cast<int>(*result);
    ReportError(result.error(), out);
    // If standard output has no reader, standard error has the message.
    (void)out.Flush();
    return static_cast<int>(ExitCodeOf(result.error()));
  } catch (const std::exception& error) {
    Warn(error.what(), {});
  } catch (...) {
  }
  return static_cast<int>(ExitCode::kStore);
}

}  // namespace
}  // namespace waybill::cli

int main(int argc, char** argv) { return waybill::cli::Main(argc, argv); }
