#include "store/node/userns/reconcile.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/base/quote.h"
#include "store/base/try.h"
#include "store/node/records/keys.h"
#include "store/node/records/userns_tables.h"
#include "store/node/userns/allocator.h"
#include "store/node/userns/pool.h"

namespace waybill::internal {

namespace {

constexpr std::size_t kMaxNamedProblems = 100;
constexpr std::uint32_t kUnowned = UINT32_MAX;

HostIdRange RangeOf(std::uint32_t block) { return {block * kIdsPerBlock, kIdsPerBlock}; }

// Merges adjacent ranges, so that a long range is one range.
void AddRange(std::vector<HostIdRange>& ranges, HostIdRange range) {
  if (!ranges.empty() && ranges.back().first + ranges.back().length == range.first) {
    ranges.back().length += range.length;
  } else if (std::find(ranges.begin(), ranges.end(), range) == ranges.end()) {
    ranges.push_back(range);
  }
}

class Reconciliation {
 public:
  Reconciliation(std::vector<UsernsMapping> mappings, std::vector<UsernsBlock> blocks)
      : mappings_(std::move(mappings)), blocks_(std::move(blocks)), owner_(kBlocks, kUnowned) {}

  void Compare() {
    for (std::uint32_t i = 0; i < mappings_.size(); ++i) {
      const BlockRange range = BlocksOf(mappings_[i].host_id, mappings_[i].length);
      for (std::uint32_t block = range.first; block < range.end(); ++block) {
        if (owner_[block] == kUnowned) {
          owner_[block] = i;
        } else {
          contested_.insert(owner_[block]);
          contested_.insert(i);
        }
      }
    }
    std::vector<bool> seen(kBlocks);
    for (const UsernsBlock& block : blocks_) {
      seen[block.block] = true;
      const std::uint32_t owner = owner_[block.block];
      if (owner != kUnowned && mappings_[owner].pod_uid == block.pod_uid) continue;
      AddRange(held_[block.pod_uid], RangeOf(block.block));
      strays_.push_back(block.block);
      if (owner != kUnowned) contested_.insert(owner);
    }
    for (std::uint32_t block = 0; block < kBlocks; ++block) {
      if (owner_[block] != kUnowned && !seen[block]) ++missing_;
    }
  }

  bool agrees() const { return strays_.empty() && missing_ == 0 && contested_.empty(); }

  Result<void> Repair(StoreTxn& txn, IdMappingReport& report) {
    report.repaired_blocks = strays_.size() + missing_;
    for (const std::uint32_t block : strays_) {
      TRY(txn.Delete(Table::kUsernsBlocks, BlockKey(block)));
    }
    for (const std::uint32_t i : contested_) {
      AddRange(held_[mappings_[i].pod_uid], {mappings_[i].host_id, mappings_[i].length});
      TRY(EraseMapping(txn, mappings_[i].pod_uid));
    }
    // Also where a stray was removed.
    for (std::uint32_t block = 0; block < kBlocks; ++block) {
      if (owner_[block] == kUnowned || contested_.contains(owner_[block])) continue;
      TRY(txn.PutNew(Table::kUsernsBlocks, BlockKey(block),
                     EncodeUsernsBlock({mappings_[owner_[block]].pod_uid, block})));
    }
    for (auto& [pod_uid, ranges] : held_) {
      if (auto r = Hold(txn, pod_uid, std::move(ranges), report); !r) return r;
    }
    return {};
  }

 private:
  // Adds to what the pod is held for already.
  static Result<void> Hold(StoreTxn& txn, const std::string& pod_uid,
                           std::vector<HostIdRange> ranges, IdMappingReport& report) {
    auto before = TRY(FindHeld(txn, pod_uid));
    std::string reason = "the stored ID mappings contradicted each other";
    std::string source;
    PodQuarantineKind kind = PodQuarantineKind::kTablesContradict;
    if (before) {
      // A pod of unknown range stays so: its range may be any.
      if (before->pod.ranges.empty()) return {};
      reason = before->pod.reason;
      source = before->pod.source;
      kind = before->pod.kind;
      ranges.insert(ranges.end(), before->pod.ranges.begin(), before->pod.ranges.end());
    }
    if (report.problems.size() < kMaxNamedProblems) {
      report.problems.push_back("pod " + ShownPodUid(pod_uid) + " is held: " + reason);
    }
    ++report.held;
    return StoreHeld(txn,
                     {pod_uid, std::move(ranges), std::move(source), std::move(reason), {}, kind});
  }

  std::vector<UsernsMapping> mappings_;
  std::vector<UsernsBlock> blocks_;
  std::vector<std::uint32_t> owner_;  // of each block, the mapping that covers it
  std::set<std::uint32_t> contested_;
  std::map<std::string, std::vector<HostIdRange>> held_;
  std::vector<std::uint32_t> strays_;  // entries whose pod has no such mapping
  std::size_t missing_ = 0;            // entries that a mapping should have
};

}  // namespace

Result<void> ReconcileUserNamespaces(StoreTxn& txn, IdMappingReport& report) {
  auto mappings = TRY(ReadMappings(txn));
  auto blocks = TRY(ReadBlocks(txn));
  Reconciliation reconciliation(std::move(mappings), std::move(blocks));
  reconciliation.Compare();
  if (reconciliation.agrees()) return {};
  return reconciliation.Repair(txn, report);
}

Result<void> DescribeUserNamespaces(const StoreTxn& txn, const UserNamespaceOptions& options,
                                    IdMappingReport& report) {
  auto mappings = TRY(ReadMappings(txn));
  auto held = TRY(ReadHeld(txn));
  report.allocations = mappings.size();
  report.held_pods = held.size();
  report.refused_because = WhyRefused(held);
  if (!options.enabled) return {};
  for (const UsernsMapping& mapping : mappings) {
    const PoolRelation relation = RelationTo(options.pool, mapping.host_id, mapping.length);
    if (relation == PoolRelation::kInPool) continue;
    ++(relation == PoolRelation::kOutsidePool ? report.outside_pool : report.other_length);
    if (report.off_pool.size() < kMaxNamedProblems) report.off_pool.push_back(mapping.pod_uid);
  }
  return {};
}

}  // namespace waybill::internal
