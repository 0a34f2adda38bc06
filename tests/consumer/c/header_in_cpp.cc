// waybill.h in C++: its macros expand without warnings. Compiled only.

#include <waybill.h>

#define USE(type, init)            \
  type Initialised_##type() {      \
    const type initialised = init; \
    return initialised;            \
  }
USE(waybill_open_options, WAYBILL_OPEN_OPTIONS_INIT)
USE(waybill_observe_options, WAYBILL_OBSERVE_OPTIONS_INIT)
USE(waybill_evidence_options, WAYBILL_EVIDENCE_OPTIONS_INIT)
USE(waybill_pull_result, WAYBILL_PULL_RESULT_INIT)
USE(waybill_image_list, WAYBILL_IMAGE_LIST_INIT)
USE(waybill_clear_options, WAYBILL_CLEAR_OPTIONS_INIT)
USE(waybill_change_options, WAYBILL_CHANGE_OPTIONS_INIT)
USE(waybill_export_options, WAYBILL_EXPORT_OPTIONS_INIT)
USE(waybill_migrate_options, WAYBILL_MIGRATE_OPTIONS_INIT)
USE(waybill_restore_options, WAYBILL_RESTORE_OPTIONS_INIT)
USE(waybill_user_namespace_options, WAYBILL_USER_NAMESPACE_OPTIONS_INIT)
USE(waybill_user_namespace_request, WAYBILL_USER_NAMESPACE_REQUEST_INIT)

const waybill_change_options kAtNamespaceScope = WAYBILL_CHANGE_OPTIONS_INIT;

waybill_code Put(waybill_store* store) {
  waybill_image_copy copy = waybill_image_copy();
  copy.image = WAYBILL_STRING("registry.example.com/team/app:v1");
  return waybill_put_intent(store, copy, nullptr);
}

#if __cplusplus >= 202002L
bool MustPull(waybill_store* store, const waybill_pod_credentials& pod) {
  return waybill_must_attempt_pull(
             store, {.image = WAYBILL_STRING("app"), .image_ref = WAYBILL_STRING("sha256:1")}, &pod)
      .pull;
}
#endif
