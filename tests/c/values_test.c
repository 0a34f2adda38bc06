/* The pure functions: names, hashes, platforms, the kubelet's JSON. */

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

  int32_t number = -1;
  for (int32_t rules = 0; rules <= WAYBILL_RULES_KUBELET; ++rules) {
    MUST(waybill_parse_rules(waybill_rules_name(rules), &number, &error));
    CHECK(number == rules);
  }
  for (int32_t mode = 0; mode <= WAYBILL_ALWAYS_VERIFY; ++mode) {
    MUST(waybill_parse_verification_mode(waybill_verification_mode_name(mode), &number, &error));
    CHECK(number == mode);
  }
  for (int32_t names = 0; names <= WAYBILL_SHORT_NAMES_DOCKER_HUB; ++names) {
    MUST(waybill_parse_short_names(waybill_short_names_name(names), &number, &error));
    CHECK(number == names);
  }
  CHECK_TEXT("running", waybill_pull_state_name(WAYBILL_OPEN_PULL_RUNNING));
  CHECK_TEXT("unknown", waybill_pull_state_name(WAYBILL_OPEN_PULL_UNKNOWN));
  CHECK_TEXT("", waybill_pull_state_name(0));
  for (int32_t policy = 0; policy <= WAYBILL_PULL_NEVER; ++policy) {
    MUST(waybill_parse_pull_policy(waybill_pull_policy_name(policy), &number, &error));
    CHECK(number == policy);
  }
  INVALID(waybill_parse_rules(WAYBILL_STRING("x"), &number, &error));
  INVALID(waybill_parse_verification_mode(NONE, &number, &error));
  INVALID(waybill_parse_pull_policy(WAYBILL_STRING("always"), &number, &error));
  INVALID(waybill_parse_short_names(WAYBILL_STRING("docker"), &number, &error));
}

static void images(void) {
  waybill_image_parts parts;
  const waybill_string image = WAYBILL_STRING("example.com:5000/a/b:v1");
  CHECK(waybill_parse_image(image, &parts));
  CHECK(parts.domain.data == image.data && parts.domain.length == strlen("example.com:5000"));
  CHECK(parts.path.length == 3 && memcmp(parts.path.data, "a/b", 3) == 0);
  CHECK(parts.tag.length == 2 && memcmp(parts.tag.data, "v1", 2) == 0);
  CHECK(parts.digest.length == 0);
  CHECK(parts.name.length == strlen("example.com:5000/a/b"));
  CHECK(!waybill_parse_image(WAYBILL_STRING("Not An Image"), &parts));
  CHECK(parts.name.length == 0 && parts.path.length == 0);

  waybill_string* result = NULL;
  MUST(waybill_normalise_image(WAYBILL_STRING("busybox"), &result, &error));
  CHECK_TEXT("docker.io/library/busybox:latest", *result);
  waybill_free(result);
  INVALID(waybill_normalise_image(WAYBILL_STRING("A B"), &result, &error));
  MUST(waybill_repository_of(image, &result, &error));
  CHECK_TEXT("example.com:5000/a/b", *result);
  waybill_free(result);
}

static void hashes(void) {
  waybill_string* hash = NULL;
  MUST(waybill_hash_credentials(NONE, NONE, NONE, &hash, &error));
  CHECK_TEXT("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a", *hash);
  waybill_free(hash);
  MUST(waybill_hash_credentials(WAYBILL_STRING("user"), NONE, NONE, &hash, &error));
  CHECK_TEXT("1d03b8b8f9f35bbfb101f2d2d69dccf3f6b313b4aa67dbfab6889fa7bf0fa051", *hash);
  waybill_free(hash);
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

/* Decoding returns what was encoded. */
static void kubelet_files(int32_t version) {
  const waybill_timestamp time = {1767225600, 0};
  const waybill_credential_mapping mapping = {WAYBILL_STRING("example.com/a"), kCredentials};
  const waybill_image_pulled_record record = {.image_ref = REF,
                                              .last_updated = &time,
                                              .credential_mapping = &mapping,
                                              .credential_mapping_count = 1};
  waybill_string* json = NULL;
  MUST(waybill_encode_pulled_record(&record, version, &json, &error));
  CHECK_CONTAINS("ImagePulledRecord", *json);
  waybill_image_pulled_record* again = NULL;
  MUST(waybill_decode_pulled_record(*json, &again, &error));
  CHECK_TEXT("sha256:aa", again->image_ref);
  CHECK(again->last_updated->seconds == time.seconds);
  CHECK_TEXT("example.com/a", again->credential_mapping[0].image_name);
  CHECK_TEXT("hash-1", again->credential_mapping[0].credentials.secrets[0].credential_hash);
  waybill_free(again);
  waybill_free(json);

  const waybill_image_pull_intent intent = {.image = IMAGE};
  MUST(waybill_encode_pull_intent(&intent, version, &json, &error));
  waybill_image_pull_intent* intent_again = NULL;
  MUST(waybill_decode_pull_intent(*json, &intent_again, &error));
  CHECK_TEXT(IMAGE.data, intent_again->image);
  waybill_free(intent_again);
  waybill_free(json);
}

static void preloaded_files(void) {
  const waybill_string observed[2] = {WAYBILL_STRING("example.com/a"),
                                      WAYBILL_STRING("example.com/b")};
  const waybill_image_preloaded_record record = {.image_ref = REF,
                                                 .observed_images = {observed, 2}};
  waybill_string* json = NULL;
  MUST(waybill_encode_preloaded_record(&record, WAYBILL_KUBELET_V1BETA1, &json, &error));
  waybill_image_preloaded_record* again = NULL;
  MUST(waybill_decode_preloaded_record(*json, &again, &error));
  CHECK(again->observed_images.count == 2);
  CHECK_TEXT("example.com/a", again->observed_images.items[0]);
  waybill_free(again);
  waybill_free(json);
}

static void lists_of_the_runtime(void) {
  waybill_images_on_node* images = NULL;
  MUST(waybill_decode_image_list(
      WAYBILL_STRING("{\"images\":[{\"id\":\"sha256:aa\",\"repoTags\":[\"example.com/a:v1\"],"
                     "\"repoDigests\":[\"example.com/a@sha256:bb\"],\"pinned\":true}]}"),
      &images, &error));
  CHECK(images->count == 1 && images->items[0].repo_tags.count == 1);
  CHECK_TEXT("sha256:aa", images->items[0].id);
  CHECK(images->items[0].pinned);
  CHECK_TEXT("example.com/a:v1", images->items[0].repo_tags.items[0]);
  CHECK_TEXT("example.com/a@sha256:bb", images->items[0].repo_digests.items[0]);
  CHECK_TEXT("", images->items[0].runtime_handler);
  waybill_free(images);

  waybill_strings* pods = NULL;
  MUST(waybill_decode_pod_list(
      WAYBILL_STRING("{\"kind\":\"List\",\"items\":[{\"kind\":\"Pod\",\"metadata\":{\"uid\":"
                     "\"11111111-2222-3333-4444-555555555555\"}}]}"),
      &pods, &error));
  CHECK(pods->count == 1);
  CHECK_TEXT(POD.data, pods->items[0]);
  waybill_free(pods);

  waybill_runtime_handlers* handlers = NULL;
  MUST(waybill_decode_runtime_status(
      WAYBILL_STRING("{\"runtimeHandlers\":[{\"features\":{\"user_namespaces\":true}},"
                     "{\"name\":\"kata\",\"features\":{}}]}"),
      &handlers, &error));
  CHECK(handlers->count == 2);
  waybill_free(handlers);

  waybill_registry_auths* auths = NULL;
  MUST(waybill_decode_auth_document(
      WAYBILL_STRING("{\"auths\":{\"example.com\":{\"auth\":\"dXNlcjpwYXNz\",\"email\":\"e\"}}}"),
      &auths, &error));
  CHECK(auths->count == 1);
  CHECK_TEXT("example.com", auths->items[0].registry);
  CHECK_TEXT("user", auths->items[0].username);
  CHECK_TEXT("pass", auths->items[0].password);
  CHECK_TEXT("e", auths->items[0].email);
  waybill_free(auths);
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
  waybill_policy_free(policy);
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

int main(void) {
  versions_and_names();
  images();
  hashes();
  platforms();
  kubelet_files(WAYBILL_KUBELET_V1BETA1);
  kubelet_files(WAYBILL_KUBELET_V1ALPHA1);
  preloaded_files();
  lists_of_the_runtime();
  no_documents();
  times();
  policies();
  return check_result();
}
