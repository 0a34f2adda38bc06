#include "migrations/kubelet_files/userns_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "migrations/kubelet_files/kubelet_places.h"
#include "store/base/described.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "store/pods/pool.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

struct Mapping {
  std::uint64_t host_id = 0;
  std::uint64_t container_id = 0;
  std::uint64_t length = 0;

  friend bool operator==(const Mapping&, const Mapping&) = default;

  void Describe(auto& v) const {
    v("hostId", host_id);
    v.Optional("containerId", container_id);
    v("length", length);
  }
};

struct Mappings {
  std::vector<Mapping> uids;
  std::vector<Mapping> gids;

  void Describe(auto& v) const {
    v.Optional("uidMappings", uids, {.count = kMaxMappingsPerFile});
    v.Optional("gidMappings", gids, {.count = kMaxMappingsPerFile});
  }
};

Result<void> CheckNumbers(const std::vector<Mapping>& list, std::string_view name) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto& [host_id, container_id, length] = list[i];
    if (host_id < kHostIds && container_id < kHostIds && length > 0 && length <= kHostIds) continue;
    return WrongAt(PathIn(name, i), "an ID is not below 2^32, or the length not within 1 to 2^32");
  }
  return {};
}

Result<Mappings> ReadMappings(std::string_view content) {
  Mappings read;
  TRY(ReadForeign(content, kMaxUsernsFileBytes, read, Strangers::kGoAnyCase));
  TRY(CheckNumbers(read.uids, "uidMappings"));
  TRY(CheckNumbers(read.gids, "gidMappings"));
  const std::size_t count = read.uids.size() + read.gids.size();
  if (count <= kMaxMappingsPerFile) return read;
  return WrongAt("uidMappings and gidMappings",
                 "they have more than " + std::to_string(kMaxMappingsPerFile) + " mappings");
}

// Why no kubelet accepts it; empty: one does.
std::string ProblemOf(const Mappings& read) {
  const auto count = [](std::string_view what, std::size_t mappings) {
    return "it has " + std::to_string(mappings) + " " + std::string(what) +
           " mappings where a kubelet takes one";
  };
  if (read.uids.empty() && read.gids.empty()) return "it has no mapping";
  if (read.uids.size() != 1) return count("UID", read.uids.size());
  if (read.gids.size() != 1) return count("GID", read.gids.size());
  const Mapping& uids = read.uids.front();
  if (uids != read.gids.front()) return "its UID and GID mappings differ";
  if (uids.container_id != 0) {
    return "it maps from container ID " + std::to_string(uids.container_id) + ", not from 0";
  }
  const auto sound = CheckMapping(uids.host_id, uids.length);
  return sound ? std::string() : sound.error().ToString();
}

// --- The directory of the pods -------------------------------------------------------------------

// The directory itself, if nobody can put another in its place.
Result<std::filesystem::path> FindPods(const std::filesystem::path& path) {
  const KubeletPlace place = TRY(FindPlace(path));
  if (place.link.empty()) return path;
  if (place.unsafe.empty() && place.wide.empty()) return place.path;
  const std::string why =
      place.unsafe.empty() ? path.string() + " is a symlink, and " + place.wide : place.unsafe;
  return Error{ErrorCode::kUnsafePath, why + "; no ID mapping was read", "name the real directory"};
}

// A kubelet follows symlinks. We don't, but must not miss a pod behind one. An entry that can't be
// examined may be a pod, unless it is gone.
bool MayBePod(const Fd& pods, const std::string& name) {
  struct stat st {};
  if (fstatat(pods.get(), name.c_str(), &st, 0) != 0) return errno != ENOENT && errno != ELOOP;
  return S_ISDIR(st.st_mode);
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
  // These three mean that something else is there: a socket, a device, something in a directory's
  // place.
  const bool by_disk = error_number != ENXIO && error_number != ENODEV && error_number != ENOTDIR &&
                       SystemError(error_number, "", "").code == ErrorCode::kIo;
  return {{}, std::string(what) + ": " + why, by_disk ? std::optional(error_number) : std::nullopt};
}

Content ReadFrom(const Fd& file) {
  struct stat st {};
  if (fstat(file.get(), &st) != 0) return Failed("it can't be looked at");
  if (!S_ISREG(st.st_mode)) return {{}, "it is not a regular file", {}};
  if (std::string why = WhyPlanted(st); !why.empty()) {
    return {{}, "somebody else may have written it: " + why, {}};
  }
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

UsernsFile DecodeUsernsFile(std::string pod_uid, std::string source, std::string_view content) {
  UsernsFile file;
  file.pod_uid = std::move(pod_uid);
  file.source = std::move(source);
  const auto read = ReadMappings(content);
  if (!read) {
    file.problem = "it can't be read: " + read.error().message;
    return file;
  }
  file.problem = ProblemOf(*read);
  if (file.problem.empty()) {
    file.mapping = HostIdRange{read->uids.front().host_id, read->uids.front().length};
    return file;
  }
  for (const auto* mappings : {&read->uids, &read->gids}) {
    for (const Mapping& mapping : *mappings) {
      const HostIdRange range{mapping.host_id, mapping.length};
      if (std::find(file.ranges.begin(), file.ranges.end(), range) == file.ranges.end()) {
        file.ranges.push_back(range);
      }
    }
  }
  return file;
}

std::string EncodeUsernsFile(std::uint32_t host_id, std::uint32_t length) {
  const std::string mappings = R"([{"hostId":)" + std::to_string(host_id) +
                               R"(,"containerId":0,"length":)" + std::to_string(length) + "}]";
  return R"({"uidMappings":)" + mappings + R"(,"gidMappings":)" + mappings + "}";
}

Result<std::vector<UsernsFile>> ReadPodsDirectory(const std::filesystem::path& given,
                                                  OnReadError on_error) {
  const std::filesystem::path path = WithoutTrailingSlashes(given);
  std::vector<UsernsFile> files;
  if (!TRY(Exists(path))) return files;
  const std::filesystem::path itself = TRY(FindPods(path));
  const auto pods = TRY(OpenDirectory(itself));
  auto names = TRY(ListDirectory(itself));
  std::ranges::sort(names);
  for (std::string& pod_uid : names) {
    if (!MayBePod(pods, pod_uid)) continue;
    auto content = ReadUserns(pods, pod_uid);
    if (!content) continue;
    if (content->error_number) {
      Error error = CanBeSkipped(
          SystemError(*content->error_number, "read", path / ShownPodUid(pod_uid) / "userns"));
      const bool by_disk = error.hint_code == Hint::kSkipUnreadable;
      if (on_error == OnReadError::kFail || !by_disk) return error;
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
