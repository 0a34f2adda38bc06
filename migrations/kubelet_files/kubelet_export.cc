// An image that must be closed, but has no form of its own in the kubelet's files, becomes
//
//   {"kind":…,"apiVersion":…,"closedByWaybill":"<why>","imageRef":false}   in pulling/: "image"
//
// A kubelet refuses it for two reasons: the unknown field, and the wrong type of the known one. The
// second is for decoders that ignore unknown fields: they would read a record of another ref, which
// the kubelet treats as no record.

#include "migrations/kubelet_files/kubelet_export.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "migrations/kubelet_files/kubelet_file.h"
#include "migrations/kubelet_files/kubelet_records.h"
#include "migrations/kubelet_files/staged_folders.h"
#include "migrations/kubelet_files/userns_file.h"
#include "migrations/kubelet_files/what_it_must_find.h"
#include "store/base/empty_list.h"
#include "store/base/files.h"
#include "store/base/go_json.h"
#include "store/base/hex.h"
#include "store/base/options.h"
#include "store/base/quote.h"
#include "store/base/sha256.h"
#include "store/base/try.h"
#include "store/pods/import.h"
#include "store/pods/pool.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// --- ID mappings ---------------------------------------------------------------------------------

namespace {

// Writes ID mappings where a kubelet keeps them, <kubelet-dir>/pods/<pod-uid>/userns
// (migrations/README.md, "Going back").
//
//   pods/<pod-uid>/userns.tmp                        being written
//   pods/<pod-uid>/userns.before-export-<time>[-n]   the earlier file, if its content differed

class UsernsExport {
 public:
  // Reads the existing files, and writes nothing. kConflict:
  //   a pod is held
  //   mappings have several lengths: a kubelet starts only if all have its idsPerPod
  //   two ranges overlap; one may come from a file in pods/ that the store does not know
  //   such a file has no valid mapping: its range may be unknown, and no kubelet accepts it
  // kUnsafePath, kIo: pods/, or a pod's directory. Without allocations pods/ is not read.
  static Result<UsernsExport> Plan(const std::filesystem::path& kubelet_directory,
                                   const std::vector<PodMapping>& allocations,
                                   const std::vector<QuarantinedPod>& held);

  // Makes missing directories and replaces each file in one step, except files with the same
  // content. Returns the number of mappings, all on disk. After an error or a crash some files are
  // old and some new, each complete: repeat the call.
  Result<std::uint64_t> Write(Timestamp now) const;

  // For each pod that was written, removes the files that earlier exports kept, except the newest
  // kMaxKeptAside: the store has the pod's range. What can't be removed stays. Returns the removed
  // paths.
  std::vector<std::string> RemoveOldAside() const;

 private:
  struct Pod {
    std::string uid;
    std::uint32_t host_id = 0;
    std::uint32_t length = 0;
    bool in_place = false;  // the file has the same mapping already
  };

  explicit UsernsExport(std::filesystem::path pods) : pods_(std::move(pods)) {}

  Result<void> WriteOne(const Pod& pod, Timestamp now) const;

  std::filesystem::path pods_;
  std::vector<Pod> to_write_;
};

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

// --- Images --------------------------------------------------------------------------------------

constexpr std::string_view kNotUtf8 = "it holds text that is not UTF-8";
// Without the reason, so that exporting over this file again writes the same.
constexpr std::string_view kUnreadInPlace = "what stood here could not be read";

class Exporter {
 public:
  Exporter(const ExportContent& content, const ExportKubeletFiles& options, StagedFolders& staged,
           const UsernsExport& id_mappings)
      : content_(content),
        options_(options),
        staged_(staged),
        id_mappings_(id_mappings),
        must_(WhatItMustFind(content.store, KnownImages(content.store),
                             options.images ? &*options.images : nullptr, ForWhom::kExport)) {}

  // Intents first: new intents beside old records can only close.
  Result<ExportReport> Run() {
    TRY(WriteIntents());
    TRY(WriteRecords());
    TRY(WritePreloaded());
    report_.id_mappings = TRY(id_mappings_.Write(content_.now));
    report_.replaced_path = TRY(staged_.Place());
    report_.removed_paths = staged_.RemoveOldAside(content_.imported);
    for (std::string& path : id_mappings_.RemoveOldAside()) {
      report_.removed_paths.push_back(std::move(path));
    }
    return std::move(report_);
  }

 private:
  Result<void> WriteIntents() {
    TRY(Begin(KubeletFolder::kPulling));
    TRY(WriteQuarantine(QuarantineKind::kImage));
    for (const auto& [name, image] : must_.intents) TRY(WriteIntent({.image = image}));
    return CarryOver();
  }

  Result<void> WriteIntent(const ImagePullIntent& intent) {
    if (TRY(WriteNew(intent.image, EncodePullIntent(intent, options_.api_version)))) {
      ++report_.intents;
    }
    return {};
  }

  Result<void> WriteRecords() {
    TRY(Begin(KubeletFolder::kPulled));
    TRY(WriteQuarantine(QuarantineKind::kImageRef));
    TRY(WriteFound(true, false));
    TRY(CarryOver());
    TRY(WriteFound(true, true));
    // Otherwise a list shows nothing that a kubelet does not know itself.
    if (!content_.store.has_evidence && !content_.distrustful) return {};
    TRY(WriteFound(false, false));
    return WriteFound(false, true);
  }

  Result<void> WriteFound(bool on_record, bool aliases) {
    for (const auto& [name, must] : must_.records) {
      if (must.is_on_record != on_record || must.is_alias != aliases) continue;
      ImagePulledRecord record = must.record;
      if (!on_record) record.last_updated = content_.now;
      const bool written =
          TRY(WriteNew(record.image_ref, EncodePulledRecord(record, options_.api_version)));
      if (!written) continue;
      if (!aliases) ++report_.records;
      if (!aliases && !on_record) ++report_.made;
      if (!aliases && must.is_of_other_handler) ++report_.without_credentials;
      if (aliases && on_record) ++report_.spellings;
    }
    return {};
  }

  // Whether a readable record was written.
  Result<bool> WriteRecord(const ImagePulledRecord& record) {
    auto written = WriteNew(record.image_ref, EncodePulledRecord(record, options_.api_version));
    if (written && *written) ++report_.records;
    return written;
  }

  // Preloaded records can only open images: one that can't be written is left out, and a
  // distrustful store writes none.
  Result<void> WritePreloaded() {
    const bool none = content_.distrustful || content_.preloaded.empty();
    if (none && !TRY(staged_.ExistsInPlace(KubeletFolder::kPreloaded))) return {};
    if (auto r = Begin(KubeletFolder::kPreloaded); !r || none) return r;
    for (const ImagePreloadedRecord& record : content_.preloaded) {
      // Kubelets write and read them only in this version.
      const std::string file = EncodePreloadedRecord(record);
      if (IsUtf8(file) && TRY(WriteNew(record.image_ref, file))) ++report_.preloaded;
    }
    return {};
  }

  // A kubelet that ran without waybill may have written files that the store does not know. Without
  // them their images would pass for preloaded.
  Result<void> CarryOver() {
    const auto names = TRY(staged_.NamesInPlace(folder_));
    std::vector<QuarantinedFile> misfiled;
    for (const std::string& name : names) {
      if (names_.contains(name)) continue;
      // If the disk refuses to read a file, its image is closed, and the file is kept aside with
      // the others.
      const auto file =
          TRY(ReadKubeletFile(staged_.image_manager(), folder_, name, OnReadError::kSkip));
      if (file.identity && content_.imported.contains({file.path, *file.identity})) continue;
      if (const auto* record = std::get_if<ImagePulledRecord>(&file.content)) {
        // The list of images tells what is closed.
        if (content_.store.has_evidence && IsOwnClosing(file)) continue;
        ImagePulledRecord bare = *record;
        bare.credential_mapping.clear();
        if (TRY(WriteRecord(bare))) ++report_.without_credentials;
      } else if (const auto* intent = std::get_if<ImagePullIntent>(&file.content)) {
        TRY(WriteIntent(*intent));
      }
      for (const QuarantinedFile& entry : file.quarantine) TRY(CloseUnread(entry));
      if (file.misfiled.empty()) continue;
      if (folder_ == KubeletFolder::kPulling) {
        TRY(WriteIntent({.image = file.misfiled}));
      } else {
        auto other = TRY(QuarantineOfMisfiled(file));
        misfiled.push_back(std::move(other));
      }
    }
    // Their refs may have records in their own places, so these come last.
    for (const QuarantinedFile& other : misfiled) TRY(CloseUnread(other));
    return {};
  }

  Result<void> CloseUnread(const QuarantinedFile& entry) {
    if (!names_.insert("sha256-" + entry.sha256).second) return {};
    return WriteClosed("sha256-" + entry.sha256, kUnreadInPlace);
  }

  Result<void> WriteQuarantine(QuarantineKind kind) {
    for (const QuarantinedFile& entry : content_.store.quarantine) {
      if (entry.kind != kind) continue;
      const std::string name = "sha256-" + entry.sha256;
      if (!IsRecordName(name)) {
        return Error{ErrorCode::kInvalidArgument,
                     "a quarantine entry has no SHA-256; nothing was exported", ""};
      }
      if (!names_.insert(name).second) continue;
      TRY(WriteClosed(name, entry.source + ": " + entry.reason));
    }
    return {};
  }

  Result<void> WriteClosed(const std::string& name, std::string_view why) {
    const bool of_ref = folder_ == KubeletFolder::kPulled;
    // An empty record's encoding, cut before the field that names the image.
    std::string file = of_ref ? EncodePulledRecord({}, options_.api_version)
                              : EncodePullIntent({}, options_.api_version);
    file.resize(file.find(of_ref ? "\"lastUpdatedTime\"" : "\"image\""));
    file += "\"closedByWaybill\":";
    AppendGoJsonString(why, file);
    file += of_ref ? ",\"imageRef\":false}\n" : ",\"image\":false}\n";
    TRY(staged_.Write(name, file));
    ++report_.closed;
    return {};
  }

  Result<void> Begin(KubeletFolder folder) {
    folder_ = folder;
    names_.clear();
    return staged_.Open(folder);
  }

  // Writes `content`, or a closing file if it is not UTF-8, unless the folder has a file of that
  // name. Returns whether `content` was written.
  Result<bool> WriteNew(std::string_view ref_or_image, std::string content) {
    const std::string name = RecordNameOf(ref_or_image);
    if (!names_.insert(name).second) return false;
    const bool is_utf8 = IsUtf8(content);
    TRY(is_utf8 ? staged_.Write(name, std::move(content)) : WriteClosed(name, kNotUtf8));
    return is_utf8;
  }

  const ExportContent& content_;
  const ExportKubeletFiles& options_;
  StagedFolders& staged_;
  const UsernsExport& id_mappings_;
  const MustFind must_;
  KubeletFolder folder_ = KubeletFolder::kPulling;
  std::set<std::string> names_;  // files in the folder so far
  ExportReport report_;
};

}  // namespace

// Go writes \ufffd in place of what is not, and U+FFFD itself as it is.
bool IsUtf8(std::string_view file) {
  for (std::size_t at = 0; (at = file.find('\\', at)) != std::string_view::npos; at += 2) {
    if (file.substr(at).starts_with("\\ufffd")) return false;
  }
  return true;
}

Result<ExportReport> ExportKubeletDirectory(const ExportContent& content,
                                            const ExportKubeletFiles& options) {
  const std::string why = content.distrustful ? "is distrustful (" + content.distrust_reason + ")"
                                              : "knows which images are preloaded";
  const bool needs_list = content.distrustful || content.store.has_evidence;
  if (needs_list && !options.images) {
    return Error{ErrorCode::kInvalidArgument,
                 "the store " + why + ", which a kubelet can't be told; nothing was exported",
                 "give the runtime's complete list of images: each one of which nothing is known "
                 "then gets a record without credentials"};
  }
  if (needs_list && options.images->empty() && !options.allow_empty) {
    return EmptyList("the list of images on the node is", why, "nothing was exported");
  }
  auto staged = TRY(StagedFolders::Begin(options.kubelet_directory, content.now));
  // Under the lock of `staged`, so no other export into that directory runs.
  auto id_mappings =
      TRY(UsernsExport::Plan(options.kubelet_directory, content.allocations, content.held));
  return Exporter(content, options, *staged, id_mappings).Run();
}

}  // namespace waybill::internal
