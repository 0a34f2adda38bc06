/* A decision in two calls: the second gets what the first saw. What it makes of that is judged by
 * unit/first_look. */

#include "calls.h"
#include "support.h"

static waybill_error* error;

#define OTHER_REF WAYBILL_STRING("sha256:another")

/* A store of its own each time. */
static waybill_store* open_under(int32_t rules) {
  static char name[] = "a";
  waybill_open_options options = store_options(name);
  ++name[0];
  options.rules = rules;
  waybill_store* store = open_with(&options);
  pull(store, IMAGE, REF);
  return store;
}

/* Removes the record of IMAGE. */
static void prune_the_record(waybill_store* store) {
  const waybill_image_on_node other = {.id = OTHER_REF};
  const waybill_images_on_node listed = {&other, 1};
  waybill_prune_report* report = NULL;
  MUST(waybill_prune_before(store, listed, (waybill_timestamp){INT64_C(4000000000), 0}, NULL,
                            &report, &error));
  CHECK(report->removed == 1);
  waybill_free(report);
}

static void the_question(int32_t rules) {
  waybill_store* store = open_under(rules);
  waybill_first_look* look = NULL;
  const waybill_decision first = waybill_must_attempt_pull_first(store, APP, &look);
  CHECK(first.pull && look != NULL);
  CHECK(first.reason == WAYBILL_REASON_CREDENTIALS_NEEDED);
  prune_the_record(store);
  CHECK(waybill_must_attempt_pull_second(store, APP, look, &kPod).pull ==
        (rules == WAYBILL_RULES_CLOSED));
  MUST(waybill_free(look));
  end_store(store);
}

static void the_outer_question(int32_t rules) {
  waybill_store* store = open_under(rules);
  waybill_first_look* look = NULL;
  waybill_ensure_outcome* outcome = NULL;
  MUST(
      waybill_ensure_image_first(store, APP, WAYBILL_PULL_IF_NOT_PRESENT, &look, &outcome, &error));
  CHECK(look != NULL && outcome->action == WAYBILL_ENSURE_PULL);
  CHECK(outcome->decision.reason == WAYBILL_REASON_CREDENTIALS_NEEDED);
  waybill_free(outcome);
  prune_the_record(store);
  MUST(waybill_ensure_image_second(store, APP, WAYBILL_PULL_IF_NOT_PRESENT, look, &kPod, &outcome,
                                   &error));
  CHECK(outcome->action ==
        (rules == WAYBILL_RULES_KUBELET ? WAYBILL_ENSURE_USE_PRESENT : WAYBILL_ENSURE_PULL));
  waybill_free(outcome);
  waybill_free(look);
  end_store(store);
}

static void null_pointers(void) {
  waybill_store* store = open_under(WAYBILL_RULES_CLOSED);
  CHECK(waybill_must_attempt_pull_first(store, APP, NULL).pull);
  CHECK(waybill_must_attempt_pull_second(store, APP, NULL, &kPod).pull);
  waybill_first_look* look = check_poison();
  CHECK(waybill_must_attempt_pull_first(NULL, APP, &look).pull && look == NULL);
  waybill_ensure_outcome* outcome = check_poison();
  INVALID(waybill_ensure_image_first(store, APP, WAYBILL_PULL_NEVER, NULL, &outcome, &error));
  CHECK(outcome == NULL);
  look = check_poison();
  INVALID(waybill_ensure_image_first(store, APP, WAYBILL_PULL_NEVER, &look, NULL, &error));
  CHECK(look == NULL);
  INVALID(
      waybill_ensure_image_second(store, APP, WAYBILL_PULL_NEVER, NULL, &kPod, &outcome, &error));
  end_store(store);
}

int main(void) {
  for (int32_t rules = WAYBILL_RULES_CLOSED; rules <= WAYBILL_RULES_KUBELET; ++rules) {
    the_question(rules);
    the_outer_question(rules);
  }
  null_pointers();
  return check_result();
}
