#include "store/owner_socket/request.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <utility>

#include "store/base/json.h"
#include "store/base/try.h"
#include "store/owner_socket/server.h"

namespace waybill::internal {

namespace {

constexpr std::string_view kInterface = "dev.waybill";
constexpr std::string_view kService = "org.varlink.service";
constexpr std::size_t kMaxMethodBytes = 256;

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

// A member of an object, which is written within the braces that Begin and End make.
void Put(JsonWriter& to, std::string_view key, std::string_view text) {
  to.Key(key);
  to.String(text);
}

// {"error": …, "parameters": {…}}; without an error its part is left out.
template <typename Write>
std::string Reply(std::string_view interface, std::string_view error, const Write& parameters) {
  std::string text;
  JsonWriter to(text);
  to.Begin('{');
  if (!error.empty()) Put(to, "error", std::string(interface) + "." + std::string(error));
  to.Key("parameters");
  to.Begin('{');
  parameters(to);
  to.End('}');
  to.End('}');
  return text;
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

// Each member of an object once, by `read`, which says whether it could.
template <typename Read>
bool ReadObject(JsonReader& from, const Read& read) {
  if (!from.Open('{')) return false;
  std::string key;
  for (bool first = true; from.More('{', first);) {
    if (!from.Key(key)) return false;
    if (!read(key)) {
      from.Within(key);
      return false;
    }
  }
  return from.ok();
}

std::string Describe(std::string_view parameters, const Door& door) {
  std::optional<std::string> interface;
  JsonReader from(parameters);
  const bool is_read = ReadObject(from, [&](const std::string& key) {
    if (key != "interface" || interface) return from.Fail("it is not expected here");
    return from.String(interface.emplace());
  });
  if (!is_read || !interface) return ServiceError("InvalidParameter", "parameter", "interface");
  const bool is_service = *interface == kService;
  if (!is_service && *interface != kInterface) {
    return ServiceError("InterfaceNotFound", "interface", *interface);
  }
  return Reply({}, {}, [&](JsonWriter& to) {
    Put(to, "description", is_service ? kServiceText : door.interface_text());
  });
}

std::string Introduce() {
  return Reply({}, {}, [](JsonWriter& to) {
    Put(to, "vendor", "waybill");
    Put(to, "product", "waybill");
    Put(to, "version", LibraryVersion());
    Put(to, "url", "");
    to.Key("interfaces");
    to.Begin('[');
    to.String(kService);
    to.String(kInterface);
    to.End(']');
  });
}

std::string Perform(const Request& request, Door& door) {
  if (request.upgrade) {
    return ErrorReply({ErrorCode::kInvalidArgument,
                       "upgrade: this owner speaks nothing but varlink; nothing was changed",
                       "send the request without it"});
  }
  const std::string_view method = request.method;
  const std::size_t dot = std::min(method.rfind('.'), method.size());
  const std::string_view interface = method.substr(0, dot);
  const std::string_view name = method.substr(std::min(dot + 1, method.size()));
  if (interface == kInterface && door.Knows(name)) {
    if (auto result = door.Call(name, request.parameters)) {
      if (!*result) return ErrorReply(result->error());
      return "{\"parameters\":" + **result + "}";
    }
  } else if (interface == kService) {
    if (name == "GetInfo") return Introduce();
    if (name == "GetInterfaceDescription") return Describe(request.parameters, door);
  } else if (interface != kInterface) {
    return ServiceError("InterfaceNotFound", "interface", interface);
  }
  return ServiceError("MethodNotFound", "method", method);
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
  constexpr std::array<std::string_view, 5> kKeys{"method", "parameters", "oneway", "more",
                                                  "upgrade"};
  std::array<bool, kKeys.size()> seen{};
  JsonReader from(text);
  const auto flag = [&](bool& value) { return from.Null() || from.Bool(value); };
  const auto read = [&](const std::string& key) {
    const auto at =
        static_cast<std::size_t>(std::find(kKeys.begin(), kKeys.end(), key) - kKeys.begin());
    if (at == kKeys.size()) return from.Fail("a request has no such member");
    if (std::exchange(seen[at], true)) return from.Fail("it is there twice");
    switch (at) {
      case 0:
        return from.String(request.method) &&
               (request.method.size() <= kMaxMethodBytes || from.Fail("it is too long"));
      case 1:
        if (from.Null()) return true;
        return from.Peek() == '{' ? from.Skip(request.parameters) : from.Fail("expected an object");
      case 2:
        return flag(request.oneway);
      case 3:
        return flag(request.more);
      default:
        return flag(request.upgrade);
    }
  };
  if (ReadObject(from, read) && (seen[0] || from.Fail("method is missing")) && from.End()) {
    return request;
  }
  return Error{ErrorCode::kInvalidArgument,
               "a request that can't be read: " + from.Problem() + "; nothing was changed",
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
  return Reply(kInterface, NameOf(error.code), [&](JsonWriter& to) {
    Put(to, "message", error.message);
    if (!hint.empty()) Put(to, "hint", hint);
    if (wait > 0) {
      to.Key("retryAfterMs");
      to.Number(wait);
    }
  });
}

std::string ServiceError(std::string_view name, std::string_view parameter,
                         std::string_view value) {
  return Reply(kService, name, [&](JsonWriter& to) {
    if (!parameter.empty()) Put(to, parameter, value);
  });
}

Result<std::string> RequestFor(std::string_view name, std::string_view parameters) {
  std::string_view object = "{}";
  JsonReader from(parameters);
  const bool is_object =
      parameters.empty() ||
      ((from.Peek() == '{' || from.Fail("expected an object")) && from.Skip(object) && from.End());
  if (!is_object) {
    return Error{ErrorCode::kInvalidArgument,
                 "the parameters of " + std::string(name) + " can't be read: " + from.Problem() +
                     "; nothing was changed",
                 "write a JSON object"};
  }
  std::string text;
  JsonWriter to(text);
  to.Begin('{');
  Put(to, "method", std::string(kInterface) + "." + std::string(name));
  to.Key("parameters");
  to.Raw(object);
  to.End('}');
  if (text.size() <= kMaxOwnerMessageBytes) return text;
  return Error{
      ErrorCode::kLimitExceeded,
      "a request of " + std::to_string(text.size()) + " bytes is too large; nothing was changed",
      "send at most " + std::to_string(kMaxOwnerMessageBytes) + " bytes: a part at a time"};
}

std::optional<Result<std::string>> ReadReply(std::string_view text) {
  std::string name;
  std::string_view parameters = "{}";
  JsonReader from(text);
  // What a later version adds is skipped.
  const bool is_read = ReadObject(from, [&](const std::string& key) {
    std::string_view other;
    if (key == "error") return from.Null() || from.String(name);
    if (key != "parameters") return from.Skip(other);
    if (from.Null()) return true;
    return from.Peek() == '{' ? from.Skip(parameters) : from.Fail("expected an object");
  });
  if (!is_read || !from.End()) return std::nullopt;
  if (name.empty()) return std::string(parameters);
  const std::size_t dot = std::min(name.rfind('.'), name.size());
  const std::string_view interface = std::string_view(name).substr(0, dot);
  if (interface == kService) return FromService(std::string_view(name).substr(dot + 1));
  if (interface != kInterface) return std::nullopt;
  Error error{CodeOf(std::string_view(name).substr(dot + 1))};
  JsonReader inner(parameters);
  const bool is_said = ReadObject(inner, [&](const std::string& key) {
    std::string_view other;
    if (inner.Null()) return true;
    if (key == "message") return inner.String(error.message);
    if (key == "hint") return inner.String(error.hint);
    if (key != "retryAfterMs") return inner.Skip(other);
    std::uint32_t wait = 0;
    if (!inner.Number(wait)) return false;
    error.retry_after = std::chrono::milliseconds(wait);
    return true;
  });
  if (!is_said) return std::nullopt;
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
