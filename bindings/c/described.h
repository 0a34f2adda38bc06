// Values of the API between C++ and C. Made by ./dev generate from the public headers;
// convert.h has those that differ by nature.

#ifndef WAYBILL_BINDINGS_C_DESCRIBED_H_
#define WAYBILL_BINDINGS_C_DESCRIBED_H_

#include "bindings/c/call.h"
#include "bindings/c/result.h"
#include "bindings/c/waybill.h"
#include "waybill/waybill.h"

namespace waybill::c {

waybill_platform ToC(const Platform& from, Memory& memory);
Platform FromC(const waybill_platform& from, Arguments& arguments);
waybill_credential_name ToC(const CredentialName& from, Memory& memory);
CredentialName FromC(const waybill_credential_name& from, Arguments& arguments);
waybill_proof ToC(const Proof& from, Memory& memory);
waybill_image_pull_intent ToC(const ImagePullIntent& from, Memory& memory);
ImagePullIntent FromC(const waybill_image_pull_intent& from, Arguments& arguments);
waybill_image_preloaded_record ToC(const ImagePreloadedRecord& from, Memory& memory);
ImagePreloadedRecord FromC(const waybill_image_preloaded_record& from, Arguments& arguments);
waybill_image_on_node ToC(const ListedImage& from, Memory& memory);
ListedImage FromC(const waybill_image_on_node& from, Arguments& arguments);
PulledManifest FromC(const waybill_pulled_manifest& from, Arguments& arguments);
waybill_open_pull ToC(const UnresolvedPull& from, Memory& memory);
UnresolvedPull FromC(const waybill_open_pull& from, Arguments& arguments);
waybill_ledger_entry ToC(const PreloadedImage& from, Memory& memory);
waybill_quarantine_entry ToC(const QuarantinedFile& from, Memory& memory);
waybill_runtime_handler ToC(const RuntimeHandler& from, Memory& memory);
RuntimeHandler FromC(const waybill_runtime_handler& from, Arguments& arguments);
waybill_manifest_descriptor ToC(const ManifestDescriptor& from, Memory& memory);
ManifestDescriptor FromC(const waybill_manifest_descriptor& from, Arguments& arguments);
RuntimeAnswers FromC(const waybill_runtime_answers* from, Arguments& arguments);
waybill_registry_endpoints ToC(const RegistryEndpoints& from, Memory& memory);
RegistryEndpoints FromC(const waybill_registry_endpoints& from, Arguments& arguments);
waybill_guest_puller ToC(const GuestPuller& from, Memory& memory);
GuestPuller FromC(const waybill_guest_puller& from, Arguments& arguments);
waybill_runtime_pulls ToC(const RuntimePulls& from, Memory& memory);
RuntimePulls FromC(const waybill_runtime_pulls& from, Arguments& arguments);
waybill_pull_source ToC(const PullSource& from, Memory& memory);
waybill_pull_sources ToC(const PullSources& from, Memory& memory);
ProofRule FromC(const waybill_proof_rule& from, Arguments& arguments);
waybill_user_namespace_pool ToC(const IdPool& from, Memory& memory);
IdPool FromC(const waybill_user_namespace_pool& from, Arguments& arguments);
waybill_id_mapping ToC(const IdMapping& from, Memory& memory);
waybill_user_namespace_allocation ToC(const PodMapping& from, Memory& memory);
waybill_host_id_range ToC(const HostIdRange& from, Memory& memory);
waybill_held_pod ToC(const QuarantinedPod& from, Memory& memory);
waybill_migration_step ToC(const MigrationStep& from, Memory& memory);
waybill_migration_report ToC(const MigrationReport& from, Memory& memory);
waybill_runtimes_report ToC(const RuntimesReport& from, Memory& memory);
waybill_import_report ToC(const ImportReport& from, Memory& memory);
waybill_user_namespace_report ToC(const IdMappingReport& from, Memory& memory);
waybill_judged_image ToC(const ClassifiedImage& from, Memory& memory);
waybill_observe_report ToC(const ClassifyReport& from, Memory& memory);
waybill_recovery_report ToC(const OpeningReport& from, Memory& memory);
ProofTerms FromC(const waybill_proof_terms& from, Arguments& arguments);
PullResult FromC(const waybill_pull_result* from, Arguments& arguments);
PullError FromC(const waybill_pull_error* from, Arguments& arguments);
waybill_explained_credential ToC(const ExplainedCredential& from, Memory& memory);
waybill_explanation ToC(const Explanation& from, Memory& memory);
waybill_forget_report ToC(const RevokeReport& from, Memory& memory);
ExistingCredentials FromC(const waybill_existing_credentials* from, Arguments& arguments);
waybill_reconcile_report ToC(const RevokeMissingReport& from, Memory& memory);
waybill_revocation ToC(const Revocation& from, Memory& memory);
Revocation FromC(const waybill_revocation& from, Arguments& arguments);
waybill_prune_report ToC(const PruneReport& from, Memory& memory);
waybill_collapse_report ToC(const CollapseReport& from, Memory& memory);
waybill_user_namespace_cleanup_report ToC(const CleanUpReport& from, Memory& memory);
waybill_user_namespace_statistics ToC(const PoolUse& from, Memory& memory);
waybill_statistics ToC(const StoreCounts& from, Memory& memory);
waybill_opening_summary ToC(const OpeningSummary& from, Memory& memory);
waybill_handler_records ToC(const HandlerRecords& from, Memory& memory);
waybill_metrics ToC(const Metrics& from, Memory& memory);
waybill_verify_report ToC(const VerifyReport& from, Memory& memory);
waybill_trust_event ToC(const DegradedEvent& from, Memory& memory);
waybill_trust_state ToC(const TrustState& from, Memory& memory);
ClearOptions FromC(const waybill_clear_options* from, Arguments& arguments);
waybill_export_report ToC(const ExportReport& from, Memory& memory);
waybill_backup ToC(const Backup& from, Memory& memory);
waybill_restore_report ToC(const RestoreReport& from, Memory& memory);
waybill_streaming_request ToC(const StreamRequest& from, Memory& memory);
StreamRequest FromC(const waybill_streaming_request& from, Arguments& arguments);
waybill_streaming_report ToC(const StreamingReport& from, Memory& memory);
waybill_open_stream ToC(const OpenStream& from, Memory& memory);
StreamUrlPolicy FromC(const waybill_stream_url_policy* from, Arguments& arguments);
waybill_kubernetes_version ToC(const KubernetesVersion& from, Memory& memory);
KubernetesVersion FromC(const waybill_kubernetes_version& from, Arguments& arguments);
waybill_streaming_gate_setting ToC(const StreamingGateSetting& from, Memory& memory);
StreamingGateSetting FromC(const waybill_streaming_gate_setting& from, Arguments& arguments);
waybill_streaming_finding ToC(const StreamFinding& from, Memory& memory);
waybill_streaming_answer ToC(const StreamPlan& from, Memory& memory);

}  // namespace waybill::c

#endif  // WAYBILL_BINDINGS_C_DESCRIBED_H_
