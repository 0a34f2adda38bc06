#include "store/owner_socket/request.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <utility>

#include "store/owner_socket/server.h"

namespace waybill::internal {

namespace {

constexpr std::string_view kInterface = "dev.waybill";
constexpr std::string_view kService = "org.varlink.service";

constexpr std::string_view kInfo =
    R"({"vendor":"waybill","product":"waybill","version":")" WAYBILL_VERSION
    R"(","url":"","interfaces":["org.varlink.service","dev.waybill"]})";
constexpr std::string_view kServiceText = R"(# What every varlink service answers.
interface org.varlink.service

method GetInfo() -> (
  vendor: string,
  product: string,
  version: string,
  url: string,
  interfaces: []string
)

method GetInterfaceDescription(interface: string) -> (description: string)

error InterfaceNotFound (interface: string)

error MethodNotFound (method: string)

error MethodNotImplemented (method: string)

error InvalidParameter (parameter: string)

error PermissionDenied ()

error ExpectedMore ()
)";

// What a reply is read as.
struct Reply {
  std::string error = {};  // with its interface; empty: there is none
  JsonText parameters = {"{}"};

  void Describe(auto& v) const {
    v.Optional("error", error);
    v.Optional("parameters", parameters);
  }
};

// The parameters of dev.waybill's errors.
struct Failure {
  std::string message = {};
  std::string hint = {};
  std::uint32_t retry_after_ms = 0;

  void Describe(auto& v) const {
    v("message", message);
    v.Optional("hint", hint);
    v.Optional("retryAfterMs", retry_after_ms);
  }
};

struct Interface {
  std::string name = {};

  void Describe(auto& v) const { v("interface", name); }
};

// Texts by their names: parameters of varlink's own.
using Texts = std::map<std::string, std::string>;

// Of a value that was read.
bool IsObject(const JsonText& json) { return json.text.starts_with('{'); }

std::string Answered(std::string_view parameters) {
  return "{\"parameters\":" + std::string(parameters) + "}";
}

// `error` needs no escapes.
std::string RefusalAs(const std::string& error, std::string_view parameters) {
  return "{\"error\":\"" + error + "\",\"parameters\":" + std::string(parameters) + "}";
}

// "dev.waybill" and "Explain".
std::pair<std::string_view, std::string_view> SplitName(std::string_view name) {
  const std::size_t dot = std::min(name.rfind('.'), name.size());
  return {name.substr(0, dot), name.substr(std::min(dot + 1, name.size()))};
}

// "NotFound" for "notFound".
std::string NameOf(ErrorCode code) {
  std::string name(ErrorCodeName(code));
  name[0] = static_cast<char>(name[0] - 'a' + 'A');
  return name;
}

ErrorCode CodeOf(std::string_view name) {
  for (int number = 1; number <= 0xff && name != "Unknown"; ++number) {
    const auto code = static_cast<ErrorCode>(number);
    if (NameOf(code) == name) return code;
  }
  return ErrorCode::kInternal;
}

std::string Describe(std::string_view parameters, const Door& door) {
  Interface interface;
  if (!FromJson(parameters, interface).empty()) {
    return ServiceError("InvalidParameter", "parameter", "interface");
  }
  const bool is_service = interface.name == kService;
  if (!is_service && interface.name != kInterface) {
    return ServiceError("InterfaceNotFound", "interface", interface.name);
  }
  const std::string_view text = is_service ? kServiceText : door.interface_text();
  return Answered(ToJson(Texts{{"description", std::string(text)}}));
}

std::string Perform(const Request& request, Door& door) {
  if (request.upgrade) {
    return ErrorReply({ErrorCode::kInvalidArgument,
                       "upgrade: this owner speaks nothing but varlink; nothing was changed",
                       "send the request without it"});
  }
  const auto [interface, name] = SplitName(request.method);
  if (interface == kInterface && door.Knows(name)) {
    if (auto result = door.Call(name, request.parameters.text)) {
      return *result ? Answered(**result) : ErrorReply(result->error());
    }
  } else if (interface == kService) {
    if (name == "GetInfo") return Answered(kInfo);
    if (name == "GetInterfaceDescription") return Describe(request.parameters.text, door);
  } else if (interface != kInterface) {
    return ServiceError("InterfaceNotFound", "interface", interface);
  }
  return ServiceError("MethodNotFound", "method", request.method);
}

// What an error of varlink's own means to who asked this owner.
Error FromService(std::string_view name) {
  if (name == "PermissionDenied") {
    return {ErrorCode::kUnsafePath,
            "the owner answers only root and its own user; nothing was changed",
            "run as one of them"};
  }
  if (name == "InvalidParameter") {
    return {ErrorCode::kInvalidArgument,
            "the owner does not take these parameters; nothing was changed",
            "correct them: GetInterfaceDescription has their description"};
  }
  return {ErrorCode::kInvalidArgument,
          "the owner is of a version that does not know the call; nothing was changed",
          "use the version of waybill that the owner uses"};
}

}  // namespace

std::string_view LibraryVersion() { return WAYBILL_VERSION; }

Result<Request> ReadRequest(std::string_view text) {
  Request request;
  std::string problem = FromJson(text, request);
  if (problem.empty() && !IsObject(request.parameters)) problem = "parameters: expected an object";
  if (problem.empty()) return request;
  return Error{ErrorCode::kInvalidArgument,
               "a request that can't be read: " + problem + "; nothing was changed",
               "a request is a JSON object with a method and its parameters"};
}

std::optional<std::string> ReplyTo(std::string_view request, Door& door) {
  const auto read = ReadRequest(request);
  if (!read) return ErrorReply(read.error());
  std::string reply = Perform(*read, door);
  if (read->oneway) return std::nullopt;
  if (reply.size() <= kMaxOwnerMessageBytes) return reply;
  return ErrorReply({ErrorCode::kLimitExceeded,
                     "the answer has more than " + std::to_string(kMaxOwnerMessageBytes) +
                         " bytes and was not sent; what the call changes is changed",
                     "ask for a part of it"});
}

std::string ErrorReply(const Error& error) {
  const std::string_view hint =
      error.hint.empty() ? HintText(error.hint_code) : std::string_view(error.hint);
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(error.retry_after).count();
  return RefusalAs(
      std::string(kInterface) + "." + NameOf(error.code),
      ToJson(Failure{error.message, std::string(hint),
                     static_cast<std::uint32_t>(std::clamp<std::int64_t>(wait, 0, UINT32_MAX))}));
}

std::string ServiceError(std::string_view name, std::string_view parameter,
                         std::string_view value) {
  Texts parameters;
  if (!parameter.empty()) parameters.emplace(parameter, value);
  return RefusalAs(std::string(kService) + "." + std::string(name), ToJson(parameters));
}

Result<std::string> RequestFor(std::string_view name, std::string_view parameters) {
  JsonText object = Request().parameters;
  std::string problem = parameters.empty() ? "" : FromJson(parameters, object);
  if (problem.empty() && !IsObject(object)) problem = "expected an object";
  if (!problem.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "the parameters of " + std::string(name) + " can't be read: " + problem +
                     "; nothing was changed",
                 "write a JSON object"};
  }
  std::string text = ToJson(Request{std::string(kInterface) + "." + std::string(name), object});
  if (text.size() <= kMaxOwnerMessageBytes) return text;
  return Error{
      ErrorCode::kLimitExceeded,
      "a request of " + std::to_string(text.size()) + " bytes is too large; nothing was changed",
      "send at most " + std::to_string(kMaxOwnerMessageBytes) + " bytes: a part at a time"};
}

std::optional<Result<std::string>> ReadReply(std::string_view text) {
  Reply reply;
  if (!FromJson(text, reply, Strangers::kSkip).empty() || !IsObject(reply.parameters)) {
    return std::nullopt;
  }
  if (reply.error.empty()) return std::string(reply.parameters.text);
  const auto [interface, name] = SplitName(reply.error);
  if (interface == kService) return FromService(name);
  Failure failure;
  if (interface != kInterface ||
      !FromJson(reply.parameters.text, failure, Strangers::kSkip).empty()) {
    return std::nullopt;
  }
  Error error{CodeOf(name), std::move(failure.message), std::move(failure.hint)};
  error.retry_after = std::chrono::milliseconds(failure.retry_after_ms);
  // The command has words of its own for it.
  for (int hint = 1; hint <= static_cast<int>(kLastHint); ++hint) {
    if (error.hint != HintText(static_cast<Hint>(hint))) continue;
    error.hint_code = static_cast<Hint>(hint);
    error.hint.clear();
    break;
  }
  return error;
}

}  // namespace waybill::internal
