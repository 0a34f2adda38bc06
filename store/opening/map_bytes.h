// The size of LMDB's memory map, which bounds data.mdb. A store remembers it in its meta page,
// where LMDB looks for it.

#ifndef WAYBILL_STORE_OPENING_MAP_BYTES_H_
#define WAYBILL_STORE_OPENING_MAP_BYTES_H_

#include <cstdint>
#include <filesystem>

#include "store/base/files.h"
#include "store/opening/inspect.h"
#include "waybill/result.h"

namespace waybill::internal {

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

#endif  // WAYBILL_STORE_OPENING_MAP_BYTES_H_
