// Whether a kubelet runs on a directory.

#ifndef WAYBILL_GUARD_KUBELET_PROCESS_H_
#define WAYBILL_GUARD_KUBELET_PROCESS_H_

#include <filesystem>

namespace waybill::guard {

// One that answers at its pod-resources socket (since 1.13; whatever the process is called), or a
// process `kubelet` whose --root-dir, or the usual one, is the directory: one that is starting has
// no socket yet. `proc`: /proc.
bool KubeletRuns(const std::filesystem::path& kubelet_directory,
                 const std::filesystem::path& proc = "/proc");

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_KUBELET_PROCESS_H_
