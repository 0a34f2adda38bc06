/* A question in two calls: the second one compares with what the first one saw. */

#include "calls.h"
#include "support.h"

static waybill_error* error;

#define OTHER_REF WAYBILL_STRING("sha256:another")

static waybill_store* open_with(const char* name, int32_t rules) {
  waybill_open_options options = store_options(name);
  options.rules = rules;
  waybill_store* store = NULL;
  MUST(waybill_open(&options, &store, &error));
  pull(store, IMAGE, REF);
  return store;
}

static uint64_t checks(waybill_store* store, size_t result) {
  waybill_metrics* metrics = NULL;
  MUST(waybill_get_metrics(store, &metrics, &error));
  const uint64_t count = metrics->mustpull_checks[result];
  waybill_free(metrics);
  return count;
}

/* IMAGE has no record any more. */
static void prune_the_record(waybill_store* store) {
  const waybill_listed_image listed = {OTHER_REF, NONE};
  waybill_prune_report* report = NULL;
  MUST(waybill_prune_before(store, &listed, 1, (waybill_timestamp){INT64_C(4000000000), 0}, NULL,
                            &report, &error));
  CHECK(report->removed == 1);
  waybill_free(report);
}

/* A question whose record goes between the two calls. */
static waybill_decision ask(const char* name, int32_t rules, const waybill_pod_credentials* pod,
                            uint64_t counts[5]) {
  waybill_store* store = open_with(name, rules);
  waybill_first_look* look = NULL;
  const waybill_decision first =
      waybill_must_attempt_pull_first(store, COPY(.image = IMAGE, .image_ref = REF), &look);
  CHECK(first.pull && look != NULL);
  CHECK(first.result == WAYBILL_CHECK_NOT_COUNTED);
  CHECK(first.reason == WAYBILL_REASON_CREDENTIALS_NEEDED);
  prune_the_record(store);
  const waybill_decision second =
      waybill_must_attempt_pull_second(store, COPY(.image = IMAGE, .image_ref = REF), look, pod);
  for (size_t i = 1; i < 5; ++i) counts[i] = checks(store, i);
  CHECK(waybill_must_attempt_pull_second(store, COPY(.image = IMAGE, .image_ref = OTHER_REF), look,
                                         &kPod)
            .pull);
  MUST(waybill_free(look));
  end_store(store);
  return second;
}

static void a_record_that_goes_between_two_calls(const char* name, int32_t rules) {
  uint64_t counts[5];
  waybill_decision decision = ask(name, rules, &kPodWithout, counts);
  CHECK(decision.pull && decision.reason == WAYBILL_REASON_NO_CREDENTIAL_MATCHES);
  CHECK(counts[WAYBILL_CHECK_MUST_AUTHENTICATE] == 1);
  CHECK(counts[WAYBILL_CHECK_CREDENTIAL_POLICY_ALLOWED] == 0);
}

static void credentials_that_matched_it(const char* name, int32_t rules) {
  uint64_t counts[5];
  const waybill_decision decision = ask(name, rules, &kPod, counts);
  CHECK(!decision.pull && decision.reason == WAYBILL_REASON_SECRET_HASH_MATCHES);
  CHECK(counts[WAYBILL_CHECK_CREDENTIAL_RECORD_FOUND] == 1);
}

static void credentials_that_could_not_be_had(const char* name, int32_t rules) {
  uint64_t counts[5];
  const waybill_decision decision = ask(name, rules, NULL, counts);
  CHECK(decision.pull && decision.reason == WAYBILL_REASON_CREDENTIALS_UNAVAILABLE);
  CHECK(counts[WAYBILL_CHECK_ERROR] == 1);
  CHECK(counts[WAYBILL_CHECK_CREDENTIAL_POLICY_ALLOWED] == 0);
}

static void the_outer_question(const char* name, int32_t rules) {
  waybill_store* store = open_with(name, rules);
  waybill_first_look* look = NULL;
  waybill_ensure_outcome* outcome = NULL;
  MUST(waybill_ensure_image_first(store, COPY(.image = IMAGE, .image_ref = REF),
                                  WAYBILL_PULL_IF_NOT_PRESENT, &look, &outcome, &error));
  CHECK(look != NULL && outcome->action == WAYBILL_ENSURE_PULL);
  CHECK(outcome->decision.reason == WAYBILL_REASON_CREDENTIALS_NEEDED);
  waybill_free(outcome);
  prune_the_record(store);
  MUST(waybill_ensure_image_second(store, COPY(.image = IMAGE, .image_ref = REF),
                                   WAYBILL_PULL_IF_NOT_PRESENT, look, &kPodWithout, &outcome,
                                   &error));
  CHECK(outcome->action == WAYBILL_ENSURE_PULL);
  waybill_free(outcome);
  MUST(waybill_ensure_image_second(store, COPY(.image = IMAGE, .image_ref = REF),
                                   WAYBILL_PULL_IF_NOT_PRESENT, look, &kPod, &outcome, &error));
  CHECK(outcome->action == WAYBILL_ENSURE_USE_PRESENT);
  waybill_free(outcome);
  waybill_free(look);
  end_store(store);
}

static void one_call_is_enough(void) {
  waybill_store* store = open_with("enough", WAYBILL_RULES_CLOSED);
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
  waybill_store* store = open_with("null", WAYBILL_RULES_CLOSED);
  CHECK(waybill_must_attempt_pull_first(store, COPY(.image = IMAGE, .image_ref = REF), NULL).pull);
  CHECK(waybill_must_attempt_pull_second(store, COPY(.image = IMAGE, .image_ref = REF), NULL, &kPod)
            .pull);
  waybill_first_look* look = check_poison();
  CHECK(waybill_must_attempt_pull_first(NULL, COPY(.image = IMAGE, .image_ref = REF), &look).pull &&
        look == NULL);
  waybill_ensure_outcome* outcome = check_poison();
  CHECK_CODE(WAYBILL_INVALID_ARGUMENT,
             waybill_ensure_image_first(store, COPY(.image = IMAGE, .image_ref = REF),
                                        WAYBILL_PULL_NEVER, NULL, &outcome, &error));
  CHECK(outcome == NULL);
  look = check_poison();
  CHECK_CODE(WAYBILL_INVALID_ARGUMENT,
             waybill_ensure_image_first(store, COPY(.image = IMAGE, .image_ref = REF),
                                        WAYBILL_PULL_NEVER, &look, NULL, &error));
  CHECK(look == NULL);
  CHECK_CODE(WAYBILL_INVALID_ARGUMENT,
             waybill_ensure_image_second(store, COPY(.image = IMAGE, .image_ref = REF),
                                         WAYBILL_PULL_NEVER, NULL, &kPod, &outcome, &error));
  end_store(store);
}

int main(void) {
  a_record_that_goes_between_two_calls("stranger-closed", WAYBILL_RULES_CLOSED);
  a_record_that_goes_between_two_calls("stranger-kubelet", WAYBILL_RULES_KUBELET);
  credentials_that_matched_it("match-closed", WAYBILL_RULES_CLOSED);
  credentials_that_matched_it("match-kubelet", WAYBILL_RULES_KUBELET);
  credentials_that_could_not_be_had("failing-closed", WAYBILL_RULES_CLOSED);
  credentials_that_could_not_be_had("failing-kubelet", WAYBILL_RULES_KUBELET);
  the_outer_question("ensure-closed", WAYBILL_RULES_CLOSED);
  the_outer_question("ensure-kubelet", WAYBILL_RULES_KUBELET);
  one_call_is_enough();
  null_pointers();
  return check_result();
}
