#include "guard/kubelet_process.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "guard/session.h"
#include "store/base/ascii.h"
#include "store/base/command_line.h"
#include "store/base/files.h"
#include "store/base/hex.h"

namespace waybill::guard {
namespace {

const std::string kUsualRoot = "/var/lib/kubelet";
// What the adapter for kubelets calls its store's directory (bindings/go/kubelet).
constexpr std::string_view kStoreInKubelet = "waybill";
constexpr std::size_t kMaxCommandLine = std::size_t{1} << 20;
constexpr std::size_t kMaxStat = 4096;

// Of whoever listens at the socket: 0 if it is busy, or of another PID namespace. nullopt: nobody.
std::optional<pid_t> Listener(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& text = path.native();
  if (text.size() >= sizeof(address.sun_path)) return std::nullopt;
  std::memcpy(address.sun_path, text.data(), text.size());
  const internal::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return std::nullopt;
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return errno == EAGAIN ? std::optional<pid_t>(0) : std::nullopt;
  }
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return 0;
  return std::max<pid_t>(peer.pid, 0);
}

// The name of its folder in /proc; "": it answers, but its process is not known. nullopt: none
// runs.
std::optional<std::string> KubeletProcess(const std::filesystem::path& kubelet_directory,
                                          const std::filesystem::path& proc) {
  const auto listener = Listener(kubelet_directory / "pod-resources" / "kubelet.sock");
  if (listener) return *listener == 0 ? std::string() : std::to_string(*listener);
  auto processes = internal::ListDirectory(proc);
  if (!processes) return std::nullopt;
  const auto at = std::find_if(processes->begin(), processes->end(), [&](const std::string& pid) {
    if (pid.empty() || !internal::IsDigit(pid.front())) return false;
    // Any process can have this name.
    struct stat owner {};
    if (::stat((proc / pid).c_str(), &owner) != 0) return false;
    if (owner.st_uid != 0 && owner.st_uid != ::geteuid()) return false;
    auto command_line = internal::ReadWholeFile(proc / pid / "cmdline", kMaxCommandLine);
    if (!command_line) return false;
    const auto line = internal::CommandLine::Of(*command_line);
    if (line.words.empty() || std::filesystem::path(line.words[0]).filename() != "kubelet") {
      return false;
    }
    const std::string root = line.Flag("root-dir");
    std::error_code ignored;
    return std::filesystem::equivalent(root.empty() ? kUsualRoot : root, kubelet_directory,
                                       ignored);
  });
  return at == processes->end() ? std::nullopt : std::optional(*at);
}

std::optional<std::int64_t> TicksAtStart(const std::filesystem::path& stat) {
  const auto text = internal::ReadWholeFile(stat, kMaxStat);
  return text ? internal::StartOf(*text) : std::nullopt;
}

// The socket that a kubelet makes at its start.
std::string SocketOf(const std::filesystem::path& kubelet_directory) {
  const std::filesystem::path socket = kubelet_directory / "pod-resources" / "kubelet.sock";
  struct stat st {};
  if (::lstat(socket.c_str(), &st) != 0) return "unknown";
  return "socket " + std::to_string(st.st_ino) + " " + std::to_string(st.st_ctim.tv_sec) + "." +
         std::to_string(st.st_ctim.tv_nsec);
}

}  // namespace

std::optional<RunningKubelet> KubeletFinder::operator()() {
  const std::filesystem::path stat = proc_ / process_ / "stat";
  if (!process_.empty()) {
    // Only what is seen to be gone is gone.
    const auto text = internal::ReadWholeFile(stat, kMaxStat);
    if (!text && text.error().code != ErrorCode::kNotFound) return found_;
    if (TicksAtStart(stat) == ticks_) return found_;
    if (!internal::ListDirectory(proc_)) return found_;
  }
  process_.clear();
  const auto process = KubeletProcess(kubelet_directory_, proc_);
  if (!process) {
    found_.reset();
    return std::nullopt;
  }
  const auto ticks = process->empty() ? std::nullopt : TicksAtStart(proc_ / *process / "stat");
  if (!ticks) return RunningKubelet{.life = SocketOf(kubelet_directory_)};
  const std::int64_t per_second = ::sysconf(_SC_CLK_TCK);
  const std::int64_t since_boot = *ticks / per_second * kNanosecondsPerSecond +
                                  *ticks % per_second * (kNanosecondsPerSecond / per_second);
  const BootTime now = SystemBootClock();
  timespec wall{};
  ::clock_gettime(CLOCK_REALTIME, &wall);
  process_ = *process;
  ticks_ = *ticks;
  found_ = RunningKubelet{
      .life = internal::HexEncode(now.boot_id) + " " + process_ + " " + std::to_string(ticks_),
      .began = std::int64_t{wall.tv_sec} * kNanosecondsPerSecond + wall.tv_nsec -
               (now.nanoseconds - since_boot)};
  return found_;
}

bool IsKubeletWithStore(const std::filesystem::path& kubelet_directory,
                        const std::filesystem::path& own_store) {
  const std::filesystem::path inside = kubelet_directory / kStoreInKubelet;
  return !internal::IsSameFile(inside, own_store) &&
         IsLocked(inside / "owner.lock").value_or(false);
}

Result<void> CheckNoneInside(const std::filesystem::path& kubelet_directory,
                             const std::filesystem::path& own_store) {
  if (!IsKubeletWithStore(kubelet_directory, own_store)) return {};
  return Error{ErrorCode::kOwned,
               "the kubelet on " + kubelet_directory.string() +
                   " has waybill inside, and needs no guard: `systemctl disable --now "
                   "waybill-guard` (it owns " +
                   (kubelet_directory / kStoreInKubelet).string() + ")",
               ""};
}

}  // namespace waybill::guard
