/* Strings that are long, have any bytes or no zero byte at the end, or are freed after the call. */

#include <stdlib.h>
#include <string.h>

#include "support.h"

static waybill_error* error;

enum { MEBIBYTE = 1 << 20 };

/* In memory of exactly its length, so that AddressSanitizer sees reads beyond it. */
static waybill_string exactly(const void* bytes, size_t length) {
  char* copy = malloc(length);
  if (copy == NULL) check_exit();
  memcpy(copy, bytes, length);
  return (waybill_string){copy, length};
}

static void scribble_and_free(waybill_string string) {
  char* bytes = (char*)(uintptr_t)string.data;
  memset(bytes, '#', string.length);
  free(bytes);
}

static void gone_after_the_call(waybill_store* store) {
  waybill_string strings[6];
  waybill_image_pull_secret* secret = malloc(sizeof(*secret));
  if (secret == NULL) check_exit();
  strings[0] = exactly(IMAGE.data, IMAGE.length);
  strings[1] = exactly(REF.data, REF.length);
  strings[2] = secret->uid = exactly("uid-7", 5);
  strings[3] = secret->namespace_name = exactly("tenant-c", 8);
  strings[4] = secret->name = exactly("pull", 4);
  strings[5] = secret->credential_hash = exactly("hash-7", 6);
  const waybill_image_pull_credentials credentials = {.secrets = secret, .secret_count = 1};
  MUST(waybill_record_pull_intent(store, COPY(.image = strings[0]), NULL, &error));
  MUST(waybill_record_image_pulled(store, COPY(.image = strings[0], .image_ref = strings[1]),
                                   &credentials, NULL, &error));
  /* With another hash it is queued, to be written after the call has returned. */
  scribble_and_free(secret->credential_hash);
  strings[5] = secret->credential_hash = exactly("hash-8", 6);
  const waybill_pod_credentials pod = {.secrets = secret, .secret_count = 1};
  CHECK(!waybill_must_attempt_pull(store, COPY(.image = strings[0], .image_ref = strings[1]), &pod)
             .pull);
  for (size_t i = 0; i < 6; ++i) scribble_and_free(strings[i]);
  memset(secret, '#', sizeof(*secret));
  free(secret);
  MUST(waybill_flush(store, &error));

  waybill_image_pulled_record* record = NULL;
  MUST(waybill_get_record(store, COPY(.image_ref = REF), &record, &error));
  const waybill_credential_mapping* mapping = record->credential_mapping;
  CHECK_TEXT(IMAGE_NAME, mapping->image_name);
  CHECK_TEXT("uid-7", mapping->credentials.secrets[0].uid);
  CHECK_TEXT("tenant-c", mapping->credentials.secrets[0].namespace_name);
  CHECK_TEXT("hash-8", mapping->credentials.secrets[0].credential_hash);
  waybill_free(record);
}

/* A result stays valid after its store is freed. */
static void results_outlive_the_store(void) {
  waybill_store* store = open_store("short");
  pull(store, IMAGE, REF);
  waybill_image_pulled_record* record = NULL;
  MUST(waybill_get_record(store, COPY(.image_ref = REF), &record, &error));
  waybill_error* refused = NULL;
  CHECK(waybill_put_intent(store, COPY(.runtime_handler = WAYBILL_STRING("no such")), &refused) !=
        WAYBILL_OK);
  end_store(store);
  CHECK_TEXT("sha256:aa", record->image_ref);
  CHECK_TEXT("hash-1", record->credential_mapping[0].credentials.secrets[0].credential_hash);
  waybill_free(record);
  CHECK(refused != NULL && refused->message.length == strlen(refused->message.data));
  waybill_free(refused);
}

/* The store sets the limits; it says so if it refuses. */
static bool refused(waybill_code code) {
  return code == WAYBILL_LIMIT_EXCEEDED || code == WAYBILL_INVALID_ARGUMENT;
}

static void a_mebibyte_each(waybill_store* s) {
  char* bytes = malloc(MEBIBYTE);
  if (bytes == NULL) check_exit();
  memset(bytes, 'a', MEBIBYTE);
  const waybill_string big = {bytes, MEBIBYTE};
  bool flag = false;
  waybill_image_pulled_record* record = NULL;
  CHECK_CODE(WAYBILL_LIMIT_EXCEEDED,
             waybill_record_pull_intent(s, COPY(.image = big), NULL, &error));
  CHECK(refused(
      waybill_record_pull_intent(s, COPY(.image = IMAGE, .runtime_handler = big), NULL, NULL)));
  CHECK(refused(waybill_put_intent(s, COPY(.image = big), NULL)));
  CHECK(refused(waybill_delete_intent(s, COPY(.image = big), NULL)));
  CHECK(refused(waybill_has_intent(s, COPY(.image = big), &flag, NULL)));
  CHECK(refused(waybill_record_image_pulled(s, COPY(.image = big, .image_ref = REF), &kCredentials,
                                            NULL, NULL)));
  CHECK(refused(waybill_record_image_pulled(s, COPY(.image = IMAGE, .image_ref = big),
                                            &kCredentials, NULL, NULL)));
  CHECK(refused(
      waybill_record_image_pull_failed(s, COPY(.image = big), WAYBILL_PULL_FAILED, 0, NULL)));
  CHECK_CODE(WAYBILL_NOT_FOUND, waybill_get_record(s, COPY(.image_ref = big), &record, &error));
  CHECK(refused(waybill_delete_record(s, COPY(.image_ref = big), NULL)));
  CHECK(refused(waybill_clear_distrust(s, big, NULL, NULL, NULL)));
  waybill_image_on_node image = {.id = big};
  CHECK(refused(waybill_add_to_ledger(s, &image, IMAGE, IMAGE, NULL, NULL)));
  image.id = REF;
  CHECK(refused(waybill_add_to_ledger(s, &image, big, IMAGE, NULL, NULL)));
  CHECK(refused(waybill_add_to_ledger(s, &image, IMAGE, big, NULL, NULL)));
  CHECK(refused(waybill_settle_presumed(s, APP, WAYBILL_SETTLED_CLOSED, big, NULL, NULL, NULL)));
  CHECK(refused(waybill_remove_from_ledger(s, APP, big, NULL, NULL, NULL)));
  CHECK(refused(waybill_drop_open_pull(s, 1, big, NULL, NULL)));
  CHECK(refused(waybill_release_user_namespace(s, big, NULL, NULL, NULL)));
  CHECK(refused(waybill_adopt_user_namespace(s, big, 65536, 65536, NULL)));
  waybill_image_pull_secret secret = kSecret;
  secret.credential_hash = big;
  const waybill_image_pull_credentials credentials = {.secrets = &secret, .secret_count = 1};
  CHECK(refused(waybill_record_image_pulled(s, APP, &credentials, NULL, NULL)));
  const waybill_pod_credentials pod = {.secrets = &secret, .secret_count = 1};
  CHECK(waybill_must_attempt_pull(s, APP, &pod).pull);
  CHECK(waybill_must_attempt_pull(s, COPY(.image = big, .image_ref = REF), &kPod).reason ==
        WAYBILL_REASON_ARGUMENT_TOO_LONG);
  CHECK(waybill_must_attempt_pull(s, COPY(.image = IMAGE, .image_ref = big), &kPod).pull);
  CHECK(waybill_must_attempt_pull(s, COPY(.image = IMAGE, .image_ref = REF, .runtime_handler = big),
                                  &kPod)
            .pull);
  waybill_ensure_outcome* outcome = NULL;
  MUST(waybill_ensure_image(s, COPY(.image = big, .image_ref = big, .runtime_handler = big),
                            WAYBILL_PULL_IF_NOT_PRESENT, &kPod, &outcome, &error));
  CHECK(outcome->action != WAYBILL_ENSURE_USE_PRESENT);
  waybill_free(outcome);

  waybill_string* result = NULL;
  const waybill_code hashed = waybill_hash_credentials(big, big, big, &result, &error);
  CHECK(hashed == WAYBILL_OK || refused(hashed));
  CHECK((result != NULL) == (hashed == WAYBILL_OK));
  waybill_free(result);
  waybill_free(error);
  waybill_image_parts parts;
  CHECK(!waybill_parse_image(big, &parts) && parts.name.length == 0);
  CHECK(refused(waybill_normalise_image(big, &result, NULL)));
  waybill_platform* platform = NULL;
  CHECK(refused(waybill_parse_platform(big, &platform, NULL)));
  waybill_image_pulled_record* decoded = NULL;
  CHECK(refused(waybill_decode_pulled_record(big, &decoded, NULL)));
  waybill_open_options options = store_options("big");
  options.directory = big;
  waybill_store* store = check_poison();
  CHECK(waybill_open(&options, &store, NULL) != WAYBILL_OK);
  CHECK(store == NULL);
  free(bytes);
}

static void any_bytes(waybill_store* s) {
  static const char kZeros[] = "a\0b";
  static const char kInvalid[] = "\xff\xfe\xc0\x80 \xed\xa0\x80";
  const waybill_string odd[2] = {{kZeros, 3}, {kInvalid, sizeof(kInvalid) - 1}};
  for (size_t i = 0; i < 2; ++i) {
    const waybill_string image = odd[i];
    bool exists = false;
    MUST(waybill_put_intent(s, COPY(.image = image), &error));
    MUST(waybill_has_intent(s, COPY(.image = image), &exists, &error));
    CHECK(exists);
    MUST(waybill_has_intent(s, COPY(.image = (waybill_string){image.data, 1}), &exists, &error));
    CHECK(!exists);
    waybill_image_pull_intents* intents = NULL;
    MUST(waybill_list_intents(s, &intents, &error));
    CHECK(intents->count == 1 && intents->items[0].image.length == image.length &&
          memcmp(intents->items[0].image.data, image.data, image.length) == 0);
    waybill_free(intents);
    MUST(waybill_delete_intent(s, COPY(.image = image), &error));

    waybill_image_pull_secret secret = kSecret;
    secret.name = secret.credential_hash = image;
    const waybill_image_pull_credentials credentials = {.secrets = &secret, .secret_count = 1};
    const waybill_pod_credentials pod = {.secrets = &secret, .secret_count = 1};
    MUST(waybill_record_pull_intent(s, COPY(.image = IMAGE), NULL, &error));
    MUST(waybill_record_image_pulled(s, COPY(.image = IMAGE, .image_ref = image), &credentials,
                                     NULL, &error));
    CHECK(!waybill_must_attempt_pull(s, COPY(.image = IMAGE, .image_ref = image), &pod).pull);
    CHECK(waybill_must_attempt_pull(s, COPY(.image = IMAGE, .image_ref = image), &kPod).pull);
    waybill_image_pulled_record* record = NULL;
    MUST(waybill_get_record(s, COPY(.image_ref = image), &record, &error));
    CHECK(record->image_ref.length == image.length);
    CHECK(memcmp(record->image_ref.data, image.data, image.length) == 0);
    waybill_free(record);

    CHECK(!waybill_parse_image(image, NULL));
    CHECK(
        refused(waybill_release_user_namespace(s, (waybill_string){kZeros, 3}, NULL, NULL, NULL)));
    waybill_string* result = NULL;
    MUST(waybill_hash_credentials(image, image, image, &result, &error));
    waybill_free(result);
  }
  waybill_open_options options = store_options("zero");
  options.directory = (waybill_string){"/tmp/waybill\0zero", 17};
  waybill_store* store = NULL;
  INVALID(waybill_open(&options, &store, &error));
  waybill_verify_report* report = NULL;
  MUST(waybill_verify(s, &report, &error));
  CHECK(report->sound && report->findings.count == 0 && report->values > 0);
  waybill_free(report);
}

int main(void) {
  waybill_store* store = open_store("store");
  gone_after_the_call(store);
  a_mebibyte_each(store);
  any_bytes(store);
  end_store(store);
  results_outlive_the_store();
  return check_result();
}
