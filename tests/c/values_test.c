/* The pure functions: names, platforms, times, policies, what is no document. */

#include <string.h>

#include "support.h"

static waybill_error* error;

static void versions_and_names(void) {
  CHECK(strchr(waybill_version().data, '.') != NULL);
  waybill_allow_untested_lmdb(true);
  waybill_allow_untested_lmdb(false);
  CHECK(waybill_oldest_schema() == 1 && waybill_newest_schema() >= 3);
  CHECK_TEXT("ok", waybill_code_name(WAYBILL_OK));
  CHECK_TEXT("invalidArgument", waybill_code_name(WAYBILL_INVALID_ARGUMENT));
  CHECK_TEXT("mustAuthenticate", waybill_check_result_name(WAYBILL_CHECK_MUST_AUTHENTICATE));
  CHECK_TEXT("", waybill_check_result_name(WAYBILL_CHECK_NOT_COUNTED));
  CHECK_TEXT("secretHashMatches", waybill_reason_name(WAYBILL_REASON_SECRET_HASH_MATCHES));
  CHECK_TEXT("the image is not on the node", waybill_reason_text(WAYBILL_REASON_IMAGE_ABSENT));
  CHECK_TEXT("ErrImageNeverPull", waybill_ensure_action_name(WAYBILL_ENSURE_NEVER_PULL));
  CHECK(waybill_classify_pull_error(WAYBILL_STRING("x: 401 Unauthorized")) ==
        WAYBILL_PULL_ERROR_AUTH);
  CHECK(waybill_classify_pull_error(NONE) == WAYBILL_PULL_ERROR_UNKNOWN);
}

/* Every decoder refuses other documents. */
static void no_documents(void) {
  static const char* const kBad[] = {"", "{", "null", "[1]", "\"x\"", "{\"a\":1}\0", "\xff"};
  for (size_t i = 0; i < sizeof(kBad) / sizeof(kBad[0]); ++i) {
    const waybill_string json = text(kBad[i]);
    waybill_image_pulled_record* record = check_poison();
    waybill_image_pull_intent* intent = check_poison();
    waybill_image_preloaded_record* preloaded = check_poison();
    waybill_image_index* index = check_poison();
    INVALID(waybill_decode_pulled_record(json, &record, &error));
    INVALID(waybill_decode_pull_intent(json, &intent, &error));
    INVALID(waybill_decode_preloaded_record(json, &preloaded, &error));
    INVALID(waybill_decode_image_index(json, &index, &error));
    CHECK(record == NULL && intent == NULL && preloaded == NULL && index == NULL);
  }
}

static void times(void) {
  waybill_timestamp time = {0, 0};
  MUST(waybill_parse_timestamp(WAYBILL_STRING("2026-01-02T03:04:05Z"), &time, &error));
  CHECK(time.seconds == 1767323045 && time.nanoseconds == 0);
  waybill_string* result = NULL;
  MUST(waybill_format_timestamp(time, &result, &error));
  CHECK_TEXT("2026-01-02T03:04:05Z", *result);
  waybill_free(result);
  static const waybill_timestamp kNone[] = {
      {INT64_MAX, 0}, {INT64_MIN, 0}, {0, -1}, {0, 1000000000}, {0, INT32_MIN}};
  for (size_t i = 0; i < sizeof(kNone) / sizeof(kNone[0]); ++i) {
    INVALID(waybill_format_timestamp(kNone[i], &result, &error));
    CHECK(result == NULL);
  }
  INVALID(waybill_parse_timestamp(WAYBILL_STRING("tomorrow"), &time, &error));
}

static void policies(void) {
  const waybill_string pattern = WAYBILL_STRING("example.com/open/*");
  waybill_policy* policy = NULL;
  MUST(waybill_policy_make(WAYBILL_NEVER_VERIFY_ALLOWLISTED_IMAGES, (waybill_strings){&pattern, 1},
                           WAYBILL_ALLOWLIST_PRELOADED_ONLY, &policy, &error));
  CHECK(waybill_policy_mode(policy) == WAYBILL_NEVER_VERIFY_ALLOWLISTED_IMAGES);
  CHECK(waybill_policy_scope(policy) == WAYBILL_ALLOWLIST_PRELOADED_ONLY);
  const waybill_proof_rule rule = {pattern, WAYBILL_PROOFS_REGISTRY};
  waybill_policy* chooser = NULL;
  MUST(waybill_policy_with_proofs(policy, &rule, 1, &chooser, &error));
  /* Each is its own. */
  waybill_policy_free(policy);
  CHECK(waybill_policy_mode(chooser) == WAYBILL_NEVER_VERIFY_ALLOWLISTED_IMAGES);
  const waybill_proof_rule twice[2] = {rule, rule};
  policy = chooser;
  INVALID(waybill_policy_with_proofs(chooser, twice, 2, &policy, &error));
  CHECK(policy == NULL);
  waybill_policy_free(chooser);
  CHECK(waybill_policy_proof_counts(NULL, IMAGE, WAYBILL_CHECKER_UNKNOWN));
  const waybill_string wrong = WAYBILL_STRING("*");
  INVALID(waybill_policy_make(WAYBILL_NEVER_VERIFY_ALLOWLISTED_IMAGES, (waybill_strings){&wrong, 1},
                              WAYBILL_ALLOWLIST_ANY_IMAGE, &policy, &error));
  CHECK(policy == NULL);

  /* A store keeps its own copy. */
  MUST(waybill_policy_make(WAYBILL_ALWAYS_VERIFY, (waybill_strings){NULL, 0},
                           WAYBILL_ALLOWLIST_ANY_IMAGE, &policy, &error));
  waybill_open_options options = store_options("policy");
  options.policy = policy;
  waybill_store* store = open_with(&options);
  waybill_policy_free(policy);
  const waybill_decision decision = waybill_must_attempt_pull(store, APP, &kPod);
  CHECK(decision.pull && decision.reason == WAYBILL_REASON_NO_RECORD);
  end_store(store);
}

static void checkers(void) {
  int32_t number = -1;
  MUST(waybill_parse_proof_checker(WAYBILL_STRING("guest"), &number, &error));
  CHECK(number == WAYBILL_CHECKER_GUEST);
  MUST(waybill_parse_proofs(WAYBILL_STRING("registry"), &number, &error));
  CHECK(number == WAYBILL_PROOFS_REGISTRY);
  CHECK_TEXT("mirror", waybill_proof_checker_name(WAYBILL_CHECKER_MIRROR));
  CHECK_TEXT("any", waybill_proofs_name(WAYBILL_PROOFS_ANY));

  waybill_open_options options = store_options("checkers");
  waybill_store* store = open_with(&options);
  waybill_pull_result result = {.struct_size = sizeof result};
  const waybill_image_pull_credentials all = {.node_pods_accessible = true};
  result.terms.checker = 4;
  INVALID(waybill_record_image_pulled(store, APP, &all, &result, &error));
  end_store(store);
}

int main(void) {
  versions_and_names();
  no_documents();
  times();
  policies();
  checkers();
  return check_result();
}
