/* One call of each kind, to an owner, an observer, a closed store, through the socket, and without
 * a store; and what has functions of its own: decisions, host IDs, streams, options, the clock. */

#define _XOPEN_SOURCE 700

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

static waybill_error* error;

/* The table has each method of the interface text. */
static void of_the_interface(void) {
  size_t methods = 0;
  const char* at = waybill_interface();
  while ((at = strstr(at, "\nmethod ")) != NULL) {
    at += strlen("\nmethod ");
    const size_t length = strcspn(at, "(");
    bool is_there = false;
    for (size_t i = 0; i < kCallCount; ++i) {
      is_there |= strlen(kCalls[i].name) == length && memcmp(kCalls[i].name, at, length) == 0;
    }
    if (!CHECK(is_there)) fprintf(stderr, "  %.*s\n", (int)length, at);
    ++methods;
  }
  CHECK(methods == kCallCount);
}

/* Makes the calls of these kinds. */
static void make_calls(waybill_store* store, const char* kinds, const char* token,
                       waybill_code expected) {
  for (size_t i = 0; i < kCallCount; ++i) {
    const json_call* const call = &kCalls[i];
    if (strchr(kinds, call->kind) == NULL) continue;
    char* answer;
    const waybill_code code = call->part == NULL ? WAYBILL_NOT_FOUND : expected;
    bool held = CHECK_CODE(code, make_call(store, call, token, &answer, &error));
    if (answer != NULL) held &= CHECK_CONTAINS(call->part, answer) && answer[0] == '{';
    if (!held) fprintf(stderr, "  in %s\n", call->name);
    waybill_free(answer);
  }
}

static void expect_closed(waybill_store* store, const char* token) {
  uint64_t number;
  waybill_mapping mapping;
  waybill_look* look = check_poison();
  char* answer;
  for (size_t i = 0; i < kCallCount; ++i) {
    if (strchr("RW", kCalls[i].kind) == NULL) continue;
    if (!CHECK_CODE(WAYBILL_CLOSED, make_call(store, &kCalls[i], token, &answer, &error))) {
      fprintf(stderr, "  in %s\n", kCalls[i].name);
    }
    waybill_free(answer);
  }
  CHECK_CODE(WAYBILL_OK, waybill_close(store, &error));
  CHECK_CODE(WAYBILL_CLOSED, waybill_serve(store, &error));
  CHECK_CODE(WAYBILL_CLOSED, waybill_begin_pull(store, APP, &number, &error));
  CHECK_CODE(WAYBILL_CLOSED, waybill_end_pull(store, APP, 0, WAYBILL_FAILED, NULL, NONE, &error));
  CHECK_CODE(WAYBILL_CLOSED,
             waybill_claim_user_namespace(store, WAYBILL_TEXT("pod"), 0, NONE, &mapping, &error));
  CHECK(!may_use(store, &kPod) && !waybill_decide_first(store, APP, &look).use && look == NULL);
  const waybill_decision decision = waybill_decide(store, APP, &kPod);
  CHECK(strcmp(waybill_reason_name(decision.reason), "storeUnavailable") == 0);
}

static void owner_and_observer(void) {
  waybill_store* store = open_store("store");
  pull(store);
  make_directory(scratch("exported"));
  char* const token = draw_token(store);
  make_calls(store, "RWD", token, WAYBILL_OK);
  expect(store, "BeginPull", "{\"image\": \"registry.example.com/other:v1\"}", "\"pull\":");
  CHECK_CODE(WAYBILL_OK, waybill_close(store, &error));
  expect_closed(store, token);

  /* It can be opened again beside the closed handle. */
  waybill_store* observer = observe("store");
  CHECK(may_use(observer, &kPod) && !may_use(observer, &kPodWithout) && !may_use(store, &kPod));
  uint64_t number;
  CHECK_CODE(WAYBILL_NOT_OWNER, waybill_begin_pull(observer, APP, &number, &error));
  CHECK_CODE(WAYBILL_NOT_OWNER, waybill_serve(observer, &error));
  make_calls(observer, "W", token, WAYBILL_NOT_OWNER);
  expect(observer, "GetStatus", "", "\"ownerPid\":0");
  waybill_store_free(store);
  CHECK(may_use(observer, &kPod));
  CHECK_CODE(WAYBILL_OK, waybill_close(observer, &error));
  expect_closed(observer, token);
  waybill_free(token);
  waybill_store_free(observer);
  waybill_store_free(open_store("store")); /* freeing closes */
  end_store(open_store("store"));
}

static void without_a_store(void) {
  end_store(open_store("made"));
  make_calls(NULL, "L", NULL, WAYBILL_OK);
  char* answer = NULL;
  MUST(waybill_hash_credentials(WAYBILL_TEXT("user"), WAYBILL_TEXT("password"), NONE, &answer,
                                &error));
  CHECK(strlen(answer) == 64);
  waybill_free(answer);
}

static void asked(void) {
  const waybill_text directory = scratch("served");
  char* answer = check_poison();
  CHECK_CODE(WAYBILL_NOT_FOUND, waybill_ask(directory, "GetStatus", NONE, 0, &answer, &error));
  CHECK(answer == NULL);
  waybill_store* store = open_store("served");
  MUST(waybill_serve(store, &error));
  CHECK_CODE(WAYBILL_CONFLICT, waybill_serve(store, &error));
  MUST(waybill_ask(directory, "ListRuntimes", NONE, 60000, &answer, &error));
  CHECK_CONTAINS("\"name\":\"runc\"", answer);
  waybill_free(answer);
  MUST(waybill_ask(directory, "BeginPull", WAYBILL_TEXT("{\"image\": \"" IMAGE "\"}"), 0, &answer,
                   &error));
  waybill_free(answer);
  expect(store, "ListPulls", "", IMAGE);
  INVALID(
      waybill_ask(directory, "BeginPull", WAYBILL_TEXT("{\"imagee\": \"a\"}"), 0, &answer, &error));
  CHECK_CODE(
      WAYBILL_NOT_FOUND,
      waybill_ask(directory, "DropPulls",
                  WAYBILL_TEXT("{\"pull\": 1000000, \"reason\": \"a test\"}"), 0, &answer, &error));
  CHECK(answer == NULL);
  end_store(store);
  CHECK_CODE(WAYBILL_NOT_FOUND, waybill_ask(directory, "GetStatus", NONE, 0, &answer, &error));
}

/* What a look makes of what it saw is judged by unit/first_look. */
static void late_credentials(void) {
  waybill_store* store = open_store("late");
  pull(store);
  waybill_look* look = NULL;
  waybill_decision decision = waybill_decide_first(store, APP, &look);
  CHECK(!decision.use && look != NULL);
  CHECK(strcmp(waybill_reason_name(decision.reason), "credentialsNeeded") == 0);
  CHECK(waybill_decide_second(store, APP, look, &kPod).use);
  CHECK(!waybill_decide_second(store, APP, look, &kPodWithout).use);
  CHECK(!waybill_decide_second(store, APP, look, NULL).use);
  CHECK(!waybill_decide_second(store, APP, NULL, &kPod).use);
  const waybill_copy others[] = {
      COPY(.image = WAYBILL_TEXT("example.com/other:v1"), .image_ref = WAYBILL_TEXT(REF)),
      COPY(.image = WAYBILL_TEXT(IMAGE), .image_ref = WAYBILL_TEXT("sha256:dd")),
      COPY(.image = WAYBILL_TEXT(IMAGE), .image_ref = WAYBILL_TEXT(REF),
           .runtime_handler = WAYBILL_TEXT("runc"))};
  for (size_t i = 0; i < COUNT(others); ++i) {
    CHECK(!waybill_decide_second(store, others[i], look, &kPod).use);
  }
  waybill_store* other = open_store("other");
  pull(other);
  CHECK(!waybill_decide_second(other, APP, look, &kPod).use);
  end_store(other);
  waybill_free(look);
  /* An absent image needs none. */
  look = check_poison();
  CHECK(!waybill_decide_first(store, COPY(.image = WAYBILL_TEXT(IMAGE)), &look).use);
  CHECK(look == NULL);
  /* More secrets than fit without an allocation; the last one opens it. */
  waybill_credential many[40] = {{NONE, NONE, NONE, NONE}};
  many[39] = kSecret;
  CHECK(may_use(store, &(waybill_credentials){.secrets = many, .secret_count = 40}));
  end_store(store);
}

static void streams(void) {
  waybill_store* store = NULL;
  const waybill_text directory = scratch("streams");
  MUST(waybill_open_streams(directory, WAYBILL_NO_LOSS_MARKER,
                            WAYBILL_TEXT("{\"maxOpen\": 1, \"manualClock\": true}"), &store,
                            &error));
  char* answer;
  for (size_t i = 0; i < kCallCount; ++i) {
    if (kCalls[i].kind != 'S') continue;
    const waybill_code expected = kCalls[i].part == NULL ? WAYBILL_NOT_FOUND : WAYBILL_OK;
    CHECK_CODE(expected, make_call(store, &kCalls[i], "", &answer, &error));
    if (answer != NULL) CHECK_CONTAINS(kCalls[i].part, answer);
    waybill_free(answer);
  }
  const waybill_text exec = WAYBILL_TEXT(
      "{\"kind\": \"exec\", \"containerId\": \"c\", \"command\": [\"sh\"], \"stdout\": true}");
  CHECK(waybill_call(store, "PrepareStream", exec, &answer, &error) == WAYBILL_LIMIT_EXCEEDED);
  CHECK(error->retry_after_ms > 0 && error->retry_after_ms <= 60001);
  waybill_free(error);
  CHECK(waybill_set_time(store, INT64_C(1800000000000000000), INT64_C(1000000000000000)) ==
        WAYBILL_OK);
  MUST(waybill_call(store, "PrepareStream", exec, &answer, &error)); /* the other has expired */
  waybill_free(answer);
  expect(store, "GetStatus", "", "\"streams\":{");
  expect(store, "GetMetrics", "", "waybill_streaming_");
  expect(store, "Verify", "", "\"sound\":true");

  /* Functions of another store. */
  uint64_t number;
  waybill_mapping mapping;
  INVALID(waybill_serve(store, &error));
  INVALID(waybill_begin_pull(store, APP, &number, &error));
  INVALID(waybill_end_pull(store, APP, 0, WAYBILL_FAILED, NULL, NONE, &error));
  INVALID(waybill_claim_user_namespace(store, WAYBILL_TEXT("pod"), 0, NONE, &mapping, &error));
  INVALID(waybill_call(store, "BeginPull", WAYBILL_TEXT("{\"image\": \"a\"}"), &answer, &error));
  CHECK(!may_use(store, &kPod));
  CHECK_CODE(WAYBILL_OK, waybill_close(store, &error));
  CHECK_CODE(WAYBILL_OK, waybill_close(store, &error));
  CHECK_CODE(WAYBILL_CLOSED, waybill_call(store, "ListStreams", NONE, &answer, &error));
  waybill_store_free(store);
}

/* A loss marker in the place of a store that was wiped. */
static void loss_markers(void) {
  const waybill_text marker = scratch("marker");
  waybill_store* store = NULL;
  MUST(waybill_open(scratch("marked"), marker, NONE, &store, &error));
  end_store(store);
  CHECK(is_there(marker));
  MUST(waybill_open(scratch("wiped"), marker, NONE, &store, &error));
  expect(store, "GetStatus", "", "\"degraded\":true");
  end_store(store);
  MUST(waybill_open(scratch("wiped"), WAYBILL_REMEMBERED_LOSS_MARKER, NONE, &store, &error));
  CHECK(remove(marker.data) == 0);
  CHECK_CODE(WAYBILL_DAMAGED, waybill_close(store, &error));
  CHECK(!may_use(store, &kPod));
  waybill_store_free(store);
}

int main(void) {
  of_the_interface();
  owner_and_observer();
  without_a_store();
  asked();
  late_credentials();
  streams();
  loss_markers();
  return check_result();
}
