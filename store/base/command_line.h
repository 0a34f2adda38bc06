// What /proc/PID says of a process: its command line, and when it began.

#ifndef WAYBILL_STORE_BASE_COMMAND_LINE_H_
#define WAYBILL_STORE_BASE_COMMAND_LINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace waybill::internal {

struct CommandLine {
  std::vector<std::string> words = {};

  // `text`: words that end with zeros.
  static CommandLine Of(const std::string& text);
  // Each value of --FLAG or -FLAG, in order, as programs in Go read them: in the same word, or the
  // next one. A flag that stands alone is "true".
  std::vector<std::string> Values(std::string_view flag) const;
  // The last one; empty: there is none.
  std::string Flag(std::string_view flag) const;
  // containerd's and CRI-O's configuration file; empty: the usual one.
  std::string Config() const { return Flag("config") + Flag("c"); }
};

// When a process began, in clock ticks since the boot, by its /proc/PID/stat. nullopt: it ended.
std::optional<std::int64_t> StartOf(const std::string& stat);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_COMMAND_LINE_H_
