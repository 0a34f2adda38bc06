// Host ID ranges for pods in user namespaces (KEP-127).

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_set>
#include <utility>

#include "migrations/kubelet_files/userns_file.h"
#include "store/base/empty_list.h"
#include "store/base/files.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "store/calls/impl.h"
#include "store/images/images.h"
#include "store/pods/host_ids.h"
#include "store/pods/import.h"
#include "store/runtimes/runtime_handlers.h"

namespace waybill {

using internal::HashKey, internal::HostIds, internal::Lookup, internal::Payload,
    internal::QuoteForMessage, internal::ReaderPool, internal::ShownPodUid, internal::StoreTxn,
    internal::Table, internal::UserNamespaceSupport;

namespace {

constexpr std::string_view kIdMappings = "the ID mappings";

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

// nullopt: nothing is known of the pod. kConflict: it is held.
Result<std::optional<HostIds>> Find(const NodeStore::Impl& impl, const ReaderPool::Lease& snapshot,
                                    std::string_view pod_uid) {
  Payload payload;
  const Lookup found = snapshot.Get(Table::kHostIds, HashKey(pod_uid, snapshot.seed()), payload);
  if (found == Lookup::kAbsent) return std::optional<HostIds>();
  auto row = found == Lookup::kFound ? internal::DecodeHostIds(payload) : std::nullopt;
  if (!row || row->pod_uid != pod_uid) return impl.Unreadable(kIdMappings);
  if (row->held) return internal::IsHeld(*row->held);
  return row;
}

// The same, of what the pod gets: most pods have theirs.
Result<std::optional<internal::GivenRange>> FindGiven(const NodeStore::Impl& impl,
                                                      const ReaderPool::Lease& snapshot,
                                                      std::string_view pod_uid) {
  Payload payload;
  if (snapshot.Get(Table::kHostIds, HashKey(pod_uid, snapshot.seed()), payload) == Lookup::kFound) {
    if (auto given = internal::GivenIn(payload, pod_uid)) return given;
  }
  const auto row = TRY(Find(impl, snapshot, pod_uid));
  if (!row) return std::optional<internal::GivenRange>();
  return std::optional(internal::GivenRange{row->mapping(), row->stamp});
}

PodMapping Related(const UserNamespaceOptions& options, HostIds row) {
  const IdMapping mapping = row.mapping();
  return {.pod_uid = std::move(row.pod_uid),
          .host_id = mapping.host_id,
          .length = mapping.length,
          .created = row.created,
          .relation = options.enabled
                          ? internal::RelationTo(options.pool, mapping.host_id, mapping.length)
                          : PoolRelation::kInPool};
}

// What is known of host IDs after opening.
void Describe(const std::vector<HostIds>& rows, const UserNamespaceOptions& options,
              IdMappingReport& report) {
  const PoolUse use = internal::UseOf(rows, options);
  report.allocations = use.allocations;
  report.held_pods = use.held_pods;
  report.refused_because = use.refused_because;
  report.outside_pool = use.outside_pool;
  report.other_length = use.other_length;
  for (const HostIds& row : rows) {
    const bool is_off = row.has_range() && Related(options, row).relation != PoolRelation::kInPool;
    if (is_off && report.off_pool.size() < internal::kMaxNamedProblems) {
      report.off_pool.push_back(row.pod_uid);
    }
  }
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
    TRY(internal::HoldOverlapping(txn, userns));
    TRY(internal::ImportUserNamespaces(txn, files, userns));
    const auto unknown = TRY(internal::FindHostIds(txn, {}));
    if (were_read && unknown && internal::IsUntilImport(*unknown)) {
      TRY(internal::EraseHostIds(txn, {}));
    }
    const auto rows = TRY(internal::ReadHostIds(txn));
    Describe(rows, user_namespaces, userns);
    return {};
  });
}

Result<UserNamespace> NodeStore::GetOrCreateUserNamespace(const UserNamespaceRequest& request) {
  const auto get_or_create = [&]() -> Result<UserNamespace> {
    if (!impl_->user_namespaces.enabled && request.host_users.has_value()) return SwitchedOff();
    if (request.host_users.value_or(true)) return UserNamespace{};
    TRY(internal::CheckPodUid(request.pod_uid));
    {
      const ReaderPool::Lease snapshot = impl_->Read();
      if (!snapshot) return impl_->NoSnapshot(snapshot, kIdMappings);
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
      const auto found = TRY(FindGiven(*impl_, snapshot, request.pod_uid));
      if (found) {
        TRY(internal::CheckLength(request, found->mapping));
        const bool may_be_collected = impl_->is_owner() && found->stamp <= impl_->last_token.load();
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
    if (!snapshot) return impl_->NoSnapshot(snapshot, kIdMappings);
    auto found = TRY(Find(*impl_, snapshot, pod_uid));
    if (!found) {
      if (!snapshot.CountIsTrue(Table::kHostIds)) return impl_->Unreadable(kIdMappings);
      return Error{ErrorCode::kNotFound, "pod " + ShownPodUid(pod_uid) + " has no ID mapping"};
    }
    return Related(impl_->user_namespaces, *std::move(found));
  });
}

Result<bool> NodeStore::ReleaseUserNamespace(std::string_view pod_uid,
                                             const ChangeOptions& options) try {
  const auto checked = internal::CheckPodUid(pod_uid);
  // The empty UID is the key of lost ranges.
  if (!checked && pod_uid.empty()) return checked.error();
  const auto release = [&](StoreTxn& txn) -> Result<bool> {
    auto released = internal::EraseHostIds(txn, pod_uid);
    // An imported directory may have had such a name: its range can be released.
    if (released && !*released && !checked) return checked.error();
    return released;
  };
  return WriteAndGet(*impl_, release, options);
} catch (...) {
  return internal::Caught();
}

Result<std::vector<PodMapping>> NodeStore::ListUserNamespaces() const {
  return Guarded([&]() -> Result<std::vector<PodMapping>> {
    auto rows = TRY(impl_->HostIdsIn(impl_->Read()));
    std::vector<PodMapping> mappings;
    for (HostIds& row : rows) {
      if (row.has_range()) mappings.push_back(Related(impl_->user_namespaces, std::move(row)));
    }
    std::ranges::sort(mappings, {}, &PodMapping::host_id);
    return mappings;
  });
}

Result<std::vector<QuarantinedPod>> NodeStore::ListHeldPods() const {
  return Guarded([&]() -> Result<std::vector<QuarantinedPod>> {
    auto rows = TRY(impl_->HostIdsIn(impl_->Read()));
    std::vector<QuarantinedPod> pods;
    for (HostIds& row : rows) {
      if (row.held) pods.push_back(*std::move(row.held));
    }
    return pods;
  });
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
      *impl_, [](StoreTxn& txn) { return internal::EraseHostIds(txn, {}); }, options);
}

Result<PoolUse> NodeStore::GetUserNamespaceStatistics() const {
  return Guarded([&] { return impl_->CountHostIds(impl_->Read()); });
}

Result<std::vector<HostIds>> NodeStore::Impl::HostIdsIn(const ReaderPool::Lease& snapshot) const {
  auto rows = ListIn(*this, snapshot, Table::kHostIds, kIdMappings, internal::DecodeHostIds);
  if (rows) std::ranges::sort(*rows, {}, &HostIds::pod_uid);
  return rows;
}

Result<PoolUse> NodeStore::Impl::CountHostIds(const ReaderPool::Lease& snapshot) {
  if (!snapshot) return NoSnapshot(snapshot, kIdMappings);
  const internal::TableDigest& digest = snapshot.state().digest(Table::kHostIds);
  const std::scoped_lock lock(counted_mutex);
  if (counted_host_ids && counted_host_ids->first == digest) return counted_host_ids->second;
  const auto rows = TRY(HostIdsIn(snapshot));
  const PoolUse use = internal::UseOf(rows, user_namespaces);
  counted_host_ids = {digest, use};
  return use;
}

}  // namespace waybill
