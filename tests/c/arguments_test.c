/* Wrong arguments of each function: null pointers, sizes without an address, texts that are not
 * UTF-8, numbers without a meaning, and JSON that is not understood. */

#include <stdlib.h>
#include <string.h>

#include "support.h"

static waybill_error* error;
static const waybill_text kNowhere = {NULL, 7};
static const waybill_text kLatin1 = {"caf\xe9 au lait", 12};

/* The result is NULL after the error. */
#define INVALID_RESULT(result, call) \
  do {                               \
    (result) = check_poison();       \
    INVALID(call);                   \
    CHECK((result) == NULL);         \
  } while (0)

static void openings(void) {
  waybill_store* store;
  const waybill_text made = scratch("never");
  const waybill_text marker = WAYBILL_NO_LOSS_MARKER;
  const waybill_text wrong[] = {kNowhere, kLatin1, {"/tmp/waybill\0zero", 17}};
  INVALID(waybill_open(made, marker, NONE, NULL, &error));
  INVALID(waybill_open_streams(made, marker, NONE, NULL, &error));
  INVALID(waybill_observe(made, NULL, &error));
  for (size_t i = 0; i < COUNT(wrong); ++i) {
    INVALID_RESULT(store, waybill_open(wrong[i], marker, NONE, &store, &error));
    INVALID_RESULT(store, waybill_open(made, wrong[i], NONE, &store, &error));
    INVALID_RESULT(store, waybill_open(made, marker, wrong[i], &store, &error));
    INVALID_RESULT(store, waybill_observe(wrong[i], &store, &error));
    INVALID_RESULT(store, waybill_open_streams(wrong[i], marker, NONE, &store, &error));
    INVALID_RESULT(store, waybill_open_streams(made, wrong[i], NONE, &store, &error));
    INVALID_RESULT(store, waybill_open_streams(made, marker, wrong[i], &store, &error));
  }
  /* A loss marker must be chosen. */
  INVALID_RESULT(store, waybill_open(made, NONE, NONE, &store, &error));
  INVALID_RESULT(store, waybill_open_streams(made, NONE, NONE, &store, &error));

  static const char* const kOptionsOfNone[] = {"[]",
                                               "{",
                                               "{} {}",
                                               "{\"createe\": true}",
                                               "{\"create\": 1}",
                                               "{\"create\": true, \"create\": true}",
                                               "{\"unrecorded\": \"perhaps\"}",
                                               "{\"settings\": {\"mode\": \"lax\"}}",
                                               "{\"settings\": {\"mapBytes\": 1}}",
                                               "{\"settings\": {\"pool\": {\"firstId\": 5}}}",
                                               "{\"runtimes\": [{}]}",
                                               "{\"kubeletDirectory\": \"/a\\u0000b\"}"};
  for (size_t i = 0; i < COUNT(kOptionsOfNone); ++i) {
    const waybill_text options = waybill_text_of(kOptionsOfNone[i]);
    INVALID_RESULT(store, waybill_open(made, marker, options, &store, &error));
    INVALID_RESULT(store, waybill_open_streams(made, marker, options, &store, &error));
  }
  CHECK(waybill_open(made, marker, WAYBILL_TEXT("{\"settings\": {\"modee\": \"strict\"}}"), &store,
                     &error) == WAYBILL_INVALID_ARGUMENT);
  CHECK_CONTAINS("modee", error->message);
  waybill_free(error);
  CHECK(!is_there(made));
  CHECK_CODE(WAYBILL_NOT_FOUND, waybill_observe(made, &store, &error));
  CHECK_CODE(WAYBILL_NOT_FOUND,
             waybill_open(made, marker, WAYBILL_TEXT("{\"create\": false}"), &store, &error));
}

static void no_store(void) {
  uint64_t number = 1;
  waybill_mapping mapping = {1, 1};
  waybill_look* look = check_poison();
  INVALID(waybill_close(NULL, &error));
  INVALID(waybill_serve(NULL, &error));
  INVALID(waybill_begin_pull(NULL, APP, &number, &error));
  INVALID(waybill_end_pull(NULL, APP, 0, WAYBILL_PULLED, &kPod, NONE, &error));
  INVALID(waybill_claim_user_namespace(NULL, WAYBILL_TEXT("pod"), 0, NONE, &mapping, &error));
  CHECK(number == 0 && mapping.length == 0);
  CHECK(waybill_set_time(NULL, 0, 0) == WAYBILL_INVALID_ARGUMENT);
  CHECK(!may_use(NULL, &kPod));
  CHECK(!waybill_decide_first(NULL, APP, &look).use && look == NULL);
  CHECK(!waybill_decide_second(NULL, APP, NULL, &kPod).use);
  waybill_store_free(NULL);
  waybill_free(NULL);
}

static void copies(waybill_store* store) {
  const waybill_text wrong[] = {kNowhere, kLatin1};
  for (size_t i = 0; i < COUNT(wrong); ++i) {
    const waybill_copy copies[] = {{wrong[i], WAYBILL_TEXT(REF), NONE},
                                   {WAYBILL_TEXT(IMAGE), wrong[i], NONE},
                                   {WAYBILL_TEXT(IMAGE), WAYBILL_TEXT(REF), wrong[i]}};
    for (size_t k = 0; k < COUNT(copies); ++k) {
      uint64_t number = 1;
      waybill_look* look = check_poison();
      INVALID(waybill_begin_pull(store, copies[k], &number, &error));
      CHECK(number == 0);
      INVALID(waybill_end_pull(store, copies[k], 0, WAYBILL_PULLED, NULL, NONE, &error));
      CHECK(!waybill_decide(store, copies[k], &kPod).use);
      CHECK(!waybill_decide_first(store, copies[k], &look).use && look == NULL);
    }
  }
  INVALID(waybill_begin_pull(store, APP, NULL, &error));
  CHECK(!waybill_decide_first(store, APP, NULL).use);
}

/* `credentials` prove nothing, and are not stored. */
static void refused(waybill_store* store, const waybill_credentials* credentials) {
  const waybill_decision decision = waybill_decide(store, APP, credentials);
  CHECK(!decision.use);
  CHECK(strcmp(waybill_reason_name(decision.reason), "credentialsUnavailable") == 0);
  INVALID(waybill_end_pull(store, APP, 0, WAYBILL_PULLED, credentials, NONE, &error));
}

static void credentials(waybill_store* store) {
  refused(store, &(waybill_credentials){.secret_count = 1});
  refused(store, &(waybill_credentials){.service_account_count = 1});
  const waybill_text wrong[] = {kNowhere, kLatin1};
  for (size_t i = 0; i < COUNT(wrong); ++i) {
    waybill_credential parts[4] = {kSecret, kSecret, kSecret, kSecret};
    parts[0].namespace_name = parts[1].name = parts[2].uid = parts[3].hash = wrong[i];
    for (size_t k = 0; k < COUNT(parts); ++k) {
      const waybill_credential both[] = {kSecret, parts[k]};
      refused(store, &(waybill_credentials){.secrets = both, .secret_count = 2});
      if (k == 3) continue; /* a service account has no hash */
      refused(store,
              &(waybill_credentials){.service_accounts = &parts[k], .service_account_count = 1});
    }
  }
  const waybill_credential two[] = {kSecret, kSecret};
  const waybill_credentials accounts = {.service_accounts = two, .service_account_count = 2};
  CHECK(!may_use(store, &accounts)); /* a pod has one */
  waybill_credentials all = kPod;
  all.every_pod = true;
  INVALID(waybill_end_pull(store, APP, 0, WAYBILL_PULLED, &all, NONE, &error));
  CHECK(may_use(store, &kPod) && !may_use(store, &kPodWithout) && !may_use(store, NULL));
}

static void pulls_and_pods(waybill_store* store) {
  static const int32_t kWrong[] = {-1, 1000, INT32_MAX, INT32_MIN};
  waybill_mapping mapping;
  const waybill_text pod = WAYBILL_TEXT("pod");
  for (size_t i = 0; i < COUNT(kWrong); ++i) {
    INVALID(waybill_end_pull(store, APP, 0, kWrong[i], NULL, NONE, &error));
    mapping.length = 1;
    INVALID(waybill_claim_user_namespace(store, pod, kWrong[i], NONE, &mapping, &error));
    CHECK(mapping.length == 0);
    CHECK(strcmp(waybill_code_name(kWrong[i]), "") == 0);
  }
  INVALID(waybill_end_pull(store, APP, 0, 0, NULL, NONE, &error));
  INVALID(waybill_end_pull(store, APP, 0, WAYBILL_NOTHING + 1, NULL, NONE, &error));
  INVALID(waybill_end_pull(store, APP, 0, WAYBILL_PULLED, NULL, kNowhere, &error));
  INVALID(waybill_end_pull(store, APP, 0, WAYBILL_PULLED, NULL, kLatin1, &error));
  INVALID(waybill_end_pull(store, APP, 0, WAYBILL_PULLED, NULL,
                           WAYBILL_TEXT("{\"verifiedBy\": \"somebody\"}"), &error));
  INVALID(waybill_end_pull(store, APP, 0, WAYBILL_PULLED, NULL,
                           WAYBILL_TEXT("{\"everyPod\": true}"), &error));

  INVALID(waybill_claim_user_namespace(store, pod, 0, NONE, NULL, &error));
  INVALID(waybill_claim_user_namespace(store, kNowhere, 0, NONE, &mapping, &error));
  INVALID(waybill_claim_user_namespace(store, kLatin1, 0, NONE, &mapping, &error));
  INVALID(waybill_claim_user_namespace(store, pod, 0, kNowhere, &mapping, &error));
  INVALID(waybill_claim_user_namespace(store, pod, 0, kLatin1, &mapping, &error));
}

static void calls(waybill_store* store) {
  char* answer;
  const waybill_text directory = scratch("store");
  static const char* const kNames[] = {NULL, "", "explain", "Explain ", "\xe9", "Serve"};
  for (size_t i = 0; i < COUNT(kNames); ++i) {
    INVALID_RESULT(answer, waybill_call(store, kNames[i], NONE, &answer, &error));
    INVALID_RESULT(answer, waybill_call(NULL, kNames[i], NONE, &answer, &error));
  }
  INVALID_RESULT(answer, waybill_ask(directory, NULL, NONE, 0, &answer, &error));
  INVALID_RESULT(answer, waybill_call(NULL, "GetStatus", NONE, &answer, &error));
  static const char* const kParameters[] = {"[]",
                                            "{",
                                            "null",
                                            "{\"image\": 1}",
                                            "{\"image\": \"a\"}",
                                            "{\"imageRef\": \"a\", \"b\": 1}",
                                            "{\"imageRef\": \"a\", \"imageRef\": \"a\"}",
                                            "{\"imageRef\": \"a\"} x",
                                            "{\"imageRef\": \"\xe9\"}",
                                            "{\"imageRef\": [[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]}"};
  for (size_t i = 0; i < COUNT(kParameters); ++i) {
    INVALID_RESULT(
        answer, waybill_call(store, "Explain", waybill_text_of(kParameters[i]), &answer, &error));
  }
  INVALID_RESULT(answer, waybill_call(store, "GetStatus", kNowhere, &answer, &error));
  INVALID(waybill_call(store, "GetStatus", NONE, NULL, &error));
  INVALID(waybill_ask(directory, "GetStatus", NONE, 0, NULL, &error));
  INVALID_RESULT(answer, waybill_ask(kNowhere, "GetStatus", NONE, 0, &answer, &error));
  INVALID_RESULT(answer, waybill_ask(kLatin1, "GetStatus", NONE, 0, &answer, &error));
  INVALID_RESULT(answer, waybill_ask(directory, "GetStatus", kNowhere, 0, &answer, &error));
  CHECK(waybill_set_time(store, 0, 0) == WAYBILL_INVALID_ARGUMENT);

  INVALID(waybill_hash_credentials(NONE, NONE, NONE, NULL, &error));
  INVALID_RESULT(answer, waybill_hash_credentials(kNowhere, NONE, NONE, &answer, &error));
  INVALID_RESULT(answer, waybill_hash_credentials(NONE, kNowhere, NONE, &answer, &error));
  INVALID_RESULT(answer, waybill_hash_credentials(NONE, NONE, kNowhere, &answer, &error));
  MUST(waybill_hash_credentials(NONE, kLatin1, NONE, &answer, &error)); /* as the kubelet */
  CHECK(strlen(answer) == 64);
  waybill_free(answer);
}

/* Arguments are the caller's again once the call has returned. */
static char* exactly(const char* text) { return memcpy(malloc(strlen(text)), text, strlen(text)); }

static void gone_after_the_call(waybill_store* store) {
  static const char* const kTexts[] = {"example.com/gone:v1", "sha256:dd", "ns", "n", "u", "h-7"};
  waybill_text t[COUNT(kTexts)];
  for (size_t i = 0; i < COUNT(kTexts); ++i) {
    t[i] = (waybill_text){exactly(kTexts[i]), strlen(kTexts[i])};
  }
  const waybill_credential secret = {t[2], t[3], t[4], t[5]};
  const waybill_credentials pod = {.secrets = &secret, .secret_count = 1};
  const waybill_copy copy = {t[0], t[1], NONE};
  uint64_t number;
  MUST(waybill_begin_pull(store, copy, &number, &error));
  MUST(waybill_end_pull(store, copy, number, WAYBILL_PULLED, &pod, NONE, &error));
  /* With another hash it is queued, to be written after the call has returned. */
  ((char*)(uintptr_t)t[5].data)[2] = '8';
  CHECK(waybill_decide(store, copy, &pod).use);
  for (size_t i = 0; i < COUNT(kTexts); ++i) {
    memset((char*)(uintptr_t)t[i].data, '#', t[i].size);
    free((void*)(uintptr_t)t[i].data);
  }
  expect(store, "Flush", "", "{}");
  expect(store, "ListImages", "{\"imageRef\": \"sha256:dd\", \"hashes\": true}", "\"h-8\"");
}

/* The store sets the limits; it says so if it refuses. */
static void a_mebibyte_each(waybill_store* store) {
  const size_t size = (size_t)1 << 20;
  char* const bytes = malloc(size);
  if (bytes == NULL) check_exit();
  memset(bytes, 'a', size);
  const waybill_text big = {bytes, size};
  uint64_t number;
  char* answer;
  waybill_store* opened = check_poison();
  waybill_credential secret = kSecret;
  secret.name = secret.hash = big;
  const waybill_credentials pod = {.secrets = &secret, .secret_count = 1};
  CHECK_CODE(WAYBILL_LIMIT_EXCEEDED,
             waybill_begin_pull(store, COPY(.image = big), &number, &error));
  CHECK(waybill_end_pull(store, APP, 0, WAYBILL_PULLED, &pod, NONE, NULL) != WAYBILL_OK);
  CHECK(!may_use(store, &pod));
  CHECK(!waybill_decide(store, COPY(.image = big, .image_ref = big), &kPod).use);
  INVALID_RESULT(answer, waybill_call(store, "Explain", big, &answer, &error));
  CHECK(waybill_open(big, WAYBILL_NO_LOSS_MARKER, NONE, &opened, NULL) != WAYBILL_OK);
  CHECK(opened == NULL);
  free(bytes);
}

int main(void) {
  openings();
  no_store();
  waybill_store* store = open_store("store");
  pull(store);
  copies(store);
  credentials(store);
  pulls_and_pods(store);
  calls(store);
  gone_after_the_call(store);
  a_mebibyte_each(store);
  CHECK(may_use(store, &kPod));
  expect(store, "Verify", "", "\"sound\":true,");
  end_store(store);
  return check_result();
}
