/* What a closed store still answers: "pull", WAYBILL_CLOSED, and its report. */

#include "calls.h"
#include "support.h"

static waybill_error* error;

static void all_calls_work_while_it_is_open(void) {
  waybill_store* store = open_store("open");
  for (size_t i = 0; i < kStoreCallCount; ++i) {
    if (!CHECK_CODE(kStoreCalls[i].on_new_store, kStoreCalls[i].call(store, &error))) {
      fprintf(stderr, "  in %s\n", kStoreCalls[i].name);
    }
  }
  end_store(store);
}

static void expect_closed(waybill_store* store) {
  check_all_calls(store, WAYBILL_CLOSED);
  CHECK(all_decide_to_pull(store));
  CHECK(waybill_must_attempt_pull(store, APP, &kPod).reason == WAYBILL_REASON_STORE_UNAVAILABLE);
  waybill_recovery_report* report = report_of(store);
  CHECK(report != NULL);
  waybill_free(report);
}

static void closed_twice(void) {
  waybill_store* store = open_store("closed");
  pull(store, IMAGE, REF);
  CHECK(may_use(store, &kPod));
  CHECK_CODE(WAYBILL_OK, waybill_close(store, &error));
  expect_closed(store);
  CHECK_CODE(WAYBILL_CLOSED, waybill_close(store, &error));
  CHECK(waybill_close(store, NULL) == WAYBILL_CLOSED);
  expect_closed(store);

  /* It can be opened again, beside the closed handle. */
  waybill_store* again = open_store("closed");
  CHECK(may_use(again, &kPod));
  CHECK(!may_use(store, &kPod));
  waybill_store_free(store);
  CHECK(may_use(again, &kPod));
  /* Freeing closes. */
  waybill_store_free(again);
  end_store(open_store("closed"));
}

static void closed_observer(void) {
  end_store(open_store("observed"));
  waybill_observe_options options = WAYBILL_OBSERVE_OPTIONS_INIT;
  options.directory = scratch("observed");
  waybill_store* store = NULL;
  MUST(waybill_observe(&options, &store, &error));
  for (size_t i = 0; i < kStoreCallCount; ++i) {
    const store_call* call = &kStoreCalls[i];
    const waybill_code code = call->call(store, NULL);
    const bool right = call->needs_owner ? code == WAYBILL_NOT_OWNER
                                         : code == WAYBILL_OK || code == WAYBILL_NOT_FOUND;
    if (!CHECK(right)) fprintf(stderr, "  %s: %s\n", call->name, waybill_code_name(code).data);
  }
  CHECK_CODE(WAYBILL_OK, waybill_close(store, &error));
  expect_closed(store);
  waybill_store_free(store);
}

static void nothing_is_freed(void) {
  CHECK(waybill_free(NULL) == WAYBILL_OK);
  /* The caller's memory, with as many bytes before it as a result has. */
  union {
    long double aligned;
    char bytes[128];
  } mine = {.bytes = "mine"};
  CHECK(waybill_free(mine.bytes + 64) == WAYBILL_INVALID_ARGUMENT);
  CHECK(mine.bytes[0] == 'm');
  waybill_error* kept = NULL;
  CHECK(waybill_close(NULL, &kept) == WAYBILL_INVALID_ARGUMENT);
  CHECK(waybill_free(kept) == WAYBILL_OK);
  waybill_store_free(NULL);
  waybill_policy_free(NULL);
}

int main(void) {
  all_calls_work_while_it_is_open();
  closed_twice();
  closed_observer();
  nothing_is_freed();
  return check_result();
}
