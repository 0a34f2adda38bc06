#include "migrations/runtime/windows_version.h"

#include <charconv>

namespace waybill::internal {
namespace {

// Windows Server 2022. From it on, a release runs images of earlier releases, back to this one.
constexpr std::uint16_t kFirstStableBuild = 20348;

// Removes a number from the front of `text`. False: there is none, or it does not fit.
template <typename Number>
bool TakeNumber(std::string_view& text, Number& out) {
  const char* begin = text.data();
  const auto [end, error] = std::from_chars(begin, begin + text.size(), out);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - begin));
  return true;
}

bool TakeDot(std::string_view& text) {
  if (!text.starts_with('.')) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::optional<WindowsVersion> ParseWindowsVersion(std::string_view text) {
  WindowsVersion version;
  const bool sound = TakeNumber(text, version.major) && TakeDot(text) &&
                     TakeNumber(text, version.minor) && TakeDot(text) &&
                     TakeNumber(text, version.build);
  if (!sound) return std::nullopt;
  if (text.empty()) return version;
  if (!TakeDot(text) || !TakeNumber(text, version.revision) || !text.empty()) return std::nullopt;
  return version;
}

bool WindowsRuns(const WindowsVersion& host, const WindowsVersion& image) {
  if (host.major != image.major || host.minor != image.minor) return false;
  if (host.build < kFirstStableBuild) return host.build == image.build;
  return kFirstStableBuild <= image.build && image.build <= host.build;
}

}  // namespace waybill::internal
