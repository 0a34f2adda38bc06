// Host ID ranges of pods, as JSON objects and as text.

#ifndef WAYBILL_BINDINGS_CLI_USERNS_JSON_H_
#define WAYBILL_BINDINGS_CLI_USERNS_JSON_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "bindings/cli/output.h"
#include "waybill/user_namespace.h"

namespace waybill::cli {

// As CRI has it: {"mode":"POD","uids":[{"hostId":…,"containerId":0,"length":…}],"gids":[…]}.
Json JsonOf(const UserNamespace& user_namespace);
// As stored: without the relation to a pool.

std::string_view PoolRelationName(PoolRelation relation);  // "inPool", "outsidePool", "otherLength"
std::string_view PoolRelationText(PoolRelation relation);  // "in the pool", …

// "65536-131071".
std::string RangeText(std::uint64_t first, std::uint64_t length);

// The UID, or a text for pods whose UIDs were lost.
std::string PodText(const std::string& pod_uid);

// Writes what opening found and did about ranges.
void WriteUserNamespaces(const UserNamespaceReport& report, Output& out);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_USERNS_JSON_H_
