/* What was forgotten, as lists of revocations tell it, and when a credential was proven. */

#include <string.h>

#include "support.h"

static waybill_error* error;

static const int64_t kNow = 1767225600; /* 2026-01-01 */

static waybill_timestamp stands(void* context) {
  (void)context;
  return (waybill_timestamp){kNow, 0};
}

#define REF2 WAYBILL_STRING("sha256:bb")
static const waybill_credential_name kOfSecret = {{"tenant-a", 8}, {"pull", 4}, {"uid-1", 5}};
static const waybill_image_pull_service_account kAccount = {
    {"uid-2", 5}, {"tenant-a", 8}, {"builder", 7}};
static const waybill_image_pull_credentials kWithAccount = {.service_accounts = &kAccount,
                                                            .service_account_count = 1};
static const waybill_image_pull_credentials kForAll = {.node_pods_accessible = true};
/* The credentials of kSecret, as those of another tenant. */
static const waybill_image_pull_secret kEqual = {
    {"uid-3", 5}, {"tenant-b", 8}, {"copy", 4}, {"hash-1", 6}};

static void pull_with(waybill_store* store, waybill_string image_ref,
                      const waybill_image_pull_credentials* credentials) {
  waybill_pull_result result = WAYBILL_PULL_RESULT_INIT;
  MUST(waybill_record_pull_intent(store, COPY(.image = IMAGE), &result.pull, &error));
  MUST(waybill_record_image_pulled(store, COPY(.image = IMAGE, .image_ref = image_ref), credentials,
                                   &result, &error));
}

/* The only one; the caller frees it. */
static waybill_revocations* revocations_of(waybill_store* store, size_t count) {
  waybill_revocations* revocations = NULL;
  MUST(waybill_list_revocations(store, &revocations, &error));
  if (!CHECK(revocations->count == count)) check_exit();
  waybill_statistics* statistics = NULL;
  MUST(waybill_get_statistics(store, &statistics, &error));
  CHECK(statistics->revocations == count);
  waybill_free(statistics);
  return revocations;
}

static void accounts_namespaces_images_and_hashes(void) {
  waybill_store* store = open_store("others");
  waybill_forget_report* report = NULL;
  pull_with(store, REF, &kWithAccount);
  const waybill_credential_name of_account = {kAccount.namespace_name, kAccount.name, NONE};
  MUST(waybill_forget_service_account(store, of_account, NULL, &report, &error));
  CHECK(report->records == 1 && report->service_accounts == 1 && report->secrets == 0);
  waybill_free(report);

  pull(store, IMAGE, REF);
  MUST(waybill_forget_namespace(store, kOfSecret.namespace_name, NULL, &report, &error));
  CHECK(report->records == 1 && report->secrets == 1);
  waybill_free(report);

  const waybill_image_pull_credentials equal = {.secrets = &kEqual, .secret_count = 1};
  pull(store, IMAGE, REF);
  pull_with(store, REF, &equal);
  MUST(waybill_forget_secret(store, kOfSecret, NULL, &report, &error));
  CHECK(report->secrets == 1 && report->equal_hashes == 1);
  waybill_free(report);
  MUST(waybill_forget_credential(store, kSecret.credential_hash, NULL, &report, &error));
  CHECK(report->secrets == 1);
  waybill_free(report);

  pull_with(store, REF, &kForAll);
  MUST(waybill_forget_image(store, COPY(.image_ref = REF), NULL, &report, &error));
  CHECK(report->records == 1 && report->node_pods == 1);
  waybill_free(report);

  int seen[WAYBILL_REVOKED_CREDENTIAL + 1] = {0};
  waybill_revocations* revocations = revocations_of(store, 5);
  for (size_t i = 0; i < revocations->count; ++i) {
    const waybill_revocation* one = &revocations->items[i];
    if (!CHECK(one->kind >= 1 && one->kind <= WAYBILL_REVOKED_CREDENTIAL)) check_exit();
    ++seen[one->kind];
    CHECK(waybill_revocation_kind_name(one->kind).length > 0);
    if (one->kind == WAYBILL_REVOKED_IMAGE) CHECK_TEXT("sha256:aa", one->image_ref);
    if (one->kind == WAYBILL_REVOKED_CREDENTIAL) CHECK_TEXT("hash-1", one->credential_hash);
    if (one->kind == WAYBILL_REVOKED_NAMESPACE) CHECK_TEXT("tenant-a", one->who.namespace_name);
  }
  for (int kind = 1; kind <= WAYBILL_REVOKED_CREDENTIAL; ++kind) CHECK(seen[kind] == 1);
  waybill_free(revocations);
  end_store(store);
}

static void proofs_of_records(void) {
  waybill_open_options options = store_options("proofs");
  options.clock = stands;
  waybill_store* store = open_with(&options);
  pull_with(store, REF, &kCredentials);
  pull_with(store, REF, &kWithAccount);
  pull_with(store, REF2, &kForAll);

  waybill_proven_record* record = NULL;
  MUST(waybill_get_proven_record(store, COPY(.image_ref = REF), &record, &error));
  CHECK_TEXT("sha256:aa", record->record.image_ref);
  if (!CHECK(record->record.credential_mapping_count == 1)) check_exit();
  const waybill_image_pull_credentials* credentials =
      &record->record.credential_mapping[0].credentials;
  if (!CHECK(credentials->secret_count == 1 && credentials->service_account_count == 1)) {
    check_exit();
  }
  const waybill_credential_proofs* proofs = record->proofs;
  CHECK(proofs->node_pods.proven == NULL && proofs->node_pods.pull_began == 0);
  CHECK(proofs->secrets[0].proven != NULL && proofs->secrets[0].proven->seconds == kNow);
  CHECK(proofs->service_accounts[0].proven->seconds == kNow);
  CHECK(proofs->secrets[0].pull_began > 0);
  CHECK(proofs->service_accounts[0].pull_began > proofs->secrets[0].pull_began);
  waybill_free(record);
  CHECK_CODE(WAYBILL_NOT_FOUND,
             waybill_get_proven_record(store, COPY(.image_ref = IMAGE), &record, &error));
  CHECK(record == NULL);
  waybill_proven_records* records = NULL;
  MUST(waybill_list_proven_records(store, &records, &error));
  CHECK(records->count == 2);
  for (size_t i = 0; i < records->count; ++i) {
    const waybill_proven_record* each = &records->items[i];
    if (each->record.image_ref.data[7] == 'b') {
      CHECK(each->proofs->node_pods.proven != NULL);
      CHECK(each->proofs->node_pods.pull_began > 0);
      CHECK(each->proofs->secrets == NULL && each->proofs->service_accounts == NULL);
    }
  }
  waybill_free(records);
  end_store(store);
}

int main(void) {
  accounts_namespaces_images_and_hashes();
  proofs_of_records();
  return check_result();
}
