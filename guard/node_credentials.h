// Whether the node itself had credentials for an image's registry: then a pull without a pod's
// Secret proves nothing.

#ifndef WAYBILL_GUARD_NODE_CREDENTIALS_H_
#define WAYBILL_GUARD_NODE_CREDENTIALS_H_

#include <map>
#include <optional>
#include <string>

#include "guard/life.h"
#include "store/base/files.h"
#include "store/for_the_guard.h"

namespace waybill::guard {

// What looks at the node showed in the life of one kubelet: another one has other flags, and pulls
// of the one before are over. Not thread-safe.
class NodeCredentialsSeen {
 public:
  // A look that began at that time, in nanoseconds since 1970, while this kubelet ran, and ended
  // while it still did.
  void Add(const NodeCredentials& found, const RunningKubelet& kubelet, std::int64_t began);
  // Whether the node certainly had none since the kubelet of that life began: each look showed
  // none, and no file that may have some was changed since.
  bool HadNone(const std::string& image, const std::string& kubelet_life) const;

 private:
  std::string life_;
  NodeCredentials had_;  // in all looks
  // As the last look left them; nullopt: the file was not there.
  std::map<std::string, std::optional<internal::ChangeLook>> files_;
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_NODE_CREDENTIALS_H_
