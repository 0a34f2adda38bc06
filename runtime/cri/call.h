// Calls of a runtime, and what their failures mean.

#ifndef WAYBILL_RUNTIME_CRI_CALL_H_
#define WAYBILL_RUNTIME_CRI_CALL_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "waybill/result.h"

namespace waybill::cri {

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

#endif  // WAYBILL_RUNTIME_CRI_CALL_H_
