
#include <algorithm>
#include <array>
#include <cstddef>

#include "store/base/go_json.h"
#include "store/base/quote.h"
#include "store/streaming/streaming_store.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {

namespace {

Error WrongRequest(std::string_view what, std::string_view advice) {
  return {ErrorCode::kInvalidArgument,
          "the streaming request is wrong: " + std::string(what) + "; nothing was changed",
          std::string(advice)};
}

Error TooLarge(std::string_view what, std::size_t is, std::size_t limit) {
  return {ErrorCode::kLimitExceeded, "the streaming request has " + std::to_string(is) + " " +
                                         std::string(what) + ", and may have " +
                                         std::to_string(limit) + "; nothing was changed"};
}

// CRI's strings are those of protobuf.
bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = Utf8SequenceLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// What no program can be given, and no CRI call says.
bool IsPlainText(std::string_view text) {
  return text.find('\0') == std::string_view::npos && IsUtf8(text);
}

Result<void> CheckId(std::string_view id, std::string_view what) {
  if (id.empty()) return WrongRequest("the " + std::string(what) + " is missing", "name it");
  if (id.size() > kMaxContainerIdBytes) {
    return TooLarge("bytes in the " + std::string(what), id.size(), kMaxContainerIdBytes);
  }
  if (!IsPlainText(id)) {
    return WrongRequest("the " + std::string(what) + " has a zero byte or is not UTF-8",
                        "name a real one");
  }
  return {};
}

Result<void> CheckStreams(const StreamRequest& request) {
  if (request.tty && request.std_err) {
    return WrongRequest("tty and stderr are both set",
                        "leave stderr out: a terminal has one output, and sends it as stdout");
  }
  if (!request.std_in && !request.std_out && !request.std_err) {
    return WrongRequest("none of stdin, stdout and stderr is set", "set at least one");
  }
  return {};
}

Result<void> CheckCommand(const std::vector<std::string>& command) {
  if (command.empty() || command.front().empty()) {
    return WrongRequest("exec has no command", "name a program");
  }
  if (command.size() > kMaxCommandArguments) {
    return TooLarge("arguments", command.size(), kMaxCommandArguments);
  }
  std::size_t bytes = 0;
  for (const std::string& argument : command) {
    bytes += argument.size();
    if (!IsPlainText(argument)) {
      return WrongRequest("an argument of the command has a zero byte or is not UTF-8",
                          "CRI can't ask for that");
    }
  }
  if (bytes > kMaxCommandBytes) return TooLarge("bytes of arguments", bytes, kMaxCommandBytes);
  return {};
}

}  // namespace

Result<void> CheckStreamRequest(const StreamRequest& request) {
  const bool has_streams = request.std_in || request.std_out || request.std_err || request.tty;
  switch (request.kind) {
    case StreamKind::kExec:
    case StreamKind::kAttach: {
      if (auto r = CheckId(request.container_id, "container ID"); !r) return r;
      if (auto r = CheckStreams(request); !r) return r;
      if (!request.pod_sandbox_id.empty() || !request.ports.empty()) {
        return WrongRequest("a pod sandbox and ports belong to portForward", "leave them out");
      }
      if (request.kind == StreamKind::kExec) return CheckCommand(request.command);
      if (request.command.empty()) return {};
      return WrongRequest("attach has a command", "leave it out, or use exec");
    }
    case StreamKind::kPortForward: {
      if (auto r = CheckId(request.pod_sandbox_id, "pod sandbox ID"); !r) return r;
      if (!request.container_id.empty() || !request.command.empty() || has_streams) {
        return WrongRequest("portForward has a container, a command, stdin, stdout, stderr or tty",
                            "leave them out");
      }
      if (request.ports.size() > kMaxRequestPorts) {
        return TooLarge("ports", request.ports.size(), kMaxRequestPorts);
      }
      if (std::find(request.ports.begin(), request.ports.end(), 0) == request.ports.end()) {
        return {};
      }
      return WrongRequest("port 0 is not one", "use 1 to 65535");
    }
  }
  return WrongRequest("there is no such kind", "use exec, attach or portForward");
}

}  // namespace waybill
