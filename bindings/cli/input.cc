#include "bindings/cli/input.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "bindings/cli/parse.h"
#include "runtime/files/documents.h"
#include "store/base/files.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::cli {

Error FailedPath(const std::string& path, int error_number) {
  switch (error_number) {
    case EINTR:
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EIO:
    case EUCLEAN:
    case EBADMSG:
    case EREMOTEIO:
    case ENODATA:
    case ETIMEDOUT:
      return internal::SystemError(error_number, "read", path);
    default:
      return {ErrorCode::kInvalidArgument, {}, {}};
  }
}

namespace {

Error Unreadable(const std::string& path, int error) {
  if (path == "-" && error == EBADF) {
    return {ErrorCode::kInvalidArgument, "standard input is closed",
            "name a file, or connect a pipe"};
  }
  Error failed = FailedPath(path, error);
  failed.message = fmt::format("{} could not be read: {}", InputName(path), ::strerror(error));
  return failed;
}

Result<std::string> ReadAll(int fd, const std::string& path, std::size_t most) {
  constexpr std::size_t kStep = std::size_t{64} << 10;
  std::string content;
  for (;;) {
    const std::size_t before = content.size();
    // One byte above the bound is enough to know that there are more.
    const std::size_t want = std::min(std::max(kStep, before), most + 1 - before);
    content.resize(before + want);
    const ssize_t got = ::read(fd, content.data() + before, want);
    if (got < 0 && errno != EINTR) return Unreadable(path, errno);
    content.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return content;
    if (content.size() > most) {
      return Error{ErrorCode::kLimitExceeded,
                   fmt::format("{} has more than {} bytes", InputName(path), most),
                   {}};
    }
  }
}

Result<std::string> ParseDirectory(std::string_view flag, const std::string& directory,
                                   std::string_view hint) {
  if (directory.empty()) return BadFlag(flag, "the value is empty");
  struct stat status = {};
  const int error = ::stat(directory.c_str(), &status) == 0 ? 0 : errno;
  if (error == 0 && S_ISDIR(status.st_mode)) return directory;
  Error failed = FailedPath(directory, error == 0 ? ENOTDIR : error);
  failed.message =
      fmt::format("{}: {}: {}", flag, directory, ::strerror(error == 0 ? ENOTDIR : error));
  if (!failed.has_hint()) failed.hint = hint;
  return failed;
}

}  // namespace

std::string InputName(const std::string& path) { return path == "-" ? "standard input" : path; }

Error AboutInput(const std::string& path, Error error, std::string_view hint) {
  error.message = fmt::format("{}: {}", InputName(path), error.message);
  if (!error.has_hint()) error.hint = hint;
  return error;
}

Result<std::string> ReadInput(const std::string& path, std::size_t most) {
  if (path == "-") return ReadAll(STDIN_FILENO, path, most);
  if (path.empty()) {
    return Error{ErrorCode::kInvalidArgument, "the name of a file to read is empty", {}};
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return Unreadable(path, errno);
  auto content = ReadAll(fd, path, most);
  ::close(fd);
  return content;
}

Result<std::string> ReadOwnFile(const std::string& path, std::size_t most) {
  const auto refused = [&](std::string_view what, std::string_view hint) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} {}; it was not read", path, what),
                 std::string(hint)};
  };
  if (path.empty()) {
    return Error{ErrorCode::kInvalidArgument, "the name of a file to read is empty", {}};
  }
  // Opening a FIFO does not wait for its writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) {
    const int failed = errno;
    struct stat link = {};
    // A link to nothing does exist.
    const bool is_missing =
        (failed == ENOENT || failed == ENOTDIR) && ::lstat(path.c_str(), &link) != 0;
    Error error = Unreadable(path, failed);
    if (is_missing) error.code = ErrorCode::kNotFound;
    return error;
  }
  struct stat status = {};
  Result<std::string> content;
  if (::fstat(fd, &status) != 0) {
    content = Unreadable(path, errno);
  } else if (!S_ISREG(status.st_mode)) {
    content = refused("is not a regular file", {});
  } else if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    content = refused("belongs to another user", "chown it to root");
  } else if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    content = refused("can be written by others", "chmod go-w it, after a look at what it says");
  } else {
    content = ReadAll(fd, path, most);
  }
  ::close(fd);
  return content;
}

Result<std::vector<ListedImage>> ReadImageList(const std::string& path) {
  return ParseImageList(path, TRY(ReadInput(path, kMaxDocumentBytes)));
}

Result<std::vector<ListedImage>> ParseImageList(const std::string& path, std::string_view content) {
  auto list = DecodeImageList(content);
  if (list) return list;
  return AboutInput(path, list.error(), "a list of images is what `crictl images -o json` prints");
}

Result<std::vector<ListedImage>> ReadPreloadedList(const std::string& path) {
  return ReadDecoded(path, kMaxDocumentBytes, DecodePreloadedList,
                     "a list of preloaded images is what `crictl images -o json` prints; an image "
                     "with a name needs no ID");
}

Result<std::vector<RuntimeHandler>> ReadRuntimeHandlers(const std::string& status,
                                                        const std::optional<std::string>& config) {
  auto handlers = ReadDecoded(status, kMaxDocumentBytes, DecodeRuntimeStatus,
                              "the status of a runtime is what `crictl info` prints");
  if (!handlers || !config) return handlers;
  TRY(MergeConfigFile(*config, *handlers));
  return handlers;
}

Result<void> MergeConfigFile(const std::string& config, std::vector<RuntimeHandler>& handlers) {
  auto toml = TRY(ReadInput(config, kMaxPullConfigBytes));
  if (auto merged = MergeRuntimeConfig(toml, handlers); !merged) {
    return AboutInput(config, merged.error(), {});
  }
  return {};
}

Result<std::vector<std::string>> ReadPodList(const std::string& path) {
  return ReadDecoded(path, kMaxDocumentBytes, DecodePodList,
                     "a list of pods is what `kubectl get pods -o json`, the kubelet's /pods or "
                     "`crictl pods -o json` prints");
}

Result<std::string> ParseKubeletDirectory(std::string_view flag, const std::string& directory) {
  return ParseDirectory(flag, directory,
                        "name the kubelet's root directory, by default /var/lib/kubelet");
}

Result<std::string> ParsePodsDirectory(std::string_view flag, const std::string& directory) {
  return ParseDirectory(flag, directory,
                        "name the directory of the pods, by default /var/lib/kubelet/pods");
}

}  // namespace waybill::cli
