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

#define MANIFEST(digit, platform)                                                        \
  "{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\"size\":7,\"digest\":" \
  "\"sha256:" digit                                                                      \
  "234567890123456789012345678901234567890123456789012345678901234\","                   \
  "\"platform\":{" platform "}}"
#define INDEX                                                                                  \
  "{\"schemaVersion\":2,\"mediaType\":\"application/vnd.oci.image.index.v1+json\","            \
  "\"manifests\":[" MANIFEST("1", "\"os\":\"linux\",\"architecture\":\"arm64\"") "," MANIFEST( \
      "2", "\"os\":\"linux\",\"architecture\":\"amd64\"") "]}"

static void platforms(void) {
  waybill_platform* platform = NULL;
  MUST(waybill_parse_platform(WAYBILL_STRING("linux/aarch64"), &platform, &error));
  CHECK_TEXT("arm64", platform->architecture);
  waybill_string* result = NULL;
  MUST(waybill_format_platform(platform, &result, &error));
  CHECK_TEXT("linux/arm64", *result);
  waybill_free(result);
  waybill_platform* normalised = NULL;
  MUST(waybill_normalise_platform(platform, &normalised, &error));
  CHECK_TEXT("linux", normalised->os);
  waybill_free(normalised);
  INVALID(waybill_parse_platform(NONE, &normalised, &error));
  CHECK(normalised == NULL);

  waybill_image_index* index = NULL;
  MUST(waybill_decode_image_index(WAYBILL_STRING(INDEX), &index, &error));
  CHECK(index->count == 2 && index->items[0].size == 7 && !index->items[0].is_attestation);
  CHECK_TEXT("arm64", index->items[0].platform->architecture);
  size_t chosen = 99;
  MUST(waybill_choose_manifest(index, platform, NULL, &chosen, &error));
  CHECK(chosen == 0);
  const waybill_platform guest = {.architecture = WAYBILL_STRING("amd64"),
                                  .os = WAYBILL_STRING("linux")};
  MUST(waybill_choose_manifest(index, platform, &guest, &chosen, &error));
  CHECK(chosen == 1);
  const waybill_platform mips = {.architecture = WAYBILL_STRING("mips"),
                                 .os = WAYBILL_STRING("linux")};
  CHECK_CODE(WAYBILL_NOT_FOUND, waybill_choose_manifest(index, &mips, NULL, &chosen, &error));
  waybill_free(index);
  waybill_free(platform);
  INVALID(waybill_decode_image_index(WAYBILL_STRING("{}"), &index, &error));
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
  const waybill_string open = WAYBILL_STRING("example.com/open/a");
  CHECK(!waybill_policy_requires_verification(policy, open, WAYBILL_ORIGIN_PRELOADED));
  CHECK(waybill_policy_requires_verification(policy, open, WAYBILL_ORIGIN_KUBELET_PULLED));
  CHECK(waybill_policy_proof_counts(policy, open, WAYBILL_CHECKER_MIRROR));
  const waybill_proof_rule rule = {pattern, WAYBILL_PROOFS_REGISTRY};
  waybill_policy* chooser = NULL;
  MUST(waybill_policy_with_proofs(policy, &rule, 1, &chooser, &error));
  waybill_policy_free(policy);
  CHECK(waybill_policy_mode(chooser) == WAYBILL_NEVER_VERIFY_ALLOWLISTED_IMAGES);
  CHECK(!waybill_policy_proof_counts(chooser, open, WAYBILL_CHECKER_MIRROR));
  CHECK(waybill_policy_proof_counts(chooser, open, WAYBILL_CHECKER_REGISTRY));
  CHECK(waybill_policy_proof_counts(chooser, IMAGE, WAYBILL_CHECKER_GUEST));
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
  const waybill_timestamp end = {4000000000, 0};
  waybill_pull_result result = {.struct_size = sizeof result};
  result.terms = (waybill_proof_terms){WAYBILL_CHECKER_MIRROR, &end};
  const waybill_image_pull_credentials all = {.node_pods_accessible = true};
  MUST(waybill_record_image_pulled(store, APP, &all, &result, &error));
  waybill_proven_record* proven = NULL;
  MUST(waybill_get_proven_record(store, APP, &proven, &error));
  CHECK(proven->proofs[0].node_pods.checker == WAYBILL_CHECKER_MIRROR);
  CHECK(proven->proofs[0].node_pods.good_until->seconds == end.seconds);
  waybill_free(proven);
  result.terms.checker = 4;
  INVALID(waybill_record_image_pulled(store, APP, &all, &result, &error));
  waybill_metrics* metrics = NULL;
  MUST(waybill_get_metrics(store, &metrics, &error));
  CHECK(metrics->credentials_by_checker[WAYBILL_CHECKER_MIRROR] == 1);
  waybill_free(metrics);
  end_store(store);
}

int main(void) {
  versions_and_names();
  platforms();
  no_documents();
  times();
  policies();
  checkers();
  return check_result();
}
