/* Evidence: lists of images, the ledger of what was preloaded, open pulls, and what a store
 * explains. */

#include <string.h>

#include "support.h"

static waybill_error* error;

#define TAG WAYBILL_STRING("registry.example.com/base/pause:3.10")
#define HEX "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define ID WAYBILL_STRING("sha256:" HEX)
#define BARE_ID WAYBILL_STRING(HEX)
#define WHY WAYBILL_STRING("a test")

static const int64_t kBootSeconds = 1000;
static const uint8_t kBootNumber = 1;

static waybill_boot_time since_boot(void* context) {
  ++*(int*)context;
  waybill_boot_time time = {.nanoseconds = kBootSeconds * 1000000000};
  time.boot_id[0] = kBootNumber;
  return time;
}

static int asked_for_boot_time;

static waybill_open_options on_node_options(const char* name) {
  waybill_open_options options = store_options(name);
  options.boot_clock = since_boot;
  options.boot_clock_context = &asked_for_boot_time;
  return options;
}

/* The runtime's complete list, of one image. */
static waybill_observe_report* observe(waybill_store* store, const waybill_image_on_node* image) {
  waybill_list_token token;
  MUST(waybill_begin_list(store, &token, &error));
  waybill_image_list list = WAYBILL_IMAGE_LIST_INIT;
  list.images = (waybill_images_on_node){image, 1};
  list.token = &token;
  list.complete = true;
  waybill_observe_report* report = NULL;
  MUST(waybill_observe_images(store, &list, NULL, &report, &error));
  return report;
}

static size_t open_pulls(waybill_store* store) {
  waybill_open_pulls* pulls = NULL;
  MUST(waybill_list_open_pulls(store, &pulls, &error));
  const size_t count = pulls->count;
  waybill_free(pulls);
  return count;
}

static void preloaded_images_enter_the_ledger(void) {
  const waybill_open_options options = on_node_options("ledger");
  waybill_store* store = open_with(&options);
  const waybill_string digest = WAYBILL_STRING(
      "registry.example.com/base/pause@sha256:"
      "9a3f2c5ef0d8a6b1c4e7d09f8b6a5c4d3e2f1a0b9c8d7e6f5a4b3c2d1e0f9a8b");
  const waybill_image_on_node image = {
      .id = ID, .repo_tags = {&TAG, 1}, .repo_digests = {&digest, 1}};
  waybill_observe_report* report = observe(store, &image);
  CHECK(report->listed == 1 && report->preloaded == 1 && report->closed == 0);
  CHECK(report->known == 0 && report->left == 0 && report->repeated == 0 && report->united == 0);
  CHECK(report->not_names == 0 && report->pulls_settled == 0 && report->records_removed == 0);
  CHECK(report->judged_count == 1 && report->judged[0].preloaded);
  CHECK_TEXT("sha256:" HEX, report->judged[0].image_ref);
  CHECK_TEXT("", report->judged[0].runtime_handler);
  CHECK_TEXT(TAG.data, report->judged[0].name);
  CHECK(report->judged[0].because.length > 0);
  CHECK(report->shared_digests.count == 0 && report->preloaded_removed == 0);
  CHECK_TEXT("", report->not_judged_because);
  waybill_free(report);

  waybill_ledger_entries* entries = NULL;
  MUST(waybill_list_ledger(store, &entries, &error));
  CHECK(entries->count == 1 && entries->items[0].names.count == 2);
  CHECK_TEXT("sha256:" HEX, entries->items[0].image_ref);
  CHECK_TEXT("", entries->items[0].runtime_handler);
  CHECK_TEXT(TAG.data, entries->items[0].names.items[0]);
  CHECK_TEXT(WAYBILL_PRESUMED_SOURCE, entries->items[0].source);
  CHECK_TEXT("", entries->items[0].reason);
  CHECK(entries->items[0].since.seconds > 1767225600 && entries->items[0].stamp > 0);
  waybill_free(entries);
  waybill_statistics* statistics = NULL;
  MUST(waybill_get_statistics(store, &statistics, &error));
  CHECK(statistics->ledger_entries == 1 && statistics->spellings >= 2);
  waybill_free(statistics);
  CHECK(asked_for_boot_time > 0);

  /* An operator's word on what is presumed. */
  waybill_metrics* metrics = NULL;
  MUST(waybill_get_metrics(store, &metrics, &error));
  CHECK(metrics->preloaded_images == 1 && metrics->presumed_images == 1);
  waybill_free(metrics);
  bool presumed = false;
  MUST(waybill_settle_presumed(store, COPY(.image_ref = BARE_ID), WAYBILL_SETTLED_PRELOADED, WHY,
                               NULL, &presumed, &error));
  CHECK(presumed);
  INVALID(waybill_settle_presumed(store, COPY(.image_ref = ID), 7, WHY, NULL, NULL, &error));

  /* An operator's word against it, and for it. */
  bool removed = false;
  MUST(waybill_remove_from_ledger(store, COPY(.image_ref = BARE_ID), WHY, &kDryRun, &removed,
                                  &error));
  CHECK(removed);
  MUST(waybill_remove_from_ledger(store, COPY(.image_ref = BARE_ID), WHY, NULL, &removed, &error));
  CHECK(removed);
  MUST(waybill_remove_from_ledger(store, COPY(.image_ref = ID), WHY, NULL, &removed, &error));
  CHECK(!removed);
  waybill_image_pulled_records* records = NULL;
  MUST(waybill_list_records(store, &records, &error));
  CHECK(records->count == 1 && records->items[0].closed_because.length > 0);
  CHECK(records->items[0].credential_mapping_count == 0);
  waybill_free(records);
  waybill_trust_state* trust = NULL;
  MUST(waybill_get_trust(store, &trust, &error));
  CHECK(!trust->distrustful && trust->journal_count > 0);
  CHECK(trust->journal[trust->journal_count - 1].action == WAYBILL_TRUST_NOTE);
  waybill_free(trust);

  MUST(waybill_add_to_ledger(store, &image, WAYBILL_STRING("installer"), WHY, NULL, &error));
  MUST(waybill_list_ledger(store, &entries, &error));
  CHECK_TEXT("installer", entries->items[0].source);
  CHECK_TEXT("a test", entries->items[0].reason);
  waybill_free(entries);
  end_store(store);
}

static void each_pull_has_an_id(void) {
  waybill_open_options options = on_node_options("pulls");
  waybill_store* store = open_with(&options);
  waybill_pull_id first = 0;
  waybill_pull_id second = 0;
  MUST(waybill_record_pull_intent(store, COPY(.image = TAG), &first, &error));
  MUST(waybill_record_pull_intent(store, COPY(.image = TAG), &second, &error));
  CHECK(first != 0 && second != 0 && first != second);
  CHECK(open_pulls(store) == 2);
  /* Another pull's success does not end it. */
  waybill_pull_result result = WAYBILL_PULL_RESULT_INIT;
  const waybill_image_on_node entry = {.id = REF, .repo_tags = {&TAG, 1}};
  result.pull = first;
  result.image = &entry;
  MUST(waybill_record_image_pulled(store, COPY(.image = TAG, .image_ref = REF), &kCredentials,
                                   &result, &error));
  waybill_open_pulls* pulls = NULL;
  MUST(waybill_list_open_pulls(store, &pulls, &error));
  CHECK(pulls->count == 1 && pulls->items[0].id == second);
  CHECK(pulls->items[0].state == WAYBILL_OPEN_PULL_RUNNING && pulls->items[0].ended == NULL);
  CHECK(!pulls->items[0].anything && !pulls->items[0].several && pulls->items[0].stamp > 0);
  CHECK_TEXT(TAG.data, pulls->items[0].image);
  CHECK_TEXT("", pulls->items[0].runtime_handler);
  CHECK(pulls->items[0].began.seconds > 1767225600);
  waybill_strings* names = NULL;
  MUST(waybill_names_given_by(&pulls->items[0], WAYBILL_SHORT_NAMES_ANYWHERE, &names, &error));
  CHECK(names->count == 2);
  CHECK_TEXT(TAG.data, names->items[0]);
  waybill_free(names);
  waybill_free(pulls);
  CHECK_CODE(WAYBILL_CONFLICT, waybill_drop_open_pull(store, second, WHY, NULL, &error));

  MUST(waybill_record_image_pull_failed(store, COPY(.image = TAG), WAYBILL_PULL_OUTCOME_UNKNOWN,
                                        second, &error));
  MUST(waybill_list_open_pulls(store, &pulls, &error));
  CHECK(pulls->count == 1 && pulls->items[0].state == WAYBILL_OPEN_PULL_UNKNOWN);
  CHECK(pulls->items[0].ended != NULL && pulls->items[0].ended_at.boot_id[0] == kBootNumber);
  CHECK(pulls->items[0].ended_at.nanoseconds == kBootSeconds * 1000000000);
  const waybill_pull_id unknown = pulls->items[0].id;
  waybill_free(pulls);
  MUST(waybill_drop_open_pull(store, unknown, WHY, &kDryRun, &error));
  CHECK(open_pulls(store) == 1);
  MUST(waybill_drop_open_pull(store, unknown, WHY, NULL, &error));
  CHECK(open_pulls(store) == 0);

  /* A restart ends those that run, unless the process goes on with them. */
  MUST(waybill_record_pull_intent(store, COPY(.image = TAG), NULL, &error));
  end_store(store);
  options.continues_pulls = true;
  store = open_with(&options);
  MUST(waybill_list_open_pulls(store, &pulls, &error));
  CHECK(pulls->count == 1 && pulls->items[0].state == WAYBILL_OPEN_PULL_RUNNING);
  waybill_free(pulls);
  end_store(store);
}

#define KATA WAYBILL_STRING("kata")
/* By the SHA-256 of REF. */
#define UNREADABLE                  \
  "explained/image_manager/pulled/" \
  "sha256-e13d86e11689d3f85975e6a0359f8bed67e03a82c907e67968f8cfcc925bbaf0"

static int64_t now = 1767225600; /* 2026-01-01 */

static waybill_timestamp stands(void* context) {
  (void)context;
  return (waybill_timestamp){now, 0};
}

static waybill_explanation* explain(waybill_store* store, waybill_string handler) {
  waybill_explanation* explanation = NULL;
  MUST(waybill_explain(store, COPY(.image = IMAGE, .image_ref = REF, .runtime_handler = handler),
                       (waybill_strings){NULL, 0}, &explanation, &error));
  return explanation;
}

static void check_answer(const char* want, int32_t reason, waybill_string hint) {
  waybill_string* answer = NULL;
  MUST(waybill_other_answer(reason, hint, &answer, &error));
  CHECK_TEXT(want, *answer);
  waybill_free(answer);
}

static void explanations_say_what_counts(void) {
  make_directory(scratch("explained"));
  make_directory(scratch("explained/image_manager"));
  make_directory(scratch("explained/image_manager/pulled"));
  copy_file(fixture("metrics.txt"), scratch(UNREADABLE));
  const waybill_runtime_handler handlers[] = {{.name = {"runc", 4}, .is_default = true},
                                              {.name = {"kata", 4}}};
  const waybill_runtime_handlers registry = {handlers, 2};
  waybill_age_limits limits = WAYBILL_AGE_LIMITS_INIT;
  limits.credentials_seconds = 7200;
  limits.service_accounts_seconds = 3600;
  waybill_open_options options = on_node_options("explained-store");
  options.kubelet_directory = scratch("explained");
  options.clock = stands;
  options.ages = &limits;
  options.runtime_handlers = &registry;
  waybill_store* store = open_with(&options);

  waybill_explanation* explanation = explain(store, NONE);
  CHECK(explanation->record == NULL && explanation->credential_count == 0);
  CHECK(explanation->credentials == NULL && explanation->image_names.count == 0);
  CHECK(!explanation->unreadable && explanation->in_quarantine);
  if (!CHECK(explanation->quarantine.count == 1)) check_exit();
  CHECK(explanation->quarantine.items[0].kind == WAYBILL_QUARANTINED_IMAGE_REF);
  CHECK(explanation->quarantine.items[0].source.length > 0);
  waybill_free(explanation);

  pull(store, IMAGE, REF); /* ends the quarantine */
  const waybill_image_pull_service_account account = {
      WAYBILL_STRING("uid-2"), WAYBILL_STRING("tenant-a"), WAYBILL_STRING("builder")};
  const waybill_image_pull_credentials by_account = {.service_accounts = &account,
                                                     .service_account_count = 1};
  MUST(waybill_record_pull_intent(store, APP, NULL, &error));
  MUST(waybill_record_image_pulled(store, APP, &by_account, NULL, &error));
  const int64_t proven = now;
  now += 3601;
  explanation = explain(store, NONE);
  CHECK(explanation->recorded && explanation->quarantine.count == 0);
  if (!CHECK(explanation->record != NULL)) check_exit();
  CHECK_TEXT("sha256:aa", explanation->record->image_ref);
  CHECK(explanation->record->credential_mapping_count == 0 && explanation->record->stamp > 0);
  CHECK(explanation->image_names.count == 1);
  CHECK_TEXT(IMAGE_NAME, explanation->image_names.items[0]);
  CHECK(explanation->spellings.count == 1 && explanation->other_handlers.count == 0);
  CHECK_TEXT("sha256:aa", explanation->spellings.items[0]);
  if (!CHECK(explanation->credential_count == 2)) check_exit();
  const waybill_explained_credential* one = &explanation->credentials[0];
  CHECK(one->kind == WAYBILL_EXPLAINED_SECRET && one->standing == WAYBILL_STANDING_COUNTS);
  CHECK_TEXT(IMAGE_NAME, one->image_name);
  CHECK_TEXT("tenant-a", one->who.namespace_name);
  CHECK_TEXT("pull", one->who.name);
  CHECK_TEXT("uid-1", one->who.uid);
  CHECK(one->proof.proven != NULL && one->proof.proven->seconds == proven);
  CHECK(one->proof.pull_began > 0);
  ++one;
  CHECK(one->kind == WAYBILL_EXPLAINED_SERVICE_ACCOUNT);
  CHECK(one->standing == WAYBILL_STANDING_TOO_OLD);
  CHECK_TEXT("builder", one->who.name);
  CHECK_TEXT("tooOld", waybill_credential_standing_name(one->standing));
  CHECK_TEXT("counts", waybill_credential_standing_name(WAYBILL_STANDING_COUNTS));
  CHECK_TEXT("forgotten", waybill_credential_standing_name(WAYBILL_STANDING_FORGOTTEN));
  check_answer(explanation->hint.data, WAYBILL_REASON_NO_CREDENTIAL_MATCHES, explanation->hint);
  check_answer("a pull proves the credential again", WAYBILL_REASON_PROOF_TOO_OLD,
               explanation->hint);
  waybill_free(explanation);
  check_answer("the runtime has the image", WAYBILL_REASON_IMAGE_ABSENT, NONE);

  explanation = explain(store, KATA);
  CHECK(explanation->record == NULL && explanation->other_handlers.count == 1);
  CHECK_TEXT("", explanation->other_handlers.items[0]);
  waybill_free(explanation);

  /* A result outlives the store. */
  explanation = explain(store, NONE);
  end_store(store);
  CHECK_TEXT("pull", explanation->credentials[0].who.name);
  waybill_free(explanation);
}

int main(void) {
  explanations_say_what_counts();
  preloaded_images_enter_the_ledger();
  each_pull_has_an_id();
  return check_result();
}
