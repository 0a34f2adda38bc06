// Recording pulls; evidence; garbage collection.

#include <set>

#include "bindings/c/store.h"

using namespace waybill::c;
using waybill::NodeStore;
using waybill::Result;

waybill_code waybill_record_pull_intent(waybill_store* store, waybill_image_copy copy,
                                        waybill_pull_id* pull, waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto image_copy = ToImageCopy(copy, arguments);
    if (!arguments.ok()) return arguments.error();
    return node_store.RecordPullIntent(image_copy).map([&](waybill::PullId id) {
      if (pull != nullptr) *pull = id.value;
    });
  });
}

waybill_code waybill_record_image_pulled(waybill_store* store, waybill_image_copy copy,
                                         const waybill_image_pull_credentials* credentials,
                                         const waybill_pull_result* result, waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto image_copy = ToImageCopy(copy, arguments);
    std::optional<waybill::ImagePullCredentials> known;
    if (credentials != nullptr) known = ToCredentials(*credentials, arguments);
    waybill::PullResult of_pull;
    if (result != nullptr) {
      const auto r = arguments.Options(result, "result");
      of_pull.pull = {r.pull};
      if (r.manifest != nullptr) of_pull.manifest = ToManifest(*r.manifest, arguments);
      if (r.image != nullptr) of_pull.image = ToImage(*r.image, arguments);
    }
    if (!arguments.ok()) return arguments.error();
    return node_store.RecordImagePulled(image_copy, known, of_pull);
  });
}

waybill_code waybill_record_image_pull_failed(waybill_store* store, waybill_image_copy copy,
                                              int32_t failure, waybill_pull_id pull,
                                              waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto image_copy = ToImageCopy(copy, arguments);
    const auto how = arguments.OneOf(failure, waybill::PullFailure::kNothingTransferred, "failure");
    if (!arguments.ok()) return arguments.error();
    return node_store.RecordImagePullFailed(image_copy, how, {pull});
  });
}

waybill_code waybill_begin_list(waybill_store* store, waybill_list_token* token,
                                waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(token, "token")) return arguments.error();
    return node_store.BeginList().map([&](waybill::ListToken drawn) { *token = ToC(drawn); });
  });
}

waybill_code waybill_observe_images(waybill_store* store, const waybill_image_list* list,
                                    const waybill_change_options* options,
                                    waybill_observe_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto l = arguments.Options(list, "list");
    waybill::ImageList images{.images = ToImages(l.images, arguments),
                              .complete = l.complete,
                              .source = arguments.String(l.source, "source"),
                              .names_to_come = arguments.Strings(l.names_to_come, "names_to_come")};
    if (l.token != nullptr) images.token = ToToken(*l.token);
    if (l.quiet_until != nullptr) images.quiet_until = ToBootTime(*l.quiet_until);
    const auto imported = arguments.Strings(l.imported, "imported");
    const std::set<std::string> ids(imported.begin(), imported.end());
    for (waybill::ImageOnNode& image : images.images) image.imported = ids.contains(image.id);
    const auto how = ToChangeOptions(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.ObserveImages(images, how), report);
  });
}

waybill_code waybill_drop_open_pull(waybill_store* store, waybill_pull_id pull,
                                    waybill_string reason, const waybill_change_options* options,
                                    waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto why = arguments.Text(reason, "reason");
    const auto how = ToChangeOptions(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return node_store.DropOpenPull({pull}, why, how);
  });
}

waybill_code waybill_add_to_ledger(waybill_store* store, const waybill_image_on_node* image,
                                   waybill_string source, waybill_string reason,
                                   const waybill_change_options* options, waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(image, "image")) return arguments.error();
    const auto preloaded = ToImage(*image, arguments);
    const auto by = arguments.Text(source, "source");
    const auto why = arguments.Text(reason, "reason");
    const auto how = ToChangeOptions(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return node_store.AddToLedger(preloaded, by, why, how);
  });
}

waybill_code waybill_remove_from_ledger(waybill_store* store, waybill_image_copy copy,
                                        waybill_string reason,
                                        const waybill_change_options* options, bool* removed,
                                        waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto image_copy = ToImageCopy(copy, arguments);
    const auto why = arguments.Text(reason, "reason");
    const auto how = ToChangeOptions(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return node_store.RemoveFromLedger(image_copy, why, how).map([&](bool was_there) {
      if (removed != nullptr) *removed = was_there;
    });
  });
}

waybill_code waybill_settle_presumed(waybill_store* store, waybill_image_copy copy, int32_t settled,
                                     waybill_string reason, const waybill_change_options* options,
                                     bool* presumed, waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto image_copy = ToImageCopy(copy, arguments);
    const auto as = arguments.OneOf(settled, waybill::Settled::kClosed, "settled");
    const auto why = arguments.Text(reason, "reason");
    const auto how = ToChangeOptions(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return node_store.SettlePresumed(image_copy, as, why, how).map([&](bool was_presumed) {
      if (presumed != nullptr) *presumed = was_presumed;
    });
  });
}

waybill_code waybill_explain(waybill_store* store, waybill_image_copy copy, waybill_strings names,
                             waybill_explanation** explanation, waybill_error** error) {
  if (explanation != nullptr) *explanation = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    arguments.Given(explanation, "explanation");
    const auto image_copy = ToImageCopy(copy, arguments);
    const auto listed = arguments.Strings(names, "names");
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.Explain(image_copy, listed), explanation);
  });
}

waybill_code waybill_prune(waybill_store* store, waybill_images_on_node images,
                           waybill_list_token token, const waybill_change_options* options,
                           waybill_prune_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto listed = ToImages(images, arguments);
    const auto how = ToChangeOptions(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.Prune(listed, ToToken(token), how), report);
  });
}

waybill_code waybill_prune_before(waybill_store* store, waybill_images_on_node images,
                                  waybill_timestamp until, const waybill_change_options* options,
                                  waybill_prune_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto listed = ToImages(images, arguments);
    const auto time = ToTimestamp(&until, arguments);
    const auto how = ToChangeOptions(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.PruneBefore(listed, *time, how), report);
  });
}
