// What the guard remembers between its lives, in image_manager/waybill-guard/:
//
//   lock       held while a guard runs on this kubelet directory
//   session    the mark of an orderly end; there is none while a guard runs
//   witness    the store's
//   status.json  what `waybill guard --status` prints
//
// The mark is one line of JSON: the store and its commit sequence, and inode and times of change of
// pulled/ and pulling/, and of symlinks that lead there. If all are still the same at the next
// start, no kubelet recorded anything meanwhile. Otherwise pulls may be unrecorded: a gap.
//
// A guard that had to end at once leaves in its mark what it saw but had not recorded yet (Left);
// the next start records it first. To an older waybill such a mark does not fit.
//
// What this can't see: a kubelet that ran without a guard, if the power failed before the file
// system wrote its directories.

#ifndef WAYBILL_GUARD_SESSION_H_
#define WAYBILL_GUARD_SESSION_H_

#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "store/base/files.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::guard {

// What a guard saw, and left to the next one to record.
struct Left {
  std::deque<ImagePulledRecord> records = {};  // what is to be added to each, in this order
  std::deque<std::string> pulls = {};          // strings of pulls of unknown end
  // What can't be told by these, and so is a gap; not in the mark. Empty: nothing.
  std::string missed = {};

  bool empty() const { return records.empty() && pulls.empty(); }
};
// Above these nothing can be left: what was not recorded is a gap.
inline constexpr std::size_t kMaxLeft = 20'000;
inline constexpr std::size_t kMaxMarkBytes = std::size_t{16} << 20;

// Whether a process holds a lock on the file. Asking never disturbs one that takes it.
Result<bool> IsLocked(const std::filesystem::path& path);

class Session {
 public:
  // `own`: the guard's folder, which is made if it is missing. `stamped`: pulled/ and pulling/, and
  // links that lead there. kOwned: another guard runs. kUnsafePath, kIo, kDiskFull.
  static Result<Session> Begin(const std::filesystem::path& own,
                               std::vector<std::filesystem::path> stamped);

  // Whether a guard runs that has this folder.
  static Result<bool> Runs(const std::filesystem::path& own);

  // Takes the mark away, for good, and returns whether it was there and fits: since the guard
  // before this one ended, nothing was recorded except what it left. Remembers the folders, too.
  // `commit_sequence`: the store's, before it was opened.
  Result<bool> TakeMark(const std::string& store_uuid, std::uint64_t commit_sequence, Left& left);
  // What `stamped` is from now on.
  void Stamp(std::vector<std::filesystem::path> stamped) { stamped_ = std::move(stamped); }
  // Remembers the folders as they are now, for the mark.
  void Capture();
  // The last thing that a guard does, after Capture. `commit_sequence`: after the store was closed.
  // `left` is within the bounds above (FitsMark).
  Result<void> LeaveMark(const std::string& store_uuid, std::uint64_t commit_sequence,
                         const Left& left) const;
  // Whether a mark can hold it.
  static bool FitsMark(const Left& left);

  // Whether the guard's folder, which is there now, is still the one that this guard locked.
  bool InPlace(const std::filesystem::path& own) const;

 private:
  Session(std::filesystem::path own, std::vector<std::filesystem::path> stamped, internal::Fd lock)
      : own_(std::move(own)), stamped_(std::move(stamped)), lock_(std::move(lock)) {}

  std::filesystem::path own_;
  std::vector<std::filesystem::path> stamped_;
  internal::Fd lock_;
  std::string folders_;
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_SESSION_H_
