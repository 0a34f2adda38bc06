#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "store/base/go_json.h"
#include "store/base/words.h"
#include "store/streams/streaming_row.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {

namespace {

// CRI's strings are those of protobuf. A zero byte no program can be given.
bool IsPlainText(std::string_view text) {
  return text.find('\0') == std::string_view::npos && ValidUtf8Prefix(text) == text.size();
}

}  // namespace

Result<void> CheckStreamRequest(const StreamRequest& request) {
  const bool execs = request.kind == StreamKind::kExec;
  const bool forwards = request.kind == StreamKind::kPortForward;
  const std::string& id = forwards ? request.pod_sandbox_id : request.container_id;
  const std::string its_id = forwards ? "pod sandbox ID" : "container ID";
  const auto& command = request.command;
  const auto& ports = request.ports;
  const bool has_streams = request.std_in || request.std_out || request.std_err;
  std::size_t command_bytes = 0;
  for (const std::string& argument : command) command_bytes += argument.size();

  // In this order: the first that is broken is the error. `limit` is 0, or what `is` may be. CRI's
  // are those of the IDs and of the streams. No ports at all is valid: clients that use SPDY name
  // them later.
  struct Rule {
    bool is_broken;
    std::string what;
    std::string_view advice = {};
    std::size_t is = 0;
    std::size_t limit = 0;
  };
  const Rule rules[] = {
      {!internal::HasWord(request.kind), "there is no such kind",
       "use exec, attach or portForward"},
      {id.empty(), "the " + its_id + " is missing", "name it"},
      {id.size() > kMaxContainerIdBytes,
       "bytes in the " + its_id,
       {},
       id.size(),
       kMaxContainerIdBytes},
      {!IsPlainText(id), "the " + its_id + " has a zero byte or is not UTF-8", "name a real one"},
      {forwards &&
           (!request.container_id.empty() || !command.empty() || has_streams || request.tty),
       "portForward has a container, a command, stdin, stdout, stderr or tty", "leave them out"},
      {request.tty && request.std_err, "tty and stderr are both set",
       "leave stderr out: a terminal has one output, and sends it as stdout"},
      {!forwards && !has_streams, "none of stdin, stdout and stderr is set", "set at least one"},
      {!forwards && (!request.pod_sandbox_id.empty() || !ports.empty()),
       "a pod sandbox and ports belong to portForward", "leave them out"},
      {!execs && !command.empty(), "attach has a command", "leave it out, or use exec"},
      {execs && (command.empty() || command.front().empty()), "exec has no command",
       "name a program"},
      {command.size() > kMaxCommandArguments,
       "arguments",
       {},
       command.size(),
       kMaxCommandArguments},
      {!std::ranges::all_of(command, IsPlainText),
       "an argument of the command has a zero byte or is not UTF-8", "CRI can't ask for that"},
      {command_bytes > kMaxCommandBytes, "bytes of arguments", {}, command_bytes, kMaxCommandBytes},
      {ports.size() > kMaxRequestPorts, "ports", {}, ports.size(), kMaxRequestPorts},
      {std::ranges::find(ports, 0) != ports.end(), "port 0 is not one", "use 1 to 65535"},
  };
  for (const Rule& rule : rules) {
    if (!rule.is_broken) continue;
    if (rule.limit == 0) {
      return Error{ErrorCode::kInvalidArgument,
                   "the streaming request is wrong: " + rule.what + "; nothing was changed",
                   std::string(rule.advice)};
    }
    return Error{ErrorCode::kLimitExceeded,
                 "the streaming request has " + std::to_string(rule.is) + " " + rule.what +
                     ", and may have " + std::to_string(rule.limit) + "; nothing was changed"};
  }
  return {};
}

}  // namespace waybill
