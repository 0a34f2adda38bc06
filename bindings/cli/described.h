// Made by ./dev generate from the public headers.
// The members of values under their names in JSON: record_json.h.

#ifndef WAYBILL_BINDINGS_CLI_DESCRIBED_H_
#define WAYBILL_BINDINGS_CLI_DESCRIBED_H_

#include <string_view>

#include "waybill/waybill.h"

namespace waybill::cli {

inline std::string_view NameOf(DegradedKind value) { return DegradedKindName(value); }
inline std::string_view NameOf(DegradedAction value) { return DegradedActionName(value); }
inline std::string_view NameOf(PodQuarantineKind value) { return PodQuarantineKindName(value); }
inline std::string_view NameOf(StreamingComponent value) { return StreamingComponentName(value); }
inline std::string_view NameOf(StreamingSeverity value) { return StreamingSeverityName(value); }

template <typename Show>
void EachMember(const MigrationStep& value, const Show& show) {
  show("from", value.from);
  show("to", value.to);
  show("name", value.name);
  show("valuesWritten", value.values_written);
}

template <typename Show>
void EachMember(const MigrationReport& value, const Show& show) {
  show("from", value.from);
  show("to", value.to);
  show("steps", value.steps);
  show("backup", value.backup);
  show("losses", value.losses);
}

template <typename Show>
void EachMember(const RuntimesReport& value, const Show& show) {
  show("added", value.added);
  show("vanished", value.vanished);
  show("changed", value.changed);
  show("recordsToVerify", value.records_to_verify);
  show("turnedOn", value.turned_on);
  show("recordsCollapsed", value.records_collapsed);
  show("intentsCollapsed", value.intents_collapsed);
}

template <typename Show>
void EachMember(const CollapseReport& value, const Show& show) {
  show("records", value.records);
  show("intents", value.intents);
  show("recordsToVerify", value.records_to_verify);
  show("handlers", value.handlers);
}

template <typename Show>
void EachMember(const ImportReport& value, const Show& show) {
  show("filesSeen", value.files_seen);
  show("unchanged", value.unchanged);
  show("records", value.records);
  show("intents", value.intents);
  show("preloaded", value.preloaded);
  show("knownRefs", value.known_refs);
  show("quarantined", value.quarantined);
  show("skipped", value.skipped);
  show("interrupted", value.interrupted);
  show("newlyWritten", value.newly_written);
  show("problems", value.problems);
}

template <typename Show>
void EachMember(const IdMappingReport& value, const Show& show) {
  show("filesSeen", value.files_seen);
  show("unchanged", value.unchanged);
  show("imported", value.imported);
  show("held", value.held);
  show("repairedBlocks", value.repaired_blocks);
  show("problems", value.problems);
  show("allocations", value.allocations);
  show("heldPods", value.held_pods);
  show("outsidePool", value.outside_pool);
  show("otherLength", value.other_length);
  show("offPool", value.off_pool);
  show("refusedBecause", value.refused_because);
}

template <typename Show>
void EachMember(const ClassifiedImage& value, const Show& show) {
  show("imageRef", value.image_ref);
  show("runtimeHandler", value.runtime_handler);
  show("name", value.name);
  show("preloaded", value.preloaded);
  show("because", value.because);
}

template <typename Show>
void EachMember(const ClassifyReport& value, const Show& show) {
  show("listed", value.listed);
  show("repeated", value.repeated);
  show("notNames", value.not_names);
  show("known", value.known);
  show("preloaded", value.preloaded);
  show("closed", value.closed);
  show("left", value.left);
  show("united", value.united);
  show("pullsSettled", value.pulls_settled);
  show("recordsRemoved", value.records_removed);
  show("preloadedRemoved", value.preloaded_removed);
  show("judged", value.judged);
  show("sharedDigests", value.shared_digests);
  show("notJudgedBecause", value.not_judged_because);
}

template <typename Show>
void EachMember(const ImagePreloadedRecord& value, const Show& show) {
  show("imageRef", value.image_ref);
  show("lastUpdatedTime", value.last_updated);
  show("observedImages", value.observed_images);
}

template <typename Show>
void EachMember(const QuarantinedFile& value, const Show& show) {
  show("kind", value.kind);
  show("sha256", value.sha256);
  show("source", value.source);
  show("reason", value.reason);
  show("since", value.since);
}

template <typename Show>
void EachMember(const DegradedEvent& value, const Show& show) {
  show("at", value.at);
  show("kind", value.kind);
  show("action", value.action);
  show("distrustful", value.distrustful);
  show("reason", value.reason);
}

template <typename Show>
void EachMember(const IdMapping& value, const Show& show) {
  show("hostId", value.host_id);
  show("containerId", value.container_id);
  show("length", value.length);
}

template <typename Show>
void EachMember(const HostIdRange& value, const Show& show) {
  show("first", value.first);
  show("length", value.length);
}

template <typename Show>
void EachMember(const QuarantinedPod& value, const Show& show) {
  show("podUid", value.pod_uid);
  show("ranges", value.ranges);
  show("source", value.source);
  show("reason", value.reason);
  show("since", value.since);
  show("kind", value.kind);
}

template <typename Show>
void EachMember(const PodMapping& value, const Show& show) {
  show("podUid", value.pod_uid);
  show("hostId", value.host_id);
  show("length", value.length);
  show("created", value.created);
  show("relation", value.relation);
}

template <typename Show>
void EachMember(const PruneReport& value, const Show& show) {
  show("examined", value.examined);
  show("removed", value.removed);
  show("keptInList", value.kept_in_list);
  show("keptNewer", value.kept_newer);
  show("keptWithoutCredentials", value.kept_without_credentials);
  show("preloadedRemoved", value.preloaded_removed);
}

template <typename Show>
void EachMember(const RevokeReport& value, const Show& show) {
  show("records", value.records);
  show("secrets", value.secrets);
  show("serviceAccounts", value.service_accounts);
  show("nodePods", value.node_pods);
  show("equalHashes", value.equal_hashes);
  show("stored", value.stored);
  show("untidied", value.untidied);
}

template <typename Show>
void EachMember(const CleanUpReport& value, const Show& show) {
  show("examined", value.examined);
  show("released", value.released);
  show("keptInLists", value.kept_in_lists);
  show("keptNewer", value.kept_newer);
  show("releasedPods", value.released_pods);
}

template <typename Show>
void EachMember(const StoreCounts& value, const Show& show) {
  show("storeUuid", value.store_uuid);
  show("schemaVersion", value.schema_version);
  show("commitSequence", value.commit_sequence);
  show("records", value.records);
  show("nondefaultHandlerRecords", value.nondefault_handler_records);
  show("runtimeHandlers", value.runtime_handlers);
  show("intents", value.intents);
  show("quarantineEntries", value.quarantine_entries);
  show("preloadedRecords", value.preloaded_records);
  show("importedFiles", value.imported_files);
  show("ledgerEntries", value.ledger_entries);
  show("spellings", value.spellings);
  show("idMappings", value.id_mappings);
  show("heldPods", value.held_pods);
  show("distrustful", value.distrustful);
  show("mapBytes", value.map_bytes);
  show("usedBytes", value.used_bytes);
  show("readers", value.readers);
  show("maxReaders", value.max_readers);
  show("revocations", value.revocations);
}

template <typename Show>
void EachMember(const VerifyReport& value, const Show& show) {
  show("sound", value.sound);
  show("pages", value.pages);
  show("values", value.values);
  show("findings", value.findings);
}

template <typename Show>
void EachMember(const RestoreReport& value, const Show& show) {
  show("schemaVersion", value.schema_version);
  show("backupCommitSequence", value.backup_commit_sequence);
  show("records", value.records);
  show("recordsWithoutCredentials", value.records_without_credentials);
  show("idMappings", value.id_mappings);
  show("idMappingsKept", value.id_mappings_kept);
  show("idMappingsHeld", value.id_mappings_held);
  show("idMappingsDropped", value.id_mappings_dropped);
  show("idRangesLost", value.id_ranges_lost);
  show("replacedPath", value.replaced_path);
  show("removedPaths", value.removed_paths);
  show("distrustReason", value.distrust_reason);
  show("streaming", value.streaming);
}

template <typename Show>
void EachMember(const PreloadedImage& value, const Show& show) {
  show("imageRef", value.image_ref);
  show("runtimeHandler", value.runtime_handler);
  show("names", value.names);
  show("source", value.source);
  show("reason", value.reason);
  show("since", value.since);
  show("stamp", value.stamp);
  show("absentSince", value.absent_since);
}

template <typename Show>
void EachMember(const StreamFinding& value, const Show& show) {
  show("component", value.component);
  show("severity", value.severity);
  show("subject", value.subject);
  show("setting", value.setting);
  show("words", value.words);
  show("advice", value.advice);
  show("source", value.source);
}

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_DESCRIBED_H_
