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

void Describe(auto& v, const Policy& x) {
  v.Optional("verification", x.verification);
  v.Optional("allowlist", x.allowlist);
  v.Optional("allowlistPreloadedOnly", x.allowlist_preloaded_only);
  v.Optional("registryOnly", x.registry_only);
  v.Optional("anyProof", x.any_proof);
}

void Describe(auto& v, const Pool& x) {
  v.Optional("enabled", x.enabled);
  v.Optional("firstId", x.ids.first_id);
  v.Optional("idCount", x.ids.id_count);
  v.Optional("idsPerPod", x.ids.ids_per_pod);
  v.Optional("maxPods", x.ids.max_pods);
}

void Describe(auto& v, const Settings& x) {
  v.Optional("mode", x.mode);
  v.Optional("policy", x.policy);
  v.Optional("maxAgeSeconds", x.max_age_seconds);
  v.Optional("pool", x.pool);
  v.Optional("shortNamesAnywhere", x.short_names_anywhere);
  v.Optional("mapBytes", x.map_bytes);
  v.Optional("traceFile", x.trace_file);
  v.Optional("flushesTwice", x.flushes_twice);
}

// --- Images --------------------------------------------------------------------------------------

void Describe(auto& v, const Platform& x) {
  v("os", x.os);
  v("architecture", x.architecture);
  v.Optional("variant", x.variant);
  v.Optional("osVersion", x.os_version);
  v.Optional("osFeatures", x.os_features);
}

void Describe(auto& v, const ListedImage& x) {
  v("id", x.id);
  v.Optional("repoTags", x.repo_tags);
  v.Optional("repoDigests", x.repo_digests);
  v.Optional("runtimeHandler", x.runtime_handler);
  v.Optional("pinned", x.pinned);
  v.Optional("imported", x.imported);
  v.Optional("bytes", x.bytes);
}

void Describe(auto& v, const Proof& x) {
  v.Optional("verified", x.proven);
  v.Optional("verifiedBy", x.checker);
  v.Optional("validUntil", x.good_until);
  v.Optional("pullBegan", x.pull_began);
}

constexpr std::string_view TypeNameOf(const ImagePullSecret*) { return "Secret"; }
void Describe(auto& v, const ImagePullSecret& x) {
  v("namespace", x.namespace_name);
  v("name", x.name);
  v.Optional("uid", x.uid);
  v.Optional("hash", x.credential_hash);
  v.Optional("proof", x.proof);
}

constexpr std::string_view TypeNameOf(const ImagePullServiceAccount*) { return "ServiceAccount"; }
void Describe(auto& v, const ImagePullServiceAccount& x) {
  v("namespace", x.namespace_name);
  v("name", x.name);
  v.Optional("uid", x.uid);
  v.Optional("proof", x.proof);
}

void Describe(auto& v, const CredentialName& x) {
  v("namespace", x.namespace_name);
  v("name", x.name);
  v.Optional("uid", x.uid);
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
  v("imageRef", x.image_ref);
  v.Optional("runtimeHandler", x.runtime_handler);
  v.Optional("updated", x.last_updated);
  v("credentials", x.credential_mapping);
  v.Optional("privateNames", x.private_names);
  v.Optional("manifestDigest", x.manifest_digest);
  v.Optional("platform", x.platform);
  v.Optional("guestPlatform", x.guest_platform);
  v.Optional("closedBecause", x.closed_because);
  v.Optional("closedByList", x.closed_by_list);
  v.Optional("closedByOperator", x.closed_by_operator);
  v.Optional("absentSince", x.absent_since);
  v.Optional("commit", x.stamp);
}

void Describe(auto& v, const PreloadedImage& x) {
  v("imageRef", x.image_ref);
  v.Optional("runtimeHandler", x.runtime_handler);
  v("names", x.names);
  v("source", x.source);
  v.Optional("reason", x.reason);
  v("since", x.since);
  v.Optional("absentSince", x.absent_since);
  v.Optional("commit", x.stamp);
}

void Describe(auto& v, const QuarantinedFile& x) {
  v("kind", x.kind);
  v("sha256", x.sha256);
  v("file", x.source);
  v("reason", x.reason);
  v("since", x.since);
}

void Describe(auto& v, const ExplainedCredential& x) {
  v("imageName", x.image_name);
  v("kind", x.kind);
  v.Optional("namespace", x.who.namespace_name);
  v.Optional("name", x.who.name);
  v.Optional("uid", x.who.uid);
  v.Optional("proof", x.proof);
  v("standing", x.standing);
}

void Describe(auto& v, const UnresolvedPull& x) {
  v("pull", x.id.value);
  v.Optional("anyImage", x.anything);
  v("image", x.image);
  v.Optional("runtimeHandler", x.runtime_handler);
  v("state", x.state);
  v.Optional("several", x.several);
  v("began", x.began);
  v.Optional("ended", x.ended);
  v.Optional("endedAt", x.ended_at);
  v.Optional("commit", x.stamp);
}

void Describe(auto& v, const Revocation& x) {
  v("kind", x.kind);
  v.Optional("namespace", x.who.namespace_name);
  v.Optional("name", x.who.name);
  v.Optional("uid", x.who.uid);
  v.Optional("imageRef", x.image_ref);
  v.Optional("runtimeHandler", x.runtime_handler);
  v.Optional("hash", x.credential_hash);
  v.Optional("since", x.since);
  v.Optional("unfinished", x.unfinished);
  v.Optional("commit", x.commit);
}

// --- Runtimes and pods ---------------------------------------------------------------------------

void Describe(auto& v, const RuntimeHandler& x) {
  v("name", x.name);
  v.Optional("isDefault", x.is_default);
  v.Optional("userNamespaces", x.user_namespaces);
  v.Optional("guestPlatform", x.guest_platform);
}

void Describe(auto& v, const IdMapping& x) {
  v("hostId", x.host_id);
  v("containerId", x.container_id);
  v("length", x.length);
}

void Describe(auto& v, const PodMapping& x) {
  v("podUid", x.pod_uid);
  v("hostId", x.host_id);
  v("length", x.length);
  v("created", x.created);
  v("relation", x.relation);
}

void Describe(auto& v, const HostIdRange& x) {
  v("first", x.first);
  v("length", x.length);
}

void Describe(auto& v, const QuarantinedPod& x) {
  v("podUid", x.pod_uid);
  v("kind", x.kind);
  v("ranges", x.ranges);
  v("file", x.source);
  v("reason", x.reason);
  v("since", x.since);
}

void Describe(auto& v, const PoolUse& x) {
  v("enabled", x.enabled);
  v("firstId", x.pool.first_id);
  v("idCount", x.pool.id_count);
  v("idsPerPod", x.pool.ids_per_pod);
  v("maxPods", x.pool.max_pods);
  v("ranges", x.ranges);
  v("used", x.used);
  v("free", x.free);
  v("largestFreeRun", x.largest_free_run);
  v("mappings", x.allocations);
  v("outsidePool", x.outside_pool);
  v("otherLength", x.other_length);
  v("quarantinedPods", x.held_pods);
  v("refusedBecause", x.refused_because);
}

// --- Reports -------------------------------------------------------------------------------------

void Describe(auto& v, const ClassifiedImage& x) {
  v("imageRef", x.image_ref);
  v.Optional("runtimeHandler", x.runtime_handler);
  v("name", x.name);
  v("open", x.preloaded);
  v("because", x.because);
}

void Describe(auto& v, const ClassifyReport& x) {
  v("listed", x.listed);
  v("repeated", x.repeated);
  v("notNames", x.not_names);
  v("known", x.known);
  v("opened", x.preloaded);
  v("closed", x.closed);
  v("left", x.left);
  v("united", x.united);
  v("pullsResolved", x.pulls_settled);
  v("recordsGone", x.records_removed);
  v("preloadedGone", x.preloaded_removed);
  v("classified", x.judged);
  v("sharedDigests", x.shared_digests);
  v("nothingBecause", x.not_judged_because);
}

void Describe(auto& v, const PruneReport& x) {
  v("examined", x.examined);
  v("deleted", x.removed);
  v("keptInList", x.kept_in_list);
  v("keptNewer", x.kept_newer);
  v("keptWithoutCredentials", x.kept_without_credentials);
  v("preloadedDeleted", x.preloaded_removed);
}

void Describe(auto& v, const RevokeReport& x) {
  v("images", x.records);
  v("secrets", x.secrets);
  v("serviceAccounts", x.service_accounts);
  v("everyPod", x.node_pods);
  v("equalHashes", x.equal_hashes);
  v("stored", x.stored);
}

void Describe(auto& v, const RevokeMissingReport& x) {
  v("known", x.known);
  v("missing", x.gone);
  v("newer", x.newer);
  v("revoked", x.forgotten);
}

void Describe(auto& v, const RuntimesReport& x) {
  v("added", x.added);
  v("vanished", x.vanished);
  v("changed", x.changed);
  v("imagesToVerify", x.records_to_verify);
  v("turnedOn", x.turned_on);
  v("recordsMoved", x.records_collapsed);
  v("pullsMoved", x.intents_collapsed);
}

void Describe(auto& v, const CleanUpReport& x) {
  v("examined", x.examined);
  v("released", x.released);
  v("keptInLists", x.kept_in_lists);
  v("keptNewer", x.kept_newer);
  v("releasedPods", x.released_pods);
}

void Describe(auto& v, const DegradedEvent& x) {
  v("at", x.at);
  v("kind", x.kind);
  v("action", x.action);
  v("degraded", x.distrustful);
  v("reason", x.reason);
}

constexpr std::string_view TypeNameOf(const StoreCounts*) { return "Counts"; }
void Describe(auto& v, const StoreCounts& x) {
  v("records", x.records);
  v("otherHandlerRecords", x.nondefault_handler_records);
  v("handlers", x.runtime_handlers);
  v("intents", x.intents);
  v("quarantinedFiles", x.quarantine_entries);
  v("observedPreloaded", x.preloaded_records);
  v("kubeletFiles", x.kubelet_files);
  v("preloaded", x.ledger_entries);
  v("aliases", x.spellings);
  v("idMappings", x.id_mappings);
  v("quarantinedPods", x.held_pods);
  v("revocations", x.revocations);
  v("mapBytes", x.map_bytes);
  v("usedBytes", x.used_bytes);
  v("readers", x.readers);
  v("maxReaders", x.max_readers);
}

void Describe(auto& v, const VerifyReport& x) {
  v("sound", x.sound);
  v("pages", x.pages);
  v("values", x.values);
  v("findings", x.findings);
}

void Describe(auto& v, const Backup& x) {
  v("path", x.path);
  v("schemaVersion", x.schema_version);
  v("commit", x.commit_sequence);
  v("bytes", x.bytes);
}

void Describe(auto& v, const MigrationStep& x) {
  v("from", x.from);
  v("to", x.to);
  v("name", x.name);
  v("valuesWritten", x.values_written);
}

void Describe(auto& v, const MigrationReport& x) {
  v("from", x.from);
  v("to", x.to);
  v("steps", x.steps);
  v("backup", x.backup);
  v("losses", x.losses);
}

void Describe(auto& v, const RestoreReport& x) {
  v("schemaVersion", x.schema_version);
  v("backupCommit", x.backup_commit_sequence);
  v("records", x.records);
  v("recordsWithoutCredentials", x.records_without_credentials);
  v("idMappings", x.id_mappings);
  v("idMappingsKept", x.id_mappings_kept);
  v("idMappingsQuarantined", x.id_mappings_held);
  v("idMappingsDropped", x.id_mappings_dropped);
  v("idRangesLost", x.id_ranges_lost);
  v("replaced", x.replaced_path);
  v("removedPaths", x.removed_paths);
  v("degradedBecause", x.distrust_reason);
  v("streams", x.streaming);
}

void Describe(auto& v, const ExportReport& x) {
  v("records", x.records);
  v("intents", x.intents);
  v("preloaded", x.preloaded);
  v("closed", x.closed);
  v("made", x.made);
  v("aliases", x.spellings);
  v("withoutCredentials", x.without_credentials);
  v("idMappings", x.id_mappings);
  v("replaced", x.replaced_path);
  v("removedPaths", x.removed_paths);
}

void Describe(auto& v, const ImportReport& x) {
  v("files", x.files_seen);
  v("unchanged", x.unchanged);
  v("records", x.records);
  v("intents", x.intents);
  v("preloaded", x.preloaded);
  v("knownRefs", x.known_refs);
  v("quarantined", x.quarantined);
  v("skipped", x.skipped);
  v("interrupted", x.interrupted);
  v("newlyWritten", x.newly_written);
  v("problems", x.problems);
}

void Describe(auto& v, const IdMappingReport& x) {
  v("files", x.files_seen);
  v("unchanged", x.unchanged);
  v("imported", x.imported);
  v("quarantined", x.held);
  v("problems", x.problems);
  v("mappings", x.allocations);
  v("quarantinedPods", x.held_pods);
  v("outsidePool", x.outside_pool);
  v("otherLength", x.other_length);
  v("offPool", x.off_pool);
  v("refusedBecause", x.refused_because);
}

constexpr std::string_view TypeNameOf(const OpeningReport*) { return "Opening"; }
void Describe(auto& v, const OpeningReport& x) {
  v("created", x.created);
  v("firstStart", x.first_start);
  v("commitUndone", x.commit_undone);
  v("rebuilt", x.set_aside);
  v("rebuiltFrom", x.set_aside_path);
  v("removedPaths", x.removed_paths);
  v("recordsCarried", x.records_carried);
  v("recordsWithoutCredentials", x.records_without_credentials);
  v("pullsCarried", x.intents_carried);
  v("lossMarkerMade", x.witness_made);
  v("lossMarkerInStore", x.witness_in_store);
  v("findings", x.findings);
  v("mended", x.mended);
  v("warnings", x.warnings);
  v("degraded", x.distrustful);
  v("degradedBecause", x.distrust_reason);
  v("unrecorded", x.after_gap);
  v("unrecordedBecause", x.gap_reason);
  v("closed", x.gap_closed);
  v("closedImages", x.gap_images);
  v("pullsFound", x.intents_found);
  v("pullsReplayed", x.intents_replayed);
  v("pullsLeft", x.intents_left);
  v("replayed", x.replayed);
  v("replaySkipped", x.replay_skipped);
  v("readersCleared", x.readers_cleared);
  v("records", x.records);
  v("quarantinedFiles", x.quarantine_entries);
  v("commit", x.commit_sequence);
  v("copyOf", x.copy_of);
  v("imported", x.import);
  v("idMappings", x.user_namespaces);
  v("migration", x.migration);
  v("runtimes", x.runtimes);
  v("classified", x.observed);
}

// --- Outside the store ---------------------------------------------------------------------------

void Describe(auto& v, const PullSource& x) {
  v("host", x.host);
  v("servesManifests", x.serves_manifests);
  v("servesLayers", x.serves_layers);
  v("insecure", x.insecure);
  v("open", x.open);
  v("openBecause", x.open_because);
  v("where", x.where);
}

void Describe(auto& v, const PullSources& x) {
  v("verifiedBy", x.checker);
  v("registry", x.registry);
  v("others", x.others);
  v("problems", x.problems);
}

void Describe(auto& v, const ManifestDescriptor& x) {
  v("mediaType", x.media_type);
  v("digest", x.digest);
  v("size", x.size);
  v("platform", x.platform);
}

void Describe(auto& v, const StreamFinding& x) {
  v("component", x.component);
  v("severity", x.severity);
  v("subject", x.subject);
  v("setting", x.setting);
  v("words", x.words);
  v("advice", x.advice);
  v("source", x.source);
}

void Describe(auto& v, const StreamPlan& x) {
  v("outcome", x.outcome);
  v("proxy", x.proxy);
  v("follower", x.follower);
  v("redirectCheck", x.check);
  v("execWebSockets", x.exec_websockets);
  v("portForwardWebSockets", x.port_forward_websockets);
  v("skew", x.skew);
  v("findings", x.findings);
  v("notes", x.notes);
}

void Describe(auto& v, const StreamRequest& x) {
  v("kind", x.kind);
  v.Optional("containerId", x.container_id);
  v.Optional("podSandboxId", x.pod_sandbox_id);
  v.Optional("command", x.command);
  v.Optional("stdin", x.std_in);
  v.Optional("stdout", x.std_out);
  v.Optional("stderr", x.std_err);
  v.Optional("tty", x.tty);
  v.Optional("ports", x.ports);
}

void Describe(auto& v, const OpenStream& x) {
  v("id", x.id);
  v("kind", x.kind);
  v("prepared", x.prepared);
  v("expiresInMs", x.expires_in_ms);
}

constexpr std::string_view TypeNameOf(const StreamingReport*) { return "StreamsOpening"; }
void Describe(auto& v, const StreamingReport& x) {
  v("opening", x.recovery);
  v("voided", x.voided);
  v("voidReason", x.void_reason);
  v("open", x.open);
}

}  // namespace waybill

#endif  // WAYBILL_STORE_DOOR_VALUES_H_
