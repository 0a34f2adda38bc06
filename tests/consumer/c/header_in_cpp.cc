// waybill.h in C++, from C++11 on: its macros expand without warnings. Compiled only.

#include <waybill.h>

const waybill_text kAtNamespaceScope = WAYBILL_NO_LOSS_MARKER;

waybill_code Open(waybill_store** store) {
  return waybill_open(waybill_text_of("/tmp/store"), WAYBILL_REMEMBERED_LOSS_MARKER, WAYBILL_NONE,
                      store, nullptr);
}

#if __cplusplus >= 202002L
bool MayUse(waybill_store* store, const waybill_credentials& pod) {
  const waybill_copy copy = {
      .image = WAYBILL_TEXT("app"), .image_ref = WAYBILL_TEXT("sha256:1"), .runtime_handler = {}};
  return waybill_decide(store, copy, &pod).use;
}
#endif
