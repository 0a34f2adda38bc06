/* Runtime handlers, outcomes for a pod, and what the store says of itself. */

#include <string.h>

#include "support.h"

static waybill_error* error;

#define KATA WAYBILL_STRING("kata")

static const waybill_platform kGuest = {.architecture = {"arm64", 5}, .os = {"linux", 5}};
static const waybill_runtime_handler kHandlers[] = {
    {.name = {"runc", 4}, .is_default = true, .user_namespaces = true},
    {.name = {"kata", 4}, .guest_platform = &kGuest}};
static const waybill_runtime_handlers kRegistry = {kHandlers, 2};

static void registry(waybill_store* store) {
  waybill_runtimes_report* report = NULL;
  MUST(waybill_replace_runtime_handlers(store, &kRegistry, &kDryRun, &report, &error));
  CHECK(report->added.count == 2);
  waybill_free(report);
  MUST(waybill_replace_runtime_handlers(store, &kRegistry, NULL, &report, &error));
  CHECK(report->added.count == 2 && report->vanished.count == 0 && report->turned_on);
  waybill_free(report);
  waybill_runtime_handlers* handlers = NULL;
  MUST(waybill_list_runtime_handlers(store, &handlers, &error));
  CHECK(handlers->count == 2);
  CHECK_TEXT("kata", handlers->items[0].name);
  CHECK_TEXT("arm64", handlers->items[0].guest_platform->architecture);
  CHECK_TEXT("runc", handlers->items[1].name);
  CHECK(handlers->items[1].is_default && handlers->items[1].user_namespaces);
  CHECK(handlers->items[1].guest_platform == NULL);
  /* What was read can be written again, and changes nothing. */
  MUST(waybill_replace_runtime_handlers(store, handlers, NULL, &report, &error));
  CHECK(report->added.count == 0 && report->changed.count == 0);
  waybill_free(report);
  waybill_free(handlers);

  const waybill_runtime_handler twice[] = {kHandlers[1], kHandlers[1]};
  const waybill_runtime_handlers wrong = {twice, 2};
  report = check_poison();
  INVALID(waybill_replace_runtime_handlers(store, &wrong, NULL, &report, &error));
  CHECK(report == NULL);
}

static void copies(waybill_store* store) {
  MUST(waybill_record_pull_intent(store, COPY(.image = IMAGE, .runtime_handler = KATA), NULL,
                                  &error));
  waybill_image_pull_intents* intents = NULL;
  MUST(waybill_list_intents(store, &intents, &error));
  CHECK(intents->count == 1);
  CHECK_TEXT("kata", intents->items[0].runtime_handler);
  waybill_free(intents);
  MUST(waybill_record_image_pulled(store,
                                   COPY(.image = IMAGE, .image_ref = REF, .runtime_handler = KATA),
                                   &kCredentials, NULL, &error));
  CHECK(waybill_must_attempt_pull(store, APP, &kPod).reason ==
        WAYBILL_REASON_PULLED_FOR_OTHER_HANDLER);
  waybill_image_pulled_record* record = NULL;
  CHECK_CODE(WAYBILL_NOT_FOUND, waybill_get_record(store, COPY(.image_ref = REF), &record, &error));
  MUST(waybill_get_record(store, COPY(.image_ref = REF, .runtime_handler = KATA), &record, &error));
  CHECK_TEXT("kata", record->runtime_handler);
  CHECK_TEXT("arm64", record->guest_platform->architecture);
  waybill_free(record);

  waybill_collapse_report* report = NULL;
  MUST(waybill_collapse_runtime_handlers(store, &kDryRun, &report, &error));
  CHECK(report->records == 1);
  waybill_free(report);
  MUST(waybill_collapse_runtime_handlers(store, NULL, &report, &error));
  CHECK(report->records == 1 && report->handlers.count == 1);
  CHECK_TEXT("kata", report->handlers.items[0]);
  waybill_free(report);
}

static int32_t ensured(waybill_store* store, waybill_string image, waybill_string ref,
                       int32_t policy, const waybill_pod_credentials* pod) {
  waybill_ensure_outcome* outcome = NULL;
  MUST(waybill_ensure_image(store, COPY(.image = image, .image_ref = ref), policy, pod, &outcome,
                            &error));
  const int32_t action = outcome->action;
  CHECK(action == WAYBILL_ENSURE_PULL || outcome->message.length > 0);
  if (pod == NULL && outcome->decided) {
    CHECK(outcome->decision.reason == WAYBILL_REASON_CREDENTIALS_UNAVAILABLE);
  }
  waybill_free(outcome);
  return action;
}

static void outcomes(waybill_store* store) {
  pull(store, IMAGE, REF);
  const int32_t if_not_present = WAYBILL_PULL_IF_NOT_PRESENT;
  CHECK(ensured(store, IMAGE, REF, if_not_present, &kPod) == WAYBILL_ENSURE_USE_PRESENT);
  CHECK(ensured(store, IMAGE, REF, if_not_present, &kPodWithout) == WAYBILL_ENSURE_PULL);
  CHECK(ensured(store, IMAGE, REF, if_not_present, NULL) == WAYBILL_ENSURE_PULL);
  CHECK(ensured(store, IMAGE, REF, WAYBILL_PULL_ALWAYS, &kPod) == WAYBILL_ENSURE_PULL);
  CHECK(ensured(store, IMAGE, NONE, WAYBILL_PULL_NEVER, &kPod) == WAYBILL_ENSURE_NEVER_PULL);
  CHECK(ensured(store, WAYBILL_STRING("A B"), NONE, if_not_present, &kPod) ==
        WAYBILL_ENSURE_INVALID_IMAGE_NAME);

  waybill_metrics* metrics = NULL;
  MUST(waybill_get_metrics(store, &metrics, &error));
  CHECK(metrics->mustpull_checks[WAYBILL_CHECK_CREDENTIAL_RECORD_FOUND] == 1);
  CHECK(metrics->mustpull_checks[WAYBILL_CHECK_NOT_COUNTED] == 0);
  CHECK(metrics->ensure_image_requests[WAYBILL_PULL_IF_NOT_PRESENT][1][0] == 1);
  CHECK(metrics->ensure_image_requests[WAYBILL_PULL_IF_NOT_PRESENT][1][1] == 2);
  CHECK(metrics->ondisk_pulledrecords == 1 && metrics->ondisk_pullintents == 0);
  CHECK(metrics->live_owner && metrics->readable && !metrics->distrustful);
  CHECK(metrics->records_by_handler_count == 1 && metrics->records_by_handler[0].records == 1);
  CHECK(metrics->records_by_handler[0].runtime_handler.length == 0);
  CHECK(metrics->schema_version == waybill_newest_schema() && metrics->commit_sequence > 0);
  CHECK(metrics->used_bytes > 0 && metrics->used_bytes < metrics->map_bytes);
  CHECK(metrics->readers > 0 && metrics->readers <= metrics->max_readers);
  CHECK(metrics->counters != NULL && metrics->last_opening != NULL);
  const waybill_store_counters* counters = metrics->counters;
  CHECK(counters->decisions[WAYBILL_REASON_SECRET_HASH_MATCHES] == 1);
  CHECK(counters->mustpull_checks[WAYBILL_CHECK_CREDENTIAL_RECORD_FOUND] == 1);
  CHECK(counters->ensure_image_requests[WAYBILL_PULL_IF_NOT_PRESENT][1][1] == 2);
  /* Of four that may use one on the node, two had to verify it again. */
  CHECK(counters->reverification_ratio == 0.5);
  CHECK(counters->commit_failures == 0 && counters->write_back_failures == 0);
  CHECK(metrics->last_opening->created && metrics->last_opening->at.seconds > 0);
  CHECK(!metrics->last_opening->rebuilt && metrics->last_opening->damage == 0);
  waybill_free(metrics);
  waybill_string* exposition = NULL;
  MUST(waybill_metrics_text(store, &exposition, &error));
  CHECK_CONTAINS("kubelet_imagemanager_image_mustpull_checks_total", *exposition);
  CHECK_CONTAINS("waybill_decisions_total{reason=\"secretHashMatches\"} 1", *exposition);
  waybill_free(exposition);
  waybill_verify_report* verified = NULL;
  MUST(waybill_verify(store, &verified, &error));
  CHECK(verified->sound && verified->pages > 0 && verified->values > 0);
  waybill_free(verified);
}

static void with_opening(void) {
  waybill_open_options options = store_options("opened-with");
  options.runtime_handlers = &kRegistry;
  waybill_store* store = open_with(&options);
  waybill_recovery_report* report = report_of(store);
  CHECK(report->runtimes != NULL && report->runtimes->added.count == 2);
  waybill_free(report);
  end_store(store);
}

int main(void) {
  waybill_store* store = open_store("store");
  registry(store);
  copies(store);
  outcomes(store);
  end_store(store);
  with_opening();
  return check_result();
}
