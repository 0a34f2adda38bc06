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
  std::optional<Testimony> testimony;  // nullopt beside `exists`: it can't be read
};

WitnessReading ReadWitness(const std::filesystem::path& path);

class WitnessFile {
 public:
  // Opens or makes the file at `path` with `first` in it, synced. Makes its directory, but not the
  // one above. Errors as of files.h.
  static Result<WitnessFile> Open(const std::filesystem::path& path, const Testimony& first);

  // After a commit. Not synced; an error is kept for Sync.
  void Advance(std::uint64_t commit_sequence);
  Result<void> Sync();

 private:
  WitnessFile(Fd file, std::filesystem::path path, const std::array<std::uint8_t, 16>& uuid)
      : file_(std::move(file)), path_(std::move(path)), uuid_(uuid) {}

  Fd file_;
  std::filesystem::path path_;
  std::array<std::uint8_t, 16> uuid_;
  Result<void> written_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECOVERY_WITNESS_H_
