// Mounts that only a child process sees, and that are gone with it.

#ifndef WAYBILL_TESTS_SUPPORT_MOUNTS_H_
#define WAYBILL_TESTS_SUPPORT_MOUNTS_H_

#include <sched.h>
#include <sys/mount.h>

#include <filesystem>
#include <string>

namespace waybill::testing {

// A child's answer if it may not mount; the test is then skipped.
inline constexpr const char* kMayNotMount = "may not mount";

inline bool EnterOwnMounts() {
  return unshare(CLONE_NEWNS) == 0 &&
         mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

inline bool MountSmallFileSystem(const std::filesystem::path& at, const std::string& bytes) {
  return EnterOwnMounts() &&
         mount("tmpfs", at.c_str(), "tmpfs", 0, ("mode=0700,size=" + bytes).c_str()) == 0;
}

inline bool MountReadOnly(const std::filesystem::path& at) {
  return EnterOwnMounts() && mount(at.c_str(), at.c_str(), nullptr, MS_BIND, nullptr) == 0 &&
         mount(nullptr, at.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0;
}

// Reading the file fails with EIO: nothing is mapped at the start of a process's memory.
inline bool MakeUnreadable(const std::filesystem::path& file) {
  return EnterOwnMounts() && mount("/proc/self/mem", file.c_str(), nullptr, MS_BIND, nullptr) == 0;
}

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_MOUNTS_H_
