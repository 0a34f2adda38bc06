// The reports of a store, member by member.

#include <cstring>

#include "bindings/c/convert.h"

namespace waybill::c {

waybill_observe_report ToC(const ObserveReport& report, Memory& memory) {
  const auto judged = [](const JudgedImage& from, Memory& into) {
    return waybill_judged_image{Copy(from.image_ref, into), Copy(from.runtime_handler, into),
                                Copy(from.name, into), from.preloaded, Copy(from.because, into)};
  };
  return {.listed = report.listed,
          .repeated = report.repeated,
          .not_names = report.not_names,
          .known = report.known,
          .preloaded = report.preloaded,
          .closed = report.closed,
          .left = report.left,
          .united = report.united,
          .pulls_settled = report.pulls_settled,
          .records_removed = report.records_removed,
          .preloaded_removed = report.preloaded_removed,
          .judged = CopyEach<waybill_judged_image>(report.judged, memory, judged),
          .judged_count = report.judged.size(),
          .shared_digests = CopyStrings(report.shared_digests, memory),
          .not_judged_because = Copy(report.not_judged_because, memory)};
}

waybill_migration_report ToC(const MigrationReport& report, Memory& memory) {
  const auto step = [](const MigrationStep& from, Memory& into) {
    return waybill_migration_step{from.from, from.to, Copy(from.name, into), from.values_written};
  };
  return {.from = report.from,
          .to = report.to,
          .steps = CopyEach<waybill_migration_step>(report.steps, memory, step),
          .step_count = report.steps.size(),
          .backup = Copy(report.backup, memory),
          .losses = CopyStrings(report.losses, memory)};
}

waybill_runtimes_report ToC(const RuntimesReport& report, Memory& memory) {
  return {.added = CopyStrings(report.added, memory),
          .vanished = CopyStrings(report.vanished, memory),
          .changed = CopyStrings(report.changed, memory),
          .records_to_verify = report.records_to_verify,
          .turned_on = report.turned_on,
          .records_collapsed = report.records_collapsed,
          .intents_collapsed = report.intents_collapsed};
}

waybill_collapse_report ToC(const CollapseReport& report, Memory& memory) {
  return {.records = report.records,
          .intents = report.intents,
          .records_to_verify = report.records_to_verify,
          .handlers = CopyStrings(report.handlers, memory)};
}

namespace {

waybill_import_report ToC(const ImportReport& report, Memory& memory) {
  return {.files_seen = report.files_seen,
          .unchanged = report.unchanged,
          .records = report.records,
          .intents = report.intents,
          .preloaded = report.preloaded,
          .known_refs = report.known_refs,
          .quarantined = report.quarantined,
          .skipped = report.skipped,
          .interrupted = report.interrupted,
          .newly_written = Copy(report.newly_written, memory),
          .problems = CopyStrings(report.problems, memory)};
}

waybill_user_namespace_report ToC(const UserNamespaceReport& report, Memory& memory) {
  return {.files_seen = report.files_seen,
          .unchanged = report.unchanged,
          .imported = report.imported,
          .held = report.held,
          .repaired_blocks = report.repaired_blocks,
          .problems = CopyStrings(report.problems, memory),
          .allocations = report.allocations,
          .held_pods = report.held_pods,
          .outside_pool = report.outside_pool,
          .other_length = report.other_length,
          .off_pool = CopyStrings(report.off_pool, memory),
          .refused_because = Copy(report.refused_because, memory)};
}

template <typename T>
auto ToCIfAny(const std::optional<T>& report, Memory& memory) -> const
    decltype(c::ToC(*report, memory))* {
  return report ? CopyOne(c::ToC(*report, memory), memory) : nullptr;
}

}  // namespace

static_assert(WAYBILL_EXPLAINED_SERVICE_ACCOUNT ==
              static_cast<int>(ExplainedCredential::Kind::kServiceAccount));
static_assert(WAYBILL_STANDING_FORGOTTEN == static_cast<int>(CredentialStanding::kForgotten));

waybill_explanation ToC(const Explanation& explanation, Memory& memory) {
  const auto credential = [](const ExplainedCredential& from, Memory& into) {
    return waybill_explained_credential{.image_name = Copy(from.image_name, into),
                                        .kind = static_cast<std::int32_t>(from.kind),
                                        .who = c::ToC(from.who, into),
                                        .proof = c::ToC(from.proof, into),
                                        .standing = static_cast<std::int32_t>(from.standing)};
  };
  return {.ledger_entry = ToCIfAny(explanation.ledger_entry, memory),
          .recorded = explanation.recorded,
          .closed_because = Copy(explanation.closed_because, memory),
          .pulls = ListOf<waybill_open_pulls, waybill_open_pull>(explanation.pulls, memory),
          .in_quarantine = explanation.in_quarantine,
          .distrustful = explanation.distrustful,
          .text = Copy(explanation.text, memory),
          .hint = Copy(explanation.hint, memory),
          .record = ToCIfAny(explanation.record, memory),
          .credentials =
              CopyEach<waybill_explained_credential>(explanation.credentials, memory, credential),
          .credential_count = explanation.credentials.size(),
          .image_names = CopyStrings(explanation.image_names, memory),
          .unreadable = explanation.unreadable,
          .spellings = CopyStrings(explanation.spellings, memory),
          .other_handlers = CopyStrings(explanation.other_handlers, memory),
          .quarantine = ListOf<waybill_quarantine_entries, waybill_quarantine_entry>(
              explanation.quarantine, memory)};
}

waybill_recovery_report ToC(const RecoveryReport& report, Memory& memory) {
  return {.created = report.created,
          .set_aside = report.set_aside,
          .set_aside_path = Copy(report.set_aside_path, memory),
          .removed_paths = CopyStrings(report.removed_paths, memory),
          .records_carried = report.records_carried,
          .records_without_credentials = report.records_without_credentials,
          .intents_carried = report.intents_carried,
          .witness_made = report.witness_made,
          .witness_in_store = report.witness_in_store,
          .findings = CopyStrings(report.findings, memory),
          .mended = CopyStrings(report.mended, memory),
          .warnings = CopyStrings(report.warnings, memory),
          .distrustful = report.distrustful,
          .distrust_reason = Copy(report.distrust_reason, memory),
          .migration = ToCIfAny(report.migration, memory),
          .runtimes = ToCIfAny(report.runtimes, memory),
          .import = CopyOne(ToC(report.import, memory), memory),
          .user_namespaces = CopyOne(ToC(report.user_namespaces, memory), memory),
          .after_gap = report.after_gap,
          .gap_reason = Copy(report.gap_reason, memory),
          .gap_closed = report.gap_closed,
          .gap_images = CopyStrings(report.gap_images, memory),
          .intents_found = report.intents_found,
          .intents_replayed = report.intents_replayed,
          .intents_left = report.intents_left,
          .replayed = CopyStrings(report.replayed, memory),
          .replay_skipped = report.replay_skipped,
          .readers_cleared = report.readers_cleared,
          .records = report.records,
          .quarantine_entries = report.quarantine_entries,
          .commit_sequence = report.commit_sequence,
          .clock_was_ahead = Copy(report.clock_was_ahead, memory),
          .times_mended = report.times_mended,
          .observed = ToCIfAny(report.observed, memory),
          .first_start = report.first_start,
          .commit_undone = report.commit_undone};
}

waybill_prune_report ToC(const PruneReport& report, Memory&) {
  return {.examined = report.examined,
          .removed = report.removed,
          .kept_in_list = report.kept_in_list,
          .kept_newer = report.kept_newer,
          .kept_without_credentials = report.kept_without_credentials,
          .preloaded_removed = report.preloaded_removed};
}

waybill_user_namespace_cleanup_report ToC(const UserNamespaceCleanupReport& report,
                                          Memory& memory) {
  return {.examined = report.examined,
          .released = report.released,
          .kept_in_lists = report.kept_in_lists,
          .kept_newer = report.kept_newer,
          .released_pods = CopyStrings(report.released_pods, memory)};
}

waybill_user_namespace_statistics ToC(const UserNamespaceStatistics& statistics, Memory& memory) {
  return {.enabled = statistics.enabled,
          .pool = c::ToC(statistics.pool),
          .ranges = statistics.ranges,
          .used = statistics.used,
          .free = statistics.free,
          .largest_free_run = statistics.largest_free_run,
          .allocations = statistics.allocations,
          .outside_pool = statistics.outside_pool,
          .other_length = statistics.other_length,
          .held_pods = statistics.held_pods,
          .refused_because = Copy(statistics.refused_because, memory)};
}

waybill_statistics ToC(const Statistics& statistics, Memory& memory) {
  return {.store_uuid = Copy(statistics.store_uuid, memory),
          .schema_version = statistics.schema_version,
          .commit_sequence = statistics.commit_sequence,
          .records = statistics.records,
          .nondefault_handler_records = statistics.nondefault_handler_records,
          .runtime_handlers = statistics.runtime_handlers,
          .intents = statistics.intents,
          .quarantine_entries = statistics.quarantine_entries,
          .preloaded_records = statistics.preloaded_records,
          .imported_files = statistics.imported_files,
          .ledger_entries = statistics.ledger_entries,
          .spellings = statistics.spellings,
          .id_mappings = statistics.id_mappings,
          .held_pods = statistics.held_pods,
          .distrustful = statistics.distrustful,
          .map_bytes = statistics.map_bytes,
          .used_bytes = statistics.used_bytes,
          .readers = statistics.readers,
          .max_readers = statistics.max_readers,
          .revocations = statistics.revocations};
}

namespace {

// Of the same shape, which the sizes prove.
template <typename From, typename To>
void CopyNumbers(const From& from, To& to) {
  static_assert(sizeof(to) == sizeof(from));
  std::memcpy(&to, &from, sizeof(to));
}

waybill_store_counters ToC(const StoreCounters& counters, Memory&) {
  waybill_store_counters to{};
  CopyNumbers(counters.decisions, to.decisions);
  CopyNumbers(counters.mustpull_checks, to.mustpull_checks);
  CopyNumbers(counters.ensure_image_requests, to.ensure_image_requests);
  to.commit_failures = counters.commit_failures;
  to.write_back_failures = counters.write_back_failures;
  to.write_backs_dropped = counters.write_backs_dropped;
  to.id_range_failures = counters.id_range_failures;
  to.reverification_ratio = counters.ReverificationRatio().value_or(-1);
  return to;
}

waybill_opening_summary ToC(const OpeningSummary& opening, Memory&) {
  return {.at = c::ToC(opening.at),
          .damage = opening.damage,
          .warnings = opening.warnings,
          .modes_mended = opening.modes_mended,
          .import_problems = opening.import_problems,
          .id_range_problems = opening.id_range_problems,
          .gap_closed = opening.gap_closed,
          .created = opening.created,
          .rebuilt = opening.rebuilt,
          .commit_undone = opening.commit_undone,
          .witness_made = opening.witness_made,
          .clock_was_ahead = opening.clock_was_ahead,
          .after_gap = opening.after_gap};
}

}  // namespace

waybill_metrics ToC(const Metrics& metrics, Memory& memory) {
  const auto handler = [](const HandlerRecords& from, Memory& into) {
    return waybill_handler_records{Copy(from.runtime_handler, into), from.records};
  };
  waybill_metrics to{};
  CopyNumbers(metrics.mustpull_checks, to.mustpull_checks);
  CopyNumbers(metrics.ensure_image_requests, to.ensure_image_requests);
  to.ondisk_pullintents = metrics.ondisk_pullintents;
  to.ondisk_pulledrecords = metrics.ondisk_pulledrecords;
  to.inmemory_pullintents_usage_percent = metrics.inmemory_pullintents_usage_percent;
  to.inmemory_pulledrecords_usage_percent = metrics.inmemory_pulledrecords_usage_percent;
  to.nondefault_runtime_handler_images = metrics.nondefault_runtime_handler_images;
  to.preloaded_images = metrics.preloaded_images;
  to.presumed_images = metrics.presumed_images;
  to.open_pulls = metrics.open_pulls;
  to.live_owner = metrics.live_owner;
  to.readable = metrics.readable;
  to.distrustful = metrics.distrustful;
  to.user_namespaces = metrics.user_namespaces;
  to.id_ranges_refused = metrics.id_ranges_refused;
  to.schema_version = metrics.schema_version;
  to.commit_sequence = metrics.commit_sequence;
  to.records_by_handler =
      CopyEach<waybill_handler_records>(metrics.records_by_handler, memory, handler);
  to.records_by_handler_count = metrics.records_by_handler.size();
  to.closed_images = metrics.closed_images;
  to.quarantine_entries = metrics.quarantine_entries;
  CopyNumbers(metrics.distrust_reasons, to.distrust_reasons);
  CopyNumbers(metrics.open_pulls_by_state, to.open_pulls_by_state);
  to.id_mappings = metrics.id_mappings;
  to.held_pods = metrics.held_pods;
  to.id_ranges_free = metrics.id_ranges_free;
  to.id_ranges_used = metrics.id_ranges_used;
  to.map_bytes = metrics.map_bytes;
  to.used_bytes = metrics.used_bytes;
  to.readers = metrics.readers;
  to.max_readers = metrics.max_readers;
  if (metrics.oldest_credential) {
    to.oldest_credential = CopyOne(c::ToC(*metrics.oldest_credential), memory);
  }
  to.undated_credentials = metrics.undated_credentials;
  to.revocations = metrics.revocations;
  if (metrics.counters) to.counters = CopyOne(ToC(*metrics.counters, memory), memory);
  if (metrics.last_opening) to.last_opening = CopyOne(ToC(*metrics.last_opening, memory), memory);
  return to;
}

waybill_verify_report ToC(const VerifyReport& report, Memory& memory) {
  return {.sound = report.sound,
          .pages = report.pages,
          .values = report.values,
          .findings = CopyStrings(report.findings, memory)};
}

static_assert(WAYBILL_TRUST_JOURNAL_FULL == static_cast<int>(TrustKind::kJournalFull));
static_assert(WAYBILL_TRUST_NOTE == static_cast<int>(TrustAction::kNote));

waybill_trust_state ToC(const TrustState& trust, Memory& memory) {
  const auto event = [](const TrustEvent& from, Memory& into) { return c::ToC(from, into); };
  return {.distrustful = trust.distrustful,
          .journal = CopyEach<waybill_trust_event>(trust.journal, memory, event),
          .journal_count = trust.journal.size()};
}

waybill_export_report ToC(const ExportReport& report, Memory& memory) {
  return {.records = report.records,
          .intents = report.intents,
          .preloaded = report.preloaded,
          .closed = report.closed,
          .made = report.made,
          .spellings = report.spellings,
          .without_credentials = report.without_credentials,
          .id_mappings = report.id_mappings,
          .replaced_path = Copy(report.replaced_path, memory),
          .removed_paths = CopyStrings(report.removed_paths, memory)};
}

waybill_restore_report ToC(const RestoreReport& report, Memory& memory) {
  return {.schema_version = report.schema_version,
          .backup_commit_sequence = report.backup_commit_sequence,
          .records = report.records,
          .records_without_credentials = report.records_without_credentials,
          .id_mappings = report.id_mappings,
          .id_mappings_kept = report.id_mappings_kept,
          .id_mappings_held = report.id_mappings_held,
          .id_mappings_dropped = report.id_mappings_dropped,
          .id_ranges_lost = report.id_ranges_lost,
          .replaced_path = Copy(report.replaced_path, memory),
          .removed_paths = CopyStrings(report.removed_paths, memory),
          .distrust_reason = Copy(report.distrust_reason, memory),
          .streaming = report.streaming};
}

waybill_forget_report ToC(const ForgetReport& report, Memory&) {
  return {.records = report.records,
          .secrets = report.secrets,
          .service_accounts = report.service_accounts,
          .node_pods = report.node_pods,
          .equal_hashes = report.equal_hashes,
          .stored = report.stored,
          .untidied = report.untidied};
}

waybill_reconcile_report ToC(const ReconcileReport& report, Memory& memory) {
  return {.forgotten = CopyOne(ToC(report.forgotten, memory), memory),
          .known = report.known,
          .gone = report.gone,
          .newer = report.newer};
}

}  // namespace waybill::c
