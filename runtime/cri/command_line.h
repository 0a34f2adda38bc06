// The command line of a process, as /proc/PID/cmdline has it.

#ifndef WAYBILL_RUNTIME_CRI_COMMAND_LINE_H_
#define WAYBILL_RUNTIME_CRI_COMMAND_LINE_H_

#include <string>
#include <string_view>
#include <vector>

namespace waybill::cri {

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

}  // namespace waybill::cri

#endif  // WAYBILL_RUNTIME_CRI_COMMAND_LINE_H_
