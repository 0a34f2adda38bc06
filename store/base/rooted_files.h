// Reads files of others below a folder that stands for "/", which no symlink and no ".." leaves.

#ifndef WAYBILL_STORE_BASE_ROOTED_FILES_H_
#define WAYBILL_STORE_BASE_ROOTED_FILES_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "store/base/files.h"
#include "waybill/limits.h"
#include "waybill/result.h"

namespace waybill::internal {

// Paths are absolute below the root. Symlinks are followed. kNotFound: nothing has that name; a
// symlink that leads nowhere is kInvalidArgument, since it may lead somewhere for others.
class RootedFiles {
 public:
  explicit RootedFiles(std::filesystem::path root) : root_(std::move(root)) {}

  bool IsThisMachine() const { return root_.empty() || root_ == "/"; }
  Result<Fd> Open(const std::filesystem::path& path, int flags) const;
  // Where this process finds it.
  Result<std::filesystem::path> Resolve(const std::filesystem::path& path) const;
  bool Has(const std::filesystem::path& path) const { return Resolve(path).has_value(); }
  // A whole regular file. Also kLimitExceeded.
  Result<std::string> Read(const std::filesystem::path& path,
                           std::size_t most = kMaxPullConfigBytes) const;
  // The names in a folder, sorted. Also kLimitExceeded.
  Result<std::vector<std::string>> List(const std::filesystem::path& path,
                                        std::size_t most = SIZE_MAX) const;

 private:
  // -1: errno says why.
  int Try(const std::filesystem::path& path, int flags) const;

  std::filesystem::path root_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_ROOTED_FILES_H_
