#include "store/engine/recovery/kept_databases.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "store/base/try.h"
#include "store/engine/recovery/backup.h"
#include "store/engine/recovery/inspect.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

struct Kept {
  std::pair<time_t, long> since;  // seconds, nanoseconds
  std::filesystem::path folder;
  friend auto operator<=>(const Kept&, const Kept&) = default;
};

// Oldest first.
std::vector<Kept> ListKept(const std::filesystem::path& quarantine) {
  std::vector<Kept> all;
  const auto names = ListDirectory(quarantine);
  if (!names) return all;
  for (const std::string& name : *names) {
    struct stat st {};
    Kept kept{{}, quarantine / name};
    // A folder without a database is not ours to remove.
    if (lstat(kept.folder.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) continue;
    kept.since = {st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
    if (lstat((kept.folder / "data.mdb").c_str(), &st) != 0 || !S_ISREG(st.st_mode)) continue;
    all.push_back(std::move(kept));
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::optional<Inspection> Look(const std::filesystem::path& path, FileIs file_is) {
  const auto file = OpenFile(path, O_RDONLY);
  if (!file) return std::nullopt;
  auto inspection = InspectFile(*file, file_is);
  if (!inspection) return std::nullopt;
  return std::move(*inspection);
}

bool HasBackupOf(const Inspection& database, const std::vector<Backup>& backups) {
  return std::any_of(backups.begin(), backups.end(), [&](const Backup& backup) {
    if (backup.commit_sequence != database.state->commit_sequence) return false;
    const auto copy = Look(backup.path, FileIs::kCompactCopy);
    return copy && copy->sound && copy->identity->uuid == database.identity->uuid &&
           copy->state->commit_sequence == database.state->commit_sequence;
  });
}

bool MayGo(const Kept& kept, const std::vector<Backup>& backups) {
  const auto inspection = Look(kept.folder / "data.mdb", FileIs::kStore);
  if (!inspection || inspection->newer_schema) return false;
  // The sound values of a failed database were carried over when it was set aside.
  return !inspection->sound || HasBackupOf(*inspection, backups);
}

}  // namespace

Result<std::filesystem::path> KeepAside(const std::filesystem::path& directory, const Fd& file) {
  struct stat st {};
  const std::filesystem::path database = directory / "data.mdb";
  if (fstat(file.get(), &st) != 0) return SystemError(errno, "look at", database);
  const std::filesystem::path quarantine = directory / "quarantine";
  const std::filesystem::path aside =
      quarantine / (TimeInNames(st.st_mtim.tv_sec) + "-" + std::to_string(st.st_ino));
  for (const auto& made : {quarantine, aside}) {
    TRY(MakePrivateDirectory(made));
  }
  const std::filesystem::path kept = aside / "data.mdb";
  if (link(database.c_str(), kept.c_str()) != 0 && errno != EEXIST) {
    return SystemError(errno, "keep the database as", kept);
  }
  TRY(SyncDirectory(aside));
  return kept;
}

std::vector<std::string> RemoveOldDatabases(const std::filesystem::path& directory) {
  std::vector<std::string> removed;
  const std::vector<Kept> all = ListKept(directory / "quarantine");
  if (all.size() <= kMaxKeptAside) return removed;
  const auto backups = FindBackups(directory);
  if (!backups) return removed;
  for (std::size_t i = 0; i < all.size() - kMaxKeptAside; ++i) {
    if (!MayGo(all[i], *backups)) continue;
    if (!RemoveFile(all[i].folder / "data.mdb")) continue;
    // Fails if somebody else put a file there: that one stays.
    static_cast<void>(rmdir(all[i].folder.c_str()));
    removed.push_back(all[i].folder.string());
  }
  return removed;
}

}  // namespace waybill::internal
