// Values of the API between C++ and C. Made by ./dev generate from the public headers.

#include "bindings/c/described.h"

#include <cstring>

#include "bindings/c/convert.h"

namespace waybill::c {

waybill_platform ToC(const Platform& from, Memory& memory) {
  waybill_platform to{};
  to.architecture = Copy(from.architecture, memory);
  to.os = Copy(from.os, memory);
  to.os_version = Copy(from.os_version, memory);
  to.os_features = CopyStrings(from.os_features, memory);
  to.variant = Copy(from.variant, memory);
  return to;
}

Platform FromC(const waybill_platform& from, Arguments& arguments) {
  Platform to;
  to.architecture = arguments.String(from.architecture, "architecture");
  to.os = arguments.String(from.os, "os");
  to.os_version = arguments.String(from.os_version, "os_version");
  to.os_features = arguments.Strings(from.os_features, "os_features");
  to.variant = arguments.String(from.variant, "variant");
  return to;
}

waybill_credential_name ToC(const CredentialName& from, Memory& memory) {
  waybill_credential_name to{};
  to.namespace_name = Copy(from.namespace_name, memory);
  to.name = Copy(from.name, memory);
  to.uid = Copy(from.uid, memory);
  return to;
}

CredentialName FromC(const waybill_credential_name& from, Arguments& arguments) {
  CredentialName to;
  to.namespace_name = arguments.String(from.namespace_name, "namespace_name");
  to.name = arguments.String(from.name, "name");
  to.uid = arguments.String(from.uid, "uid");
  return to;
}

waybill_proof ToC(const Proof& from, Memory& memory) {
  waybill_proof to{};
  to.proven = ToCIfAny(from.proven, memory);
  to.pull_began = from.pull_began;
  to.checker = static_cast<std::int32_t>(from.checker);
  to.good_until = ToCIfAny(from.good_until, memory);
  return to;
}

waybill_image_pull_intent ToC(const ImagePullIntent& from, Memory& memory) {
  waybill_image_pull_intent to{};
  to.image = Copy(from.image, memory);
  to.runtime_handler = Copy(from.runtime_handler, memory);
  return to;
}

ImagePullIntent FromC(const waybill_image_pull_intent& from, Arguments& arguments) {
  ImagePullIntent to;
  to.image = arguments.String(from.image, "image");
  to.runtime_handler = arguments.String(from.runtime_handler, "runtime_handler");
  return to;
}

waybill_image_preloaded_record ToC(const ImagePreloadedRecord& from, Memory& memory) {
  waybill_image_preloaded_record to{};
  to.image_ref = Copy(from.image_ref, memory);
  to.last_updated = ToCIfAny(from.last_updated, memory);
  to.observed_images = CopyStrings(from.observed_images, memory);
  return to;
}

ImagePreloadedRecord FromC(const waybill_image_preloaded_record& from, Arguments& arguments) {
  ImagePreloadedRecord to;
  to.image_ref = arguments.String(from.image_ref, "image_ref");
  to.last_updated = FromCIfAny(from.last_updated, arguments);
  to.observed_images = arguments.Strings(from.observed_images, "observed_images");
  return to;
}

waybill_image_on_node ToC(const ListedImage& from, Memory& memory) {
  waybill_image_on_node to{};
  to.id = Copy(from.id, memory);
  to.repo_tags = CopyStrings(from.repo_tags, memory);
  to.repo_digests = CopyStrings(from.repo_digests, memory);
  to.runtime_handler = Copy(from.runtime_handler, memory);
  to.pinned = from.pinned;
  return to;
}

ListedImage FromC(const waybill_image_on_node& from, Arguments& arguments) {
  ListedImage to;
  to.id = arguments.String(from.id, "id");
  to.repo_tags = arguments.Strings(from.repo_tags, "repo_tags");
  to.repo_digests = arguments.Strings(from.repo_digests, "repo_digests");
  to.runtime_handler = arguments.String(from.runtime_handler, "runtime_handler");
  to.pinned = from.pinned;
  return to;
}

PulledManifest FromC(const waybill_pulled_manifest& from, Arguments& arguments) {
  PulledManifest to;
  to.digest = arguments.String(from.digest, "digest");
  to.platform = FromC(from.platform, arguments);
  return to;
}

waybill_open_pull ToC(const UnresolvedPull& from, Memory& memory) {
  waybill_open_pull to{};
  to.id = from.id.value;
  to.anything = from.anything;
  to.several = from.several;
  to.image = Copy(from.image, memory);
  to.runtime_handler = Copy(from.runtime_handler, memory);
  to.state = static_cast<std::int32_t>(from.state);
  to.began = ToC(from.began, memory);
  to.ended = ToCIfAny(from.ended, memory);
  to.ended_at = ToC(from.ended_at, memory);
  to.stamp = from.stamp;
  return to;
}

UnresolvedPull FromC(const waybill_open_pull& from, Arguments& arguments) {
  UnresolvedPull to;
  to.id = PullId{from.id};
  to.anything = from.anything;
  to.several = from.several;
  to.image = arguments.String(from.image, "image");
  to.runtime_handler = arguments.String(from.runtime_handler, "runtime_handler");
  to.state = arguments.OneOf(from.state, PullState::kRunning, PullState::kDropped, "state");
  to.began = FromC(from.began, arguments);
  to.ended = FromCIfAny(from.ended, arguments);
  to.ended_at = FromC(from.ended_at, arguments);
  to.stamp = from.stamp;
  return to;
}

waybill_ledger_entry ToC(const PreloadedImage& from, Memory& memory) {
  waybill_ledger_entry to{};
  to.image_ref = Copy(from.image_ref, memory);
  to.runtime_handler = Copy(from.runtime_handler, memory);
  to.names = CopyStrings(from.names, memory);
  to.source = Copy(from.source, memory);
  to.reason = Copy(from.reason, memory);
  to.since = ToC(from.since, memory);
  to.stamp = from.stamp;
  to.absent_since = ToCIfAny(from.absent_since, memory);
  return to;
}

waybill_quarantine_entry ToC(const QuarantinedFile& from, Memory& memory) {
  waybill_quarantine_entry to{};
  to.kind = static_cast<std::int32_t>(from.kind);
  to.sha256 = Copy(from.sha256, memory);
  to.source = Copy(from.source, memory);
  to.reason = Copy(from.reason, memory);
  to.since = ToC(from.since, memory);
  return to;
}

waybill_runtime_handler ToC(const RuntimeHandler& from, Memory& memory) {
  waybill_runtime_handler to{};
  to.name = Copy(from.name, memory);
  to.is_default = from.is_default;
  to.user_namespaces = from.user_namespaces;
  to.guest_platform = ToCIfAny(from.guest_platform, memory);
  return to;
}

RuntimeHandler FromC(const waybill_runtime_handler& from, Arguments& arguments) {
  RuntimeHandler to;
  to.name = arguments.String(from.name, "name");
  to.is_default = from.is_default;
  to.user_namespaces = from.user_namespaces;
  to.guest_platform = FromCIfAny(from.guest_platform, arguments);
  return to;
}

waybill_manifest_descriptor ToC(const ManifestDescriptor& from, Memory& memory) {
  waybill_manifest_descriptor to{};
  to.media_type = Copy(from.media_type, memory);
  to.digest = Copy(from.digest, memory);
  to.size = from.size;
  to.platform = ToCIfAny(from.platform, memory);
  to.is_attestation = from.is_attestation;
  return to;
}

ManifestDescriptor FromC(const waybill_manifest_descriptor& from, Arguments& arguments) {
  ManifestDescriptor to;
  to.media_type = arguments.String(from.media_type, "media_type");
  to.digest = arguments.String(from.digest, "digest");
  to.size = from.size;
  to.platform = FromCIfAny(from.platform, arguments);
  to.is_attestation = from.is_attestation;
  return to;
}

RuntimeAnswers FromC(const waybill_runtime_answers* from, Arguments& arguments) {
  RuntimeAnswers to;
  if (from == nullptr) return to;
  const auto known = arguments.Options(from, "options");
  to.version = arguments.String(known.version, "version");
  to.status = arguments.String(known.status, "status");
  to.config = arguments.String(known.config, "config");
  to.root = arguments.String(known.root, "root");
  return to;
}

waybill_registry_endpoints ToC(const RegistryEndpoints& from, Memory& memory) {
  waybill_registry_endpoints to{};
  to.registry = Copy(from.registry, memory);
  to.endpoints = CopyStrings(from.endpoints, memory);
  to.where = Copy(from.where, memory);
  return to;
}

RegistryEndpoints FromC(const waybill_registry_endpoints& from, Arguments& arguments) {
  RegistryEndpoints to;
  to.registry = arguments.String(from.registry, "registry");
  to.endpoints = arguments.Strings(from.endpoints, "endpoints");
  to.where = arguments.String(from.where, "where");
  return to;
}

waybill_guest_puller ToC(const GuestPuller& from, Memory& memory) {
  waybill_guest_puller to{};
  to.handler = Copy(from.handler, memory);
  to.because = Copy(from.because, memory);
  return to;
}

GuestPuller FromC(const waybill_guest_puller& from, Arguments& arguments) {
  GuestPuller to;
  to.handler = arguments.String(from.handler, "handler");
  to.because = arguments.String(from.because, "because");
  return to;
}

waybill_runtime_pulls ToC(const RuntimePulls& from, Memory& memory) {
  waybill_runtime_pulls to{};
  to.runtime = static_cast<std::int32_t>(from.runtime);
  to.config_path = CopyStrings(from.config_path, memory);
  to.mirrors = EachToC<waybill_registry_endpoints>(from.mirrors, memory);
  to.mirror_count = from.mirrors.size();
  to.registries_conf = Copy(from.registries_conf, memory);
  to.registries_conf_dirs = CopyStrings(from.registries_conf_dirs, memory);
  to.default_handler = Copy(from.default_handler, memory);
  to.handlers = CopyStrings(from.handlers, memory);
  to.guest_pullers = EachToC<waybill_guest_puller>(from.guest_pullers, memory);
  to.guest_puller_count = from.guest_pullers.size();
  to.own_credentials = CopyStrings(from.own_credentials, memory);
  to.files = CopyStrings(from.files, memory);
  to.problems = CopyStrings(from.problems, memory);
  to.root = Copy(from.root, memory);
  return to;
}

RuntimePulls FromC(const waybill_runtime_pulls& from, Arguments& arguments) {
  RuntimePulls to;
  to.runtime = arguments.OneOf(from.runtime, PullRuntime::kCriO, "runtime");
  to.config_path = arguments.Strings(from.config_path, "config_path");
  to.mirrors = ListFromC(from.mirrors, from.mirror_count, "mirrors", arguments);
  to.registries_conf = arguments.String(from.registries_conf, "registries_conf");
  to.registries_conf_dirs = arguments.Strings(from.registries_conf_dirs, "registries_conf_dirs");
  to.default_handler = arguments.String(from.default_handler, "default_handler");
  to.handlers = arguments.Strings(from.handlers, "handlers");
  to.guest_pullers =
      ListFromC(from.guest_pullers, from.guest_puller_count, "guest_pullers", arguments);
  to.own_credentials = arguments.Strings(from.own_credentials, "own_credentials");
  to.files = arguments.Strings(from.files, "files");
  to.problems = arguments.Strings(from.problems, "problems");
  to.root = arguments.String(from.root, "root");
  return to;
}

waybill_pull_source ToC(const PullSource& from, Memory& memory) {
  waybill_pull_source to{};
  to.host = Copy(from.host, memory);
  to.serves_manifests = from.serves_manifests;
  to.serves_layers = from.serves_layers;
  to.insecure = from.insecure;
  to.open = from.open;
  to.open_because = Copy(from.open_because, memory);
  to.where = Copy(from.where, memory);
  return to;
}

waybill_pull_sources ToC(const PullSources& from, Memory& memory) {
  waybill_pull_sources to{};
  to.registry = Copy(from.registry, memory);
  to.others = EachToC<waybill_pull_source>(from.others, memory);
  to.other_count = from.others.size();
  to.checker = static_cast<std::int32_t>(from.checker);
  to.problems = CopyStrings(from.problems, memory);
  return to;
}

ProofRule FromC(const waybill_proof_rule& from, Arguments& arguments) {
  ProofRule to;
  to.pattern = arguments.String(from.pattern, "pattern");
  to.proofs = arguments.OneOf(from.proofs, Proofs::kRegistry, "proofs");
  return to;
}

waybill_user_namespace_pool ToC(const IdPool& from, Memory&) {
  waybill_user_namespace_pool to{};
  to.first_id = from.first_id;
  to.id_count = from.id_count;
  to.ids_per_pod = from.ids_per_pod;
  to.max_pods = from.max_pods;
  return to;
}

IdPool FromC(const waybill_user_namespace_pool& from, Arguments&) {
  IdPool to;
  to.first_id = from.first_id;
  to.id_count = from.id_count;
  to.ids_per_pod = from.ids_per_pod;
  to.max_pods = from.max_pods;
  return to;
}

waybill_id_mapping ToC(const IdMapping& from, Memory&) {
  waybill_id_mapping to{};
  to.host_id = from.host_id;
  to.container_id = from.container_id;
  to.length = from.length;
  return to;
}

waybill_user_namespace_allocation ToC(const PodMapping& from, Memory& memory) {
  waybill_user_namespace_allocation to{};
  to.pod_uid = Copy(from.pod_uid, memory);
  to.host_id = from.host_id;
  to.length = from.length;
  to.created = ToC(from.created, memory);
  to.relation = static_cast<std::int32_t>(from.relation);
  return to;
}

waybill_host_id_range ToC(const HostIdRange& from, Memory&) {
  waybill_host_id_range to{};
  to.first = from.first;
  to.length = from.length;
  return to;
}

waybill_held_pod ToC(const QuarantinedPod& from, Memory& memory) {
  waybill_held_pod to{};
  to.pod_uid = Copy(from.pod_uid, memory);
  to.ranges = EachToC<waybill_host_id_range>(from.ranges, memory);
  to.range_count = from.ranges.size();
  to.source = Copy(from.source, memory);
  to.reason = Copy(from.reason, memory);
  to.since = ToC(from.since, memory);
  to.kind = static_cast<std::int32_t>(from.kind);
  return to;
}

waybill_migration_step ToC(const MigrationStep& from, Memory& memory) {
  waybill_migration_step to{};
  to.from = from.from;
  to.to = from.to;
  to.name = Copy(from.name, memory);
  to.values_written = from.values_written;
  return to;
}

waybill_migration_report ToC(const MigrationReport& from, Memory& memory) {
  waybill_migration_report to{};
  to.from = from.from;
  to.to = from.to;
  to.steps = EachToC<waybill_migration_step>(from.steps, memory);
  to.step_count = from.steps.size();
  to.backup = Copy(from.backup, memory);
  to.losses = CopyStrings(from.losses, memory);
  return to;
}

waybill_runtimes_report ToC(const RuntimesReport& from, Memory& memory) {
  waybill_runtimes_report to{};
  to.added = CopyStrings(from.added, memory);
  to.vanished = CopyStrings(from.vanished, memory);
  to.changed = CopyStrings(from.changed, memory);
  to.records_to_verify = from.records_to_verify;
  to.turned_on = from.turned_on;
  to.records_collapsed = from.records_collapsed;
  to.intents_collapsed = from.intents_collapsed;
  return to;
}

waybill_import_report ToC(const ImportReport& from, Memory& memory) {
  waybill_import_report to{};
  to.files_seen = from.files_seen;
  to.unchanged = from.unchanged;
  to.records = from.records;
  to.intents = from.intents;
  to.preloaded = from.preloaded;
  to.known_refs = from.known_refs;
  to.quarantined = from.quarantined;
  to.skipped = from.skipped;
  to.interrupted = from.interrupted;
  to.newly_written = Copy(from.newly_written, memory);
  to.problems = CopyStrings(from.problems, memory);
  return to;
}

waybill_user_namespace_report ToC(const IdMappingReport& from, Memory& memory) {
  waybill_user_namespace_report to{};
  to.files_seen = from.files_seen;
  to.unchanged = from.unchanged;
  to.imported = from.imported;
  to.held = from.held;
  to.repaired_blocks = from.repaired_blocks;
  to.problems = CopyStrings(from.problems, memory);
  to.allocations = from.allocations;
  to.held_pods = from.held_pods;
  to.outside_pool = from.outside_pool;
  to.other_length = from.other_length;
  to.off_pool = CopyStrings(from.off_pool, memory);
  to.refused_because = Copy(from.refused_because, memory);
  return to;
}

waybill_judged_image ToC(const ClassifiedImage& from, Memory& memory) {
  waybill_judged_image to{};
  to.image_ref = Copy(from.image_ref, memory);
  to.runtime_handler = Copy(from.runtime_handler, memory);
  to.name = Copy(from.name, memory);
  to.preloaded = from.preloaded;
  to.because = Copy(from.because, memory);
  return to;
}

waybill_observe_report ToC(const ClassifyReport& from, Memory& memory) {
  waybill_observe_report to{};
  to.listed = from.listed;
  to.repeated = from.repeated;
  to.not_names = from.not_names;
  to.known = from.known;
  to.preloaded = from.preloaded;
  to.closed = from.closed;
  to.left = from.left;
  to.united = from.united;
  to.pulls_settled = from.pulls_settled;
  to.records_removed = from.records_removed;
  to.preloaded_removed = from.preloaded_removed;
  to.judged = EachToC<waybill_judged_image>(from.judged, memory);
  to.judged_count = from.judged.size();
  to.shared_digests = CopyStrings(from.shared_digests, memory);
  to.not_judged_because = Copy(from.not_judged_because, memory);
  return to;
}

waybill_recovery_report ToC(const OpeningReport& from, Memory& memory) {
  waybill_recovery_report to{};
  to.created = from.created;
  to.set_aside = from.set_aside;
  to.set_aside_path = Copy(from.set_aside_path, memory);
  to.removed_paths = CopyStrings(from.removed_paths, memory);
  to.records_carried = from.records_carried;
  to.records_without_credentials = from.records_without_credentials;
  to.intents_carried = from.intents_carried;
  to.witness_made = from.witness_made;
  to.witness_in_store = from.witness_in_store;
  to.findings = CopyStrings(from.findings, memory);
  to.mended = CopyStrings(from.mended, memory);
  to.warnings = CopyStrings(from.warnings, memory);
  to.distrustful = from.distrustful;
  to.distrust_reason = Copy(from.distrust_reason, memory);
  to.migration = ToCIfAny(from.migration, memory);
  to.runtimes = ToCIfAny(from.runtimes, memory);
  to.import = CopyOne(ToC(from.import, memory), memory);
  to.user_namespaces = CopyOne(ToC(from.user_namespaces, memory), memory);
  to.after_gap = from.after_gap;
  to.gap_reason = Copy(from.gap_reason, memory);
  to.gap_closed = from.gap_closed;
  to.gap_images = CopyStrings(from.gap_images, memory);
  to.intents_found = from.intents_found;
  to.intents_replayed = from.intents_replayed;
  to.intents_left = from.intents_left;
  to.replayed = CopyStrings(from.replayed, memory);
  to.replay_skipped = from.replay_skipped;
  to.readers_cleared = from.readers_cleared;
  to.records = from.records;
  to.quarantine_entries = from.quarantine_entries;
  to.commit_sequence = from.commit_sequence;
  to.clock_was_ahead = Copy(from.clock_was_ahead, memory);
  to.times_mended = from.times_mended;
  to.observed = ToCIfAny(from.observed, memory);
  to.first_start = from.first_start;
  to.commit_undone = from.commit_undone;
  to.copy_of = Copy(from.copy_of, memory);
  return to;
}

ProofTerms FromC(const waybill_proof_terms& from, Arguments& arguments) {
  ProofTerms to;
  to.checker = arguments.OneOf(from.checker, VerifiedBy::kGuest, "checker");
  to.good_until = FromCIfAny(from.good_until, arguments);
  return to;
}

PullResult FromC(const waybill_pull_result* from, Arguments& arguments) {
  PullResult to;
  if (from == nullptr) return to;
  const auto known = arguments.Options(from, "options");
  to.pull = PullId{known.pull};
  to.manifest = FromCIfAny(known.manifest, arguments);
  to.image = FromCIfAny(known.image, arguments);
  to.terms = FromC(known.terms, arguments);
  return to;
}

PullError FromC(const waybill_pull_error* from, Arguments& arguments) {
  PullError to;
  if (from == nullptr) return to;
  const auto known = arguments.Options(from, "options");
  to.failure = arguments.OneOf(known.failure, PullFailure::kNothingTransferred, "failure");
  to.error_class = arguments.OneOf(known.error_class, PullErrorClass::kOther, "error_class");
  to.pull = PullId{known.pull};
  return to;
}

waybill_explained_credential ToC(const ExplainedCredential& from, Memory& memory) {
  waybill_explained_credential to{};
  to.image_name = Copy(from.image_name, memory);
  to.kind = static_cast<std::int32_t>(from.kind);
  to.who = ToC(from.who, memory);
  to.proof = ToC(from.proof, memory);
  to.standing = static_cast<std::int32_t>(from.standing);
  return to;
}

waybill_explanation ToC(const Explanation& from, Memory& memory) {
  waybill_explanation to{};
  to.ledger_entry = ToCIfAny(from.ledger_entry, memory);
  to.recorded = from.recorded;
  to.closed_because = Copy(from.closed_because, memory);
  to.pulls = ListOf<waybill_open_pulls, waybill_open_pull>(from.pulls, memory);
  to.in_quarantine = from.in_quarantine;
  to.distrustful = from.distrustful;
  to.text = Copy(from.text, memory);
  to.hint = Copy(from.hint, memory);
  to.record = ToCIfAny(from.record, memory);
  to.credentials = EachToC<waybill_explained_credential>(from.credentials, memory);
  to.credential_count = from.credentials.size();
  to.image_names = CopyStrings(from.image_names, memory);
  to.unreadable = from.unreadable;
  to.spellings = CopyStrings(from.spellings, memory);
  to.other_handlers = CopyStrings(from.other_handlers, memory);
  to.quarantine =
      ListOf<waybill_quarantine_entries, waybill_quarantine_entry>(from.quarantine, memory);
  to.gone_entry = ToCIfAny(from.gone_entry, memory);
  return to;
}

waybill_forget_report ToC(const RevokeReport& from, Memory&) {
  waybill_forget_report to{};
  to.records = from.records;
  to.secrets = from.secrets;
  to.service_accounts = from.service_accounts;
  to.node_pods = from.node_pods;
  to.equal_hashes = from.equal_hashes;
  to.stored = from.stored;
  to.untidied = from.untidied;
  return to;
}

ExistingCredentials FromC(const waybill_existing_credentials* from, Arguments& arguments) {
  ExistingCredentials to;
  if (from == nullptr) return to;
  const auto known = arguments.Options(from, "options");
  to.secrets = ListFromC(known.secrets, known.secret_count, "secrets", arguments);
  to.service_accounts =
      ListFromC(known.service_accounts, known.service_account_count, "service_accounts", arguments);
  return to;
}

waybill_reconcile_report ToC(const RevokeMissingReport& from, Memory& memory) {
  waybill_reconcile_report to{};
  to.forgotten = CopyOne(ToC(from.forgotten, memory), memory);
  to.known = from.known;
  to.gone = from.gone;
  to.newer = from.newer;
  return to;
}

waybill_revocation ToC(const Revocation& from, Memory& memory) {
  waybill_revocation to{};
  to.kind = static_cast<std::int32_t>(from.kind);
  to.who = ToC(from.who, memory);
  to.image_ref = Copy(from.image_ref, memory);
  to.runtime_handler = Copy(from.runtime_handler, memory);
  to.credential_hash = Copy(from.credential_hash, memory);
  to.commit = from.commit;
  to.since = ToC(from.since, memory);
  to.untidied = from.untidied;
  return to;
}

Revocation FromC(const waybill_revocation& from, Arguments& arguments) {
  Revocation to;
  to.kind =
      arguments.OneOf(from.kind, RevocationKind::kSecret, RevocationKind::kCredential, "kind");
  to.who = FromC(from.who, arguments);
  to.image_ref = arguments.String(from.image_ref, "image_ref");
  to.runtime_handler = arguments.String(from.runtime_handler, "runtime_handler");
  to.credential_hash = arguments.String(from.credential_hash, "credential_hash");
  to.commit = from.commit;
  to.since = FromC(from.since, arguments);
  to.untidied = from.untidied;
  return to;
}

waybill_prune_report ToC(const PruneReport& from, Memory&) {
  waybill_prune_report to{};
  to.examined = from.examined;
  to.removed = from.removed;
  to.kept_in_list = from.kept_in_list;
  to.kept_newer = from.kept_newer;
  to.kept_without_credentials = from.kept_without_credentials;
  to.preloaded_removed = from.preloaded_removed;
  return to;
}

waybill_collapse_report ToC(const CollapseReport& from, Memory& memory) {
  waybill_collapse_report to{};
  to.records = from.records;
  to.intents = from.intents;
  to.records_to_verify = from.records_to_verify;
  to.handlers = CopyStrings(from.handlers, memory);
  return to;
}

waybill_user_namespace_cleanup_report ToC(const CleanUpReport& from, Memory& memory) {
  waybill_user_namespace_cleanup_report to{};
  to.examined = from.examined;
  to.released = from.released;
  to.kept_in_lists = from.kept_in_lists;
  to.kept_newer = from.kept_newer;
  to.released_pods = CopyStrings(from.released_pods, memory);
  return to;
}

waybill_user_namespace_statistics ToC(const PoolUse& from, Memory& memory) {
  waybill_user_namespace_statistics to{};
  to.enabled = from.enabled;
  to.pool = ToC(from.pool, memory);
  to.ranges = from.ranges;
  to.used = from.used;
  to.free = from.free;
  to.largest_free_run = from.largest_free_run;
  to.allocations = from.allocations;
  to.outside_pool = from.outside_pool;
  to.other_length = from.other_length;
  to.held_pods = from.held_pods;
  to.refused_because = Copy(from.refused_because, memory);
  return to;
}

waybill_statistics ToC(const StoreCounts& from, Memory& memory) {
  waybill_statistics to{};
  to.store_uuid = Copy(from.store_uuid, memory);
  to.schema_version = from.schema_version;
  to.commit_sequence = from.commit_sequence;
  to.records = from.records;
  to.nondefault_handler_records = from.nondefault_handler_records;
  to.runtime_handlers = from.runtime_handlers;
  to.intents = from.intents;
  to.quarantine_entries = from.quarantine_entries;
  to.preloaded_records = from.preloaded_records;
  to.imported_files = from.imported_files;
  to.ledger_entries = from.ledger_entries;
  to.spellings = from.spellings;
  to.id_mappings = from.id_mappings;
  to.held_pods = from.held_pods;
  to.distrustful = from.distrustful;
  to.map_bytes = from.map_bytes;
  to.used_bytes = from.used_bytes;
  to.readers = from.readers;
  to.max_readers = from.max_readers;
  to.revocations = from.revocations;
  return to;
}

waybill_opening_summary ToC(const OpeningSummary& from, Memory& memory) {
  waybill_opening_summary to{};
  to.at = ToC(from.at, memory);
  to.damage = from.damage;
  to.warnings = from.warnings;
  to.modes_mended = from.modes_mended;
  to.import_problems = from.import_problems;
  to.id_range_problems = from.id_range_problems;
  to.gap_closed = from.gap_closed;
  to.created = from.created;
  to.rebuilt = from.rebuilt;
  to.commit_undone = from.commit_undone;
  to.witness_made = from.witness_made;
  to.clock_was_ahead = from.clock_was_ahead;
  to.after_gap = from.after_gap;
  return to;
}

waybill_handler_records ToC(const HandlerRecords& from, Memory& memory) {
  waybill_handler_records to{};
  to.runtime_handler = Copy(from.runtime_handler, memory);
  to.records = from.records;
  return to;
}

waybill_metrics ToC(const Metrics& from, Memory& memory) {
  waybill_metrics to{};
  static_assert(sizeof(to.mustpull_checks) == sizeof(from.mustpull_checks));
  std::memcpy(&to.mustpull_checks, &from.mustpull_checks, sizeof(to.mustpull_checks));
  static_assert(sizeof(to.ensure_image_requests) == sizeof(from.ensure_image_requests));
  std::memcpy(&to.ensure_image_requests, &from.ensure_image_requests,
              sizeof(to.ensure_image_requests));
  to.ondisk_pullintents = from.ondisk_pullintents;
  to.ondisk_pulledrecords = from.ondisk_pulledrecords;
  to.inmemory_pullintents_usage_percent = from.inmemory_pullintents_usage_percent;
  to.inmemory_pulledrecords_usage_percent = from.inmemory_pulledrecords_usage_percent;
  to.nondefault_runtime_handler_images = from.nondefault_runtime_handler_images;
  to.preloaded_images = from.preloaded_images;
  to.open_pulls = from.open_pulls;
  to.live_owner = from.live_owner;
  to.readable = from.readable;
  to.distrustful = from.distrustful;
  to.user_namespaces = from.user_namespaces;
  to.id_ranges_refused = from.id_ranges_refused;
  to.schema_version = from.schema_version;
  to.commit_sequence = from.commit_sequence;
  to.records_by_handler = EachToC<waybill_handler_records>(from.records_by_handler, memory);
  to.records_by_handler_count = from.records_by_handler.size();
  to.closed_images = from.closed_images;
  to.quarantine_entries = from.quarantine_entries;
  static_assert(sizeof(to.distrust_reasons) == sizeof(from.distrust_reasons));
  std::memcpy(&to.distrust_reasons, &from.distrust_reasons, sizeof(to.distrust_reasons));
  static_assert(sizeof(to.open_pulls_by_state) == sizeof(from.open_pulls_by_state));
  std::memcpy(&to.open_pulls_by_state, &from.open_pulls_by_state, sizeof(to.open_pulls_by_state));
  to.id_mappings = from.id_mappings;
  to.held_pods = from.held_pods;
  to.id_ranges_free = from.id_ranges_free;
  to.id_ranges_used = from.id_ranges_used;
  to.map_bytes = from.map_bytes;
  to.used_bytes = from.used_bytes;
  to.readers = from.readers;
  to.max_readers = from.max_readers;
  to.oldest_credential = ToCIfAny(from.oldest_credential, memory);
  to.undated_credentials = from.undated_credentials;
  to.revocations = from.revocations;
  to.counters = ToCIfAny(from.counters, memory);
  to.last_opening = ToCIfAny(from.last_opening, memory);
  to.presumed_images = from.presumed_images;
  static_assert(sizeof(to.credentials_by_checker) == sizeof(from.credentials_by_checker));
  std::memcpy(&to.credentials_by_checker, &from.credentials_by_checker,
              sizeof(to.credentials_by_checker));
  to.writes_trace = from.writes_trace;
  to.trace_events = from.trace_events;
  to.trace_events_dropped = from.trace_events_dropped;
  return to;
}

waybill_verify_report ToC(const VerifyReport& from, Memory& memory) {
  waybill_verify_report to{};
  to.sound = from.sound;
  to.pages = from.pages;
  to.values = from.values;
  to.findings = CopyStrings(from.findings, memory);
  return to;
}

waybill_trust_event ToC(const DegradedEvent& from, Memory& memory) {
  waybill_trust_event to{};
  to.at = ToC(from.at, memory);
  to.kind = static_cast<std::int32_t>(from.kind);
  to.action = static_cast<std::int32_t>(from.action);
  to.distrustful = from.distrustful;
  to.reason = Copy(from.reason, memory);
  return to;
}

waybill_trust_state ToC(const TrustState& from, Memory& memory) {
  waybill_trust_state to{};
  to.distrustful = from.distrustful;
  to.journal = EachToC<waybill_trust_event>(from.journal, memory);
  to.journal_count = from.journal.size();
  return to;
}

ClearOptions FromC(const waybill_clear_options* from, Arguments& arguments) {
  ClearOptions to;
  if (from == nullptr) return to;
  const auto known = arguments.Options(from, "options");
  if (known.images_on_node != nullptr) {
    to.images_on_node = ListFromC(known.images_on_node->items, known.images_on_node->count,
                                  "images_on_node", arguments);
  }
  to.adopt = known.adopt;
  to.allow_empty = known.allow_empty;
  to.dry_run = known.dry_run;
  return to;
}

waybill_export_report ToC(const ExportReport& from, Memory& memory) {
  waybill_export_report to{};
  to.records = from.records;
  to.intents = from.intents;
  to.preloaded = from.preloaded;
  to.closed = from.closed;
  to.made = from.made;
  to.spellings = from.spellings;
  to.without_credentials = from.without_credentials;
  to.id_mappings = from.id_mappings;
  to.replaced_path = Copy(from.replaced_path, memory);
  to.removed_paths = CopyStrings(from.removed_paths, memory);
  return to;
}

waybill_backup ToC(const Backup& from, Memory& memory) {
  waybill_backup to{};
  to.path = Copy(from.path.native(), memory);
  to.schema_version = from.schema_version;
  to.commit_sequence = from.commit_sequence;
  to.bytes = from.bytes;
  return to;
}

waybill_restore_report ToC(const RestoreReport& from, Memory& memory) {
  waybill_restore_report to{};
  to.schema_version = from.schema_version;
  to.backup_commit_sequence = from.backup_commit_sequence;
  to.records = from.records;
  to.records_without_credentials = from.records_without_credentials;
  to.id_mappings = from.id_mappings;
  to.id_mappings_kept = from.id_mappings_kept;
  to.id_mappings_held = from.id_mappings_held;
  to.id_mappings_dropped = from.id_mappings_dropped;
  to.id_ranges_lost = from.id_ranges_lost;
  to.replaced_path = Copy(from.replaced_path, memory);
  to.removed_paths = CopyStrings(from.removed_paths, memory);
  to.distrust_reason = Copy(from.distrust_reason, memory);
  to.streaming = from.streaming;
  return to;
}

waybill_streaming_request ToC(const StreamRequest& from, Memory& memory) {
  waybill_streaming_request to{};
  to.kind = static_cast<std::int32_t>(from.kind);
  to.container_id = Copy(from.container_id, memory);
  to.pod_sandbox_id = Copy(from.pod_sandbox_id, memory);
  to.command = CopyStrings(from.command, memory);
  to.std_in = from.std_in;
  to.std_out = from.std_out;
  to.std_err = from.std_err;
  to.tty = from.tty;
  to.ports =
      CopyEach<std::uint16_t>(from.ports, memory, [](auto number, Memory&) { return number; });
  to.port_count = from.ports.size();
  return to;
}

StreamRequest FromC(const waybill_streaming_request& from, Arguments& arguments) {
  StreamRequest to;
  to.kind = arguments.OneOf(from.kind, StreamKind::kExec, StreamKind::kPortForward, "kind");
  to.container_id = arguments.String(from.container_id, "container_id");
  to.pod_sandbox_id = arguments.String(from.pod_sandbox_id, "pod_sandbox_id");
  to.command = arguments.Strings(from.command, "command");
  to.std_in = from.std_in;
  to.std_out = from.std_out;
  to.std_err = from.std_err;
  to.tty = from.tty;
  const auto ports = arguments.Array(from.ports, from.port_count, "ports");
  to.ports.assign(ports.begin(), ports.end());
  return to;
}

waybill_streaming_report ToC(const StreamingReport& from, Memory& memory) {
  waybill_streaming_report to{};
  to.recovery = CopyOne(ToC(from.recovery, memory), memory);
  to.voided = from.voided;
  to.void_reason = Copy(from.void_reason, memory);
  to.open = from.open;
  return to;
}

waybill_open_stream ToC(const OpenStream& from, Memory& memory) {
  waybill_open_stream to{};
  to.id = Copy(from.id, memory);
  to.kind = static_cast<std::int32_t>(from.kind);
  to.prepared = ToC(from.prepared, memory);
  to.expires_in_ns = static_cast<std::uint64_t>(from.expires_in.count());
  return to;
}

StreamUrlPolicy FromC(const waybill_stream_url_policy* from, Arguments& arguments) {
  StreamUrlPolicy to;
  if (from == nullptr) return to;
  const auto known = arguments.Options(from, "options");
  to.hosts = arguments.Strings(known.hosts, "hosts");
  const auto ports = arguments.Array(known.ports, known.port_count, "ports");
  to.ports.assign(ports.begin(), ports.end());
  to.require_https = known.require_https;
  to.same_host_redirects = known.same_host_redirects;
  return to;
}

waybill_kubernetes_version ToC(const KubernetesVersion& from, Memory&) {
  waybill_kubernetes_version to{};
  to.major = from.major;
  to.minor = from.minor;
  return to;
}

KubernetesVersion FromC(const waybill_kubernetes_version& from, Arguments&) {
  KubernetesVersion to;
  to.major = from.major;
  to.minor = from.minor;
  return to;
}

waybill_streaming_gate_setting ToC(const StreamingGateSetting& from, Memory&) {
  waybill_streaming_gate_setting to{};
  to.gate = static_cast<std::int32_t>(from.gate);
  to.enabled = from.enabled;
  return to;
}

StreamingGateSetting FromC(const waybill_streaming_gate_setting& from, Arguments& arguments) {
  StreamingGateSetting to;
  to.gate = arguments.OneOf(from.gate, StreamingGate::kAllBeta, "gate");
  to.enabled = from.enabled;
  return to;
}

waybill_streaming_finding ToC(const StreamFinding& from, Memory& memory) {
  waybill_streaming_finding to{};
  to.component = static_cast<std::int32_t>(from.component);
  to.severity = static_cast<std::int32_t>(from.severity);
  to.subject = Copy(from.subject, memory);
  to.setting = Copy(from.setting, memory);
  to.words = Copy(from.words, memory);
  to.advice = Copy(from.advice, memory);
  to.source = Copy(from.source, memory);
  return to;
}

waybill_streaming_answer ToC(const StreamPlan& from, Memory& memory) {
  waybill_streaming_answer to{};
  to.proxy = static_cast<std::int32_t>(from.proxy);
  to.follower = static_cast<std::int32_t>(from.follower);
  to.check = static_cast<std::int32_t>(from.check);
  to.exec_websockets = static_cast<std::int32_t>(from.exec_websockets);
  to.port_forward_websockets = static_cast<std::int32_t>(from.port_forward_websockets);
  to.outcome = static_cast<std::int32_t>(from.outcome);
  to.skew = static_cast<std::int32_t>(from.skew);
  to.findings =
      ListOf<waybill_streaming_findings, waybill_streaming_finding>(from.findings, memory);
  to.notes = CopyStrings(from.notes, memory);
  return to;
}

}  // namespace waybill::c
