#include "store/base/rooted_files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "store/base/quote.h"
#include "store/base/try.h"

namespace waybill::internal {
namespace {

namespace fs = std::filesystem;

Error TooMuch(const fs::path& path, std::size_t most, const char* what) {
  return {ErrorCode::kLimitExceeded,
          QuoteForMessage(path.string()) + " has more than " + std::to_string(most) + what,
          {}};
}

}  // namespace

int RootedFiles::Try(const fs::path& path, int flags) const {
  // A pipe in the place of a file must not hold the caller.
  flags |= O_CLOEXEC | ((flags & O_PATH) == 0 ? O_NONBLOCK | O_NOCTTY : 0);
  if (IsThisMachine()) return ::open(path.c_str(), flags);
  const Fd root(::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return -1;
  open_how how = {};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof(how)));
}

Result<Fd> RootedFiles::Open(const fs::path& path, int flags) const {
  Fd fd(Try(path, flags));
  if (fd.valid()) return fd;
  const int error = errno;
  if (error == ENOENT && Fd(Try(path, O_PATH | O_NOFOLLOW)).valid()) {
    return Error{
        ErrorCode::kInvalidArgument, QuoteForMessage(path.string()) + " leads to nothing", {}};
  }
  return SystemError(error, "read", path);
}

Result<fs::path> RootedFiles::Resolve(const fs::path& path) const {
  const Fd fd = TRY(Open(path, O_PATH));
  return IsThisMachine() ? path : PathOf(fd.get());
}

Result<std::string> RootedFiles::Read(const fs::path& path, std::size_t most) const {
  const Fd fd = TRY(Open(path, O_RDONLY));
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0) return SystemError(errno, "look at", path);
  if (!S_ISREG(status.st_mode)) {
    return Error{
        ErrorCode::kInvalidArgument, QuoteForMessage(path.string()) + " is not a file", {}};
  }
  // What it says of its size is nothing in /proc.
  std::string content;
  char buffer[8192];
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(errno, "read", path);
    if (got == 0) return content;
    content.append(buffer, static_cast<std::size_t>(got));
    if (content.size() > most) return TooMuch(path, most, " bytes");
  }
}

Result<std::vector<std::string>> RootedFiles::List(const fs::path& path, std::size_t most) const {
  auto names = TRY(ListDirectory(TRY(Resolve(path))));
  if (names.size() > most) return TooMuch(path, most, " entries");
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace waybill::internal
