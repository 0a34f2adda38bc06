// The files of one folder of image_manager/, which a kubelet may be changing at the same time.
// Nothing that the kubelet writes meanwhile is lost: a change is made only if the file is still
// what it was. Each change is on disk when the call returns.
//
//   image_manager/pulled/sha256-<hex>            a kubelet's record
//   image_manager/pulled/sha256-waybill-guard    the marker (kMarkerName)
//   image_manager/waybill-guard/                 the guard's own: files being written, session.h
//
// Where pulled/ or pulling/ is a symlink, its files are being written in a waybill-guard/ in it.

#ifndef WAYBILL_GUARD_RECORD_FILES_H_
#define WAYBILL_GUARD_RECORD_FILES_H_

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/files.h"
#include "store/for_the_guard.h"
#include "waybill/result.h"

namespace waybill::guard {

using internal::KubeletFolder;
using internal::OwnForm;

inline constexpr std::string_view kOwnFolder = "waybill-guard";
inline constexpr std::string_view kStatusFile = "status.json";  // in it

// A file that no kubelet can parse. It keeps the kubelet's cache from counting as complete, so that
// what the guard puts back is seen (kubelet behaviour, since 1.34). Import and export pass over it,
// as over any name that is not that of a record.
inline constexpr std::string_view kMarkerName = "sha256-waybill-guard";

// Told after a file or a directory was synced. Tests cut the power by it.
using SyncObserver = std::function<void(const std::filesystem::path&)>;

// The name of the file about an image ref or, in pulling/, an image string.
std::string RecordNameOf(std::string_view ref_or_image);

// A folder of a kubelet's directory. One behind a symlink is unsafe also if the guard may not write
// there: its unit may allow it the kubelet's directory only.
Result<internal::KubeletPlace> FindFolder(const std::filesystem::path& named);

// Whether it is a directory, not through a symlink.
bool IsDirectoryItself(const std::filesystem::path& path);

struct RecordFile {
  std::string content;
  internal::KubeletFile judged;
  // A later kubelet's format: left alone.
  bool is_later_format = false;
  // Whether somebody else may have written it; it counts as unreadable then.
  bool is_planted = false;
  bool in_wide = false;  // for no other reason than that others may write in the folder
  // What it shows to a kubelet all the same, if it is a planted record.
  std::optional<ImagePulledRecord> shows = {};

  bool readable() const { return !std::holds_alternative<std::monostate>(judged.content); }
};

class RecordFiles {
 public:
  RecordFiles(std::filesystem::path image_manager, KubeletFolder folder, SyncObserver synced);

  const std::filesystem::path& path() const { return path_; }
  // Where the folder is, if a symlink leads there.
  void MoveTo(std::filesystem::path image_manager, std::filesystem::path folder);
  // Removes what a crash left of files that were being made: with a second link such a file would
  // count as planted.
  Result<void> DropStaged() const;

  // That others may write in the folder, so nothing new in it counts. Empty: they may not.
  std::string Wide() const;
  // Until it is called without a reason, nothing new counts.
  void Distrust(std::string why) { distrusted_ = std::move(why); }

  // The names of records, sorted. Empty if the folder does not exist.
  Result<std::vector<std::string>> Names() const;
  // nullopt: there is no such file. A file that can't be read is not an error: it counts as
  // damaged.
  Result<std::optional<RecordFile>> Read(const std::string& name) const;

  // Syncs what the kubelet renamed into place: the file, then the folder. What was synced before,
  // and did not change since, costs no flush. A file that is gone is not an error.
  Result<void> SyncFile(const std::string& name) const;
  Result<void> SyncFolder() const;

  // Each returns whether it changed the file; false: it is not as it was expected to be.
  Result<bool> Create(const std::string& name, std::string_view content) const;
  // kLater: what a power cut leaves may be the file before, this one, or an empty one, which
  // closes.
  enum class Durable : std::uint8_t { kNow, kLater };
  Result<bool> Replace(const std::string& name, const std::string& was, std::string_view content,
                       Durable durable = Durable::kNow) const;
  Result<bool> Remove(const std::string& name, const std::string& was) const;

  Result<void> PutMarker() const;
  Result<void> TakeMarkerAway() const;

 private:
  // Where files are being made: on the file system of the folder.
  std::filesystem::path ScratchFolder() const;
  std::filesystem::path Scratch(const std::string& name) const;
  // Syncs the file, or with no name the folder, by `sync`, which says whether there is one.
  using Sync = Result<bool> (*)(const std::filesystem::path&);
  Result<void> SyncOnce(const std::string& name, Sync sync) const;
  Result<std::filesystem::path> Stage(const std::string& name, std::string_view content,
                                      Durable durable = Durable::kNow) const;

  Result<void> MakeScratch() const;

  std::filesystem::path image_manager_;
  KubeletFolder folder_;
  std::filesystem::path path_;
  std::string distrusted_;
  SyncObserver synced_;
  // Files, and the folder, as they were when they were synced. In one piece, so that it pins no
  // pages of what the start needed.
  mutable std::vector<internal::ChangeLook> on_disk_;
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_RECORD_FILES_H_
