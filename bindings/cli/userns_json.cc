#include "bindings/cli/userns_json.h"

#include <limits>

#include "bindings/cli/described_json.h"

namespace waybill::cli {

Json JsonOf(const UserNamespace& user_namespace) {
  return {{"mode", user_namespace.mode == NamespaceMode::kPod ? "POD" : "NODE"},
          {"uids", JsonOfMember(user_namespace.uids)},
          {"gids", JsonOfMember(user_namespace.gids)}};
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
    out.Line("host IDs    {} taken over from {}, {} unchanged", HowMany(report.imported, "mapping"),
             HowMany(report.files_seen, "file"), report.unchanged);
  }
  for (const std::string& problem : report.problems) out.Line("problem     {}", problem);
  if (report.repaired_blocks > 0) {
    out.Line("repaired    {} of the block table, from the mappings",
             HowMany(report.repaired_blocks, "value"));
  }
  if (report.outside_pool + report.other_length > 0) {
    out.Line(
        "off pool    {} outside the pool, {} of another length: they stay valid for their pods",
        HowMany(report.outside_pool, "mapping"), report.other_length);
  }
  for (const std::string& pod : report.off_pool) out.Line("off pool    {}", pod);
  if (report.outside_pool + report.other_length > report.off_pool.size()) {
    out.Line("off pool    and {} more",
             report.outside_pool + report.other_length - report.off_pool.size());
  }
  if (report.held_pods > 0) {
    out.Line("held        {} with unverified host IDs: see waybill userns list",
             HowMany(report.held_pods, "pod"));
  }
  if (!report.refused_because.empty()) out.Line("refused     {}", report.refused_because);
}

}  // namespace waybill::cli
