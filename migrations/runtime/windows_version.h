// Which Windows runs which Windows image, in containers that share the host's kernel (Microsoft,
// "Windows container version compatibility"; containerd's platforms package,
// platform_windows_compat.go).
//
//   10 . 0 . 20348 . 1970
//   │    │   │       revision: an update; irrelevant for compatibility
//   │    │   build: a release. 17763 Windows Server 2019, 20348 Server 2022, 26100 Server 2025
//   │    minor, at most 255
//   major, at most 255

#ifndef WAYBILL_MIGRATIONS_RUNTIME_WINDOWS_VERSION_H_
#define WAYBILL_MIGRATIONS_RUNTIME_WINDOWS_VERSION_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

namespace waybill::internal {

struct WindowsVersion {
  std::uint8_t major = 0;
  std::uint8_t minor = 0;
  std::uint16_t build = 0;
  std::uint32_t revision = 0;

  friend auto operator<=>(const WindowsVersion&, const WindowsVersion&) = default;
};

// The revision may be missing. nullopt: `text` is malformed.
std::optional<WindowsVersion> ParseWindowsVersion(std::string_view text);

// Whether a Windows of version `host` runs an image of version `image`.
bool WindowsRuns(const WindowsVersion& host, const WindowsVersion& image);

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_RUNTIME_WINDOWS_VERSION_H_
