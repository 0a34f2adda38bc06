// Whole records, pull intents, and every list that a store returns.

#include "bindings/c/store.h"

using namespace waybill::c;
using waybill::NodeStore;
using waybill::Result;

waybill_code waybill_get_record(waybill_store* store, waybill_image_copy copy,
                                waybill_image_pulled_record** record, waybill_error** error) {
  if (record != nullptr) *record = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto image_copy = ToImageCopy(copy, arguments);
    arguments.Given(record, "record");
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.GetRecord(image_copy), record);
  });
}

waybill_code waybill_list_records(waybill_store* store, waybill_image_pulled_records** records,
                                  waybill_error** error) {
  return Query(store, records, "records", error, &NodeStore::ListRecords);
}

waybill_code waybill_put_record(waybill_store* store, const waybill_image_pulled_record* record,
                                waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(record, "record")) return arguments.error();
    const auto value = ToRecord(*record, arguments);
    if (!arguments.ok()) return arguments.error();
    return node_store.PutRecord(value);
  });
}

waybill_code waybill_delete_record(waybill_store* store, waybill_image_copy copy,
                                   waybill_error** error) {
  return OnCopy(store, copy, &NodeStore::DeleteRecord, error);
}

waybill_code waybill_has_intent(waybill_store* store, waybill_image_copy copy, bool* exists,
                                waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto image_copy = ToImageCopy(copy, arguments);
    arguments.Given(exists, "exists");
    if (!arguments.ok()) return arguments.error();
    return node_store.HasIntent(image_copy).map([&](bool has) { *exists = has; });
  });
}

waybill_code waybill_list_intents(waybill_store* store, waybill_image_pull_intents** intents,
                                  waybill_error** error) {
  return Query(store, intents, "intents", error, &NodeStore::ListIntents);
}

waybill_code waybill_put_intent(waybill_store* store, waybill_image_copy copy,
                                waybill_error** error) {
  return OnCopy(store, copy, &NodeStore::PutIntent, error);
}

waybill_code waybill_delete_intent(waybill_store* store, waybill_image_copy copy,
                                   waybill_error** error) {
  return OnCopy(store, copy, &NodeStore::DeleteIntent, error);
}

waybill_code waybill_list_open_pulls(waybill_store* store, waybill_open_pulls** pulls,
                                     waybill_error** error) {
  return Query(store, pulls, "pulls", error, &NodeStore::ListOpenPulls);
}

waybill_code waybill_list_ledger(waybill_store* store, waybill_ledger_entries** entries,
                                 waybill_error** error) {
  return Query(store, entries, "entries", error, &NodeStore::ListLedger);
}

waybill_code waybill_list_quarantine(waybill_store* store, waybill_quarantine_entries** entries,
                                     waybill_error** error) {
  return Query(store, entries, "entries", error, &NodeStore::ListQuarantine);
}

waybill_code waybill_list_preloaded(waybill_store* store, waybill_image_preloaded_records** records,
                                    waybill_error** error) {
  return Query(store, records, "records", error, &NodeStore::ListPreloaded);
}

waybill_code waybill_list_runtime_handlers(waybill_store* store,
                                           waybill_runtime_handlers** handlers,
                                           waybill_error** error) {
  return Query(store, handlers, "handlers", error, &NodeStore::ListRuntimeHandlers);
}

waybill_code waybill_list_user_namespaces(waybill_store* store,
                                          waybill_user_namespace_allocations** allocations,
                                          waybill_error** error) {
  return Query(store, allocations, "allocations", error, &NodeStore::ListUserNamespaces);
}

waybill_code waybill_list_held_pods(waybill_store* store, waybill_held_pods** pods,
                                    waybill_error** error) {
  return Query(store, pods, "pods", error, &NodeStore::ListHeldPods);
}
