// waybill install: puts the command, its units and its configuration onto a node, starts the guard,
// and takes all of it away again. In a container it does so on the host.

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    flags.Switch("--host", &host_,
                 "in a container with hostPID and privileged: on the host, whose files are\n"
                 "those of process 1");
    flags.Value("--with-config", &config_, "FILE",
                "as /etc/waybill/config.toml; what it replaces is kept beside it, if\n"
                "`install` did not write that itself");
    flags.Switch("--restart-kubelet", &restart_kubelet_,
                 "where the guard did not run before: restart the kubelet, so that it starts\n"
                 "beside the guard; its containers run on");
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
    const NodeFiles files(root_ ? std::filesystem::absolute(*root_) : "/", WAYBILL_VERSION);
    if (!root_) {
      TRY(CheckNode(files));
    }
    if (remove_) return Remove(files, out);
    const bool ran = !root_ && !dry_run_ && Systemctl({"is-active", kGuardUnit}).has_value();
    auto changes = TRY(files.Install(command, config, dry_run_));
    if (!root_ && !dry_run_) {
      TRY(StartGuard(changes, ran));
    }
    Report(changes, out);
    return ExitCode::kYes;
  }

 private:
  static constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;

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
    if (ended->status != 0) return tl::unexpected(ended->output);
    return std::move(ended->output);
  }

  Result<void> StartGuard(const NodeFileChanges& changes, bool ran) const {
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
    const char* const verb = ran && !changes.written.empty() ? "restart" : "start";
    if (auto done = Systemctl({verb, kGuardUnit}); !done) {
      // While it is enabled, no kubelet starts without it.
      if (!ran) (void)Systemctl({"disable", "--now", kGuardUnit});
      return failed(fmt::format("systemctl {} {}", verb, kGuardUnit),
                    done.error() + (ran ? "" : "; it is disabled, so the kubelet goes on alone"));
    }
    if (restart_kubelet_ && !ran) {
      if (auto done = Systemctl({"try-restart", "kubelet.service"}); !done) {
        return failed("systemctl try-restart kubelet.service", done.error());
      }
    }
    return {};
  }

  Result<ExitCode> Remove(const NodeFiles& files, Output& out) const {
    auto changes = TRY(files.Remove(true));
    if (!changes.was.empty() && !dry_run_) {
      if (!root_) {
        // In this order: a guard that is enabled takes its kubelet along.
        auto done = Systemctl(
            {"disable", "--now", kGuardUnit, "waybill-metrics.timer", "waybill-prune.timer"});
        if (!done) {
          return Error{ErrorCode::kIo, "systemctl disable --now failed: " + done.error(),
                       "no file was removed; mend it and say the same again"};
        }
      }
      changes = TRY(files.Remove(false));
      if (!root_) (void)Systemctl({"daemon-reload"});
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
    if (changes.set_aside)
      out.Line("{:<14} {}", remove_ ? "put back" : "set aside", *changes.set_aside);
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
  return {
      .name = "install",
      .task = kTaskTakeOver,
      .summary = "put this command and the guard's service onto the node, or take them away",
      .notes =
          R"(For nodes without the package: copies itself to /opt/waybill/bin/waybill, with a link in
/usr/local/bin, writes the units into /etc/systemd/system and a configuration into
/etc/waybill, enables the guard, and waits until it is ready. Said again, it changes what
differs, and restarts the guard only then; that is how a newer one is installed. A guard
that can't start for the first time is disabled again, so that it keeps no kubelet back.
What somebody changed is kept, and named. --remove leaves stores and witnesses.)",
      .examples = R"(waybill install --restart-kubelet
waybill install --host --with-config /etc/waybill-config/config.toml
waybill install --remove)",
      .call = New<InstallCall>};
}

}  // namespace waybill::cli
