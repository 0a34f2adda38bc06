// Whether a kubelet runs on a directory, and whether it needs no guard.

#ifndef WAYBILL_GUARD_KUBELET_PROCESS_H_
#define WAYBILL_GUARD_KUBELET_PROCESS_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "guard/life.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::guard {

// The one that runs: it answers at its pod-resources socket (since 1.13; whatever the process is
// called), or root has a process `kubelet` whose --root-dir, or the usual one, is the directory: a
// kubelet that is starting has no socket yet. Told by its process, or by the socket that it made if
// that process is not known. nullopt: none runs. As long as one lives that was found, nothing else
// is asked. `proc`: /proc. Not thread-safe.
class KubeletFinder {
 public:
  explicit KubeletFinder(std::filesystem::path kubelet_directory,
                         std::filesystem::path proc = "/proc")
      : kubelet_directory_(std::move(kubelet_directory)), proc_(std::move(proc)) {}
  std::optional<RunningKubelet> operator()();

 private:
  std::filesystem::path kubelet_directory_;
  std::filesystem::path proc_;
  std::string process_;  // of `found_`; empty: not known
  std::int64_t ticks_ = 0;
  std::optional<RunningKubelet> found_;
};

// Whether a live process owns the store of a kubelet with waybill inside.
bool IsKubeletWithStore(const std::filesystem::path& kubelet_directory,
                        const std::filesystem::path& own_store);
// kOwned: so it is.
Result<void> CheckNoneInside(const std::filesystem::path& kubelet_directory,
                             const std::filesystem::path& own_store);

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_KUBELET_PROCESS_H_
