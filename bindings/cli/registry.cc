#include "bindings/cli/registry.h"

namespace waybill::cli {

void CommonFlags::Declare(Flags& flags) {
  flags.BeginCommon();
  flags.Choice("-o,--output", &format, Formats(), "for people (default), or as JSON");
  flags.Switch("-q,--quiet", &quiet, "only names, a line each, and no progress");
  flags.Switch("--no-headers", &no_headers, "tables without their first line");
  flags.Switch("--no-trunc", &no_trunc, "tables with whole IDs, however wide");
  flags.Switch("--no-progress", &no_progress, "do not say how far long work is");
  flags.Switch("-v,--verbose", &verbose, "say where the values of flags come from");
  flags.Value("--config", &config, "FILE",
              "the configuration file (/etc/waybill/config.toml); none: no file");
  flags.Excludes("--output", {"--quiet"});
}

std::string Registry::Entry::name() const {
  return (group == nullptr ? "" : group->command.name + " ") + command.name;
}

Registry::Entry* Registry::Entry::FindAction(std::string_view name) const {
  for (Entry* action : actions) {
    if (action->command.name == name) return action;
  }
  return nullptr;
}

const Flag* Registry::Entry::FindFlag(std::string_view name) const {
  for (const Entry* action : actions) {
    if (const Flag* flag = action->flags.Find(name)) return flag;
  }
  return flags.Find(name);
}

Registry::Registry() {
  // In the order of help and manual.
  for (Command (*command)() :
       {StartCommand,   DoctorCommand,     InstallCommand, GuardCommand,     ObserveCommand,
        PreloadCommand, RuntimesCommand,   ExportCommand,  CheckCommand,     ExplainCommand,
        PreviewCommand, AllowCommand,      ForgetCommand,  ReconcileCommand, PruneCommand,
        IntentCommand,  PulledCommand,     FailedCommand,  PullsCommand,     ListCommand,
        ShowCommand,    StatsCommand,      MetricsCommand, DumpCommand,      CallCommand,
        UsernsCommand,  StreamingCommand,  VerifyCommand,  TrustCommand,     BackupCommand,
        RestoreCommand, MigrateCommand,    TraceCommand,   AdviseCommand,    ManifestCommand,
        HashCommand,    CompletionCommand, ManCommand,     VersionCommand}) {
    Add(command(), nullptr);
  }
}

Registry::Entry* Registry::Add(const Command& command, Entry* group) {
  Entry* const entry =
      entries_.emplace_back(std::make_unique<Entry>(Entry{.command = command, .group = group}))
          .get();
  if (command.call != nullptr) {
    entry->call = command.call();
    entry->call->Declare(entry->flags);
  }
  entry->common.Declare(entry->flags);
  for (const Command& action : command.actions) entry->actions.push_back(Add(action, entry));
  return entry;
}

Registry::Entry* Registry::Find(std::string_view name) const {
  for (const auto& entry : entries_) {
    if (entry->group == nullptr && entry->command.name == name) return entry.get();
  }
  return nullptr;
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
