// The values that go in and out, each described once: from this come their JSON, the answers of
// `-o json`, and the comparison with dev.waybill.varlink.

#ifndef WAYBILL_STORE_DOOR_VALUES_H_
#define WAYBILL_STORE_DOOR_VALUES_H_

#include <string>
#include <string_view>

#include "store/base/described.h"
#include "store/base/words.h"
#include "waybill/calls.h"

namespace waybill {

// --- Texts ---------------------------------------------------------------------------------------

std::string ToText(const Timestamp& time);  // RFC 3339
bool FromText(std::string_view text, Timestamp& time);
std::string ToText(const BootTime& time);  // opaque: nanoseconds, boot
bool FromText(std::string_view text, BootTime& time);
std::string ToText(const ListToken& token);  // opaque: commit, nanoseconds, store, boot
bool FromText(std::string_view text, ListToken& token);

// --- Settings ------------------------------------------------------------------------------------

WAYBILL_DESCRIBE(Policy, (),
                 (verification, allowlist, allowlist_preloaded_only, registry_only, any_proof));

void Describe(auto& v, const Pool& x) {
  WAYBILL_MAY_HAVE(x, enabled);
  WAYBILL_MAY_HAVE(x.ids, first_id, id_count, ids_per_pod, max_pods);
}

WAYBILL_DESCRIBE(Settings, (),
                 (mode, policy, max_age_seconds, pool, short_names_anywhere, map_bytes, trace_file,
                  flushes_twice));

// --- Images --------------------------------------------------------------------------------------

WAYBILL_DESCRIBE(Platform, (os, architecture), (variant, os_version, os_features));
WAYBILL_DESCRIBE(ListedImage, (id),
                 (repo_tags, repo_digests, runtime_handler, pinned, imported, bytes));

void Describe(auto& v, const Proof& x) {
  v.Optional("verified", x.proven);
  v.Optional("verifiedBy", x.checker);
  v.Optional("validUntil", x.good_until);
  WAYBILL_MAY_HAVE(x, pull_began);
}

constexpr std::string_view TypeNameOf(const ImagePullSecret*) { return "Secret"; }
void Describe(auto& v, const ImagePullSecret& x) {
  v("namespace", x.namespace_name);
  WAYBILL_NEEDS(x, name);
  WAYBILL_MAY_HAVE(x, uid);
  v.Optional("hash", x.credential_hash);
  WAYBILL_MAY_HAVE(x, proof);
}

constexpr std::string_view TypeNameOf(const ImagePullServiceAccount*) { return "ServiceAccount"; }
void Describe(auto& v, const ImagePullServiceAccount& x) {
  v("namespace", x.namespace_name);
  WAYBILL_NEEDS(x, name);
  WAYBILL_MAY_HAVE(x, uid, proof);
}

void Describe(auto& v, const CredentialName& x) {
  v("namespace", x.namespace_name);
  WAYBILL_NEEDS(x, name);
  WAYBILL_MAY_HAVE(x, uid);
}

constexpr std::string_view TypeNameOf(const ImagePullCredentials*) { return "PulledWith"; }
void Describe(auto& v, const ImagePullCredentials& x) {
  v.Optional("everyPod", x.node_pods_accessible);
  v.Optional("secrets", x.kubernetes_secrets);
  v.Optional("serviceAccounts", x.kubernetes_service_accounts);
  v.Optional("everyPodProof", x.node_pods_proof);
}

constexpr std::string_view TypeNameOf(const ImagePulledRecord*) { return "PulledRecord"; }
void Describe(auto& v, const ImagePulledRecord& x) {
  WAYBILL_NEEDS(x, image_ref);
  WAYBILL_MAY_HAVE(x, runtime_handler);
  v.Optional("updated", x.last_updated);
  v("credentials", x.credential_mapping);
  WAYBILL_MAY_HAVE(x, private_names, manifest_digest, platform, guest_platform, closed_because,
                   closed_by_list, closed_by_operator, absent_since);
  v.Optional("commit", x.stamp);
}

void Describe(auto& v, const PreloadedImage& x) {
  WAYBILL_NEEDS(x, image_ref);
  WAYBILL_MAY_HAVE(x, runtime_handler);
  WAYBILL_NEEDS(x, names, source);
  WAYBILL_MAY_HAVE(x, reason);
  WAYBILL_NEEDS(x, since, absent_since);
  v.Optional("commit", x.stamp);
}

void Describe(auto& v, const QuarantinedFile& x) {
  WAYBILL_NEEDS(x, kind, sha256);
  v("file", x.source);
  WAYBILL_NEEDS(x, reason, since);
}

void Describe(auto& v, const ExplainedCredential& x) {
  WAYBILL_NEEDS(x, image_name, kind);
  v.Optional("namespace", x.who.namespace_name);
  WAYBILL_MAY_HAVE(x.who, name, uid);
  WAYBILL_MAY_HAVE(x, proof);
  WAYBILL_NEEDS(x, standing);
}

void Describe(auto& v, const UnresolvedPull& x) {
  v("pull", x.id.value);
  v.Optional("anyImage", x.anything);
  WAYBILL_NEEDS(x, image);
  WAYBILL_MAY_HAVE(x, runtime_handler);
  WAYBILL_NEEDS(x, state);
  WAYBILL_MAY_HAVE(x, several);
  WAYBILL_NEEDS(x, began, ended);
  WAYBILL_MAY_HAVE(x, ended_at);
  v.Optional("commit", x.stamp);
}

void Describe(auto& v, const Revocation& x) {
  WAYBILL_NEEDS(x, kind);
  v.Optional("namespace", x.who.namespace_name);
  WAYBILL_MAY_HAVE(x.who, name, uid);
  WAYBILL_MAY_HAVE(x, image_ref, runtime_handler);
  v.Optional("hash", x.credential_hash);
  WAYBILL_MAY_HAVE(x, since, unfinished, commit);
}

// --- Runtimes and pods ---------------------------------------------------------------------------

WAYBILL_DESCRIBE(RuntimeHandler, (name), (is_default, user_namespaces, guest_platform));
WAYBILL_DESCRIBE(IdMapping, (host_id, container_id, length), ());
WAYBILL_DESCRIBE(PodMapping, (pod_uid, host_id, length, created, relation), ());
WAYBILL_DESCRIBE(HostIdRange, (first, length), ());

void Describe(auto& v, const QuarantinedPod& x) {
  WAYBILL_NEEDS(x, pod_uid, kind, ranges);
  v("file", x.source);
  WAYBILL_NEEDS(x, reason, since);
}

void Describe(auto& v, const PoolUse& x) {
  WAYBILL_NEEDS(x, enabled);
  WAYBILL_NEEDS(x.pool, first_id, id_count, ids_per_pod, max_pods);
  WAYBILL_NEEDS(x, ranges, used, free, largest_free_run);
  v("mappings", x.allocations);
  WAYBILL_NEEDS(x, outside_pool, other_length);
  v("quarantinedPods", x.held_pods);
  WAYBILL_NEEDS(x, refused_because);
}

// --- Reports -------------------------------------------------------------------------------------

void Describe(auto& v, const ClassifiedImage& x) {
  WAYBILL_NEEDS(x, image_ref);
  WAYBILL_MAY_HAVE(x, runtime_handler);
  WAYBILL_NEEDS(x, name);
  v("open", x.preloaded);
  WAYBILL_NEEDS(x, because);
}

void Describe(auto& v, const ClassifyReport& x) {
  WAYBILL_NEEDS(x, listed, repeated, not_names, known);
  v("opened", x.preloaded);
  WAYBILL_NEEDS(x, closed, left, united);
  v("pullsResolved", x.pulls_settled);
  v("recordsGone", x.records_removed);
  v("preloadedGone", x.preloaded_removed);
  v("classified", x.judged);
  WAYBILL_NEEDS(x, shared_digests);
  v("nothingBecause", x.not_judged_because);
}

void Describe(auto& v, const PruneReport& x) {
  WAYBILL_NEEDS(x, examined);
  v("deleted", x.removed);
  WAYBILL_NEEDS(x, kept_in_list, kept_newer, kept_without_credentials);
  v("preloadedDeleted", x.preloaded_removed);
}

void Describe(auto& v, const RevokeReport& x) {
  v("images", x.records);
  WAYBILL_NEEDS(x, secrets, service_accounts);
  v("everyPod", x.node_pods);
  WAYBILL_NEEDS(x, equal_hashes, stored);
}

void Describe(auto& v, const RevokeMissingReport& x) {
  WAYBILL_NEEDS(x, known);
  v("missing", x.gone);
  WAYBILL_NEEDS(x, newer);
  v("revoked", x.forgotten);
}

void Describe(auto& v, const RuntimesReport& x) {
  WAYBILL_NEEDS(x, added, vanished, changed);
  v("imagesToVerify", x.records_to_verify);
  WAYBILL_NEEDS(x, turned_on);
  v("recordsMoved", x.records_collapsed);
  v("pullsMoved", x.intents_collapsed);
}

WAYBILL_DESCRIBE(CleanUpReport, (examined, released, kept_in_lists, kept_newer, released_pods), ());

void Describe(auto& v, const DegradedEvent& x) {
  WAYBILL_NEEDS(x, at, kind, action);
  v("degraded", x.distrustful);
  WAYBILL_NEEDS(x, reason);
}

constexpr std::string_view TypeNameOf(const StoreCounts*) { return "Counts"; }
void Describe(auto& v, const StoreCounts& x) {
  WAYBILL_NEEDS(x, records);
  v("otherHandlerRecords", x.nondefault_handler_records);
  v("handlers", x.runtime_handlers);
  WAYBILL_NEEDS(x, intents);
  v("quarantinedFiles", x.quarantine_entries);
  v("observedPreloaded", x.preloaded_records);
  WAYBILL_NEEDS(x, kubelet_files);
  v("preloaded", x.ledger_entries);
  v("aliases", x.spellings);
  WAYBILL_NEEDS(x, id_mappings);
  v("quarantinedPods", x.held_pods);
  WAYBILL_NEEDS(x, revocations, map_bytes, used_bytes, readers, max_readers);
}

WAYBILL_DESCRIBE(VerifyReport, (sound, pages, values, findings), ());

void Describe(auto& v, const Backup& x) {
  WAYBILL_NEEDS(x, path, schema_version);
  v("commit", x.commit_sequence);
  WAYBILL_NEEDS(x, bytes);
}

WAYBILL_DESCRIBE(MigrationStep, (from, to, name, values_written), ());
WAYBILL_DESCRIBE(MigrationReport, (from, to, steps, backup, losses), ());

void Describe(auto& v, const RestoreReport& x) {
  WAYBILL_NEEDS(x, schema_version);
  v("backupCommit", x.backup_commit_sequence);
  WAYBILL_NEEDS(x, records, records_without_credentials, id_mappings, id_mappings_kept);
  v("idMappingsQuarantined", x.id_mappings_held);
  WAYBILL_NEEDS(x, id_mappings_dropped, id_ranges_lost);
  v("replaced", x.replaced_path);
  WAYBILL_NEEDS(x, removed_paths);
  v("degradedBecause", x.distrust_reason);
  v("streams", x.streaming);
}

void Describe(auto& v, const ExportReport& x) {
  WAYBILL_NEEDS(x, records, intents, preloaded, closed, made);
  v("aliases", x.spellings);
  WAYBILL_NEEDS(x, without_credentials, id_mappings);
  v("replaced", x.replaced_path);
  WAYBILL_NEEDS(x, removed_paths);
}

void Describe(auto& v, const ImportReport& x) {
  v("files", x.files_seen);
  WAYBILL_NEEDS(x, unchanged, records, intents, preloaded, known_refs, quarantined, skipped,
                interrupted, newly_written, problems);
}

void Describe(auto& v, const IdMappingReport& x) {
  v("files", x.files_seen);
  WAYBILL_NEEDS(x, unchanged, imported);
  v("quarantined", x.held);
  WAYBILL_NEEDS(x, problems);
  v("mappings", x.allocations);
  v("quarantinedPods", x.held_pods);
  WAYBILL_NEEDS(x, outside_pool, other_length, off_pool, refused_because);
}

constexpr std::string_view TypeNameOf(const OpeningReport*) { return "Opening"; }
void Describe(auto& v, const OpeningReport& x) {
  WAYBILL_NEEDS(x, created, first_start, commit_undone);
  v("rebuilt", x.set_aside);
  v("rebuiltFrom", x.set_aside_path);
  WAYBILL_NEEDS(x, removed_paths, records_carried, records_without_credentials);
  v("pullsCarried", x.intents_carried);
  v("lossMarkerMade", x.witness_made);
  v("lossMarkerInStore", x.witness_in_store);
  WAYBILL_NEEDS(x, findings, mended, warnings);
  v("degraded", x.distrustful);
  v("degradedBecause", x.distrust_reason);
  v("unrecorded", x.after_gap);
  v("unrecordedBecause", x.gap_reason);
  v("closed", x.gap_closed);
  v("closedImages", x.gap_images);
  v("pullsFound", x.intents_found);
  v("pullsReplayed", x.intents_replayed);
  v("pullsLeft", x.intents_left);
  WAYBILL_NEEDS(x, replayed, replay_skipped, readers_cleared, records);
  v("quarantinedFiles", x.quarantine_entries);
  v("commit", x.commit_sequence);
  WAYBILL_NEEDS(x, copy_of);
  v("imported", x.import);
  v("idMappings", x.user_namespaces);
  WAYBILL_NEEDS(x, migration, runtimes);
  v("classified", x.observed);
}

// --- Outside the store ---------------------------------------------------------------------------

WAYBILL_DESCRIBE(PullSource,
                 (host, serves_manifests, serves_layers, insecure, open, open_because, where), ());

void Describe(auto& v, const PullSources& x) {
  v("verifiedBy", x.checker);
  WAYBILL_NEEDS(x, registry, others, problems);
}

WAYBILL_DESCRIBE(ManifestDescriptor, (media_type, digest, size, platform), ());
WAYBILL_DESCRIBE(StreamFinding, (component, severity, subject, setting, words, advice, source), ());

void Describe(auto& v, const StreamPlan& x) {
  WAYBILL_NEEDS(x, outcome, proxy, follower);
  v("redirectCheck", x.check);
  v("execWebSockets", x.exec_websockets);
  v("portForwardWebSockets", x.port_forward_websockets);
  WAYBILL_NEEDS(x, skew, findings, notes);
}

void Describe(auto& v, const StreamRequest& x) {
  WAYBILL_NEEDS(x, kind);
  WAYBILL_MAY_HAVE(x, container_id, pod_sandbox_id, command);
  v.Optional("stdin", x.std_in);
  v.Optional("stdout", x.std_out);
  v.Optional("stderr", x.std_err);
  WAYBILL_MAY_HAVE(x, tty, ports);
}

WAYBILL_DESCRIBE(OpenStream, (id, kind, prepared, expires_in_ms), ());

constexpr std::string_view TypeNameOf(const StreamingReport*) { return "StreamsOpening"; }
void Describe(auto& v, const StreamingReport& x) {
  v("opening", x.recovery);
  WAYBILL_NEEDS(x, voided, void_reason, open);
}

}  // namespace waybill

#endif  // WAYBILL_STORE_DOOR_VALUES_H_
