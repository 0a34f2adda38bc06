#include "bindings/cli/proc_id_maps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <tuple>
#include <utility>

#include "bindings/cli/failed_path.h"
#include "store/base/files.h"
#include "store/base/try.h"
#include "waybill/limits.h"

namespace waybill::cli {
namespace {

using internal::Fd;

constexpr std::uint64_t kAllIds = kHostIds - 1;  // 2^32-1 is never mapped
constexpr int kReadTries = 3;

// About the flag that names the directory.
Error Wrong(std::string_view what, std::string hint = {}) {
  return {ErrorCode::kInvalidArgument, fmt::format("--proc: {}", what), std::move(hint)};
}

Error Failed(const std::string& proc, int error_number) {
  Error failed = FailedPath(proc, error_number);
  failed.message = fmt::format("--proc: {}: {}", proc, ::strerror(error_number));
  return failed;
}

enum class ReadState : std::uint8_t { kRead, kGone, kUnreadable };

// A file in an open /proc/PID, up to `most` bytes. What is no regular file, a pipe for one, is not
// waited for.
ReadState ReadFileAt(const Fd& directory, const char* name, std::size_t most, std::string& text) {
  text.clear();
  const Fd file(
      ::openat(directory.get(), name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  const auto failed = [] {
    return errno == ENOENT || errno == ESRCH ? ReadState::kGone : ReadState::kUnreadable;
  };
  if (!file.valid()) return failed();
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) return failed();
  if (!S_ISREG(status.st_mode)) return ReadState::kUnreadable;
  std::array<char, 4096> buffer = {};
  while (text.size() <= most) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got == 0) return ReadState::kRead;
    if (got < 0 && errno != EINTR) return failed();
    text.append(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  return ReadState::kUnreadable;
}

ReadState ReadIdMap(const Fd& directory, const char* name, IdMap& ids) {
  std::string text;
  if (const ReadState state = ReadFileAt(directory, name, kMaxUsernsFileBytes, text);
      state != ReadState::kRead) {
    return state;
  }
  auto parsed = ParseIdMap(text);
  if (!parsed) return ReadState::kUnreadable;
  ids = *std::move(parsed);
  return ReadState::kRead;
}

// Both maps of one namespace: a process may enter another between the two.
ReadState ReadBothMaps(const Fd& directory, IdMap& uids, IdMap& gids) {
  for (int i = 0; i < kReadTries; ++i) {
    IdMap again;
    for (auto [name, ids] :
         {std::pair("uid_map", &uids), {"gid_map", &gids}, {"uid_map", &again}}) {
      const ReadState state = ReadIdMap(directory, name, *ids);
      if (state != ReadState::kRead) return state;
    }
    if (uids == again) return ReadState::kRead;
  }
  return ReadState::kUnreadable;
}

Fd OpenAt(const Fd& directory, const char* name, int flags) {
  return Fd(::openat(directory.get(), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags));
}

// The reader's own maps.
Result<void> CheckReader(const Fd& root, const std::string& proc) {
  errno = 0;
  const Fd self = OpenAt(root, "self", 0);
  IdMap uids;
  IdMap gids;
  if (!self.valid() || ReadBothMaps(self, uids, gids) != ReadState::kRead) {
    Error failed = Failed(proc, errno);
    if (failed.code == ErrorCode::kIo) return failed;
    return Wrong(fmt::format("{0}/self/uid_map and gid_map can't be read: {0} is not the /proc of "
                             "this process",
                             proc),
                 "name the /proc of the host's PID namespace, and run this in that namespace");
  }
  if (IsHosts(uids) && IsHosts(gids)) return {};
  return Wrong(fmt::format("{}/self/uid_map says that this process is in a user namespace, so the "
                           "IDs that it reads are not the host's",
                           proc),
               "run this in the host's user namespace");
}

// The names of processes, in order.
Result<std::vector<std::uint64_t>> ListProcesses(const Fd& root, const std::string& proc) {
  const int copy = ::fcntl(root.get(), F_DUPFD_CLOEXEC, 0);
  DIR* const directory = copy < 0 ? nullptr : ::fdopendir(copy);
  if (directory == nullptr) {
    const int error = errno;
    if (copy >= 0) ::close(copy);
    return Failed(proc, error);
  }
  std::vector<std::uint64_t> pids;
  errno = 0;
  while (const dirent* const entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    std::uint64_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc() && end == name.data() + name.size()) pids.push_back(pid);
    errno = 0;
  }
  const int error = errno;
  ::closedir(directory);
  if (error != 0) return Failed(proc, error);
  std::sort(pids.begin(), pids.end());
  return pids;
}

auto KeyOf(const IdMap& ids) {
  std::vector<std::array<std::uint32_t, 3>> key;
  key.reserve(ids.size());
  for (const IdMapping& one : ids) key.push_back({one.host_id, one.container_id, one.length});
  return key;
}

}  // namespace

std::optional<IdMap> ParseIdMap(std::string_view text) {
  IdMap ids;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos || ids.size() == kMaxMappingsPerFile) return std::nullopt;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    std::array<std::uint32_t, 3> numbers{};
    for (std::uint32_t& number : numbers) {
      line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      const auto [after, error] = std::from_chars(line.data(), line.data() + line.size(), number);
      if (error != std::errc()) return std::nullopt;
      line.remove_prefix(static_cast<std::size_t>(after - line.data()));
      if (!line.empty() && line[0] != ' ') return std::nullopt;
    }
    if (line.find_first_not_of(' ') != std::string_view::npos) return std::nullopt;
    const auto [inside, host, length] = numbers;
    const std::uint64_t most = kAllIds - length;
    if (length == 0 || inside > most || host > most) return std::nullopt;
    ids.push_back({host, inside, length});
  }
  return ids;
}

bool IsHosts(const IdMap& ids) {
  return ids.size() == 1 && ids[0] == IdMapping{0, 0, static_cast<std::uint32_t>(kAllIds)};
}

std::string PodOfCgroup(std::string_view text) {
  // /kubepods/burstable/pod5f0c-…/CONTAINER, or, by systemd,
  // /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod5f0c_….slice/cri-….scope
  const std::size_t kubepods = text.find("/kubepods");
  if (kubepods == std::string_view::npos) return {};
  text = text.substr(kubepods + 1);
  text = text.substr(0, text.find('\n'));
  while (!text.empty()) {
    std::string_view name = text.substr(0, text.find('/'));
    text.remove_prefix(std::min(name.size() + 1, text.size()));
    if (name.starts_with("pod")) return std::string(name.substr(3));
    const std::size_t pod = name.find("-pod");
    if (!name.starts_with("kubepods") || pod == std::string_view::npos) continue;
    name = name.substr(pod + 4);
    if (!name.ends_with(".slice")) continue;
    name.remove_suffix(6);
    std::string uid(name);
    std::replace(uid.begin(), uid.end(), '_', '-');
    return uid;
  }
  return {};
}

Result<ProcIdMaps> ReadProcIdMaps(const std::string& proc) {
  if (proc.empty()) return Wrong("the value is empty");
  const Fd root(::open(proc.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return Failed(proc, errno);
  TRY(CheckReader(root, proc));
  auto pids = TRY(ListProcesses(root, proc));
  ProcIdMaps all;
  using Key = std::vector<std::array<std::uint32_t, 3>>;
  std::map<std::tuple<Key, Key, std::string>, MappedProcesses> groups;
  for (const std::uint64_t pid : pids) {
    const Fd process = OpenAt(root, std::to_string(pid).c_str(), O_NOFOLLOW);
    IdMap uids;
    IdMap gids;
    ReadState state = ReadState::kUnreadable;
    if (process.valid()) {
      state = ReadBothMaps(process, uids, gids);
    } else if (errno == ENOENT || errno == ESRCH) {
      state = ReadState::kGone;
    }
    if (state == ReadState::kGone) continue;
    ++all.processes;
    if (state == ReadState::kUnreadable) ++all.unreadable;
    if (state != ReadState::kRead || (IsHosts(uids) && IsHosts(gids))) continue;
    std::string cgroup;
    if (ReadFileAt(process, "cgroup", kMaxUsernsFileBytes, cgroup) != ReadState::kRead) {
      cgroup.clear();
    }
    std::string pod = PodOfCgroup(cgroup);
    MappedProcesses& group = groups[{KeyOf(uids), KeyOf(gids), pod}];
    if (group.count++ == 0) {
      group.uids = std::move(uids);
      group.gids = std::move(gids);
      group.cgroup_pod = std::move(pod);
    }
    if (group.pids.size() < kMaxNamedProcesses) group.pids.push_back(pid);
  }
  for (auto& [key, group] : groups) all.mapped.push_back(std::move(group));
  return all;
}

}  // namespace waybill::cli
