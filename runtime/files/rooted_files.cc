#include "runtime/files/rooted_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "store/base/quote.h"
#include "store/base/try.h"
#include "waybill/limits.h"

namespace waybill::internal {
namespace {

int OpenBelow(int root, const std::string& path, int flags) {
  open_how how = {};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how)));
}

}  // namespace

int RootedFiles::Try(const std::string& path, int flags) const {
  // A pipe in the place of a file must not hold the caller.
  flags |= O_CLOEXEC | ((flags & O_PATH) == 0 ? O_NONBLOCK | O_NOCTTY : 0);
  if (root_.empty() || root_ == "/") return ::open(path.c_str(), flags);
  const Fd root(::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return root.valid() ? OpenBelow(root.get(), path, flags) : -1;
}

Result<Fd> RootedFiles::Open(const std::string& path, int flags) const {
  Fd fd(Try(path, flags));
  if (fd.valid()) return fd;
  if (errno != ENOENT) return SystemError(errno, "open", path);
  // A symlink that leads nowhere may lead somewhere for the runtime.
  const Fd link(Try(path, O_PATH | O_NOFOLLOW));
  if (!link.valid()) return fd;
  return Error{ErrorCode::kInvalidArgument, QuoteForMessage(path) + " leads to nothing", {}};
}

Result<std::optional<std::string>> RootedFiles::ReadFile(const std::string& path) const {
  const Fd fd = TRY(Open(path, O_RDONLY));
  if (!fd.valid()) return std::optional<std::string>();
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0) return SystemError(errno, "look at", path);
  if (!S_ISREG(status.st_mode)) {
    return Error{ErrorCode::kInvalidArgument, QuoteForMessage(path) + " is not a file", {}};
  }
  // One byte more than it says shows its end, unless it grows.
  const auto said = static_cast<std::size_t>(std::max<off_t>(status.st_size, 0));
  std::string content(std::min(said, kMaxPullConfigBytes) + 1, '\0');
  std::size_t size = 0;
  while (size <= kMaxPullConfigBytes) {
    if (size == content.size()) content.resize(std::min(2 * size, kMaxPullConfigBytes + 1));
    const ssize_t got = ::read(fd.get(), content.data() + size, content.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(errno, "read", path);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > kMaxPullConfigBytes) {
    return Error{
        ErrorCode::kLimitExceeded,
        QuoteForMessage(path) + " has more than " + std::to_string(kMaxPullConfigBytes) + " bytes",
        {}};
  }
  content.resize(size);
  return std::optional<std::string>(std::move(content));
}

Result<std::vector<std::string>> RootedFiles::ListFolder(const std::string& path) const {
  std::vector<std::string> names;
  Fd fd = TRY(Open(path, O_RDONLY | O_DIRECTORY));
  if (!fd.valid()) return names;
  // The stream closes its descriptor.
  const int copy = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return SystemError(errno, "open", path);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(copy), ::closedir);
  if (stream == nullptr) {
    ::close(copy);
    return SystemError(errno, "list", path);
  }
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (names.size() == kMaxPullConfigFiles) {
      return Error{ErrorCode::kLimitExceeded,
                   QuoteForMessage(path) + " has more than " + std::to_string(kMaxPullConfigFiles) +
                       " entries",
                   {}};
    }
    names.push_back(name);
  }
  if (errno != 0) return SystemError(errno, "list", path);
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::string> RootedFiles::Read(const std::string& path) const {
  return OrProblem(path, ReadFile(path));
}

bool RootedFiles::IsThere(const std::string& path) const {
  return OrProblem(path, Open(path, O_PATH)).valid();
}

std::vector<std::string> RootedFiles::List(const std::string& path) const {
  return OrProblem(path, ListFolder(path));
}

}  // namespace waybill::internal
