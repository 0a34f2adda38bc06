/* Each allocation of a call fails in turn: the call says so, nothing is half done, and the store
 * stays usable. */

#define _XOPEN_SOURCE 700

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* The C library's own functions. The ones below replace them in the whole process. */
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* memory);

/* Allocations of this thread until one fails; 0: none does. */
static _Thread_local unsigned long countdown;
static _Thread_local unsigned long allocations;
static _Thread_local bool failed;

static bool fails(void) {
  ++allocations;
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

/* A byte of a result, and whether it was zero when the result was freed. */
static _Thread_local const char* watched;
static _Thread_local bool wiped;

void free(void* memory) {
  const uintptr_t before = (uintptr_t)watched - (uintptr_t)memory;
  if (watched != NULL && before < 64) {
    wiped = *watched == '\0';
    watched = NULL;
  }
  __libc_free(memory);
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
static unsigned long out_of_memory;

/* What every failure promises. `had`: an allocation failed. */
static void expect_said(waybill_code code, waybill_code otherwise, bool had, const char* name,
                        unsigned long call) {
  out_of_memory += code == WAYBILL_OUT_OF_MEMORY;
  /* What a call is about may have gone in one whose answer there was no memory for. */
  const bool held =
      (had || code == otherwise || code == WAYBILL_NOT_FOUND) && code != WAYBILL_INTERNAL;
  /* Words may be missing after any failure, but there are none of a success or of want of memory.
   */
  const bool worded = code != WAYBILL_OK && code != WAYBILL_OUT_OF_MEMORY;
  if (!CHECK(held) || !CHECK(worded || error == NULL)) {
    fprintf(stderr, "  in %s, allocation %lu: %s\n", name, call, waybill_code_name(code));
  }
  waybill_free(error);
  error = NULL;
}

static void openings(void) {
  waybill_store* made = open_store("opened");
  pull(made);
  end_store(made);
  const waybill_text directory = scratch("opened");
  for (int kind = 0; kind < 3; ++kind) {
    bool had = true;
    for (unsigned long call = 1; had; ++call) {
      waybill_store* store = check_poison();
      fail_at(call);
      const waybill_code code =
          kind == 0   ? waybill_open(directory, WAYBILL_NO_LOSS_MARKER, waybill_text_of(kOptions),
                                     &store, &error)
          : kind == 1 ? waybill_observe(directory, &store, &error)
                      : waybill_open_streams(scratch("streams"), WAYBILL_NO_LOSS_MARKER, NONE,
                                             &store, &error);
      had = no_more_failures();
      CHECK((store == NULL) == (code != WAYBILL_OK));
      expect_said(code, WAYBILL_OK, had, "an opening", call);
      if (code == WAYBILL_OK) waybill_store_free(store);
      /* Nothing counted as damage. */
      if (kind != 0) continue;
      store = open_store("opened");
      CHECK(may_use(store, &kPod));
      expect(store, "GetStatus", "", "\"rebuiltFrom\":\"\"");
      expect(store, "GetStatus", "", "\"degraded\":false");
      end_store(store);
    }
  }
}

static waybill_code begin_pull(waybill_store* store, char** answer) {
  uint64_t number = 0;
  (void)answer;
  const waybill_code code = waybill_begin_pull(store, APP, &number, &error);
  CHECK((number != 0) == (code == WAYBILL_OK));
  return code;
}
static waybill_code end_pull(waybill_store* store, char** answer) {
  (void)answer;
  const waybill_text details = WAYBILL_TEXT(
      "{\"verifiedBy\": \"registry\", \"listed\": {\"id\": \"sha256:aa\", \"repoTags\": "
      "[\"a:1\"]}}");
  return waybill_end_pull(store, APP, 0, WAYBILL_PULLED, &kPod, details, &error);
}
static waybill_code claim(waybill_store* store, char** answer) {
  waybill_mapping mapping;
  (void)answer;
  return waybill_claim_user_namespace(store, WAYBILL_TEXT("a-pod-with-a-long-uid"),
                                      WAYBILL_HOST_USERS_FALSE, NONE, &mapping, &error);
}
static waybill_code hash(waybill_store* store, char** answer) {
  (void)store;
  *answer = check_poison();
  return waybill_hash_credentials(WAYBILL_TEXT("a user whose name is long"),
                                  WAYBILL_TEXT("a password that is long"), NONE, answer, &error);
}
static waybill_code ask(waybill_store* store, char** answer) {
  (void)store;
  *answer = check_poison();
  return waybill_ask(scratch("nobody"), "GetStatus", NONE, 0, answer, &error);
}

static waybill_code (*const kOwn[])(waybill_store*, char**) = {begin_pull, end_pull, claim, hash,
                                                               ask};

/* What is refused, or finds nothing, makes words of its own. */
static const struct {
  json_call call;
  waybill_code code;
} kRefused[] = {
    {{"BeginPull", 'W', "{\"image\": \"a\", \"runtimeHandler\": \"of-no-node\"}", ""},
     WAYBILL_INVALID_ARGUMENT},
    {{"EndPull", 'W',
      "{\"image\": \"UPPER:case:\", \"imageRef\": \"sha256:dd\", \"outcome\": \"pulled\"}", ""},
     WAYBILL_INVALID_ARGUMENT},
    {{"DropPulls", 'W', "{\"pull\": 7777777, \"reason\": \"a test\"}", ""}, WAYBILL_NOT_FOUND},
    {{"ClassifyImages", 'W',
      "{\"images\": [{\"id\": \"sha256:ee\"}], "
      "\"token\": \"7.8.9.0123456789abcdef0123456789abcdef\"}",
      ""},
     WAYBILL_INVALID_ARGUMENT},
    {{"PruneBefore", 'W',
      "{\"images\": [{\"id\": \"sha256:ee\"}], "
      "\"token\": \"7.8.9.0123456789abcdef0123456789abcdef\"}",
      ""},
     WAYBILL_INVALID_ARGUMENT},
    {{"AllowImage", 'W', "{\"image\": {\"id\": \"sha256:ee\"}, \"reason\": \"\"}", ""},
     WAYBILL_INVALID_ARGUMENT},
    {{"AssignUserNamespace", 'W', "{\"podUid\": \"/\", \"hostId\": 1, \"length\": 1}", ""},
     WAYBILL_INVALID_ARGUMENT},
    {{"AcceptLoss", 'W', "{\"reason\": \"\"}", ""}, WAYBILL_INVALID_ARGUMENT},
    {{"Explain", 'R', "{\"image\": \"a\", \"imageRef\": \"sha256:none\"}", ""}, WAYBILL_OK},
    {{"AcceptLoss", 'W',
      "{\"reason\": \"a test\", \"images\": [{\"id\": \"sha256:ee\"}], \"allowAll\": true}", ""},
     WAYBILL_OK},
    {{"SetRuntimes", 'W', "{\"off\": true}", ""}, WAYBILL_OK},
};

/* In both modes. What mode kubelet refuses is an argument or a conflict, and nothing else. */
static void calls(const char* name, const char* options, bool is_strict) {
  waybill_store* store = open_with(name, options);
  pull(store);
  char* token = draw_token(store);
  const waybill_text exported = scratch("exported");
  empty_directory(exported);
  for (size_t i = 0; i < COUNT(kOwn) + kCallCount + COUNT(kRefused); ++i) {
    const size_t refused = i - COUNT(kOwn) - kCallCount;
    const json_call* const json = i < COUNT(kOwn)                ? NULL
                                  : i < COUNT(kOwn) + kCallCount ? &kCalls[i - COUNT(kOwn)]
                                                                 : &kRefused[refused].call;
    if (json != NULL && json->kind == 'S') continue;
    const bool no_store = json != NULL && json->kind == 'L';
    const waybill_code otherwise = i >= COUNT(kOwn) + kCallCount ? kRefused[refused].code
                                   : i == 4 || (json != NULL && json->part == NULL)
                                       ? WAYBILL_NOT_FOUND
                                       : WAYBILL_OK;
    bool had = true;
    for (unsigned long call = 1; had; ++call) {
      /* Failed exports leave files. Without this, each next call would have more to look at. */
      empty_directory(exported);
      char* answer = NULL;
      fail_at(call);
      const waybill_code code =
          json == NULL ? kOwn[i](store, &answer)
                       : make_call(no_store ? NULL : store, json, token, &answer, &error);
      had = no_more_failures();
      const bool refused_by_mode =
          !is_strict && (code == WAYBILL_INVALID_ARGUMENT || code == WAYBILL_CONFLICT);
      expect_said(code, refused_by_mode ? code : otherwise, had,
                  json == NULL ? "a function" : json->name, call);
      waybill_free(answer);
      /* As after a disk error inside a commit. */
      if (code == WAYBILL_OUTCOME_UNKNOWN) {
        waybill_store_free(store);
        store = open_with(name, options);
      }
    }
  }
  waybill_free(token);
  expect(store, "SetRuntimes",
         "{\"handlers\": [{\"name\": \"runc\", \"isDefault\": true, \"userNamespaces\": true}]}",
         "");
  pull(store);
  CHECK(may_use(store, &kPod));
  expect(store, "Verify", "", "\"sound\":true");
  end_store(store);
  store = open_with(name, options);
  expect(store, "GetStatus", "", "\"rebuiltFrom\":\"\"");
  end_store(store);
}

/* A decision has no code: it is "pull", or the right one. */
static void decisions(void) {
  waybill_store* store = open_store("decisions");
  pull(store);
  CHECK(may_use(store, &kPod)); /* LMDB allocates a cursor once */
  const unsigned long before = allocations;
  CHECK(may_use(store, &kPod) && !may_use(store, &kPodWithout) && !may_use(store, NULL));
  CHECK(allocations == before);
  waybill_credential many[40] = {{NONE, NONE, NONE, NONE}};
  many[39] = kSecret;
  bool had = true;
  for (unsigned long call = 1; had; ++call) {
    waybill_look* look = check_poison();
    fail_at(call);
    const bool with_many =
        may_use(store, &(waybill_credentials){.secrets = many, .secret_count = COUNT(many)});
    const bool without = may_use(store, &kPodWithout);
    const bool at_first = waybill_decide_first(store, APP, &look).use;
    const bool late = waybill_decide_second(store, APP, look, &kPod).use;
    had = no_more_failures();
    CHECK(look != check_poison() && late == (look != NULL));
    CHECK((had || (with_many && late)) && !without && !at_first);
    waybill_free(look);
  }
  end_store(store);
}

static void wiping(void) {
  char* answer = NULL;
  MUST(hash(NULL, &answer));
  watched = answer + 10;
  CHECK(*watched != '\0');
  waybill_free(answer);
  CHECK(watched == NULL && wiped);
}

int main(void) {
  openings();
  end_store(open_store("made"));
  calls("store", kOptions, true);
  calls("as-a-kubelet",
        "{\"settings\": {\"mapBytes\": 67108864, \"mode\": \"kubelet\"}, "
        "\"runtimes\": [{\"name\": \"runc\", \"isDefault\": true, \"userNamespaces\": true}]}",
        false);
  decisions();
  wiping();
  CHECK(out_of_memory > 100);
  return check_result();
}
