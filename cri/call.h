// One gRPC call to a runtime.

#ifndef WAYBILL_CRI_CALL_H_
#define WAYBILL_CRI_CALL_H_

#include <grpcpp/channel.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "waybill/result.h"

namespace waybill::cri {

// gRPC runs while one of these lives. The end of the last one ends its threads, so that none lives
// on to the end of the process.
class GrpcRuns {
 public:
  GrpcRuns();
  ~GrpcRuns();
  GrpcRuns(const GrpcRuns&) = delete;
  GrpcRuns& operator=(const GrpcRuns&) = delete;
};

// A connection to the socket at `path`, which is not made again when it breaks.
Result<std::shared_ptr<grpc::Channel>> OpenChannel(const std::string& path, std::size_t most);

// Calls `service`/`method`. The answer's bytes: what is in them is bounded before they are parsed.
// `cancelled`: as in ClientOptions.
Result<std::string> Call(const std::string& path, const std::string& service,
                         const std::string& method, const std::string& request, std::size_t most,
                         std::chrono::milliseconds timeout, const std::function<bool()>& cancelled);

// Calls `service`/List of containerd's, which answers with one message or with many, in the
// kubelet's namespace. `take` gets the bytes of each message; all together have at most `most`. If
// it returns an error, the call ends with that.
Result<void> ListOfContainerd(const std::string& path, const std::string& service, std::size_t most,
                              std::chrono::milliseconds timeout,
                              const std::function<bool()>& cancelled,
                              const std::function<Result<void>(const std::string&)>& take);

}  // namespace waybill::cri

#endif  // WAYBILL_CRI_CALL_H_
