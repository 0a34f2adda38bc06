/* Callbacks: credentials that are fetched only if needed, a fetch that fails, and callbacks that
 * call their own store. */

#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "support.h"

static waybill_error* error;

typedef struct fetching {
  waybill_store* store;
  bool succeeds;
  bool calls_back;
  int count;
} fetching;

static bool fetch(void* context, waybill_pod_credentials* credentials) {
  fetching* self = context;
  ++self->count;
  if (self->calls_back) {
    check_all_calls(self->store, WAYBILL_INVALID_ARGUMENT);
    CHECK(all_decide_to_pull(self->store));
    waybill_recovery_report* report = check_poison();
    const waybill_code code = waybill_get_recovery_report(self->store, &report, &error);
    CHECK(code == WAYBILL_OK || code == WAYBILL_INVALID_ARGUMENT);
    CHECK((report != NULL) == (code == WAYBILL_OK));
    waybill_free(report);
    waybill_free(error);
    INVALID(waybill_close(self->store, &error));
    waybill_store_free(self->store);
  }
  if (self->succeeds) *credentials = kPod;
  return self->succeeds;
}

static waybill_decision decide(fetching* with) {
  return waybill_must_attempt_pull_lazily(with->store, APP, fetch, with);
}

static void fetched_once_if_need_be(waybill_store* store) {
  fetching with = {.store = store, .succeeds = true};
  const waybill_decision decision = decide(&with);
  CHECK(!decision.pull && decision.credentials_read && with.count == 1);
  /* An image that is not there needs none. */
  CHECK(waybill_must_attempt_pull_lazily(store, COPY(.image = IMAGE), fetch, &with).pull);
  CHECK(with.count == 1);
}

static void failing_fetch(waybill_store* store) {
  fetching with = {.store = store};
  waybill_decision decision = decide(&with);
  CHECK(decision.pull && with.count == 1);
  CHECK(decision.reason == WAYBILL_REASON_CREDENTIALS_UNAVAILABLE);
  CHECK(decision.result == WAYBILL_CHECK_ERROR);
  decision = waybill_must_attempt_pull_lazily(store, APP, NULL, NULL);
  CHECK(decision.pull && decision.reason == WAYBILL_REASON_CREDENTIALS_UNAVAILABLE);

  waybill_ensure_outcome* outcome = NULL;
  MUST(waybill_ensure_image_lazily(store, APP, WAYBILL_PULL_IF_NOT_PRESENT, fetch, &with, &outcome,
                                   &error));
  CHECK(outcome->decided && outcome->decision.pull && outcome->action == WAYBILL_ENSURE_PULL);
  waybill_free(outcome);
  MUST(waybill_ensure_image_lazily(store, APP, WAYBILL_PULL_IF_NOT_PRESENT, NULL, NULL, &outcome,
                                   &error));
  CHECK(outcome->decision.pull);
  waybill_free(outcome);
}

static void own_store_called_back(waybill_store* store) {
  fetching with = {.store = store, .succeeds = true, .calls_back = true};
  CHECK(!decide(&with).pull);
  waybill_ensure_outcome* outcome = NULL;
  MUST(waybill_ensure_image_lazily(store, APP, WAYBILL_PULL_IF_NOT_PRESENT, fetch, &with, &outcome,
                                   &error));
  CHECK(outcome->action == WAYBILL_ENSURE_USE_PRESENT);
  waybill_free(outcome);
  CHECK(with.count == 2);
  /* The store is unchanged. */
  CHECK(may_use(store, &kPod));
}

/* Inside a callback, another store may be opened, used and closed. */
static bool fetch_from_other(void* context, waybill_pod_credentials* credentials) {
  (void)context;
  waybill_store* other = open_store("other");
  pull(other, IMAGE, REF);
  CHECK(may_use(other, &kPod));
  end_store(other);
  *credentials = kPod;
  return true;
}

/* Wrong answers of the callback itself. */
static bool fetch_nonsense(void* context, waybill_pod_credentials* credentials) {
  const int* which = context;
  if (*which == 1) credentials->secret_count = 3;
  if (*which == 2) {
    static waybill_image_pull_secret secret;
    secret.credential_hash = (waybill_string){NULL, 5};
    *credentials = (waybill_pod_credentials){.secrets = &secret, .secret_count = 1};
  }
  return true;
}

static void wrong_answers(waybill_store* store) {
  for (int which = 0; which <= 2; ++which) {
    CHECK(waybill_must_attempt_pull_lazily(store, APP, fetch_nonsense, &which).pull);
  }
}

typedef struct strange_clock {
  waybill_store* store;
  int refusals;
} strange_clock;

/* Calls the store as soon as there is one. */
static waybill_timestamp ask_the_store(void* context) {
  strange_clock* self = context;
  if (self->store != NULL) {
    if (waybill_put_intent(self->store, COPY(.image = IMAGE), NULL) == WAYBILL_INVALID_ARGUMENT &&
        waybill_close(self->store, NULL) == WAYBILL_INVALID_ARGUMENT &&
        all_decide_to_pull(self->store)) {
      ++self->refusals;
    }
  }
  return tick(NULL);
}

static void clock_called_back(void) {
  strange_clock clock = {NULL, 0};
  waybill_open_options options = store_options("clock");
  options.clock = ask_the_store;
  options.clock_context = &clock;
  waybill_store* store = open_with(&options);
  clock.store = store;
  pull(store, IMAGE, REF);
  CHECK(clock.refusals > 0);
  clock.store = NULL;
  CHECK(may_use(store, &kPod));
  end_store(store);
}

static waybill_boot_time ask_the_store_of_the_boot(void* context) {
  strange_clock* self = context;
  waybill_list_token token;
  if (self->store != NULL &&
      waybill_begin_list(self->store, &token, NULL) == WAYBILL_INVALID_ARGUMENT &&
      waybill_close(self->store, NULL) == WAYBILL_INVALID_ARGUMENT) {
    ++self->refusals;
  }
  return (waybill_boot_time){.boot_id = {1}, .nanoseconds = 1};
}

static void boot_clock_called_back(void) {
  strange_clock clock = {NULL, 0};
  waybill_open_options options = store_options("boot-clock");
  options.boot_clock = ask_the_store_of_the_boot;
  options.boot_clock_context = &clock;
  waybill_store* store = open_with(&options);
  clock.store = store;
  waybill_list_token token;
  MUST(waybill_begin_list(store, &token, &error));
  CHECK(clock.refusals == 1);
  MUST(waybill_record_pull_intent(store, COPY(.image = IMAGE), NULL, &error));
  MUST(waybill_record_image_pull_failed(store, COPY(.image = IMAGE), WAYBILL_PULL_FAILED, 0,
                                        &error));
  CHECK(clock.refusals > 1);
  clock.store = NULL;
  end_store(store);
}

static waybill_timestamp no_time(void* context) {
  const int64_t* seconds = context;
  return (waybill_timestamp){*seconds, -5};
}

static void clock_that_lies(void) {
  int64_t seconds = INT64_MAX;
  waybill_open_options options = store_options("wrong-clock");
  options.clock = no_time;
  options.clock_context = &seconds;
  waybill_store* store = NULL;
  const waybill_code opened = waybill_open(&options, &store, NULL);
  CHECK((store != NULL) == (opened == WAYBILL_OK));
  if (opened != WAYBILL_OK) return;
  const waybill_code put = waybill_put_intent(store, COPY(.image = IMAGE), NULL);
  const waybill_code recorded = waybill_record_image_pulled(store, APP, &kCredentials, NULL, NULL);
  CHECK(put != WAYBILL_INTERNAL && recorded != WAYBILL_INTERNAL);
  waybill_store_free(store);
}

/* The kubelet passes the error on. */
static void failing_fetch_under_kubelet_rules(void) {
  waybill_open_options options = store_options("kubelet-rules");
  options.rules = WAYBILL_RULES_KUBELET;
  waybill_store* store = open_with(&options);
  pull(store, IMAGE, REF);
  fetching with = {.store = store};
  waybill_ensure_outcome* outcome = NULL;
  MUST(waybill_ensure_image_lazily(store, APP, WAYBILL_PULL_IF_NOT_PRESENT, fetch, &with, &outcome,
                                   &error));
  CHECK(outcome->action == WAYBILL_ENSURE_CREDENTIALS_ERROR && outcome->decided);
  CHECK(outcome->decision.reason == WAYBILL_REASON_CREDENTIALS_UNAVAILABLE);
  waybill_free(outcome);
  end_store(store);
}

int main(void) {
  waybill_store* store = open_store("store");
  pull(store, IMAGE, REF);
  fetched_once_if_need_be(store);
  failing_fetch(store);
  own_store_called_back(store);
  CHECK(!waybill_must_attempt_pull_lazily(store, APP, fetch_from_other, NULL).pull);
  wrong_answers(store);
  end_store(store);
  failing_fetch_under_kubelet_rules();
  clock_called_back();
  boot_clock_called_back();
  clock_that_lies();
  return check_result();
}
