// The client's end of an owner's socket.

#ifndef WAYBILL_STORE_OWNER_SOCKET_CLIENT_H_
#define WAYBILL_STORE_OWNER_SOCKET_CLIENT_H_

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

#include "waybill/result.h"

namespace waybill::internal {

// Has the owner of the store in `directory` do a call of dev.waybill, on a connection of its own.
// Parameters and answer are JSON objects. `patience` is for all of it, 1 ms to 1 day; a call may
// have to wait for those of others. Beside the errors of the call:
//   kNotFound         no owner serves
//   kUnavailable      the owner is busy, closes, or did not take the request: try again
//   kLimitExceeded    the request has more than kMaxOwnerMessageBytes
//   kUnsafePath       the directory is not private to the caller's effective user, owner.sock there
//                     is not a socket of that user, or a user other than that and root answers it
//   kInvalidArgument  the owner is of a version that does not know the call; or the parameters are
//                     no JSON object, or patience is out of range
//   kIo               the socket, or what answers it is no owner
// After each of these nothing was changed.
//   kOutcomeUnknown   the connection was lost, or patience ended, after the request was sent: the
//                     change may or may not have happened, or may still happen. If the call
//                     `changes` nothing, it is kUnavailable
Result<std::string> AskOwner(const std::filesystem::path& directory, std::string_view name,
                             std::string_view parameters, bool changes,
                             std::chrono::milliseconds patience);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OWNER_SOCKET_CLIENT_H_
