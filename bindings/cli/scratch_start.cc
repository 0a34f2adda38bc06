#include "bindings/cli/scratch_start.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <vector>

#include "store/base/files.h"
#include "store/recovery/owner_lock.h"
#include "store/recovery/store_files.h"

namespace waybill::cli {
namespace {

namespace fs = std::filesystem;

Error CopyFailed(const fs::path& path, std::string_view why) {
  return {ErrorCode::kIo,
          fmt::format("{} could not be copied for a dry run: {}; nothing was changed",
                      path.string(), why),
          "TMPDIR names a directory with room for a copy of the store"};
}

bool IsThere(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

Result<void> CopyDatabase(const internal::Fd& from, const fs::path& name, const fs::path& to,
                          const Progress& progress) {
  auto file = internal::OpenFile(to, O_WRONLY | O_CREAT | O_EXCL);
  if (!file) return file.error();
  const off_t total = ::lseek(from.get(), 0, SEEK_END);
  if (total < 0) return CopyFailed(name, ::strerror(errno));
  std::string buffer(std::size_t{1} << 20, '\0');
  for (off_t at = 0; at < total;) {
    const ssize_t got = ::pread(from.get(), buffer.data(), buffer.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return CopyFailed(name, got < 0 ? ::strerror(errno) : "it became shorter");
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
    if (auto written = internal::PWriteAll(*file, bytes, at, to); !written) return written;
    at += got;
    if (!progress(static_cast<std::uint64_t>(at), static_cast<std::uint64_t>(total))) {
      return Error{ErrorCode::kInterrupted, "the dry run was stopped; nothing was changed", {}};
    }
  }
  return {};
}

Result<void> MakeEmptyFile(const fs::path& path) {
  return internal::OpenFile(path, O_WRONLY | O_CREAT).map([](const internal::Fd&) {});
}

Result<void> CopyIfThere(const fs::path& from, const fs::path& to, const char* name) {
  std::error_code error;
  if (IsThere(from / name)) fs::copy_file(from / name, to / name, error);
  return error ? CopyFailed(from / name, error.message()) : Result<void>();
}

// By which opening a directory without data.mdb sees that a store was lost.
Result<void> CopyTraces(const fs::path& from, const fs::path& to) {
  for (const char* name : {"owner.lock", "commit.mark"}) {
    if (auto copied = CopyIfThere(from, to, name); !copied) return copied;
  }
  if (IsThere(from / "lock.mdb")) {
    if (auto made = MakeEmptyFile(to / "lock.mdb"); !made) return made;
  }
  for (const char* name : {"quarantine", "backup"}) {
    if (!IsThere(from / name)) continue;
    if (auto made = internal::MakePrivateDirectory(to / name); !made) return made;
    auto files = internal::ListDirectory(from / name);
    if (!files) return files.error();
    for (const std::string& file : *files) {
      if (auto made = MakeEmptyFile(to / name / file); !made) return made;
    }
  }
  return {};
}

}  // namespace

ScratchStart::ScratchStart(fs::path directory, const OpenOptions& real)
    : directory_(std::move(directory)), real_(real.directory), options_(real) {
  options_.directory = directory_ / "store";
  options_.leaves_witness = true;
}

ScratchStart::~ScratchStart() {
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

Result<std::unique_ptr<ScratchStart>> ScratchStart::Make(const OpenOptions& real,
                                                         const Progress& progress) {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (error) return CopyFailed(real.directory, error.message());
  std::string name = (parent / "waybill-dry-run-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) return CopyFailed(name, ::strerror(errno));
  std::unique_ptr<ScratchStart> scratch(new ScratchStart(name, real));
  if (auto copied = scratch->Copy(progress); !copied) return copied.error();
  return scratch;
}

Result<void> ScratchStart::Copy(const Progress& progress) const {
  const fs::path& copy = options_.directory;
  if (!IsThere(real_)) {
    const fs::path parent = internal::WithoutTrailingSlashes(fs::absolute(real_)).parent_path();
    auto is_directory = internal::IsDirectory(parent);
    if (!is_directory.has_value()) return is_directory.error();
    if (*is_directory) return {};
    return Error{ErrorCode::kNotFound,
                 fmt::format("cannot make directory {}: {} is not a directory", real_.string(),
                             parent.string()),
                 {}};
  }
  if (auto safe = internal::CheckPrivateDirectory(real_); !safe) return safe;
  if (auto safe = internal::CheckStoreFiles(real_); !safe) return safe;
  if (auto made = internal::MakePrivateDirectory(copy); !made) return made;
  if (!IsThere(real_ / "data.mdb")) return CopyTraces(real_, copy);
  auto lock = internal::OwnerLock::Take(real_);
  if (!lock) return lock.error();
  if (auto copied = CopyIfThere(real_, copy, "commit.mark"); !copied) return copied;
  return CopyDatabase(lock->database(), real_ / "data.mdb", copy / "data.mdb", progress);
}

std::string ScratchStart::InTruth(std::string text) const {
  const std::string copy = options_.directory.string();
  for (auto at = text.find(copy); at != std::string::npos; at = text.find(copy, at)) {
    text.replace(at, copy.size(), real_.string());
    at += real_.string().size();
  }
  return text;
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
