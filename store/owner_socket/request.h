// Messages between an owner and its clients: varlink's, a JSON object each that ends with a zero
// byte.
//
//   {"method": "dev.waybill.Explain", "parameters": {"image": "…"}}
//   {"parameters": {…}}    or    {"error": "dev.waybill.NotFound", "parameters": {"message": "…"}}

#ifndef WAYBILL_STORE_OWNER_SOCKET_REQUEST_H_
#define WAYBILL_STORE_OWNER_SOCKET_REQUEST_H_

#include <optional>
#include <string>
#include <string_view>

#include "store/base/described.h"
#include "waybill/result.h"

namespace waybill::internal {

class Door;

std::string_view LibraryVersion();  // "0.1.0"

struct Request {
  std::string method = {};
  JsonText parameters = {"{}"};  // in the text that was read
  bool oneway = false;           // no reply is wanted
  bool more = false;             // several replies are allowed: one is sent
  bool upgrade = false;

  void Describe(auto& v) const {
    v("method", method, {.bytes = 256});
    v.Optional("parameters", parameters);
    v.Optional("oneway", oneway);
    v.Optional("more", more);
    v.Optional("upgrade", upgrade);
  }
};
// kInvalidArgument: it is not JSON, or not a request; the message says where.
Result<Request> ReadRequest(std::string_view text);

// What `door` replies to a request of any bytes. nullopt: no reply is wanted. Throws only
// std::bad_alloc.
std::optional<std::string> ReplyTo(std::string_view request, Door& door);

// dev.waybill.<code>, with message, hint and retryAfterMs.
std::string ErrorReply(const Error& error);
// org.varlink.service.<name>, with one parameter or none.
std::string ServiceError(std::string_view name, std::string_view parameter = {},
                         std::string_view value = {});

// --- The client's end

// The request for dev.waybill.<name>. kInvalidArgument: `parameters` is not a JSON object.
// kLimitExceeded: it has more than kMaxOwnerMessageBytes.
Result<std::string> RequestFor(std::string_view name, std::string_view parameters);

// The parameters of a reply, or the error that it says. nullopt: it is no reply.
std::optional<Result<std::string>> ReadReply(std::string_view text);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OWNER_SOCKET_REQUEST_H_
