// Recording pulls; garbage collection.

#include "bindings/c/store.h"

using namespace waybill::c;
using waybill::NodeStore;
using waybill::Result;

waybill_code waybill_record_pull_intent(waybill_store* store, waybill_image_copy copy,
                                        waybill_error** error) {
  return OnCopy(store, copy, &NodeStore::RecordPullIntent, error);
}

waybill_code waybill_record_image_pulled(waybill_store* store, waybill_image_copy copy,
                                         const waybill_image_pull_credentials* credentials,
                                         const waybill_pulled_manifest* manifest,
                                         waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto image_copy = ToImageCopy(copy, arguments);
    std::optional<waybill::ImagePullCredentials> known;
    if (credentials != nullptr) known = ToCredentials(*credentials, arguments);
    std::optional<waybill::PulledManifest> chosen;
    if (manifest != nullptr) {
      chosen = {arguments.String(manifest->digest, "digest"),
                ToPlatform(manifest->platform, arguments)};
    }
    if (!arguments.ok()) return arguments.error();
    return node_store.RecordImagePulled(image_copy, known, chosen);
  });
}

waybill_code waybill_record_image_pull_failed(waybill_store* store, waybill_image_copy copy,
                                              int32_t failure, waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto image_copy = ToImageCopy(copy, arguments);
    const auto how = arguments.OneOf(failure, waybill::PullFailure::kUnknown, "failure");
    if (!arguments.ok()) return arguments.error();
    return node_store.RecordImagePullFailed(image_copy, how);
  });
}

waybill_code waybill_begin_prune(waybill_store* store, uint64_t* token, waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(token, "token")) return arguments.error();
    return node_store.BeginPrune().map([&](waybill::PruneToken drawn) { *token = drawn.value; });
  });
}

waybill_code waybill_prune(waybill_store* store, const waybill_listed_image* images,
                           size_t image_count, uint64_t token,
                           const waybill_change_options* options, waybill_prune_report** report,
                           waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto listed = ToListed(images, image_count, arguments);
    const auto how = ToChangeOptions(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.Prune(listed, {token}, how), report);
  });
}

waybill_code waybill_prune_before(waybill_store* store, const waybill_listed_image* images,
                                  size_t image_count, waybill_timestamp until,
                                  const waybill_change_options* options,
                                  waybill_prune_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto listed = ToListed(images, image_count, arguments);
    const auto time = ToTimestamp(&until, arguments);
    const auto how = ToChangeOptions(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.PruneBefore(listed, *time, how), report);
  });
}
