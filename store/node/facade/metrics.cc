// Metrics: gathered here, spelt in metrics_text.cc.

#include <algorithm>
#include <string>

#include "store/base/try.h"
#include "store/base/words.h"
#include "store/engine/trust/trust_journal.h"
#include "store/node/facade/impl.h"

namespace waybill {

using internal::ReaderPool;
using internal::Table;

namespace {

constexpr double kPercent = 100.0;

// What the readers of this process decided.
void AddDecisions(const internal::Counters& counters, StoreCounters& to) {
  for (std::size_t result = 0; result < to.mustpull_checks.size(); ++result) {
    for (std::size_t reason = 0; reason < kMaxReasons; ++reason) {
      const std::uint64_t count = counters[internal::CounterOf(static_cast<CheckResult>(result),
                                                               static_cast<Reason>(reason))];
      to.mustpull_checks[result] += count;
      to.decisions[reason] += count;
    }
  }
}

template <typename From>
void AddRequests(const From& from, EnsureImageRequests& to) {
  for (std::size_t policy = 0; policy < to.size(); ++policy) {
    for (std::size_t present = 0; present < to[policy].size(); ++present) {
      for (std::size_t required = 0; required < to[policy][present].size(); ++required) {
        to[policy][present][required] +=
            from[policy][present][required].load(std::memory_order_relaxed);
      }
    }
  }
}

}  // namespace

Result<internal::RecordCounts> NodeStore::Impl::CountRecords(const ReaderPool::Lease& snapshot) {
  const internal::TableDigest& digest = snapshot.state().digest(Table::kImages);
  const std::scoped_lock lock(counted_mutex);
  if (counted_records && counted_records->of == digest) return *counted_records;
  internal::RecordCounts counts;
  counts.of = digest;
  const auto count = [&counts](internal::Payload one) {
    if (one.empty()) return;
    const internal::ImageView record(one);
    if (record.has_preloaded()) ++counts.preloaded;
    if (record.has_aliases()) ++counts.with_aliases;
    if (!record.is_recorded()) return;
    ++counts.by_handler[std::string(record.runtime_handler())];
    if (record.is_closed()) ++counts.closed;
    const auto proofs = record.CountProofs();
    counts.undated += proofs.undated;
    counts.ending += proofs.ending;
    for (std::size_t i = 0; i < counts.by_checker.size(); ++i) {
      counts.by_checker[i] += proofs.by_checker[i];
    }
    if (proofs.oldest != 0 && (counts.oldest_proof == 0 || proofs.oldest < counts.oldest_proof)) {
      counts.oldest_proof = proofs.oldest;
    }
  };
  if (!snapshot.ForEach(internal::SpecOf(Table::kImages), count)) {
    return Unreadable("the records");
  }
  counted_records = counts;
  return counts;
}

namespace {

Result<internal::IdRangeCounts> CountIdRanges(const NodeStore& store, NodeStore::Impl& impl) {
  internal::IdRangeCounts counts;
  {
    const ReaderPool::Lease snapshot = impl.Read();
    if (!snapshot) return impl.NoSnapshot(snapshot, "the ID mappings");
    counts.of_mappings = snapshot.state().digest(Table::kUsernsMappings);
    counts.of_held = snapshot.state().digest(Table::kUsernsHeld);
  }
  const std::scoped_lock lock(impl.counted_mutex);
  std::optional<internal::IdRangeCounts>& counted = impl.counted_ranges;
  if (counted && counted->of_mappings == counts.of_mappings && counted->of_held == counts.of_held) {
    return *counted;
  }
  auto statistics = TRY(store.GetUserNamespaceStatistics());
  counts.free = statistics.free;
  counts.used = statistics.used;
  counts.refused = !statistics.refused_because.empty();
  counted = counts;
  return counts;
}

// What other gauges than those of StoreCounts say. `metrics` has what could be read before an
// error.
Result<void> FillGauges(const NodeStore& store, NodeStore::Impl& impl, Metrics& metrics) {
  {
    const ReaderPool::Lease snapshot = impl.Read();
    if (!snapshot) return impl.NoSnapshot(snapshot, "the records");
    auto records = TRY(impl.CountRecords(snapshot));
    metrics.records_by_handler = {{"", 0}};
    for (const auto& [handler, count] : records.by_handler) {
      if (handler.empty()) {
        metrics.records_by_handler.front().records = count;
      } else {
        metrics.records_by_handler.push_back({handler, count});
      }
    }
    metrics.closed_images = records.closed;
    if (records.oldest_proof != 0) metrics.oldest_credential = Timestamp{records.oldest_proof, 0};
    metrics.undated_credentials = records.undated;
    metrics.credentials_by_checker = records.by_checker;
  }
  auto trust = TRY(store.GetTrust());
  const std::vector<bool> in_force = internal::InForce(trust.journal);
  for (std::size_t i = 0; i < in_force.size(); ++i) {
    if (!in_force[i]) continue;
    const DegradedKind kind = trust.journal[i].kind;
    const auto number = static_cast<std::size_t>(kind);
    const bool known = number < kMaxTrustKinds && HasWord(kind);
    ++metrics.distrust_reasons[known ? number : 0];
  }
  if (impl.rules == Mode::kStrict) {
    auto ledger = TRY(store.ListLedger());
    metrics.presumed_images = static_cast<std::uint64_t>(std::count_if(
        ledger.begin(), ledger.end(),
        [](const PreloadedImage& entry) { return IsPresumed(entry) && !entry.absent_since; }));
    auto pulls = TRY(store.ListOpenPulls());
    for (const UnresolvedPull& pull : pulls) {
      const auto state = static_cast<std::size_t>(pull.state);
      const bool named = !pull.anything && state < metrics.open_pulls_by_state.size();
      ++metrics.open_pulls_by_state[named ? state : 0];
    }
  }
  if (impl.user_namespaces.enabled) {
    auto ranges = TRY(CountIdRanges(store, impl));
    metrics.user_namespaces = true;
    metrics.id_ranges_free = ranges.free;
    metrics.id_ranges_used = ranges.used;
    metrics.id_ranges_refused = ranges.refused;
  }
  return {};
}

void FillFromStatistics(const StoreCounts& statistics, const NodeStore::Impl& impl,
                        Metrics& metrics) {
  metrics.ondisk_pullintents = statistics.intents;
  metrics.ondisk_pulledrecords = statistics.records;
  metrics.nondefault_runtime_handler_images = statistics.nondefault_handler_records;
  metrics.preloaded_images = statistics.ledger_entries;
  if (impl.rules == Mode::kStrict) metrics.open_pulls = statistics.intents;
  metrics.inmemory_pullintents_usage_percent =
      kPercent * static_cast<double>(impl.in_flight.size()) / kMaxInFlightImages;
  if (statistics.map_bytes != 0) {
    metrics.inmemory_pulledrecords_usage_percent = kPercent *
                                                   static_cast<double>(statistics.used_bytes) /
                                                   static_cast<double>(statistics.map_bytes);
  }
  metrics.schema_version = statistics.schema_version;
  metrics.commit_sequence = statistics.commit_sequence;
  metrics.quarantine_entries = statistics.quarantine_entries;
  metrics.revocations = statistics.revocations;
  metrics.distrustful = statistics.distrustful;
  metrics.id_mappings = statistics.id_mappings;
  metrics.held_pods = statistics.held_pods;
  metrics.map_bytes = statistics.map_bytes;
  metrics.used_bytes = statistics.used_bytes;
  metrics.readers = statistics.readers;
  metrics.max_readers = statistics.max_readers;
}

}  // namespace

StoreCounters NodeStore::Impl::CountersNow() const {
  StoreCounters now;
  AddDecisions(readers.SumCounters(), now);
  AddRequests(ensure_requests, now.ensure_image_requests);
  if (committer) now.commit_failures = committer->failures();
  now.write_back_failures = write_back_counts.failures.load(std::memory_order_relaxed);
  now.write_backs_dropped = write_back_counts.dropped.load(std::memory_order_relaxed);
  now.id_range_failures = id_range_failures.load(std::memory_order_relaxed);
  pull_counts.AddTo(now);
  return now;
}

OpeningSummary NodeStore::Impl::SummaryOfOpening() const {
  OpeningSummary summary;
  summary.at = clock();
  summary.damage = report.findings.size();
  summary.warnings = report.warnings.size();
  summary.modes_mended = report.mended.size();
  summary.import_problems = report.import.problems.size();
  summary.id_range_problems = report.user_namespaces.problems.size();
  summary.gap_closed = report.gap_closed;
  summary.created = report.created;
  summary.rebuilt = report.set_aside;
  summary.commit_undone = report.commit_undone;
  summary.witness_made = report.witness_made;
  summary.clock_was_ahead = !report.clock_was_ahead.empty();
  summary.after_gap = report.after_gap;
  return summary;
}

Metrics NodeStore::GetMetrics() const {
  Metrics metrics;
  const StoreCounters counters = impl_->CountersNow();
  metrics.mustpull_checks = counters.mustpull_checks;
  metrics.ensure_image_requests = counters.ensure_image_requests;
  metrics.live_owner = impl_->is_owner();
  if (metrics.live_owner) {
    metrics.counters = counters;
    metrics.last_opening = impl_->last_opening;
  }
  if (impl_->trace) {
    metrics.writes_trace = true;
    metrics.trace_events = impl_->trace->written();
    metrics.trace_events_dropped = impl_->trace->dropped();
  }
  const auto filled = Guarded([&]() -> Result<void> {
    auto statistics = TRY(GetStatistics());
    FillFromStatistics(statistics, *impl_, metrics);
    return FillGauges(*this, *impl_, metrics);
  });
  metrics.readable = filled.has_value();
  return metrics;
}

}  // namespace waybill
