#include "bindings/cli/store_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <vector>

#include "bindings/cli/store_access.h"
#include "store/base/files.h"
#include "store/base/try.h"
#include "store/maintenance/for_the_command.h"

namespace waybill::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRoomHint = "TMPDIR names a directory with room for a copy of the store";

// Both meta pages, of any page size: every commit writes one of them.
constexpr std::size_t kHeadBytes = std::size_t{128} << 10;
constexpr std::size_t kMarkBytes = std::size_t{1} << 16;

Error CopyFailed(const fs::path& path, std::string_view why) {
  return {ErrorCode::kIo,
          fmt::format("{} could not be copied: {}; nothing was changed", path.string(), why),
          kRoomHint};
}

// Copies all of `from`, whose name is `name`, to the new file `to`. kIo; kDiskFull; kInterrupted:
// `progress` returned false.
Result<void> CopyOpenFile(const internal::Fd& from, const fs::path& name, const fs::path& to,
                          const Progress& progress) {
  auto file = TRY(internal::OpenFile(to, O_WRONLY | O_CREAT | O_EXCL));
  const off_t total = ::lseek(from.get(), 0, SEEK_END);
  if (total < 0) return CopyFailed(name, ::strerror(errno));
  // Before a file that claims to be huge fills the memory that a file system may lie in.
  struct ::statvfs room {};
  if (::fstatvfs(file.get(), &room) == 0 &&
      static_cast<std::uint64_t>(total) > std::uint64_t{room.f_bavail} * room.f_frsize) {
    return CopyFailed(name, fmt::format("there is no room for {} bytes", total));
  }
  std::string buffer(std::size_t{1} << 20, '\0');
  for (off_t at = 0; at < total;) {
    const ssize_t got = ::pread(from.get(), buffer.data(), buffer.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return CopyFailed(name, got < 0 ? ::strerror(errno) : "it became shorter");
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
    TRY(internal::PWriteAll(file, bytes, at, to));
    at += got;
    if (progress && !progress(static_cast<std::uint64_t>(at), static_cast<std::uint64_t>(total))) {
      return Error{ErrorCode::kInterrupted, "it was stopped; nothing was changed", {}};
    }
  }
  return {};
}

Result<std::string> HeadOf(const internal::Fd& file, const fs::path& path) {
  std::string head(kHeadBytes, '\0');
  std::size_t length = 0;
  while (length < head.size()) {
    const ssize_t got =
        ::pread(file.get(), head.data() + length, head.size() - length, static_cast<off_t>(length));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return CopyFailed(path, ::strerror(errno));
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  head.resize(length);
  return head;
}

// nullopt: it is not there.
Result<std::optional<std::string>> ReadMark(const fs::path& path) {
  auto mark = internal::ReadWholeFile(path, kMarkBytes);
  if (mark) return std::optional(*std::move(mark));
  if (mark.error().code == ErrorCode::kNotFound) return std::optional<std::string>();
  return CopyFailed(path, mark.error().message);
}

Error Changes(const fs::path& path) {
  return {
      ErrorCode::kOwned,
      path.string() + " changes while it is copied: a process writes to it; nothing was changed",
      "try again"};
}

// The store's state at one moment. No lock shows an owner on another machine, or beyond an overlay,
// so a copy counts only if no commit ended while it was made. Until a commit ends, LMDB overwrites
// nothing of the one before.
struct Moment {
  std::string head;
  std::optional<std::string> mark;

  static Result<Moment> Of(const internal::Fd& database, const fs::path& path,
                           const fs::path& mark_path) {
    TRY(internal::CheckUnowned(database, path));
    auto head = TRY(HeadOf(database, path));
    auto mark = TRY(ReadMark(mark_path));
    return Moment{std::move(head), std::move(mark)};
  }
  bool operator==(const Moment&) const = default;
};

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

Result<StoreCopy> StoreCopy::Make(std::string_view name, fs::path real) {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (error) {
    return Error{ErrorCode::kIo,
                 fmt::format("there is no directory for temporary files: {}", error.message()),
                 kRoomHint};
  }
  std::string path = (parent / fmt::format("{}-XXXXXX", name)).string();
  if (::mkdtemp(path.data()) == nullptr) {
    return Error{ErrorCode::kIo, fmt::format("{} could not be made: {}", path, ::strerror(errno)),
                 kRoomHint};
  }
  return StoreCopy(path, std::move(real));
}

Result<StoreCopy> StoreCopy::ToStart(const fs::path& real, const Progress& progress) {
  auto made = TRY(Make("waybill-dry-run", real));
  const fs::path& copy = made.directory();
  if (!IsThere(real)) {
    const fs::path parent = internal::WithoutTrailingSlashes(fs::absolute(real)).parent_path();
    auto is_directory = TRY(internal::IsDirectory(parent));
    if (is_directory) return made;
    return Error{ErrorCode::kNotFound,
                 fmt::format("cannot make directory {}: {} is not a directory", real.string(),
                             parent.string()),
                 {}};
  }
  TRY(internal::CheckPrivateDirectory(real));
  TRY(internal::CheckStoreFiles(real));
  TRY(internal::MakePrivateDirectory(copy));
  if (!IsThere(real / "data.mdb")) {
    TRY(internal::CheckNewDirectory(real));
    TRY(CopyTraces(real, copy));
    return made;
  }
  auto lock = TRY(internal::OwnerLock::Take(real));
  TRY(CopyIfThere(real, copy, "commit.mark"));
  TRY(CopyOpenFile(lock.database(), real / "data.mdb", copy / "data.mdb", progress));
  return made;
}

StoreCopy::~StoreCopy() {
  std::error_code ignored;
  if (!scratch_.empty()) fs::remove_all(scratch_, ignored);
}

std::string StoreCopy::InTruth(std::string text) const {
  const std::string from = directory_.string();
  const std::string to = real_.string();
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
  return text;
}

Error StoreCopy::InTruth(Error error) const {
  error.message = InTruth(std::move(error.message));
  error.hint = InTruth(std::move(error.hint));
  return error;
}

void StoreCopy::PutInTruth(OpeningReport& report) const {
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

bool QuietStore::IsNeeded(const fs::path& directory) {
  return ::faccessat(AT_FDCWD, (directory / "data.mdb").c_str(), F_OK, AT_EACCESS) == 0 &&
         ::faccessat(AT_FDCWD, (directory / "lock.mdb").c_str(), R_OK | W_OK, AT_EACCESS) != 0;
}

Result<QuietStore> QuietStore::Of(const fs::path& directory, const Progress& progress) {
  if (auto safe = internal::CheckPrivateDirectory(directory); !safe) {
    return WithStartHint(safe.error());
  }
  TRY(internal::CheckStoreFiles(directory));
  QuietStore store(directory);
  const fs::path path = directory / "data.mdb";
  const fs::path mark = directory / "commit.mark";
  auto database = internal::OpenFile(path, O_RDONLY);
  if (!database) return WithStartHint(database.error());
  auto before = Moment::Of(*database, path, mark);
  if (!before && before.error().code == ErrorCode::kOwned) {
    if (!IsNeeded(directory)) return store;
    return Error{ErrorCode::kOwned,
                 path.string() +
                     " is in use by a process that owns its store, and who reads beside it needs "
                     "a lock.mdb that can be written; nothing was changed",
                 "run this where the store can be written"};
  }
  if (!before) return before.error();
  const fs::path& copied =
      store.copy_.emplace(TRY(StoreCopy::Make("waybill-copy", directory))).directory();
  TRY(internal::MakePrivateDirectory(copied));
  if (before->mark) {
    TRY(internal::WriteFileDurably(copied / "commit.mark", *before->mark));
  }
  TRY(CopyOpenFile(*database, path, copied / "data.mdb", progress));
  const auto after = Moment::Of(*database, path, mark);
  if (!after && after.error().code != ErrorCode::kOwned) return after.error();
  if (!after || *after != *before) return Changes(path);
  return store;
}

Result<QuietStore> QuietStore::OfKubelet(NodeStoreOptions options) {
  QuietStore store(options.kubelet_directory);
  options.directory =
      store.copy_.emplace(TRY(StoreCopy::Make("waybill-copy", store.real_))).directory();
  options.witness = Witness::None();
  auto opened = WithStore(NodeStore::Open(std::move(options)),
                          [](const NodeStore&) -> Result<bool> { return true; });
  if (!opened) return store.InTruth(opened.error());
  return store;
}

Result<std::unique_ptr<NodeStore>> QuietStore::ObserveAsItIs(ObserveOptions options) const {
  options.directory = readable();
  auto observed = NodeStore::Observe(std::move(options));
  if (!observed) return InTruth(WithStartHint(observed.error()));
  return observed;
}

Result<std::unique_ptr<NodeStore>> QuietStore::Observe(ObserveOptions options) {
  options.directory = readable();
  auto observed = NodeStore::Observe(options);
  if (!observed && observed.error().code == ErrorCode::kOlderSchema && copy_) {
    auto migrated = Migrate(options.rules);
    if (!migrated) return InTruth(migrated.error());
    observed = NodeStore::Observe(std::move(options));
  }
  if (!observed) return InTruth(WithStartHint(observed.error()));
  return observed;
}

Result<void> QuietStore::Migrate(Mode rules) {
  auto migrated = WithStore(NodeStore::Open({.directory = readable(),
                                             .create_if_missing = false,
                                             .witness = Witness::Remembered(),
                                             .leaves_witness = true,
                                             .rules = rules,
                                             .continues_pulls = true,
                                             .decides = false}),
                            [](const NodeStore& opened) -> Result<std::uint32_t> {
                              const OpeningReport& report = opened.recovery_report();
                              return report.migration ? report.migration->from : 0;
                            });
  if (!migrated) return migrated.error();
  migrated_from_ = *migrated;
  return {};
}

Error QuietStore::InTruth(Error error) const {
  if (!copy_) return error;
  error = copy_->InTruth(std::move(error));
  if (!IsNeeded(real_)) return error;
  // Don't advise to recover a store that can't be written, nor a copy: opening a copy would move
  // the witness of the original.
  if (error.hint_code == Hint::kRecover) {
    error.hint_code = Hint::kNone;
    error.hint =
        "nothing decides by it; if it is the node's own store, run `waybill start` where it can be "
        "written";
  } else if (error.code == ErrorCode::kOlderSchema) {
    error.hint_code = Hint::kNone;
    error.hint =
        "if it is the node's own store, migrate it with `waybill migrate`, which makes a backup "
        "first; `waybill preview` reads an older schema as it is";
  }
  return error;
}

}  // namespace waybill::cli
