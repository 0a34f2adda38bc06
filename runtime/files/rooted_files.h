// Reads files of others below a folder that stands for "/", which no symlink and no ".." leaves.

#ifndef WAYBILL_RUNTIME_FILES_ROOTED_FILES_H_
#define WAYBILL_RUNTIME_FILES_ROOTED_FILES_H_

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/base/files.h"
#include "waybill/result.h"

namespace waybill::internal {

class RootedFiles {
 public:
  // Empty: "/".
  explicit RootedFiles(std::filesystem::path root) : root_(std::move(root)) {}

  // Paths are absolute below the root. nullopt: nothing has that name. Symlinks are followed, as
  // the runtimes do. kLimitExceeded above kMaxPullConfigBytes; kInvalidArgument: not a file, or a
  // symlink to nothing.
  Result<std::optional<std::string>> Read(const std::string& path) const;
  Result<bool> IsThere(const std::string& path) const;
  // The names in a folder, sorted; empty if it is not there. kLimitExceeded above
  // kMaxPullConfigFiles.
  Result<std::vector<std::string>> List(const std::string& path) const;

 private:
  // -1: errno says why.
  int Try(const std::string& path, int flags) const;
  // Not valid: nothing has that name.
  Result<Fd> Open(const std::string& path, int flags) const;

  std::filesystem::path root_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_RUNTIME_FILES_ROOTED_FILES_H_
