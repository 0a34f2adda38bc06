// Writes folders of image_manager/ aside, then moves each into place in one step.
//
//   image_manager/export.tmp/pulled/…            being written; after the exchange, the old folder
//   image_manager/before-export-<time>[-n]/…     export.tmp afterwards, or one left by a crash

#ifndef WAYBILL_MIGRATIONS_KUBELET_FILES_STAGED_FOLDERS_H_
#define WAYBILL_MIGRATIONS_KUBELET_FILES_STAGED_FOLDERS_H_

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "migrations/kubelet_files/kubelet_file.h"
#include "store/base/files.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// One at a time: another Begin is kOwned until this object is gone. Deletes only files that it
// wrote itself, and only before the first folder is in place.
class StagedFolders {
 public:
  // Makes image_manager/ if it is missing. kNotFound: the kubelet directory does not exist.
  // kUnsafePath: it, image_manager/ or one of the folders is a symlink, belongs to another user, or
  // is writable by others.
  static Result<std::unique_ptr<StagedFolders>> Begin(
      const std::filesystem::path& kubelet_directory, Timestamp now);

  ~StagedFolders();
  StagedFolders(const StagedFolders&) = delete;
  StagedFolders& operator=(const StagedFolders&) = delete;

  const std::filesystem::path& image_manager() const { return image_manager_; }
  Answer ExistsInPlace(KubeletFolder folder) const;
  // The names of the records in the folder, unordered. Empty if it does not exist.
  Result<std::vector<std::string>> NamesInPlace(KubeletFolder folder) const;
  // Begins a new, empty folder, after the last one.
  Result<void> Open(KubeletFolder folder);
  // Adds a file to the last folder opened, in the form of an export (ExportedForm). It is on disk
  // after the next Open or Place.
  Result<void> Write(const std::string& name, std::string content);
  // Moves all folders into place, in the order in which they were opened; each is on disk before
  // the next. Returns where the earlier files are kept; empty: there were none.
  Result<std::string> Place();
  // Removes what earlier exports kept, except the newest kMaxKeptAside, if an export wrote or an
  // import took every file in it: by path and content in `imported`. What can't be read or removed
  // stays. Returns the removed paths.
  std::vector<std::string> RemoveOldAside(const ImportedFiles& imported) const;

 private:
  StagedFolders(std::filesystem::path image_manager, Timestamp now)
      : image_manager_(std::move(image_manager)), now_(now) {}

  Result<void> Lock();
  Result<std::string> PutStagingAside() const;
  Result<void> SyncWritten();

  std::filesystem::path image_manager_;
  Timestamp now_;
  Fd lock_;
  std::filesystem::path staging_;  // set while it holds only our files
  std::vector<KubeletFolder> folders_;
  std::vector<std::pair<Fd, std::filesystem::path>> unsynced_;
};

// <directory>/<prefix>before-export-<time>[-n], with the next free number. kIo, kUnsafePath: the
// existing names can't be read.
Result<std::filesystem::path> KeptAside(const std::filesystem::path& directory,
                                        std::string_view prefix, Timestamp now);

// The paths with such names in `directory`, oldest first, without the newest kMaxKeptAside.
std::vector<std::filesystem::path> TooOldAside(const std::filesystem::path& directory,
                                               std::string_view prefix);

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_KUBELET_FILES_STAGED_FOLDERS_H_
