// Makes a database beside the store and renames it into place, so that data.mdb is never half
// written.

#ifndef WAYBILL_STORE_OPENING_NEW_DATABASE_H_
#define WAYBILL_STORE_OPENING_NEW_DATABASE_H_

#include <cstdint>
#include <filesystem>
#include <functional>

#include "store/base/files.h"
#include "store/disk/header.h"
#include "store/disk/store_txn.h"
#include "store/disk/trust.h"
#include "store/opening/inspect.h"
#include "waybill/result.h"

namespace waybill::internal {

// A random UUID and hash seed. kIo: the system provides no randomness.
Result<Identity> NewIdentity(Timestamp now);

struct NewDatabase {
  Identity identity;
  std::uint64_t sequence = 0;  // the commit sequence before it
  Journal journal;             // entries that it takes over
  Distrust distrust;           // empty: trustful
  Timestamp now;
  BootTime boot;
  std::uint64_t map_bytes = 0;
  bool map_may_grow = false;  // to what is needed; `fill` may then run several times
  std::function<Result<void>(StoreTxn&)> fill;  // empty: nothing more
};

// Writes a database, all in one transaction, to a temporary directory inside `directory`, and syncs
// it.
Result<void> PrepareDatabase(const std::filesystem::path& directory, const NewDatabase& made);

// Renames the prepared database over data.mdb, has commit.mark say that it is acknowledged, and
// removes lock.mdb, whose transaction ID would pick the wrong meta page of a new file.
// OpenDatabaseAsOwner handles a crash before the last.
Result<void> InstallDatabase(const std::filesystem::path& directory, const NewDatabase& made);

// Removes leftovers of PrepareDatabase after a crash.
Result<void> ClearPreparation(const std::filesystem::path& directory);

// The size of LMDB's memory map, which bounds data.mdb. A store remembers it in its meta page,
// where LMDB looks for it.
inline constexpr std::uint64_t kMinMapBytes = std::uint64_t{1} << 20;

// kInvalidArgument: what a caller gives is out of range. 0, for "as remembered", is not.
Result<void> CheckMapBytes(std::uint64_t given);

// What the file remembers; 0: nothing within the bounds, or no meta page can be read.
std::uint64_t RememberedMapBytes(const Inspection& inspection);

// `given` in whole pages; if it is 0, what is remembered; if that is 0, the default.
std::uint64_t ChooseMapBytes(std::uint64_t given, std::uint64_t remembered);

// Before LMDB opens a sound file: it would remember a larger map only, and only at its next commit.
// Writes nothing if the file says `bytes` already.
Result<void> RememberMapBytes(const Fd& file, const std::filesystem::path& path,
                              const Inspection& inspection, std::uint64_t bytes);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OPENING_NEW_DATABASE_H_
