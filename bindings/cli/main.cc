// waybill: the command line over NodeStore. Parses the arguments and runs one command. Only this
// file turns errors into exit codes.

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/cli/arguments.h"
#include "bindings/cli/completion.h"
#include "bindings/cli/output.h"
#include "bindings/cli/parse.h"
#include "bindings/cli/progress.h"
#include "bindings/cli/registry.h"
#include "bindings/cli/settings.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

ExitCode ExitCodeOf(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kLimitExceeded:
      return ExitCode::kUsage;
    default:
      return ExitCode::kStore;
  }
}

// CLI11's message, except where it uses its own terms. It quotes an unexpected argument, which may
// be a secret.
std::string MessageOf(const CLI::ParseError& error) {
  std::string message = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    return "there is one argument too many";
  }
  if (message.find("At Most 1 required") != std::string::npos) {
    return message.substr(0, message.find(':')) + " is given more than once";
  }
  return message;
}

Result<void> SetFormat(const CommonFlags& common, Output& out) {
  out.set_no_headers(common.no_headers);
  out.set_no_trunc(common.no_trunc);
  HideProgress(common.no_progress || common.quiet);
  const int said = (common.json ? 1 : 0) + (common.quiet ? 1 : 0) + (common.format ? 1 : 0);
  if (said > 1) {
    return BadFlag("--output", "it excludes --json and --quiet, and these each other",
                   "-o says all that the others say");
  }
  const auto format = common.json    ? Format::kJson
                      : common.quiet ? Format::kName
                                     : ParseFormat(common.format.value_or("table"));
  if (!format) {
    return BadFlag("--output",
                   fmt::format("there is no format '{}'", common.format->substr(0, 200)),
                   "write one of table, json, yaml, name");
  }
  out.set_format(*format);
  return {};
}

// A command line that was read.
struct Call {
  std::unique_ptr<Registry> registry;
  Registry::Entry* entry = nullptr;  // nullptr: `text` is the answer
  std::unique_ptr<Settings> settings = {};
  std::string text = {};
  bool is_version = false;
};

// Gives the flags their values.
Result<void> AssignFlags(Call& call) {
  // --config and --verbose come first: the values of other flags depend on them.
  const Flags& flags = call.entry->flags;
  const Flag* config = flags.Find("--config");
  call.settings = std::make_unique<Settings>(
      call.registry->FlagsWithSettings(),
      config->given() ? std::optional(config->values().back()) : std::nullopt,
      flags.Find("--verbose")->given());
  if (config->given()) {
    TRY(call.settings->Load());
  }
  return call.entry->flags.Assign(*call.settings);
}

Result<Call> Read(const std::vector<std::string>& arguments) {
  Call call = {.registry = std::make_unique<Registry>()};
  auto line = TRY(Arrange(arguments, *call.registry));
  call.entry = line.command;
  if (line.has_dashes) {
    if (std::vector<std::string>* rest = call.entry->flags.after_dashes()) {
      *rest = line.after_dashes;
    } else {
      line.words.emplace_back("--");
      line.words.insert(line.words.end(), line.after_dashes.begin(), line.after_dashes.end());
    }
  }
  CLI::App& root = call.registry->root();
  try {
    root.parse(std::vector<std::string>(line.words.rbegin(), line.words.rend()));
  } catch (const CLI::CallForVersion& version) {
    call.text = std::string(version.what()) + "\n";
    call.is_version = true;
  } catch (const CLI::CallForHelp&) {
    call.text = root.help();
  } catch (const CLI::ParseError& error) {
    const std::string command = call.entry == nullptr ? "" : " " + call.entry->command->name();
    return Error{ErrorCode::kInvalidArgument, MessageOf(error),
                 "see waybill" + command + " --help"};
  }
  if (!call.text.empty()) {
    call.entry = nullptr;
    return call;
  }
  TRY(AssignFlags(call));
  return call;
}

Result<ExitCode> Run(const std::vector<std::string>& arguments, Output& out) {
  // Asked by the scripts of `waybill completion`.
  if (arguments.size() == 2 && arguments[0] == kCompleteWord) {
    out.WriteRaw(TextOf(Complete(Registry(), arguments[1])));
    return ExitCode::kYes;
  }
  auto call = TRY(Read(arguments));
  if (call.entry == nullptr) {
    if (call.is_version && out.json()) {
      out.WriteJson({{"version", WAYBILL_VERSION}});
    } else {
      out.WriteRaw(call.text);
    }
    return ExitCode::kYes;
  }
  const CommonFlags& common = call.entry->common;
  TRY(SetFormat(common, out));
  if (common.verbose) {
    for (const std::string& note : call.settings->notes()) Note(note);
  }
  Command& command = *call.entry->command;
  command.set_again([&arguments]() -> Result<std::shared_ptr<Command>> {
    auto anew = TRY(Read(arguments));
    return std::shared_ptr<Command>(std::move(anew.entry->command));
  });
  auto result = command.Run(out);
  if (!result) return call.settings->WithOrigin(result.error());
  return result;
}

// Ends as a program does that never heard of pipes: by SIGPIPE, without a word.
[[noreturn]] void EndBySigpipe() {
  ::signal(SIGPIPE, SIG_DFL);
  ::raise(SIGPIPE);
  ::_exit(128 + SIGPIPE);
}

int Main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  Output out(STDOUT_FILENO);
  Result<ExitCode> result = ExitCode::kStore;
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    out.set_format(FormatOfErrors(arguments));
    result = Run(arguments, out);
    if (result) {
      if (auto flushed = out.Flush(); !flushed) result = flushed.error();
    }
    if (result) return static_cast<int>(*result);
    if (out.broken_pipe()) EndBySigpipe();
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
