#include "bindings/cli/scratch_start.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <system_error>
#include <vector>

#include "store/base/files.h"
#include "store/base/try.h"
#include "store/maintenance/for_the_command.h"

namespace waybill::cli {
namespace {

namespace fs = std::filesystem;

bool IsThere(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

Result<void> MakeEmptyFile(const fs::path& path) {
  return internal::OpenFile(path, O_WRONLY | O_CREAT).map([](const internal::Fd&) {});
}

Result<void> CopyIfThere(const fs::path& from, const fs::path& to, const char* name) {
  std::error_code error;
  if (IsThere(from / name)) fs::copy_file(from / name, to / name, error);
  return error ? CopyFailed(from / name, error.message()) : Result<void>();
}

// Copies the files by which an opening sees, in a directory without data.mdb, that a store was
// lost.
Result<void> CopyTraces(const fs::path& from, const fs::path& to) {
  for (const char* name : {"owner.lock", "commit.mark"}) {
    TRY(CopyIfThere(from, to, name));
  }
  if (IsThere(from / "lock.mdb")) {
    TRY(MakeEmptyFile(to / "lock.mdb"));
  }
  for (const char* name : {"quarantine", "backup"}) {
    if (!IsThere(from / name)) continue;
    TRY(internal::MakePrivateDirectory(to / name));
    auto files = TRY(internal::ListDirectory(from / name));
    for (const std::string& file : files) {
      TRY(MakeEmptyFile(to / name / file));
    }
  }
  return {};
}

}  // namespace

ScratchStart::ScratchStart(ScratchDirectory directory, const OpenOptions& real)
    : directory_(std::move(directory)), real_(real.directory), options_(real) {
  options_.directory = directory_.path() / "store";
  options_.leaves_witness = true;
}

Result<std::unique_ptr<ScratchStart>> ScratchStart::Make(const OpenOptions& real,
                                                         const Progress& progress) {
  auto directory = TRY(ScratchDirectory::Make("waybill-dry-run"));
  std::unique_ptr<ScratchStart> scratch(new ScratchStart(std::move(directory), real));
  TRY(scratch->Copy(progress));
  return scratch;
}

Result<void> ScratchStart::Copy(const Progress& progress) const {
  const fs::path& copy = options_.directory;
  if (!IsThere(real_)) {
    const fs::path parent = internal::WithoutTrailingSlashes(fs::absolute(real_)).parent_path();
    auto is_directory = TRY(internal::IsDirectory(parent));
    if (is_directory) return {};
    return Error{ErrorCode::kNotFound,
                 fmt::format("cannot make directory {}: {} is not a directory", real_.string(),
                             parent.string()),
                 {}};
  }
  TRY(internal::CheckPrivateDirectory(real_));
  TRY(internal::CheckStoreFiles(real_));
  TRY(internal::MakePrivateDirectory(copy));
  if (!IsThere(real_ / "data.mdb")) {
    auto free = internal::CheckNewDirectory(real_);
    return free ? CopyTraces(real_, copy) : free;
  }
  auto lock = TRY(internal::OwnerLock::Take(real_));
  TRY(CopyIfThere(real_, copy, "commit.mark"));
  return CopyOpenFile(lock.database(), real_ / "data.mdb", copy / "data.mdb", progress);
}

std::string ScratchStart::InTruth(std::string text) const {
  return WithPathReplaced(std::move(text), options_.directory, real_);
}

Error ScratchStart::InTruth(Error error) const {
  error.message = InTruth(std::move(error.message));
  error.hint = InTruth(std::move(error.hint));
  return error;
}

void ScratchStart::PutInTruth(RecoveryReport& report) const {
  const auto put = [this](std::string& text) { text = InTruth(std::move(text)); };
  for (std::string* text :
       {&report.set_aside_path, &report.distrust_reason, &report.user_namespaces.refused_because}) {
    put(*text);
  }
  for (std::vector<std::string>* texts :
       {&report.removed_paths, &report.findings, &report.mended, &report.warnings}) {
    std::for_each(texts->begin(), texts->end(), put);
  }
  // The copy's own.
  if (report.migration) report.migration->backup.clear();
}

}  // namespace waybill::cli
