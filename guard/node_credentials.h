// Whether the node itself had credentials for an image's registry: then a pull without a pod's
// Secret proves nothing.

#ifndef WAYBILL_GUARD_NODE_CREDENTIALS_H_
#define WAYBILL_GUARD_NODE_CREDENTIALS_H_

#include <map>
#include <optional>
#include <string>

#include "store/base/files.h"
#include "store/for_the_guard.h"

namespace waybill::guard {

// Everything that was found in a guard's life. Not thread-safe.
class NodeCredentialsSeen {
 public:
  // What a look showed that began at that time, in nanoseconds since 1970.
  void Add(const NodeCredentials& found, std::int64_t began);
  // Whether anything was found yet; since then it is known.
  bool is_known() const { return is_known_; }
  // Whether the node certainly had none since is_known: each look showed none, and no file that may
  // have some was changed since the last one.
  bool HadNone(const std::string& image) const;

 private:
  bool is_known_ = false;
  NodeCredentials had_;  // in all looks
  // As the last look left them; nullopt: the file was not there.
  std::map<std::string, std::optional<internal::ChangeLook>> files_;
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_NODE_CREDENTIALS_H_
