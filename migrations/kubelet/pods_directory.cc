#include "migrations/kubelet/pods_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "migrations/kubelet/userns_file.h"
#include "store/base/files.h"
#include "store/base/quote.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

struct CloseDir {
  void operator()(DIR* dir) const { closedir(dir); }
};

Result<Fd> OpenPods(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_symlink(path, ignored)) {
    return Error{ErrorCode::kUnsafePath, path.string() + " is a symlink; no ID mapping was read",
                 "name the real directory"};
  }
  return OpenDirectory(path);
}

// A kubelet follows symlinks. We don't, but must not miss a pod behind one. An entry that can't be
// examined may be a pod, unless it is gone.
bool MayBePod(const Fd& pods, const dirent& entry) {
  if (entry.d_type == DT_DIR) return true;
  if (entry.d_type != DT_UNKNOWN && entry.d_type != DT_LNK) return false;
  struct stat st {};
  if (fstatat(pods.get(), entry.d_name, &st, 0) != 0) return errno != ENOENT && errno != ELOOP;
  return S_ISDIR(st.st_mode);
}

Result<std::vector<std::string>> ListPods(const Fd& pods, const std::filesystem::path& path) {
  const int own = openat(pods.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return SystemError(errno, "list", path);
  const std::unique_ptr<DIR, CloseDir> dir(fdopendir(own));
  if (dir == nullptr) {
    const Error error = SystemError(errno, "list", path);
    close(own);
    return error;
  }
  std::vector<std::string> names;
  for (errno = 0; const dirent* entry = readdir(dir.get()); errno = 0) {
    std::string name = entry->d_name;
    if (name != "." && name != ".." && MayBePod(pods, *entry)) names.push_back(std::move(name));
  }
  if (errno != 0) return SystemError(errno, "list", path);
  std::sort(names.begin(), names.end());
  return names;
}

struct Content {
  std::string bytes;
  std::string problem;  // empty: `bytes` is the whole file
  // Set if the disk refused to read.
  std::optional<int> error_number;
};

Content Failed(const char* what) {
  const int error_number = errno;
  const std::string why = std::generic_category().message(error_number);
  // These three describe what is there: a socket, a device, something in a directory's place.
  const bool by_disk = error_number != ENXIO && error_number != ENODEV && error_number != ENOTDIR &&
                       SystemError(error_number, "", "").code == ErrorCode::kIo;
  return {{}, std::string(what) + ": " + why, by_disk ? std::optional(error_number) : std::nullopt};
}

Content ReadFrom(const Fd& file) {
  struct stat st {};
  if (fstat(file.get(), &st) != 0) return Failed("it can't be looked at");
  if (!S_ISREG(st.st_mode)) return {{}, "it is not a regular file", {}};
  Content content;
  content.bytes.resize(kMaxUsernsFileBytes + 1);
  std::size_t size = 0;
  while (size < content.bytes.size()) {
    const ssize_t n = read(file.get(), content.bytes.data() + size, content.bytes.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Failed("it can't be read");
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
  }
  if (size > kMaxUsernsFileBytes) {
    return {{}, "it is larger than " + std::to_string(kMaxUsernsFileBytes) + " bytes", {}};
  }
  content.bytes.resize(size);
  return content;
}

// nullopt: the pod has no such file.
std::optional<Content> ReadUserns(const Fd& pods, const std::string& pod_uid) {
  const Fd pod(
      openat(pods.get(), pod_uid.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!pod.valid()) {
    if (errno == ENOENT) return std::nullopt;
    const Content unopened = Failed("its directory can't be opened");
    struct stat st {};
    if (fstatat(pods.get(), pod_uid.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
      return Failed("its directory can't be looked at");
    }
    if (!S_ISLNK(st.st_mode)) return unopened;
    // Followed only to learn whether the pod has a userns file.
    if (fstatat(pods.get(), (pod_uid + "/userns").c_str(), &st, 0) != 0) {
      if (errno == ENOENT) return std::nullopt;
      if (Content content = Failed("it can't be looked at"); content.error_number) return content;
    }
    return Content{{}, "its directory is a symlink", {}};
  }
  // O_NONBLOCK: a FIFO must not block us.
  const Fd file(
      openat(pod.get(), "userns", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (file.valid()) return ReadFrom(file);
  if (errno == ENOENT) return std::nullopt;
  if (errno == ELOOP) return Content{{}, "it is a symlink", {}};
  return Failed("it can't be opened");
}

}  // namespace

Result<std::vector<UsernsFile>> ReadPodsDirectory(const std::filesystem::path& given,
                                                  OnReadError on_error) {
  const std::filesystem::path path = WithoutTrailingSlashes(given);
  std::vector<UsernsFile> files;
  auto there = Exists(path);
  if (!there.has_value()) return there.error();
  if (!*there) return files;
  const auto pods = OpenPods(path);
  if (!pods) return pods.error();
  auto names = ListPods(*pods, path);
  if (!names) return names.error();
  for (std::string& pod_uid : *names) {
    auto content = ReadUserns(*pods, pod_uid);
    if (!content) continue;
    if (content->error_number && on_error == OnReadError::kFail) {
      return CanBeSkipped(
          SystemError(*content->error_number, "read", path / ShownPodUid(pod_uid) / "userns"));
    }
    std::string source = "pods/" + ShownPodUid(pod_uid) + "/userns";
    if (content->problem.empty()) {
      files.push_back(DecodeUsernsFile(std::move(pod_uid), std::move(source), content->bytes));
    } else {
      files.push_back({std::move(pod_uid), std::move(source), {}, std::move(content->problem), {}});
    }
  }
  return files;
}

}  // namespace waybill::internal
