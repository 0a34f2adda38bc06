#include "store/recovery/file_system.h"

#include <sys/statfs.h>

#include <array>
#include <cstdint>

namespace waybill::internal {

namespace {

struct CopyOnWrite {
  std::uint32_t magic;
  const char* name;
};

// From statfs(2), and from the sources of the file systems that it leaves out.
constexpr std::array<CopyOnWrite, 4> kCopyOnWrite = {
    {{0x9123683E, "btrfs"}, {0xCA451A4E, "bcachefs"}, {0x2FC12FC1, "ZFS"}, {0x3434, "NILFS"}}};

}  // namespace

std::string FileSystemWarning(const std::filesystem::path& directory) {
  struct statfs info {};
  if (statfs(directory.c_str(), &info) != 0) return {};
  for (const CopyOnWrite& known : kCopyOnWrite) {
    if (static_cast<std::uint32_t>(info.f_type) != known.magic) continue;
    return directory.string() + " lies on " + known.name +
           ", which copies what is written: where it is full, every process that has the store "
           "open may be ended by SIGBUS; keep the store on ext4 or xfs, or never let it fill up";
  }
  return {};
}

}  // namespace waybill::internal
