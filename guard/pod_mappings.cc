#include "guard/pod_mappings.h"

#include <sys/stat.h>

#include <set>
#include <utility>

#include "migrations/kubelet/userns_export.h"
#include "migrations/kubelet/userns_file.h"
#include "store/base/quote.h"
#include "waybill/limits.h"

namespace waybill::guard {
namespace {

constexpr std::string_view kFileName = "userns";

bool IsDirectoryItself(const std::filesystem::path& path) {
  struct stat st {};
  return ::lstat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

}  // namespace

PodMappings::PodMappings(std::filesystem::path pods, NodeStore& store, Watches& watches, Say say)
    : pods_(std::move(pods)), store_(store), watches_(watches), say_(std::move(say)) {}

Result<void> PodMappings::PutRight(const std::filesystem::path& kubelet_directory) {
  auto allocations = store_.ListUserNamespaces();
  if (!allocations) return allocations.error();
  auto held = store_.ListHeldPods();
  if (!held) return held.error();
  auto plan = internal::UsernsExport::Plan(kubelet_directory, *allocations, *held);
  if (!plan) {
    // A kubelet sees to such pods in its own way; nothing that it has was changed.
    say_("the ID mappings in " + pods_.string() + " were left as they are: " +
         plan.error().ToString());
    return {};
  }
  auto written = plan->Write(SystemClock());
  return written ? Result<void>() : written.error();
}

Result<void> PodMappings::WatchPod(const std::string& pod) {
  if (!IsDirectoryItself(pods_ / pod)) return {};
  auto watched = watches_.Add(WatchedFolder::kPod, pods_ / pod, pod);
  return watched ? Result<void>() : watched.error();
}

Result<void> PodMappings::WatchAll() {
  auto watched = watches_.Add(WatchedFolder::kPods, pods_);
  if (!watched) return watched.error();
  if (!*watched) return {};
  auto names = internal::ListDirectory(pods_);
  if (!names) return names.error();
  for (const std::string& pod : *names) {
    if (auto r = WatchPod(pod); !r) return r;
  }
  return {};
}

Result<void> PodMappings::Compare() {
  if (auto watched = WatchAll(); !watched) return watched;
  auto files = internal::ReadPodsDirectory(pods_, internal::OnReadError::kSkip);
  if (!files) return files.error();
  std::set<std::string> with_file;
  for (const internal::UsernsFile& file : *files) {
    with_file.insert(file.pod_uid);
    if (auto r = Take(file.pod_uid); !r) return r;
  }
  auto allocations = store_.ListUserNamespaces();
  if (!allocations) return allocations.error();
  for (const UserNamespaceAllocation& allocation : *allocations) {
    if (with_file.contains(allocation.pod_uid)) continue;
    auto released = store_.ReleaseUserNamespace(allocation.pod_uid);
    if (!released) return released.error();
  }
  return {};
}

Result<void> PodMappings::Take(const std::string& pod) {
  const std::filesystem::path path = pods_ / pod / kFileName;
  auto content = internal::ReadWholeFile(path, kMaxUsernsFileBytes);
  if (!content) {
    return content.error().code == ErrorCode::kNotFound ? Result<void>() : content.error();
  }
  const auto file = internal::DecodeUsernsFile(pod, path.string(), *content);
  if (!file.mapping) {
    say_(path.string() + " is no mapping that a kubelet accepts (" + file.problem +
         "); the store keeps what it knows of the pod");
    return {};
  }
  auto adopted = store_.AdoptUserNamespace(pod, file.mapping->first, file.mapping->length);
  if (!adopted && adopted.error().code == ErrorCode::kConflict) {
    // The kubelet gave out the range of a pod that it takes for gone.
    say_(path.string() + ": " + adopted.error().ToString());
    return {};
  }
  if (!adopted && adopted.error().code == ErrorCode::kInvalidArgument) {
    say_(path.string() + ": " + adopted.error().ToString());
    return {};
  }
  return adopted;
}

Result<void> PodMappings::Handle(const WatchEvent& event) {
  using What = WatchEvent::What;
  if (event.folder == WatchedFolder::kPods) {
    if (event.what == What::kRemoved) {
      watches_.Remove(event.name);
      auto there = store_.GetUserNamespace(event.name);
      if (!there) return {};
      auto released = store_.ReleaseUserNamespace(event.name);
      return released ? Result<void>() : released.error();
    }
    if (event.what == What::kReplaced) return Compare();
    // The file may be there before the watch is.
    if (auto watched = WatchPod(event.name); !watched) return watched;
    return IsDirectoryItself(pods_ / event.name) ? Take(event.name) : Result<void>();
  }
  if (event.name != kFileName) return {};
  if (event.what == What::kRemoved) {
    auto released = store_.ReleaseUserNamespace(event.pod);
    return released ? Result<void>() : released.error();
  }
  return Take(event.pod);
}

}  // namespace waybill::guard
