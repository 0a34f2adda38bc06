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
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "guard/session.h"
#include "store/base/ascii.h"
#include "store/base/files.h"
#include "store/base/hex.h"

namespace waybill::guard {
namespace {

constexpr std::string_view kUsualRoot = "/var/lib/kubelet";
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

std::vector<std::string> Words(const std::string& command_line) {
  std::vector<std::string> words;
  std::size_t at = 0;
  while (at < command_line.size()) {
    const std::size_t end = std::min(command_line.find('\0', at), command_line.size());
    words.push_back(command_line.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// The directory that a kubelet's command line names.
std::string RootOf(const std::vector<std::string>& words) {
  std::string root(kUsualRoot);
  for (std::size_t i = 1; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (!word.starts_with('-')) continue;
    word.remove_prefix(word.starts_with("--") ? 2 : 1);
    if (word == "root-dir" && i + 1 < words.size()) root = words[i + 1];
    if (word.starts_with("root-dir=")) root = word.substr(word.find('=') + 1);
  }
  return root;
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
    const auto words = Words(*command_line);
    if (words.empty() || std::filesystem::path(words[0]).filename() != "kubelet") return false;
    std::error_code ignored;
    return std::filesystem::equivalent(RootOf(words), kubelet_directory, ignored);
  });
  return at == processes->end() ? std::nullopt : std::optional(*at);
}

// When the process began, in ticks since the boot. nullopt: it is gone, or has ended.
std::optional<std::int64_t> TicksAtStart(const std::filesystem::path& stat) {
  const auto text = internal::ReadWholeFile(stat, kMaxStat);
  if (!text) return std::nullopt;
  // proc(5): the name, in parentheses, may hold anything; field 22, starttime, is the 20th after
  // it.
  std::istringstream fields(text->substr(std::min(text->rfind(')'), text->size() - 1) + 1));
  std::string state;
  std::string skipped;
  fields >> state;
  if (state == "Z" || state == "X") return std::nullopt;
  for (int i = 0; i < 18; ++i) fields >> skipped;
  std::int64_t ticks = 0;
  return fields >> ticks && ticks >= 0 ? std::optional(ticks) : std::nullopt;
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

bool KubeletRuns(const std::filesystem::path& kubelet_directory,
                 const std::filesystem::path& proc) {
  return KubeletProcess(kubelet_directory, proc).has_value();
}

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
