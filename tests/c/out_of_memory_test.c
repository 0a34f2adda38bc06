/* Each allocation of a call fails in turn: the call says so, nothing is half done, and the store
 * stays usable. */

#define _XOPEN_SOURCE 700

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "support.h"

/* The C library's own functions. The ones below replace them in the whole process. */
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

/* Allocations of this thread until one fails; 0: none does. */
static _Thread_local unsigned long countdown;
static _Thread_local bool failed;

static bool fails(void) {
  if (countdown == 0 || --countdown > 0) return false;
  failed = true;
  errno = ENOMEM;
  return true;
}

void* malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return fails() ? NULL : __libc_calloc(count, size); }
void* realloc(void* old, size_t size) { return fails() ? NULL : __libc_realloc(old, size); }
void* aligned_alloc(size_t alignment, size_t size) {
  return fails() ? NULL : __libc_memalign(alignment, size);
}
int posix_memalign(void** result, size_t alignment, size_t size) {
  if (fails()) return ENOMEM;
  *result = __libc_memalign(alignment, size);
  return *result == NULL ? ENOMEM : 0;
}

static void fail_at(unsigned long call) {
  failed = false;
  countdown = call;
}
/* Whether one failed. */
static bool no_more_failures(void) {
  countdown = 0;
  return failed;
}

static waybill_error* error;

/* Nothing counted as damage. */
static void expect_sound(const char* name) {
  waybill_store* store = open_store(name);
  waybill_recovery_report* report = report_of(store);
  CHECK(!report->set_aside && !report->distrustful && report->findings.count == 0);
  waybill_free(report);
  CHECK(may_use(store, &kPod));
  end_store(store);
}

static void opening(void) {
  waybill_store* made = open_store("opened");
  pull(made, IMAGE, REF);
  end_store(made);
  const waybill_open_options options = store_options("opened");
  unsigned long out_of_memory = 0;
  for (unsigned long call = 1;; ++call) {
    waybill_store* store = check_poison();
    fail_at(call);
    const waybill_code code = waybill_open(&options, &store, &error);
    const bool had = no_more_failures();
    if (code == WAYBILL_OK) {
      waybill_store_free(store);
    } else {
      CHECK(store == NULL);
      CHECK(had);
      out_of_memory += code == WAYBILL_OUT_OF_MEMORY;
      waybill_free(error);
    }
    expect_sound("opened");
    if (!had) break;
  }
  CHECK(out_of_memory > 0);
}

static void calls(void) {
  waybill_store* store = open_store("store");
  const waybill_string exported = scratch("exported");
  unsigned long out_of_memory = 0;
  for (size_t i = 0; i < kStoreCallCount; ++i) {
    const store_call* each = &kStoreCalls[i];
    for (unsigned long call = 1;; ++call) {
      /* Failed exports leave files. Without this, each next call would have more to look at. */
      empty_directory(exported);
      fail_at(call);
      const waybill_code code = each->call(store, &error);
      const bool had = no_more_failures();
      const bool held = had || code == each->on_new_store;
      out_of_memory += code == WAYBILL_OUT_OF_MEMORY;
      if (!CHECK(held) || !CHECK(code != WAYBILL_INTERNAL)) {
        fprintf(stderr, "  in %s, allocation %lu: %s\n", each->name, call,
                waybill_code_name(code).data);
      }
      if (code != WAYBILL_OK) waybill_free(error);
      if (!had) break;
      /* As after a disk error inside a commit. */
      if (code == WAYBILL_OUTCOME_UNKNOWN) {
        waybill_store_free(store);
        store = open_store("store");
      }
    }
  }
  CHECK(out_of_memory > 30);
  pull(store, IMAGE, REF);
  CHECK(may_use(store, &kPod));
  waybill_verify_report* report = NULL;
  MUST(waybill_verify(store, &report, &error));
  CHECK(report->sound);
  waybill_free(report);
  end_store(store);
}

/* A decision has no code: it is "pull", or the right one. */
static void decisions(void) {
  waybill_store* store = open_store("decisions");
  pull(store, IMAGE, REF);
  for (unsigned long call = 1;; ++call) {
    fail_at(call);
    const waybill_decision with = waybill_must_attempt_pull(store, APP, &kPod);
    const waybill_decision without = waybill_must_attempt_pull(store, APP, &kPodWithout);
    const bool had = no_more_failures();
    CHECK(had || !with.pull);
    CHECK(without.pull);
    if (!had) break;
  }
  end_store(store);
}

static void values(void) {
  unsigned long out_of_memory = 0;
  for (unsigned long call = 1;; ++call) {
    waybill_string* string = check_poison();
    waybill_policy* policy = check_poison();
    waybill_image_pull_intent* intent = check_poison();
    const waybill_string pattern = WAYBILL_STRING("registry.example.com/a-long-name/of-it/*");
    fail_at(call);
    waybill_code codes[3];
    codes[0] = waybill_normalise_image(WAYBILL_STRING("a-name-that-is-long-enough"), &string, NULL);
    codes[1] = waybill_policy_make(WAYBILL_NEVER_VERIFY_ALLOWLISTED_IMAGES,
                                   (waybill_strings){&pattern, 1}, 0, &policy, NULL);
    codes[2] = waybill_decode_pull_intent(
        WAYBILL_STRING("{\"kind\":\"ImagePullIntent\",\"apiVersion\":"
                       "\"kubelet.config.k8s.io/v1beta1\",\"image\":\"example.com/a\"}"),
        &intent, NULL);
    const bool had = no_more_failures();
    CHECK((codes[0] == WAYBILL_OK) == (string != NULL));
    CHECK((codes[1] == WAYBILL_OK) == (policy != NULL));
    CHECK((codes[2] == WAYBILL_OK) == (intent != NULL));
    for (int i = 0; i < 3; ++i) {
      CHECK(codes[i] == WAYBILL_OK || codes[i] == WAYBILL_OUT_OF_MEMORY ||
            codes[i] == WAYBILL_LIMIT_EXCEEDED); /* a document too large for what there is */
      out_of_memory += codes[i] == WAYBILL_OUT_OF_MEMORY;
    }
    waybill_free(string);
    waybill_policy_free(policy);
    waybill_free(intent);
    if (!had) break;
  }
  CHECK(out_of_memory > 5);
}

int main(void) {
  opening();
  calls();
  decisions();
  values();
  return check_result();
}
