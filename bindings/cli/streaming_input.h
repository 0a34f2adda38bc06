// The settings of a kubelet or an API server, from the files that a node has them in.

#ifndef WAYBILL_BINDINGS_CLI_STREAMING_INPUT_H_
#define WAYBILL_BINDINGS_CLI_STREAMING_INPUT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"
#include "waybill/streaming_plan.h"

namespace waybill::cli {

inline constexpr std::size_t kMaxStreamingInputBytes = std::size_t{1} << 20;

enum class StreamingInputForm {
  kProcess,        // /proc/PID/cmdline: arguments that end with zero bytes
  kFlags,          // a flag a line
  kConfiguration,  // a KubeletConfiguration
  kPod,            // a (static) pod's manifest
};
// "flags, one a line"
std::string_view StreamingInputFormText(StreamingInputForm form);
// "process", "flags", "configuration", "pod".
std::string_view StreamingInputFormName(StreamingInputForm form);

struct StreamingInput {
  StreamingInputForm form = StreamingInputForm::kProcess;
  std::vector<std::string> arguments = {};                              // behind the program's name
  std::optional<std::vector<StreamingConfigValue>> configuration = {};  // of kConfiguration alone
  std::vector<std::string> notes = {};                                  // what was not judged
};

// kInvalidArgument: the content is of none of the forms, is about another program, or leaves open
// what the program's arguments are: an empty file, a shell's command, a variable where a flag could
// stand. kLimitExceeded: above a bound. What was not understood is never an empty result.
Result<StreamingInput> ReadStreamingInput(std::string_view content, StreamingComponent component);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_STREAMING_INPUT_H_
