// The socket of a runtime.

#ifndef WAYBILL_RUNTIME_CRI_ENDPOINT_H_
#define WAYBILL_RUNTIME_CRI_ENDPOINT_H_

#include <string>

#include "waybill/result.h"

namespace waybill::cri {

// The path in unix:///path, unix:/path or /path.
Result<std::string> SocketPath(const std::string& endpoint);

// A connection to the socket at `path`, which does not block. The caller closes it.
Result<int> ConnectSocket(const std::string& path);

}  // namespace waybill::cri

#endif  // WAYBILL_RUNTIME_CRI_ENDPOINT_H_
