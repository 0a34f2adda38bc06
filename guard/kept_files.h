// Keeps copies of the records that the guard takes away from the kubelet, until the next start but
// one:
//
//   image_manager/waybill-guard/kept/          by the guard that runs, or ran last
//   image_manager/waybill-guard/kept-before/   by the one before it
//
// A file there is called pulled-sha256-<hex>, and has mode 0600.

#ifndef WAYBILL_GUARD_KEPT_FILES_H_
#define WAYBILL_GUARD_KEPT_FILES_H_

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "waybill/result.h"

namespace waybill::guard {

// Of both folders together.
inline constexpr std::size_t kMaxKeptFiles = 4096;
inline constexpr std::size_t kMaxKeptBytes = std::size_t{64} << 20;

// Not thread-safe.
class KeptFiles {
 public:
  explicit KeptFiles(std::filesystem::path own_folder);

  // What the guard before this one kept becomes `kept-before`, and what was there goes. Once in a
  // guard's life; Keep does it, too.
  Result<void> Begin();

  // Keeps a copy, on disk when the call returns. Returns where it is; nullopt: a bound is reached.
  Result<std::optional<std::filesystem::path>> Keep(const std::string& name,
                                                    std::string_view content);

 private:
  std::filesystem::path own_;
  std::filesystem::path kept_;
  std::filesystem::path before_;
  bool begun_ = false;
  std::size_t files_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_KEPT_FILES_H_
