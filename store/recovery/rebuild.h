// Sets a failed database aside and makes one that takes its place, with what was sound in it.

#ifndef WAYBILL_STORE_RECOVERY_REBUILD_H_
#define WAYBILL_STORE_RECOVERY_REBUILD_H_

#include <cstdint>
#include <filesystem>

#include "store/base/files.h"
#include "store/recovery/inspect.h"
#include "store/recovery/witness_settling.h"
#include "waybill/report.h"
#include "waybill/result.h"
#include "waybill/types.h"

namespace waybill::internal {

// `file` is data.mdb in `directory`, and failed `inspection`. The failed file stays under
// quarantine/, where report.set_aside_path says; nothing in it is changed. What takes its place is
// distrustful. Carried over:
//
//   records     of which the credentials only where it is proven that nothing is missing or stale:
//               the tree is the newest, no witness contradicts, and the table's digest matches.
//               Otherwise they are known, and must be verified anew.
//   intents, quarantine entries, imported files, runtime handlers
//               all that can be read: each can only close
//   preloaded records                             only where proven, as above
//
// Crash-safe at any point: until the rename the old file is in place, and the next opening begins
// anew.
Result<void> Rebuild(const std::filesystem::path& directory, const Fd& file,
                     const Inspection& inspection, OnReadError on_error, const Hearing& hearing,
                     Timestamp now, std::uint64_t map_bytes, RecoveryReport& report);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECOVERY_REBUILD_H_
