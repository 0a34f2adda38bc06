// Backups: compact copies of the database in backup/, verified before they are trusted.
//
//   backup/v<schema version>-<commit sequence, 20 digits>-<time, YYYYMMDDTHHMMSSZ>.mdb
//
// The sequence only grows, so that the names of one store sort by age whatever the clock says.

#ifndef WAYBILL_STORE_OPENING_BACKUP_H_
#define WAYBILL_STORE_OPENING_BACKUP_H_

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "store/base/function_ref.h"
#include "store/base/options.h"
#include "store/opening/open_store.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

inline constexpr std::size_t kBackupsKept = 3;

// Copies the last commit, syncs and checks the copy. Only then it deletes the oldest backups beyond
// kBackupsKept and earlier ones of the same state. An earlier error leaves no copy: kDiskFull, kIo,
// kDamaged (the copy fails its check).
Result<Backup> MakeBackup(const OwnedStore& store, Timestamp now);

// The same of a store that is in use, as it is now. `is_kept` is asked of the copy's commit before
// the copy counts; its error is returned. Not in two threads at once.
Result<Backup> MakeBackupOfLive(const OpenedDatabase& database, Timestamp now,
                                FunctionRef<Result<void>(std::uint64_t sequence)> is_kept);

// The same into a file outside the store. kInvalidArgument: `path` exists, lies in the store, or is
// not the name of a file in a directory that exists. kInterrupted:
// `progress` returned false.
Result<Backup> WriteBackupOfLive(const OpenedDatabase& database, const std::filesystem::path& path,
                                 const Progress& progress,
                                 FunctionRef<Result<void>(std::uint64_t sequence)> is_kept);

// ListBackups of maintenance.h.
Result<std::vector<Backup>> FindBackups(const std::filesystem::path& directory);

// "YYYYMMDDTHHMMSSZ", for the names of files.
std::string TimeInNames(std::time_t time);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OPENING_BACKUP_H_
