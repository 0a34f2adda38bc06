#include "calls.h"

#include "support.h"

#define HELD_ID 0x40000000U

/* Of a call that returns its result by pointer. */
static waybill_code with_result(waybill_code code, const waybill_store* store, void* result) {
  if (code == WAYBILL_OK) {
    CHECK(result != NULL && result != check_poison());
    waybill_free(result);
  } else if (store != NULL) {
    CHECK(result == NULL);
  }
  return code;
}
/* `body` makes the call with &result and error. */
#define RESULT_CALL(name, type, body)                                     \
  static waybill_code name(waybill_store* store, waybill_error** error) { \
    type* result = check_poison();                                        \
    const waybill_code code = body;                                       \
    return with_result(code, store, result);                              \
  }
#define PLAIN_CALL(name, body) \
  static waybill_code name(waybill_store* store, waybill_error** error) { return body; }

/* Answers, one of each a thread: two threads may make the same call. */
static _Thread_local bool flag;
static _Thread_local waybill_pull_id pull_id;
static _Thread_local waybill_list_token token;
static _Thread_local waybill_user_namespace user_namespace;
/* A list with the image of most calls, under a name that none of them pulls. */
static const waybill_string kTag = {"registry.example.com/team/other:v1", 34};
static const waybill_image_on_node kImage = {.id = {"sha256:aa", 9}, .repo_tags = {&kTag, 1}};
static const waybill_images_on_node kListed = {&kImage, 1};
static const waybill_image_on_node kPreloaded = {.id = {"sha256:cc", 9}, .repo_tags = {&kTag, 1}};
static const waybill_pull_error kRefused = {.struct_size = sizeof kRefused,
                                            .error_class = WAYBILL_PULL_ERROR_AUTH};
static const waybill_strings kNoNames = {NULL, 0};
static const waybill_image_pulled_record kRecord = {.image_ref = {"sha256:bb", 9}};
static const waybill_runtime_handlers kNoHandlers = {NULL, 0};
/* Of no record; its UID does not matter. */
static const waybill_credential_name kGone = {.namespace_name = {"tenant-x", 8},
                                              .name = {"pull", 4}};

static bool fetch(void* context, waybill_pod_credentials* credentials) {
  (void)context;
  *credentials = kPod;
  return true;
}

PLAIN_CALL(flush, waybill_flush(store, error))
PLAIN_CALL(record_pull_intent,
           waybill_record_pull_intent(store, COPY(.image = IMAGE), &pull_id, error))
PLAIN_CALL(record_image_pulled, waybill_record_image_pulled(store, APP, &kCredentials, NULL, error))
PLAIN_CALL(record_image_pull_error,
           waybill_record_image_pull_error(store, COPY(.image = IMAGE), &kRefused, error))
PLAIN_CALL(record_image_pull_failed,
           waybill_record_image_pull_failed(store, COPY(.image = IMAGE), WAYBILL_PULL_FAILED, 0,
                                            error))
RESULT_CALL(ensure_image, waybill_ensure_outcome,
            waybill_ensure_image(store, APP, WAYBILL_PULL_IF_NOT_PRESENT, &kPod, &result, error))
RESULT_CALL(ensure_image_lazily, waybill_ensure_outcome,
            waybill_ensure_image_lazily(store, APP, WAYBILL_PULL_IF_NOT_PRESENT, fetch, NULL,
                                        &result, error))
PLAIN_CALL(begin_list, waybill_begin_list(store, &token, error))

static waybill_code observe_images(waybill_store* store, waybill_error** error) {
  waybill_image_list list = WAYBILL_IMAGE_LIST_INIT;
  list.images = kListed;
  list.token = &token;
  list.complete = true;
  waybill_observe_report* report = check_poison();
  const waybill_code code = waybill_observe_images(store, &list, NULL, &report, error);
  CHECK(code != WAYBILL_OK || report->listed == 1);
  return with_result(code, store, report);
}

RESULT_CALL(list_open_pulls, waybill_open_pulls, waybill_list_open_pulls(store, &result, error))
PLAIN_CALL(drop_no_open_pull,
           waybill_drop_open_pull(store, UINT64_MAX, WAYBILL_STRING("a test"), NULL, error))
PLAIN_CALL(add_to_ledger, waybill_add_to_ledger(store, &kPreloaded, WAYBILL_STRING("a test"),
                                                WAYBILL_STRING("a reason"), NULL, error))
RESULT_CALL(list_ledger, waybill_ledger_entries, waybill_list_ledger(store, &result, error))
RESULT_CALL(explain, waybill_explanation,
            waybill_explain(store, COPY(.image = kTag, .image_ref = kPreloaded.id), kNoNames,
                            &result, error))
PLAIN_CALL(settle_presumed,
           waybill_settle_presumed(store, COPY(.image_ref = kPreloaded.id), WAYBILL_SETTLED_CLOSED,
                                   WAYBILL_STRING("a test"), NULL, &flag, error))
PLAIN_CALL(remove_from_ledger,
           waybill_remove_from_ledger(store, COPY(.image_ref = kPreloaded.id),
                                      WAYBILL_STRING("a test"), NULL, &flag, error))
RESULT_CALL(prune, waybill_prune_report, waybill_prune(store, kListed, token, NULL, &result, error))
RESULT_CALL(prune_before, waybill_prune_report,
            waybill_prune_before(store, kListed, (waybill_timestamp){1, 0}, NULL, &result, error))
PLAIN_CALL(put_record, waybill_put_record(store, &kRecord, error))
RESULT_CALL(get_record, waybill_image_pulled_record,
            waybill_get_record(store, COPY(.image_ref = kRecord.image_ref), &result, error))
RESULT_CALL(get_no_record, waybill_image_pulled_record,
            waybill_get_record(store, COPY(.image_ref = WAYBILL_STRING("sha256:none")), &result,
                               error))
RESULT_CALL(list_records, waybill_image_pulled_records, waybill_list_records(store, &result, error))
RESULT_CALL(get_proven_record, waybill_proven_record,
            waybill_get_proven_record(store, COPY(.image_ref = kRecord.image_ref), &result, error))
RESULT_CALL(list_proven_records, waybill_proven_records,
            waybill_list_proven_records(store, &result, error))
RESULT_CALL(forget_secret, waybill_forget_report,
            waybill_forget_secret(store, kGone, NULL, &result, error))
RESULT_CALL(forget_service_account, waybill_forget_report,
            waybill_forget_service_account(store, kGone, NULL, &result, error))
RESULT_CALL(forget_namespace, waybill_forget_report,
            waybill_forget_namespace(store, kGone.namespace_name, NULL, &result, error))
RESULT_CALL(forget_image, waybill_forget_report,
            waybill_forget_image(store, COPY(.image_ref = kRecord.image_ref), NULL, &result, error))
RESULT_CALL(forget_credential, waybill_forget_report,
            waybill_forget_credential(store, WAYBILL_STRING("a hash"), NULL, &result, error))

static waybill_code reconcile(waybill_store* store, waybill_error** error) {
  waybill_existing_credentials truth = WAYBILL_EXISTING_CREDENTIALS_INIT;
  const waybill_credential_name exists = {kSecret.namespace_name, kSecret.name, kSecret.uid};
  truth.secrets = &exists;
  truth.secret_count = 1;
  waybill_reconcile_report* report = check_poison();
  const waybill_code code = waybill_reconcile(store, &truth, token, NULL, &report, error);
  CHECK(code != WAYBILL_OK || report->forgotten != NULL);
  return with_result(code, store, report);
}

PLAIN_CALL(tidy_up, waybill_tidy_up(store, error))
RESULT_CALL(list_revocations, waybill_revocations, waybill_list_revocations(store, &result, error))
PLAIN_CALL(delete_record, waybill_delete_record(store, COPY(.image_ref = kRecord.image_ref), error))
PLAIN_CALL(put_intent, waybill_put_intent(store, COPY(.image = IMAGE), error))
PLAIN_CALL(has_intent, waybill_has_intent(store, COPY(.image = IMAGE), &flag, error))
RESULT_CALL(list_intents, waybill_image_pull_intents, waybill_list_intents(store, &result, error))
PLAIN_CALL(delete_intent, waybill_delete_intent(store, COPY(.image = IMAGE), error))
RESULT_CALL(list_quarantine, waybill_quarantine_entries,
            waybill_list_quarantine(store, &result, error))
RESULT_CALL(list_preloaded, waybill_image_preloaded_records,
            waybill_list_preloaded(store, &result, error))
RESULT_CALL(list_runtime_handlers, waybill_runtime_handlers,
            waybill_list_runtime_handlers(store, &result, error))
RESULT_CALL(replace_runtime_handlers, waybill_runtimes_report,
            waybill_replace_runtime_handlers(store, &kNoHandlers, &kMeant, &result, error))
RESULT_CALL(collapse_runtime_handlers, waybill_collapse_report,
            waybill_collapse_runtime_handlers(store, NULL, &result, error))

static waybill_code get_or_create_user_namespace(waybill_store* store, waybill_error** error) {
  waybill_user_namespace_request asked = WAYBILL_USER_NAMESPACE_REQUEST_INIT;
  asked.pod_uid = POD;
  asked.host_users = WAYBILL_HOST_USERS_UNSET;
  return waybill_get_or_create_user_namespace(store, &asked, &user_namespace, error);
}

RESULT_CALL(get_no_user_namespace, waybill_user_namespace_allocation,
            waybill_get_user_namespace(store, POD, &result, error))
PLAIN_CALL(adopt_user_namespace, waybill_adopt_user_namespace(store, POD, HELD_ID, 65536, error))
RESULT_CALL(get_user_namespace, waybill_user_namespace_allocation,
            waybill_get_user_namespace(store, POD, &result, error))
RESULT_CALL(list_user_namespaces, waybill_user_namespace_allocations,
            waybill_list_user_namespaces(store, &result, error))
RESULT_CALL(list_held_pods, waybill_held_pods, waybill_list_held_pods(store, &result, error))
RESULT_CALL(clean_up_user_namespaces, waybill_user_namespace_cleanup_report,
            waybill_clean_up_user_namespaces(store, kNoNames, kNoNames, token, &kMeant, &result,
                                             error))
PLAIN_CALL(release_user_namespace, waybill_release_user_namespace(store, POD, NULL, &flag, error))
PLAIN_CALL(release_lost_user_namespaces,
           waybill_release_lost_user_namespaces(store, NULL, &flag, error))
RESULT_CALL(get_user_namespace_statistics, waybill_user_namespace_statistics,
            waybill_get_user_namespace_statistics(store, &result, error))
RESULT_CALL(get_statistics, waybill_statistics, waybill_get_statistics(store, &result, error))
RESULT_CALL(get_metrics, waybill_metrics, waybill_get_metrics(store, &result, error))
RESULT_CALL(metrics_text, waybill_string, waybill_metrics_text(store, &result, error))
RESULT_CALL(verify, waybill_verify_report, waybill_verify(store, &result, error))
RESULT_CALL(verify_with_progress, waybill_verify_report,
            waybill_verify_with_progress(store, NULL, NULL, &result, error))
RESULT_CALL(get_trust, waybill_trust_state, waybill_get_trust(store, &result, error))
RESULT_CALL(clear_distrust, waybill_observe_report,
            waybill_clear_distrust(store, WAYBILL_STRING("a test"), NULL, &result, error))

static waybill_code export_all(waybill_store* store, waybill_error** error) {
  static waybill_string directory;
  if (directory.data == NULL) {
    directory = scratch("exported");
    make_directory(directory);
  }
  waybill_export_options options = WAYBILL_EXPORT_OPTIONS_INIT;
  options.kubelet_directory = directory;
  options.images_on_node = &kListed;
  waybill_export_report* report = check_poison();
  const waybill_code code = waybill_export(store, &options, &report, error);
  return with_result(code, store, report);
}

RESULT_CALL(make_backup, waybill_backup, waybill_make_backup(store, &result, error))

static waybill_code write_backup(waybill_store* store, waybill_error** error) {
  static _Atomic int written = 0; /* a file of its own each time */
  char name[32];
  snprintf(name, sizeof(name), "written-%d.mdb", written++);
  waybill_backup* backup = check_poison();
  const waybill_code code = waybill_write_backup(store, scratch(name), NULL, NULL, &backup, error);
  return with_result(code, store, backup);
}

PLAIN_CALL(note_gap, waybill_note_gap(store, WAYBILL_STRING("a test"), error))
PLAIN_CALL(serve, waybill_serve(store, NULL, error))

#define OWNER(name) \
  { #name, name, WAYBILL_OK, true }
#define ANYONE(name) \
  { #name, name, WAYBILL_OK, false }
#define NOBODY(name) \
  { #name, name, WAYBILL_NOT_FOUND, false }
#define NO_OWNER(name) \
  { #name, name, WAYBILL_NOT_FOUND, true }

const store_call kStoreCalls[] = {
    ANYONE(flush),
    OWNER(record_pull_intent),
    OWNER(record_image_pulled),
    OWNER(record_image_pull_failed),
    OWNER(record_image_pull_error),
    ANYONE(ensure_image),
    ANYONE(ensure_image_lazily),
    OWNER(begin_list),
    OWNER(observe_images),
    ANYONE(list_open_pulls),
    NO_OWNER(drop_no_open_pull),
    OWNER(add_to_ledger),
    ANYONE(list_ledger),
    ANYONE(explain),
    OWNER(settle_presumed),
    OWNER(remove_from_ledger),
    OWNER(prune),
    OWNER(prune_before),
    OWNER(put_record),
    ANYONE(get_record),
    NOBODY(get_no_record),
    ANYONE(list_records),
    ANYONE(get_proven_record),
    ANYONE(list_proven_records),
    OWNER(forget_secret),
    OWNER(forget_service_account),
    OWNER(forget_namespace),
    OWNER(forget_image),
    OWNER(forget_credential),
    OWNER(reconcile),
    OWNER(tidy_up),
    ANYONE(list_revocations),
    OWNER(delete_record),
    OWNER(put_intent),
    ANYONE(has_intent),
    ANYONE(list_intents),
    OWNER(delete_intent),
    ANYONE(list_quarantine),
    ANYONE(list_preloaded),
    ANYONE(list_runtime_handlers),
    OWNER(replace_runtime_handlers),
    OWNER(collapse_runtime_handlers),
    ANYONE(get_or_create_user_namespace),
    NOBODY(get_no_user_namespace),
    OWNER(adopt_user_namespace),
    ANYONE(get_user_namespace),
    ANYONE(list_user_namespaces),
    ANYONE(list_held_pods),
    OWNER(clean_up_user_namespaces),
    OWNER(release_user_namespace),
    OWNER(release_lost_user_namespaces),
    ANYONE(get_user_namespace_statistics),
    ANYONE(get_statistics),
    ANYONE(get_metrics),
    ANYONE(metrics_text),
    ANYONE(verify),
    ANYONE(verify_with_progress),
    ANYONE(get_trust),
    OWNER(clear_distrust),
    ANYONE(export_all),
    OWNER(make_backup),
    ANYONE(write_backup),
    OWNER(note_gap),
    OWNER(serve),
};
const size_t kStoreCallCount = sizeof(kStoreCalls) / sizeof(kStoreCalls[0]);

void check_all_calls(waybill_store* store, waybill_code expected) {
  for (size_t i = 0; i < kStoreCallCount; ++i) {
    waybill_error* error;
    if (!CHECK_CODE(expected, kStoreCalls[i].call(store, &error)) ||
        !CHECK(kStoreCalls[i].call(store, NULL) == expected)) {
      fprintf(stderr, "  in %s\n", kStoreCalls[i].name);
    }
  }
}

bool all_decide_to_pull(waybill_store* store) {
  const bool with = waybill_must_attempt_pull(store, APP, &kPod).pull;
  const bool without = waybill_must_attempt_pull(store, APP, NULL).pull;
  const bool lazily = waybill_must_attempt_pull_lazily(store, APP, fetch, NULL).pull;
  return with && without && lazily;
}
