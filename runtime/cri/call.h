// Calls of a runtime, and what their failures mean.

#ifndef WAYBILL_RUNTIME_CRI_CALL_H_
#define WAYBILL_RUNTIME_CRI_CALL_H_

#include <cstddef>
#include <string>

#include "runtime/cri/grpc_call.h"
#include "runtime/cri/runtime_client.h"
#include "waybill/result.h"

namespace waybill::cri {

// Calls "SERVICE/METHOD". The answer's bytes: what is in them is bounded before they are parsed.
Result<std::string> Call(const ClientOptions& whom, const std::string& method,
                         const std::string& request, std::size_t most);

// Makes a call, each message of whose answer goes to its `take`. False of that ends it well.
Result<void> Ask(const ClientOptions& whom, GrpcCall call);

}  // namespace waybill::cri

#endif  // WAYBILL_RUNTIME_CRI_CALL_H_
