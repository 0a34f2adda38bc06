// waybill install: puts the command, its units and its configuration onto a node, starts the guard,
// and takes all of it away again. In a container it does so on the host.

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "bindings/cli/command.h"
#include "bindings/cli/input.h"
#include "bindings/cli/node_files.h"
#include "bindings/cli/run_program.h"
#include "store/base/files.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

constexpr const char* kGuardUnit = "waybill-guard.service";

// What stays, whatever is removed.
constexpr const char* kStays =
    "the store and its witness, usually /var/lib/waybill and "
    "/var/lib/kubelet/image_manager/waybill-guard: remove both, or neither";

Error NotOnHost(std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message) + "; nothing was changed",
          "run the container with hostPID: true and securityContext.privileged: true, as root"};
}

// This process sees the host's files from then on.
Result<void> EnterHost() {
  struct stat host = {};
  struct stat own = {};
  constexpr const char* kHost = "/proc/1/ns/mnt";
  if (::stat(kHost, &host) != 0) {
    return NotOnHost(fmt::format("--host can't look at {}: {}", kHost, ::strerror(errno)));
  }
  if (::stat("/proc/self/ns/mnt", &own) == 0 && own.st_ino == host.st_ino &&
      own.st_dev == host.st_dev) {
    return NotOnHost("--host: process 1 has the same files as this one, so it is not the host's");
  }
  const internal::Fd name_space(::open(kHost, O_RDONLY | O_CLOEXEC));
  if (name_space.get() < 0 || ::setns(name_space.get(), CLONE_NEWNS) != 0) {
    return NotOnHost(fmt::format("--host can't enter {}: {}", kHost, ::strerror(errno)));
  }
  // The container's says nothing about the host.
  ::setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
  return {};
}

Result<std::string> OwnBytes() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (file && !bytes.empty()) return bytes;
  return Error{ErrorCode::kIo, "can't read this command's own file, /proc/self/exe",
               "mount /proc, then say the same again; nothing was changed"};
}

class InstallCall final : public Call {
 public:
  void Declare(Flags& flags) override {
    flags.Switch("--host", &host_, "in a privileged container with hostPID: on the host");
    flags.Value("--with-config", &config_, "FILE",
                "as /etc/waybill/config.toml; what it replaces is kept beside it");
    flags.Switch("--restart-kubelet", &restart_kubelet_,
                 "restart a kubelet that ran before the guard; containers run on");
    flags.Switch("--remove", &remove_, "stop the guard, and take away what `install` wrote");
    flags.Switch("--dry-run", &dry_run_, "say what would be written or removed");
    flags.Switch("--hold", &hold_, "do nothing until SIGTERM: for a container that has installed");
    flags.Value("--root", &root_, "DIR",
                "a node whose root directory is there; nothing is enabled or started", kSeldom);
    flags.Excludes(
        "--hold",
        {"--host", "--with-config", "--restart-kubelet", "--remove", "--dry-run", "--root"},
        "--hold changes nothing");
    flags.Excludes("--remove", {"--with-config", "--restart-kubelet"}, "they are for installing");
    flags.Excludes("--root", {"--host", "--restart-kubelet"}, "nothing runs there");
  }

  Result<ExitCode> Run(Output& out) override {
    if (hold_) return Hold(out);
    const std::string command = remove_ ? "" : TRY(OwnBytes());
    std::optional<std::string> config;
    if (config_) config = TRY(ReadInput(*config_, kMaxConfigBytes));
    if (host_) {
      TRY(EnterHost());
    }
    if (config) {
      TRY(CheckConfig(*config));
    }
    const NodeFiles files(root_ ? std::filesystem::absolute(*root_) : "/", WAYBILL_VERSION);
    if (!root_) {
      TRY(CheckNode(files));
    }
    if (remove_) return Remove(files, out);
    ::umask(022);  // of the directories that it makes
    const bool acts = !root_ && !dry_run_;
    const bool ran = acts && Systemctl({"is-active", kGuardUnit}).has_value();
    const bool was_enabled = acts && Systemctl({"is-enabled", kGuardUnit}).has_value();
    auto changes = TRY(files.Install(command, config, dry_run_));
    if (acts) {
      TRY(StartGuard(changes, ran, was_enabled));
    }
    if (!dry_run_) {
      TRY(files.Settle());
    }
    Report(changes, out);
    return ExitCode::kYes;
  }

 private:
  static constexpr std::size_t kMaxConfigBytes = std::size_t{64} << 10;

  // By a command that reads it, as the guard will: a guard that is restarted with one that it
  // refuses leaves its node without a kubelet.
  static Result<void> CheckConfig(const std::string& config) {
    const internal::Fd file(::memfd_create("config.toml", 0));
    const std::string path = fmt::format("/proc/{}/fd/{}", ::getpid(), file.get());
    if (file.get() < 0 || ::fchmod(file.get(), 0600) != 0) {
      return Error{
          ErrorCode::kIo,
          fmt::format("can't hold a file in memory: {}; nothing was changed", ::strerror(errno)),
          {}};
    }
    TRY(internal::PWriteAll(file, config, 0, path));
    const auto ended =
        RunProgram({"/proc/self/exe", "version", "--config", path}, {.errors_too = true});
    if (!ended) {
      return Error{ErrorCode::kIo,
                   "can't check --with-config: " + ended.error() + "; nothing was changed",
                   {}};
    }
    if (ended->status == 0) return {};
    std::string said = ended->output;
    if (said.starts_with("error: " + path + ": ")) said.erase(0, 9 + path.size());
    return BadFlag("--with-config", said.substr(0, said.find('\n')) + "; nothing was changed",
                   "see man waybill-config, or waybill man config");
  }

  // Also as the first process of a container, to which no signal has a default.
  static Result<ExitCode> Hold(Output& out) {
    sigset_t ends;
    ::sigemptyset(&ends);
    ::sigaddset(&ends, SIGTERM);
    ::sigaddset(&ends, SIGINT);
    ::sigprocmask(SIG_BLOCK, &ends, nullptr);
    out.WriteLine("holding until SIGTERM; the guard is a service of the host");
    TRY(out.Flush());
    int signal = 0;
    ::sigwait(&ends, &signal);
    return ExitCode::kYes;
  }

  Result<void> CheckNode(const NodeFiles& files) const {
    // What was installed before the package came can be removed beside it.
    if (!remove_ && TRY(files.HasPackage())) {
      return Error{ErrorCode::kInvalidArgument,
                   "a package of this system has waybill-guard.service; nothing was changed",
                   "let the package manager upgrade or remove it, then say the same again"};
    }
    if (!TRY(internal::Exists("/run/systemd/system"))) {
      return Error{ErrorCode::kInvalidArgument, "systemd does not run here; nothing was changed",
                   "run the guard as a static pod, or by this system's own means: `waybill guard`"};
    }
    if (!WAYBILL_PORTABLE && !remove_) {
      return Error{ErrorCode::kInvalidArgument,
                   "this command needs shared libraries of this system; nothing was changed",
                   "install the package, or take the portable one (waybill version)"};
    }
    return {};
  }

  // Its output, if it ends with 0. A start waits until the guard is ready.
  static tl::expected<std::string, std::string> Systemctl(std::vector<std::string> arguments) {
    const std::string program = FindProgram("systemctl");
    if (program.empty()) return tl::unexpected<std::string>("there is no systemctl");
    arguments.insert(arguments.begin(), program);
    auto ended = RunProgram(std::move(arguments), {.errors_too = true});
    if (!ended) return tl::unexpected(ended.error());
    if (ended->status != 0) {
      std::string said = std::move(ended->output);
      while (said.ends_with('\n')) said.pop_back();
      std::replace(said.begin(), said.end(), '\n', ' ');
      return tl::unexpected(std::move(said));
    }
    return std::move(ended->output);
  }

  // Microseconds since the machine booted; 0: unknown, or never.
  static std::uint64_t When(const char* unit, const char* property) {
    const auto shown = Systemctl({"show", "-P", property, unit});
    std::uint64_t when = 0;
    if (shown) (void)std::from_chars(shown->data(), shown->data() + shown->size(), when);
    return when;
  }

  // A call that was interrupted may have started the guard, and not the kubelet anew.
  static bool KubeletRanBefore() {
    const std::uint64_t kubelet = When("kubelet.service", "ExecMainStartTimestampMonotonic");
    return kubelet != 0 && kubelet < When(kGuardUnit, "ActiveEnterTimestampMonotonic");
  }

  Result<void> StartGuard(const NodeFileChanges& changes, bool ran, bool was_enabled) const {
    const auto failed = [&](const std::string& what, const std::string& why) {
      return Error{ErrorCode::kIo, what + " failed: " + why,
                   "journalctl -u waybill-guard says why; mend it and say the same again, or "
                   "`waybill install --remove`"};
    };
    if (const std::string program = FindProgram("systemd-tmpfiles"); !program.empty()) {
      (void)RunProgram({program, "--create", "/etc/tmpfiles.d/waybill.conf"});
    }
    if (auto done = Systemctl({"daemon-reload"}); !done) {
      return failed("systemctl daemon-reload", done.error());
    }
    if (auto done = Systemctl({"enable", kGuardUnit}); !done) {
      return failed("systemctl enable " + std::string(kGuardUnit), done.error());
    }
    if (!Systemctl({"cat", "kubelet.service"})) {
      Note(
          "systemd knows no kubelet.service: the guard runs, but nothing keeps the kubelet from "
          "starting before it, or going on without it");
    }
    const char* const verb =
        ran && (!changes.written.empty() || changes.was_interrupted) ? "restart" : "start";
    if (auto done = Systemctl({verb, kGuardUnit}); !done) {
      // While it is enabled, no kubelet starts without it; a node that had it keeps to that.
      if (!was_enabled) (void)Systemctl({"disable", "--now", kGuardUnit});
      return failed(
          fmt::format("systemctl {} {}", verb, kGuardUnit),
          done.error() + (was_enabled ? "; it stays enabled, so no kubelet starts without it"
                                      : "; it is disabled, so the kubelet goes on alone"));
    }
    if (restart_kubelet_ && (!ran || KubeletRanBefore())) {
      if (auto done = Systemctl({"try-restart", "kubelet.service"}); !done) {
        return failed("systemctl try-restart kubelet.service", done.error());
      }
    }
    return {};
  }

  Result<ExitCode> Remove(const NodeFiles& files, Output& out) const {
    auto changes = TRY(files.Remove(true));
    if (!changes.was.empty() && !dry_run_) {
      // The package's units have the same names, and go on where these were enabled.
      const bool has_package = !root_ && TRY(files.HasPackage());
      std::vector<std::string> enabled;
      for (const char* const unit : {kGuardUnit, "waybill-metrics.timer", "waybill-prune.timer"}) {
        if (root_) break;
        if (has_package) {
          if (Systemctl({"is-enabled", unit})) enabled.emplace_back(unit);
        } else if (!Systemctl({"cat", unit})) {
          // A call that was interrupted did not write it, or has removed it.
          (void)Systemctl({"stop", unit});
        } else if (auto done = Systemctl({"disable", "--now", unit}); !done) {
          // In this order: a guard that is enabled takes its kubelet along.
          return Error{ErrorCode::kIo,
                       fmt::format("systemctl disable --now {} failed: {}", unit, done.error()),
                       "no file was removed; mend it and say the same again"};
        }
      }
      changes = TRY(files.Remove(false));
      if (!root_) (void)Systemctl({"daemon-reload"});
      for (const std::string& unit : enabled) {
        auto done = Systemctl({"reenable", unit});
        if (done) done = Systemctl({"restart", unit});
        if (!done) {
          return Error{ErrorCode::kIo, fmt::format("restarting {} failed: {}", unit, done.error()),
                       fmt::format("the files are removed, and the package's are there: systemctl "
                                   "enable {0} && systemctl restart {0}",
                                   unit)};
        }
      }
    }
    Report(changes, out);
    return ExitCode::kYes;
  }

  void Report(const NodeFileChanges& changes, Output& out) const {
    WriteDryRun(dry_run_, out);
    for (const auto& [word, paths] : {std::pair{"written", &changes.written},
                                      {"removed", &changes.removed},
                                      {"kept as it is", &changes.kept}}) {
      for (const std::string& path : *paths) out.Line("{:<14} {}", word, path);
    }
    if (changes.set_aside) {
      out.Line("{:<14} {}", remove_ ? "put back" : "set aside", *changes.set_aside);
    }
    for (const std::string& path : remove_ ? changes.removed : changes.written) out.WriteName(path);
    if (remove_) {
      if (changes.was.empty()) out.Line("nothing that `waybill install` wrote is here");
      if (!changes.was.empty()) out.Line("stays          {}", kStays);
    } else if (root_) {
      out.Line("not enabled: systemctl --root={} enable {}", *root_, kGuardUnit);
    } else if (!dry_run_) {
      out.Line("the guard runs, {}; waybill doctor says whether the node is protected",
               WAYBILL_VERSION);
    }
    out.WriteJson({{"was", changes.was.empty() ? Json() : Json(changes.was)},
                   {"written", changes.written},
                   {"unchanged", changes.unchanged},
                   {"removed", changes.removed},
                   {"kept", changes.kept},
                   {"setAside", changes.set_aside ? Json(*changes.set_aside) : Json()},
                   {"dryRun", dry_run_}});
  }

  bool host_ = false;
  bool restart_kubelet_ = false;
  bool remove_ = false;
  bool dry_run_ = false;
  bool hold_ = false;
  std::optional<std::string> config_;
  std::optional<std::string> root_;
};

}  // namespace

Command InstallCommand() {
  return {.name = "install",
          .task = kTaskTakeOver,
          .summary = "put this command and the guard's service onto the node, or take them away",
          .notes =
              R"(For nodes without the package: copies itself to /opt/waybill/bin, with a link in
/usr/local/bin, writes units and a configuration, enables the guard, and waits until it
is ready. Said again, it changes what differs, and restarts the guard only then. A guard
that can't start for the first time is disabled again, so that it keeps no kubelet back.
What somebody changed is kept, and named. --remove leaves stores and witnesses.)",
          .examples = R"(waybill install --restart-kubelet
waybill install --host --with-config /etc/waybill-config/config.toml
waybill install --remove)",
          .call = New<InstallCall>};
}

}  // namespace waybill::cli
