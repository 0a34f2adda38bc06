#include "migrations/kubelet_files/userns_export.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <map>
#include <string_view>

#include "migrations/kubelet_files/kept_aside.h"
#include "migrations/kubelet_files/userns_file.h"
#include "store/base/empty_list.h"
#include "store/base/files.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "store/pods/import.h"
#include "store/pods/pool.h"

namespace waybill::internal {

namespace {

constexpr std::size_t kPodsNamed = 3;
constexpr std::string_view kForeignHint =
    "remove that file if the pod is gone; if it lives, start waybill with this kubelet directory, "
    "which takes the file over";

Error Conflict(std::string message, std::string_view hint, Hint code = Hint::kNone) {
  return {ErrorCode::kConflict, std::move(message) + "; nothing was exported", std::string(hint),
          code};
}

// A range and its owner.
struct Claim {
  HostIdRange range;
  std::string whose;
  bool foreign = false;  // from a file that the store does not know
};

Result<void> CheckHeld(const std::vector<QuarantinedPod>& held) {
  if (held.empty()) return {};
  std::string message = "a kubelet's files can't hold the host IDs of ";
  for (std::size_t i = 0; i < std::min(held.size(), kPodsNamed); ++i) {
    if (i > 0) message += ", ";
    message += held[i].pod_uid.empty() ? "unknown pods" : "pod " + ShownPodUid(held[i].pod_uid);
    if (!held[i].reason.empty()) message += " (" + held[i].reason + ")";
  }
  if (held.size() > kPodsNamed) {
    message += " and " + std::to_string(held.size() - kPodsNamed) + " more";
  }
  return Conflict(std::move(message), {}, Hint::kSettleHeldPods);
}

Result<void> CheckLengths(const std::vector<Claim>& claims) {
  std::map<std::uint64_t, std::size_t> pods_of;
  for (const Claim& claim : claims) ++pods_of[claim.range.length];
  if (pods_of.size() <= 1) return {};
  std::string list;
  for (const auto& [length, pods] : pods_of) {
    if (!list.empty()) list += ", ";
    list += HowMany(pods, "pod") + " with " + std::to_string(length) + " IDs";
  }
  return Conflict("a kubelet starts beside ID mappings of one length only, and there are " + list,
                  "stop the pods of all lengths but one and release their mappings");
}

Result<void> CheckOverlaps(std::vector<Claim>& claims) {
  std::stable_sort(claims.begin(), claims.end(),
                   [](const Claim& a, const Claim& b) { return a.range.first < b.range.first; });
  for (std::size_t i = 1; i < claims.size(); ++i) {
    const Claim& low = claims[i - 1];
    const Claim& high = claims[i];
    if (high.range.first - low.range.first >= low.range.length) continue;
    return Conflict("the " + std::to_string(low.range.length) + " host IDs from " +
                        std::to_string(low.range.first) + " of " + low.whose + " overlap the " +
                        std::to_string(high.range.length) + " from " +
                        std::to_string(high.range.first) + " of " + high.whose,
                    low.foreign || high.foreign ? kForeignHint : "release the pod that is gone");
  }
  return {};
}

// Paths in messages contain the raw name. Quotes it.
Error Shown(Error error, const std::string& pod_uid) {
  const std::string shown = ShownPodUid(pod_uid);
  if (shown == pod_uid) return error;
  for (std::string* text : {&error.message, &error.hint}) {
    for (std::size_t at = text->find(pod_uid); at != std::string::npos;
         at = text->find(pod_uid, at + shown.size())) {
      text->replace(at, pod_uid.size(), shown);
    }
  }
  return error;
}

// Less strict than CheckPodUid, since an import takes any directory name.
Result<void> CheckName(const std::string& pod_uid) {
  const bool is_name = !pod_uid.empty() && pod_uid != "." && pod_uid != ".." &&
                       pod_uid.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
  if (is_name) return {};
  return Error{ErrorCode::kInvalidArgument,
               "no directory can have the pod UID " + ShownPodUid(pod_uid) +
                   " as its name; nothing was exported",
               "release that pod's mapping"};
}

// 0750, as a kubelet makes them. An existing directory must be private.
Result<void> MakeDirectory(const std::filesystem::path& path) {
  if (mkdir(path.c_str(), 0750) != 0 && errno != EEXIST) {
    return SystemError(errno, "make directory", path);
  }
  return CheckPrivateDirectory(path);
}

Result<void> CheckIfThere(const std::filesystem::path& directory) {
  auto there = TRY(Exists(directory));
  return there ? CheckPrivateDirectory(directory) : Result<void>();
}

// The file is never missing meanwhile: a kubelet would give the pod other IDs.
Result<void> KeepAside(const std::filesystem::path& file, Timestamp now) {
  auto aside = TRY(KeptAside(file.parent_path(), "userns.", now));
  if (link(file.c_str(), aside.c_str()) == 0) return SyncDirectory(file.parent_path());
  // It is a directory, or the file system has no hard links.
  if (errno == EPERM || errno == ENOSYS || errno == EOPNOTSUPP || errno == EMLINK) {
    return RenameDurably(file, aside);
  }
  return SystemError(errno, "keep aside", file);
}

}  // namespace

Result<UsernsExport> UsernsExport::Plan(const std::filesystem::path& kubelet_directory,
                                        const std::vector<PodMapping>& allocations,
                                        const std::vector<QuarantinedPod>& held) {
  TRY(CheckHeld(held));
  UsernsExport plan(WithoutTrailingSlashes(kubelet_directory) / "pods");
  if (allocations.empty()) return plan;
  TRY(CheckIfThere(plan.pods_));
  auto files = TRY(ReadPodsDirectory(plan.pods_));

  std::map<std::string_view, Pod*> known;
  plan.to_write_.reserve(allocations.size());
  std::vector<Claim> claims;
  for (const PodMapping& allocation : allocations) {
    TRY(CheckName(allocation.pod_uid));
    TRY(CheckMapping(allocation.host_id, allocation.length));
    if (auto r = CheckIfThere(plan.pods_ / allocation.pod_uid); !r) {
      return Shown(r.error(), allocation.pod_uid);
    }
    claims.push_back(
        {{allocation.host_id, allocation.length}, "pod " + ShownPodUid(allocation.pod_uid)});
    plan.to_write_.push_back({allocation.pod_uid, allocation.host_id, allocation.length});
    known.emplace(allocation.pod_uid, &plan.to_write_.back());
  }
  for (const UsernsFile& file : files) {
    const auto known_pod = known.find(file.pod_uid);
    if (known_pod != known.end()) {
      Pod& pod = *known_pod->second;
      pod.in_place = file.mapping == HostIdRange{pod.host_id, pod.length};
    } else if (file.mapping) {
      claims.push_back({*file.mapping, "a pod that the store does not know, " + file.source, true});
    } else {
      return Conflict("unverified host IDs in " + file.source +
                          ", of a pod that the store does not know: " + file.problem,
                      kForeignHint);
    }
  }
  TRY(CheckLengths(claims));
  TRY(CheckOverlaps(claims));
  return plan;
}

Result<std::uint64_t> UsernsExport::Write(Timestamp now) const {
  if (to_write_.empty()) return std::uint64_t{0};
  TRY(MakeDirectory(pods_));
  std::uint64_t written = 0;
  for (const Pod& pod : to_write_) {
    if (auto r = WriteOne(pod, now); !r) {
      Error error = Shown(r.error(), pod.uid);
      error.message += "; " + std::to_string(written) + " of " + std::to_string(to_write_.size()) +
                       " ID mappings are written, the image folders are as they were";
      if (!error.has_hint()) error.hint = "mend that, then export again";
      return error;
    }
    ++written;
  }
  TRY(SyncDirectory(pods_));
  TRY(SyncDirectory(pods_.parent_path()));
  return written;
}

Result<void> UsernsExport::WriteOne(const Pod& pod, Timestamp now) const {
  const std::filesystem::path directory = pods_ / pod.uid;
  const std::filesystem::path file = directory / "userns";
  if (auto r = MakeDirectory(directory); !r) return r;
  if (pod.in_place) {
    // Its writer may have been killed before it was on disk.
    const auto fd = TRY(OpenFile(file, O_RDONLY));
    if (auto r = SyncFile(fd, file); !r) return r;
    return SyncDirectory(directory);
  }
  if (TRY(Exists(file))) TRY(KeepAside(file, now));
  return WriteFileDurably(file, EncodeUsernsFile(pod.host_id, pod.length));
}

std::vector<std::string> UsernsExport::RemoveOldAside() const {
  std::vector<std::string> removed;
  for (const Pod& pod : to_write_) {
    for (const std::filesystem::path& aside : TooOldAside(pods_ / pod.uid, "userns.")) {
      if (RemoveFile(aside)) removed.push_back(aside.string());
    }
  }
  return removed;
}

}  // namespace waybill::internal
