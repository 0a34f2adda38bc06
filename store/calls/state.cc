// StoreCounts, verification, trust.

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "store/base/try.h"
#include "store/calls/do.h"
#include "store/calls/impl.h"
#include "store/disk/trust.h"
#include "store/disk/uuid.h"
#include "store/images/pull_row.h"

namespace waybill {

using internal::ReaderPool, internal::StoreTxn, internal::Table;

Result<StoreCounts> NodeStore::GetStatistics() const {
  return Guarded([&]() -> Result<StoreCounts> {
    const ReaderPool::Lease snapshot = impl_->Read();
    if (!snapshot) return impl_->NoSnapshot(snapshot, "the header");
    const internal::OpenedDatabase& database = *impl_->database();
    const internal::State& state = snapshot.state();
    const lmdb::Env::Info info = database.env->GetInfo();
    StoreCounts statistics;
    statistics.store_uuid = internal::EncodeUuid(database.identity.uuid);
    statistics.schema_version = database.identity.schema_version;
    statistics.commit_sequence = state.commit_sequence;
    for (const internal::TableSpec& spec : internal::kTables) {
      if (spec.statistic != nullptr) statistics.*spec.statistic = state.digest(spec.table).count;
    }
    if (statistics.intents > 0) {
      const auto pulls = TRY(ListIn(*impl_, snapshot, Table::kIntents, "the open pulls",
                                    internal::DecodeUnresolvedPull));
      statistics.intents -= static_cast<std::uint64_t>(
          std::count_if(pulls.begin(), pulls.end(),
                        [](const UnresolvedPull& pull) { return pull.nothing_at != 0; }));
    }
    auto records = TRY(impl_->CountRecords(snapshot));
    statistics.records = records.records();
    statistics.nondefault_handler_records = records.nondefault();
    statistics.ledger_entries = records.preloaded;
    statistics.spellings = records.with_aliases;
    const PoolUse host_ids = TRY(impl_->CountHostIds(snapshot));
    statistics.id_mappings = host_ids.allocations;
    statistics.held_pods = host_ids.held_pods;
    statistics.distrustful = state.distrustful;
    statistics.map_bytes = info.map_bytes;
    statistics.used_bytes = (info.last_page + 1) * info.page_size;
    statistics.readers = info.readers;
    statistics.max_readers = info.max_readers;
    return statistics;
  });
}

Settings NodeStore::Impl::SettingsNow() const {
  Settings settings{.mode = rules};
  settings.policy = {.verification = policy.mode(),
                     .allowlist = policy.patterns(),
                     .allowlist_preloaded_only = policy.scope() == AllowlistScope::kPreloadedOnly};
  for (const auto& [of, proofs] : policy.proofs()) {
    Policy& says = settings.policy;
    (proofs == Proofs::kRegistry ? says.registry_only : says.any_proof)
        .push_back(of.empty() || of.ends_with('/') ? of + "*" : of);
  }
  settings.pool = {.enabled = user_namespaces.enabled, .ids = user_namespaces.pool};
  settings.short_names_anywhere = evidence.short_names == ShortNames::kAnywhere;
  settings.trace_file = trace_file;
  settings.flushes_twice = flushes_twice;
  return settings;
}

// Mode and ages are members of the state.
std::string NodeStore::Impl::SettingsToKeep() const {
  const Settings now = SettingsNow();
  const Settings kept{
      .policy = now.policy, .pool = now.pool, .short_names_anywhere = now.short_names_anywhere};
  std::string text = internal::ToJson(kept);
  return text == internal::ToJson(Settings()) ? std::string() : text;
}

Result<void> NodeStore::Impl::KeepSettings() {
  std::string& known = owned->database.identity.settings;
  const std::string settings = SettingsToKeep();
  if (settings == known) return {};
  TRY(committer->Run([&](StoreTxn& txn) { return txn.PutSettings(settings); }));
  known = settings;
  return {};
}

std::shared_ptr<const internal::Chosen> NodeStore::Impl::ChosenIn(
    const ReaderPool::Lease& snapshot) const {
  auto chosen = chosen_.load();
  const std::uint64_t hash = snapshot.state().settings_hash;
  if (chosen && chosen->hash == hash) return chosen;
  const internal::Opened opened =
      snapshot.GetHeaderRecord(internal::kIdentityKey, internal::RecordKind::kIdentity);
  const auto identity = opened.state == internal::EnvelopeState::kSound
                            ? internal::DecodeIdentity(opened.payload)
                            : std::nullopt;
  // What can't be read is no JSON.
  chosen = std::make_shared<const internal::Chosen>(
      internal::Chosen::Of(identity ? identity->settings : "?", hash));
  chosen_ = chosen;
  return chosen;
}

std::shared_ptr<const VerificationPolicy> NodeStore::Impl::PolicyIn(
    const ReaderPool::Lease& snapshot) const {
  if (is_owner_ || shows_all_proofs_ || !snapshot) return {std::shared_ptr<void>(), &policy};
  auto chosen = ChosenIn(snapshot);
  return {chosen, &chosen->policy};
}

Mode NodeStore::Impl::ModeNow() {
  if (is_owner_) return rules;
  const ReaderPool::Lease snapshot = Read();
  return snapshot ? internal::ModeIn(snapshot) : rules;
}

Settings NodeStore::settings() const {
  Settings settings = impl_->SettingsNow();
  if (const ReaderPool::Lease snapshot = impl_->Read()) {
    if (!owns()) {
      settings.mode = internal::ModeIn(snapshot);
      settings.policy = impl_->ChosenIn(snapshot)->settings.policy;
    }
    settings.max_age_seconds = static_cast<std::uint64_t>(impl_->AgingIn(snapshot).max_age.count());
  }
  return settings;
}

bool NodeStore::owns() const { return impl_->is_owner(); }

Result<TrustState> NodeStore::GetTrust() const {
  return Guarded([&]() -> Result<TrustState> {
    const ReaderPool::Lease snapshot = impl_->Read();
    if (!snapshot) return impl_->NoSnapshot(snapshot, "the header");
    const internal::Opened opened =
        snapshot.GetHeaderRecord(internal::kTrustKey, internal::RecordKind::kTrustJournal);
    auto journal = opened.state == internal::EnvelopeState::kSound
                       ? internal::DecodeJournal(opened.payload)
                       : std::optional<internal::Journal>();
    if (!journal) return impl_->Unreadable("the trust journal");
    return TrustState{snapshot.state().distrustful, std::move(*journal)};
  });
}

namespace door {

Result<GetStatus::Answer> Do(NodeStore& store, const GetStatus& call, const Progress&) {
  GetStatus::Answer answer;
  answer.counts = TRY(store.GetStatistics());
  TrustState trust = TRY(store.GetTrust());
  answer.store_uuid = answer.counts.store_uuid;
  answer.schema_version = answer.counts.schema_version;
  answer.commit = answer.counts.commit_sequence;
  answer.settings = store.settings();
  answer.settings.map_bytes = answer.counts.map_bytes;
  answer.degraded = trust.distrustful;
  if (store.owns()) answer.owner_pid = getpid();
  if (call.brief) return answer;
  answer.history = std::move(trust.journal);
  if (store.owns()) answer.opening = store.recovery_report();
  return answer;
}

// Blocks the commits of this process meanwhile. Beside a busy owner it may have to start over, and
// is kIo after several tries.
Result<Verify::Answer> Do(NodeStore& store, const Verify&, const Progress& progress) {
  NodeStore::Impl& impl = store.impl();
  const auto sequence = [&]() -> std::uint64_t {
    const ReaderPool::Lease snapshot = impl.Read();
    return snapshot ? snapshot.state().commit_sequence : 0;
  };
  return impl.LiveStore::Verify(sequence, progress);
}

}  // namespace door

}  // namespace waybill
