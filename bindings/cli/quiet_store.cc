#include "bindings/cli/quiet_store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <utility>

#include "bindings/cli/store_access.h"
#include "store/base/try.h"
#include "store/maintenance/for_the_command.h"

namespace waybill::cli {
namespace {

namespace fs = std::filesystem;

// Both meta pages, of any page size: every commit writes one of them.
constexpr std::size_t kHeadBytes = std::size_t{128} << 10;
constexpr std::size_t kMarkBytes = std::size_t{1} << 16;

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

}  // namespace

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
  auto scratch = TRY(ScratchDirectory::Make("waybill-copy"));
  store.directory_ = scratch.path() / "store";
  store.copy_.emplace(std::move(scratch));
  TRY(internal::MakePrivateDirectory(store.directory_));
  if (before->mark) {
    const fs::path copy = store.directory_ / "commit.mark";
    TRY(internal::WriteFileDurably(copy, *before->mark));
  }
  TRY(CopyOpenFile(*database, path, store.directory_ / "data.mdb", progress));
  const auto after = Moment::Of(*database, path, mark);
  if (!after && after.error().code != ErrorCode::kOwned) return after.error();
  if (!after || *after != *before) return Changes(path);
  return store;
}

Result<QuietStore> QuietStore::OfKubelet(OpenOptions options) {
  auto scratch = TRY(ScratchDirectory::Make("waybill-copy"));
  QuietStore store(options.kubelet_directory);
  store.directory_ = scratch.path() / "store";
  store.copy_.emplace(std::move(scratch));
  options.directory = store.directory_;
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

Result<void> QuietStore::Migrate(Rules rules) {
  auto migrated = WithStore(NodeStore::Open({.directory = directory_,
                                             .create_if_missing = false,
                                             .witness = Witness::Remembered(),
                                             .leaves_witness = true,
                                             .rules = rules,
                                             .continues_pulls = true}),
                            [](const NodeStore& opened) -> Result<std::uint32_t> {
                              const RecoveryReport& report = opened.recovery_report();
                              return report.migration ? report.migration->from : 0;
                            });
  if (!migrated) return migrated.error();
  migrated_from_ = *migrated;
  return {};
}

Error QuietStore::InTruth(Error error) const {
  if (!copy_) return error;
  error.message = WithPathReplaced(std::move(error.message), directory_, real_);
  error.hint = WithPathReplaced(std::move(error.hint), directory_, real_);
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
