#include "bindings/cli/scratch_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdint>
#include <system_error>

#include "store/base/try.h"

namespace waybill::cli {

namespace fs = std::filesystem;

Error CopyFailed(const fs::path& path, std::string_view why) {
  return {ErrorCode::kIo,
          fmt::format("{} could not be copied: {}; nothing was changed", path.string(), why),
          "TMPDIR names a directory with room for a copy of the store"};
}

Result<ScratchDirectory> ScratchDirectory::Make(std::string_view name) {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (error) {
    return Error{ErrorCode::kIo,
                 fmt::format("there is no directory for temporary files: {}", error.message()),
                 "TMPDIR names a directory with room for a copy of the store"};
  }
  std::string path = (parent / fmt::format("{}-XXXXXX", name)).string();
  if (::mkdtemp(path.data()) == nullptr) {
    return Error{ErrorCode::kIo, fmt::format("{} could not be made: {}", path, ::strerror(errno)),
                 "TMPDIR names a directory with room for a copy of the store"};
  }
  return ScratchDirectory(path);
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Result<void> CopyOpenFile(const internal::Fd& from, const fs::path& name, const fs::path& to,
                          const Progress& progress) {
  auto file = TRY(internal::OpenFile(to, O_WRONLY | O_CREAT | O_EXCL));
  const off_t total = ::lseek(from.get(), 0, SEEK_END);
  if (total < 0) return CopyFailed(name, ::strerror(errno));
  // Before a file that claims to be huge fills the memory that a file system may lie in.
  struct ::statvfs room {};
  if (::fstatvfs(file.get(), &room) == 0 &&
      static_cast<std::uint64_t>(total) > std::uint64_t{room.f_bavail} * room.f_frsize) {
    return CopyFailed(name, fmt::format("there is no room for {} bytes", total));
  }
  std::string buffer(std::size_t{1} << 20, '\0');
  for (off_t at = 0; at < total;) {
    const ssize_t got = ::pread(from.get(), buffer.data(), buffer.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return CopyFailed(name, got < 0 ? ::strerror(errno) : "it became shorter");
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
    TRY(internal::PWriteAll(file, bytes, at, to));
    at += got;
    if (progress && !progress(static_cast<std::uint64_t>(at), static_cast<std::uint64_t>(total))) {
      return Error{ErrorCode::kInterrupted, "it was stopped; nothing was changed", {}};
    }
  }
  return {};
}

std::string WithPathReplaced(std::string text, const fs::path& copy, const fs::path& real) {
  const std::string from = copy.string();
  const std::string to = real.string();
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
  return text;
}

}  // namespace waybill::cli
