// What the guard remembers between its lives, in image_manager/waybill-guard/:
//
//   lock       held while a guard runs on this kubelet directory
//   session    the mark of an orderly end; there is none while a guard runs
//   witness    the store's
//   status.json  what `waybill guard --status` prints
//
// The mark is one line of JSON: the store and its commit sequence, and inode and times of change of
// pulled/ and pulling/. If all are still the same at the next start, no kubelet recorded anything
// meanwhile. Otherwise pulls may be unrecorded: a gap.
//
// What this can't see: a kubelet that ran without a guard, if the power failed before the file
// system wrote its directories.

#ifndef WAYBILL_GUARD_SESSION_H_
#define WAYBILL_GUARD_SESSION_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include "store/base/files.h"
#include "waybill/result.h"

namespace waybill::guard {

class Session {
 public:
  // Makes the folder if it is missing. kOwned: another guard runs. kUnsafePath, kIo, kDiskFull.
  static Result<Session> Begin(const std::filesystem::path& image_manager);

  // Whether a guard runs. Never in the way of one that starts.
  static Result<bool> Runs(const std::filesystem::path& image_manager);

  // Takes the mark away, for good, and returns whether it was there and fits: nothing was recorded
  // since the guard before this one ended. Remembers the folders, too. `commit_sequence`: the
  // store's, before it was opened.
  Result<bool> TakeMark(const std::string& store_uuid, std::uint64_t commit_sequence);
  // Remembers the folders as they are now, for the mark.
  void Capture();
  // The last thing that a guard does, after Capture. `commit_sequence`: after the store was closed.
  Result<void> LeaveMark(const std::string& store_uuid, std::uint64_t commit_sequence) const;

  // Whether the folder is still the one that this guard locked.
  bool InPlace() const;

 private:
  Session(std::filesystem::path image_manager, internal::Fd lock)
      : image_manager_(std::move(image_manager)), lock_(std::move(lock)) {}

  std::filesystem::path image_manager_;
  internal::Fd lock_;
  std::string folders_;
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_SESSION_H_
