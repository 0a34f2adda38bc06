/* Many threads decide, record and read while another closes; and no thread outlives its store. */

#define _XOPEN_SOURCE 700

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "calls.h"
#include "support.h"

enum { THREADS = 6, ROUNDS = 12 };

typedef struct shared {
  waybill_store* store;
  atomic_bool ended;    /* somebody closed it */
  atomic_int decisions; /* that were made while it was open */
  atomic_int closings;  /* that said WAYBILL_OK */
  atomic_int working;
} shared;

static bool fetch(void* context, waybill_pod_credentials* credentials) {
  (void)context;
  *credentials = kPod;
  return true;
}

static bool right(waybill_code code) {
  return code == WAYBILL_OK || code == WAYBILL_NOT_FOUND || code == WAYBILL_CLOSED;
}

/* Calls until the store is closed. Each call answers as usual or says that it is closed. */
static void* work(void* context) {
  shared* with = context;
  waybill_store* store = with->store;
  atomic_fetch_add(&with->working, 1);
  for (;;) {
    /* Read before the call: if it was closed then, the call must see that. */
    const bool closed = atomic_load(&with->ended);
    const waybill_decision decision = waybill_must_attempt_pull(store, APP, &kPod);
    const waybill_decision lazily = waybill_must_attempt_pull_lazily(store, APP, fetch, NULL);
    if (closed) CHECK(decision.pull && lazily.pull);
    if (!decision.pull) atomic_fetch_add(&with->decisions, 1);
    CHECK(decision.reason == WAYBILL_REASON_SECRET_HASH_MATCHES ||
          decision.reason == WAYBILL_REASON_STORE_UNAVAILABLE);

    waybill_error* error = NULL;
    waybill_code code = waybill_put_intent(store, COPY(.image = WAYBILL_STRING("a")), &error);
    CHECK(right(code) && (code == WAYBILL_OK) == (error == NULL));
    waybill_free(error);
    waybill_image_pulled_record* record = NULL;
    code = waybill_get_record(store, COPY(.image_ref = REF), &record, NULL);
    CHECK(right(code) && (code == WAYBILL_OK) == (record != NULL));
    if (record != NULL) CHECK_TEXT("sha256:aa", record->image_ref);
    waybill_free(record);
    waybill_list_token token;
    CHECK(right(waybill_begin_list(store, &token, NULL)));
    waybill_open_pulls* pulls = NULL;
    code = waybill_list_open_pulls(store, &pulls, NULL);
    CHECK(right(code) && (code == WAYBILL_OK) == (pulls != NULL));
    waybill_free(pulls);
    waybill_recovery_report* report = NULL;
    CHECK(waybill_get_recovery_report(store, &report, NULL) == WAYBILL_OK);
    waybill_free(report);
    CHECK(right(waybill_flush(store, NULL)));
    if (closed) return NULL;
  }
}

/* Two threads close at once: only one succeeds. */
static void* end(void* context) {
  shared* with = context;
  while (atomic_load(&with->working) < THREADS || atomic_load(&with->decisions) < THREADS) {
    sched_yield();
  }
  const waybill_code code = waybill_close(with->store, NULL);
  CHECK(code == WAYBILL_OK || code == WAYBILL_CLOSED);
  if (code == WAYBILL_OK) {
    atomic_fetch_add(&with->closings, 1);
    atomic_store(&with->ended, true);
  }
  return NULL;
}

static void closed_under_way(void) {
  shared with = {.store = open_store("store")};
  pull(with.store, IMAGE, REF);
  pthread_t threads[THREADS + 2];
  for (int i = 0; i < THREADS + 2; ++i) {
    if (pthread_create(&threads[i], NULL, i < THREADS ? work : end, &with) != 0) check_exit();
  }
  for (int i = 0; i < THREADS + 2; ++i) pthread_join(threads[i], NULL);
  CHECK(atomic_load(&with.closings) == 1);
  CHECK(atomic_load(&with.decisions) >= THREADS);
  waybill_store_free(with.store);
}

/* All functions from two threads, without closing: any code, but no race. */
static void* call_everything(void* store) {
  for (size_t i = 0; i < kStoreCallCount; ++i) {
    const waybill_code code = kStoreCalls[i].call(store, NULL);
    CHECK(code != WAYBILL_INTERNAL && code != WAYBILL_OUT_OF_MEMORY && code != WAYBILL_CLOSED);
  }
  return NULL;
}

static void everything_at_once(void) {
  waybill_store* store = open_store("everything");
  pthread_t threads[2];
  /* What both threads would have to create first. */
  call_everything(store);
  for (int i = 0; i < 2; ++i) {
    if (pthread_create(&threads[i], NULL, call_everything, store) != 0) check_exit();
  }
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  end_store(store);
}

/* A store that one thread opened is used and freed by another. */
static void* free_it(void* store) {
  CHECK(may_use(store, &kPod));
  waybill_store_free(store);
  return NULL;
}

int main(void) {
  for (int round = 0; round < ROUNDS; ++round) closed_under_way();
  everything_at_once();
  waybill_store* store = open_store("handed-over");
  pull(store, IMAGE, REF);
  pthread_t thread;
  if (pthread_create(&thread, NULL, free_it, store) != 0) check_exit();
  pthread_join(thread, NULL);
  return check_result();
}
