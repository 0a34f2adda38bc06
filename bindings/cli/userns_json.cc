#include "bindings/cli/userns_json.h"

#include <limits>

#include "waybill/kubelet_format.h"

namespace waybill::cli {
namespace {

Json JsonOf(const IdMappings& mappings) {
  Json list = Json::array();
  for (const IdMapping& mapping : mappings) {
    list.push_back({{"hostId", mapping.host_id},
                    {"containerId", mapping.container_id},
                    {"length", mapping.length}});
  }
  return list;
}

}  // namespace

Json JsonOf(const UserNamespace& user_namespace) {
  return {{"mode", user_namespace.mode == NamespaceMode::kPod ? "POD" : "NODE"},
          {"uids", JsonOf(user_namespace.uids)},
          {"gids", JsonOf(user_namespace.gids)}};
}

Json JsonOf(const UserNamespaceAllocation& allocation) {
  return {{"podUid", allocation.pod_uid},
          {"hostId", allocation.host_id},
          {"length", allocation.length},
          {"created", FormatTimestamp(allocation.created)}};
}

Json JsonOf(const HeldPod& pod) {
  Json ranges = Json::array();
  for (const HostIdRange& range : pod.ranges) {
    ranges.push_back({{"first", range.first}, {"length", range.length}});
  }
  return {{"podUid", pod.pod_uid},
          {"ranges", ranges},
          {"source", pod.source},
          {"reason", pod.reason},
          {"since", FormatTimestamp(pod.since)},
          {"kind", HeldKindName(pod.kind)}};
}

Json JsonOf(const UserNamespaceReport& report) {
  return {{"filesSeen", report.files_seen},
          {"unchanged", report.unchanged},
          {"imported", report.imported},
          {"held", report.held},
          {"repairedBlocks", report.repaired_blocks},
          {"problems", report.problems},
          {"allocations", report.allocations},
          {"heldPods", report.held_pods},
          {"outsidePool", report.outside_pool},
          {"otherLength", report.other_length},
          {"offPool", report.off_pool},
          {"refusedBecause", report.refused_because}};
}

std::string_view PoolRelationName(PoolRelation relation) {
  switch (relation) {
    case PoolRelation::kInPool:
      return "inPool";
    case PoolRelation::kOutsidePool:
      return "outsidePool";
    case PoolRelation::kOtherLength:
      return "otherLength";
  }
  return "unknown";
}

std::string_view PoolRelationText(PoolRelation relation) {
  switch (relation) {
    case PoolRelation::kInPool:
      return "in the pool";
    case PoolRelation::kOutsidePool:
      return "outside the pool";
    case PoolRelation::kOtherLength:
      return "of another length";
  }
  return "unknown";
}

std::string RangeText(std::uint64_t first, std::uint64_t length) {
  if (length == 0) return fmt::format("none from {} on", first);
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return fmt::format("{}-{}", first, length - 1 > kMost - first ? kMost : first + (length - 1));
}

std::string PodText(const std::string& pod_uid) {
  return pod_uid.empty() ? "(lost: not known)" : pod_uid;
}

void WriteUserNamespaces(const UserNamespaceReport& report, Output& out) {
  if (report.files_seen > 0) {
    out.Line("host IDs    {} taken over from {}, {} unchanged", Counted(report.imported, "mapping"),
             Counted(report.files_seen, "file"), report.unchanged);
  }
  for (const std::string& problem : report.problems) out.Line("problem     {}", problem);
  if (report.repaired_blocks > 0) {
    out.Line("repaired    {} of the block table, from the mappings",
             Counted(report.repaired_blocks, "value"));
  }
  if (report.outside_pool + report.other_length > 0) {
    out.Line(
        "off pool    {} outside the pool, {} of another length: they stay valid for their pods",
        Counted(report.outside_pool, "mapping"), report.other_length);
  }
  for (const std::string& pod : report.off_pool) out.Line("off pool    {}", pod);
  if (report.outside_pool + report.other_length > report.off_pool.size()) {
    out.Line("off pool    and {} more",
             report.outside_pool + report.other_length - report.off_pool.size());
  }
  if (report.held_pods > 0) {
    out.Line("held        {} with unverified host IDs: see waybill userns list",
             Counted(report.held_pods, "pod"));
  }
  if (!report.refused_because.empty()) out.Line("refused     {}", report.refused_because);
}

}  // namespace waybill::cli
