// The content of a store as JSON objects. Field names are those of the kubelet's own files.

#ifndef WAYBILL_BINDINGS_CLI_RECORD_JSON_H_
#define WAYBILL_BINDINGS_CLI_RECORD_JSON_H_

#include <vector>

#include "bindings/cli/output.h"
#include "waybill/maintenance.h"
#include "waybill/platform.h"
#include "waybill/report.h"
#include "waybill/runtime_handler.h"
#include "waybill/types.h"
#include "waybill/user_namespace.h"

namespace waybill::cli {

// Whether credential hashes are shown. kRedacted: "redacted" in their place; an empty one stays
// empty.
enum class Hashes { kRedacted, kShown };

Json JsonOf(const std::optional<Timestamp>& time);  // RFC 3339, or null
Json JsonOf(const Platform& platform);
Json JsonOf(const RuntimeHandler& handler);
// Empty fields of runtime handlers and manifests are left out.
Json JsonOf(const ImagePulledRecord& record, Hashes hashes);
Json JsonOf(const ImagePullIntent& intent);
Json JsonOf(const Backup& backup);
Json JsonOf(const Revocation& what, Hashes hashes);

// Sorts by image ref, then by runtime handler.
void SortForReading(std::vector<ImagePulledRecord>& records);
void SortForReading(std::vector<Revocation>& revocations);

std::string_view QuarantineKindName(QuarantineKind kind);  // "imageRef", "image"
std::string_view PoolRelationName(PoolRelation relation);  // "inPool", "outsidePool", "otherLength"

// "all pods of the node", "2 secrets, 1 service account", "nobody until pulled again".
std::string AccessText(const ImagePullCredentials& credentials);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_RECORD_JSON_H_
