// Changes of the files of one folder of image_manager/, which a kubelet may be changing at the same
// time. Nothing that the kubelet writes meanwhile is lost: a change is made only if the file is
// still what it was.
//
//   image_manager/pulled/sha256-<hex>            a kubelet's record
//   image_manager/pulled/sha256-waybill-guard    the marker (kMarkerName)
//   image_manager/waybill-guard/                 the guard's own: files being written, session.h
//
// Where pulled/ or pulling/ is a symlink, its files are being written in a waybill-guard/ in it.

#ifndef WAYBILL_GUARD_RECORD_FILES_H_
#define WAYBILL_GUARD_RECORD_FILES_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/files.h"
#include "store/base/sha256.h"
#include "store/for_the_guard.h"
#include "waybill/result.h"

namespace waybill::guard {

using internal::KubeletFolder;

inline constexpr std::string_view kOwnFolder = "waybill-guard";
inline constexpr std::string_view kStatusFile = "status.json";  // in it

// A file that no kubelet can parse. It keeps the kubelet's cache from counting as complete, so that
// what the guard puts back is seen (kubelet behaviour, since 1.34). Import and export pass over it,
// as over any name that is not that of a record.
inline constexpr std::string_view kMarkerName = "sha256-waybill-guard";

// Told after a file or a directory was synced. Tests cut the power by it.
using SyncObserver = std::function<void(const std::filesystem::path&)>;

// What a file was: its content; all zero: what could not be read. Of one that others may write all
// the time, which file it is.
using internal::Sha256Digest;
struct FileWas {
  Sha256Digest digest = {};
  std::uint64_t inode = 0;  // 0: the content tells
};

class RecordFiles {
 public:
  // `exchanged`: told of each exchange of a name, which the kernel's queue tells of as of a write.
  RecordFiles(std::filesystem::path image_manager, KubeletFolder folder, SyncObserver synced);
  void OnExchange(std::function<void(const std::string& name)> told) { told_ = std::move(told); }

  const std::filesystem::path& path() const { return path_; }
  // Where the folder is, if a symlink leads there.
  void MoveTo(std::filesystem::path image_manager, std::filesystem::path folder);
  // Removes what a crash left of files that were being made: with a second link such a file would
  // count as planted.
  Result<void> DropStaged() const;

  // Puts on the disk what the kubelet renamed into place; the folder's names by SyncFolder. What
  // was synced before, and did not change since, costs no flush. A file that is gone is no error.
  Result<void> SyncFile(const std::string& name) const;
  Result<void> SyncFolder() const;

  // Each returns whether it changed the file; false: it is not as it was expected to be. The new
  // content is on disk then, and the name after SyncFolder.
  Result<bool> Create(const std::string& name, std::string_view content) const;
  Result<bool> Replace(const std::string& name, const FileWas& was, std::string_view content) const;
  Result<bool> Remove(const std::string& name, const FileWas& was) const;

  Result<void> PutMarker() const;
  Result<void> TakeMarkerAway() const;

 private:
  // Where files are being made: on the file system of the folder.
  std::filesystem::path ScratchFolder() const;
  std::filesystem::path Scratch(const std::string& name) const;
  // Syncs the file, or with no name the folder, by `sync`, which says whether there is one.
  using Sync = Result<bool> (*)(const std::filesystem::path&);
  Result<void> SyncOnce(const std::string& name, Sync sync) const;
  Result<std::filesystem::path> Stage(const std::string& name, std::string_view content) const;

  Result<void> MakeScratch() const;

  std::filesystem::path image_manager_;
  KubeletFolder folder_;
  std::filesystem::path path_;
  SyncObserver synced_;
  std::function<void(const std::string&)> told_;
  // Files, and the folder, as they were when they were synced. In one piece, so that it pins no
  // pages of what the start needed.
  mutable std::vector<internal::ChangeLook> on_disk_;
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_RECORD_FILES_H_
