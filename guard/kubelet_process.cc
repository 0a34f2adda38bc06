#include "guard/kubelet_process.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "guard/session.h"
#include "store/base/ascii.h"
#include "store/base/files.h"

namespace waybill::guard {
namespace {

constexpr std::string_view kUsualRoot = "/var/lib/kubelet";
// What the adapter for kubelets calls its store's directory (bindings/go/kubelet).
constexpr std::string_view kStoreInKubelet = "waybill";
constexpr std::size_t kMaxCommandLine = std::size_t{1} << 20;

bool Answers(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& text = path.native();
  if (text.size() >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, text.data(), text.size());
  const internal::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return false;
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return true;
  }
  return errno == EAGAIN;  // one that is busy
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

}  // namespace

bool KubeletRuns(const std::filesystem::path& kubelet_directory,
                 const std::filesystem::path& proc) {
  if (Answers(kubelet_directory / "pod-resources" / "kubelet.sock")) return true;
  auto processes = internal::ListDirectory(proc);
  if (!processes) return false;
  return std::any_of(processes->begin(), processes->end(), [&](const std::string& pid) {
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
}

std::string KubeletLife(const std::filesystem::path& kubelet_directory) {
  const std::filesystem::path socket = kubelet_directory / "pod-resources" / "kubelet.sock";
  struct stat st {};
  if (::lstat(socket.c_str(), &st) != 0) return {};
  return std::to_string(st.st_ino) + "-" + std::to_string(st.st_ctim.tv_sec) + "." +
         std::to_string(st.st_ctim.tv_nsec);
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
