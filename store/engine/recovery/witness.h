// The witness: a small file outside the store, one line of fixed length, written in place after
// every commit and synced at opening and closing.
//
//   "waybill-witness 1 <uuid, 36> <commit sequence, 20 digits> <XXH3-64 of what precedes, 16
//   hex>\n"
//
// The store is written first, the witness second, and then the call returns. So after a kill the
// witness lacks at most the commit that nobody was told of; after a power cut it may be further
// behind. A witness ahead of its store proves that the store went back in time.

#ifndef WAYBILL_STORE_ENGINE_RECOVERY_WITNESS_H_
#define WAYBILL_STORE_ENGINE_RECOVERY_WITNESS_H_

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>

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
  bool is_unfinished = false;          // empty, or zeros after less than a witness
  std::optional<Testimony> testimony;  // nullopt although `exists`: not a valid witness
  std::optional<Error> error;          // the system's: the content is unknown
};

WitnessReading ReadWitness(const std::filesystem::path& path);

// Which directory's store a witness is of: a copy of the store must leave it alone. Noted beside
// the witness, in a file with ".store" appended to its name, which older waybills ignore:
//
//   "waybill-witness-of 1 <uuid> <device, 20 digits> <inode, 20 digits> <XXH3-64 of this line
//   without the checksum, 16 hex> <the directory's path>\n"
//
// The directory is the same one under another path (renamed, or a bind mount) if device and inode
// are, and with another inode (restored in place) if the path is. If it is neither, but nothing
// is under the noted path any more, or another store, the store was moved.

// The noted directory, if the store `uuid` in `directory` is only a copy of the one there; empty:
// the witness is its own, or nothing is there any more.
std::filesystem::path OriginalOf(const std::filesystem::path& witness,
                                 const std::array<std::uint8_t, 16>& uuid,
                                 const std::filesystem::path& directory);
// The noted directory, if it is another one, whatever is there now; empty: it is this one, or no
// directory of a store `uuid` is noted.
std::filesystem::path OtherOwnerOf(const std::filesystem::path& witness,
                                   const std::array<std::uint8_t, 16>& uuid,
                                   const std::filesystem::path& directory);
// Notes it, unless it is noted. Leaves somebody else's file alone.
Result<void> NoteOwner(const std::filesystem::path& witness,
                       const std::array<std::uint8_t, 16>& uuid,
                       const std::filesystem::path& directory);

class WitnessFile {
 public:
  // Opens or makes the file at `path`, writes `first` and syncs it. Makes its directory, but not
  // the parent's. Errors as in files.h.
  static Result<WitnessFile> Open(const std::filesystem::path& path, const Testimony& first);

  // Updates the witness that the store used before, a last time, so that copies of the store that
  // still remember it count as older. Best effort; leaves a witness of another store alone.
  static void Retire(const std::filesystem::path& path, const Testimony& last);

  // Called after a commit. Does not sync; Sync reports its error.
  void Advance(std::uint64_t commit_sequence) noexcept;
  // kDamaged: the file was removed, replaced or changed from outside since it was opened. It is not
  // repaired: an older copy is removed, so that the next opening misses the witness.
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

#endif  // WAYBILL_STORE_ENGINE_RECOVERY_WITNESS_H_
