// Whether a kubelet runs on a directory, and whether it needs no guard.

#ifndef WAYBILL_GUARD_KUBELET_PROCESS_H_
#define WAYBILL_GUARD_KUBELET_PROCESS_H_

#include <filesystem>
#include <optional>
#include <string>

#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::guard {

// It answers at its pod-resources socket (since 1.13; whatever the process is called), or root has
// a process `kubelet` whose --root-dir, or the usual one, is the directory: a kubelet that is
// starting has no socket yet. `proc`: /proc.
bool KubeletRuns(const std::filesystem::path& kubelet_directory,
                 const std::filesystem::path& proc = "/proc");

// When that process began, by the boot clock; nullopt: none runs, or it can't be told.
std::optional<BootTime> KubeletBegan(const std::filesystem::path& kubelet_directory,
                                     const std::filesystem::path& proc = "/proc");

// Tells one life of the kubelet from the next: which socket it made at its start. Empty: none yet.
std::string KubeletLife(const std::filesystem::path& kubelet_directory);

// Whether a live process owns the store of a kubelet with waybill inside.
bool IsKubeletWithStore(const std::filesystem::path& kubelet_directory,
                        const std::filesystem::path& own_store);
// kOwned: so it is.
Result<void> CheckNoneInside(const std::filesystem::path& kubelet_directory,
                             const std::filesystem::path& own_store);

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_KUBELET_PROCESS_H_
