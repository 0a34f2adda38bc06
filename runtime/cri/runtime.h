// What waybill asks of a node's container runtime. Tests put another in its place.

#ifndef WAYBILL_RUNTIME_CRI_RUNTIME_H_
#define WAYBILL_RUNTIME_CRI_RUNTIME_H_

#include <string>
#include <vector>

#include "runtime/files/documents.h"
#include "store/base/try.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::cri {

// kUnavailable: the runtime does not answer at this moment; the same call may succeed later.
// kLimitExceeded: it answers with more than limits.h allows. kInvalidArgument: its answer is not
// what CRI v1 says, or it does not serve CRI v1.
class Runtime {
 public:
  virtual ~Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // All images, as DecodeImageList reads them from `crictl images -o json`.
  virtual Result<std::vector<ListedImage>> ListImages() = 0;

  // What `crictl info` prints: handlers, and what the runtime says of its configuration.
  virtual Result<std::string> Status() = 0;
  // Of that. Empty: the runtime names none, as containerd before 2.0.
  Result<std::vector<RuntimeHandler>> RuntimeHandlers() {
    return DecodeRuntimeStatus(TRY(Status()));
  }

 protected:
  Runtime() = default;
};

}  // namespace waybill::cri

#endif  // WAYBILL_RUNTIME_CRI_RUNTIME_H_
