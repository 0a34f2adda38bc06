/* A pull from its intent to its last prune, and the whole records behind it. */

#include <string.h>

#include "support.h"

static waybill_error* error;

static bool has_intent(waybill_store* store, waybill_string image) {
  bool exists = false;
  MUST(waybill_has_intent(store, COPY(.image = image), &exists, &error));
  return exists;
}

static void intents(waybill_store* store) {
  CHECK(waybill_must_attempt_pull(store, COPY(.image = IMAGE), &kPod).reason ==
        WAYBILL_REASON_IMAGE_ABSENT);
  MUST(waybill_record_pull_intent(store, COPY(.image = IMAGE), NULL, &error));
  CHECK(has_intent(store, IMAGE));
  waybill_image_pull_intents* intents = NULL;
  MUST(waybill_list_intents(store, &intents, &error));
  CHECK(intents->count == 1);
  CHECK_TEXT("registry.example.com/team/app:v1", intents->items[0].image);
  CHECK_TEXT("", intents->items[0].runtime_handler);
  waybill_free(intents);
  MUST(waybill_record_image_pulled(store, APP, &kCredentials, NULL, &error));
  CHECK(!has_intent(store, IMAGE));

  const waybill_string image = WAYBILL_STRING("registry.example.com/team/other:v1");
  MUST(waybill_put_intent(store, COPY(.image = image), &error));
  CHECK(has_intent(store, image));
  MUST(waybill_delete_intent(store, COPY(.image = image), &error));
  CHECK(!has_intent(store, image));
  for (int32_t how = WAYBILL_PULL_OUTCOME_UNKNOWN; how <= WAYBILL_PULL_NOTHING_TRANSFERRED; ++how) {
    waybill_pull_id id = 0;
    MUST(waybill_record_pull_intent(store, COPY(.image = image), &id, &error));
    MUST(waybill_record_image_pull_failed(store, COPY(.image = image), how, id, &error));
    CHECK(has_intent(store, image) == (how == WAYBILL_PULL_OUTCOME_UNKNOWN));
    MUST(waybill_delete_intent(store, COPY(.image = image), &error));
  }
}

static void decisions(waybill_store* store) {
  waybill_decision decision = waybill_must_attempt_pull(store, APP, &kPod);
  CHECK(!decision.pull && decision.credentials_read);
  CHECK(decision.result == WAYBILL_CHECK_CREDENTIAL_RECORD_FOUND);
  CHECK(decision.reason == WAYBILL_REASON_SECRET_HASH_MATCHES);
  decision = waybill_must_attempt_pull(store, APP, &kPodWithout);
  CHECK(decision.pull && decision.result == WAYBILL_CHECK_MUST_AUTHENTICATE);
  CHECK(decision.reason == WAYBILL_REASON_NO_CREDENTIAL_MATCHES);
  decision = waybill_must_attempt_pull(store, APP, NULL);
  CHECK(decision.pull && decision.result == WAYBILL_CHECK_ERROR);
  CHECK(decision.reason == WAYBILL_REASON_CREDENTIALS_UNAVAILABLE);

  const waybill_image_pull_service_account account = {
      WAYBILL_STRING("uid-9"), WAYBILL_STRING("tenant-b"), WAYBILL_STRING("builder")};
  waybill_image_pull_credentials credentials = {.service_accounts = &account,
                                                .service_account_count = 1};
  const waybill_pod_credentials pod = {.service_account = &account};
  CHECK(!may_use(store, &pod));
  MUST(waybill_record_image_pulled(store, APP, &credentials, NULL, &error));
  CHECK(may_use(store, &pod));
  credentials.node_pods_accessible = true;
  MUST(waybill_record_image_pulled(store, APP, &credentials, NULL, &error));
  CHECK(waybill_must_attempt_pull(store, APP, NULL).reason == WAYBILL_REASON_NODE_PODS_ACCESSIBLE);
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

  waybill_image_pulled_records* records = NULL;
  MUST(waybill_list_records(store, &records, &error));
  CHECK(records->count == 2);
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
  pull(store, IMAGE, WAYBILL_STRING("sha256:gone"));
  waybill_list_token token;
  MUST(waybill_begin_list(store, &token, &error));
  pull(store, IMAGE, WAYBILL_STRING("sha256:new"));
  const waybill_image_on_node image = {.id = REF};
  const waybill_images_on_node listed = {&image, 1};
  const waybill_images_on_node nothing = {NULL, 0};
  waybill_prune_report* report = NULL;
  for (int dry = 1; dry >= 0; --dry) {
    MUST(waybill_prune(store, listed, token, dry ? &kDryRun : NULL, &report, &error));
    CHECK(report->examined == 3 && report->removed == 1);
    CHECK(report->kept_in_list == 1 && report->kept_newer == 1);
    waybill_free(report);
  }
  waybill_list_token later = token;
  later.commit += 1000000;
  INVALID(waybill_prune(store, listed, later, NULL, &report, &error));
  CHECK(report == NULL);

  const waybill_timestamp late = {4000000000, 0};
  INVALID(waybill_prune_before(store, nothing, late, NULL, &report, &error));
  CHECK(report == NULL);
  MUST(waybill_prune_before(store, nothing, (waybill_timestamp){0, 0}, &kMeant, &report, &error));
  CHECK(report->removed == 0 && report->kept_newer == 2);
  waybill_free(report);
  MUST(waybill_prune_before(store, nothing, late, &kMeant, NULL, &error));
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
  intents(store);
  decisions(store);
  whole_records(store);
  with_the_manifest(store);
  images_that_left_are_pruned(store);
  end_store(store);
  return check_result();
}
