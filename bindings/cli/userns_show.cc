#include "bindings/cli/described_json.h"
#include "bindings/cli/store_access.h"
#include "bindings/cli/user_namespace_flags.h"
#include "bindings/cli/userns_actions.h"
#include "bindings/cli/userns_json.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

std::string RangesText(const std::vector<HostIdRange>& ranges) {
  if (ranges.empty()) return "not known";
  std::string text;
  for (const HostIdRange& range : ranges) {
    if (!text.empty()) text += ", ";
    text += RangeText(range.first, range.length);
  }
  return text;
}

void WriteMappings(const std::vector<UserNamespaceAllocation>& mappings, Output& out) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(mappings.size());
  for (const UserNamespaceAllocation& mapping : mappings) {
    rows.push_back({mapping.pod_uid, RangeText(mapping.host_id, mapping.length),
                    out.TimeText(mapping.created),
                    std::string(PoolRelationText(mapping.relation))});
  }
  out.WriteTable({"POD UID", "HOST IDS", "CREATED", "RELATION"}, rows);
}

void WriteHeld(const std::vector<HeldPod>& held, Output& out) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(held.size());
  for (const HeldPod& pod : held) {
    rows.push_back({PodText(pod.pod_uid), RangesText(pod.ranges), out.TimeText(pod.since),
                    pod.source.empty() ? "-" : pod.source, pod.reason});
  }
  out.WriteTable({"HELD POD", "HOST IDS", "SINCE", "SOURCE", "REASON"}, rows);
}

class UsernsListCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    pool_.Declare(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    const auto pool = TRY(pool_.Read(false));
    auto store = TRY(ObserveStore(store_, {.user_namespaces = pool}));
    auto mappings = store->ListUserNamespaces();
    if (!mappings) return store.InTruth(mappings.error());
    auto held = store->ListHeldPods();
    if (!held) return store.InTruth(held.error());
    TRY(store->Close());
    WriteMappings(*mappings, out);
    if (!held->empty()) WriteHeld(*held, out);
    Json mappings_json = Json::array();
    for (const UserNamespaceAllocation& mapping : *mappings) {
      Json entry = JsonOf(mapping);
      entry["relation"] = PoolRelationName(mapping.relation);
      mappings_json.push_back(std::move(entry));
    }
    Json held_json = Json::array();
    for (const HeldPod& pod : *held) held_json.push_back(JsonOf(pod));
    out.WriteJson({{"mappings", mappings_json}, {"heldPods", held_json}});
    return ExitCode::kYes;
  }

 private:
  UserNamespaceFlags pool_;
};

class UsernsPoolCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    pool_.Declare(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    const auto pool = TRY(pool_.Read());
    auto statistics = TRY(WithStore(ObserveStore(store_, {.user_namespaces = pool}),
                                    &NodeStore::GetUserNamespaceStatistics));
    const UserNamespaceStatistics& s = statistics;
    const bool available = s.enabled && s.refused_because.empty() && s.free > 0;
    out.WriteFields({{"available", "new ranges", available},
                     {"enabled", "enabled", s.enabled},
                     {"firstId", "first ID", s.pool.first_id},
                     {"idCount", "IDs", s.pool.id_count},
                     {"idsPerPod", "IDs per pod", s.pool.ids_per_pod},
                     {"maxPods", "pods at most", s.pool.max_pods},
                     {"ranges", "ranges", s.ranges},
                     {"used", "used", s.used},
                     {"free", "free", s.free},
                     {"largestFreeRun", "free side by side", s.largest_free_run},
                     {"mappings", "mappings", s.allocations},
                     {"outsidePool", "outside the pool", s.outside_pool},
                     {"otherLength", "of another length", s.other_length},
                     {"heldPods", "held pods", s.held_pods},
                     {"refusedBecause", "refused because",
                      s.refused_because.empty() && !out.json() ? "-" : s.refused_because}});
    return available ? ExitCode::kYes : ExitCode::kNo;
  }

 private:
  UserNamespaceFlags pool_;
};

}  // namespace

Command UsernsListAction() {
  return {.name = "list",
          .summary = "which pod has which range, and pods with an unverified range (held)",
          .examples = "waybill userns list",
          .call = New<UsernsListCall>};
}

Command UsernsPoolAction() {
  return {.name = "pool",
          .summary = "how full the pool is",
          .notes = "1 if no new range can be given out.",
          .examples = "waybill userns pool",
          .call = New<UsernsPoolCall>};
}

}  // namespace waybill::cli
