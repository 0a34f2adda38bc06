/* Many threads decide, record and read while another closes; and no thread outlives its store. */

#define _XOPEN_SOURCE 700

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "support.h"

enum { THREADS = 6, ROUNDS = 12 };

typedef struct shared {
  waybill_store* store;
  atomic_bool ended;    /* somebody closed it */
  atomic_int decisions; /* that were made while it was open */
  atomic_int working;
} shared;

static bool is_reason(waybill_decision decision, const char* name) {
  return strcmp(waybill_reason_name(decision.reason), name) == 0;
}

/* Calls until the store is closed. Each call answers as usual or says that it is closed. */
static void* work(void* context) {
  shared* with = context;
  waybill_store* store = with->store;
  atomic_fetch_add(&with->working, 1);
  for (;;) {
    /* Read before the call: if it was closed then, the call must see that. */
    const bool closed = atomic_load(&with->ended);
    const waybill_decision decision = waybill_decide(store, APP, &kPod);
    CHECK(is_reason(decision, "secretHashMatches") || is_reason(decision, "storeUnavailable"));
    waybill_look* look = NULL;
    const waybill_decision first = waybill_decide_first(store, APP, &look);
    const waybill_decision second = waybill_decide_second(store, APP, look, &kPod);
    CHECK(!first.use && (look != NULL || !second.use));
    waybill_free(look);
    if (closed) CHECK(!decision.use && !second.use);
    if (decision.use) atomic_fetch_add(&with->decisions, 1);

    waybill_error* error = NULL;
    uint64_t number = 0;
    waybill_code code = waybill_begin_pull(store, APP, &number, &error);
    CHECK(code == WAYBILL_OK ? error == NULL && number != 0 : code == WAYBILL_CLOSED);
    waybill_free(error);
    error = NULL;
    code = waybill_end_pull(store, APP, number, WAYBILL_NOTHING, NULL, NONE, NULL);
    CHECK(code == WAYBILL_OK || code == WAYBILL_CLOSED);
    char* answer = check_poison();
    code = waybill_call(store, "ListImages", NONE, &answer, &error);
    CHECK(code == WAYBILL_OK ? error == NULL && strstr(answer, REF) != NULL
                             : code == WAYBILL_CLOSED && answer == NULL && error != NULL);
    waybill_free(answer);
    waybill_free(error);
    if (closed) CHECK(code == WAYBILL_CLOSED);
    if (closed) return NULL;
  }
}

/* Two threads close at once: both wait. */
static void* end(void* context) {
  shared* with = context;
  while (atomic_load(&with->working) < THREADS || atomic_load(&with->decisions) < THREADS) {
    sched_yield();
  }
  CHECK(waybill_close(with->store, NULL) == WAYBILL_OK);
  atomic_store(&with->ended, true);
  return NULL;
}

static void start(pthread_t* threads, int count, void* (*run)(void*), void* context) {
  for (int i = 0; i < count; ++i) {
    if (pthread_create(&threads[i], NULL, run, context) != 0) check_exit();
  }
}

static void closed_under_way(void) {
  shared with = {.store = open_store("store")};
  pull(with.store);
  pthread_t threads[THREADS + 2];
  start(threads, THREADS, work, &with);
  start(threads + THREADS, 2, end, &with);
  for (int i = 0; i < THREADS + 2; ++i) pthread_join(threads[i], NULL);
  CHECK(atomic_load(&with.decisions) >= THREADS);
  waybill_store_free(with.store);
}

/* All calls from two threads, one of them through the socket too: any code, but no race. */
static void* call_everything(void* store) {
  char* token = draw_token(store);
  for (size_t i = 0; i < kCallCount; ++i) {
    char* answer;
    const bool no_store = kCalls[i].kind == 'L';
    const waybill_code code = make_call(no_store ? NULL : store, &kCalls[i], token, &answer, NULL);
    CHECK(code != WAYBILL_INTERNAL && code != WAYBILL_OUT_OF_MEMORY && code != WAYBILL_CLOSED);
    waybill_free(answer);
    answer = NULL;
    const waybill_code asked =
        waybill_ask(scratch("everything"), "ListImages", NONE, 0, &answer, NULL);
    CHECK(asked == WAYBILL_OK || asked == WAYBILL_UNAVAILABLE);
    waybill_free(answer);
  }
  waybill_free(token);
  return NULL;
}

static void everything_at_once(void) {
  waybill_store* store = open_store("everything");
  waybill_error* error;
  make_directory(scratch("exported"));
  pull(store);
  MUST(waybill_serve(store, &error));
  pthread_t threads[2];
  start(threads, 2, call_everything, store);
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
  pull(store);
  pthread_t thread;
  start(&thread, 1, free_it, store);
  pthread_join(thread, NULL);
  return check_result();
}
