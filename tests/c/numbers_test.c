/* Every number of the header, for ever: the ABI's description does not have them, since functions
 * take and return plain integers. bindings/c/abi checks that none is missing here. And what
 * functions do with other numbers. */

#include <string.h>

#include "support.h"

#define NUMBER(name, value) _Static_assert((name) == (value), #name)
NUMBER(WAYBILL_OK, 0);
NUMBER(WAYBILL_INVALID_ARGUMENT, 1);
NUMBER(WAYBILL_LIMIT_EXCEEDED, 2);
NUMBER(WAYBILL_NOT_FOUND, 3);
NUMBER(WAYBILL_DAMAGED, 4);
NUMBER(WAYBILL_OWNED, 5);
NUMBER(WAYBILL_NEWER_SCHEMA, 6);
NUMBER(WAYBILL_OLDER_SCHEMA, 7);
NUMBER(WAYBILL_UNSAFE_PATH, 8);
NUMBER(WAYBILL_STORE_FULL, 9);
NUMBER(WAYBILL_DISK_FULL, 10);
NUMBER(WAYBILL_IO, 11);
NUMBER(WAYBILL_CONFLICT, 12);
NUMBER(WAYBILL_NOT_OWNER, 13);
NUMBER(WAYBILL_INTERRUPTED, 14);
NUMBER(WAYBILL_OUTCOME_UNKNOWN, 15);
NUMBER(WAYBILL_CREDENTIALS_UNAVAILABLE, 16);
NUMBER(WAYBILL_UNAVAILABLE, 17);
NUMBER(WAYBILL_CLOSED, 64);
NUMBER(WAYBILL_OUT_OF_MEMORY, 65);
NUMBER(WAYBILL_INTERNAL, 66);
NUMBER(WAYBILL_HINT_NONE, 0);
NUMBER(WAYBILL_HINT_RECOVER, 1);
NUMBER(WAYBILL_HINT_VERIFY, 2);
NUMBER(WAYBILL_HINT_PULL_AGAIN, 3);
NUMBER(WAYBILL_HINT_CREATE, 4);
NUMBER(WAYBILL_HINT_MIGRATE, 5);
NUMBER(WAYBILL_HINT_ACCEPT_LOSS, 6);
NUMBER(WAYBILL_HINT_RESTORE, 7);
NUMBER(WAYBILL_HINT_LIST_BACKUPS, 8);
NUMBER(WAYBILL_HINT_ALLOW_UNTESTED_LMDB, 9);
NUMBER(WAYBILL_HINT_PRUNE_OR_ENLARGE, 10);
NUMBER(WAYBILL_HINT_SKIP_UNREADABLE, 11);
NUMBER(WAYBILL_HINT_ALLOW_EMPTY, 12);
NUMBER(WAYBILL_HINT_BEGIN_LIST, 13);
NUMBER(WAYBILL_HINT_BEGIN_USERNS_CLEANUP, 14);
NUMBER(WAYBILL_HINT_LOAD_HANDLERS, 15);
NUMBER(WAYBILL_HINT_FREE_RANGES, 16);
NUMBER(WAYBILL_HINT_SETTLE_HELD_PODS, 17);
NUMBER(WAYBILL_HINT_RELEASE_POD, 18);
NUMBER(WAYBILL_HINT_REPLACE_WITNESS, 19);
NUMBER(WAYBILL_QUARANTINED_IMAGE_REF, 1);
NUMBER(WAYBILL_QUARANTINED_IMAGE, 2);
NUMBER(WAYBILL_HELD_OTHER, 1);
NUMBER(WAYBILL_HELD_FILE_CONFLICT, 2);
NUMBER(WAYBILL_HELD_TABLES_CONTRADICT, 3);
NUMBER(WAYBILL_HELD_UNREADABLE_FILE, 4);
NUMBER(WAYBILL_HELD_FROM_BACKUP, 5);
NUMBER(WAYBILL_HELD_LOST_RANGES, 6);
NUMBER(WAYBILL_HELD_UNTIL_IMPORT, 7);
NUMBER(WAYBILL_TRUST_OTHER, 1);
NUMBER(WAYBILL_TRUST_OPERATOR, 2);
NUMBER(WAYBILL_TRUST_STORE_LOST, 3);
NUMBER(WAYBILL_TRUST_STORE_STALE, 4);
NUMBER(WAYBILL_TRUST_STORE_REBUILT, 5);
NUMBER(WAYBILL_TRUST_STORE_RESTORED, 6);
NUMBER(WAYBILL_TRUST_IMPORT_UNFINISHED, 7);
NUMBER(WAYBILL_TRUST_GAP, 8);
NUMBER(WAYBILL_TRUST_JOURNAL_FULL, 9);
NUMBER(WAYBILL_TRUST_DISTRUST, 1);
NUMBER(WAYBILL_TRUST_TRUST, 2);
NUMBER(WAYBILL_TRUST_TAKEN_BACK, 3);
NUMBER(WAYBILL_TRUST_NOTE, 4);
NUMBER(WAYBILL_OPEN_PULL_RUNNING, 1);
NUMBER(WAYBILL_OPEN_PULL_FAILED, 2);
NUMBER(WAYBILL_OPEN_PULL_UNKNOWN, 3);
NUMBER(WAYBILL_SHORT_NAMES_ANYWHERE, 0);
NUMBER(WAYBILL_SHORT_NAMES_DOCKER_HUB, 1);
NUMBER(WAYBILL_KUBELET_V1BETA1, 0);
NUMBER(WAYBILL_KUBELET_V1ALPHA1, 1);
NUMBER(WAYBILL_RULES_CLOSED, 0);
NUMBER(WAYBILL_RULES_KUBELET, 1);
NUMBER(WAYBILL_NEVER_VERIFY, 0);
NUMBER(WAYBILL_NEVER_VERIFY_PRELOADED_IMAGES, 1);
NUMBER(WAYBILL_NEVER_VERIFY_ALLOWLISTED_IMAGES, 2);
NUMBER(WAYBILL_ALWAYS_VERIFY, 3);
NUMBER(WAYBILL_ALLOWLIST_ANY_IMAGE, 0);
NUMBER(WAYBILL_ALLOWLIST_PRELOADED_ONLY, 1);
NUMBER(WAYBILL_ORIGIN_KUBELET_PULLED, 0);
NUMBER(WAYBILL_ORIGIN_PRELOADED, 1);
NUMBER(WAYBILL_ORIGIN_UNKNOWN, 2);
NUMBER(WAYBILL_NAMESPACE_POD, 0);
NUMBER(WAYBILL_NAMESPACE_NODE, 2);
NUMBER(WAYBILL_HOST_USERS_UNSET, 0);
NUMBER(WAYBILL_HOST_USERS_TRUE, 1);
NUMBER(WAYBILL_HOST_USERS_FALSE, 2);
NUMBER(WAYBILL_POOL_INSIDE, 0);
NUMBER(WAYBILL_POOL_OUTSIDE, 1);
NUMBER(WAYBILL_POOL_OTHER_LENGTH, 2);
NUMBER(WAYBILL_WITNESS_AT, 1);
NUMBER(WAYBILL_WITNESS_REMEMBERED, 2);
NUMBER(WAYBILL_WITNESS_NONE, 3);
NUMBER(WAYBILL_WITNESS_ANEW, 4);
NUMBER(WAYBILL_FIRST_START_PRESUME, 0);
NUMBER(WAYBILL_FIRST_START_CLOSE, 1);
NUMBER(WAYBILL_SETTLED_PRELOADED, 0);
NUMBER(WAYBILL_SETTLED_CLOSED, 1);
NUMBER(WAYBILL_GAP_DETECT, 0);
NUMBER(WAYBILL_GAP_YES, 1);
NUMBER(WAYBILL_GAP_NO, 2);
NUMBER(WAYBILL_CHECK_NOT_COUNTED, 0);
NUMBER(WAYBILL_CHECK_CREDENTIAL_POLICY_ALLOWED, 1);
NUMBER(WAYBILL_CHECK_CREDENTIAL_RECORD_FOUND, 2);
NUMBER(WAYBILL_CHECK_MUST_AUTHENTICATE, 3);
NUMBER(WAYBILL_CHECK_ERROR, 4);
NUMBER(WAYBILL_REASON_IMAGE_ABSENT, 0);
NUMBER(WAYBILL_REASON_POLICY_NEVER_VERIFIES, 1);
NUMBER(WAYBILL_REASON_POLICY_PRESUMED_PRELOADED, 2);
NUMBER(WAYBILL_REASON_POLICY_ALLOWLISTED, 3);
NUMBER(WAYBILL_REASON_NODE_PODS_ACCESSIBLE, 4);
NUMBER(WAYBILL_REASON_SECRET_HASH_MATCHES, 5);
NUMBER(WAYBILL_REASON_SECRET_COORDINATES_MATCH, 6);
NUMBER(WAYBILL_REASON_SERVICE_ACCOUNT_MATCHES, 7);
NUMBER(WAYBILL_REASON_NO_RECORD, 8);
NUMBER(WAYBILL_REASON_PULL_IN_FLIGHT, 9);
NUMBER(WAYBILL_REASON_STORE_DISTRUSTFUL, 10);
NUMBER(WAYBILL_REASON_PULLED_FOR_OTHER_HANDLER, 11);
NUMBER(WAYBILL_REASON_NO_ENTRY_FOR_IMAGE_NAME, 12);
NUMBER(WAYBILL_REASON_ENTRY_WITHOUT_CREDENTIALS, 13);
NUMBER(WAYBILL_REASON_NO_CREDENTIAL_MATCHES, 14);
NUMBER(WAYBILL_REASON_IMAGE_DOES_NOT_PARSE, 15);
NUMBER(WAYBILL_REASON_ARGUMENT_TOO_LONG, 16);
NUMBER(WAYBILL_REASON_RUNTIME_HANDLER_UNKNOWN, 17);
NUMBER(WAYBILL_REASON_RECORD_DAMAGED, 18);
NUMBER(WAYBILL_REASON_QUARANTINED, 19);
NUMBER(WAYBILL_REASON_CREDENTIALS_UNAVAILABLE, 20);
NUMBER(WAYBILL_REASON_STORE_UNAVAILABLE, 21);
NUMBER(WAYBILL_REASON_CREDENTIALS_NEEDED, 22);
NUMBER(WAYBILL_REASON_POLICY_KNOWN_PRELOADED, 23);
NUMBER(WAYBILL_REASON_NO_EVIDENCE, 24);
NUMBER(WAYBILL_REASON_PROOF_TOO_OLD, 25);
NUMBER(WAYBILL_PULL_ALWAYS, 0);
NUMBER(WAYBILL_PULL_IF_NOT_PRESENT, 1);
NUMBER(WAYBILL_PULL_NEVER, 2);
NUMBER(WAYBILL_ENSURE_PULL, 0);
NUMBER(WAYBILL_ENSURE_USE_PRESENT, 1);
NUMBER(WAYBILL_ENSURE_INVALID_IMAGE_NAME, 2);
NUMBER(WAYBILL_ENSURE_NEVER_PULL, 3);
NUMBER(WAYBILL_ENSURE_CREDENTIALS_ERROR, 4);
NUMBER(WAYBILL_PULL_FAILED, 0);
NUMBER(WAYBILL_PULL_OUTCOME_UNKNOWN, 1);
NUMBER(WAYBILL_PULL_NOTHING_TRANSFERRED, 2);
NUMBER(WAYBILL_REVOKED_SECRET, 1);
NUMBER(WAYBILL_REVOKED_SERVICE_ACCOUNT, 2);
NUMBER(WAYBILL_REVOKED_NAMESPACE, 3);
NUMBER(WAYBILL_REVOKED_IMAGE, 4);
NUMBER(WAYBILL_REVOKED_CREDENTIAL, 5);
NUMBER(WAYBILL_EXPLAINED_NODE_PODS, 0);
NUMBER(WAYBILL_EXPLAINED_SECRET, 1);
NUMBER(WAYBILL_EXPLAINED_SERVICE_ACCOUNT, 2);
NUMBER(WAYBILL_STANDING_COUNTS, 0);
NUMBER(WAYBILL_STANDING_TOO_OLD, 1);
NUMBER(WAYBILL_STANDING_FORGOTTEN, 2);
NUMBER(WAYBILL_STREAM_EXEC, 1);
NUMBER(WAYBILL_STREAM_ATTACH, 2);
NUMBER(WAYBILL_STREAM_PORT_FORWARD, 3);
NUMBER(WAYBILL_STREAM_URL_ALLOWED, 0);
NUMBER(WAYBILL_STREAM_URL_POLICY, 1);
NUMBER(WAYBILL_STREAM_URL_TOO_LONG, 2);
NUMBER(WAYBILL_STREAM_URL_CHARACTER, 3);
NUMBER(WAYBILL_STREAM_URL_NO_SCHEME, 4);
NUMBER(WAYBILL_STREAM_URL_SCHEME, 5);
NUMBER(WAYBILL_STREAM_URL_NOT_HTTPS, 6);
NUMBER(WAYBILL_STREAM_URL_NO_HOST, 7);
NUMBER(WAYBILL_STREAM_URL_USER_INFO, 8);
NUMBER(WAYBILL_STREAM_URL_ZONE, 9);
NUMBER(WAYBILL_STREAM_URL_ENCODED_HOST, 10);
NUMBER(WAYBILL_STREAM_URL_PORT, 11);
NUMBER(WAYBILL_STREAM_URL_SYNTAX, 12);
NUMBER(WAYBILL_STREAM_URL_FRAGMENT, 13);
NUMBER(WAYBILL_STREAM_URL_ADDRESS_FORM, 14);
NUMBER(WAYBILL_STREAM_URL_HOST_NAME, 15);
NUMBER(WAYBILL_STREAM_URL_UNSPECIFIED, 16);
NUMBER(WAYBILL_STREAM_URL_NOT_ALLOWED, 17);
NUMBER(WAYBILL_STREAM_URL_PORT_NOT_ALLOWED, 18);
NUMBER(WAYBILL_STREAM_URL_REDIRECT, 19);
NUMBER(WAYBILL_STREAM_URL_REDIRECT_HOST, 20);
NUMBER(WAYBILL_STREAM_URL_REDIRECT_DOWNGRADE, 21);
NUMBER(WAYBILL_STREAM_HTTP, 0);
NUMBER(WAYBILL_STREAM_HTTPS, 1);
NUMBER(WAYBILL_STREAMING_KUBELET, 0);
NUMBER(WAYBILL_STREAMING_API_SERVER, 1);
NUMBER(WAYBILL_GATE_STREAMING_PROXY_REDIRECTS, 0);
NUMBER(WAYBILL_GATE_VALIDATE_PROXY_REDIRECTS, 1);
NUMBER(WAYBILL_GATE_TRANSLATE_STREAM_CLOSE_WEBSOCKET_REQUESTS, 2);
NUMBER(WAYBILL_GATE_PORT_FORWARD_WEBSOCKETS, 3);
NUMBER(WAYBILL_GATE_EXTEND_WEBSOCKETS_TO_KUBELET, 4);
NUMBER(WAYBILL_GATE_NODE_DECLARED_FEATURES, 5);
NUMBER(WAYBILL_GATE_ALL_ALPHA, 6);
NUMBER(WAYBILL_GATE_ALL_BETA, 7);
NUMBER(WAYBILL_FLAG_NOT_GIVEN, 0);
NUMBER(WAYBILL_FLAG_FALSE, 1);
NUMBER(WAYBILL_FLAG_TRUE, 2);
NUMBER(WAYBILL_STREAMING_IGNORED, 0);
NUMBER(WAYBILL_STREAMING_DEPRECATED, 1);
NUMBER(WAYBILL_STREAMING_REMOVED, 2);
NUMBER(WAYBILL_STREAMING_FATAL, 3);
NUMBER(WAYBILL_STREAMING_COMMAND_LINE, 0);
NUMBER(WAYBILL_STREAMING_CONFIGURATION, 1);
NUMBER(WAYBILL_STREAMING_PROXY_KUBELET, 0);
NUMBER(WAYBILL_STREAMING_PROXY_REDIRECT, 1);
NUMBER(WAYBILL_REDIRECT_NOT_NEEDED, 0);
NUMBER(WAYBILL_REDIRECT_API_SERVER, 1);
NUMBER(WAYBILL_REDIRECT_NOBODY, 2);
NUMBER(WAYBILL_REDIRECT_CHECK_NOT_NEEDED, 0);
NUMBER(WAYBILL_REDIRECT_CHECK_SAME_HOST, 1);
NUMBER(WAYBILL_REDIRECT_CHECK_NONE, 2);
NUMBER(WAYBILL_WEBSOCKETS_NOBODY, 0);
NUMBER(WAYBILL_WEBSOCKETS_API_SERVER, 1);
NUMBER(WAYBILL_WEBSOCKETS_KUBELET, 2);
NUMBER(WAYBILL_STREAMING_WORKS, 0);
NUMBER(WAYBILL_STREAMING_WORKS_ON_SAME_HOST, 1);
NUMBER(WAYBILL_STREAMING_FAILS, 2);
NUMBER(WAYBILL_STREAMING_DOES_NOT_START, 3);
NUMBER(WAYBILL_SKEW_SUPPORTED, 0);
NUMBER(WAYBILL_SKEW_KUBELET_TOO_OLD, 1);
NUMBER(WAYBILL_SKEW_KUBELET_NEWER, 2);

static waybill_error* error;

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
  errors();
  waybill_store* store = open_store("store");
  for (int i = 0; i < WRONG; ++i) {
    have_no_name(kWrong[i]);
    are_refused(store, kWrong[i]);
  }
  end_store(store);
  return check_result();
}
