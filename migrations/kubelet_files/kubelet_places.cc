#include "migrations/kubelet_files/kubelet_places.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <system_error>
#include <utility>

#include "store/base/files.h"
#include "store/base/try.h"

namespace waybill::internal {

namespace {

// As many as the kernel follows.
constexpr int kMaxLinks = 40;

bool IsTrusted(uid_t owner) { return owner == 0 || owner == geteuid(); }

bool IsWide(const struct stat& st) { return (st.st_mode & (S_IWGRP | S_IWOTH)) != 0; }

std::string BelongsTo(const struct stat& st) {
  return "belongs to user " + std::to_string(st.st_uid);
}

// Whether others may change what a name in the directory leads to. In a sticky one they can't, if
// what it leads to is not theirs.
Result<std::string> WhyChangeable(const std::filesystem::path& directory) {
  struct stat st {};
  if (lstat(directory.c_str(), &st) != 0) return SystemError(errno, "look at", directory);
  if (!IsTrusted(st.st_uid)) return directory.string() + " " + BelongsTo(st);
  if (IsWide(st) && (st.st_mode & S_ISVTX) == 0) return "others may write in " + directory.string();
  return std::string();
}

// Follows a symlink name by name. `place` gets the path that it leads to, or why that is unsafe.
Result<void> Follow(const std::filesystem::path& link, KubeletPlace& place, struct stat& st) {
  std::error_code error;
  std::filesystem::path at = std::filesystem::canonical(link.parent_path(), error);
  if (error) return SystemError(error.value(), "look at", link.parent_path());
  std::deque<std::filesystem::path> names = {link.filename()};
  for (int links = 0; !names.empty();) {
    const std::filesystem::path name = std::move(names.front());
    names.pop_front();
    if (name.empty() || name == ".") continue;
    if (name == "/" || name == "..") {
      at = name == "/" ? name : at.parent_path();
      continue;
    }
    place.unsafe = TRY(WhyChangeable(at));
    if (!place.unsafe.empty()) return {};
    const std::filesystem::path next = at / name;
    if (lstat(next.c_str(), &st) != 0) {
      if (errno != ENOENT) return SystemError(errno, "look at", next);
      place.unsafe = "there is no " + next.string();
      return {};
    }
    if (!S_ISLNK(st.st_mode)) {
      at = next;
      if (S_ISDIR(st.st_mode) || names.empty()) continue;
      place.unsafe = at.string() + " is not a directory";
      return {};
    }
    if (!IsTrusted(st.st_uid) || ++links > kMaxLinks) {
      place.unsafe = next.string() + (links > kMaxLinks ? " leads nowhere" : " " + BelongsTo(st));
      return {};
    }
    const auto target = std::filesystem::read_symlink(next, error);
    if (error) return SystemError(error.value(), "look at", next);
    names.insert(names.begin(), target.begin(), target.end());
  }
  place.path = std::move(at);
  // The last name may have been "..".
  return lstat(place.path.c_str(), &st) == 0 ? Result<void>()
                                             : SystemError(errno, "look at", place.path);
}

}  // namespace

std::string WhyPlanted(const struct stat& file) {
  if (file.st_nlink > 1) return "it has " + std::to_string(file.st_nlink) + " links";
  if (!IsTrusted(file.st_uid)) return "it " + BelongsTo(file);
  return IsWide(file) ? "others may write it" : std::string();
}

Result<KubeletBytes> ReadKubeletBytes(const std::filesystem::path& path, std::size_t max_bytes) {
  const auto fd = TRY(OpenFile(path, O_RDONLY));
  struct stat st {};
  if (fstat(fd.get(), &st) != 0) return SystemError(errno, "look at", path);
  KubeletBytes bytes{{}, WhyPlanted(st), st.st_mtim};
  char buffer[1 << 14];
  for (;;) {
    const ssize_t n = read(fd.get(), buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError(errno, "read", path);
    if (n == 0) return bytes;
    bytes.content.append(buffer, static_cast<std::size_t>(n));
    if (bytes.content.size() <= max_bytes) continue;
    return Error{ErrorCode::kLimitExceeded,
                 path.string() + " is larger than " + std::to_string(max_bytes) + " bytes", ""};
  }
}

Result<KubeletPlace> FindPlace(const std::filesystem::path& named) {
  KubeletPlace place;
  struct stat st {};
  const std::filesystem::path given = WithoutTrailingSlashes(named);
  if (lstat(given.c_str(), &st) != 0) {
    return errno == ENOENT ? Result<KubeletPlace>(place) : SystemError(errno, "look at", given);
  }
  if (S_ISLNK(st.st_mode)) {
    place.link = given;
    TRY(Follow(given, place, st));
    if (!place.unsafe.empty()) {
      place.unsafe = given.string() + " is a symlink, and " + place.unsafe;
      return place;
    }
  } else {
    place.path = given;
  }
  if (!S_ISDIR(st.st_mode)) {
    place.unsafe = place.path.string() + " is not a directory";
  } else if (!IsTrusted(st.st_uid)) {
    place.unsafe = place.path.string() + " " + BelongsTo(st);
  } else if (IsWide(st)) {
    place.wide = "others may write in " + place.path.string();
  }
  if (!place.unsafe.empty()) place.path.clear();
  return place;
}

}  // namespace waybill::internal
