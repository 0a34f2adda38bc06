// Forgetting credentials, and when each was proven.

#include "bindings/c/store.h"
#include "store/base/try.h"

using namespace waybill::c;
using waybill::NodeStore;
using waybill::Result;

waybill_code waybill_get_proven_record(waybill_store* store, waybill_image_copy copy,
                                       waybill_proven_record** record, waybill_error** error) {
  if (record != nullptr) *record = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto image_copy = FromC(copy, arguments);
    arguments.Given(record, "record");
    if (!arguments.ok()) return arguments.error();
    const auto got = TRY(node_store.GetRecord(image_copy));
    *record = NewResult<waybill_proven_record>(
        [&](waybill_proven_record& to, Memory& memory) { to = ToProvenC(got, memory); });
    return {};
  });
}

waybill_code waybill_list_proven_records(waybill_store* store, waybill_proven_records** records,
                                         waybill_error** error) {
  if (records != nullptr) *records = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(records, "records")) return arguments.error();
    const auto got = TRY(node_store.ListRecords());
    *records = NewResult<waybill_proven_records>([&](waybill_proven_records& to, Memory& memory) {
      to = {CopyEach<waybill_proven_record>(got, memory, ToProvenC), got.size()};
    });
    return {};
  });
}
