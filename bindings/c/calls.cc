// The functions of waybill.h that do what a method of NodeStore does. Made by ./dev generate.

#include "bindings/c/described.h"
#include "bindings/c/store.h"

using namespace waybill::c;
using waybill::NodeStore;
using waybill::Result;

waybill_code waybill_flush(waybill_store* store, waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments&) -> Result<void> {
    return node_store.Flush();
  });
}

waybill_code waybill_record_pull_intent(waybill_store* store, waybill_image_copy copy,
                                        waybill_pull_id* pull, waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto copy_in = FromC(copy, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.RecordPullIntent(copy_in), pull);
  });
}

waybill_code waybill_record_image_pulled(waybill_store* store, waybill_image_copy copy,
                                         const waybill_image_pull_credentials* credentials,
                                         const waybill_pull_result* result, waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto copy_in = FromC(copy, arguments);
    const auto credentials_in = FromCIfAny(credentials, arguments);
    const auto result_in = FromC(result, arguments);
    if (!arguments.ok()) return arguments.error();
    return node_store.RecordImagePulled(copy_in, credentials_in, result_in);
  });
}

waybill_code waybill_record_image_pull_failed(waybill_store* store, waybill_image_copy copy,
                                              int32_t failure, waybill_pull_id pull,
                                              waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto copy_in = FromC(copy, arguments);
    const auto failure_in =
        arguments.OneOf(failure, waybill::PullFailure::kNothingTransferred, "failure");
    if (!arguments.ok()) return arguments.error();
    return node_store.RecordImagePullFailed(copy_in, failure_in, waybill::PullId{pull});
  });
}

waybill_code waybill_begin_list(waybill_store* store, waybill_list_token* token,
                                waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(token, "token")) return arguments.error();
    return Give(node_store.BeginList(), token);
  });
}

waybill_code waybill_observe_images(waybill_store* store, const waybill_image_list* list,
                                    const waybill_change_options* options,
                                    waybill_observe_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto list_in = FromC(list, arguments);
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.ObserveImages(list_in, options_in), report);
  });
}

waybill_code waybill_note_gap(waybill_store* store, waybill_string why, waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto why_in = arguments.Text(why, "why");
    if (!arguments.ok()) return arguments.error();
    return node_store.NoteGap(why_in);
  });
}

waybill_code waybill_list_open_pulls(waybill_store* store, waybill_open_pulls** pulls,
                                     waybill_error** error) {
  if (pulls != nullptr) *pulls = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(pulls, "pulls")) return arguments.error();
    return Give(node_store.ListOpenPulls(), pulls);
  });
}

waybill_code waybill_drop_open_pull(waybill_store* store, waybill_pull_id pull,
                                    waybill_string reason, const waybill_change_options* options,
                                    waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto reason_in = arguments.Text(reason, "reason");
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return node_store.DropOpenPull(waybill::PullId{pull}, reason_in, options_in);
  });
}

waybill_code waybill_list_ledger(waybill_store* store, waybill_ledger_entries** entries,
                                 waybill_error** error) {
  if (entries != nullptr) *entries = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(entries, "entries")) return arguments.error();
    return Give(node_store.ListLedger(), entries);
  });
}

waybill_code waybill_add_to_ledger(waybill_store* store, const waybill_image_on_node* image,
                                   waybill_string source, waybill_string reason,
                                   const waybill_change_options* options, waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(image, "image")) return arguments.error();
    const auto image_in = FromC(*image, arguments);
    const auto source_in = arguments.Text(source, "source");
    const auto reason_in = arguments.Text(reason, "reason");
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return node_store.AddToLedger(image_in, source_in, reason_in, options_in);
  });
}

waybill_code waybill_remove_from_ledger(waybill_store* store, waybill_image_copy copy,
                                        waybill_string reason,
                                        const waybill_change_options* options, bool* removed,
                                        waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto copy_in = FromC(copy, arguments);
    const auto reason_in = arguments.Text(reason, "reason");
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.RemoveFromLedger(copy_in, reason_in, options_in), removed);
  });
}

waybill_code waybill_settle_presumed(waybill_store* store, waybill_image_copy copy, int32_t settled,
                                     waybill_string reason, const waybill_change_options* options,
                                     bool* presumed, waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto copy_in = FromC(copy, arguments);
    const auto settled_in = arguments.OneOf(settled, waybill::Settled::kClosed, "settled");
    const auto reason_in = arguments.Text(reason, "reason");
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.SettlePresumed(copy_in, settled_in, reason_in, options_in), presumed);
  });
}

waybill_code waybill_explain(waybill_store* store, waybill_image_copy copy, waybill_strings names,
                             waybill_explanation** explanation, waybill_error** error) {
  if (explanation != nullptr) *explanation = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(explanation, "explanation")) return arguments.error();
    const auto copy_in = FromC(copy, arguments);
    const auto names_in = arguments.Strings(names, "names");
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.Explain(copy_in, names_in), explanation);
  });
}

waybill_code waybill_forget_secret(waybill_store* store, waybill_credential_name who,
                                   const waybill_change_options* options,
                                   waybill_forget_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto who_in = FromC(who, arguments);
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.ForgetSecret(who_in, options_in), report);
  });
}

waybill_code waybill_forget_service_account(waybill_store* store, waybill_credential_name who,
                                            const waybill_change_options* options,
                                            waybill_forget_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto who_in = FromC(who, arguments);
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.ForgetServiceAccount(who_in, options_in), report);
  });
}

waybill_code waybill_forget_namespace(waybill_store* store, waybill_string namespace_name,
                                      const waybill_change_options* options,
                                      waybill_forget_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto namespace_name_in = arguments.Text(namespace_name, "namespace_name");
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.ForgetNamespace(namespace_name_in, options_in), report);
  });
}

waybill_code waybill_forget_image(waybill_store* store, waybill_image_copy copy,
                                  const waybill_change_options* options,
                                  waybill_forget_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto copy_in = FromC(copy, arguments);
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.ForgetImage(copy_in, options_in), report);
  });
}

waybill_code waybill_forget_credential(waybill_store* store, waybill_string credential_hash,
                                       const waybill_change_options* options,
                                       waybill_forget_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto credential_hash_in = arguments.Text(credential_hash, "credential_hash");
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.ForgetCredential(credential_hash_in, options_in), report);
  });
}

waybill_code waybill_reconcile(waybill_store* store, const waybill_existing_credentials* truth,
                               waybill_list_token token, const waybill_change_options* options,
                               waybill_reconcile_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto truth_in = FromC(truth, arguments);
    const auto token_in = FromC(token, arguments);
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.Reconcile(truth_in, token_in, options_in), report);
  });
}

waybill_code waybill_tidy_up(waybill_store* store, waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments&) -> Result<void> {
    return node_store.TidyUp();
  });
}

waybill_code waybill_list_revocations(waybill_store* store, waybill_revocations** revocations,
                                      waybill_error** error) {
  if (revocations != nullptr) *revocations = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(revocations, "revocations")) return arguments.error();
    return Give(node_store.ListRevocations(), revocations);
  });
}

waybill_code waybill_prune(waybill_store* store, waybill_images_on_node images,
                           waybill_list_token token, const waybill_change_options* options,
                           waybill_prune_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto images_in = ListFromC(images.items, images.count, "images", arguments);
    const auto token_in = FromC(token, arguments);
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.Prune(images_in, token_in, options_in), report);
  });
}

waybill_code waybill_prune_before(waybill_store* store, waybill_images_on_node images,
                                  waybill_timestamp until, const waybill_change_options* options,
                                  waybill_prune_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto images_in = ListFromC(images.items, images.count, "images", arguments);
    const auto until_in = FromC(until, arguments);
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.PruneBefore(images_in, until_in, options_in), report);
  });
}

waybill_code waybill_get_record(waybill_store* store, waybill_image_copy copy,
                                waybill_image_pulled_record** record, waybill_error** error) {
  if (record != nullptr) *record = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(record, "record")) return arguments.error();
    const auto copy_in = FromC(copy, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.GetRecord(copy_in), record);
  });
}

waybill_code waybill_list_records(waybill_store* store, waybill_image_pulled_records** records,
                                  waybill_error** error) {
  if (records != nullptr) *records = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(records, "records")) return arguments.error();
    return Give(node_store.ListRecords(), records);
  });
}

waybill_code waybill_put_record(waybill_store* store, const waybill_image_pulled_record* record,
                                waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(record, "record")) return arguments.error();
    const auto record_in = FromC(*record, arguments);
    if (!arguments.ok()) return arguments.error();
    return node_store.PutRecord(record_in);
  });
}

waybill_code waybill_delete_record(waybill_store* store, waybill_image_copy copy,
                                   waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto copy_in = FromC(copy, arguments);
    if (!arguments.ok()) return arguments.error();
    return node_store.DeleteRecord(copy_in);
  });
}

waybill_code waybill_has_intent(waybill_store* store, waybill_image_copy copy, bool* exists,
                                waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(exists, "exists")) return arguments.error();
    const auto copy_in = FromC(copy, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.HasIntent(copy_in), exists);
  });
}

waybill_code waybill_list_intents(waybill_store* store, waybill_image_pull_intents** intents,
                                  waybill_error** error) {
  if (intents != nullptr) *intents = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(intents, "intents")) return arguments.error();
    return Give(node_store.ListIntents(), intents);
  });
}

waybill_code waybill_put_intent(waybill_store* store, waybill_image_copy copy,
                                waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto copy_in = FromC(copy, arguments);
    if (!arguments.ok()) return arguments.error();
    return node_store.PutIntent(copy_in);
  });
}

waybill_code waybill_delete_intent(waybill_store* store, waybill_image_copy copy,
                                   waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto copy_in = FromC(copy, arguments);
    if (!arguments.ok()) return arguments.error();
    return node_store.DeleteIntent(copy_in);
  });
}

waybill_code waybill_list_quarantine(waybill_store* store, waybill_quarantine_entries** entries,
                                     waybill_error** error) {
  if (entries != nullptr) *entries = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(entries, "entries")) return arguments.error();
    return Give(node_store.ListQuarantine(), entries);
  });
}

waybill_code waybill_list_preloaded(waybill_store* store, waybill_image_preloaded_records** records,
                                    waybill_error** error) {
  if (records != nullptr) *records = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(records, "records")) return arguments.error();
    return Give(node_store.ListPreloaded(), records);
  });
}

waybill_code waybill_list_runtime_handlers(waybill_store* store,
                                           waybill_runtime_handlers** handlers,
                                           waybill_error** error) {
  if (handlers != nullptr) *handlers = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(handlers, "handlers")) return arguments.error();
    return Give(node_store.ListRuntimeHandlers(), handlers);
  });
}

waybill_code waybill_replace_runtime_handlers(waybill_store* store,
                                              const waybill_runtime_handlers* handlers,
                                              const waybill_change_options* options,
                                              waybill_runtimes_report** report,
                                              waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(handlers, "handlers")) return arguments.error();
    const auto handlers_in = ListFromC(handlers->items, handlers->count, "handlers", arguments);
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.ReplaceRuntimeHandlers(handlers_in, options_in), report);
  });
}

waybill_code waybill_collapse_runtime_handlers(waybill_store* store,
                                               const waybill_change_options* options,
                                               waybill_collapse_report** report,
                                               waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.CollapseRuntimeHandlers(options_in), report);
  });
}

waybill_code waybill_get_user_namespace(waybill_store* store, waybill_string pod_uid,
                                        waybill_user_namespace_allocation** allocation,
                                        waybill_error** error) {
  if (allocation != nullptr) *allocation = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(allocation, "allocation")) return arguments.error();
    const auto pod_uid_in = arguments.Text(pod_uid, "pod_uid");
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.GetUserNamespace(pod_uid_in), allocation);
  });
}

waybill_code waybill_release_user_namespace(waybill_store* store, waybill_string pod_uid,
                                            const waybill_change_options* options, bool* released,
                                            waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto pod_uid_in = arguments.Text(pod_uid, "pod_uid");
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.ReleaseUserNamespace(pod_uid_in, options_in), released);
  });
}

waybill_code waybill_list_user_namespaces(waybill_store* store,
                                          waybill_user_namespace_allocations** allocations,
                                          waybill_error** error) {
  if (allocations != nullptr) *allocations = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(allocations, "allocations")) return arguments.error();
    return Give(node_store.ListUserNamespaces(), allocations);
  });
}

waybill_code waybill_list_held_pods(waybill_store* store, waybill_held_pods** pods,
                                    waybill_error** error) {
  if (pods != nullptr) *pods = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(pods, "pods")) return arguments.error();
    return Give(node_store.ListHeldPods(), pods);
  });
}

waybill_code waybill_clean_up_user_namespaces(waybill_store* store, waybill_strings existing,
                                              waybill_strings running, waybill_list_token token,
                                              const waybill_change_options* options,
                                              waybill_user_namespace_cleanup_report** report,
                                              waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto existing_in = arguments.Strings(existing, "existing");
    const auto running_in = arguments.Strings(running, "running");
    const auto token_in = FromC(token, arguments);
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.CleanUpUserNamespaces(existing_in, running_in, token_in, options_in),
                report);
  });
}

waybill_code waybill_adopt_user_namespace(waybill_store* store, waybill_string pod_uid,
                                          uint64_t host_id, uint64_t length,
                                          waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto pod_uid_in = arguments.Text(pod_uid, "pod_uid");
    if (!arguments.ok()) return arguments.error();
    return node_store.AdoptUserNamespace(pod_uid_in, host_id, length);
  });
}

waybill_code waybill_release_lost_user_namespaces(waybill_store* store,
                                                  const waybill_change_options* options,
                                                  bool* released, waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.ReleaseLostUserNamespaces(options_in), released);
  });
}

waybill_code waybill_get_user_namespace_statistics(waybill_store* store,
                                                   waybill_user_namespace_statistics** statistics,
                                                   waybill_error** error) {
  if (statistics != nullptr) *statistics = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(statistics, "statistics")) return arguments.error();
    return Give(node_store.GetUserNamespaceStatistics(), statistics);
  });
}

waybill_code waybill_get_statistics(waybill_store* store, waybill_statistics** statistics,
                                    waybill_error** error) {
  if (statistics != nullptr) *statistics = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(statistics, "statistics")) return arguments.error();
    return Give(node_store.GetStatistics(), statistics);
  });
}

waybill_code waybill_verify(waybill_store* store, waybill_verify_report** report,
                            waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(report, "report")) return arguments.error();
    return Give(node_store.Verify(), report);
  });
}

waybill_code waybill_get_trust(waybill_store* store, waybill_trust_state** trust,
                               waybill_error** error) {
  if (trust != nullptr) *trust = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(trust, "trust")) return arguments.error();
    return Give(node_store.GetTrust(), trust);
  });
}

waybill_code waybill_clear_distrust(waybill_store* store, waybill_string reason,
                                    const waybill_clear_options* options,
                                    waybill_observe_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto reason_in = arguments.Text(reason, "reason");
    const auto options_in = FromC(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.ClearDistrust(reason_in, options_in), report);
  });
}

waybill_code waybill_make_backup(waybill_store* store, waybill_backup** backup,
                                 waybill_error** error) {
  if (backup != nullptr) *backup = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(backup, "backup")) return arguments.error();
    return Give(node_store.MakeBackup(), backup);
  });
}
