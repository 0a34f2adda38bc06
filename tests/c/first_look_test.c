/* A decision in two calls: the second compares with what the first saw. */

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

/* The record is pruned between the two calls: the second answers as the record said, or as the
 * closed rules say of an image that nothing is known of. */
static void record_gone_between_two_calls(int32_t rules) {
  const struct {
    const waybill_pod_credentials* pod; /* NULL: they could not be had */
    int32_t reason;
  } kCases[] = {{&kPodWithout, WAYBILL_REASON_NO_CREDENTIAL_MATCHES},
                {&kPod, rules == WAYBILL_RULES_KUBELET ? WAYBILL_REASON_SECRET_HASH_MATCHES
                                                       : WAYBILL_REASON_NO_EVIDENCE},
                {NULL, WAYBILL_REASON_CREDENTIALS_UNAVAILABLE}};
  for (size_t i = 0; i < sizeof(kCases) / sizeof(kCases[0]); ++i) {
    waybill_store* store = open_under(rules);
    waybill_first_look* look = NULL;
    const waybill_decision first = waybill_must_attempt_pull_first(store, APP, &look);
    CHECK(first.pull && look != NULL);
    CHECK(first.result == WAYBILL_CHECK_NOT_COUNTED);
    CHECK(first.reason == WAYBILL_REASON_CREDENTIALS_NEEDED);
    prune_the_record(store);
    const waybill_decision second =
        waybill_must_attempt_pull_second(store, APP, look, kCases[i].pod);
    CHECK(second.reason == kCases[i].reason);
    CHECK(second.pull == (second.reason != WAYBILL_REASON_SECRET_HASH_MATCHES));
    const waybill_image_copy other = COPY(.image = IMAGE, .image_ref = OTHER_REF);
    CHECK(waybill_must_attempt_pull_second(store, other, look, &kPod).pull);
    MUST(waybill_free(look));
    end_store(store);
  }
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

static void one_call_is_enough(void) {
  waybill_store* store = open_under(WAYBILL_RULES_CLOSED);
  const waybill_image_on_node preloaded = {.id = OTHER_REF};
  MUST(waybill_add_to_ledger(store, &preloaded, WAYBILL_STRING("a test"), WAYBILL_STRING("a test"),
                             NULL, &error));
  waybill_first_look* look = check_poison();
  CHECK(!waybill_must_attempt_pull_first(store, COPY(.image = IMAGE, .image_ref = OTHER_REF), &look)
             .pull);
  CHECK(look == NULL);
  waybill_ensure_outcome* outcome = NULL;
  MUST(waybill_ensure_image_first(store, COPY(.image = IMAGE, .image_ref = OTHER_REF),
                                  WAYBILL_PULL_IF_NOT_PRESENT, &look, &outcome, &error));
  CHECK(look == NULL && outcome->action == WAYBILL_ENSURE_USE_PRESENT);
  waybill_free(outcome);
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
    record_gone_between_two_calls(rules);
    the_outer_question(rules);
  }
  one_call_is_enough();
  null_pointers();
  return check_result();
}
