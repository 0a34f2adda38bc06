/* waybill for C, and for every language that calls C: which image was pulled with whose
 * credentials, which pulls are under way, and which host IDs belong to which pod, on one Kubernetes
 * node.
 *
 *   waybill_store* store = NULL;
 *   waybill_error* error = NULL;
 *   if (waybill_open(WAYBILL_TEXT("/var/lib/kubelet/waybill"),
 *                    WAYBILL_TEXT("/var/lib/kubelet/image_manager/waybill"),
 *                    WAYBILL_NONE, &store, &error) != WAYBILL_OK) return fail(error);
 *   if (!waybill_decide(store, copy, &pod).use) {
 *     uint64_t pull = 0;
 *     if (waybill_begin_pull(store, copy, &pull, &error) != WAYBILL_OK) return fail(error);
 *     … pull …
 *     copy.image_ref = pulled_ref;
 *     // used: the one credential of the pod that the registry accepted
 *     if (waybill_end_pull(store, copy, pull, WAYBILL_PULLED, &used, WAYBILL_NONE, &error)
 *         != WAYBILL_OK) return fail(error);
 *   }
 *   char* answer = NULL;
 *   const waybill_text which = WAYBILL_TEXT("{\"imageRef\": \"sha256:1\"}");
 *   if (waybill_call(store, "Explain", which, &answer, &error) != WAYBILL_OK) return fail(error);
 *   puts(answer);
 *   waybill_free(answer);
 *   waybill_store_free(store);
 *
 * C11. What a puller needs for each pod has plain parameters. Everything else is a call with a
 * name: its parameters are a JSON object, and so is its answer. waybill_interface() lists the
 * calls; they are the same in C, in Go, and through the owner's socket.
 *
 * Texts are a pointer and a length, UTF-8, borrowed until the call returns. A null pointer with
 * length 0 is the empty text; one with another length is wrong, and so is a text that is not UTF-8:
 * they make a decision "pull", and any other call WAYBILL_INVALID_ARGUMENT.
 *
 * Results that come through a pointer to a pointer are the caller's, and may outlive the store:
 * waybill_free() wipes and frees each. If a call fails they are NULL.
 *
 * Errors: the code says what to do. If `error` is not NULL, *error gets the words; NULL on success,
 * and if memory ran out. After an error nothing was changed, with two exceptions: after
 * WAYBILL_OUTCOME_UNKNOWN, and after WAYBILL_OUT_OF_MEMORY of waybill_call() and waybill_ask(), the
 * change may or may not have happened. A null pointer where it is not allowed, or a number without
 * a meaning, is WAYBILL_INVALID_ARGUMENT.
 *
 * Threads: any function may be called from any thread at any time; only waybill_store_free() must
 * be the last one on its store. A look, and a rate limit, is for one thread at a time. No global
 * state. Not in the child of a fork.
 *
 * ABI: no symbol, struct or number of a released version changes. New calls have new names, and new
 * members of parameters and answers are new JSON members: they change nothing here.
 */

#ifndef WAYBILL_H_
#define WAYBILL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WAYBILL_API __attribute__((visibility("default")))
#define WAYBILL_MUST_CHECK __attribute__((warn_unused_result))
#else
#define WAYBILL_API
#define WAYBILL_MUST_CHECK
#endif

/* --- Texts, results, errors ------------------------------------------------------------------ */

typedef struct waybill_text {
  const char* data;
  size_t size; /* bytes */
} waybill_text;

#ifdef __cplusplus
#define WAYBILL_TEXT(literal) (waybill_text{"" literal, sizeof(literal) - 1})
#define WAYBILL_NONE (waybill_text{nullptr, 0})
#else
#define WAYBILL_TEXT(literal) ((waybill_text){"" literal, sizeof(literal) - 1})
#define WAYBILL_NONE ((waybill_text){NULL, 0})
#endif

/* Of a text that ends with a zero byte; NULL: the empty text. */
static inline waybill_text waybill_text_of(const char* text) {
  waybill_text of = {text, text == NULL ? 0 : strlen(text)};
  return of;
}

typedef int32_t waybill_code;
enum {
  WAYBILL_OK = 0,
  WAYBILL_INVALID_ARGUMENT = 1, /* the call is wrong; a smaller input does not help */
  WAYBILL_LIMIT_EXCEEDED = 2,   /* the argument is larger than a bound */
  WAYBILL_NOT_FOUND = 3,        /* certain: nothing has that name */
  WAYBILL_DAMAGED = 4,          /* stored bytes do not verify; never read it as not found */
  WAYBILL_OWNED = 5,            /* another process owns the store, or its files were replaced */
  WAYBILL_NEWER_SCHEMA = 6,     /* use the newer waybill; nothing was touched */
  WAYBILL_OLDER_SCHEMA = 7,     /* migrating was not allowed; nothing was touched */
  WAYBILL_UNSAFE_PATH = 8,      /* owner, mode or type of a path */
  WAYBILL_STORE_FULL = 9,       /* open with a larger mapBytes; deleting still works */
  WAYBILL_DISK_FULL = 10,
  WAYBILL_IO = 11,
  WAYBILL_CONFLICT = 12,  /* a newer state forbids the change */
  WAYBILL_NOT_OWNER = 13, /* the store was opened by waybill_observe */
  WAYBILL_INTERRUPTED = 14,
  WAYBILL_OUTCOME_UNKNOWN = 15, /* a commit failed half way: open again to find out */
  WAYBILL_UNAVAILABLE = 16,     /* nothing can be read now, or the owner is busy: try again */
  WAYBILL_CLOSED = 17,
  WAYBILL_OUT_OF_MEMORY = 18,
  WAYBILL_INTERNAL = 19 /* a bug */
};

typedef struct waybill_error {
  waybill_code code;
  uint32_t retry_after_ms; /* 0: unknown. Only the call PrepareStream sets it */
  const char* message;     /* what failed, and what was left as it was; ends with a zero byte */
  const char* hint;        /* what to do next, by the names of calls; may be "" */
} waybill_error;

/* Wipes and frees what came through a pointer to a pointer, except stores. Copies that the library
 * made on the way are only freed. NULL is allowed. */
WAYBILL_API void waybill_free(void* result);

/* "invalidArgument"; "" for a number that has no name. Lives for ever, as all names below. */
WAYBILL_API const char* waybill_code_name(waybill_code code);

/* "0.2.0", of the library that runs. */
WAYBILL_API const char* waybill_version(void);

/* --- Opening and closing --------------------------------------------------------------------- */

typedef struct waybill_store waybill_store;

/* For `loss_marker`, instead of an absolute path. */
#define WAYBILL_REMEMBERED_LOSS_MARKER WAYBILL_TEXT("remembered")
#define WAYBILL_NO_LOSS_MARKER WAYBILL_TEXT("none")

/* Opens as the only owner: checks each page, recovers what a crash left, imports, classifies. A
 * damaged, lost or older store is no error: the call GetStatus says what was done. `loss_marker` is
 * a file outside the store that shows if the store is lost or an older copy; it must be chosen.
 * `options` is JSON, may be empty, and each member may be left out:
 *
 *   "settings"          what decisions go by, type Settings of waybill_interface():
 *                       {"mode": "kubelet", "policy": {"verification": "AlwaysVerify"}}
 *   "kubeletDirectory"  of a kubelet whose records and ID mappings are taken over
 *   "images"            what the runtime has, a list of ListedImage; left out: unknown
 *   "runtimes"          its handlers, a list of RuntimeHandler; left out: as the store has them
 *   "preloaded"         an installer's list of ListedImage, for a first start
 *   "firstStartCloses"  true: closes what nobody knows at a first start; else it is "unconfirmed"
 *   "unrecorded"        may a kubelet without waybill have pulled? "detect" (default), "yes", "no"
 *   "create"            false: a store that is missing is WAYBILL_NOT_FOUND
 *   "migrate"           false: a store of an older schema is WAYBILL_OLDER_SCHEMA
 *   "skipUnreadable"    true: what the disk refuses to read counts as damaged
 *   "continuesPulls"    true: pulls of the process before are this one's, in the store's mode
 *   "allowUntestedLmdb" true: also with a version of LMDB that was not tested
 *   "allowEmpty"        true: empty lists of images and runtimes are meant
 *   "manualClock"       true: for tests, see waybill_set_time
 *
 * Settings are given at each opening. The store keeps mapBytes, and what observers go by: mode,
 * policy, maxAgeSeconds, pool, shortNamesAnywhere.
 * WAYBILL_OWNED, _UNSAFE_PATH, _NEWER_SCHEMA, _OLDER_SCHEMA, _NOT_FOUND, _INVALID_ARGUMENT: nothing
 * was changed. _DISK_FULL, _IO, _STORE_FULL: what was recovered so far is kept; open again. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_open(waybill_text directory,
                                                         waybill_text loss_marker,
                                                         waybill_text options,
                                                         waybill_store** store,
                                                         waybill_error** error);

/* Opens to decide and to read, beside an owner or without one, by the settings that the last owner
 * chose. What would change something is WAYBILL_NOT_OWNER. WAYBILL_NOT_FOUND: there is no store.
 * WAYBILL_DAMAGED, _OLDER_SCHEMA: an owner must open it first. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_observe(waybill_text directory,
                                                            waybill_store** store,
                                                            waybill_error** error);

/* Answers other processes of root and this user through owner.sock in the store's directory, until
 * the store is closed. None of them can delay a decision. WAYBILL_CONFLICT: it serves already. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_serve(waybill_store* store,
                                                          waybill_error** error);

/* Refuses new calls, waits for the running ones, writes back, and releases the lock. From its start
 * on decisions are "pull", and other calls WAYBILL_CLOSED. An error is about what was written back,
 * or the loss marker; the store is closed all the same. A second one waits, too, and is
 * WAYBILL_OK. */
WAYBILL_API waybill_code waybill_close(waybill_store* store, waybill_error** error);

/* Closes the store if it is open, and frees it. NULL is allowed. */
WAYBILL_API void waybill_store_free(waybill_store* store);

/* --- Decisions ------------------------------------------------------------------------------- */

/* A copy of an image. Each call says which members it needs, and ignores the others. */
typedef struct waybill_copy {
  waybill_text image;           /* as the pod wrote it */
  waybill_text image_ref;       /* what the runtime returned for it; empty: not on the node */
  waybill_text runtime_handler; /* of the pod's RuntimeClass; empty: the default one */
} waybill_copy;

/* A Secret or a service account. */
typedef struct waybill_credential {
  waybill_text namespace_name;
  waybill_text name;
  waybill_text uid;
  waybill_text hash; /* of a Secret's credentials (waybill_hash_credentials); else empty */
} waybill_credential;

typedef struct waybill_credentials {
  const waybill_credential* secrets; /* of a decision: the imagePullSecrets that match the image */
  size_t secret_count;
  const waybill_credential* service_accounts; /* of a decision: at most one */
  size_t service_account_count;
  bool every_pod; /* of a pull's end only: it took no credentials, or the node's own */
} waybill_credentials;

/* All zero says "pull". */
typedef struct waybill_decision {
  bool use;              /* the image on the node; false: pull */
  bool credentials_read; /* whether the decision looked at the credentials */
  uint8_t result;        /* waybill_result_name */
  uint8_t reason;        /* waybill_reason_name */
} waybill_decision;

/* May the pod use the image on the node, or must it be pulled (KEP-2535, MustAttemptImagePull)?
 * Never fails: what can't be read, verified or understood is "pull". Waits for no write, takes no
 * lock that another thread holds, and once warm allocates nothing for up to 8 secrets. Needs all
 * of copy.
 * `credentials` NULL: they can't be had; they are read only if the answer depends on them, and then
 * it is "pull". A pod without credentials passes an empty struct. A credential that matches only by
 * hash, or only by name, is written back later (the call Flush waits for that). */
WAYBILL_API WAYBILL_MUST_CHECK waybill_decision
waybill_decide(waybill_store* store, waybill_copy copy, const waybill_credentials* credentials);

/* The same in two calls, for who gets credentials late. If the answer depends on them, the first
 * sets *look (waybill_free) and answers "pull", which is not counted: get them, and make the second
 * call with the same store, copy and look, also if they can't be had (NULL). It compares them with
 * what the first call saw: a record that was removed meanwhile does not pass for one that never
 * was. Another store or copy, or no look, is "pull". If the first sets *look to NULL, its answer is
 * final. */
typedef struct waybill_look waybill_look;
WAYBILL_API WAYBILL_MUST_CHECK waybill_decision waybill_decide_first(waybill_store* store,
                                                                     waybill_copy copy,
                                                                     waybill_look** look);
WAYBILL_API WAYBILL_MUST_CHECK waybill_decision
waybill_decide_second(waybill_store* store, waybill_copy copy, waybill_look* look,
                      const waybill_credentials* credentials);

/* "credentialRecordFound", the label of the kubelet's metric; "secretHashMatches"; the reason in
 * one sentence, for the node's log and never for the pod. "" for a number that has none. */
WAYBILL_API const char* waybill_result_name(uint8_t result);
WAYBILL_API const char* waybill_reason_name(uint8_t reason);
WAYBILL_API const char* waybill_reason_text(uint8_t reason);

/* The hash under which a Secret's credentials are known: what the kubelet computes. *hash: 64 hex
 * digits. Passwords are in no other call. These three texts may be any bytes, as in the kubelet. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_hash_credentials(waybill_text username,
                                                                     waybill_text password,
                                                                     waybill_text email,
                                                                     char** hash,
                                                                     waybill_error** error);

/* --- Pulls (owner) --------------------------------------------------------------------------- */

/* A pull begins: on disk when it returns. Call it before each pull, and waybill_end_pull after it.
 * Needs copy.image, which need not parse, and copy.runtime_handler; one that the store was not told
 * of (call SetRuntimes) is WAYBILL_INVALID_ARGUMENT. *pull: never 0, never used twice. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_begin_pull(waybill_store* store,
                                                               waybill_copy copy, uint64_t* pull,
                                                               waybill_error** error);

/* 0 is WAYBILL_INVALID_ARGUMENT: an outcome must be chosen. */
enum {
  WAYBILL_PULLED = 1,
  WAYBILL_FAILED = 2,  /* the runtime reports an error; something may have been transferred */
  WAYBILL_UNKNOWN = 3, /* time-out, cancelled, connection lost: the image may still arrive */
  WAYBILL_NOTHING = 4  /* the runtime was asked after the error: the image is not there */
};

/* A pull ended: on disk when it returns. Pulled: needs all of copy; image_ref is what the runtime
 * returned. The credentials are added to what is known of that image. `credentials` NULL: not
 * known, so nobody gets in by them; every_pod beside any is WAYBILL_INVALID_ARGUMENT. `pull` 0: the
 * newest pull of this string, which counts as begun with the oldest. `details`: JSON, may be empty;
 * members of the call EndPull: {"verifiedBy": "registry", "validUntil": "…", "manifestDigest":
 * "sha256:…", "platform": {…}, "listed": {"id": "…", "repoDigests": […]}, "error": "401
 * Unauthorized"} */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_end_pull(
    waybill_store* store, waybill_copy copy, uint64_t pull, int32_t outcome,
    const waybill_credentials* credentials, waybill_text details, waybill_error** error);

/* --- Pods in user namespaces (KEP-127) ------------------------------------------------------- */

enum { WAYBILL_HOST_USERS_UNSET = 0, WAYBILL_HOST_USERS_TRUE = 1, WAYBILL_HOST_USERS_FALSE = 2 };

/* length 0: the node's user namespace. Otherwise the one mapping of UIDs and of GIDs, from ID 0 in
 * the container; the pod's mounts use it, too. */
typedef struct waybill_mapping {
  uint32_t host_id;
  uint32_t length;
} waybill_mapping;

/* The user namespace for the pod's sandbox and mounts: always the same, on disk before it is
 * returned. The store must know that the handler can do it: call SetRuntimes first, or give
 * "runtimes" at opening. WAYBILL_INVALID_ARGUMENT: it can't, or was never told. WAYBILL_CONFLICT:
 * user namespaces are off, or the pod, or pods of unknown ranges, are in quarantine.
 * WAYBILL_LIMIT_EXCEEDED: the pool is full. The call ReleaseUserNamespace releases it. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_claim_user_namespace(
    waybill_store* store, waybill_text pod_uid, int32_t host_users, waybill_text runtime_handler,
    waybill_mapping* mapping, waybill_error** error);

/* --- Every other call ------------------------------------------------------------------------ */

/* Makes the call of that name ("Explain", "ListImages", "ClassifyImages", "Revoke", …).
 * `parameters` is a JSON object; empty: {}. *answer is one, and ends with a zero byte. An unknown
 * name or member, a missing or repeated member, more than 16 levels: WAYBILL_INVALID_ARGUMENT, with
 * the place in the message. `store` NULL: for calls that need none (L in waybill_interface:
 * "Migrate", "Restore", "WhoChecks", "ListBackups", "ChooseManifest", "ParseImage",
 * "CheckStreamUrl", "PlanStreams"). */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_call(waybill_store* store, const char* name,
                                                         waybill_text parameters, char** answer,
                                                         waybill_error** error);

/* The same, asked of the owner of the store in that directory, in another process that serves.
 * `patience_ms` 0: ten minutes. WAYBILL_NOT_FOUND: nobody serves. WAYBILL_UNAVAILABLE: busy,
 * nothing was changed. WAYBILL_OUTCOME_UNKNOWN: the request was sent, and no answer came. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_ask(waybill_text directory, const char* name,
                                                        waybill_text parameters,
                                                        uint32_t patience_ms, char** answer,
                                                        waybill_error** error);

/* The list of calls with all members, units and errors: the text of dev.waybill.varlink. */
WAYBILL_API const char* waybill_interface(void);

/* --- Streams (KEP-1558) ---------------------------------------------------------------------- */

/* Opens a store of streaming requests, in a directory of its own; it takes the calls PrepareStream,
 * ConsumeStream, ListStreams, GetStatus, GetMetrics and Verify, and no other function but closing.
 * `options`: JSON, may be empty:
 *
 *   "keepsTokens"   true: tokens live over a restart of the process; otherwise they are void then
 *   "continues"     true: a command that shares a server's work, and voids nothing
 *   "timeToLiveMs"  how long a token is good; left out: 60000
 *   "maxOpen"       how many may be open; left out: 1000
 *   "manualClock"   true: for tests, see waybill_set_time */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_open_streams(waybill_text directory,
                                                                 waybill_text loss_marker,
                                                                 waybill_text options,
                                                                 waybill_store** store,
                                                                 waybill_error** error);

/* How fast bytes may pass through a stream: a token bucket in the caller's memory. Nothing here
 * fails. Times are nanoseconds of a monotonic clock. All zero is no limit; NULL lets nothing pass.
 */
typedef struct waybill_rate_limit {
  uint64_t state[6];
} waybill_rate_limit;

/* `bytes_per_second` 0: no limit. `burst_bytes` 0: a tenth of a second's. */
WAYBILL_API waybill_rate_limit waybill_rate_limit_make(uint64_t bytes_per_second,
                                                       uint64_t burst_bytes, int64_t now_ns);
/* How many of `wanted` bytes may pass now; they count as passed. 0: wait. */
WAYBILL_API uint64_t waybill_rate_limit_take(waybill_rate_limit* limit, uint64_t wanted,
                                             int64_t now_ns);
/* Bytes of the last take that did not pass. */
WAYBILL_API void waybill_rate_limit_give_back(waybill_rate_limit* limit, uint64_t bytes);
/* Nanoseconds until `wanted` bytes may pass, or a full burst if that is less. */
WAYBILL_API int64_t waybill_rate_limit_wait(waybill_rate_limit* limit, uint64_t wanted,
                                            int64_t now_ns);

/* --- For tests ------------------------------------------------------------------------------- */

/* Sets the clocks of a store that was opened with {"manualClock": true}: since 1970, and since
 * boot. Before the first call they are those of the opening. WAYBILL_INVALID_ARGUMENT: any other
 * store. */
WAYBILL_API waybill_code waybill_set_time(waybill_store* store, int64_t unix_ns, int64_t boot_ns);

#ifdef __cplusplus
}
#endif

#endif /* WAYBILL_H_ */
