// The witness: a small file outside the store, one line of fixed length, written in place after
// every commit and synced at opening and closing.
//
//   "waybill-witness 1 <uuid, 36> <commit sequence, 20 digits> <XXH3-64 of what precedes, 16
//   hex>\n"
//
// Store first, witness second: a witness behind its store is what a crash leaves; one ahead of it
// says that the store went back in time.

#ifndef WAYBILL_STORE_RECOVERY_WITNESS_H_
#define WAYBILL_STORE_RECOVERY_WITNESS_H_

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "store/base/files.h"
#include "waybill/result.h"

namespace waybill::internal {

struct Testimony {
  std::array<std::uint8_t, 16> uuid{};
  std::uint64_t commit_sequence = 0;
};

struct WitnessReading {
  bool exists = false;
  bool claims_to_be_one = false;       // it begins as a witness does
  std::optional<Testimony> testimony;  // nullopt beside `exists`: it is no sound witness
  std::optional<Error> error;          // the system's: nobody knows what is there
};

WitnessReading ReadWitness(const std::filesystem::path& path);

class WitnessFile {
 public:
  // Opens or makes the file at `path` with `first` in it, synced. Makes its directory, but not the
  // one above. Errors as of files.h.
  static Result<WitnessFile> Open(const std::filesystem::path& path, const Testimony& first);

  // The last word of a witness that the store no longer has: copies of the store that still
  // remember it are older than that. Best effort; nothing where it is not a witness of this store.
  static void Retire(const std::filesystem::path& path, const Testimony& last);

  // After a commit. Not synced; an error is kept for Sync.
  void Advance(std::uint64_t commit_sequence);
  // kDamaged: the file was removed, replaced or changed by somebody else since it was opened. It
  // stays so: an older copy of it is removed, so that the next opening misses it.
  Result<void> Sync();

 private:
  WitnessFile(Fd file, FileId id, std::filesystem::path path, const Testimony& testimony)
      : file_(std::move(file)), id_(id), path_(std::move(path)), last_(testimony) {}

  void Lose();

  Fd file_;
  FileId id_;
  std::filesystem::path path_;
  Testimony last_;
  Result<void> written_;
  bool lost_ = false;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECOVERY_WITNESS_H_
