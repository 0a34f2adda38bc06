/* A pull from its intent to its last prune, and the whole records behind it. */

#include <string.h>

#include "support.h"

static waybill_error* error;

static void intent_comes_before_the_pull(waybill_store* store) {
  bool exists = true;
  MUST(waybill_has_intent(store, COPY(.image = IMAGE), &exists, &error));
  CHECK(!exists);
  const waybill_decision decision = waybill_must_attempt_pull(store, COPY(.image = IMAGE), &kPod);
  CHECK(decision.pull);
  CHECK(decision.reason == WAYBILL_REASON_IMAGE_ABSENT);

  MUST(waybill_record_pull_intent(store, COPY(.image = IMAGE), NULL, &error));
  MUST(waybill_has_intent(store, COPY(.image = IMAGE), &exists, &error));
  CHECK(exists);
  waybill_image_pull_intents* intents = NULL;
  MUST(waybill_list_intents(store, &intents, &error));
  CHECK(intents->count == 1);
  CHECK_TEXT("registry.example.com/team/app:v1", intents->items[0].image);
  CHECK_TEXT("", intents->items[0].runtime_handler);
  waybill_free(intents);
  const waybill_decision in_flight = waybill_must_attempt_pull(store, APP, &kPod);
  CHECK(in_flight.pull);
  CHECK(in_flight.reason == WAYBILL_REASON_NO_EVIDENCE);
}

static void pulled_opens_for_those_who_had_the_credentials(waybill_store* store) {
  MUST(waybill_record_image_pulled(store, APP, &kCredentials, NULL, &error));
  bool exists = true;
  MUST(waybill_has_intent(store, COPY(.image = IMAGE), &exists, &error));
  CHECK(!exists);

  const waybill_decision decision = waybill_must_attempt_pull(store, APP, &kPod);
  CHECK(!decision.pull);
  CHECK(decision.credentials_read);
  CHECK(decision.result == WAYBILL_CHECK_CREDENTIAL_RECORD_FOUND);
  CHECK(decision.reason == WAYBILL_REASON_SECRET_HASH_MATCHES ||
        decision.reason == WAYBILL_REASON_SECRET_COORDINATES_MATCH);
  const waybill_decision other = waybill_must_attempt_pull(store, APP, &kPodWithout);
  CHECK(other.pull);
  CHECK(other.result == WAYBILL_CHECK_MUST_AUTHENTICATE);
  CHECK(other.reason == WAYBILL_REASON_NO_CREDENTIAL_MATCHES);
  const waybill_decision without = waybill_must_attempt_pull(store, APP, NULL);
  CHECK(without.pull);
  CHECK(without.result == WAYBILL_CHECK_ERROR);
  CHECK(without.reason == WAYBILL_REASON_CREDENTIALS_UNAVAILABLE);
}

static void service_accounts_and_the_whole_node(waybill_store* store) {
  const waybill_image_pull_service_account account = {
      WAYBILL_STRING("uid-9"), WAYBILL_STRING("tenant-b"), WAYBILL_STRING("builder")};
  waybill_image_pull_credentials credentials = {.service_accounts = &account,
                                                .service_account_count = 1};
  const waybill_pod_credentials pod = {.service_account = &account};
  CHECK(!may_use(store, &pod));
  MUST(waybill_record_pull_intent(store, COPY(.image = IMAGE), NULL, &error));
  MUST(waybill_record_image_pulled(store, APP, &credentials, NULL, &error));
  CHECK(may_use(store, &pod));
  CHECK(!may_use(store, &kPodWithout));

  credentials.node_pods_accessible = true;
  MUST(waybill_record_pull_intent(store, COPY(.image = IMAGE), NULL, &error));
  MUST(waybill_record_image_pulled(store, APP, &credentials, NULL, &error));
  CHECK(may_use(store, &kPodWithout));
  CHECK(waybill_must_attempt_pull(store, APP, NULL).reason == WAYBILL_REASON_NODE_PODS_ACCESSIBLE);
}

static void pulls_that_fail(waybill_store* store) {
  const waybill_string image = WAYBILL_STRING("registry.example.com/team/other:v1");
  bool exists = false;
  MUST(waybill_record_pull_intent(store, COPY(.image = image), NULL, &error));
  MUST(waybill_record_image_pull_failed(store, COPY(.image = image),
                                        WAYBILL_PULL_NOTHING_TRANSFERRED, 0, &error));
  MUST(waybill_has_intent(store, COPY(.image = image), &exists, &error));
  CHECK(!exists);
  MUST(waybill_record_pull_intent(store, COPY(.image = image), NULL, &error));
  MUST(waybill_record_image_pull_failed(store, COPY(.image = image), WAYBILL_PULL_OUTCOME_UNKNOWN,
                                        0, &error));
  MUST(waybill_has_intent(store, COPY(.image = image), &exists, &error));
  CHECK(exists);
  MUST(waybill_delete_intent(store, COPY(.image = image), &error));
  MUST(waybill_has_intent(store, COPY(.image = image), &exists, &error));
  CHECK(!exists);
  MUST(waybill_put_intent(store, COPY(.image = image), &error));
  MUST(waybill_has_intent(store, COPY(.image = image), &exists, &error));
  CHECK(exists);
  MUST(waybill_delete_intent(store, COPY(.image = image), &error));
}

static void rotated_secrets_are_written_back(waybill_store* store) {
  const waybill_string ref = WAYBILL_STRING("sha256:rotated");
  pull(store, IMAGE, ref);
  waybill_image_pull_secret rotated = kSecret;
  rotated.credential_hash = WAYBILL_STRING("hash-2");
  const waybill_pod_credentials pod = {.secrets = &rotated, .secret_count = 1};
  const waybill_decision decision =
      waybill_must_attempt_pull(store, COPY(.image = IMAGE, .image_ref = ref), &pod);
  CHECK(!decision.pull);
  CHECK(decision.reason == WAYBILL_REASON_SECRET_COORDINATES_MATCH);
  MUST(waybill_flush(store, &error));
  waybill_image_pulled_record* record = NULL;
  MUST(waybill_get_record(store, COPY(.image_ref = ref), &record, &error));
  CHECK_TEXT("hash-2", record->credential_mapping[0].credentials.secrets[0].credential_hash);
  waybill_free(record);
}

static void whole_records(waybill_store* store) {
  waybill_image_pulled_record* record = NULL;
  MUST(waybill_get_record(store, COPY(.image_ref = REF), &record, &error));
  CHECK_TEXT("sha256:aa", record->image_ref);
  CHECK(record->last_updated != NULL && record->last_updated->seconds > 1767225600);
  CHECK(record->stamp > 0);
  CHECK(record->platform == NULL && record->guest_platform == NULL);
  CHECK(record->credential_mapping_count == 1);
  CHECK_TEXT(IMAGE_NAME, record->credential_mapping[0].image_name);
  CHECK(record->credential_mapping[0].credentials.node_pods_accessible);
  waybill_free(record);

  const waybill_platform platform = {.architecture = WAYBILL_STRING("amd64"),
                                     .os = WAYBILL_STRING("linux")};
  const waybill_timestamp time = {1767225600, 5};
  const waybill_credential_mapping mapping = {WAYBILL_STRING(IMAGE_NAME), kCredentials};
  const waybill_image_pulled_record mine = {.image_ref = WAYBILL_STRING("sha256:mine"),
                                            .last_updated = &time,
                                            .credential_mapping = &mapping,
                                            .credential_mapping_count = 1,
                                            .manifest_digest = DIGEST,
                                            .platform = &platform};
  MUST(waybill_put_record(store, &mine, &error));
  MUST(waybill_get_record(store, COPY(.image_ref = mine.image_ref), &record, &error));
  CHECK(record->last_updated->seconds == time.seconds && record->last_updated->nanoseconds == 5);
  CHECK_TEXT(DIGEST.data, record->manifest_digest);
  CHECK(record->platform != NULL);
  CHECK_TEXT("amd64", record->platform->architecture);
  const waybill_image_pull_credentials* kept = &record->credential_mapping[0].credentials;
  CHECK(kept->secret_count == 1 && !kept->node_pods_accessible);
  CHECK_TEXT("uid-1", kept->secrets[0].uid);
  CHECK_TEXT("tenant-a", kept->secrets[0].namespace_name);
  CHECK_TEXT("pull", kept->secrets[0].name);
  CHECK_TEXT("hash-1", kept->secrets[0].credential_hash);
  /* What was read can be written again. */
  MUST(waybill_put_record(store, record, &error));
  waybill_free(record);

  const waybill_credential_mapping twice[2] = {mapping, mapping};
  waybill_image_pulled_record wrong = mine;
  wrong.credential_mapping = twice;
  wrong.credential_mapping_count = 2;
  INVALID(waybill_put_record(store, &wrong, &error));

  waybill_image_pulled_records* records = NULL;
  MUST(waybill_list_records(store, &records, &error));
  CHECK(records->count == 3);
  waybill_free(records);
  MUST(waybill_delete_record(store, COPY(.image_ref = mine.image_ref), &error));
  record = check_poison();
  CHECK_CODE(WAYBILL_NOT_FOUND,
             waybill_get_record(store, COPY(.image_ref = mine.image_ref), &record, &error));
  CHECK(record == NULL);
}

static void with_the_manifest(waybill_store* store) {
  const waybill_string ref = WAYBILL_STRING("sha256:manifest");
  const waybill_string feature = WAYBILL_STRING("sse4");
  waybill_pull_result result = WAYBILL_PULL_RESULT_INIT;
  const waybill_pulled_manifest manifest = {DIGEST,
                                            {WAYBILL_STRING("arm64"),
                                             WAYBILL_STRING("linux"),
                                             NONE,
                                             {&feature, 1},
                                             WAYBILL_STRING("v8")}};
  result.manifest = &manifest;
  MUST(waybill_record_pull_intent(store, COPY(.image = IMAGE), &result.pull, &error));
  MUST(waybill_record_image_pulled(store, COPY(.image = IMAGE, .image_ref = ref), NULL, &result,
                                   &error));
  waybill_image_pulled_record* record = NULL;
  MUST(waybill_get_record(store, COPY(.image_ref = ref), &record, &error));
  CHECK_TEXT(DIGEST.data, record->manifest_digest);
  CHECK_TEXT("arm64", record->platform->architecture);
  CHECK_TEXT("v8", record->platform->variant);
  CHECK(record->platform->os_features.count == 1);
  CHECK_TEXT("sse4", record->platform->os_features.items[0]);
  CHECK(record->credential_mapping_count == 0);
  waybill_free(record);
  MUST(waybill_delete_record(store, COPY(.image_ref = ref), &error));
}

static void images_that_left_are_pruned(waybill_store* store) {
  waybill_list_token token;
  MUST(waybill_begin_list(store, &token, &error));
  pull(store, WAYBILL_STRING("registry.example.com/team/new"), WAYBILL_STRING("sha256:new"));
  const waybill_image_on_node image = {.id = REF};
  const waybill_images_on_node listed = {&image, 1};
  const waybill_images_on_node nothing = {NULL, 0};
  waybill_prune_report* report = NULL;
  MUST(waybill_prune(store, listed, token, &kDryRun, &report, &error));
  CHECK(report->examined == 3 && report->removed == 1);
  waybill_free(report);
  MUST(waybill_prune(store, listed, token, NULL, &report, &error));
  CHECK(report->examined == 3);
  CHECK(report->removed == 1);
  CHECK(report->kept_in_list == 1);
  CHECK(report->kept_newer == 1);
  waybill_free(report);
  waybill_list_token later = token;
  later.commit += 1000000;
  INVALID(waybill_prune(store, listed, later, NULL, &report, &error));
  CHECK(report == NULL);

  /* A runtime that is starting up also lists nothing. */
  INVALID(waybill_prune(store, nothing, token, NULL, &report, &error));
  INVALID(waybill_prune_before(store, nothing, (waybill_timestamp){0, 0}, NULL, &report, &error));
  CHECK(report == NULL);
  MUST(waybill_prune_before(store, nothing, (waybill_timestamp){0, 0}, &kMeant, &report, &error));
  CHECK(report->removed == 0 && report->kept_newer == 2);
  waybill_free(report);
  MUST(waybill_prune_before(store, listed, (waybill_timestamp){4000000000, 0}, NULL, NULL, &error));
  MUST(waybill_begin_list(store, &token, &error));
  MUST(waybill_prune(store, nothing, token, &kMeant, NULL, &error));
  waybill_statistics* statistics = NULL;
  MUST(waybill_get_statistics(store, &statistics, &error));
  /* No list had what went: a pull of anything. */
  CHECK(statistics->records == 0 && statistics->intents == 1);
  CHECK(statistics->schema_version == waybill_newest_schema());
  CHECK(statistics->commit_sequence > 0 && statistics->map_bytes == SMALL_MAP);
  CHECK(statistics->store_uuid.length > 0);
  waybill_free(statistics);
}

int main(void) {
  waybill_store* store = open_store("store");
  intent_comes_before_the_pull(store);
  pulled_opens_for_those_who_had_the_credentials(store);
  service_accounts_and_the_whole_node(store);
  pulls_that_fail(store);
  rotated_secrets_are_written_back(store);
  whole_records(store);
  with_the_manifest(store);
  images_that_left_are_pruned(store);
  end_store(store);
  return check_result();
}
