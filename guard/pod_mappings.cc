#include "guard/pod_mappings.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "store/base/quote.h"
#include "store/base/try.h"
#include "store/for_the_guard.h"
#include "waybill/limits.h"

namespace waybill::guard {
namespace {

constexpr std::string_view kFileName = "userns";

}  // namespace

std::filesystem::path PodMappings::PodsOf(const std::filesystem::path& kubelet_directory) {
  std::filesystem::path pods = kubelet_directory / "pods";
  auto place = internal::FindPlace(pods);
  return place && !place->path.empty() ? std::move(place->path) : std::move(pods);
}

Result<void> PodMappings::PutRight() {
  TRY(internal::Exists(pods_));
  auto files = TRY(internal::ReadPodsDirectory(pods_, internal::OnReadError::kSkip));
  for (const internal::UsernsFile& file : files) {
    auto known = life_.store->GetUserNamespace(file.pod_uid);
    TRY(known ? Result<void>() : Take(file.pod_uid));
  }
  auto allocations = TRY(life_.store->ListUserNamespaces());
  for (const PodMapping& allocation : allocations) {
    const auto file = std::ranges::find(files, allocation.pod_uid, &internal::UsernsFile::pod_uid);
    const HostIdRange range{allocation.host_id, allocation.length};
    if (file != files.end() && file->mapping == range) continue;
    if (file != files.end()) {
      life_.Log(LogLevel::kWarning, file->source + " did not name the host IDs that pod " +
                                        internal::ShownPodUid(allocation.pod_uid) +
                                        " got; it is written again");
    }
    TRY(Write(allocation));
  }
  return {};
}

// A kubelet cleans up after pods that are gone; if a pod's directory vanished, it would give the
// pod's IDs to another.
Result<void> PodMappings::Write(const PodMapping& allocation) {
  const std::filesystem::path directory = pods_ / allocation.pod_uid;
  for (const std::filesystem::path& path : {pods_, directory}) {
    if (::mkdir(path.c_str(), 0750) != 0 && errno != EEXIST) {
      return internal::SystemError(errno, "make", path);
    }
  }
  TRY(internal::SyncDirectory(pods_));
  return internal::WriteFileDurably(
      directory / kFileName, internal::EncodeUsernsFile(allocation.host_id, allocation.length));
}

Result<void> PodMappings::WatchPod(const std::string& pod) {
  if (!IsDirectoryItself(pods_ / pod)) return {};
  auto watched = watches_.Add(WatchedFolder::kPod, pods_ / pod, pod);
  return watched ? Result<void>() : watched.error();
}

Result<void> PodMappings::WatchAll() {
  std::error_code ignored;
  if (std::filesystem::is_symlink(pods_, ignored)) return {};  // PutRight tells of it
  auto watched = TRY(watches_.Add(WatchedFolder::kPods, pods_));
  if (!watched) return {};
  auto names = TRY(internal::ListDirectory(pods_));
  for (const std::string& pod : names) {
    TRY(WatchPod(pod));
  }
  return {};
}

Result<void> PodMappings::Compare() {
  TRY(WatchAll());
  auto files = TRY(internal::ReadPodsDirectory(pods_, internal::OnReadError::kSkip));
  for (const internal::UsernsFile& file : files) {
    TRY(Take(file.pod_uid));
  }
  auto allocations = TRY(life_.store->ListUserNamespaces());
  for (const PodMapping& allocation : allocations) {
    if (IsDirectoryItself(pods_ / allocation.pod_uid)) continue;
    TRY(life_.store->ReleaseUserNamespace(allocation.pod_uid));
  }
  return {};
}

Result<void> PodMappings::Take(const std::string& pod) {
  const std::filesystem::path path = pods_ / pod / kFileName;
  auto bytes = internal::ReadKubeletBytes(path, kMaxUsernsFileBytes);
  if (!bytes) {
    return bytes.error().code == ErrorCode::kNotFound ? Result<void>() : bytes.error();
  }
  auto file = internal::DecodeUsernsFile(pod, path.string(), bytes->content);
  if (!bytes->planted.empty()) {
    file.mapping.reset();
    file.problem = "somebody else may have written it: " + bytes->planted;
  }
  if (!file.mapping) {
    life_.Log(LogLevel::kWarning, path.string() + " is no mapping that a kubelet accepts (" +
                                      file.problem + "); the store keeps what it knows of the pod");
    return {};
  }
  TRY(FreeOfGonePods(pod, *file.mapping));
  auto adopted = life_.store->AdoptUserNamespace(pod, file.mapping->first, file.mapping->length);
  // The kubelet gave out a range of a pod that it takes for gone, or a range that no pod can have.
  if (!adopted && (adopted.error().code == ErrorCode::kConflict ||
                   adopted.error().code == ErrorCode::kInvalidArgument)) {
    life_.Log(LogLevel::kWarning, path.string() + ": " + adopted.error().ToString());
    return {};
  }
  return adopted;
}

// The kubelet gives out the ranges of pods that are gone again; the end of such a pod may have been
// missed.
Result<void> PodMappings::FreeOfGonePods(const std::string& pod, const HostIdRange& range) {
  auto allocations = TRY(life_.store->ListUserNamespaces());
  for (const PodMapping& other : allocations) {
    const bool overlaps = other.host_id < range.first + range.length &&
                          range.first < std::uint64_t{other.host_id} + other.length;
    if (!overlaps || other.pod_uid == pod || IsDirectoryItself(pods_ / other.pod_uid)) continue;
    TRY(life_.store->ReleaseUserNamespace(other.pod_uid));
  }
  return {};
}

Result<void> PodMappings::Handle(const WatchEvent& event) {
  using What = WatchEvent::What;
  if (event.folder == WatchedFolder::kPods) {
    if (event.what == What::kRemoved) {
      watches_.Remove(event.name);
      auto there = life_.store->GetUserNamespace(event.name);
      if (!there) return {};
      auto released = life_.store->ReleaseUserNamespace(event.name);
      return released ? Result<void>() : released.error();
    }
    if (event.what == What::kReplaced) return Compare();
    // The file may be there before the watch is.
    TRY(WatchPod(event.name));
    return IsDirectoryItself(pods_ / event.name) ? Take(event.name) : Result<void>();
  }
  // A file vanishes with its directory, or is lost: then the next start writes it again.
  if (event.name != kFileName || event.what == What::kRemoved) return {};
  return Take(event.pod);
}

}  // namespace waybill::guard
