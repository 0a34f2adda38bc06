#include "bindings/cli/registry.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "bindings/cli/examples.h"

namespace waybill::cli {

namespace {

// The lines behind the first, each two columns in.
std::string Indented(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\n' ? std::string("\n  ") : std::string(1, c);
  return out;
}

}  // namespace

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
  struct Task {
    const char* name;
    std::vector<std::unique_ptr<Command> (*)()> makers;
  };
  const Task tasks[] = {
      {"Take over a node",
       {MakeStartCommand, MakeGuardCommand, MakeObserveCommand, MakePreloadCommand,
        MakeRuntimesCommand, MakeExportCommand}},
      {"Ask", {MakeCheckCommand, MakeExplainCommand, MakePreviewCommand}},
      {"Open, close, remove",
       {MakeAllowCommand, MakeForgetCommand, MakeReconcileCommand, MakePruneCommand,
        MakeRmCommand}},
      {"Record pulls", {MakeIntentCommand, MakePulledCommand, MakeFailedCommand, MakePullsCommand}},
      {"Look",
       {MakeListCommand, MakeShowCommand, MakeStatsCommand, MakeMetricsCommand, MakeDumpCommand,
        MakeDiffCommand}},
      {"Pods", {MakeUsernsCommand, MakeStreamingCommand}},
      {"Repair",
       {MakeVerifyCommand, MakeTrustCommand, MakeBackupCommand, MakeRestoreCommand,
        MakeMigrateCommand}},
      {"Plan", {MakeAdviseCommand, MakeManifestCommand, MakeHashCommand}},
      {"Help", {MakeCompletionCommand}}};
  for (const auto& [task, makers] : tasks) {
    for (const auto& make : makers) Add(make(), task);
  }
  Add(MakeManCommand(*this), "Help");
}

Registry::~Registry() = default;

void Registry::Add(std::unique_ptr<Command> command, const char* task) {
  CLI::App* app = root_->add_subcommand(command->name(), command->summary());
  app->group(task);
  const std::string notes = command->notes();
  std::string examples = ExamplesOf(command->name());
  if (!examples.empty()) examples = "Examples:\n  " + Indented(examples) + "\n\n";
  app->footer((notes.empty() ? "" : notes + "\n\n") + examples + kExitCodes);
  Entry& entry = *entries_.emplace_back(
      std::make_unique<Entry>(Entry{std::move(command), task, app, Flags(*app)}));
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
