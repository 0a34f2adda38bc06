// Pull Secrets inside a larger document, such as a list of Kubernetes.

#ifndef WAYBILL_RUNTIME_FILES_AUTH_DOCUMENT_H_
#define WAYBILL_RUNTIME_FILES_AUTH_DOCUMENT_H_

#include <optional>
#include <string>
#include <vector>

#include "store/base/json_document.h"
#include "waybill/result.h"

namespace waybill::internal {

// The hash of the credentials for one registry, as the document spells that.
struct RegistryHash {
  std::string registry = {};
  std::string hash = {};
};

// The hashes of what a Secret holds, in the document's order. `secret` is in a document that was
// read by JsonDocument::ParseSecret. nullopt: a kubelet takes no credentials from it, since it has
// another type, or lacks the field of its type or has an empty one. Errors: as DecodeAuthDocument.
// The credentials are wiped before it returns.
Result<std::optional<std::vector<RegistryHash>>> HashPullSecret(JsonValue secret);

}  // namespace waybill::internal

#endif  // WAYBILL_RUNTIME_FILES_AUTH_DOCUMENT_H_
