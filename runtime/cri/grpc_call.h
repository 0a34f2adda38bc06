// One gRPC call, on a connection of its own: HTTP/2 by nghttp2, gRPC's five bytes before each
// message, and its status after the last one. No byte of an answer is trusted.

#ifndef WAYBILL_RUNTIME_CRI_GRPC_CALL_H_
#define WAYBILL_RUNTIME_CRI_GRPC_CALL_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "store/base/files.h"

namespace waybill::cri {

// How a call ended, by gRPC's numbers.
struct GrpcStatus {
  enum Code : int {
    kOk = 0,
    kUnknown = 2,
    kDeadlineExceeded = 4,
    kResourceExhausted = 8,
    kUnimplemented = 12,
    kInternal = 13,
    kUnavailable = 14,
  };
  int code = kUnknown;
  std::string message = {};
};

struct GrpcCall {
  std::string method;  // "/runtime.v1.ImageService/ListImages"
  std::string request = {};
  std::string containerd_namespace = {};  // empty: none
  // A message may have so many bytes.
  std::size_t most = 0;
  std::optional<std::chrono::milliseconds> timeout = {};  // nullopt: none
  // Asked now and then while nothing comes: true ends the call. Missing: never.
  std::function<bool()> cancelled = {};
  // Readable: the call ends, too. -1: none.
  int stop_fd = -1;
  // Gets each message. False: the call ends.
  std::function<bool(std::string)> take;
};

// `socket`: as ConnectSocket returns it. nullopt: `cancelled`, `stop_fd` or `take` ended the call.
std::optional<GrpcStatus> Run(internal::Fd socket, const GrpcCall& call);

}  // namespace waybill::cri

#endif  // WAYBILL_RUNTIME_CRI_GRPC_CALL_H_
