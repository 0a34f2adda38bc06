// waybill userns: the host IDs of pods in user namespaces (KEP-127).

#include "bindings/cli/command.h"
#include "bindings/cli/userns_actions.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

struct Action {
  std::string_view name;
  Result<ExitCode> (*run)(const UsernsArguments& arguments, Output& out);
  bool wants_pod = false;
  bool wants_pool = false;
  bool only_compares = false;  // ranges with the pool
};

constexpr Action kActions[] = {
    {"get", GetUserns, true, true},          {"release", ReleaseUserns, true, false},
    {"list", ListUserns, false, true, true}, {"cleanup", CleanUpUserns, false, false},
    {"pool", ShowUsernsPool, false, true},   {"adopt", AdoptUserns, true, true},
    {"owner", FindUsernsOwner, true, false}, {"check", CheckUserns, false, true, true}};
constexpr std::string_view kActionsHint =
    "the actions are get, release, list, cleanup, pool, adopt, owner and check";

class UsernsCommand final : public Command {
 public:
  std::string name() const override { return "userns"; }
  std::string summary() const override {
    return "give host IDs to pods in user namespaces, and take them back";
  }
  std::string notes() const override {
    return R"(get POD        the pod's range of host IDs, always the same; a new one if it has none
release POD    the pod is gone: frees its range; 1 if it had none
list           which pod has which range, and pods with an unverified range (held)
cleanup        frees the ranges of pods that are gone. In this order:
                 token=$(waybill userns cleanup --store DIR --begin)
                 kubectl get pods -A --field-selector spec.nodeName=NODE -o json > existing.json
                 crictl pods -o json > running.json
                 waybill userns cleanup --store DIR --token "$token" \
                   --existing existing.json --running running.json
               A pod that is in neither list loses its range: both must be complete.
               Two empty lists are refused (2), unless --allow-empty is given
pool           how full the pool is; 1 if no new range can be given out
adopt POD FIRST LENGTH
               you state that the pod lives with these host IDs
owner HOST-ID  whose host UID or GID that is; 1 if no pod's
check          compares the store with the ID mappings of what runs; 1 if they
               contradict each other)";
  }

  void Declare(Flags& flags) override {
    arguments_.store.Declare(flags);
    arguments_.store.DeclareWait(flags);
    flags.Positional("ACTION", &action_,
                     "get, release, list, cleanup, pool, adopt, owner or check");
    flags.Positional("POD", &arguments_.pod, "the pod's UID; owner: a host ID");
    flags.Positional("FIRST", &arguments_.first_id, "adopt: the pod's first host ID");
    flags.Positional("LENGTH", &arguments_.id_count, "adopt: how many it has");
    flags.Value("--host-users", &arguments_.host_users, "true|false",
                "get: the pod's spec.hostUsers; false (default)");
    arguments_.runtime.Declare(flags);
    flags.Value("--length", &arguments_.length, "N", "get: refuse a range of another length");
    flags.Switch("--lost", &arguments_.lost,
                 "release: the ranges of unknown pods; you state that userns list has\n"
                 "every living pod in a user namespace");
    flags.Switch("--begin", &arguments_.begin,
                 "cleanup: print a token; do this before the lists are made");
    flags.Value("--existing", &arguments_.existing, "FILE|-",
                "cleanup: the pods that the node should run: what kubectl get pods -o\n"
                "json or the kubelet's /pods prints");
    flags.Value("--running", &arguments_.running, "FILE|-",
                "cleanup: the pods that run: what crictl pods -o json prints");
    flags.Value("--token", &arguments_.token, "TOKEN", "cleanup: the token");
    flags.Switch("--allow-empty", &arguments_.change.options.allow_empty,
                 "cleanup: accept two empty lists: the node has no pods");
    flags.Value("--proc", &arguments_.proc, "DIR",
                "check: the /proc of the host's PID namespace (/proc)");
    flags.Switch("--dry-run", &arguments_.change.options.dry_run,
                 "release, cleanup: say what would be done, and change nothing");
    std::vector<std::string> with_pool;
    for (const Action& action : kActions) {
      if (action.wants_pool) with_pool.emplace_back(action.name);
    }
    arguments_.pool.Declare(flags, with_pool);
  }

  Result<ExitCode> Run(Output& out) override {
    TRY(arguments_.store.Parse());
    if (!action_) return BadFlag("ACTION", "it is missing", kActionsHint);
    for (const Action& action : kActions) {
      if (action.name != *action_) continue;
      TRY(Check(action));
      TRY(arguments_.runtime.Parse());
      if (action.wants_pool) {
        TRY(arguments_.pool.Parse(!action.only_compares));
      }
      return action.run(arguments_, out);
    }
    return BadFlag("ACTION", fmt::format("there is no '{}'", action_->substr(0, 200)),
                   kActionsHint);
  }

 private:
  Result<void> Check(const Action& action) const {
    TRY(CheckBelonging(action.name));
    if (const std::string given = arguments_.pool.Given(); !action.wants_pool && !given.empty()) {
      return BadFlag(given, fmt::format("{} does not use the pool", action.name));
    }
    const UsernsArguments& a = arguments_;
    if (a.lost && a.pod) return BadFlag("--lost", "it excludes a pod");
    if (action.wants_pod && !a.pod && !a.lost) {
      if (action.name == "owner") return BadFlag("HOST-ID", "it is missing");
      return BadFlag("POD", "it is missing", "give metadata.uid of the pod");
    }
    if (!action.wants_pod && a.pod) {
      return BadFlag("POD", fmt::format("{} does not take a pod", action.name));
    }
    if (action.name == "adopt" && !a.id_count) {
      return BadFlag(a.first_id ? "LENGTH" : "FIRST", "it is missing",
                     "write waybill userns adopt POD FIRST LENGTH");
    }
    if (a.host_users && a.host_users != "true" && a.host_users != "false") {
      return BadFlag("--host-users",
                     fmt::format("'{}' is neither true nor false", a.host_users->substr(0, 200)));
    }
    return action.name == "cleanup" ? CheckCleanup() : Result<void>();
  }

  // Each given argument belongs to the action.
  Result<void> CheckBelonging(std::string_view action) const {
    const UsernsArguments& a = arguments_;
    const struct {
      std::string_view name;
      bool given;
      std::string_view action;
    } all[] = {{"FIRST", a.first_id.has_value(), "adopt"},
               {"--host-users", a.host_users.has_value(), "get"},
               {"--runtime", a.runtime.given(), "get"},
               {"--length", a.length.has_value(), "get"},
               {"--lost", a.lost, "release"},
               {"--begin", a.begin, "cleanup"},
               {"--allow-empty", a.change.options.allow_empty, "cleanup"},
               {"--existing", a.existing.has_value(), "cleanup"},
               {"--running", a.running.has_value(), "cleanup"},
               {"--token", a.token.has_value(), "cleanup"},
               {"--proc", a.proc.has_value(), "check"}};
    if (a.change.options.dry_run && action != "release" && action != "cleanup") {
      return BadFlag("--dry-run", "it belongs to release and cleanup");
    }
    for (const auto& argument : all) {
      if (argument.given && argument.action != action) {
        return BadFlag(argument.name, fmt::format("it belongs to {}", argument.action));
      }
    }
    return {};
  }

  Result<void> CheckCleanup() const {
    const UsernsArguments& a = arguments_;
    if (a.begin) {
      const ChangeOptions& how = a.change.options;
      if (!a.existing && !a.running && !a.token && !how.allow_empty && !how.dry_run) return {};
      return BadFlag("--begin", "it excludes all other flags of cleanup");
    }
    if (!a.existing) return BadFlag("--existing", "it is missing", "or draw a token with --begin");
    if (!a.running) return BadFlag("--running", "it is missing", "or draw a token with --begin");
    if (!a.token) {
      return BadFlag("--token", "it is missing",
                     "draw a token with --begin, before the lists are made");
    }
    if (a.existing == "-" && a.running == "-") {
      return BadFlag("--running", "--existing reads standard input already");
    }
    return {};
  }

  UsernsArguments arguments_;
  std::optional<std::string> action_;
};

}  // namespace

std::unique_ptr<Command> MakeUsernsCommand() { return std::make_unique<UsernsCommand>(); }

}  // namespace waybill::cli
