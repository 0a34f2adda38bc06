// Whole records, pull intents, and every list that a store returns.

#include "bindings/c/convert.h"
#include "bindings/c/store.h"

using namespace waybill::c;
using waybill::NodeStore;
using waybill::Result;

namespace {

template <typename Body>
waybill_code OnCopy(waybill_store* store, waybill_image_copy copy, waybill_error** error,
                    const Body& body) noexcept {
  return OnStore(store, error, [&](NodeStore& node_store) -> Result<void> {
    Arguments arguments;
    const auto about = ToCopy(copy, arguments);
    if (!arguments.ok()) return arguments.error();
    return body(node_store, about);
  });
}

template <typename C, typename List>
waybill_code GiveListOf(waybill_store* store, C** out, const char* name, waybill_error** error,
                        const List& list) noexcept {
  if (out != nullptr) *out = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store) -> Result<void> {
    Arguments arguments;
    if (!arguments.Given(out, name)) return arguments.error();
    return GiveList(list(node_store), out);
  });
}

}  // namespace

waybill_code waybill_get_record(waybill_store* store, waybill_image_copy copy,
                                waybill_image_pulled_record** record, waybill_error** error) {
  if (record != nullptr) *record = nullptr;
  return OnCopy(store, copy, error, [&](NodeStore& node_store, const auto& about) -> Result<void> {
    Arguments arguments;
    if (!arguments.Given(record, "record")) return arguments.error();
    return Give(node_store.GetRecord(about), record);
  });
}

waybill_code waybill_list_records(waybill_store* store, waybill_image_pulled_records** records,
                                  waybill_error** error) {
  return GiveListOf(store, records, "records", error,
                    [](NodeStore& node_store) { return node_store.ListRecords(); });
}

waybill_code waybill_put_record(waybill_store* store, const waybill_image_pulled_record* record,
                                waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store) -> Result<void> {
    Arguments arguments;
    if (!arguments.Given(record, "record")) return arguments.error();
    const auto value = ToRecord(*record, arguments);
    if (!arguments.ok()) return arguments.error();
    return node_store.PutRecord(value);
  });
}

waybill_code waybill_delete_record(waybill_store* store, waybill_image_copy copy,
                                   waybill_error** error) {
  return OnCopy(store, copy, error, [&](NodeStore& node_store, const auto& about) {
    return node_store.DeleteRecord(about);
  });
}

waybill_code waybill_has_intent(waybill_store* store, waybill_image_copy copy, bool* exists,
                                waybill_error** error) {
  return OnCopy(store, copy, error, [&](NodeStore& node_store, const auto& about) -> Result<void> {
    Arguments arguments;
    if (!arguments.Given(exists, "exists")) return arguments.error();
    const auto has = node_store.HasIntent(about);
    if (!has) return has.error();
    *exists = *has;
    return {};
  });
}

waybill_code waybill_list_intents(waybill_store* store, waybill_image_pull_intents** intents,
                                  waybill_error** error) {
  return GiveListOf(store, intents, "intents", error,
                    [](NodeStore& node_store) { return node_store.ListIntents(); });
}

waybill_code waybill_put_intent(waybill_store* store, waybill_image_copy copy,
                                waybill_error** error) {
  return OnCopy(store, copy, error, [&](NodeStore& node_store, const auto& about) {
    return node_store.PutIntent(about);
  });
}

waybill_code waybill_delete_intent(waybill_store* store, waybill_image_copy copy,
                                   waybill_error** error) {
  return OnCopy(store, copy, error, [&](NodeStore& node_store, const auto& about) {
    return node_store.DeleteIntent(about);
  });
}

waybill_code waybill_list_quarantine(waybill_store* store, waybill_quarantine_entries** entries,
                                     waybill_error** error) {
  return GiveListOf(store, entries, "entries", error,
                    [](NodeStore& node_store) { return node_store.ListQuarantine(); });
}

waybill_code waybill_list_preloaded(waybill_store* store, waybill_image_preloaded_records** records,
                                    waybill_error** error) {
  return GiveListOf(store, records, "records", error,
                    [](NodeStore& node_store) { return node_store.ListPreloaded(); });
}

waybill_code waybill_list_runtime_handlers(waybill_store* store,
                                           waybill_runtime_handlers** handlers,
                                           waybill_error** error) {
  return GiveListOf(store, handlers, "handlers", error,
                    [](NodeStore& node_store) { return node_store.ListRuntimeHandlers(); });
}

waybill_code waybill_list_user_namespaces(waybill_store* store,
                                          waybill_user_namespace_allocations** allocations,
                                          waybill_error** error) {
  return GiveListOf(store, allocations, "allocations", error,
                    [](NodeStore& node_store) { return node_store.ListUserNamespaces(); });
}

waybill_code waybill_list_held_pods(waybill_store* store, waybill_held_pods** pods,
                                    waybill_error** error) {
  return GiveListOf(store, pods, "pods", error,
                    [](NodeStore& node_store) { return node_store.ListHeldPods(); });
}
