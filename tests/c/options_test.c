/* struct_size of callers that were built against an older or newer header, or that did not set it.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "support.h"

static waybill_error* error;

/* Options of a header in which the struct has grown by 8 bytes. */
#define GROWN(type) \
  struct {          \
    type known;     \
    uint64_t newer; \
  }
#define SIZES(grown, call) SIZES_SINCE(grown, sizeof((grown).known), call)
/* `first`: the size of the struct in the version that introduced it. */
#define SIZES_SINCE(grown, first, call)                                        \
  do {                                                                         \
    const size_t wrong[] = {0, sizeof(size_t) - 1, (first)-1, 4097, SIZE_MAX}; \
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {            \
      (grown).known.struct_size = wrong[i];                                    \
      INVALID(call);                                                           \
    }                                                                          \
    (grown).known.struct_size = sizeof(grown);                                 \
    (grown).newer = 1;                                                         \
    INVALID(call);                                                             \
    (grown).newer = (uint64_t)1 << 63;                                         \
    INVALID(call);                                                             \
    (grown).newer = 0;                                                         \
  } while (0)

static void opening(void) {
  GROWN(waybill_open_options) options = {.known = store_options("store")};
  waybill_store* store = check_poison();
  const size_t first = offsetof(waybill_open_options, flushes_twice);
  SIZES_SINCE(options, first, waybill_open(&options.known, &store, &error));
  CHECK(store == NULL);
  CHECK(!is_there(options.known.directory));
  options.known.struct_size = first;
  options.known.flushes_twice = true; /* behind what an older caller passes */
  options.known.ages = check_poison();
  MUST(waybill_open(&options.known, &store, &error));

  GROWN(waybill_user_namespace_request)
  request = {.known = {.pod_uid = POD, .host_users = WAYBILL_HOST_USERS_TRUE}};
  waybill_user_namespace got;
  SIZES(request, waybill_get_or_create_user_namespace(store, &request.known, &got, &error));
  MUST(waybill_get_or_create_user_namespace(store, &request.known, &got, &error));
  CHECK(got.mode == WAYBILL_NAMESPACE_NODE && got.mapping_count == 0);

  const waybill_images_on_node no_images = {NULL, 0};
  GROWN(waybill_export_options)
  exported = {.known = {.kubelet_directory = scratch("kubelet"),
                        .allow_empty = true,
                        .images_on_node = &no_images}};
  make_directory(exported.known.kubelet_directory);
  SIZES(exported, waybill_export(store, &exported.known, NULL, &error));
  MUST(waybill_export(store, &exported.known, NULL, &error));

  waybill_list_token token;
  MUST(waybill_begin_list(store, &token, &error));
  GROWN(waybill_change_options) change = {.known = {.dry_run = true}};
  SIZES(change, waybill_prune(store, no_images, token, &change.known, NULL, &error));
  MUST(waybill_prune(store, no_images, token, &change.known, NULL, &error));

  GROWN(waybill_image_list) list = {.known = {.token = &token}};
  const size_t first_list = offsetof(waybill_image_list, imported);
  SIZES_SINCE(list, first_list, waybill_observe_images(store, &list.known, NULL, NULL, &error));
  list.known.struct_size = first_list;
  list.known.quiet_until = check_poison(); /* behind what an older caller passes */
  MUST(waybill_observe_images(store, &list.known, NULL, NULL, &error));

  GROWN(waybill_clear_options) clear = {.known = {.dry_run = true}};
  SIZES(clear, waybill_clear_distrust(store, WAYBILL_STRING("a test"), &clear.known, NULL, &error));
  MUST(waybill_clear_distrust(store, WAYBILL_STRING("a test"), &clear.known, NULL, &error));

  GROWN(waybill_pull_result) result = {.known = {.pull = 0}};
  const size_t first_result = offsetof(waybill_pull_result, terms);
  SIZES_SINCE(result, first_result,
              waybill_record_image_pulled(store, APP, NULL, &result.known, &error));
  result.known.struct_size = first_result;
  result.known.terms.good_until = check_poison(); /* behind what an older caller passes */
  MUST(waybill_record_image_pulled(store, APP, NULL, &result.known, &error));
  end_store(store);
}

static void user_namespaces_of_a_store(void) {
  waybill_open_options options = store_options("store");
  GROWN(waybill_user_namespace_options) user_namespaces = {.known = {.disabled = true}};
  options.user_namespaces = &user_namespaces.known;
  waybill_store* store = NULL;
  SIZES(user_namespaces, waybill_open(&options, &store, &error));
  store = open_with(&options);
  waybill_user_namespace_statistics* statistics = NULL;
  MUST(waybill_get_user_namespace_statistics(store, &statistics, &error));
  CHECK(!statistics->enabled);
  waybill_free(statistics);
  end_store(store);
}

static void evidence_of_a_store(void) {
  waybill_open_options options = store_options("store");
  GROWN(waybill_evidence_options) evidence = {.known = {.grace_seconds = 1}};
  options.evidence = &evidence.known;
  waybill_store* store = NULL;
  SIZES_SINCE(evidence, offsetof(waybill_evidence_options, remember_seconds),
              waybill_open(&options, &store, &error));
  end_store(open_with(&options));
}

static void serving(void) {
  waybill_store* store = open_store("served");
  GROWN(waybill_serve_options) options = {.known = {.patience_ms = 1, .connections = 1}};
  SIZES(options, waybill_serve(store, &options.known, &error));
  options.known.connections = 1025;
  INVALID(waybill_serve(store, &options.known, &error));
  options.known.connections = 1024;
  options.known.patience_ms = 3600001;
  INVALID(waybill_serve(store, &options.known, &error));
  options.known.patience_ms = 3600000;
  MUST(waybill_serve(store, &options.known, &error));
  CHECK_CODE(WAYBILL_CONFLICT, waybill_serve(store, &options.known, &error));
  end_store(store);
}

static void ages_of_a_store(void) {
  waybill_open_options options = store_options("store");
  GROWN(waybill_age_limits) ages = {.known = {.credentials_seconds = 60}};
  options.ages = &ages.known;
  waybill_store* store = NULL;
  SIZES(ages, waybill_open(&options, &store, &error));
  store = open_with(&options);
  pull(store, IMAGE, REF);

  GROWN(waybill_existing_credentials) truth = {.known = {.secrets = NULL}};
  waybill_list_token token;
  MUST(waybill_begin_list(store, &token, &error));
  SIZES(truth, waybill_reconcile(store, &truth.known, token, &kMeant, NULL, &error));
  CHECK(may_use(store, &kPod));
  MUST(waybill_reconcile(store, &truth.known, token, &kMeant, NULL, &error));
  CHECK(!may_use(store, &kPod));
  end_store(store);
}

static void observing(void) {
  GROWN(waybill_observe_options) options = {.known = {.directory = scratch("store")}};
  waybill_store* store = NULL;
  const size_t first = offsetof(waybill_observe_options, ages);
  SIZES_SINCE(options, first, waybill_observe(&options.known, &store, &error));
  options.known.struct_size = first;
  options.known.ages = check_poison(); /* behind what an older caller passes */
  MUST(waybill_observe(&options.known, &store, &error));
  end_store(store);
}

static void trace_of_a_store(void) {
  GROWN(waybill_trace_options) trace = {.known = {.path = scratch("trace")}};
  waybill_open_options options = store_options("traced");
  options.trace = &trace.known;
  waybill_store* store = NULL;
  SIZES(trace, waybill_open(&options, &store, &error));
  trace.known.files = 101;
  INVALID(waybill_open(&options, &store, &error));
  trace.known.files = 2;
  trace.known.max_file_bytes = 1;
  INVALID(waybill_open(&options, &store, &error));
  trace.known.max_file_bytes = (uint64_t)1 << 20;
  MUST(waybill_open(&options, &store, &error));
  waybill_metrics* metrics = NULL;
  MUST(waybill_get_metrics(store, &metrics, &error));
  CHECK(metrics->writes_trace && metrics->trace_events_dropped == 0);
  waybill_free(metrics);
  end_store(store);
  CHECK(is_there(trace.known.path));
}

static void whole_stores(void) {
  GROWN(waybill_migrate_options) migrate = {.known = {.directory = scratch("store")}};
  SIZES(migrate, waybill_migrate(&migrate.known, NULL, &error));
  migrate.known.dry_run = true;
  MUST(waybill_migrate(&migrate.known, NULL, &error));
  GROWN(waybill_restore_options)
  restore = {.known = {.directory = scratch("store"), .backup = scratch("none")}};
  SIZES(restore, waybill_restore(&restore.known, NULL, &error));
  CHECK_CODE(WAYBILL_NOT_FOUND, waybill_restore(&restore.known, NULL, &error));
}

static void streaming(void) {
  GROWN(waybill_stream_url_policy) policy = {.known = {.same_host_redirects = true}};
  const waybill_string url = WAYBILL_STRING("http://127.0.0.1:1/exec/x");
  waybill_stream_url_check* check = NULL;
  SIZES(policy, waybill_check_stream_url(url, &policy.known, &check, &error));
  SIZES(policy, waybill_check_stream_redirect(url, url, &policy.known, &check, &error));
  MUST(waybill_check_stream_redirect(url, url, &policy.known, &check, &error));
  CHECK(check->refusal == WAYBILL_STREAM_URL_ALLOWED);
  waybill_free(check);
}

int main(void) {
  opening();
  user_namespaces_of_a_store();
  evidence_of_a_store();
  serving();
  ages_of_a_store();
  observing();
  trace_of_a_store();
  whole_stores();
  streaming();
  return check_result();
}
