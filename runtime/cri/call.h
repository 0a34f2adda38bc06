// Calls of a runtime, and what their failures mean.

#ifndef WAYBILL_RUNTIME_CRI_CALL_H_
#define WAYBILL_RUNTIME_CRI_CALL_H_

#include <cstddef>
#include <functional>
#include <string>

#include "runtime/cri/runtime_client.h"
#include "waybill/result.h"

namespace waybill::cri {

// Calls "SERVICE/METHOD". The answer's bytes: what is in them is bounded before they are parsed.
Result<std::string> Call(const ClientOptions& whom, const std::string& method,
                         const std::string& request, std::size_t most);

// Calls `service`/List of containerd's, which answers with one message or with many, in the
// kubelet's namespace. `take` gets the bytes of each message; all together have at most `most`. If
// it returns an error, the call ends with that.
Result<void> ListOfContainerd(const ClientOptions& whom, const std::string& service,
                              std::size_t most,
                              const std::function<Result<void>(const std::string&)>& take);

}  // namespace waybill::cri

#endif  // WAYBILL_RUNTIME_CRI_CALL_H_
