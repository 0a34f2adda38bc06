// The witness: the line outside the store (disk/mark_line.h), written after every commit and
// synced at opening and closing.
//
// The store is written first, the witness second, and then the call returns. So after a kill the
// witness lacks at most the commit that nobody was told of; after a power cut it may be further
// behind. A witness ahead of its store proves that the store went back in time.

#ifndef WAYBILL_STORE_OPENING_WITNESS_H_
#define WAYBILL_STORE_OPENING_WITNESS_H_

#include <cstdint>
#include <filesystem>
#include <utility>

#include "store/base/files.h"
#include "store/disk/mark_line.h"
#include "waybill/result.h"

namespace waybill::internal {

class WitnessFile {
 public:
  // Makes the file at `path`, or replaces it, and syncs it. Errors as in files.h.
  static Result<WitnessFile> Open(const std::filesystem::path& path, const MarkLine& first);

  // Updates the witness that the store used before, a last time, so that copies of the store that
  // still remember it count as older. Best effort; leaves a witness of another store alone.
  static void Retire(const std::filesystem::path& path, const MarkLine& last);

  // Called after a commit. Does not sync; Sync reports its error. After every other commit it looks
  // whether the file is still under its name.
  void Advance(std::uint64_t commit_sequence) noexcept;
  // kDamaged: the file was removed, replaced or changed from outside since it was opened. It is not
  // repaired: an older copy is removed, so that the next opening misses the witness.
  Result<void> Sync();

 private:
  WitnessFile(MarkFile file, FileId id, MarkLine line)
      : file_(std::move(file)), id_(id), last_(std::move(line)) {}

  void Lose();

  MarkFile file_;
  FileId id_;
  MarkLine last_;
  Result<void> written_;
  bool lost_ = false;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OPENING_WITNESS_H_
