// A file of its own, wherever an operator wants a backup: nobody sees it before it is whole, and it
// replaces nothing.

#ifndef WAYBILL_STORE_ENGINE_RECOVERY_BACKUP_FILE_H_
#define WAYBILL_STORE_ENGINE_RECOVERY_BACKUP_FILE_H_

#include <filesystem>
#include <string>

#include "store/base/files.h"
#include "waybill/result.h"

namespace waybill::internal {

class BackupFile {
 public:
  // Empty, mode 0600, in the directory of `path`, without a name where the file system allows that.
  // kInvalidArgument: `path` exists, lies in the store `store`, or is not the name of a file in a
  // directory that exists.
  static Result<BackupFile> Make(const std::filesystem::path& path,
                                 const std::filesystem::path& store);
  // Removes what was not published.
  ~BackupFile();
  BackupFile(BackupFile&&) = default;
  BackupFile& operator=(BackupFile&&) = delete;
  BackupFile(const BackupFile&) = delete;
  BackupFile& operator=(const BackupFile&) = delete;

  const Fd& file() const { return file_; }
  const std::filesystem::path& path() const { return path_; }

  // Gives the file, which is synced, its name, and syncs the directory. kInvalidArgument: the name
  // was taken meanwhile, and is left as it is.
  Result<void> Publish();

 private:
  explicit BackupFile(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path path_;
  Fd directory_;
  Fd file_;
  std::string temporary_;  // its name until it is published; empty: it has none
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_ENGINE_RECOVERY_BACKUP_FILE_H_
