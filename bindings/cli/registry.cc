#include "bindings/cli/registry.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

namespace waybill::cli {

void CommonFlags::Declare(Flags& flags) {
  flags.BeginCommon();
  flags.Value("-o,--output", &format, "table|json|yaml|name",
              "how the answer is written: for people (default), as JSON or YAML,\n"
              "or only names, a line each");
  flags.Switch("--json", &json, "the same as -o json");
  flags.Switch("-q,--quiet", &quiet, "the same as -o name, and no progress");
  flags.Switch("--no-headers", &no_headers, "tables without their first line");
  flags.Switch("--no-trunc", &no_trunc, "tables with whole IDs, however wide");
  flags.Switch("--no-progress", &no_progress, "do not say how far long work is");
  flags.Switch("-v,--verbose", &verbose, "say where the values of flags come from");
  flags.Value("--config", &config, "FILE",
              "the configuration file (/etc/waybill/config.toml); none: no file");
}

Registry::Registry()
    : root_(std::make_unique<CLI::App>(
          "waybill keeps which image was pulled to this node with whose credentials.", "waybill")) {
  root_->set_version_flag("--version", "waybill " WAYBILL_VERSION);
  root_->footer(std::string("waybill help COMMAND says more.\n\n") + kExitCodes);
  root_->require_subcommand(1);
  auto formatter = std::make_shared<CLI::Formatter>();
  formatter->label("SUBCOMMAND", "COMMAND");
  root_->formatter(formatter);
  constexpr std::unique_ptr<Command> (*kMakers[])() = {
      MakeStartCommand,    MakeCheckCommand,    MakeIntentCommand,    MakePulledCommand,
      MakeFailedCommand,   MakeObserveCommand,  MakePreloadCommand,   MakeAllowCommand,
      MakePullsCommand,    MakePruneCommand,    MakeForgetCommand,    MakeReconcileCommand,
      MakeHashCommand,     MakeListCommand,     MakeShowCommand,      MakeDumpCommand,
      MakeStatsCommand,    MakeMetricsCommand,  MakeVerifyCommand,    MakeTrustCommand,
      MakeRuntimesCommand, MakeMigrateCommand,  MakeBackupCommand,    MakeRestoreCommand,
      MakeExportCommand,   MakeManifestCommand, MakeUsernsCommand,    MakeStreamingCommand,
      MakeAdviseCommand,   MakePreviewCommand,  MakeExplainCommand,   MakeDiffCommand,
      MakeRmCommand,       MakeGuardCommand,    MakeCompletionCommand};
  for (const auto& make : kMakers) Add(make());
  Add(MakeManCommand(*this));
}

Registry::~Registry() = default;

void Registry::Add(std::unique_ptr<Command> command) {
  CLI::App* app = root_->add_subcommand(command->name(), command->summary());
  app->group("Commands");
  const std::string notes = command->notes();
  app->footer(notes.empty() ? kExitCodes : notes + "\n\n" + kExitCodes);
  Entry& entry =
      *entries_.emplace_back(std::make_unique<Entry>(Entry{std::move(command), app, Flags(*app)}));
  entry.command->Declare(entry.flags);
  entry.common.Declare(entry.flags);
}

Registry::Entry* Registry::Find(std::string_view name) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
    return entry->command->name() == name;
  });
  return found == entries_.end() ? nullptr : found->get();
}

std::vector<std::string> Registry::Names() const {
  std::vector<std::string> names;
  for (const auto& entry : entries_) names.push_back(entry->command->name());
  return names;
}

std::map<std::string, const Flag*> Registry::FlagsWithSettings() const {
  std::map<std::string, const Flag*> flags;
  for (const auto& entry : entries_) {
    for (const Flag& flag : entry->flags.all()) {
      if (flag.settings) flags.emplace(flag.name, &flag);
    }
  }
  return flags;
}

}  // namespace waybill::cli
