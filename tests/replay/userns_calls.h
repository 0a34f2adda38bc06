// The lines of a history that are about user namespaces. A range is "FIRST+LENGTH", in blocks of
// 65,536 IDs.
//
//   userns          pod, hostUsers (absent: false; null: unset), handler, length
//   findUserns, releaseUserns   pod
//   adopt           pod, and block, blocks or hostId, length
//   cleanUp         existing, running; with the token drawn last
//   listUserns, heldPods, pool
//   useUp           asks for new pods until it is refused: all that was handed out, and the error
//   releaseLost

#ifndef WAYBILL_TESTS_REPLAY_USERNS_CALLS_H_
#define WAYBILL_TESTS_REPLAY_USERNS_CALLS_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "store/base/options.h"
#include "tests/support/node_store.h"
#include "waybill/values.h"

namespace waybill::replay {

using testing::NodeStore;

// nullopt: the line is about something else.
std::optional<nlohmann::json> CallUserNamespaces(NodeStore& store, const std::string& op,
                                                 const nlohmann::json& line, ListToken token,
                                                 const ChangeOptions& options);

// [first block, blocks, blocks a pod].
IdPool PoolOf(const nlohmann::json& value);
// As a kubelet writes it, for this range of blocks.
std::string UsernsFileOf(std::uint64_t block, std::uint64_t blocks);

}  // namespace waybill::replay

#endif  // WAYBILL_TESTS_REPLAY_USERNS_CALLS_H_
