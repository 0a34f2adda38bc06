/* NULL for each pointer argument in turn; arrays and strings with a length but no address. */

#include <string.h>

#include "calls.h"
#include "support.h"

static waybill_error* error;
static const waybill_string kNowhere = {NULL, 7};
#define NAMESPACE WAYBILL_STRING("tenant-x")

/* The same for a function whose result is `result`, which must be NULL then. */
#define INVALID_RESULT(result, call) \
  do {                               \
    (result) = check_poison();       \
    INVALID(call);                   \
    CHECK((result) == NULL);         \
  } while (0)

/* A function that makes a `type` of a string; it takes `sound`. */
#define DECODER(type, function, sound)                           \
  do {                                                           \
    type* result;                                                \
    INVALID(function(sound, NULL, &error));                      \
    INVALID_RESULT(result, function(kNowhere, &result, &error)); \
  } while (0)

static void no_store(void) {
  check_all_calls(NULL, WAYBILL_INVALID_ARGUMENT);
  CHECK(all_decide_to_pull(NULL));
  INVALID(waybill_close(NULL, &error));
  waybill_recovery_report* report;
  INVALID_RESULT(report, waybill_get_recovery_report(NULL, &report, &error));
}

static void no_result_of_a_store(waybill_store* s) {
  const waybill_image_on_node image = {.id = REF, .repo_tags = {&IMAGE, 1}};
  const waybill_images_on_node listed = {&image, 1};
  const waybill_strings none = {NULL, 0};
  waybill_user_namespace_request request = WAYBILL_USER_NAMESPACE_REQUEST_INIT;
  request.pod_uid = POD;
  INVALID(waybill_get_recovery_report(s, NULL, &error));
  INVALID(waybill_ensure_image(s, APP, WAYBILL_PULL_NEVER, &kPod, NULL, &error));
  INVALID(waybill_ensure_image_lazily(s, APP, WAYBILL_PULL_NEVER, NULL, NULL, NULL, &error));
  INVALID(waybill_begin_list(s, NULL, &error));
  INVALID(waybill_list_open_pulls(s, NULL, &error));
  INVALID(waybill_list_ledger(s, NULL, &error));
  INVALID(waybill_explain(s, APP, none, NULL, &error));
  INVALID(waybill_get_record(s, COPY(.image_ref = REF), NULL, &error));
  INVALID(waybill_list_records(s, NULL, &error));
  INVALID(waybill_get_proven_record(s, COPY(.image_ref = REF), NULL, &error));
  INVALID(waybill_list_proven_records(s, NULL, &error));
  INVALID(waybill_list_revocations(s, NULL, &error));
  INVALID(waybill_put_record(s, NULL, &error));
  INVALID(waybill_has_intent(s, COPY(.image = IMAGE), NULL, &error));
  INVALID(waybill_list_intents(s, NULL, &error));
  INVALID(waybill_list_quarantine(s, NULL, &error));
  INVALID(waybill_list_preloaded(s, NULL, &error));
  INVALID(waybill_list_runtime_handlers(s, NULL, &error));
  INVALID(waybill_get_or_create_user_namespace(s, &request, NULL, &error));
  INVALID(waybill_get_user_namespace(s, POD, NULL, &error));
  INVALID(waybill_list_user_namespaces(s, NULL, &error));
  INVALID(waybill_list_held_pods(s, NULL, &error));
  INVALID(waybill_get_user_namespace_statistics(s, NULL, &error));
  INVALID(waybill_get_statistics(s, NULL, &error));
  INVALID(waybill_get_metrics(s, NULL, &error));
  INVALID(waybill_metrics_text(s, NULL, &error));
  INVALID(waybill_verify(s, NULL, &error));
  INVALID(waybill_verify_with_progress(s, NULL, NULL, NULL, &error));
  INVALID(waybill_get_trust(s, NULL, &error));

  /* These accept NULL. */
  waybill_list_token token;
  MUST(waybill_begin_list(s, &token, &error));
  MUST(waybill_prune(s, listed, token, NULL, NULL, &error));
  MUST(waybill_prune_before(s, listed, (waybill_timestamp){0, 0}, NULL, NULL, &error));
  const waybill_image_list list = {.struct_size = sizeof(list), .images = listed, .token = &token};
  MUST(waybill_observe_images(s, &list, NULL, NULL, &error));
  MUST(waybill_add_to_ledger(s, &image, IMAGE, IMAGE, NULL, &error));
  MUST(waybill_settle_presumed(s, APP, WAYBILL_SETTLED_CLOSED, IMAGE, NULL, NULL, &error));
  MUST(waybill_remove_from_ledger(s, APP, IMAGE, NULL, NULL, &error));
  MUST(waybill_record_pull_intent(s, APP, NULL, &error));
  MUST(waybill_record_image_pulled(s, APP, NULL, NULL, &error));
  const waybill_credential_name nobody = {.namespace_name = NAMESPACE, .name = NAMESPACE};
  MUST(waybill_forget_secret(s, nobody, NULL, NULL, &error));
  MUST(waybill_forget_service_account(s, nobody, NULL, NULL, &error));
  MUST(waybill_forget_namespace(s, NAMESPACE, NULL, NULL, &error));
  MUST(waybill_forget_image(s, COPY(.image_ref = NAMESPACE), NULL, NULL, &error));
  MUST(waybill_forget_credential(s, NAMESPACE, NULL, NULL, &error));
  const waybill_credential_name existing = {kSecret.namespace_name, kSecret.name, kSecret.uid};
  const waybill_existing_credentials truth = {
      .struct_size = sizeof(truth), .secrets = &existing, .secret_count = 1};
  MUST(waybill_reconcile(s, &truth, token, NULL, NULL, &error));
  MUST(waybill_clear_distrust(s, IMAGE, NULL, NULL, &error));
  MUST(waybill_collapse_runtime_handlers(s, NULL, NULL, &error));
  MUST(waybill_release_user_namespace(s, POD, NULL, NULL, &error));
  MUST(waybill_release_lost_user_namespaces(s, NULL, NULL, &error));
  MUST(waybill_clean_up_user_namespaces(s, none, none, token, NULL, NULL, &error));
}

static void forgotten_of_nowhere(waybill_store* s) {
  const waybill_credential_name no_namespace = {.namespace_name = kNowhere, .name = NAMESPACE};
  const waybill_credential_name no_name = {.namespace_name = NAMESPACE, .name = kNowhere};
  const waybill_credential_name no_uid = {NAMESPACE, NAMESPACE, kNowhere};
  const waybill_credential_name wrong[] = {no_namespace, no_name, no_uid, {NONE, NAMESPACE, NONE}};
  waybill_list_token token;
  MUST(waybill_begin_list(s, &token, &error));
  waybill_forget_report* report;
  waybill_reconcile_report* reconciled;
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    INVALID_RESULT(report, waybill_forget_secret(s, wrong[i], NULL, &report, &error));
    INVALID_RESULT(report, waybill_forget_service_account(s, wrong[i], NULL, &report, &error));
    waybill_existing_credentials truth = WAYBILL_EXISTING_CREDENTIALS_INIT;
    truth.secrets = &wrong[i];
    truth.secret_count = 1;
    INVALID_RESULT(reconciled, waybill_reconcile(s, &truth, token, NULL, &reconciled, &error));
    truth.secret_count = 0;
    truth.service_accounts = &wrong[i];
    truth.service_account_count = 1;
    INVALID_RESULT(reconciled, waybill_reconcile(s, &truth, token, NULL, &reconciled, &error));
  }
  INVALID_RESULT(report, waybill_forget_namespace(s, kNowhere, NULL, &report, &error));
  INVALID_RESULT(report, waybill_forget_namespace(s, NONE, NULL, &report, &error));
  INVALID_RESULT(report,
                 waybill_forget_image(s, COPY(.image_ref = kNowhere), NULL, &report, &error));
  INVALID_RESULT(report, waybill_forget_image(s, COPY(.image = IMAGE), NULL, &report, &error));
  INVALID_RESULT(report, waybill_forget_credential(s, kNowhere, NULL, &report, &error));
  INVALID_RESULT(report, waybill_forget_credential(s, NONE, NULL, &report, &error));
  INVALID_RESULT(reconciled, waybill_reconcile(s, NULL, token, NULL, &reconciled, &error));
  waybill_existing_credentials truth = WAYBILL_EXISTING_CREDENTIALS_INIT;
  truth.secret_count = 1;
  INVALID_RESULT(reconciled, waybill_reconcile(s, &truth, token, &kMeant, &reconciled, &error));
  truth = (waybill_existing_credentials){.struct_size = sizeof(truth), .service_account_count = 1};
  INVALID_RESULT(reconciled, waybill_reconcile(s, &truth, token, &kMeant, &reconciled, &error));
  waybill_proven_record* record;
  INVALID_RESULT(record,
                 waybill_get_proven_record(s, COPY(.image_ref = kNowhere), &record, &error));
}

static void lists_of_nowhere(waybill_store* s) {
  const waybill_strings nowhere = {NULL, 2};
  waybill_observe_report* observed;
  waybill_explanation* explanation;
  bool flag;
  INVALID_RESULT(observed, waybill_observe_images(s, NULL, NULL, &observed, &error));
  waybill_image_list list = WAYBILL_IMAGE_LIST_INIT;
  list.images = (waybill_images_on_node){NULL, 1};
  INVALID_RESULT(observed, waybill_observe_images(s, &list, NULL, &observed, &error));
  waybill_image_on_node image = {.id = kNowhere};
  list.images = (waybill_images_on_node){&image, 1};
  INVALID_RESULT(observed, waybill_observe_images(s, &list, NULL, &observed, &error));
  image = (waybill_image_on_node){.id = REF, .repo_digests = nowhere};
  INVALID_RESULT(observed, waybill_observe_images(s, &list, NULL, &observed, &error));
  list.images.count = 0;
  list.source = kNowhere;
  INVALID_RESULT(observed, waybill_observe_images(s, &list, NULL, &observed, &error));

  waybill_clear_options clear = WAYBILL_CLEAR_OPTIONS_INIT;
  const waybill_images_on_node no_images = {NULL, 1};
  clear.images_on_node = &no_images;
  INVALID_RESULT(observed, waybill_clear_distrust(s, IMAGE, &clear, &observed, &error));
  INVALID_RESULT(observed, waybill_clear_distrust(s, kNowhere, NULL, &observed, &error));

  INVALID(waybill_drop_open_pull(s, 1, kNowhere, NULL, &error));
  INVALID(waybill_add_to_ledger(s, NULL, IMAGE, IMAGE, NULL, &error));
  INVALID(waybill_add_to_ledger(s, &image, IMAGE, IMAGE, NULL, &error));
  image = (waybill_image_on_node){.id = REF};
  INVALID(waybill_add_to_ledger(s, &image, kNowhere, IMAGE, NULL, &error));
  INVALID(waybill_add_to_ledger(s, &image, IMAGE, kNowhere, NULL, &error));
  INVALID(waybill_settle_presumed(s, COPY(.image_ref = kNowhere), WAYBILL_SETTLED_CLOSED, IMAGE,
                                  NULL, &flag, &error));
  INVALID(waybill_settle_presumed(s, APP, WAYBILL_SETTLED_CLOSED, kNowhere, NULL, &flag, &error));
  INVALID(waybill_remove_from_ledger(s, COPY(.image_ref = kNowhere), IMAGE, NULL, &flag, &error));
  INVALID(waybill_remove_from_ledger(s, APP, kNowhere, NULL, &flag, &error));
  INVALID_RESULT(explanation, waybill_explain(s, APP, nowhere, &explanation, &error));
  waybill_string* answer;
  INVALID_RESULT(answer, waybill_other_answer(WAYBILL_REASON_NO_RECORD, kNowhere, &answer, &error));
  INVALID(waybill_other_answer(WAYBILL_REASON_NO_RECORD, NONE, NULL, &error));
  INVALID_RESULT(explanation, waybill_explain(s, COPY(.image_ref = kNowhere),
                                              (waybill_strings){NULL, 0}, &explanation, &error));
}

static void no_value_for_a_store(waybill_store* s) {
  waybill_user_namespace user_namespace;
  waybill_runtimes_report* runtimes;
  waybill_export_report* exported;
  waybill_prune_report* pruned;
  waybill_user_namespace_cleanup_report* cleaned;
  const waybill_strings nowhere = {NULL, 2};
  const waybill_strings none = {NULL, 0};
  const waybill_strings one_nowhere = {&kNowhere, 1};
  const waybill_runtime_handlers no_handlers = {NULL, 1};
  INVALID(waybill_get_or_create_user_namespace(s, NULL, &user_namespace, &error));
  INVALID_RESULT(runtimes, waybill_replace_runtime_handlers(s, NULL, NULL, &runtimes, &error));
  INVALID_RESULT(runtimes,
                 waybill_replace_runtime_handlers(s, &no_handlers, NULL, &runtimes, &error));
  INVALID_RESULT(exported, waybill_export(s, NULL, &exported, &error));
  const waybill_images_on_node no_images = {NULL, 1};
  waybill_list_token token;
  MUST(waybill_begin_list(s, &token, &error));
  INVALID_RESULT(pruned, waybill_prune(s, no_images, token, NULL, &pruned, &error));
  INVALID_RESULT(
      pruned, waybill_prune_before(s, no_images, (waybill_timestamp){0, 0}, NULL, &pruned, &error));
  INVALID_RESULT(cleaned,
                 waybill_clean_up_user_namespaces(s, nowhere, none, token, NULL, &cleaned, &error));
  INVALID_RESULT(cleaned, waybill_clean_up_user_namespaces(s, none, one_nowhere, token, NULL,
                                                           &cleaned, &error));
  lists_of_nowhere(s);
  forgotten_of_nowhere(s);

  /* Arrays and strings inside arguments. */
  waybill_image_pull_credentials credentials = {.secret_count = 1};
  INVALID(waybill_record_image_pulled(s, APP, &credentials, NULL, &error));
  credentials = (waybill_image_pull_credentials){.service_account_count = 1};
  INVALID(waybill_record_image_pulled(s, APP, &credentials, NULL, &error));
  waybill_image_pull_secret secret = kSecret;
  secret.name = kNowhere;
  credentials = (waybill_image_pull_credentials){.secrets = &secret, .secret_count = 1};
  INVALID(waybill_record_image_pulled(s, APP, &credentials, NULL, &error));
  waybill_pull_result result = WAYBILL_PULL_RESULT_INIT;
  const waybill_pulled_manifest manifest = {.digest = DIGEST, .platform = {.os = kNowhere}};
  result.manifest = &manifest;
  INVALID(waybill_record_image_pulled(s, APP, NULL, &result, &error));
  const waybill_pulled_manifest features = {.digest = DIGEST, .platform.os_features = {NULL, 1}};
  result.manifest = &features;
  INVALID(waybill_record_image_pulled(s, APP, NULL, &result, &error));
  const waybill_image_on_node image = {.id = REF, .repo_tags = {NULL, 1}};
  result = (waybill_pull_result){.struct_size = sizeof(result), .image = &image};
  INVALID(waybill_record_image_pulled(s, APP, NULL, &result, &error));
  const waybill_image_pulled_record record = {.image_ref = REF, .credential_mapping_count = 1};
  INVALID(waybill_put_record(s, &record, &error));

  const waybill_pod_credentials pod = {.secret_count = 1};
  CHECK(waybill_must_attempt_pull(s, APP, &pod).pull);
  const waybill_pod_credentials pod_of_nowhere = {.secrets = &secret, .secret_count = 1};
  CHECK(waybill_must_attempt_pull(s, APP, &pod_of_nowhere).pull);
}

static void strings_of_nowhere(waybill_store* s) {
  bool flag;
  waybill_image_pulled_record* record;
  waybill_ensure_outcome* outcome;
  waybill_pull_id pull_id;
  const waybill_image_copy wrong[] = {
      COPY(.image = kNowhere, .image_ref = REF), COPY(.image = IMAGE, .image_ref = kNowhere),
      COPY(.image = IMAGE, .image_ref = REF, .runtime_handler = kNowhere)};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    const waybill_image_copy copy = wrong[i];
    INVALID(waybill_record_pull_intent(s, copy, &pull_id, &error));
    INVALID(waybill_record_image_pulled(s, copy, NULL, NULL, &error));
    INVALID(waybill_record_image_pull_failed(s, copy, WAYBILL_PULL_FAILED, 0, &error));
    INVALID_RESULT(record, waybill_get_record(s, copy, &record, &error));
    INVALID(waybill_delete_record(s, copy, &error));
    INVALID(waybill_has_intent(s, copy, &flag, &error));
    INVALID(waybill_put_intent(s, copy, &error));
    INVALID(waybill_delete_intent(s, copy, &error));
    INVALID_RESULT(outcome,
                   waybill_ensure_image(s, copy, WAYBILL_PULL_ALWAYS, &kPod, &outcome, &error));
    CHECK(waybill_must_attempt_pull(s, copy, &kPod).pull);
  }
  waybill_user_namespace_allocation* allocation;
  INVALID_RESULT(allocation, waybill_get_user_namespace(s, kNowhere, &allocation, &error));
  INVALID(waybill_release_user_namespace(s, kNowhere, NULL, &flag, &error));
  INVALID(waybill_adopt_user_namespace(s, kNowhere, 65536, 65536, &error));
}

static void functions_without_a_store(void) {
  waybill_store* store;
  waybill_policy* policy;
  waybill_string* string;
  waybill_platform* platform;
  waybill_backups* backups;
  size_t chosen;
  const waybill_platform linux_amd64 = {.architecture = WAYBILL_STRING("amd64"),
                                        .os = WAYBILL_STRING("linux")};
  const waybill_image_index empty = {NULL, 0};
  const waybill_image_index nowhere = {NULL, 1};
  const waybill_open_options open = store_options("null");
  waybill_observe_options observe = WAYBILL_OBSERVE_OPTIONS_INIT;
  observe.directory = open.directory;
  waybill_migrate_options migrate = WAYBILL_MIGRATE_OPTIONS_INIT;
  migrate.directory = kNowhere;
  waybill_restore_options restore = WAYBILL_RESTORE_OPTIONS_INIT;
  restore.directory = kNowhere;

  INVALID_RESULT(store, waybill_open(NULL, &store, &error));
  INVALID(waybill_open(&open, NULL, &error));
  INVALID_RESULT(store, waybill_observe(NULL, &store, &error));
  INVALID(waybill_observe(&observe, NULL, &error));
  INVALID(waybill_migrate(NULL, NULL, &error));
  INVALID(waybill_migrate(&migrate, NULL, &error));
  INVALID(waybill_restore(NULL, NULL, &error));
  INVALID(waybill_restore(&restore, NULL, &error));
  INVALID(waybill_serve(NULL, NULL, &error));
  INVALID(waybill_list_backups(open.directory, NULL, &error));
  INVALID_RESULT(backups, waybill_list_backups(kNowhere, &backups, &error));

  INVALID(waybill_hash_credentials(NONE, NONE, NONE, NULL, &error));
  INVALID_RESULT(string, waybill_hash_credentials(kNowhere, NONE, NONE, &string, &error));
  INVALID_RESULT(string, waybill_hash_credentials(NONE, kNowhere, NONE, &string, &error));
  INVALID_RESULT(string, waybill_hash_credentials(NONE, NONE, kNowhere, &string, &error));
  CHECK(waybill_parse_image(IMAGE, NULL));
  CHECK(!waybill_parse_image(kNowhere, NULL));
  DECODER(waybill_string, waybill_normalise_image, IMAGE);
  DECODER(waybill_string, waybill_repository_of, IMAGE);
  DECODER(waybill_platform, waybill_parse_platform, WAYBILL_STRING("linux/amd64"));
  INVALID(waybill_format_platform(&linux_amd64, NULL, &error));
  INVALID_RESULT(string, waybill_format_platform(NULL, &string, &error));
  INVALID(waybill_normalise_platform(&linux_amd64, NULL, &error));
  INVALID_RESULT(platform, waybill_normalise_platform(NULL, &platform, &error));
  DECODER(waybill_image_index, waybill_decode_image_index, WAYBILL_STRING("{}"));
  INVALID(waybill_choose_manifest(NULL, &linux_amd64, NULL, &chosen, &error));
  INVALID(waybill_choose_manifest(&nowhere, &linux_amd64, NULL, &chosen, &error));
  INVALID(waybill_choose_manifest(&empty, NULL, NULL, &chosen, &error));
  INVALID(waybill_choose_manifest(&empty, &linux_amd64, NULL, NULL, &error));

  const waybill_strings no_patterns = {NULL, 1};
  const waybill_strings pattern_of_nowhere = {&kNowhere, 1};
  INVALID(waybill_policy_make(WAYBILL_ALWAYS_VERIFY, (waybill_strings){NULL, 0},
                              WAYBILL_ALLOWLIST_ANY_IMAGE, NULL, &error));
  INVALID_RESULT(policy, waybill_policy_make(WAYBILL_NEVER_VERIFY_ALLOWLISTED_IMAGES, no_patterns,
                                             WAYBILL_ALLOWLIST_ANY_IMAGE, &policy, &error));
  INVALID_RESULT(policy,
                 waybill_policy_make(WAYBILL_NEVER_VERIFY_ALLOWLISTED_IMAGES, pattern_of_nowhere,
                                     WAYBILL_ALLOWLIST_ANY_IMAGE, &policy, &error));
  CHECK(waybill_policy_mode(NULL) == WAYBILL_NEVER_VERIFY_PRELOADED_IMAGES);
  CHECK(waybill_policy_scope(NULL) == WAYBILL_ALLOWLIST_ANY_IMAGE);
  CHECK(waybill_policy_requires_verification(NULL, kNowhere, WAYBILL_ORIGIN_KUBELET_PULLED));
}

static void json_and_names(void) {
  const waybill_string json = WAYBILL_STRING("{}");
  waybill_string* string;
  DECODER(waybill_image_pulled_record, waybill_decode_pulled_record, json);
  DECODER(waybill_image_pull_intent, waybill_decode_pull_intent, json);
  DECODER(waybill_image_preloaded_record, waybill_decode_preloaded_record, json);
  DECODER(waybill_images_on_node, waybill_decode_image_list, json);
  DECODER(waybill_strings, waybill_decode_pod_list, json);
  DECODER(waybill_runtime_handlers, waybill_decode_runtime_status, json);
  DECODER(waybill_registry_auths, waybill_decode_auth_document, json);

  const waybill_image_pulled_record some_record = {.image_ref = REF};
  const waybill_image_pull_intent some_intent = {.image = IMAGE};
  const waybill_image_preloaded_record some_preloaded = {.image_ref = REF};
  INVALID(waybill_encode_pulled_record(&some_record, WAYBILL_KUBELET_V1BETA1, NULL, &error));
  INVALID_RESULT(string,
                 waybill_encode_pulled_record(NULL, WAYBILL_KUBELET_V1BETA1, &string, &error));
  INVALID(waybill_encode_pull_intent(&some_intent, WAYBILL_KUBELET_V1BETA1, NULL, &error));
  INVALID_RESULT(string,
                 waybill_encode_pull_intent(NULL, WAYBILL_KUBELET_V1BETA1, &string, &error));
  INVALID(waybill_encode_preloaded_record(&some_preloaded, WAYBILL_KUBELET_V1BETA1, NULL, &error));
  INVALID_RESULT(string,
                 waybill_encode_preloaded_record(NULL, WAYBILL_KUBELET_V1BETA1, &string, &error));

  waybill_timestamp time;
  int32_t number;
  waybill_user_namespace_pool pool;
  INVALID(waybill_format_timestamp((waybill_timestamp){0, 0}, NULL, &error));
  INVALID(waybill_parse_timestamp(WAYBILL_STRING("2026-01-02T03:04:05Z"), NULL, &error));
  INVALID(waybill_parse_timestamp(kNowhere, &time, &error));
  INVALID(waybill_parse_rules(WAYBILL_STRING("closed"), NULL, &error));
  INVALID(waybill_parse_rules(kNowhere, &number, &error));
  INVALID(waybill_parse_verification_mode(WAYBILL_STRING("NeverVerify"), NULL, &error));
  INVALID(waybill_parse_verification_mode(kNowhere, &number, &error));
  INVALID(waybill_parse_pull_policy(WAYBILL_STRING("Always"), NULL, &error));
  INVALID(waybill_parse_pull_policy(kNowhere, &number, &error));
  INVALID(waybill_parse_short_names(WAYBILL_STRING("anywhere"), NULL, &error));
  INVALID(waybill_parse_short_names(kNowhere, &number, &error));
  waybill_strings* names;
  const waybill_open_pull some_pull = {.state = WAYBILL_OPEN_PULL_RUNNING};
  INVALID(waybill_names_given_by(&some_pull, WAYBILL_SHORT_NAMES_ANYWHERE, NULL, &error));
  INVALID_RESULT(names, waybill_names_given_by(NULL, WAYBILL_SHORT_NAMES_ANYWHERE, &names, &error));
  waybill_open_pull pull_of_nowhere = some_pull;
  pull_of_nowhere.image = kNowhere;
  INVALID_RESULT(names, waybill_names_given_by(&pull_of_nowhere, WAYBILL_SHORT_NAMES_ANYWHERE,
                                               &names, &error));
  INVALID(waybill_check_user_namespace_pool(NULL, &error));
  INVALID(waybill_pool_of_subordinate_ids(false, false, NONE, NONE, 65536, 110, NULL, &error));
  INVALID(waybill_pool_of_subordinate_ids(true, true, kNowhere, NONE, 65536, 110, &pool, &error));
  INVALID(waybill_pool_of_subordinate_ids(true, true, NONE, kNowhere, 65536, 110, &pool, &error));
}

int main(void) {
  no_store();
  waybill_store* store = open_store("store");
  pull(store, IMAGE, REF);
  no_result_of_a_store(store);
  no_value_for_a_store(store);
  strings_of_nowhere(store);
  CHECK(may_use(store, &kPod));
  end_store(store);
  functions_without_a_store();
  json_and_names();
  return check_result();
}
