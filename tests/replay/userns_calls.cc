#include "tests/replay/userns_calls.h"

#include <set>
#include <string>

#include "tests/replay/fields.h"
#include "tests/support/as_json.h"

namespace waybill::replay {

namespace {

using nlohmann::json;
using testing::AsJson;

std::string InBlocks(std::uint64_t first, std::uint64_t length) {
  return std::to_string(first / kIdsPerBlock) + "+" + std::to_string(length / kIdsPerBlock);
}

json Shown(const UserNamespace& got) {
  if (got.mode == NamespaceMode::kNode) return got.uids.empty() ? "node" : "contradicts itself";
  if (got.uids.size() != 1 || got.uids != got.gids || got.uids.front().container_id != 0) {
    return "not a mapping of a pod";
  }
  return InBlocks(got.uids.front().host_id, got.uids.front().length);
}

json Shown(const PodMapping& allocation) {
  constexpr const char* kRelations[] = {"", ", outside the pool", ", of another length"};
  return allocation.pod_uid + ": " + InBlocks(allocation.host_id, allocation.length) +
         kRelations[static_cast<std::size_t>(allocation.relation)];
}

json Shown(const QuarantinedPod& held) {
  json ranges = json::array();
  for (const HostIdRange& range : held.ranges) {
    ranges.push_back(InBlocks(range.first, range.length));
  }
  return {{"pod", held.pod_uid}, {"kind", WordOf(held.kind)}, {"ranges", ranges}};
}

json Shown(const PoolUse& statistics) {
  return {{"ranges", statistics.ranges},
          {"used", statistics.used},
          {"free", statistics.free},
          {"largestFreeRun", statistics.largest_free_run},
          {"allocations", statistics.allocations},
          {"outsidePool", statistics.outside_pool},
          {"otherLength", statistics.other_length}};
}

json Shown(const CleanUpReport& report) {
  return {{"examined", report.examined},
          {"released", report.released_pods},
          {"keptInLists", report.kept_in_lists},
          {"keptNewer", report.kept_newer}};
}

template <typename T>
json Shown(const std::vector<T>& values) {
  json list = json::array();
  for (const T& value : values) list.push_back(Shown(value));
  return list;
}

template <typename T>
json Shown(const Result<T>& result) {
  return result ? Shown(*result) : AsJson(result.error());
}

json UseUp(NodeStore& store) {
  std::set<std::uint64_t> blocks;
  for (int i = 0;; ++i) {
    const auto got = store.GetOrCreateUserNamespace(
        {.pod_uid = "filler-" + std::to_string(i), .host_users = false});
    if (!got) return {{"blocks", blocks}, {"then", ErrorCodeName(got.error().code)}};
    const IdMapping& mapping = got->uids.front();
    const std::uint64_t first = mapping.host_id / kIdsPerBlock;
    for (std::uint64_t block = first; block < first + mapping.length / kIdsPerBlock; ++block) {
      if (!blocks.insert(block).second) return "handed out twice: " + std::to_string(block);
    }
  }
}

}  // namespace

std::optional<json> CallUserNamespaces(NodeStore& store, const std::string& op, const json& line,
                                       ListToken token, const ChangeOptions& options) {
  const std::string pod = line.value("pod", "");
  if (op == "userns") {
    UserNamespaceRequest request{.pod_uid = pod, .host_users = false};
    if (line.contains("hostUsers")) {
      request.host_users.reset();
      if (!line["hostUsers"].is_null()) request.host_users = RequireBool(line, "hostUsers");
    }
    const std::string handler = line.value("handler", "");
    request.runtime_handler = handler;
    if (line.contains("length")) request.length = line["length"].get<std::uint32_t>();
    return Shown(store.GetOrCreateUserNamespace(request));
  }
  if (op == "findUserns") return Shown(store.GetUserNamespace(pod));
  if (op == "releaseUserns") return AsJson(store.ReleaseUserNamespace(pod, options));
  if (op == "adopt") {
    const bool in_blocks = line.contains("block");
    const auto first = line.at(in_blocks ? "block" : "hostId").get<std::uint64_t>();
    const auto length =
        in_blocks ? line.value("blocks", 1) * kIdsPerBlock : line.at("length").get<std::uint64_t>();
    return AsJson(store.AdoptUserNamespace(pod, in_blocks ? first * kIdsPerBlock : first, length));
  }
  if (op == "cleanUp") {
    return Shown(store.CleanUpUserNamespaces(StringsOf(line, "existing"),
                                             StringsOf(line, "running"), token, options));
  }
  if (op == "listUserns") return Shown(store.ListUserNamespaces());
  if (op == "heldPods") return Shown(store.ListHeldPods());
  if (op == "pool") return Shown(store.GetUserNamespaceStatistics());
  if (op == "useUp") return UseUp(store);
  if (op == "releaseLost") return AsJson(store.ReleaseLostUserNamespaces(options));
  return std::nullopt;
}

IdPool PoolOf(const json& value) {
  return {value.at(0).get<std::uint64_t>() * kIdsPerBlock,
          value.at(1).get<std::uint64_t>() * kIdsPerBlock,
          value.at(2).get<std::uint64_t>() * kIdsPerBlock, 1};
}

std::string UsernsFileOf(std::uint64_t block, std::uint64_t blocks) {
  const json mapping = {
      {{"hostId", block * kIdsPerBlock}, {"containerId", 0}, {"length", blocks * kIdsPerBlock}}};
  return json{{"uidMappings", mapping}, {"gidMappings", mapping}}.dump();
}

}  // namespace waybill::replay
