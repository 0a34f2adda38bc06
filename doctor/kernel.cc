// What the kernel that runs says of file systems.

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "doctor/node.h"
#include "guard/opening.h"
#include "guard/session.h"
#include "store/base/files.h"
#include "waybill/values.h"

namespace waybill::doctor {
namespace {

Result<DiskSpace> SpaceOf(const std::filesystem::path& path) {
  struct statvfs status = {};
  if (::statvfs(path.c_str(), &status) != 0) {
    return internal::SystemError(errno, "ask the file system of", path);
  }
  return DiskSpace{.total = status.f_blocks * status.f_frsize,
                   .available = status.f_bavail * status.f_frsize,
                   .inodes = status.f_files,
                   .inodes_free = status.f_favail};
}

// --- In children, which may only make system calls: this process has threads --------------------

bool WriteMap(pid_t pid, const char* name) {
  constexpr char kMap[] = "0 65536 65536\n";
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/%s", static_cast<int>(pid), name);
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = ::write(fd, kMap, sizeof kMap - 1) == sizeof kMap - 1;
  ::close(fd);
  return written;
}

// A process in a user namespace of its own, which lives as long as the one that made it. -1: errno
// says why.
pid_t MakeUserNamespace() {
  int ready[2];
  if (::pipe(ready) != 0) return -1;
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(0);
    const int error = ::unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
    if (::write(ready[1], &error, sizeof error) != sizeof error) ::_exit(1);
    // What unshare did to the signal.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(0);
    for (;;) ::pause();
  }
  ::close(ready[1]);
  int error = pid < 0 ? errno : EIO;
  if (pid > 0 && ::read(ready[0], &error, sizeof error) != sizeof error) error = EIO;
  ::close(ready[0]);
  if (error == 0 && WriteMap(pid, "uid_map") && WriteMap(pid, "gid_map")) return pid;
  if (error == 0) error = errno;
  if (pid > 0) ::kill(pid, SIGKILL);
  errno = error;
  return -1;
}

// What the child ends with.
constexpr int kMaps = 0;
constexpr int kDoesNot = 1;
constexpr int kNotAllowed = 2;
constexpr int kCouldNot = 3;

// On a copy of the mount that is attached nowhere, in a mount namespace of its own.
int TryToMapIds(const char* path) {
  const auto failed = [] { return errno == EPERM || errno == EACCES ? kNotAllowed : kCouldNot; };
  if (::unshare(CLONE_NEWNS) != 0) return failed();
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return failed();
  const pid_t pid = MakeUserNamespace();
  if (pid < 0) return failed();
  char name[64];
  std::snprintf(name, sizeof name, "/proc/%d/ns/user", static_cast<int>(pid));
  const int space = ::open(name, O_RDONLY | O_CLOEXEC);
  const auto tree = static_cast<int>(
      ::syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  int result = kCouldNot;
  if (space < 0 || tree < 0) {
    result = failed();
  } else {
    mount_attr attributes = {};
    attributes.attr_set = MOUNT_ATTR_IDMAP;
    attributes.userns_fd = static_cast<__u64>(space);
    const auto set =
        ::syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attributes, sizeof attributes);
    result = set == 0 ? kMaps : errno == EINVAL ? kDoesNot : failed();
  }
  ::kill(pid, SIGKILL);
  return result;
}

// --- Back in this process ------------------------------------------------------------------------

Result<bool> MapsIds(const std::filesystem::path& path) {
  const auto could_not = [](std::string why) {
    return Error{ErrorCode::kUnavailable, "it could not be tried: " + std::move(why),
                 "run it as root, outside a container"};
  };
  const pid_t pid = ::fork();
  if (pid < 0) return could_not(std::strerror(errno));
  if (pid == 0) ::_exit(TryToMapIds(path.c_str()));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  switch (WIFEXITED(status) ? WEXITSTATUS(status) : kCouldNot) {
    case kMaps:
      return true;
    case kDoesNot:
      return false;
    case kNotAllowed:
      return could_not("this process may not make mounts");
    default:
      return could_not("the kernel refused a mount of its own");
  }
}

}  // namespace

Kernel ThisKernel() {
  return {.space = SpaceOf,
          .maps_ids = MapsIds,
          .is_locked = guard::IsLocked,
          .was_used = guard::WasUsed,
          .now = SystemClock,
          .read_store = {}};
}

}  // namespace waybill::doctor
