// Pull Secrets inside a larger document, such as a list of Kubernetes.

#ifndef WAYBILL_RUNTIME_FILES_AUTH_DOCUMENT_H_
#define WAYBILL_RUNTIME_FILES_AUTH_DOCUMENT_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"

namespace waybill::internal {

// The hash of the credentials for one registry, as the document spells that.
struct RegistryHash {
  std::string registry = {};
  std::string hash = {};
};

// The hashes of what a Secret holds, sorted by registry. `secret` is its JSON. nullopt: a kubelet
// takes no credentials from it, since it has another type, or lacks the field of its type or has an
// empty one. Errors: as DecodeAuthDocument. The credentials are wiped before it returns.
Result<std::optional<std::vector<RegistryHash>>> HashPullSecret(std::string_view secret);

}  // namespace waybill::internal

#endif  // WAYBILL_RUNTIME_FILES_AUTH_DOCUMENT_H_
