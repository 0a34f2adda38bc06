// A directory in TMPDIR for copies of stores: what is read there leaves the real one as it is.

#ifndef WAYBILL_BINDINGS_CLI_SCRATCH_DIRECTORY_H_
#define WAYBILL_BINDINGS_CLI_SCRATCH_DIRECTORY_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "store/base/files.h"
#include "waybill/maintenance.h"
#include "waybill/result.h"

namespace waybill::cli {

class ScratchDirectory {
 public:
  // `name`: how the directory's name begins. kIo.
  static Result<ScratchDirectory> Make(std::string_view name);
  // Removes it with all that is in it.
  ~ScratchDirectory();
  ScratchDirectory(ScratchDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit ScratchDirectory(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;  // empty: moved from
};

// Copies all of `from`, whose name is `name`, to the new file `to`. kIo; kDiskFull; kInterrupted:
// `progress` returned false.
Result<void> CopyOpenFile(const internal::Fd& from, const std::filesystem::path& name,
                          const std::filesystem::path& to, const Progress& progress);

// That `path` could not be copied, and what to do.
Error CopyFailed(const std::filesystem::path& path, std::string_view why);

// A text about the copy, made one about the real path.
std::string WithPathReplaced(std::string text, const std::filesystem::path& copy,
                             const std::filesystem::path& real);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_SCRATCH_DIRECTORY_H_
