// Converts between the values of C and those of C++. Arguments checks those that go in; those that
// come out are copied into the memory of their result.

#ifndef WAYBILL_BINDINGS_C_CONVERT_H_
#define WAYBILL_BINDINGS_C_CONVERT_H_

#include <optional>
#include <string>
#include <vector>

#include "bindings/c/call.h"
#include "bindings/c/result.h"
#include "waybill/waybill.h"

struct waybill_policy {
  waybill::VerificationPolicy policy;
};

namespace waybill::c {

// --- In ---

// Whether the time lies in the years 1 to 9999.
bool IsTime(waybill_timestamp time);
inline Timestamp ToTimestamp(waybill_timestamp time) { return {time.seconds, time.nanoseconds}; }
std::optional<Timestamp> ToTimestamp(const waybill_timestamp* time, Arguments& arguments);
ImageCopy ToImageCopy(const waybill_image_copy& copy, Arguments& arguments);
Platform ToPlatform(const waybill_platform& platform, Arguments& arguments);
std::optional<Platform> ToPlatform(const waybill_platform* platform, Arguments& arguments);
ImagePullCredentials ToCredentials(const waybill_image_pull_credentials& credentials,
                                   Arguments& arguments);
ImagePulledRecord ToRecord(const waybill_image_pulled_record& record, Arguments& arguments);
ImagePreloadedRecord ToPreloaded(const waybill_image_preloaded_record& record,
                                 Arguments& arguments);
PulledManifest ToManifest(const waybill_pulled_manifest& manifest, Arguments& arguments);
ImageOnNode ToImage(const waybill_image_on_node& image, Arguments& arguments);
std::vector<ImageOnNode> ToImages(const waybill_images_on_node& images, Arguments& arguments);
// NULL: unknown.
std::optional<std::vector<ImageOnNode>> ToImages(const waybill_images_on_node* images,
                                                 Arguments& arguments);
OpenPull ToOpenPull(const waybill_open_pull& pull, Arguments& arguments);
BootTime ToBootTime(const waybill_boot_time& time);
ListToken ToToken(const waybill_list_token& token);
std::vector<RuntimeHandler> ToHandlers(const waybill_runtime_handlers& handlers,
                                       Arguments& arguments);
// NULL stands for the defaults.
ChangeOptions ToChangeOptions(const waybill_change_options* options, Arguments& arguments);
UserNamespacePool ToPool(const waybill_user_namespace_pool& pool);
CredentialName ToCredentialName(const waybill_credential_name& who, Arguments& arguments);

// --- Out ---

inline waybill_timestamp ToC(Timestamp time) { return {time.seconds, time.nanoseconds}; }
waybill_boot_time ToC(const BootTime& time);
waybill_list_token ToC(const ListToken& token);
inline waybill_string Borrow(std::string_view text) { return {text.data(), text.size()}; }

// The name of an enumerator, if `number` is 0 to `last`; otherwise empty.
template <typename Enum>
waybill_string NameOf(std::int32_t number, Enum last, std::string_view (*name)(Enum)) {
  if (number < 0 || number > static_cast<std::int32_t>(last)) return Borrow("");
  return Borrow(name(static_cast<Enum>(number)));
}

inline waybill_string ToC(const std::string& text, Memory& memory) { return Copy(text, memory); }
waybill_user_namespace_pool ToC(const UserNamespacePool& pool);
waybill_platform ToC(const Platform& platform, Memory& memory);
const waybill_platform* ToC(const std::optional<Platform>& platform, Memory& memory);
waybill_image_pulled_record ToC(const ImagePulledRecord& record, Memory& memory);
waybill_image_pull_intent ToC(const ImagePullIntent& intent, Memory& memory);
waybill_image_preloaded_record ToC(const ImagePreloadedRecord& record, Memory& memory);
waybill_image_on_node ToC(const ImageOnNode& image, Memory& memory);
waybill_open_pull ToC(const OpenPull& pull, Memory& memory);
waybill_ledger_entry ToC(const LedgerEntry& entry, Memory& memory);
waybill_quarantine_entry ToC(const QuarantineEntry& entry, Memory& memory);
waybill_runtime_handler ToC(const RuntimeHandler& handler, Memory& memory);
waybill_manifest_descriptor ToC(const ManifestDescriptor& manifest, Memory& memory);
waybill_registry_auth ToC(const RegistryAuth& auth, Memory& memory);
waybill_user_namespace_allocation ToC(const UserNamespaceAllocation& allocation, Memory& memory);
waybill_held_pod ToC(const HeldPod& pod, Memory& memory);
waybill_trust_event ToC(const TrustEvent& event, Memory& memory);
waybill_backup ToC(const Backup& backup, Memory& memory);
waybill_proof ToC(const Proof& proof, Memory& memory);
waybill_credential_name ToC(const CredentialName& who, Memory& memory);
waybill_proven_record ToProvenC(const ImagePulledRecord& record, Memory& memory);
waybill_revocation ToC(const Revocation& revocation, Memory& memory);

// reports.cc
waybill_recovery_report ToC(const RecoveryReport& report, Memory& memory);
waybill_observe_report ToC(const ObserveReport& report, Memory& memory);
waybill_explanation ToC(const Explanation& explanation, Memory& memory);
waybill_migration_report ToC(const MigrationReport& report, Memory& memory);
waybill_runtimes_report ToC(const RuntimesReport& report, Memory& memory);
waybill_collapse_report ToC(const CollapseReport& report, Memory& memory);
waybill_prune_report ToC(const PruneReport& report, Memory& memory);
waybill_user_namespace_cleanup_report ToC(const UserNamespaceCleanupReport& report, Memory& memory);
waybill_user_namespace_statistics ToC(const UserNamespaceStatistics& statistics, Memory& memory);
waybill_statistics ToC(const Statistics& statistics, Memory& memory);
waybill_metrics ToC(const Metrics& metrics, Memory& memory);
waybill_verify_report ToC(const VerifyReport& report, Memory& memory);
waybill_trust_state ToC(const TrustState& trust, Memory& memory);
waybill_export_report ToC(const ExportReport& report, Memory& memory);
waybill_restore_report ToC(const RestoreReport& report, Memory& memory);
waybill_forget_report ToC(const ForgetReport& report, Memory& memory);
waybill_reconcile_report ToC(const ReconcileReport& report, Memory& memory);

// {items, count}: each element converted by ToC.
template <typename List, typename C, typename Range>
List ListOf(const Range& range, Memory& memory) {
  return {CopyEach<C>(range, memory,
                      [](const auto& element, Memory& into) { return ToC(element, into); }),
          range.size()};
}

// --- Results ---

// Puts the value into *out, or returns its error. A null `out`: the caller does not want the value.
template <typename C, typename T>
Result<void> Give(const Result<T>& value, C** out) {
  if (!value) return value.error();
  if (out == nullptr) return {};
  *out = NewResult<C>([&](C& to, Memory& memory) { to = ToC(*value, memory); });
  return {};
}

template <typename C, typename T>
Result<void> Give(const Result<std::vector<T>>& values, C** out,
                  Memory* upstream = std::pmr::new_delete_resource()) {
  if (!values) return values.error();
  using Item = std::remove_cv_t<std::remove_pointer_t<decltype(C::items)>>;
  *out =
      NewResult<C>([&](C& to, Memory& memory) { to = ListOf<C, Item>(*values, memory); }, upstream);
  return {};
}

}  // namespace waybill::c

#endif  // WAYBILL_BINDINGS_C_CONVERT_H_
