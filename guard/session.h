// The guard's folder, image_manager/waybill-guard/, and the lock by which one guard has it:
//
//   lock         held while a guard runs on this kubelet directory
//   witness      the store's
//   status.json  what `waybill guard --status` prints
//   kept/        kept_files.h

#ifndef WAYBILL_GUARD_SESSION_H_
#define WAYBILL_GUARD_SESSION_H_

#include <filesystem>
#include <utility>

#include "store/base/files.h"
#include "waybill/result.h"

namespace waybill::guard {

// Whether a process holds a lock on the file. Asking never disturbs one that takes it.
Result<bool> IsLocked(const std::filesystem::path& path);

class Session {
 public:
  // `own`: the guard's folder, which is made if it is missing. kOwned: another guard runs.
  // kUnsafePath, kIo, kDiskFull.
  static Result<Session> Begin(const std::filesystem::path& own);

  // Whether a guard runs that has this folder.
  static Result<bool> Runs(const std::filesystem::path& own);

  // Whether the guard's folder, which is there now, is still the one that this guard locked.
  bool InPlace(const std::filesystem::path& own) const;

 private:
  explicit Session(internal::Fd lock) : lock_(std::move(lock)) {}

  internal::Fd lock_;
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_SESSION_H_
