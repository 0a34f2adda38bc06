#include "store/pods/host_ids.h"

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <utility>

#include "schema/v1/host_ids_generated.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "store/disk/flatbuffer.h"

namespace waybill::internal {

namespace v1 = schema::v1;

namespace {

// If files keep naming more ranges, the pod's counts as unknown.
constexpr std::size_t kMaxRangesHeld = 4 * kMaxMappingsPerFile;

bool MayBeHandedOut(std::uint64_t first, std::uint64_t length) {
  return first % kIdsPerBlock == 0 && length % kIdsPerBlock == 0 && first >= kIdsPerBlock &&
         length > 0 && first + length < kHostIds;
}

Error Unreadable(const std::string& what) {
  return {ErrorCode::kDamaged, what + " can't be read; nothing was changed", {}, Hint::kRecover};
}

Key16 PodKey(const StoreTxn& txn, std::string_view pod_uid) { return HashKey(pod_uid, txn.seed()); }

flatbuffers::Offset<v1::HeldIds> EncodeHeld(flatbuffers::FlatBufferBuilder& builder,
                                            const QuarantinedPod& held) {
  std::vector<v1::IdRange> ranges;
  ranges.reserve(held.ranges.size());
  for (const HostIdRange& range : held.ranges) ranges.emplace_back(range.first, range.length);
  const auto ranges_at = builder.CreateVectorOfStructs(ranges);
  const auto source = StringUnlessEmpty(builder, held.source);
  const auto reason = StringUnlessEmpty(builder, held.reason);
  const v1::Time since = ToTime(held.since);
  return v1::CreateHeldIds(builder, static_cast<std::uint8_t>(held.kind), ranges_at, source, reason,
                           &since);
}

std::optional<QuarantinedPod> DecodeHeld(const v1::HeldIds& held) {
  if (held.kind() == 0 || held.ranges() == nullptr || held.since() == nullptr) return std::nullopt;
  QuarantinedPod pod{.source = std::string(Text(held.source())),
                     .reason = std::string(Text(held.reason())),
                     .since = FromTime(*held.since()),
                     .kind = static_cast<PodQuarantineKind>(held.kind())};
  for (const v1::IdRange* range : *held.ranges()) {
    if (range->first() > kHostIds || range->length() > kHostIds) return std::nullopt;
    pod.ranges.push_back({range->first(), range->length()});
  }
  return pod;
}

Result<HostIds> FindOrMake(const StoreTxn& txn, std::string_view pod_uid) {
  auto found = TRY(FindHostIds(txn, pod_uid));
  return found ? *std::move(found) : HostIds{.pod_uid = std::string(pod_uid)};
}

}  // namespace

std::vector<std::uint8_t> EncodeHostIds(const HostIds& row) {
  flatbuffers::FlatBufferBuilder builder(256);
  const auto uid = builder.CreateString(row.pod_uid);
  const auto held = row.held ? EncodeHeld(builder, *row.held) : 0;
  const v1::Time created = ToTime(row.created);
  return Finish(builder,
                v1::CreateHostIds(builder, uid, static_cast<std::uint32_t>(row.range.first),
                                  static_cast<std::uint32_t>(row.range.length),
                                  row.has_range() ? &created : nullptr, row.stamp, held));
}

std::optional<HostIds> DecodeHostIds(Payload payload) {
  const auto* root = Root<v1::HostIds>(payload);
  if (root == nullptr || root->pod_uid() == nullptr || !Fits(root->pod_uid(), kMaxFileNameBytes)) {
    return std::nullopt;
  }
  HostIds row{.pod_uid = root->pod_uid()->str(), .stamp = root->stamp()};
  if (root->length() > 0) {
    if (root->created() == nullptr || !MayBeHandedOut(root->first(), root->length())) {
      return std::nullopt;
    }
    row.range = {root->first(), root->length()};
    row.created = FromTime(*root->created());
  }
  if (root->held() != nullptr) {
    row.held = DecodeHeld(*root->held());
    if (!row.held) return std::nullopt;
    row.held->pod_uid = row.pod_uid;
  }
  if (!row.has_range() && !row.held) return std::nullopt;
  return row;
}

std::optional<GivenRange> GivenIn(Payload payload, std::string_view pod_uid) {
  const auto& row = *flatbuffers::GetRoot<v1::HostIds>(payload.data());
  const bool is_given = Text(row.pod_uid()) == pod_uid && row.held() == nullptr &&
                        MayBeHandedOut(row.first(), row.length());
  if (!is_given) return std::nullopt;
  return GivenRange{{row.first(), 0, row.length()}, row.stamp()};
}

std::optional<Key16> KeyOfHostIds(Payload payload, std::uint64_t seed) {
  const auto row = DecodeHostIds(payload);
  return row ? std::optional(HashKey(row->pod_uid, seed)) : std::nullopt;
}

Result<std::optional<HostIds>> FindHostIds(const StoreTxn& txn, std::string_view pod_uid) {
  auto payload = TRY(txn.Get(Table::kHostIds, PodKey(txn, pod_uid)));
  if (!payload) return std::optional<HostIds>();
  auto row = DecodeHostIds(*payload);
  if (!row) return Unreadable("what is known of the host IDs of " + NameOfPod(pod_uid));
  if (row->pod_uid != pod_uid) return KeyIsTaken(NameOfPod(pod_uid));
  return row;
}

Result<std::vector<HostIds>> ReadHostIds(const StoreTxn& txn) {
  const Error unreadable = Unreadable("an ID mapping");
  auto rows = TRY(ReadAll(txn, Table::kHostIds, DecodeHostIds, unreadable));
  if (rows.size() != txn.state().digest(Table::kHostIds).count) return unreadable;
  std::ranges::sort(rows, {}, &HostIds::pod_uid);
  return rows;
}

Result<void> PutHostIds(StoreTxn& txn, HostIds row) {
  const auto there = FindHostIds(txn, row.pod_uid);
  if (!there && there.error().code != ErrorCode::kDamaged) return there.error();
  row.stamp = txn.sequence();
  return txn.Put(Table::kHostIds, PodKey(txn, row.pod_uid), EncodeHostIds(row));
}

Result<bool> EraseHostIds(StoreTxn& txn, std::string_view pod_uid) {
  const auto there = FindHostIds(txn, pod_uid);
  if (!there && there.error().code != ErrorCode::kDamaged) return there.error();
  return txn.Delete(Table::kHostIds, PodKey(txn, pod_uid));
}

std::vector<HostIdRange> RangesOf(const HostIds& row) {
  std::vector<HostIdRange> ranges;
  if (row.has_range()) ranges.push_back(row.range);
  if (row.held) ranges.insert(ranges.end(), row.held->ranges.begin(), row.held->ranges.end());
  return ranges;
}

void AddTo(BlockSet& blocks, const std::vector<HostIdRange>& ranges) {
  for (const HostIdRange range : ranges) blocks.Add(BlocksOf(range.first, range.length));
}

bool HaveAnyOf(const BlockSet& blocks, const std::vector<HostIdRange>& ranges) {
  return std::ranges::any_of(ranges, [&](HostIdRange range) {
    return blocks.HasAnyOf(BlocksOf(range.first, range.length));
  });
}

Result<void> Hold(StoreTxn& txn, HostIds& row, QuarantinedPod held) {
  held.pod_uid = row.pod_uid;
  held.since = txn.now();
  const bool is_unknown = held.ranges.empty() || row.may_have_any();
  std::vector<HostIdRange> ranges;
  if (row.held) ranges = row.held->ranges;
  for (const HostIdRange range : held.ranges) {
    if (std::ranges::find(ranges, range) == ranges.end()) ranges.push_back(range);
  }
  if (is_unknown || ranges.size() > kMaxRangesHeld) ranges.clear();
  held.ranges = std::move(ranges);
  if (row.held) {
    QuarantinedPod same = held;
    same.since = row.held->since;
    if (same == *row.held) return {};
  }
  row.held = std::move(held);
  return PutHostIds(txn, row);
}

Result<void> HoldOverlapping(StoreTxn& txn, IdMappingReport& report) {
  auto rows = TRY(ReadHostIds(txn));
  BlockSet taken;
  BlockSet shared;
  for (const HostIds& row : rows) {
    const BlockRange blocks = BlocksOf(row.range.first, row.range.length);
    for (std::uint32_t block = blocks.first; block < blocks.end(); ++block) {
      (taken.HasAnyOf({block, 1}) ? shared : taken).Add({block, 1});
    }
  }
  for (HostIds& row : rows) {
    if (!shared.HasAnyOf(BlocksOf(row.range.first, row.range.length))) continue;
    row.range = {};
    row.held = {{.pod_uid = row.pod_uid,
                 .reason = "the range that was stored for it overlaps that of another pod",
                 .since = txn.now(),
                 .kind = PodQuarantineKind::kOverlap}};
    if (report.problems.size() < kMaxNamedProblems) {
      report.problems.push_back(NameOfPod(row.pod_uid) + " is held: " + row.held->reason);
    }
    ++report.held;
    TRY(PutHostIds(txn, row));
  }
  return {};
}

Result<void> HoldLostRanges(StoreTxn& txn, std::string_view reason) {
  auto row = TRY(FindOrMake(txn, {}));
  return Hold(txn, row, {.reason = std::string(reason), .kind = PodQuarantineKind::kLostRanges});
}

Result<void> HoldUntilImport(StoreTxn& txn, std::string_view why) {
  auto row = TRY(FindOrMake(txn, {}));
  if (row.held) return {};
  return Hold(
      txn, row,
      {.reason = "the ID mappings of the kubelet's pods are not taken over: " + std::string(why),
       .kind = PodQuarantineKind::kUntilImport});
}

bool IsUntilImport(const HostIds& row) {
  return row.held && row.held->kind == PodQuarantineKind::kUntilImport;
}

std::string WhyRefused(const std::vector<HostIds>& rows) {
  const auto row = std::ranges::find_if(rows, &HostIds::may_have_any);
  if (row == rows.end()) return {};
  return "the range of " + NameOfPod(row->pod_uid) + " is not known (" + row->held->reason +
         "), and could be handed out twice";
}

PoolUse UseOf(const std::vector<HostIds>& rows, const UserNamespaceOptions& options) {
  PoolUse use{
      .enabled = options.enabled, .pool = options.pool, .refused_because = WhyRefused(rows)};
  BlockSet taken;
  for (const HostIds& row : rows) {
    AddTo(taken, RangesOf(row));
    use.held_pods += row.held ? 1 : 0;
    if (!row.has_range()) continue;
    ++use.allocations;
    if (!options.enabled) continue;
    const auto relation = RelationTo(options.pool, row.range.first, row.range.length);
    use.outside_pool += relation == PoolRelation::kOutsidePool ? 1 : 0;
    use.other_length += relation == PoolRelation::kOtherLength ? 1 : 0;
  }
  if (!options.enabled) return use;
  const Slots slots = SlotsOf(options.pool);
  use.ranges = slots.count;
  std::uint64_t run = 0;
  for (std::uint32_t slot = 0; slot < slots.count; ++slot) {
    const bool free = !taken.HasAnyOf(slots.At(slot));
    run = free ? run + 1 : 0;
    use.free += free ? 1 : 0;
    use.largest_free_run = std::max(use.largest_free_run, run);
  }
  use.used = use.ranges - use.free;
  return use;
}

std::string NameOfPod(std::string_view pod_uid) {
  return pod_uid.empty() ? "unknown pods" : "pod " + ShownPodUid(pod_uid);
}

}  // namespace waybill::internal
