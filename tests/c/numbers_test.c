/* Every number of the header, for ever: the ABI's description does not have them, since functions
 * take and return plain integers. bindings/c/abi checks that none is missing here. And what
 * functions do with other numbers. */

#include <string.h>

#include "support.h"

static waybill_error* error;

static void in_a_row(int32_t first, size_t count, const int32_t* numbers) {
  for (size_t i = 0; i < count; ++i) {
    if (!CHECK(numbers[i] == first + (int32_t)i)) fprintf(stderr, "  %d of this row\n", (int)i);
  }
}

/* Numbers from `first` on, each one more than the one before it. */
#define ROW(first, ...)                                                     \
  in_a_row(first, sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t), \
           (const int32_t[]){__VA_ARGS__})

static void are_for_ever(void) {
  ROW(0, WAYBILL_OK, WAYBILL_INVALID_ARGUMENT, WAYBILL_LIMIT_EXCEEDED, WAYBILL_NOT_FOUND,
      WAYBILL_DAMAGED, WAYBILL_OWNED, WAYBILL_NEWER_SCHEMA, WAYBILL_OLDER_SCHEMA,
      WAYBILL_UNSAFE_PATH, WAYBILL_STORE_FULL, WAYBILL_DISK_FULL, WAYBILL_IO, WAYBILL_CONFLICT,
      WAYBILL_NOT_OWNER, WAYBILL_INTERRUPTED, WAYBILL_OUTCOME_UNKNOWN,
      WAYBILL_CREDENTIALS_UNAVAILABLE, WAYBILL_UNAVAILABLE);
  ROW(64, WAYBILL_CLOSED, WAYBILL_OUT_OF_MEMORY, WAYBILL_INTERNAL);
  ROW(0, WAYBILL_HINT_NONE, WAYBILL_HINT_RECOVER, WAYBILL_HINT_VERIFY, WAYBILL_HINT_PULL_AGAIN,
      WAYBILL_HINT_CREATE, WAYBILL_HINT_MIGRATE, WAYBILL_HINT_ACCEPT_LOSS, WAYBILL_HINT_RESTORE,
      WAYBILL_HINT_LIST_BACKUPS, WAYBILL_HINT_ALLOW_UNTESTED_LMDB, WAYBILL_HINT_PRUNE_OR_ENLARGE,
      WAYBILL_HINT_SKIP_UNREADABLE, WAYBILL_HINT_ALLOW_EMPTY, WAYBILL_HINT_BEGIN_LIST,
      WAYBILL_HINT_BEGIN_USERNS_CLEANUP, WAYBILL_HINT_LOAD_HANDLERS, WAYBILL_HINT_FREE_RANGES,
      WAYBILL_HINT_SETTLE_HELD_PODS, WAYBILL_HINT_RELEASE_POD, WAYBILL_HINT_REPLACE_WITNESS);
  ROW(1, WAYBILL_QUARANTINED_IMAGE_REF, WAYBILL_QUARANTINED_IMAGE);
  ROW(1, WAYBILL_HELD_OTHER, WAYBILL_HELD_FILE_CONFLICT, WAYBILL_HELD_TABLES_CONTRADICT,
      WAYBILL_HELD_UNREADABLE_FILE, WAYBILL_HELD_FROM_BACKUP, WAYBILL_HELD_LOST_RANGES,
      WAYBILL_HELD_UNTIL_IMPORT);
  ROW(1, WAYBILL_TRUST_OTHER, WAYBILL_TRUST_OPERATOR, WAYBILL_TRUST_STORE_LOST,
      WAYBILL_TRUST_STORE_STALE, WAYBILL_TRUST_STORE_REBUILT, WAYBILL_TRUST_STORE_RESTORED,
      WAYBILL_TRUST_IMPORT_UNFINISHED, WAYBILL_TRUST_GAP, WAYBILL_TRUST_JOURNAL_FULL);
  ROW(1, WAYBILL_TRUST_DISTRUST, WAYBILL_TRUST_TRUST, WAYBILL_TRUST_TAKEN_BACK, WAYBILL_TRUST_NOTE);
  ROW(1, WAYBILL_OPEN_PULL_RUNNING, WAYBILL_OPEN_PULL_FAILED, WAYBILL_OPEN_PULL_UNKNOWN,
      WAYBILL_OPEN_PULL_DROPPED);
  ROW(0, WAYBILL_SHORT_NAMES_ANYWHERE, WAYBILL_SHORT_NAMES_DOCKER_HUB);
  ROW(0, WAYBILL_KUBELET_V1BETA1, WAYBILL_KUBELET_V1ALPHA1);
  ROW(0, WAYBILL_RULES_CLOSED, WAYBILL_RULES_KUBELET);
  ROW(0, WAYBILL_NEVER_VERIFY, WAYBILL_NEVER_VERIFY_PRELOADED_IMAGES,
      WAYBILL_NEVER_VERIFY_ALLOWLISTED_IMAGES, WAYBILL_ALWAYS_VERIFY);
  ROW(0, WAYBILL_ALLOWLIST_ANY_IMAGE, WAYBILL_ALLOWLIST_PRELOADED_ONLY);
  ROW(0, WAYBILL_ORIGIN_KUBELET_PULLED, WAYBILL_ORIGIN_PRELOADED, WAYBILL_ORIGIN_UNKNOWN);
  ROW(0, WAYBILL_NAMESPACE_POD);
  ROW(2, WAYBILL_NAMESPACE_NODE);
  ROW(0, WAYBILL_HOST_USERS_UNSET, WAYBILL_HOST_USERS_TRUE, WAYBILL_HOST_USERS_FALSE);
  ROW(0, WAYBILL_POOL_INSIDE, WAYBILL_POOL_OUTSIDE, WAYBILL_POOL_OTHER_LENGTH);
  ROW(1, WAYBILL_WITNESS_AT, WAYBILL_WITNESS_REMEMBERED, WAYBILL_WITNESS_NONE,
      WAYBILL_WITNESS_ANEW);
  ROW(0, WAYBILL_FIRST_START_PRESUME, WAYBILL_FIRST_START_CLOSE);
  ROW(0, WAYBILL_SETTLED_PRELOADED, WAYBILL_SETTLED_CLOSED);
  ROW(0, WAYBILL_GAP_DETECT, WAYBILL_GAP_YES, WAYBILL_GAP_NO);
  ROW(0, WAYBILL_CHECK_NOT_COUNTED, WAYBILL_CHECK_CREDENTIAL_POLICY_ALLOWED,
      WAYBILL_CHECK_CREDENTIAL_RECORD_FOUND, WAYBILL_CHECK_MUST_AUTHENTICATE, WAYBILL_CHECK_ERROR);
  ROW(0, WAYBILL_REASON_IMAGE_ABSENT, WAYBILL_REASON_POLICY_NEVER_VERIFIES,
      WAYBILL_REASON_POLICY_PRESUMED_PRELOADED, WAYBILL_REASON_POLICY_ALLOWLISTED,
      WAYBILL_REASON_NODE_PODS_ACCESSIBLE, WAYBILL_REASON_SECRET_HASH_MATCHES,
      WAYBILL_REASON_SECRET_COORDINATES_MATCH, WAYBILL_REASON_SERVICE_ACCOUNT_MATCHES,
      WAYBILL_REASON_NO_RECORD, WAYBILL_REASON_PULL_IN_FLIGHT, WAYBILL_REASON_STORE_DISTRUSTFUL,
      WAYBILL_REASON_PULLED_FOR_OTHER_HANDLER, WAYBILL_REASON_NO_ENTRY_FOR_IMAGE_NAME,
      WAYBILL_REASON_ENTRY_WITHOUT_CREDENTIALS, WAYBILL_REASON_NO_CREDENTIAL_MATCHES,
      WAYBILL_REASON_IMAGE_DOES_NOT_PARSE, WAYBILL_REASON_ARGUMENT_TOO_LONG,
      WAYBILL_REASON_RUNTIME_HANDLER_UNKNOWN, WAYBILL_REASON_RECORD_DAMAGED,
      WAYBILL_REASON_QUARANTINED, WAYBILL_REASON_CREDENTIALS_UNAVAILABLE,
      WAYBILL_REASON_STORE_UNAVAILABLE, WAYBILL_REASON_CREDENTIALS_NEEDED,
      WAYBILL_REASON_POLICY_KNOWN_PRELOADED, WAYBILL_REASON_NO_EVIDENCE,
      WAYBILL_REASON_PROOF_TOO_OLD, WAYBILL_REASON_PROOF_NOT_BY_REGISTRY);
  ROW(0, WAYBILL_PULL_ALWAYS, WAYBILL_PULL_IF_NOT_PRESENT, WAYBILL_PULL_NEVER);
  ROW(0, WAYBILL_ENSURE_PULL, WAYBILL_ENSURE_USE_PRESENT, WAYBILL_ENSURE_INVALID_IMAGE_NAME,
      WAYBILL_ENSURE_NEVER_PULL, WAYBILL_ENSURE_CREDENTIALS_ERROR);
  ROW(0, WAYBILL_PULL_FAILED, WAYBILL_PULL_OUTCOME_UNKNOWN, WAYBILL_PULL_NOTHING_TRANSFERRED);
  ROW(0, WAYBILL_PULL_ERROR_UNKNOWN, WAYBILL_PULL_ERROR_AUTH, WAYBILL_PULL_ERROR_NOT_FOUND,
      WAYBILL_PULL_ERROR_UNAVAILABLE, WAYBILL_PULL_ERROR_OTHER);
  ROW(1, WAYBILL_REVOKED_SECRET, WAYBILL_REVOKED_SERVICE_ACCOUNT, WAYBILL_REVOKED_NAMESPACE,
      WAYBILL_REVOKED_IMAGE, WAYBILL_REVOKED_CREDENTIAL);
  ROW(0, WAYBILL_EXPLAINED_NODE_PODS, WAYBILL_EXPLAINED_SECRET, WAYBILL_EXPLAINED_SERVICE_ACCOUNT);
  ROW(0, WAYBILL_STANDING_COUNTS, WAYBILL_STANDING_TOO_OLD, WAYBILL_STANDING_FORGOTTEN,
      WAYBILL_STANDING_NOT_BY_REGISTRY);
  ROW(1, WAYBILL_STREAM_EXEC, WAYBILL_STREAM_ATTACH, WAYBILL_STREAM_PORT_FORWARD);
  ROW(0, WAYBILL_STREAM_URL_ALLOWED, WAYBILL_STREAM_URL_POLICY, WAYBILL_STREAM_URL_TOO_LONG,
      WAYBILL_STREAM_URL_CHARACTER, WAYBILL_STREAM_URL_NO_SCHEME, WAYBILL_STREAM_URL_SCHEME,
      WAYBILL_STREAM_URL_NOT_HTTPS, WAYBILL_STREAM_URL_NO_HOST, WAYBILL_STREAM_URL_USER_INFO,
      WAYBILL_STREAM_URL_ZONE, WAYBILL_STREAM_URL_ENCODED_HOST, WAYBILL_STREAM_URL_PORT,
      WAYBILL_STREAM_URL_SYNTAX, WAYBILL_STREAM_URL_FRAGMENT, WAYBILL_STREAM_URL_ADDRESS_FORM,
      WAYBILL_STREAM_URL_HOST_NAME, WAYBILL_STREAM_URL_UNSPECIFIED, WAYBILL_STREAM_URL_NOT_ALLOWED,
      WAYBILL_STREAM_URL_PORT_NOT_ALLOWED, WAYBILL_STREAM_URL_REDIRECT,
      WAYBILL_STREAM_URL_REDIRECT_HOST, WAYBILL_STREAM_URL_REDIRECT_DOWNGRADE);
  ROW(0, WAYBILL_STREAM_HTTP, WAYBILL_STREAM_HTTPS);
  ROW(0, WAYBILL_STREAMING_KUBELET, WAYBILL_STREAMING_API_SERVER);
  ROW(0, WAYBILL_GATE_STREAMING_PROXY_REDIRECTS, WAYBILL_GATE_VALIDATE_PROXY_REDIRECTS,
      WAYBILL_GATE_TRANSLATE_STREAM_CLOSE_WEBSOCKET_REQUESTS, WAYBILL_GATE_PORT_FORWARD_WEBSOCKETS,
      WAYBILL_GATE_EXTEND_WEBSOCKETS_TO_KUBELET, WAYBILL_GATE_NODE_DECLARED_FEATURES,
      WAYBILL_GATE_ALL_ALPHA, WAYBILL_GATE_ALL_BETA);
  ROW(0, WAYBILL_FLAG_NOT_GIVEN, WAYBILL_FLAG_FALSE, WAYBILL_FLAG_TRUE);
  ROW(0, WAYBILL_STREAMING_IGNORED, WAYBILL_STREAMING_DEPRECATED, WAYBILL_STREAMING_REMOVED,
      WAYBILL_STREAMING_FATAL);
  ROW(0, WAYBILL_STREAMING_PROXY_KUBELET, WAYBILL_STREAMING_PROXY_REDIRECT);
  ROW(0, WAYBILL_REDIRECT_NOT_NEEDED, WAYBILL_REDIRECT_API_SERVER, WAYBILL_REDIRECT_NOBODY);
  ROW(0, WAYBILL_REDIRECT_CHECK_NOT_NEEDED, WAYBILL_REDIRECT_CHECK_SAME_HOST,
      WAYBILL_REDIRECT_CHECK_NONE);
  ROW(0, WAYBILL_WEBSOCKETS_NOBODY, WAYBILL_WEBSOCKETS_API_SERVER, WAYBILL_WEBSOCKETS_KUBELET);
  ROW(0, WAYBILL_STREAMING_WORKS, WAYBILL_STREAMING_WORKS_ON_SAME_HOST, WAYBILL_STREAMING_FAILS,
      WAYBILL_STREAMING_DOES_NOT_START);
  ROW(0, WAYBILL_SKEW_SUPPORTED, WAYBILL_SKEW_KUBELET_TOO_OLD, WAYBILL_SKEW_KUBELET_NEWER);
  ROW(0, WAYBILL_CHECKER_UNKNOWN, WAYBILL_CHECKER_REGISTRY, WAYBILL_CHECKER_MIRROR,
      WAYBILL_CHECKER_GUEST);
  ROW(0, WAYBILL_PROOFS_ANY, WAYBILL_PROOFS_REGISTRY);
  ROW(0, WAYBILL_RUNTIME_UNKNOWN, WAYBILL_RUNTIME_CONTAINERD, WAYBILL_RUNTIME_CRI_O);
}

static const int32_t kWrong[] = {-1, 1000, INT32_MAX, INT32_MIN};
enum { WRONG = sizeof(kWrong) / sizeof(kWrong[0]) };

static bool is_empty(waybill_string string) { return string.length == 0 && string.data != NULL; }

static void have_no_name(int32_t number) {
  CHECK(is_empty(waybill_code_name(number)));
  CHECK(is_empty(waybill_hint_text(number)));
  CHECK(is_empty(waybill_rules_name(number)));
  CHECK(is_empty(waybill_verification_mode_name(number)));
  CHECK(is_empty(waybill_check_result_name(number)));
  CHECK(is_empty(waybill_reason_name(number)));
  CHECK(is_empty(waybill_reason_text(number)));
  CHECK(is_empty(waybill_pull_policy_name(number)));
  CHECK(is_empty(waybill_ensure_action_name(number)));
  CHECK(is_empty(waybill_pull_state_name(number)));
  CHECK(is_empty(waybill_short_names_name(number)));
  CHECK(is_empty(waybill_revocation_kind_name(number)));
  CHECK(is_empty(waybill_credential_standing_name(number)));
  CHECK(is_empty(waybill_proof_checker_name(number)));
  CHECK(is_empty(waybill_proofs_name(number)));
  CHECK(is_empty(waybill_stream_url_refusal_name(number)));
  CHECK(is_empty(waybill_stream_scheme_name(number)));
  waybill_string* answer = check_poison();
  INVALID(waybill_other_answer(number, NONE, &answer, &error));
  CHECK(answer == NULL);
}

static void are_refused(waybill_store* store, int32_t number) {
  waybill_string* json = check_poison();
  const waybill_image_pulled_record record = {.image_ref = REF};
  const waybill_image_pull_intent intent = {.image = IMAGE};
  const waybill_image_preloaded_record preloaded = {.image_ref = REF};
  INVALID(waybill_encode_pulled_record(&record, number, &json, &error));
  INVALID(waybill_encode_pull_intent(&intent, number, &json, &error));
  INVALID(waybill_encode_preloaded_record(&preloaded, number, &json, &error));
  CHECK(json == NULL);
  waybill_policy* policy = check_poison();
  const waybill_strings none = {NULL, 0};
  INVALID(waybill_policy_make(number, none, WAYBILL_ALLOWLIST_ANY_IMAGE, &policy, &error));
  INVALID(waybill_policy_make(WAYBILL_NEVER_VERIFY, none, number, &policy, &error));
  CHECK(policy == NULL);
  CHECK(waybill_policy_requires_verification(NULL, IMAGE, number));

  waybill_ensure_outcome* outcome = check_poison();
  INVALID(waybill_ensure_image(store, APP, number, &kPod, &outcome, &error));
  CHECK(outcome == NULL);
  INVALID(waybill_ensure_image_lazily(store, APP, number, NULL, NULL, &outcome, &error));
  INVALID(waybill_record_image_pull_failed(store, COPY(.image = IMAGE), number, 0, &error));
  waybill_user_namespace_request request = WAYBILL_USER_NAMESPACE_REQUEST_INIT;
  request.pod_uid = POD;
  request.host_users = number;
  waybill_user_namespace got;
  INVALID(waybill_get_or_create_user_namespace(store, &request, &got, &error));
  waybill_export_options exported = WAYBILL_EXPORT_OPTIONS_INIT;
  exported.kubelet_directory = scratch("");
  exported.api_version = number;
  INVALID(waybill_export(store, &exported, NULL, &error));

  waybill_strings* names = check_poison();
  waybill_open_pull open_pull = {.image = IMAGE, .state = WAYBILL_OPEN_PULL_RUNNING};
  INVALID(waybill_names_given_by(&open_pull, number, &names, &error));
  open_pull.state = number;
  INVALID(waybill_names_given_by(&open_pull, WAYBILL_SHORT_NAMES_ANYWHERE, &names, &error));
  CHECK(names == NULL);

  waybill_store* other = check_poison();
  waybill_open_options options;
/* Of a store that is never made. */
#define INVALID_OPTION(option, value)                \
  do {                                               \
    options = store_options("never");                \
    options.option = (value);                        \
    INVALID(waybill_open(&options, &other, &error)); \
  } while (0)
  INVALID_OPTION(witness_kind, number);
  INVALID_OPTION(witness_kind, 0);
  INVALID_OPTION(rules, number);
  INVALID_OPTION(gap, number);
  INVALID_OPTION(first_start, number);
  INVALID_OPTION(map_bytes, 1);
  INVALID_OPTION(witness_path, scratch("witness"));
  waybill_evidence_options evidence = WAYBILL_EVIDENCE_OPTIONS_INIT;
  evidence.short_names = number;
  INVALID_OPTION(evidence, &evidence);
  waybill_age_limits ages = WAYBILL_AGE_LIMITS_INIT;
  int64_t* const limits[] = {&ages.credentials_seconds, &ages.service_accounts_seconds,
                             &ages.node_pods_seconds, &ages.revocations_seconds};
  for (size_t i = 0; i < 4; ++i) {
    *limits[i] = number < 0 ? INT64_MIN : INT64_MAX;
    INVALID_OPTION(ages, &ages);
    *limits[i] = 0;
  }
  CHECK(!is_there(options.directory));
  waybill_observe_options observing = WAYBILL_OBSERVE_OPTIONS_INIT;
  observing.directory = scratch("never");
  observing.rules = number;
  INVALID(waybill_observe(&observing, &other, &error));
  observing.rules = WAYBILL_RULES_CLOSED;
  observing.short_names = number;
  INVALID(waybill_observe(&observing, &other, &error));
  observing.short_names = WAYBILL_SHORT_NAMES_ANYWHERE;
  ages.credentials_seconds = -1;
  observing.ages = &ages;
  INVALID(waybill_observe(&observing, &other, &error));
  CHECK(other == NULL);
}

/* An error says what failed and what to do next. All codes have names, C's own, too. */
static void errors(void) {
  waybill_error* refused = NULL;
  waybill_store* store = NULL;
  waybill_open_options options = store_options("not-there");
  options.must_exist = true;
  CHECK(waybill_open(&options, &store, &refused) == WAYBILL_NOT_FOUND);
  CHECK(refused->code == WAYBILL_NOT_FOUND);
  CHECK_CONTAINS("not-there", refused->message);
  CHECK(refused->hint.length > 0 && refused->hint.data[refused->hint.length] == '\0');
  CHECK(refused->hint_code == WAYBILL_HINT_CREATE);
  CHECK_CONTAINS("waybill_open", refused->hint);
  waybill_free(refused);
  for (waybill_hint hint = WAYBILL_HINT_RECOVER; hint <= WAYBILL_HINT_REPLACE_WITNESS; ++hint) {
    const waybill_string words = waybill_hint_text(hint);
    CHECK(words.length > 0 && words.data[words.length] == '\0');
    CHECK(memchr(words.data, '`', words.length) == NULL);
  }
  for (int32_t code = 0; code <= WAYBILL_UNAVAILABLE; ++code) {
    CHECK(waybill_code_name(code).length > 0);
  }
  for (int32_t code = WAYBILL_CLOSED; code <= WAYBILL_INTERNAL; ++code) {
    CHECK(waybill_code_name(code).length > 0);
  }
}

int main(void) {
  are_for_ever();
  errors();
  waybill_store* store = open_store("store");
  for (int i = 0; i < WRONG; ++i) {
    have_no_name(kWrong[i]);
    are_refused(store, kWrong[i]);
  }
  end_store(store);
  return check_result();
}
