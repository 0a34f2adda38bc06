// How other processes ask a store's owner: Store::Serve opens the socket owner.sock in the store's
// directory, and an Owner asks there for what only the owner may do. A kubelet holds its store for
// as long as it lives; without the socket no other process could change it.
//
//   waybill::Owner owner("/var/lib/kubelet/waybill");
//   auto ids = owner.Call(waybill::ClaimUserNamespace{.pod_uid = uid, .host_users = false});
//   if (!ids) …                                              // kNotFound: no owner serves
//
// The socket speaks varlink (https://varlink.org): JSON objects that each end with a zero byte.

#ifndef WAYBILL_OWNER_H_
#define WAYBILL_OWNER_H_

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "waybill/calls.h"
#include "waybill/result.h"

namespace [[gnu::visibility("default")]] waybill {

// Bytes of one request, and of one answer.
inline constexpr std::size_t kMaxOwnerMessageBytes = std::size_t{16} << 20;

// For Store::Serve. Out of range: kInvalidArgument.
struct ServeOptions {
  // How long a client may take to send its request, and again to take its answer: 1 ms to 1 hour.
  // Then its connection is closed.
  std::chrono::milliseconds patience{10'000};
  // Connections at the same time: 1 to 1,024. One process gets at most a quarter of them, but at
  // least one. If all are taken, the client that has been idle for longest is disconnected.
  std::size_t connections = 32;
};

// Asks the owner of a store, in another process. Each call makes a connection of its own, so the
// client goes on after the owner's restart. Any thread may call. Errors beside those of the call:
//   kNotFound         no owner serves
//   kUnavailable      the owner is busy, closes, or did not take the request: try again
//   kLimitExceeded    the request has more than kMaxOwnerMessageBytes
//   kUnsafePath       the directory or owner.sock is not private to this user, or a user other than
//                     this and root answers
//   kInvalidArgument  the owner is of another version, which does not know the call
//   kIo               the socket
// After each of these nothing was changed.
//   kOutcomeUnknown   the request was sent, and no answer came within `patience` (1 ms to 1 day):
//                     look at the store. Not for calls that read: kUnavailable
class Owner {
 public:
  explicit Owner(std::filesystem::path directory,
                 std::chrono::milliseconds patience = std::chrono::minutes(10));
  template <typename C>
  Result<typename C::Answer> Call(const C& call) const;
  Result<std::string> CallJson(std::string_view name, std::string_view parameters) const;
  const std::filesystem::path& directory() const { return directory_; }

 private:
  std::filesystem::path directory_;
  std::chrono::milliseconds patience_;
};

// The interface in varlink's words, with each call, member and error: dev.waybill.varlink. Ends
// with a zero byte.
std::string_view InterfaceText();

}  // namespace waybill

#endif  // WAYBILL_OWNER_H_
