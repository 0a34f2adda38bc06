// waybill: the command line over NodeStore. Parses the arguments and runs one command. Only this
// file turns errors into exit codes.

#include <openssl/crypto.h>
#include <signal.h>
#include <unistd.h>

#include <exception>
#include <memory>
#include <string>
#include <vector>

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

void SetFormat(const CommonFlags& common, Output& out) {
  out.set_no_headers(common.no_headers);
  out.set_no_trunc(common.no_trunc);
  HideProgress(common.no_progress || common.quiet);
  out.set_format(common.quiet ? Format::kName : common.format);
}

// A call that was read.
struct Reading {
  std::unique_ptr<Registry> registry = std::make_unique<Registry>();
  CommandLine line = {};
  std::unique_ptr<Settings> settings = {};

  bool has_call() const { return line.command != nullptr && !line.wants_help; }
};

// Gives the flags their values.
Result<void> AssignFlags(Reading& reading) {
  // --config and --verbose come first: the values of other flags depend on them.
  Flags& flags = reading.line.command->flags;
  const Flag* config = flags.Find("--config");
  const bool has_config = !config->typed.empty();
  reading.settings =
      std::make_unique<Settings>(reading.registry->FlagsWithSettings(),
                                 has_config ? std::optional(config->typed.back()) : std::nullopt,
                                 flags.Find("--verbose")->given());
  if (has_config) {
    TRY(reading.settings->Load());
  }
  auto assigned = flags.Assign(*reading.settings);
  if (!assigned) return reading.settings->WithOrigin(assigned.error());
  return {};
}

Result<Reading> Read(const std::vector<std::string>& arguments) {
  Reading reading;
  reading.line = TRY(ReadCommandLine(arguments, *reading.registry));
  if (reading.has_call()) {
    TRY(AssignFlags(reading));
  }
  return reading;
}

void WriteHelp(const Reading& reading, Output& out) {
  const CommandLine& line = reading.line;
  if (line.command != nullptr) return out.WriteRaw(HelpOf(*line.command));
  if (line.wants_help) return out.WriteRaw(HelpOf(*reading.registry));
  if (out.json()) return out.WriteJson({{"version", WAYBILL_VERSION}});
  out.WriteRaw("waybill " WAYBILL_VERSION "\n");
}

Result<ExitCode> Run(const std::vector<std::string>& arguments, Output& out) {
  // Asked by the scripts of `waybill completion`.
  if (arguments.size() == 2 && arguments[0] == kCompleteWord) {
    out.WriteRaw(Completed(Registry(), arguments[1]));
    return ExitCode::kYes;
  }
  auto reading = TRY(Read(arguments));
  if (!reading.has_call()) {
    WriteHelp(reading, out);
    return ExitCode::kYes;
  }
  const CommonFlags& common = reading.line.command->common;
  SetFormat(common, out);
  if (common.verbose) {
    for (const std::string& note : reading.settings->notes()) Note(note);
  }
  Call& call = *reading.line.command->call;
  call.set_again([&arguments]() -> Result<std::shared_ptr<Call>> {
    auto anew = TRY(Read(arguments));
    return std::shared_ptr<Call>(std::move(anew.line.command->call));
  });
  auto result = call.Run(out);
  if (!result) return reading.settings->WithOrigin(result.error());
  return result;
}

// Ends as a program does that never heard of pipes: by SIGPIPE, without a word.
[[noreturn]] void EndBySigpipe() {
  ::signal(SIGPIPE, SIG_DFL);
  ::raise(SIGPIPE);
  ::_exit(128 + SIGPIPE);
}

int Main(int argc, char** argv) {
  if (WAYBILL_PORTABLE) {
    // The node's configuration of OpenSSL names modules of the node's OpenSSL, not of this one.
    ::OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  }
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
