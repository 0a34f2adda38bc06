// Host ID ranges for pods in user namespaces (KEP-127).

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_set>
#include <utility>

#include "migrations/kubelet/userns_file.h"
#include "store/base/empty_list.h"
#include "store/base/files.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "store/images/list_token.h"
#include "store/node/facade/impl.h"
#include "store/node/handlers/runtime_handlers.h"
#include "store/node/userns/import.h"
#include "store/node/userns/lost_ranges.h"
#include "store/node/userns/reconcile.h"

namespace waybill {

using internal::HashKey, internal::Lookup, internal::Payload, internal::QuoteForMessage,
    internal::ReaderPool, internal::ShownPodUid, internal::StoreTxn, internal::Table,
    internal::UserNamespaceSupport;

namespace {

UserNamespace PodMode(const IdMapping& mapping) {
  return {NamespaceMode::kPod, IdMappings(mapping), IdMappings(mapping)};
}

Error SwitchedOff() {
  return {ErrorCode::kConflict,
          "the feature gate \"UserNamespacesSupport\" is disabled: can't set spec.HostUsers",
          "switch user namespaces on, or leave hostUsers out of the pod"};
}

Error NotSupported(std::string_view handler, bool is_known) {
  std::string message = "can't set `spec.hostUsers: false`, ";
  message += handler.empty() ? "runtime does not support user namespaces"
                             : "RuntimeClass handler " + QuoteForMessage(handler) +
                                   " does not support user namespaces";
  if (!is_known) message += ": the handler " + QuoteForMessage(handler) + " is not known";
  return {ErrorCode::kInvalidArgument, message, {}, Hint::kLoadHandlers};
}

Error NeverTold() {
  return {
      ErrorCode::kInvalidArgument,
      "can't set `spec.hostUsers: false`: the store was never told the runtime's handlers, so it "
      "does not know whether one supports user namespaces",
      {},
      Hint::kLoadHandlers};
}

// nullopt: the snapshot has no mapping of the pod.
struct Found {
  IdMapping mapping;
  Payload payload;  // lives as long as the snapshot
};
Result<std::optional<Found>> Find(const NodeStore::Impl& impl, const ReaderPool::Lease& snapshot,
                                  std::string_view pod_uid) {
  const internal::Key16 key = HashKey(pod_uid, snapshot.seed());
  Payload payload;
  if (snapshot.state().digest(Table::kUsernsHeld).count > 0) {
    const Lookup found = snapshot.Get(Table::kUsernsHeld, key, payload);
    if (found == Lookup::kFound) {
      const auto held = internal::DecodeUsernsHeld(payload);
      if (held && held->pod.pod_uid == pod_uid) return internal::IsHeld(held->pod);
    }
    if (found != Lookup::kAbsent) return impl.Unreadable("the held pods");
  }
  const Lookup found = snapshot.Get(Table::kUsernsMappings, key, payload);
  if (found == Lookup::kAbsent) return std::optional<Found>();
  const auto mapping =
      found == Lookup::kFound ? internal::MappingOf(payload, pod_uid) : std::nullopt;
  if (!mapping) return impl.Unreadable("the ID mappings");
  return std::optional(Found{*mapping, payload});
}

std::optional<PodMapping> DecodeAllocation(Payload payload) {
  auto mapping = internal::DecodeUsernsMapping(payload);
  if (!mapping) return std::nullopt;
  return PodMapping{std::move(mapping->pod_uid), mapping->host_id, mapping->length,
                    mapping->created, PoolRelation::kInPool};
}

std::optional<QuarantinedPod> DecodeHeldPod(Payload payload) {
  auto held = internal::DecodeUsernsHeld(payload);
  return held ? std::optional(std::move(held->pod)) : std::nullopt;
}

void Relate(const UserNamespaceOptions& options, PodMapping& allocation) {
  if (!options.enabled) return;
  allocation.relation = internal::RelationTo(options.pool, allocation.host_id, allocation.length);
}

void AddTo(CleanUpReport& sum, CleanUpReport step) {
  step.examined = std::max(sum.examined, step.examined);
  step.released += sum.released;
  step.released_pods.insert(step.released_pods.begin(), sum.released_pods.begin(),
                            sum.released_pods.end());
  if (step.released_pods.size() > internal::kMaxNamedPods) {
    step.released_pods.resize(internal::kMaxNamedPods);
  }
  sum = std::move(step);
}

}  // namespace

Result<void> NodeStore::Impl::OpenUserNamespaces(const NodeStoreOptions& options) {
  auto opened = TakeOverUserNamespaces(options);
  if (opened || opened.error().code == ErrorCode::kOutcomeUnknown) return opened;
  if (options.pods_directory.empty() && options.kubelet_directory.empty()) return opened;
  // The next opening may name no directory. Best effort: the error at hand is the one that counts.
  static_cast<void>(committer->Run(
      [&](StoreTxn& txn) { return internal::HoldUntilImport(txn, opened.error().message); }));
  return opened;
}

Result<void> NodeStore::Impl::TakeOverUserNamespaces(const NodeStoreOptions& options) {
  std::vector<internal::UsernsFile> files;
  std::filesystem::path pods = options.pods_directory;
  if (pods.empty() && !options.kubelet_directory.empty()) pods = options.kubelet_directory / "pods";
  bool were_read = false;
  if (!pods.empty()) {
    auto read = internal::ReadPodsDirectory(pods, internal::OnReadErrorIn(options));
    // What nobody named must not keep a kubelet from starting. Ranges stay held.
    const bool is_skipped =
        !read && options.pods_directory.empty() && read.error().code == ErrorCode::kUnsafePath;
    if (is_skipped) report.user_namespaces.problems.push_back(read.error().message);
    if (!read && !is_skipped) return read.error();
    if (read) files = *std::move(read);
    for (const auto& place : {pods, options.kubelet_directory}) {
      if (place.empty() || were_read || is_skipped) continue;
      were_read = TRY(internal::Exists(place));
    }
  }
  const IdMappingReport before = report.user_namespaces;
  allocator.emplace(user_namespaces, committer->state().commit_sequence);
  return committer->Run([&](StoreTxn& txn) -> Result<void> {
    IdMappingReport& userns = report.user_namespaces;
    userns = before;  // the change may run twice
    if (auto r = internal::ReconcileUserNamespaces(txn, userns); !r) return r;
    if (auto r = internal::ImportUserNamespaces(txn, files, userns); !r) return r;
    if (were_read) TRY(internal::ReleaseAfterImport(txn));
    return internal::DescribeUserNamespaces(txn, user_namespaces, userns);
  });
}

Result<UserNamespace> NodeStore::GetOrCreateUserNamespace(const UserNamespaceRequest& request) {
  const auto get_or_create = [&]() -> Result<UserNamespace> {
    if (!impl_->user_namespaces.enabled && request.host_users.has_value()) return SwitchedOff();
    if (request.host_users.value_or(true)) return UserNamespace{};
    TRY(internal::CheckPodUid(request.pod_uid));
    {
      const ReaderPool::Lease snapshot = impl_->Read();
      if (!snapshot) return impl_->NoSnapshot(snapshot, "the ID mappings");
      switch (internal::LookUpUserNamespaces(snapshot, request.runtime_handler)) {
        case UserNamespaceSupport::kYes:
          break;
        case UserNamespaceSupport::kNo:
          return NotSupported(request.runtime_handler, true);
        case UserNamespaceSupport::kNeverTold:
          return NeverTold();
        case UserNamespaceSupport::kUnknownHandler:
          return NotSupported(request.runtime_handler, false);
        case UserNamespaceSupport::kDamaged:
          return impl_->Unreadable("the runtime handlers");
      }
      auto found = TRY(Find(*impl_, snapshot, request.pod_uid));
      if (found) {
        TRY(internal::CheckLength(request, found->mapping));
        const bool may_be_collected =
            impl_->is_owner() && internal::StampOf(found->payload) <= impl_->last_token.load();
        // A pod's files outlive a power cut, so its range must, too.
        const bool is_durable = !impl_->is_owner() || snapshot.state().commit_sequence <=
                                                          impl_->committer->durable_sequence();
        if (!may_be_collected && is_durable) return PodMode(found->mapping);
      }
    }
    auto mapping = TRY(WriteAndGet(*impl_, [&](StoreTxn& txn) {
      return impl_->allocator->GetOrCreate(txn, request, impl_->last_token.load());
    }));
    return PodMode(mapping);
  };
  auto given = Guarded(get_or_create);
  if (!given && request.host_users == false) {
    impl_->id_range_failures.fetch_add(1, std::memory_order_relaxed);
  }
  return given;
}

Result<PodMapping> NodeStore::GetUserNamespace(std::string_view pod_uid) const {
  return Guarded([&]() -> Result<PodMapping> {
    TRY(internal::CheckPodUid(pod_uid));
    const ReaderPool::Lease snapshot = impl_->Read();
    if (!snapshot) return impl_->NoSnapshot(snapshot, "the ID mappings");
    auto found = TRY(Find(*impl_, snapshot, pod_uid));
    if (!found) {
      if (!snapshot.CountIsTrue(Table::kUsernsMappings)) {
        return impl_->Unreadable("the ID mappings");
      }
      return Error{ErrorCode::kNotFound, "pod " + ShownPodUid(pod_uid) + " has no ID mapping"};
    }
    auto allocation = DecodeAllocation(found->payload);
    if (!allocation) return impl_->Unreadable("the ID mappings");
    Relate(impl_->user_namespaces, *allocation);
    return *std::move(allocation);
  });
}

Result<bool> NodeStore::ReleaseUserNamespace(std::string_view pod_uid,
                                             const ChangeOptions& options) try {
  const auto checked = internal::CheckPodUid(pod_uid);
  // The empty UID is the key of lost ranges.
  if (!checked && pod_uid.empty()) return checked.error();
  const auto release = [&](StoreTxn& txn) -> Result<bool> {
    auto released = impl_->allocator->Release(txn, pod_uid);
    // An imported directory may have had such a name: its range can be released.
    if (released && !*released && !checked) return checked.error();
    return released;
  };
  return WriteAndGet(*impl_, release, options);
} catch (...) {
  return internal::Caught();
}

Result<std::vector<PodMapping>> NodeStore::ListUserNamespaces() const {
  auto all = ListTable(*impl_, Table::kUsernsMappings, "the ID mappings", DecodeAllocation);
  if (!all) return all;
  for (PodMapping& one : *all) Relate(impl_->user_namespaces, one);
  std::sort(all->begin(), all->end(),
            [](const auto& a, const auto& b) { return a.host_id < b.host_id; });
  return all;
}

Result<std::vector<QuarantinedPod>> NodeStore::ListHeldPods() const {
  auto pods = ListTable(*impl_, Table::kUsernsHeld, "the held pods", DecodeHeldPod);
  if (!pods) return pods;
  std::sort(pods->begin(), pods->end(),
            [](const QuarantinedPod& a, const QuarantinedPod& b) { return a.pod_uid < b.pod_uid; });
  return pods;
}

Result<CleanUpReport> NodeStore::CleanUpUserNamespaces(const std::vector<std::string>& existing,
                                                       const std::vector<std::string>& running,
                                                       ListToken token,
                                                       const ChangeOptions& options) try {
  CleanUpReport report;
  std::unordered_set<std::string_view> pods(existing.begin(), existing.end());
  pods.insert(running.begin(), running.end());
  // All in one transaction; in steps if a full store has too few pages left for that.
  std::size_t most = std::numeric_limits<std::size_t>::max();
  while (true) {
    const auto clean_up = [&](StoreTxn& txn) -> Result<CleanUpReport> {
      TRY(internal::CheckToken(txn, token, Hint::kBeginUsernsCleanup));
      auto done = impl_->allocator->CleanUp(txn, pods, token.commit, most);
      // If no pod was examined, none was released.
      if (done && pods.empty() && done->examined > 0 && !options.allow_empty) {
        return internal::EmptyList("both lists of pods are",
                                   "knows host IDs of " + internal::HowMany(done->examined, "pod"),
                                   "no host IDs were released");
      }
      return done;
    };
    auto step = WriteAndGet(*impl_, clean_up, options);
    if (!step) {
      // A dry run undoes each step, so it would never end.
      if (options.dry_run || !TakeSmallerSteps(step.error(), most)) return step.error();
      continue;
    }
    const bool is_last = step->released < most;
    AddTo(report, *std::move(step));
    if (is_last) return report;
  }
} catch (...) {
  return internal::Caught();
}

Result<void> NodeStore::AdoptUserNamespace(std::string_view pod_uid, std::uint64_t host_id,
                                           std::uint64_t length) try {
  if (auto r = internal::CheckPodUid(pod_uid); !r) return r;
  if (auto r = internal::CheckMapping(host_id, length); !r) return r;
  return impl_->Write([&](StoreTxn& txn) {
    return impl_->allocator->Adopt(txn, pod_uid, {host_id, length});
  });
} catch (...) {
  return internal::Caught();
}

Result<bool> NodeStore::ReleaseLostUserNamespaces(const ChangeOptions& options) {
  return WriteAndGet(
      *impl_, [](StoreTxn& txn) { return internal::EraseHeld(txn, {}); }, options);
}

Result<PoolUse> NodeStore::GetUserNamespaceStatistics() const {
  return Guarded([&]() -> Result<PoolUse> {
    const ReaderPool::Lease snapshot = impl_->Read();
    auto mappings = TRY(ListIn(*impl_, snapshot, Table::kUsernsMappings, "the ID mappings",
                               internal::DecodeUsernsMapping));
    auto held = TRY(
        ListIn(*impl_, snapshot, Table::kUsernsHeld, "the held pods", internal::DecodeUsernsHeld));

    const UserNamespaceOptions& options = impl_->user_namespaces;
    PoolUse statistics;
    statistics.enabled = options.enabled;
    statistics.pool = options.pool;
    statistics.allocations = mappings.size();
    statistics.held_pods = held.size();
    statistics.refused_because = internal::WhyRefused(held);
    if (!options.enabled) return statistics;
    internal::BlockSet taken;
    for (const internal::UsernsMapping& mapping : mappings) {
      taken.Add(internal::BlocksOf(mapping.host_id, mapping.length));
      const auto relation = internal::RelationTo(options.pool, mapping.host_id, mapping.length);
      if (relation == PoolRelation::kOutsidePool) ++statistics.outside_pool;
      if (relation == PoolRelation::kOtherLength) ++statistics.other_length;
    }
    internal::AddHeld(held, taken);
    const internal::Slots slots = internal::SlotsOf(options.pool);
    statistics.ranges = slots.count;
    std::uint32_t run = 0;
    for (std::uint32_t slot = 0; slot < slots.count; ++slot) {
      const bool free = !taken.HasAnyOf(slots.At(slot));
      run = free ? run + 1 : 0;
      statistics.free += free ? 1 : 0;
      statistics.largest_free_run = std::max<std::uint64_t>(statistics.largest_free_run, run);
    }
    statistics.used = statistics.ranges - statistics.free;
    return statistics;
  });
}

}  // namespace waybill
