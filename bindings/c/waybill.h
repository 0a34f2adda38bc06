/* waybill for C, and for languages that call C: which image was pulled with whose credentials,
 * which pulls were in flight, and which host IDs belong to which pod, on one Kubernetes node.
 *
 *   waybill_open_options options = WAYBILL_OPEN_OPTIONS_INIT;
 *   options.directory = WAYBILL_STRING("/var/lib/kubelet/waybill");
 *   options.witness_kind = WAYBILL_WITNESS_AT;
 *   options.witness_path = WAYBILL_STRING("/var/lib/kubelet/image_manager/waybill");
 *   waybill_store* store = NULL;
 *   waybill_error* error = NULL;
 *   if (waybill_open(&options, &store, &error) != WAYBILL_OK) return fail(error);
 *   waybill_image_copy copy = {
 *       .image = image, .image_ref = image_ref, .runtime_handler = handler};
 *   if (waybill_must_attempt_pull(store, copy, &pod_credentials).pull) {
 *     waybill_pull_result result = WAYBILL_PULL_RESULT_INIT;
 *     waybill_code code = waybill_record_pull_intent(store, copy, &result.pull, &error);
 *     if (code != WAYBILL_OK) return fail(error);
 *
 *     … pull …
 *
 *     copy.image_ref = pulled_ref;
 *     code = waybill_record_image_pulled(store, copy, &credentials, &result, &error);
 *   }
 *   waybill_close(store, NULL);
 *   waybill_store_free(store);
 *
 * C11. Each function decides and stores as the C++ function of the same name
 * (waybill/node_store.h). This header adds the rules of C.
 *
 * Strings are a pointer and a length, and may hold any bytes. Arguments are borrowed until the call
 * returns and need no terminating zero. A null pointer is the empty string; with a length above 0
 * it is WAYBILL_INVALID_ARGUMENT. Strings in results have a terminating zero that the length does
 * not count, and live as long as the result that holds them.
 *
 * The caller owns each result that comes through a pointer to a pointer, and frees it and all that
 * it holds with one waybill_free(). If a call fails, its results are NULL.
 *
 * Errors: the returned code says what to do. If `error` is not NULL, *error receives the text for a
 * human reader, which the caller frees (waybill_free); it is NULL on success and if memory ran out.
 * A null pointer for a required value, an array without an address and a number outside its
 * enumeration are WAYBILL_INVALID_ARGUMENT. Every function on a store may return WAYBILL_CLOSED,
 * WAYBILL_OUT_OF_MEMORY and WAYBILL_INTERNAL; each function lists its other codes. Unless stated
 * otherwise, an error leaves the store unchanged.
 *
 * Threads: every function may be called from any thread at any time. waybill_close() waits for
 * running calls; later calls get WAYBILL_CLOSED. waybill_store_free() and waybill_policy_free()
 * must be the last calls on their object. Callbacks run on the calling thread or on a thread of the
 * library, as each says. A callback that calls into its own store gets WAYBILL_INVALID_ARGUMENT, or
 * "pull". Callbacks must return: no longjmp, no foreign exception. There is no global state. A
 * store must not be used in the child of a fork.
 *
 * Versions: each symbol carries the version that introduced it (WAYBILL_1). No symbol, struct or
 * number of a version ever changes. Structs that begin with struct_size may get members at their
 * end: set struct_size to sizeof and the rest to zero, the default of each member (the _INIT macros
 * do both). Structs that are only returned by pointer may also get members at their end; structs in
 * arrays never do.
 */

#ifndef WAYBILL_H_
#define WAYBILL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* A struct's member that a designated initialiser may leave out without a warning. */
#if defined(__cplusplus) && __cplusplus >= 202002L
#define WAYBILL_EMPTY = {}
#else
#define WAYBILL_EMPTY
#endif

/* What the _INIT of a struct is: struct_size, and the rest zero. */
#ifdef __cplusplus
#define WAYBILL_INIT(type)                  \
  ([]() {                                   \
    type initialised = type();              \
    initialised.struct_size = sizeof(type); \
    return initialised;                     \
  }())
#else
#define WAYBILL_INIT(type) \
  { .struct_size = sizeof(type) }
#endif

/* --- Strings, results, errors ---------------------------------------------------------------- */

typedef struct waybill_string {
  const char* data;
  size_t length; /* bytes */
} waybill_string;

/* A waybill_string of a literal. */
#ifdef __cplusplus
#define WAYBILL_STRING(literal) (waybill_string{"" literal, sizeof(literal) - 1})
#else
#define WAYBILL_STRING(literal) ((waybill_string){"" literal, sizeof(literal) - 1})
#endif

typedef struct waybill_strings {
  const waybill_string* items;
  size_t count;
} waybill_strings;

typedef int32_t waybill_code;
enum {
  WAYBILL_OK = 0,
  /* waybill/result.h says what the caller should do. */
  WAYBILL_INVALID_ARGUMENT = 1,
  WAYBILL_LIMIT_EXCEEDED = 2,
  WAYBILL_NOT_FOUND = 3,
  WAYBILL_DAMAGED = 4,
  WAYBILL_OWNED = 5,
  WAYBILL_NEWER_SCHEMA = 6,
  WAYBILL_OLDER_SCHEMA = 7,
  WAYBILL_UNSAFE_PATH = 8,
  WAYBILL_STORE_FULL = 9,
  WAYBILL_DISK_FULL = 10,
  WAYBILL_IO = 11,
  WAYBILL_CONFLICT = 12,
  WAYBILL_NOT_OWNER = 13,
  WAYBILL_INTERRUPTED = 14,
  WAYBILL_OUTCOME_UNKNOWN = 15,
  WAYBILL_CREDENTIALS_UNAVAILABLE = 16,
  WAYBILL_UNAVAILABLE = 17,
  /* waybill_close was called. */
  WAYBILL_CLOSED = 64,
  WAYBILL_OUT_OF_MEMORY = 65,
  /* A bug of the library; please report it with the text. */
  WAYBILL_INTERNAL = 66
};

/* What to do next, where it is a call of waybill: Hint in waybill/result.h says when each comes. */
typedef int32_t waybill_hint;
enum {
  WAYBILL_HINT_NONE = 0,
  WAYBILL_HINT_RECOVER = 1,
  WAYBILL_HINT_VERIFY = 2,
  WAYBILL_HINT_PULL_AGAIN = 3,
  WAYBILL_HINT_CREATE = 4,
  WAYBILL_HINT_MIGRATE = 5,
  WAYBILL_HINT_ACCEPT_LOSS = 6,
  WAYBILL_HINT_RESTORE = 7,
  WAYBILL_HINT_LIST_BACKUPS = 8,
  WAYBILL_HINT_ALLOW_UNTESTED_LMDB = 9,
  WAYBILL_HINT_PRUNE_OR_ENLARGE = 10,
  WAYBILL_HINT_SKIP_UNREADABLE = 11,
  WAYBILL_HINT_ALLOW_EMPTY = 12,
  WAYBILL_HINT_BEGIN_LIST = 13,
  WAYBILL_HINT_BEGIN_USERNS_CLEANUP = 14,
  WAYBILL_HINT_LOAD_HANDLERS = 15,
  WAYBILL_HINT_FREE_RANGES = 16,
  WAYBILL_HINT_SETTLE_HELD_PODS = 17,
  WAYBILL_HINT_RELEASE_POD = 18,
  WAYBILL_HINT_REPLACE_WITNESS = 19
};

typedef struct waybill_error {
  waybill_code code;
  waybill_hint hint_code; /* WAYBILL_HINT_NONE: `hint` needs no translation, or is empty */
  waybill_string message; /* what failed, on which path or key, what was left as it was */
  waybill_string hint;    /* what to do next, in calls of this header; may be empty */
  /* When the same call can succeed, from now on; 0: not known. waybill_prepare_stream says. */
  uint64_t retry_after_ns;
} waybill_error;

/* Frees a result that came through a pointer to a pointer, except stores and policies. NULL is
 * allowed. WAYBILL_INVALID_ARGUMENT: the pointer is not a result, as far as can be told; nothing is
 * done. A second free is detected only until the memory is used again. */
WAYBILL_API waybill_code waybill_free(void* result);

/* "invalidArgument", as the command line and JSON print it; "ok"; empty for an unknown code. This
 * name and those below live for ever. */
WAYBILL_API waybill_string waybill_code_name(waybill_code code);

/* What to do, in calls of this header. Empty for WAYBILL_HINT_NONE and for a number that is not a
 * hint. Lives for ever. */
WAYBILL_API waybill_string waybill_hint_text(waybill_hint hint);

/* "0.1.0", of the library that runs. */
WAYBILL_API waybill_string waybill_version(void);

/* With an untested version of LMDB, opening, observing, migrating and restoring are
 * WAYBILL_INVALID_ARGUMENT and change nothing. `allow`: use the untested version anyway, in the
 * whole process, from now on. From any thread. */
WAYBILL_API void waybill_allow_untested_lmdb(bool allow);
/* The schema version that this library writes, and the oldest that it opens. */
WAYBILL_API uint32_t waybill_newest_schema(void);
WAYBILL_API uint32_t waybill_oldest_schema(void);

/* --- Values ---------------------------------------------------------------------------------- */

/* UTC. Seconds since 1970, of the years 1 to 9999; 0 <= nanoseconds < 1,000,000,000. */
typedef struct waybill_timestamp {
  int64_t seconds;
  int32_t nanoseconds;
} waybill_timestamp;

/* A moment since the machine booted (BootTime in waybill/types.h). */
typedef struct waybill_boot_time {
  uint8_t boot_id[16]; /* which boot; zeros: unknown */
  int64_t nanoseconds; /* CLOCK_BOOTTIME */
} waybill_boot_time;

/* Which copy of an image a call is about: ImageCopy in waybill/types.h. Name the members: an image
 * string that is taken for a ref asks about another copy, of which nothing may be known. Each
 * function says which members it needs, and ignores the others. */
typedef struct waybill_image_copy {
  waybill_string image WAYBILL_EMPTY;     /* the container's image string, as the pod wrote it */
  waybill_string image_ref WAYBILL_EMPTY; /* what the runtime returned; empty: not on the node */
  waybill_string runtime_handler
      WAYBILL_EMPTY; /* that the pod's RuntimeClass names; empty: the default */
} waybill_image_copy;

typedef struct waybill_image_pull_secret {
  waybill_string uid;
  waybill_string namespace_name;
  waybill_string name;
  waybill_string credential_hash; /* opaque; empty: matches nothing */
} waybill_image_pull_secret;

typedef struct waybill_image_pull_service_account {
  waybill_string uid;
  waybill_string namespace_name;
  waybill_string name;
} waybill_image_pull_service_account;

/* Which credentials opened an image under one image name (waybill/types.h). */
typedef struct waybill_image_pull_credentials {
  bool node_pods_accessible;
  const waybill_image_pull_secret* secrets;
  size_t secret_count;
  const waybill_image_pull_service_account* service_accounts;
  size_t service_account_count;
} waybill_image_pull_credentials;

typedef struct waybill_credential_mapping {
  waybill_string image_name;
  waybill_image_pull_credentials credentials;
} waybill_credential_mapping;

/* What an image was built for, and what it is to run on (waybill/platform.h). */
typedef struct waybill_platform {
  waybill_string architecture;
  waybill_string os;
  waybill_string os_version;
  waybill_strings os_features;
  waybill_string variant;
} waybill_platform;

typedef struct waybill_image_pulled_record {
  waybill_string image_ref;
  const waybill_timestamp* last_updated; /* NULL: none */
  const waybill_credential_mapping* credential_mapping;
  size_t credential_mapping_count;
  uint64_t stamp; /* set by the store, as is guest_platform; ignored where they go in */
  waybill_string runtime_handler; /* empty: the default one */
  waybill_string manifest_digest;
  const waybill_platform* platform;       /* NULL: not known */
  const waybill_platform* guest_platform; /* NULL: none */
  /* Why the image was closed without a pull by this kubelet, if it was. Set by the store, too. */
  waybill_string closed_because;
} waybill_image_pulled_record;

/* Coordinates of a Secret or a service account. Name the members. */
typedef struct waybill_credential_name {
  waybill_string namespace_name WAYBILL_EMPTY;
  waybill_string name WAYBILL_EMPTY;
  waybill_string uid WAYBILL_EMPTY; /* empty: whatever the UID */
} waybill_credential_name;

/* When a credential was last proven by a pull. A match proves nothing. */
typedef struct waybill_proof {
  const waybill_timestamp* proven; /* whole seconds; NULL: unknown */
  uint64_t pull_began;             /* the commit in which that pull began; 0: unknown */
} waybill_proof;

typedef struct waybill_image_pulled_records {
  const waybill_image_pulled_record* items;
  size_t count;
} waybill_image_pulled_records;

typedef struct waybill_image_pull_intent {
  waybill_string image;
  waybill_string runtime_handler;
} waybill_image_pull_intent;

typedef struct waybill_image_pull_intents {
  const waybill_image_pull_intent* items;
  size_t count;
} waybill_image_pull_intents;

typedef struct waybill_image_preloaded_record {
  waybill_string image_ref;
  const waybill_timestamp* last_updated; /* NULL: none */
  waybill_strings observed_images;
} waybill_image_preloaded_record;

typedef struct waybill_image_preloaded_records {
  const waybill_image_preloaded_record* items;
  size_t count;
} waybill_image_preloaded_records;

/* An image that the container runtime lists: ImageOnNode in waybill/types.h. Functions that only
 * ask which images are there need `id` alone: any spelling of the image. */
typedef struct waybill_image_on_node {
  waybill_string id; /* the image ref */
  waybill_strings repo_tags;
  waybill_strings repo_digests;
  waybill_string runtime_handler; /* empty: may be any handler's */
  bool pinned;                    /* by the runtime's configuration */
} waybill_image_on_node;

typedef struct waybill_images_on_node {
  const waybill_image_on_node* items;
  size_t count;
} waybill_images_on_node;

/* The manifest that a pull chose out of an index. */
typedef struct waybill_pulled_manifest {
  waybill_string digest;
  waybill_platform platform;
} waybill_pulled_manifest;

/* Which pull. Durable, and never used twice in one store. 0: none is named. */
typedef uint64_t waybill_pull_id;

/* PullState in waybill/evidence.h: running; failed, but something may have been transferred; of
 * unknown end. */
enum { WAYBILL_OPEN_PULL_RUNNING = 1, WAYBILL_OPEN_PULL_FAILED = 2, WAYBILL_OPEN_PULL_UNKNOWN = 3 };
WAYBILL_API waybill_string waybill_pull_state_name(int32_t state); /* "running" */

/* A pull that may still bring an image, or may have brought one that nobody recorded. */
typedef struct waybill_open_pull {
  waybill_pull_id id;
  bool anything; /* stands for pulls that can't be named: it may have brought any image */
  bool several;  /* several pulls of one string that ended alike, with the last end */
  waybill_string image;
  waybill_string runtime_handler;
  int32_t state; /* WAYBILL_OPEN_PULL_RUNNING … */
  waybill_timestamp began;
  const waybill_timestamp* ended; /* NULL: it runs */
  waybill_boot_time ended_at;     /* the same, as grace and window are measured */
  uint64_t stamp;                 /* the commit in which it began */
} waybill_open_pull;

typedef struct waybill_open_pulls {
  const waybill_open_pull* items;
  size_t count;
} waybill_open_pulls;

/* The source of a ledger entry that is presumed: a first start found the image, and nobody knows
 * where it came from. */
#define WAYBILL_PRESUMED_SOURCE "presumed"

/* An image that is known to have come to the node without the kubelet, or presumed so. */
typedef struct waybill_ledger_entry {
  waybill_string image_ref;
  waybill_string runtime_handler;
  waybill_strings names; /* at that time, sorted */
  waybill_string source;
  waybill_string reason;
  waybill_timestamp since;
  uint64_t stamp; /* the commit that wrote it */
} waybill_ledger_entry;

typedef struct waybill_ledger_entries {
  const waybill_ledger_entry* items;
  size_t count;
} waybill_ledger_entries;

enum { WAYBILL_QUARANTINED_IMAGE_REF = 1, WAYBILL_QUARANTINED_IMAGE = 2 };
typedef struct waybill_quarantine_entry {
  int32_t kind;
  waybill_string sha256; /* 64 lower-case hex digits */
  waybill_string source;
  waybill_string reason;
  waybill_timestamp since;
} waybill_quarantine_entry;

typedef struct waybill_quarantine_entries {
  const waybill_quarantine_entry* items;
  size_t count;
} waybill_quarantine_entries;

/* What a RuntimeClass selects (waybill/runtime_handler.h). */
typedef struct waybill_runtime_handler {
  waybill_string name;
  bool is_default;
  bool user_namespaces;
  const waybill_platform* guest_platform; /* NULL: the host's */
} waybill_runtime_handler;

typedef struct waybill_runtime_handlers {
  const waybill_runtime_handler* items;
  size_t count;
} waybill_runtime_handlers;

/* --- Credential hashes, image names, platforms: pure -------------------------------------------
 */

/* The hash under which a Secret's credentials are remembered: waybill/credential_hash.h. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_hash_credentials(waybill_string username,
                                                                     waybill_string password,
                                                                     waybill_string email,
                                                                     waybill_string** hash,
                                                                     waybill_error** error);

/* The parts of an image string, as views into it (waybill/image_name.h). */
typedef struct waybill_image_parts {
  waybill_string name;
  waybill_string domain;
  waybill_string path;
  waybill_string tag;
  waybill_string digest;
} waybill_image_parts;

/* Whether `image` parses; if not, *parts is empty. `parts` may be NULL. */
WAYBILL_API bool waybill_parse_image(waybill_string image, waybill_image_parts* parts);
/* The full form. WAYBILL_INVALID_ARGUMENT: `image` does not parse or is ambiguous. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_normalise_image(waybill_string image,
                                                                    waybill_string** full,
                                                                    waybill_error** error);
/* Equal for two strings that name the same repository. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_repository_of(waybill_string image,
                                                                  waybill_string** repository,
                                                                  waybill_error** error);

/* OS/ARCHITECTURE[/VARIANT], normalised. WAYBILL_INVALID_ARGUMENT as ParsePlatform. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_parse_platform(waybill_string text,
                                                                   waybill_platform** platform,
                                                                   waybill_error** error);
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_format_platform(
    const waybill_platform* platform, waybill_string** text, waybill_error** error);
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_normalise_platform(
    const waybill_platform* platform, waybill_platform** normalised, waybill_error** error);

/* One entry of an image index (waybill/image_index.h). */
typedef struct waybill_manifest_descriptor {
  waybill_string media_type;
  waybill_string digest;
  uint64_t size;                    /* bytes; 0: not given */
  const waybill_platform* platform; /* NULL: not given */
  bool is_attestation;
} waybill_manifest_descriptor;

typedef struct waybill_image_index {
  const waybill_manifest_descriptor* items;
  size_t count;
} waybill_image_index;

/* WAYBILL_INVALID_ARGUMENT, WAYBILL_LIMIT_EXCEEDED: DecodeImageIndex. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_decode_image_index(waybill_string json,
                                                                       waybill_image_index** index,
                                                                       waybill_error** error);
/* Which manifest a runtime on `host` pulls, for a handler with `guest` (NULL: none): *chosen is an
 * index into index->items. WAYBILL_NOT_FOUND: none matches; WAYBILL_INVALID_ARGUMENT:
 * ChooseManifest. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_choose_manifest(const waybill_image_index* index, const waybill_platform* host,
                        const waybill_platform* guest, size_t* chosen, waybill_error** error);

/* --- The kubelet's JSON: pure ------------------------------------------------------------------
 */

enum { WAYBILL_KUBELET_V1BETA1 = 0, WAYBILL_KUBELET_V1ALPHA1 = 1 };

/* Strict (waybill/kubelet_format.h): WAYBILL_INVALID_ARGUMENT names the field,
 * WAYBILL_LIMIT_EXCEEDED the bound. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_decode_pulled_record(
    waybill_string json, waybill_image_pulled_record** record, waybill_error** error);
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_decode_pull_intent(
    waybill_string json, waybill_image_pull_intent** intent, waybill_error** error);
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_decode_preloaded_record(
    waybill_string json, waybill_image_preloaded_record** record, waybill_error** error);

/* As kubelets of that API version write them. Two entries of one image name are
 * WAYBILL_INVALID_ARGUMENT. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_encode_pulled_record(const waybill_image_pulled_record* record, int32_t api_version,
                             waybill_string** json, waybill_error** error);
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_encode_pull_intent(const waybill_image_pull_intent* intent, int32_t api_version,
                           waybill_string** json, waybill_error** error);
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_encode_preloaded_record(const waybill_image_preloaded_record* record, int32_t api_version,
                                waybill_string** json, waybill_error** error);

/* `crictl images -o json`. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_decode_image_list(
    waybill_string json, waybill_images_on_node** images, waybill_error** error);
/* The UIDs of the pods in `kubectl get pods -o json`, the kubelet's /pods, `crictl pods -o json`.
 */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_decode_pod_list(waybill_string json,
                                                                    waybill_strings** pod_uids,
                                                                    waybill_error** error);
/* `crictl info`. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_decode_runtime_status(
    waybill_string json, waybill_runtime_handlers** handlers, waybill_error** error);

typedef struct waybill_registry_auth {
  waybill_string registry;
  waybill_string username;
  waybill_string password;
  waybill_string email;
} waybill_registry_auth;

/* Holds passwords: waybill_free wipes them. */
typedef struct waybill_registry_auths {
  const waybill_registry_auth* items;
  size_t count;
} waybill_registry_auths;

/* A docker config, or a Secret that holds one. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_decode_auth_document(
    waybill_string json, waybill_registry_auths** auths, waybill_error** error);

/* "2026-01-02T03:04:05Z". WAYBILL_INVALID_ARGUMENT: the time is out of bounds. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_format_timestamp(waybill_timestamp time,
                                                                     waybill_string** text,
                                                                     waybill_error** error);
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_parse_timestamp(waybill_string text,
                                                                    waybill_timestamp* time,
                                                                    waybill_error** error);

/* --- Rules and policy --------------------------------------------------------------------------
 */

/* waybill/rules.h */
enum { WAYBILL_RULES_CLOSED = 0, WAYBILL_RULES_KUBELET = 1 };
WAYBILL_API waybill_string waybill_rules_name(int32_t rules); /* "closed" */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_parse_rules(waybill_string name, int32_t* rules,
                                                                waybill_error** error);

/* The kubelet's imagePullCredentialsVerificationPolicy (waybill/policy.h). */
enum {
  WAYBILL_NEVER_VERIFY = 0,
  WAYBILL_NEVER_VERIFY_PRELOADED_IMAGES = 1,
  WAYBILL_NEVER_VERIFY_ALLOWLISTED_IMAGES = 2,
  WAYBILL_ALWAYS_VERIFY = 3
};
WAYBILL_API waybill_string waybill_verification_mode_name(int32_t mode); /* "NeverVerify" */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_parse_verification_mode(waybill_string name,
                                                                            int32_t* mode,
                                                                            waybill_error** error);

enum { WAYBILL_ALLOWLIST_ANY_IMAGE = 0, WAYBILL_ALLOWLIST_PRELOADED_ONLY = 1 };
enum {
  WAYBILL_ORIGIN_KUBELET_PULLED = 0,
  WAYBILL_ORIGIN_PRELOADED = 1,
  WAYBILL_ORIGIN_UNKNOWN = 2
};

/* Immutable. Stores copy it. */
typedef struct waybill_policy waybill_policy;

/* WAYBILL_INVALID_ARGUMENT, WAYBILL_LIMIT_EXCEEDED: VerificationPolicy::Make. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_policy_make(int32_t mode,
                                                                waybill_strings patterns,
                                                                int32_t scope,
                                                                waybill_policy** policy,
                                                                waybill_error** error);
WAYBILL_API void waybill_policy_free(waybill_policy* policy);
/* WAYBILL_NEVER_VERIFY …; for NULL, the mode of the default policy. */
WAYBILL_API int32_t waybill_policy_mode(const waybill_policy* policy);
WAYBILL_API int32_t waybill_policy_scope(const waybill_policy* policy);
/* NULL: the default policy. true for an unknown origin. */
WAYBILL_API bool waybill_policy_requires_verification(const waybill_policy* policy,
                                                      waybill_string image_name, int32_t origin);

/* --- User namespaces: values -------------------------------------------------------------------
 */

/* waybill/user_namespace.h has the meaning of each. */
typedef struct waybill_user_namespace_pool {
  uint64_t first_id;
  uint64_t id_count;
  uint64_t ids_per_pod;
  uint64_t max_pods;
} waybill_user_namespace_pool;

typedef struct waybill_user_namespace_options {
  size_t struct_size;
  bool disabled;                    /* the feature UserNamespacesSupport is off */
  waybill_user_namespace_pool pool; /* all zero: the default one */
} waybill_user_namespace_options;
#define WAYBILL_USER_NAMESPACE_OPTIONS_INIT WAYBILL_INIT(waybill_user_namespace_options)

/* What a kubelet without configuration uses. */
WAYBILL_API waybill_user_namespace_pool waybill_default_user_namespace_pool(uint64_t ids_per_pod,
                                                                            uint64_t max_pods);
/* WAYBILL_INVALID_ARGUMENT, in the kubelet's words. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_check_user_namespace_pool(const waybill_user_namespace_pool* pool, waybill_error** error);
/* The pool of a node on which `getsubids kubelet` printed `uids` and `getsubids -g kubelet` `gids`.
 * WAYBILL_INVALID_ARGUMENT: PoolOfSubordinateIds. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_pool_of_subordinate_ids(bool user_exists, bool tool_exists, waybill_string uids,
                                waybill_string gids, uint64_t ids_per_pod, uint64_t max_pods,
                                waybill_user_namespace_pool* pool, waybill_error** error);

typedef struct waybill_id_mapping {
  uint32_t host_id;
  uint32_t container_id;
  uint32_t length;
} waybill_id_mapping;

/* CRI's NamespaceMode. */
enum { WAYBILL_NAMESPACE_POD = 0, WAYBILL_NAMESPACE_NODE = 2 };

/* CRI's UserNamespace. With POD, uids and gids are the same single mapping; with NODE, unused. */
typedef struct waybill_user_namespace {
  int32_t mode;
  uint32_t mapping_count; /* 0 or 1 */
  waybill_id_mapping uids;
  waybill_id_mapping gids;
} waybill_user_namespace;

enum { WAYBILL_HOST_USERS_UNSET = 0, WAYBILL_HOST_USERS_TRUE = 1, WAYBILL_HOST_USERS_FALSE = 2 };

typedef struct waybill_user_namespace_request {
  size_t struct_size;
  waybill_string pod_uid;
  int32_t host_users; /* pod.spec.hostUsers */
  waybill_string runtime_handler;
  uint32_t length; /* that the caller requires; 0: any */
} waybill_user_namespace_request;
#define WAYBILL_USER_NAMESPACE_REQUEST_INIT WAYBILL_INIT(waybill_user_namespace_request)

enum { WAYBILL_POOL_INSIDE = 0, WAYBILL_POOL_OUTSIDE = 1, WAYBILL_POOL_OTHER_LENGTH = 2 };
typedef struct waybill_user_namespace_allocation {
  waybill_string pod_uid;
  uint32_t host_id;
  uint32_t length;
  waybill_timestamp created;
  int32_t relation; /* to the current pool: WAYBILL_POOL_… */
} waybill_user_namespace_allocation;

typedef struct waybill_user_namespace_allocations {
  const waybill_user_namespace_allocation* items;
  size_t count;
} waybill_user_namespace_allocations;

typedef struct waybill_host_id_range {
  uint64_t first;
  uint64_t length;
} waybill_host_id_range;

/* HeldKind in waybill/user_namespace.h. Others may come: each holds like any other. */
enum {
  WAYBILL_HELD_OTHER = 1,
  WAYBILL_HELD_FILE_CONFLICT = 2,
  WAYBILL_HELD_TABLES_CONTRADICT = 3,
  WAYBILL_HELD_UNREADABLE_FILE = 4,
  WAYBILL_HELD_FROM_BACKUP = 5,
  WAYBILL_HELD_LOST_RANGES = 6,
  WAYBILL_HELD_UNTIL_IMPORT = 7
};

/* A pod that may live with unverified host IDs. */
typedef struct waybill_held_pod {
  waybill_string pod_uid;              /* empty: unknown pods */
  const waybill_host_id_range* ranges; /* no items: unknown, so no new range is handed out */
  size_t range_count;
  waybill_string source;
  waybill_string reason;
  waybill_timestamp since;
  int32_t kind; /* WAYBILL_HELD_OTHER … */
} waybill_held_pod;

typedef struct waybill_held_pods {
  const waybill_held_pod* items;
  size_t count;
} waybill_held_pods;

/* --- Opening and closing ------------------------------------------------------------------------
 */

/* The wall clock. Called on any thread, including the library's own. The system's time replaces a
 * time outside the years 1 to 9999. */
typedef waybill_timestamp (*waybill_clock)(void* context);
/* Units (files, values) done, and in all. Called on the calling thread. Return false to stop. */
typedef bool (*waybill_progress)(void* context, uint64_t done, uint64_t total);

/* The choice must be explicit, even for no witness: 0 is WAYBILL_INVALID_ARGUMENT. ANEW is AT with
 * an operator's confirmation that the store is the newest, although the witness that it remembers
 * under another path is missing. NONE forgets that witness. */
enum {
  WAYBILL_WITNESS_AT = 1,
  WAYBILL_WITNESS_REMEMBERED = 2,
  WAYBILL_WITNESS_NONE = 3,
  WAYBILL_WITNESS_ANEW = 4
};
enum { WAYBILL_GAP_DETECT = 0, WAYBILL_GAP_YES = 1, WAYBILL_GAP_NO = 2 };
/* What a first start makes of images that have neither record nor open pull. */
enum {
  WAYBILL_FIRST_START_PRESUME = 0, /* they enter the ledger as presumed: open */
  WAYBILL_FIRST_START_CLOSE = 1    /* they get records without credentials */
};

/* CLOCK_BOOTTIME and the boot ID. Called on any thread. */
typedef waybill_boot_time (*waybill_boot_clock)(void* context);

/* What an image string without a registry host may name on this node: ShortNames in
 * waybill/evidence.h. */
enum { WAYBILL_SHORT_NAMES_ANYWHERE = 0, WAYBILL_SHORT_NAMES_DOCKER_HUB = 1 };
WAYBILL_API waybill_string waybill_short_names_name(int32_t short_names); /* "docker.io" */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_parse_short_names(waybill_string name,
                                                                      int32_t* short_names,
                                                                      waybill_error** error);

/* What the pull could have given an image as a name: "r.example/x:1", "r.example/x@…", "anything".
 */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_names_given_by(const waybill_open_pull* pull,
                                                                   int32_t short_names,
                                                                   waybill_strings** names,
                                                                   waybill_error** error);

/* EvidenceOptions in waybill/evidence.h. */
typedef struct waybill_evidence_options {
  size_t struct_size;
  int64_t grace_seconds;    /* 0: the default, 2 minutes */
  int64_t window_seconds;   /* 0: the default, 2 hours */
  int32_t short_names;      /* WAYBILL_SHORT_NAMES_… */
  int64_t remember_seconds; /* of images that are gone; 0: the default, 30 days. < 0: not at all */
} waybill_evidence_options;
#define WAYBILL_EVIDENCE_OPTIONS_INIT WAYBILL_INIT(waybill_evidence_options)

/* AgeLimits in waybill/revocation.h: how long what a pull proved counts, in seconds. 0: for ever;
 * otherwise 60 to 315,360,000 (10 years), or the call is WAYBILL_INVALID_ARGUMENT. Past it a match
 * is "pull", WAYBILL_REASON_PROOF_TOO_OLD, until a pull proves the credential again. */
typedef struct waybill_age_limits {
  size_t struct_size;
  int64_t credentials_seconds;      /* Secrets and service accounts */
  int64_t service_accounts_seconds; /* a shorter one for these; 0: as credentials_seconds */
  int64_t node_pods_seconds;        /* of images that were pulled without credentials */
  /* How long a revocation is kept at least: 86,400 (a day) to 315,360,000; 0: the default, 30 days.
   */
  int64_t revocations_seconds;
} waybill_age_limits;
#define WAYBILL_AGE_LIMITS_INIT WAYBILL_INIT(waybill_age_limits)

/* OpenOptions in waybill/node_store.h says what each does. */
typedef struct waybill_open_options {
  size_t struct_size;
  waybill_string directory;
  bool must_exist; /* otherwise a missing store is created */
  bool no_migration;
  bool allow_empty;     /* accept an empty images_on_node or runtime_handlers */
  bool skip_unreadable; /* otherwise a read error of the disk is WAYBILL_IO */
  int32_t witness_kind;
  waybill_string witness_path; /* for WAYBILL_WITNESS_AT and _ANEW only */
  int32_t rules;
  int32_t gap;
  const waybill_policy* policy;                     /* NULL: NeverVerifyPreloadedImages */
  const waybill_images_on_node* images_on_node;     /* NULL: unknown; no items: see allow_empty */
  waybill_string kubelet_directory;                 /* empty: none */
  waybill_string pods_directory;                    /* empty: pods/ in the kubelet directory */
  const waybill_runtime_handlers* runtime_handlers; /* NULL: unchanged */
  const waybill_user_namespace_options* user_namespaces; /* NULL: on, the default pool */
  uint64_t map_bytes;  /* the store remembers it; 0: as remembered, 16 GiB for a new store */
  waybill_clock clock; /* NULL: the system's */
  void* clock_context;
  waybill_progress import_progress; /* NULL: none, as below */
  void* import_context;
  waybill_progress migration_progress;
  void* migration_context;
  const waybill_images_on_node* preloaded;  /* NULL: none; an entry without an ID names its image */
  const waybill_evidence_options* evidence; /* NULL: the defaults */
  bool continues_pulls; /* otherwise pulls that were left running have ended, how is unknown */
  bool leaves_witness;  /* the witness is read, and neither made nor written */
  waybill_boot_clock boot_clock; /* NULL: the system's */
  void* boot_clock_context;
  bool flushes_twice;             /* each commit flushes the disk twice, also where once is safe */
  const waybill_age_limits* ages; /* the store remembers them; NULL: as it remembers them */
  int32_t first_start;            /* WAYBILL_FIRST_START_… */
} waybill_open_options;
#define WAYBILL_OPEN_OPTIONS_INIT WAYBILL_INIT(waybill_open_options)

typedef struct waybill_observe_options {
  size_t struct_size;
  waybill_string directory;
  int32_t rules;
  const waybill_policy* policy;
  const waybill_user_namespace_options* user_namespaces;
  waybill_clock clock;
  void* clock_context;
  int32_t short_names;            /* for waybill_explain */
  const waybill_age_limits* ages; /* NULL: those of the owner */
} waybill_observe_options;
#define WAYBILL_OBSERVE_OPTIONS_INIT WAYBILL_INIT(waybill_observe_options)

typedef struct waybill_store waybill_store;

/* Opens as the only owner. WAYBILL_OWNED, WAYBILL_UNSAFE_PATH, WAYBILL_NEWER_SCHEMA,
 * WAYBILL_OLDER_SCHEMA, WAYBILL_INVALID_ARGUMENT, WAYBILL_NOT_FOUND: unchanged. WAYBILL_DISK_FULL,
 * WAYBILL_IO, WAYBILL_STORE_FULL, WAYBILL_CONFLICT, WAYBILL_OUTCOME_UNKNOWN, WAYBILL_INTERRUPTED,
 * WAYBILL_INVALID_ARGUMENT for an empty list (allow_empty): what was recovered and imported before
 * the error is kept; open again. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_open(const waybill_open_options* options,
                                                         waybill_store** store,
                                                         waybill_error** error);

/* Opens for reading, with or without a live owner. Recording functions return WAYBILL_NOT_OWNER.
 * WAYBILL_NOT_FOUND, WAYBILL_DAMAGED, WAYBILL_OWNED, WAYBILL_UNSAFE_PATH, WAYBILL_OLDER_SCHEMA,
 * WAYBILL_NEWER_SCHEMA, WAYBILL_IO: NodeStore::Observe. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_observe(const waybill_observe_options* options,
                                                            waybill_store** store,
                                                            waybill_error** error);

typedef struct waybill_serve_options {
  size_t struct_size;
  /* How long a client may take to send its request, and again to take its answer, in milliseconds:
   * 1 to 3,600,000. 0: 10 seconds. */
  uint32_t patience_ms;
  uint32_t connections; /* at the same time, 1 to 1,024. 0: 32 */
} waybill_serve_options;
#define WAYBILL_SERVE_OPTIONS_INIT WAYBILL_INIT(waybill_serve_options)

/* The owner answers other processes from now on, on threads of its own, through the socket
 * owner.sock in the store's directory: the command `waybill` and others that run as root or as this
 * user ask there for what only the owner may do. None of them can delay a decision or closing.
 * Until waybill_close, which waits for requests that run. `options` may be NULL.
 * WAYBILL_CONFLICT: this store serves already. WAYBILL_UNSAFE_PATH: what is named owner.sock is not
 * a socket of this user's, and is left alone. WAYBILL_INVALID_ARGUMENT, WAYBILL_LIMIT_EXCEEDED,
 * WAYBILL_NOT_OWNER, WAYBILL_OWNED, WAYBILL_OUTCOME_UNKNOWN, WAYBILL_DISK_FULL, WAYBILL_IO:
 * NodeStore::Serve. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_serve(waybill_store* store,
                                                          const waybill_serve_options* options,
                                                          waybill_error** error);

/* Waits for running calls, commits waiting write-backs, syncs the witness and releases the lock.
 * Afterwards decisions answer "pull" and all other calls, closing again included, are
 * WAYBILL_CLOSED. An error concerns the write-backs or the witness only (WAYBILL_DAMAGED: the
 * witness was removed or replaced; WAYBILL_IO, WAYBILL_DISK_FULL, WAYBILL_STORE_FULL,
 * WAYBILL_OUTCOME_UNKNOWN); the store is closed in any case. */
WAYBILL_API waybill_code waybill_close(waybill_store* store, waybill_error** error);

/* Closes the store if it is open, and frees the handle; no other call may use it then. NULL is
 * allowed. Called from a callback of this store, it does nothing. */
WAYBILL_API void waybill_store_free(waybill_store* store);

/* --- What opening did ---------------------------------------------------------------------------
 */

typedef struct waybill_migration_step {
  uint32_t from;
  uint32_t to;
  waybill_string name;
  uint64_t values_written;
} waybill_migration_step;

/* MigrationReport */
typedef struct waybill_migration_report {
  uint32_t from;
  uint32_t to;
  const waybill_migration_step* steps;
  size_t step_count;
  waybill_string backup;
  waybill_strings losses;
} waybill_migration_report;

/* RuntimesReport */
typedef struct waybill_runtimes_report {
  waybill_strings added;
  waybill_strings vanished;
  waybill_strings changed;
  uint64_t records_to_verify;
  bool turned_on;
  uint64_t records_collapsed;
  uint64_t intents_collapsed;
} waybill_runtimes_report;

/* ImportReport */
typedef struct waybill_import_report {
  uint64_t files_seen;
  uint64_t unchanged;
  uint64_t records;
  uint64_t intents;
  uint64_t preloaded;
  uint64_t known_refs;
  uint64_t quarantined;
  uint64_t skipped;
  bool interrupted;
  waybill_string newly_written;
  waybill_strings problems;
} waybill_import_report;

/* UserNamespaceReport */
typedef struct waybill_user_namespace_report {
  uint64_t files_seen;
  uint64_t unchanged;
  uint64_t imported;
  uint64_t held;
  uint64_t repaired_blocks;
  waybill_strings problems;
  uint64_t allocations;
  uint64_t held_pods;
  uint64_t outside_pool;
  uint64_t other_length;
  waybill_strings off_pool;
  waybill_string refused_because;
} waybill_user_namespace_report;

/* What became of an image that was judged. */
typedef struct waybill_judged_image {
  waybill_string image_ref;
  waybill_string runtime_handler;
  waybill_string name; /* its first name, or its ref */
  bool preloaded;      /* it is in the ledger now; otherwise it is closed */
  waybill_string because;
} waybill_judged_image;

/* ObserveReport */
typedef struct waybill_observe_report {
  uint64_t listed;
  uint64_t repeated;
  uint64_t not_names;
  uint64_t known;
  uint64_t preloaded;
  uint64_t closed;
  uint64_t left;
  uint64_t united;
  uint64_t pulls_settled;
  uint64_t records_removed;
  uint64_t preloaded_removed;
  const waybill_judged_image* judged;
  size_t judged_count;
  waybill_strings shared_digests;
  waybill_string not_judged_because; /* empty: images were judged */
} waybill_observe_report;

/* RecoveryReport in waybill/report.h describes the members. The parts are pointers, so that each
 * can grow. */
typedef struct waybill_recovery_report {
  bool created;
  bool set_aside;
  waybill_string set_aside_path;
  waybill_strings removed_paths; /* set aside earlier, now deleted */
  uint64_t records_carried;
  uint64_t records_without_credentials;
  uint64_t intents_carried;
  bool witness_made;     /* the witness was missing, and a new one was made */
  bool witness_in_store; /* it lies in the store's directory and would be lost with it */
  waybill_strings findings;
  waybill_strings mended;   /* modes that were too loose and are now strict */
  waybill_strings warnings; /* what changes no answer, but should be known */
  bool distrustful;
  waybill_string distrust_reason;
  const waybill_migration_report* migration; /* NULL: the store had the newest schema */
  const waybill_runtimes_report* runtimes;   /* NULL: no list of handlers was given */
  const waybill_import_report* import;
  const waybill_user_namespace_report* user_namespaces;
  bool after_gap;
  waybill_string gap_reason;
  uint64_t gap_closed;
  waybill_strings gap_images;
  uint64_t intents_found;
  uint64_t intents_replayed;
  uint64_t intents_left;
  waybill_strings replayed;
  bool replay_skipped;
  uint64_t readers_cleared;
  uint64_t records;
  uint64_t quarantine_entries;
  uint64_t commit_sequence;
  waybill_string clock_was_ahead; /* closed rules only; empty: the clock was right */
  uint64_t times_mended;
  const waybill_observe_report* observed; /* NULL: no list of images was judged */
  bool first_start;                       /* it was judged as that of a first start */
  bool commit_undone; /* a crash had cut the last commit short, of which nobody was told */
} waybill_recovery_report;

/* Works on a closed store, too. Empty for an observer. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_get_recovery_report(
    waybill_store* store, waybill_recovery_report** report, waybill_error** error);

/* --- Decisions ----------------------------------------------------------------------------------
 */

/* A pod's credentials. The secrets are those of its imagePullSecrets that match the image. */
typedef struct waybill_pod_credentials {
  const waybill_image_pull_secret* secrets;
  size_t secret_count;
  const waybill_image_pull_service_account* service_account; /* NULL: none */
} waybill_pod_credentials;

/* Gets a pod's credentials for a decision that depends on them. Called at most once, on the
 * deciding thread, with no lock held and no snapshot open. *credentials must stay valid until the
 * decision returns. false: the credentials are unavailable, and the answer is "pull". */
typedef bool (*waybill_fetch_credentials)(void* context, waybill_pod_credentials* credentials);

/* The label `result` of kubelet_imagemanager_image_mustpull_checks_total. */
enum {
  WAYBILL_CHECK_NOT_COUNTED = 0,
  WAYBILL_CHECK_CREDENTIAL_POLICY_ALLOWED = 1,
  WAYBILL_CHECK_CREDENTIAL_RECORD_FOUND = 2,
  WAYBILL_CHECK_MUST_AUTHENTICATE = 3,
  WAYBILL_CHECK_ERROR = 4
};
WAYBILL_API waybill_string waybill_check_result_name(int32_t result);

/* Reason in waybill/decision.h. */
enum {
  WAYBILL_REASON_IMAGE_ABSENT = 0,
  WAYBILL_REASON_POLICY_NEVER_VERIFIES = 1,
  WAYBILL_REASON_POLICY_PRESUMED_PRELOADED = 2,
  WAYBILL_REASON_POLICY_ALLOWLISTED = 3,
  WAYBILL_REASON_NODE_PODS_ACCESSIBLE = 4,
  WAYBILL_REASON_SECRET_HASH_MATCHES = 5,
  WAYBILL_REASON_SECRET_COORDINATES_MATCH = 6,
  WAYBILL_REASON_SERVICE_ACCOUNT_MATCHES = 7,
  WAYBILL_REASON_NO_RECORD = 8,
  WAYBILL_REASON_PULL_IN_FLIGHT = 9,
  WAYBILL_REASON_STORE_DISTRUSTFUL = 10,
  WAYBILL_REASON_PULLED_FOR_OTHER_HANDLER = 11,
  WAYBILL_REASON_NO_ENTRY_FOR_IMAGE_NAME = 12,
  WAYBILL_REASON_ENTRY_WITHOUT_CREDENTIALS = 13,
  WAYBILL_REASON_NO_CREDENTIAL_MATCHES = 14,
  WAYBILL_REASON_IMAGE_DOES_NOT_PARSE = 15,
  WAYBILL_REASON_ARGUMENT_TOO_LONG = 16,
  WAYBILL_REASON_RUNTIME_HANDLER_UNKNOWN = 17,
  WAYBILL_REASON_RECORD_DAMAGED = 18,
  WAYBILL_REASON_QUARANTINED = 19,
  WAYBILL_REASON_CREDENTIALS_UNAVAILABLE = 20,
  WAYBILL_REASON_STORE_UNAVAILABLE = 21,
  WAYBILL_REASON_CREDENTIALS_NEEDED = 22,
  WAYBILL_REASON_POLICY_KNOWN_PRELOADED = 23,
  WAYBILL_REASON_NO_EVIDENCE = 24,
  /* A credential matches, but was proven too long ago (waybill_age_limits). */
  WAYBILL_REASON_PROOF_TOO_OLD = 25
};
WAYBILL_API waybill_string waybill_reason_name(int32_t reason); /* "secretHashMatches" */
WAYBILL_API waybill_string waybill_reason_text(int32_t reason); /* one sentence, no full stop */

typedef struct waybill_decision {
  bool pull;
  bool credentials_read; /* whether the decision used them */
  uint8_t result;        /* WAYBILL_CHECK_… */
  uint8_t reason;        /* WAYBILL_REASON_… */
} waybill_decision;

/* KEP-2535, MustAttemptImagePull: NodeStore::MustAttemptPull. Never fails: any error, in the
 * arguments too, is "pull". Needs all of `copy`.
 * `credentials` NULL: they are unavailable; if the answer depends on them, it is "pull",
 * WAYBILL_REASON_CREDENTIALS_UNAVAILABLE. (A pod without credentials passes an empty struct, not
 * NULL.) */
WAYBILL_API WAYBILL_MUST_CHECK waybill_decision waybill_must_attempt_pull(
    waybill_store* store, waybill_image_copy copy, const waybill_pod_credentials* credentials);
/* The same, with credentials that are fetched if need be. `fetch` NULL: as if it failed. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_decision waybill_must_attempt_pull_lazily(
    waybill_store* store, waybill_image_copy copy, waybill_fetch_credentials fetch, void* context);

/* What the first of two calls saw, for the second call. Opaque. */
typedef struct waybill_first_look waybill_first_look;

/* The same in two calls, for callers that can't be called back. If the answer depends on
 * credentials, the first call answers "pull", WAYBILL_REASON_CREDENTIALS_NEEDED, which no metric
 * counts, and sets *first_look (waybill_free): get the credentials, and make the second call with
 * the same store and arguments. Otherwise the first answer is final, and *first_look is NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_decision waybill_must_attempt_pull_first(
    waybill_store* store, waybill_image_copy copy, waybill_first_look** first_look);
/* `credentials` NULL: they are unavailable; make the call all the same, so that it is counted.
 * Compares them with the record as the first call saw it: a record that was removed meanwhile does
 * not pass for one that never existed. For another image than the first call's, or a `first_look`
 * of NULL, the answer is "pull". `first_look` stays the caller's. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_decision waybill_must_attempt_pull_second(
    waybill_store* store, waybill_image_copy copy, waybill_first_look* first_look,
    const waybill_pod_credentials* credentials);

/* A container's imagePullPolicy. */
enum { WAYBILL_PULL_ALWAYS = 0, WAYBILL_PULL_IF_NOT_PRESENT = 1, WAYBILL_PULL_NEVER = 2 };
WAYBILL_API waybill_string waybill_pull_policy_name(int32_t policy); /* "IfNotPresent" */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_parse_pull_policy(waybill_string name,
                                                                      int32_t* policy,
                                                                      waybill_error** error);

/* EnsureAction */
enum {
  WAYBILL_ENSURE_PULL = 0,
  WAYBILL_ENSURE_USE_PRESENT = 1,
  WAYBILL_ENSURE_INVALID_IMAGE_NAME = 2,
  WAYBILL_ENSURE_NEVER_PULL = 3,
  WAYBILL_ENSURE_CREDENTIALS_ERROR = 4
};
WAYBILL_API waybill_string waybill_ensure_action_name(int32_t action); /* "ErrImageNeverPull" */

typedef struct waybill_ensure_outcome {
  int32_t action;
  bool decided; /* whether a decision was needed, and `decision` is set */
  waybill_decision decision;
  waybill_string message; /* what the pod may see */
} waybill_ensure_outcome;

/* The kubelet's outer question: NodeStore::EnsureImage. If the call fails (a code other than
 * WAYBILL_OK), do not start the container. `credentials`, `fetch` and `first_look` as above; an
 * outcome with the reason WAYBILL_REASON_CREDENTIALS_NEEDED is not final, and not counted.
 * WAYBILL_INVALID_ARGUMENT also for a `first_look` of NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_ensure_image(waybill_store* store, waybill_image_copy copy, int32_t pull_policy,
                     const waybill_pod_credentials* credentials, waybill_ensure_outcome** outcome,
                     waybill_error** error);
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_ensure_image_lazily(waybill_store* store, waybill_image_copy copy, int32_t pull_policy,
                            waybill_fetch_credentials fetch, void* context,
                            waybill_ensure_outcome** outcome, waybill_error** error);

WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_ensure_image_first(
    waybill_store* store, waybill_image_copy copy, int32_t pull_policy,
    waybill_first_look** first_look, waybill_ensure_outcome** outcome, waybill_error** error);
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_ensure_image_second(
    waybill_store* store, waybill_image_copy copy, int32_t pull_policy,
    waybill_first_look* first_look, const waybill_pod_credentials* credentials,
    waybill_ensure_outcome** outcome, waybill_error** error);

/* Waits until every write-back queued so far is on disk. WAYBILL_IO, WAYBILL_DISK_FULL,
 * WAYBILL_STORE_FULL, WAYBILL_OUTCOME_UNKNOWN. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_flush(waybill_store* store,
                                                          waybill_error** error);

/* --- Recording a pull (owner) -------------------------------------------------------------------
 * Each call is one transaction, on disk when it returns. WAYBILL_INVALID_ARGUMENT,
 * WAYBILL_LIMIT_EXCEEDED, WAYBILL_CONFLICT, WAYBILL_NOT_OWNER, WAYBILL_OWNED, WAYBILL_STORE_FULL,
 * WAYBILL_DISK_FULL, WAYBILL_IO: the store is as before. WAYBILL_OUTCOME_UNKNOWN: the commit may or
 * may not have happened; decisions answer "pull" until the store is closed and opened again. */

/* Before each pull; matched by exactly one of the two below. Ignores copy.image_ref. *pull (may be
 * NULL): by which a later process can end it, too. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_record_pull_intent(waybill_store* store,
                                                                       waybill_image_copy copy,
                                                                       waybill_pull_id* pull,
                                                                       waybill_error** error);

/* PullResult: what the runtime says of a pull that succeeded. */
typedef struct waybill_pull_result {
  size_t struct_size;
  waybill_pull_id pull;                    /* 0: the newest of this string */
  const waybill_pulled_manifest* manifest; /* NULL: not known */
  const waybill_image_on_node* image;      /* the runtime's entry; NULL: not known */
} waybill_pull_result;
#define WAYBILL_PULL_RESULT_INIT WAYBILL_INIT(waybill_pull_result)

/* The pull succeeded, and copy.image_ref is what the runtime returned for it. `credentials` NULL:
 * they are not known. `result` NULL: nothing more is known. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_record_image_pulled(waybill_store* store, waybill_image_copy copy,
                            const waybill_image_pull_credentials* credentials,
                            const waybill_pull_result* result, waybill_error** error);

/* PullFailure in waybill/options.h. NOTHING_TRANSFERRED: the runtime reported an error, was asked
 * afterwards, and said that the image is not there. */
enum {
  WAYBILL_PULL_FAILED = 0,
  WAYBILL_PULL_OUTCOME_UNKNOWN = 1,
  WAYBILL_PULL_NOTHING_TRANSFERRED = 2
};
/* The pull did not succeed. Ignores copy.image_ref. `pull` 0: the newest of this string. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_record_image_pull_failed(waybill_store* store, waybill_image_copy copy, int32_t failure,
                                 waybill_pull_id pull, waybill_error** error);

/* Options of changes: ChangeOptions in waybill/options.h. NULL stands for the defaults. */
typedef struct waybill_change_options {
  size_t struct_size;
  bool allow_empty; /* accept an empty list; otherwise it is WAYBILL_INVALID_ARGUMENT if it would
                       delete something */
  bool dry_run;     /* make the change, report it, and undo it */
} waybill_change_options;
#define WAYBILL_CHANGE_OPTIONS_INIT WAYBILL_INIT(waybill_change_options)

/* --- Evidence (owner) ---------------------------------------------------------------------------
 * Why an image is open under WAYBILL_RULES_CLOSED: "Evidence" in waybill/node_store.h. Errors as in
 * "Recording a pull"; of those that read, as in "Whole records". */

/* Places a list of images or pods in time. */
typedef struct waybill_list_token {
  uint64_t commit; /* the commit sequence then */
  waybill_boot_time drawn;
  uint64_t store; /* which store drew it: another one refuses it */
} waybill_list_token;

/* Draw *token before you list the images or pods. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_begin_list(waybill_store* store,
                                                               waybill_list_token* token,
                                                               waybill_error** error);

typedef struct waybill_image_list {
  size_t struct_size;
  waybill_images_on_node images;
  const waybill_list_token* token; /* NULL: the list can't be placed in time */
  bool complete;                   /* everything that the runtime has, unfiltered */
  waybill_string source;           /* who made the list; empty: the runtime */
  /* IDs of listed images of which the runtime shows that no pull brought them. Never a guess: such
   * an image is open to all pods. Not of a list with a source. */
  waybill_strings imported;
  /* Pulls that ended at this moment or before can bring nothing any more that is not on the list,
   * as the runtime showed before it made the list. NULL: it was not asked. */
  const waybill_boot_time* quiet_until;
  /* Names that the runtime has and that the list does not show yet: a pull that could have given
   * one of them still counts. */
  waybill_strings names_to_come;
} waybill_image_list;
#define WAYBILL_IMAGE_LIST_INIT WAYBILL_INIT(waybill_image_list)

/* Judges the images of a list that have neither record nor ledger entry, settles open pulls,
 * removes what is not listed: NodeStore::ObserveImages. Under WAYBILL_RULES_KUBELET it does
 * nothing, and the report says so. `report` may be NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_observe_images(
    waybill_store* store, const waybill_image_list* list, const waybill_change_options* options,
    waybill_observe_report** report, waybill_error** error);

/* The oldest first. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_open_pulls(waybill_store* store,
                                                                    waybill_open_pulls** pulls,
                                                                    waybill_error** error);
/* An operator's word that this pull brought nothing, and will bring nothing. `reason` (1 to 1024
 * bytes) goes into the journal of trust. WAYBILL_NOT_FOUND: there is no such pull.
 * WAYBILL_CONFLICT: it runs in this process. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_drop_open_pull(waybill_store* store, waybill_pull_id pull, waybill_string reason,
                       const waybill_change_options* options, waybill_error** error);

/* Sorted by image ref and handler. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_ledger(waybill_store* store,
                                                                waybill_ledger_entries** entries,
                                                                waybill_error** error);
/* An operator's word that this image is preloaded. image->id is any spelling of it. `source` and
 * `reason`: 1 to 1024 bytes. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_add_to_ledger(
    waybill_store* store, const waybill_image_on_node* image, waybill_string source,
    waybill_string reason, const waybill_change_options* options, waybill_error** error);
/* An operator's word that it is not: an image without a record gets one without credentials.
 * Ignores copy.image. *removed (may be NULL): whether there was an entry. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_remove_from_ledger(
    waybill_store* store, waybill_image_copy copy, waybill_string reason,
    const waybill_change_options* options, bool* removed, waybill_error** error);

/* What an operator says of a presumed image. */
enum {
  WAYBILL_SETTLED_PRELOADED = 0, /* it is known from now on, source "operator" */
  WAYBILL_SETTLED_CLOSED = 1     /* it leaves the ledger, and is closed if it has no record */
};
/* An operator's word on an image whose ledger entry has the source WAYBILL_PRESUMED_SOURCE;
 * otherwise nothing is changed. `reason`: 1 to 1024 bytes. Ignores copy.image. *presumed (may be
 * NULL): whether it was presumed. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_settle_presumed(
    waybill_store* store, waybill_image_copy copy, int32_t settled, waybill_string reason,
    const waybill_change_options* options, bool* presumed, waybill_error** error);

/* What a record has under an image name: ExplainedCredential in waybill/evidence.h. Others may
 * come. */
enum {
  WAYBILL_EXPLAINED_NODE_PODS = 0, /* every pod of the node may use it */
  WAYBILL_EXPLAINED_SECRET = 1,
  WAYBILL_EXPLAINED_SERVICE_ACCOUNT = 2
};
/* CredentialStanding: whether it still counts. Others may come; only COUNTS opens anything. */
enum {
  WAYBILL_STANDING_COUNTS = 0,
  WAYBILL_STANDING_TOO_OLD = 1,  /* proven too long ago (waybill_age_limits) */
  WAYBILL_STANDING_FORGOTTEN = 2 /* revoked, and not taken out yet */
};
WAYBILL_API waybill_string waybill_credential_standing_name(int32_t standing); /* "tooOld" */

/* Never with the hash of a Secret. */
typedef struct waybill_explained_credential {
  waybill_string image_name;
  int32_t kind;                /* WAYBILL_EXPLAINED_… */
  waybill_credential_name who; /* empty for WAYBILL_EXPLAINED_NODE_PODS */
  waybill_proof proof;
  int32_t standing; /* WAYBILL_STANDING_… */
} waybill_explained_credential;

/* Explanation in waybill/evidence.h */
typedef struct waybill_explanation {
  const waybill_ledger_entry* ledger_entry; /* NULL: none */
  bool recorded;
  waybill_string closed_because;
  waybill_open_pulls pulls; /* could have brought an image of this name; newest first */
  bool in_quarantine;
  bool distrustful;
  waybill_string text; /* what of this closes the image, in one sentence; empty: nothing */
  waybill_string hint; /* what would open it */
  /* As it is stored, but with an empty mapping: `credentials` has what is in it. NULL: none. */
  const waybill_image_pulled_record* record;
  const waybill_explained_credential* credentials;
  size_t credential_count;
  waybill_strings image_names;           /* of the mapping, those without credentials, too */
  bool unreadable;                       /* the record, or a record of the same ref */
  waybill_strings spellings;             /* of the image, as the store knows them, sorted */
  waybill_strings other_handlers;        /* that have a record of it; "": the default */
  waybill_quarantine_entries quarantine; /* those that close it */
} waybill_explanation;

/* Why the image is open or closed for a pod without credentials. `names` are those that the runtime
 * lists it by; without any, copy.image is taken. Under WAYBILL_RULES_KUBELET there is no ledger.
 * WAYBILL_INVALID_ARGUMENT also: the ref is empty, or the handler is not in the registry. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_explain(waybill_store* store,
                                                            waybill_image_copy copy,
                                                            waybill_strings names,
                                                            waybill_explanation** explanation,
                                                            waybill_error** error);
/* What would have to change for the opposite of a decision with this reason, in one sentence
 * without a full stop: OtherAnswer. `hint` is that of the same image's explanation; empty: there is
 * none. WAYBILL_INVALID_ARGUMENT: no reason has this number. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_other_answer(int32_t reason,
                                                                 waybill_string hint,
                                                                 waybill_string** answer,
                                                                 waybill_error** error);

/* --- Revocation (owner) -------------------------------------------------------------------------
 * Credentials that are forgotten, and do not come back: "Revocation" in waybill/node_store.h. Each
 * call that forgets does so at once, for every decision that begins after it returned, and after a
 * crash. The records stay, so the images must be verified again. Pulls that begin later prove anew;
 * a pull that began before, a match that is written back, an import and a restored backup do not.
 * It is remembered also if nothing in the store has it. `options` with dry_run counts only;
 * allow_empty counts for waybill_reconcile only. `report` may be NULL. WAYBILL_INVALID_ARGUMENT: a
 * namespace, name, ref or hash is empty. Otherwise errors as in "Recording a pull". */

/* ForgetReport in waybill/revocation.h: what the call took out of records. */
typedef struct waybill_forget_report {
  uint64_t records; /* that lost something */
  uint64_t secrets; /* under an image name of a record each; likewise below */
  uint64_t service_accounts;
  uint64_t node_pods; /* image names that were open to all pods of the node */
  /* Secrets elsewhere with the hash of a forgotten one. They still open what they opened:
   * waybill_forget_credential refuses the credentials themselves. */
  uint64_t equal_hashes;
  bool stored;       /* false: a truth by which nothing was gone */
  uint64_t untidied; /* of `records`: what does not count any more is taken out later
                        (waybill_tidy_up) */
} waybill_forget_report;

/* A Secret, under every image name. Another Secret with the same credentials still opens what it
 * opened (equal_hashes). */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_forget_secret(
    waybill_store* store, waybill_credential_name who, const waybill_change_options* options,
    waybill_forget_report** report, waybill_error** error);
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_forget_service_account(
    waybill_store* store, waybill_credential_name who, const waybill_change_options* options,
    waybill_forget_report** report, waybill_error** error);
/* Every Secret and service account of the namespace. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_forget_namespace(
    waybill_store* store, waybill_string namespace_name, const waybill_change_options* options,
    waybill_forget_report** report, waybill_error** error);
/* Every credential of one handler's copy of the image, and that every pod may use it. Under
 * WAYBILL_RULES_CLOSED by any spelling. Ignores copy.image. Ledger entries stay
 * (waybill_remove_from_ledger). */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_forget_image(
    waybill_store* store, waybill_image_copy copy, const waybill_change_options* options,
    waybill_forget_report** report, waybill_error** error);
/* Every Secret with this hash (waybill_hash_credentials), whoever's it is. One that is rotated to
 * it later opens nothing by its coordinates either, until a pull proves the hash. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_forget_credential(
    waybill_store* store, waybill_string credential_hash, const waybill_change_options* options,
    waybill_forget_report** report, waybill_error** error);

/* The Secrets and service accounts that exist in the cluster, all of them; at most 1,000,000. A
 * part of them, such as those of one node's pods, is no truth: what it leaves out is forgotten. */
typedef struct waybill_existing_credentials {
  size_t struct_size;
  const waybill_credential_name* secrets;
  size_t secret_count;
  const waybill_credential_name* service_accounts;
  size_t service_account_count;
} waybill_existing_credentials;
#define WAYBILL_EXISTING_CREDENTIALS_INIT WAYBILL_INIT(waybill_existing_credentials)

/* ReconcileReport */
typedef struct waybill_reconcile_report {
  const waybill_forget_report* forgotten; /* never NULL */
  uint64_t known;                         /* Secrets and service accounts in records that exist */
  uint64_t gone;                          /* that do not */
  uint64_t newer; /* that do not, but were proven after the token: they stay */
} waybill_reconcile_report;

/* Forgets what is in records, is not in `truth`, and was proven by pulls that began before `token`
 * was drawn (waybill_begin_list); `truth` was listed after that. Of a pull that began before and
 * ends later no Secret or service account is recorded. WAYBILL_INVALID_ARGUMENT also: a token from
 * the future, of another store, or older than that of the last truth; an empty truth although
 * records mention credentials (allow_empty). WAYBILL_LIMIT_EXCEEDED: more than 1,000,000. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_reconcile(waybill_store* store, const waybill_existing_credentials* truth,
                  waybill_list_token token, const waybill_change_options* options,
                  waybill_reconcile_report** report, waybill_error** error);

/* Out of very many records what was forgotten is taken later, on a thread of the library. Waits
 * until that is done, for a process that ends. The error of a batch that failed: the rest is done
 * by the next call, or by the next owner; it does not count any more in any case. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_tidy_up(waybill_store* store,
                                                            waybill_error** error);

/* RevocationKind in waybill/revocation.h. Others may come. */
enum {
  WAYBILL_REVOKED_SECRET = 1,
  WAYBILL_REVOKED_SERVICE_ACCOUNT = 2,
  WAYBILL_REVOKED_NAMESPACE = 3,
  WAYBILL_REVOKED_IMAGE = 4,
  WAYBILL_REVOKED_CREDENTIAL = 5
};
WAYBILL_API waybill_string waybill_revocation_kind_name(int32_t kind); /* "serviceAccount" */

/* What was forgotten: what pulls proved that began in `commit` or before. */
typedef struct waybill_revocation {
  int32_t kind WAYBILL_EMPTY;                   /* WAYBILL_REVOKED_… */
  waybill_credential_name who WAYBILL_EMPTY;    /* of a namespace: its namespace_name */
  waybill_string image_ref WAYBILL_EMPTY;       /* this and the next: of an image */
  waybill_string runtime_handler WAYBILL_EMPTY; /* empty: the default one */
  waybill_string credential_hash WAYBILL_EMPTY; /* of a credential */
  uint64_t commit WAYBILL_EMPTY;
  waybill_timestamp since WAYBILL_EMPTY;
  bool untidied WAYBILL_EMPTY; /* records still have some, which do not count any more */
} waybill_revocation;

typedef struct waybill_revocations {
  const waybill_revocation* items;
  size_t count;
} waybill_revocations;

/* Those that are kept, unordered. Errors as of functions that read in "Whole records". */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_revocations(
    waybill_store* store, waybill_revocations** revocations, waybill_error** error);

/* --- Garbage collection (owner) ----------------------------------------------------------------
 * Errors as in "Recording a pull". */

/* PruneReport */
typedef struct waybill_prune_report {
  uint64_t examined;
  uint64_t removed;
  uint64_t kept_in_list;
  uint64_t kept_newer;
  uint64_t kept_without_credentials;
  uint64_t preloaded_removed;
} waybill_prune_report;

/* `images`: the complete list of images on the node, made after `token` was drawn
 * (waybill_begin_list). Judges nothing. `report` may be NULL, as in the next. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_prune(
    waybill_store* store, waybill_images_on_node images, waybill_list_token token,
    const waybill_change_options* options, waybill_prune_report** report, waybill_error** error);
/* The kubelet's form, by clocks. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_prune_before(
    waybill_store* store, waybill_images_on_node images, waybill_timestamp until,
    const waybill_change_options* options, waybill_prune_report** report, waybill_error** error);

/* --- Whole records ------------------------------------------------------------------------------
 * Functions that read: WAYBILL_DAMAGED: what is stored can't be read or may have been lost.
 * WAYBILL_UNAVAILABLE: nothing can be read at this moment. WAYBILL_OUTCOME_UNKNOWN, WAYBILL_OWNED:
 * as of functions that write, from the call that found it on. WAYBILL_INVALID_ARGUMENT,
 * WAYBILL_LIMIT_EXCEEDED. Functions that write: as in "Recording a pull"; they do not change the
 * counts of pulls in flight. Functions about a record ignore copy.image, those about an intent
 * copy.image_ref. WAYBILL_INVALID_ARGUMENT: the one that is needed is empty, and the other is not.
 */

/* The record as it counts, here and in the lists: without credentials past their age, and without
 * what is forgotten. WAYBILL_NOT_FOUND: the record certainly does not exist. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_get_record(waybill_store* store,
                                                               waybill_image_copy copy,
                                                               waybill_image_pulled_record** record,
                                                               waybill_error** error);
/* Unordered. If one record is unreadable, the call fails. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_records(
    waybill_store* store, waybill_image_pulled_records** records, waybill_error** error);

/* The proofs of one waybill_credential_mapping. */
typedef struct waybill_credential_proofs {
  waybill_proof node_pods;               /* of node_pods_accessible */
  const waybill_proof* secrets;          /* one for each, in the same order */
  const waybill_proof* service_accounts; /* likewise */
} waybill_credential_proofs;

typedef struct waybill_proven_record {
  waybill_image_pulled_record record;
  const waybill_credential_proofs* proofs; /* one for each of record.credential_mapping */
} waybill_proven_record;

typedef struct waybill_proven_records {
  const waybill_proven_record* items;
  size_t count;
} waybill_proven_records;

/* waybill_get_record and waybill_list_records, with the proofs. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_get_proven_record(waybill_store* store, waybill_image_copy copy,
                          waybill_proven_record** record, waybill_error** error);
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_proven_records(
    waybill_store* store, waybill_proven_records** records, waybill_error** error);

/* What counts in the stored record keeps its proof. What is new is proven by the running pull of
 * the image name, or else by none; what is forgotten is left out (NodeStore::PutRecord). Two
 * entries of one image name are WAYBILL_INVALID_ARGUMENT. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_put_record(
    waybill_store* store, const waybill_image_pulled_record* record, waybill_error** error);
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_delete_record(waybill_store* store,
                                                                  waybill_image_copy copy,
                                                                  waybill_error** error);

WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_has_intent(waybill_store* store,
                                                               waybill_image_copy copy,
                                                               bool* exists, waybill_error** error);
/* Sorted by image string, then by handler. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_intents(
    waybill_store* store, waybill_image_pull_intents** intents, waybill_error** error);
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_put_intent(waybill_store* store,
                                                               waybill_image_copy copy,
                                                               waybill_error** error);
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_delete_intent(waybill_store* store,
                                                                  waybill_image_copy copy,
                                                                  waybill_error** error);

WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_quarantine(
    waybill_store* store, waybill_quarantine_entries** entries, waybill_error** error);
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_preloaded(
    waybill_store* store, waybill_image_preloaded_records** records, waybill_error** error);

/* --- Runtime handlers (KEP-4216) ----------------------------------------------------------------
 * Errors as in "Whole records". */

/* CollapseReport */
typedef struct waybill_collapse_report {
  uint64_t records;
  uint64_t intents;
  uint64_t records_to_verify;
  waybill_strings handlers;
} waybill_collapse_report;

/* Sorted by name. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_runtime_handlers(
    waybill_store* store, waybill_runtime_handlers** handlers, waybill_error** error);
/* Replaces the registry as a whole. `report` may be NULL, as in the next. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_replace_runtime_handlers(
    waybill_store* store, const waybill_runtime_handlers* handlers,
    const waybill_change_options* options, waybill_runtimes_report** report, waybill_error** error);
/* Turns runtime classes off. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_collapse_runtime_handlers(waybill_store* store, const waybill_change_options* options,
                                  waybill_collapse_report** report, waybill_error** error);

/* --- User namespaces (KEP-127) ------------------------------------------------------------------
 * Errors as in "Whole records"; WAYBILL_INVALID_ARGUMENT for a UID that can't be a pod's. */

/* The user namespace for the pod's sandbox and mounts. WAYBILL_CONFLICT, WAYBILL_INVALID_ARGUMENT,
 * WAYBILL_LIMIT_EXCEEDED in the order of NodeStore::GetOrCreateUserNamespace; WAYBILL_NOT_OWNER:
 * the store is an observer's, and the pod has no mapping. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_get_or_create_user_namespace(
    waybill_store* store, const waybill_user_namespace_request* request,
    waybill_user_namespace* user_namespace, waybill_error** error);

/* WAYBILL_NOT_FOUND: the pod certainly has no mapping. WAYBILL_CONFLICT: the pod is held. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_get_user_namespace(waybill_store* store, waybill_string pod_uid,
                           waybill_user_namespace_allocation** allocation, waybill_error** error);
/* The pod is gone. *released (may be NULL): whether it had a mapping or was held. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_release_user_namespace(
    waybill_store* store, waybill_string pod_uid, const waybill_change_options* options,
    bool* released, waybill_error** error);
/* Sorted by host ID. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_user_namespaces(
    waybill_store* store, waybill_user_namespace_allocations** allocations, waybill_error** error);
/* Sorted by pod UID. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_held_pods(waybill_store* store,
                                                                   waybill_held_pods** pods,
                                                                   waybill_error** error);

/* UserNamespaceCleanupReport */
typedef struct waybill_user_namespace_cleanup_report {
  uint64_t examined;
  uint64_t released;
  uint64_t kept_in_lists;
  uint64_t kept_newer;
  waybill_strings released_pods;
} waybill_user_namespace_cleanup_report;

/* Releases the mappings of pods in neither list. `existing` are the pods that the node should run,
 * `running` those that the runtime runs. Both are complete lists of UIDs, made in this order after
 * `token` was drawn. `report` may be NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_clean_up_user_namespaces(
    waybill_store* store, waybill_strings existing, waybill_strings running,
    waybill_list_token token, const waybill_change_options* options,
    waybill_user_namespace_cleanup_report** report, waybill_error** error);

/* An operator confirms that the pod lives with this range. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_adopt_user_namespace(waybill_store* store,
                                                                         waybill_string pod_uid,
                                                                         uint64_t host_id,
                                                                         uint64_t length,
                                                                         waybill_error** error);
/* An operator confirms that every live pod in a user namespace is listed. *released (may be NULL):
 * whether lost ranges blocked new ones. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_release_lost_user_namespaces(waybill_store* store, const waybill_change_options* options,
                                     bool* released, waybill_error** error);

/* UserNamespaceStatistics */
typedef struct waybill_user_namespace_statistics {
  bool enabled;
  waybill_user_namespace_pool pool;
  uint64_t ranges;
  uint64_t used;
  uint64_t free;
  uint64_t largest_free_run;
  uint64_t allocations;
  uint64_t outside_pool;
  uint64_t other_length;
  uint64_t held_pods;
  waybill_string refused_because;
} waybill_user_namespace_statistics;

WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_get_user_namespace_statistics(
    waybill_store* store, waybill_user_namespace_statistics** statistics, waybill_error** error);

/* --- State --------------------------------------------------------------------------------------
 */

/* Statistics in waybill/report.h */
typedef struct waybill_statistics {
  waybill_string store_uuid;
  uint32_t schema_version;
  uint64_t commit_sequence;
  uint64_t records;
  uint64_t nondefault_handler_records;
  uint64_t runtime_handlers;
  uint64_t intents;
  uint64_t quarantine_entries;
  uint64_t preloaded_records;
  uint64_t imported_files;
  uint64_t ledger_entries;
  uint64_t spellings; /* under which images are known */
  uint64_t id_mappings;
  uint64_t held_pods;
  bool distrustful;
  uint64_t map_bytes;
  uint64_t used_bytes;
  uint32_t readers;
  uint32_t max_readers;
  uint64_t revocations; /* that are kept */
} waybill_statistics;

/* WAYBILL_DAMAGED, WAYBILL_UNAVAILABLE: as in "Whole records". */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_get_statistics(waybill_store* store,
                                                                   waybill_statistics** statistics,
                                                                   waybill_error** error);

/* StoreCounters in waybill/metrics.h: what owners count over the life of a store. */
typedef struct waybill_store_counters {
  uint64_t decisions[32];                  /* by WAYBILL_REASON_…, those that are counted */
  uint64_t mustpull_checks[5];             /* by WAYBILL_CHECK_… */
  uint64_t ensure_image_requests[3][3][3]; /* as in waybill_metrics */
  uint64_t commit_failures;
  uint64_t write_back_failures;
  uint64_t write_backs_dropped; /* not written back, since too many waited */
  uint64_t id_range_failures;   /* requests for a pod in a user namespace that got no mapping */
  double reverification_ratio;  /* 0 to 1 (KEP-2535); -1: there was no request */
} waybill_store_counters;

/* OpeningSummary in waybill/metrics.h */
typedef struct waybill_opening_summary {
  waybill_timestamp at;
  uint64_t damage;
  uint64_t warnings;
  uint64_t modes_mended;
  uint64_t import_problems;
  uint64_t id_range_problems;
  uint64_t gap_closed;
  bool created;
  bool rebuilt;
  bool commit_undone;
  bool witness_made;
  bool clock_was_ahead;
  bool after_gap;
} waybill_opening_summary;

typedef struct waybill_handler_records {
  waybill_string runtime_handler; /* empty: the default handler */
  uint64_t records;
} waybill_handler_records;

/* Metrics in waybill/metrics.h */
typedef struct waybill_metrics {
  /* Counts since the store was opened. */
  uint64_t mustpull_checks[5];             /* by WAYBILL_CHECK_… */
  uint64_t ensure_image_requests[3][3][3]; /* by WAYBILL_PULL_…, present_locally, pull_required:
                                              0 false, 1 true, 2 unknown */
  uint64_t ondisk_pullintents;
  uint64_t ondisk_pulledrecords;
  double inmemory_pullintents_usage_percent;
  double inmemory_pulledrecords_usage_percent;
  uint64_t nondefault_runtime_handler_images;
  uint64_t preloaded_images; /* in the ledger */
  uint64_t open_pulls;       /* closed rules only */
  bool live_owner;           /* false: an observer's */
  bool readable;             /* false: the gauges could not all be read */
  bool distrustful;
  bool user_namespaces;   /* false: they are off, and there are no ranges */
  bool id_ranges_refused; /* none is handed out: the range of a held pod is not known */
  uint32_t schema_version;
  uint64_t commit_sequence;
  const waybill_handler_records* records_by_handler; /* the default handler first, then by name */
  size_t records_by_handler_count;
  uint64_t closed_images; /* on record, and closed since nobody knows where they came from */
  uint64_t quarantine_entries;
  uint64_t distrust_reasons[16];   /* in force, by WAYBILL_TRUST_…; [0]: of unknown kinds */
  uint64_t open_pulls_by_state[4]; /* by WAYBILL_OPEN_PULL_…; [0]: of anything */
  uint64_t id_mappings;
  uint64_t held_pods;
  uint64_t id_ranges_free; /* of the pool, in ranges */
  uint64_t id_ranges_used;
  uint64_t map_bytes;
  uint64_t used_bytes;
  uint32_t readers;
  uint32_t max_readers;
  const waybill_timestamp* oldest_credential; /* proven then; NULL: none whose time is known */
  uint64_t undated_credentials;               /* when they were proven is not known */
  uint64_t revocations;
  const waybill_store_counters* counters;      /* NULL: an observer, and no owner left any */
  const waybill_opening_summary* last_opening; /* NULL: likewise */
  uint64_t presumed_images; /* of preloaded_images, presumed to be since a first start */
} waybill_metrics;

WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_get_metrics(waybill_store* store,
                                                                waybill_metrics** metrics,
                                                                waybill_error** error);
/* Prometheus text exposition format, version 0.0.4: the metrics of waybill; from an owner also
 * those under the kubelet's names. waybill/metrics.h says what is left out when. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_metrics_text(waybill_store* store,
                                                                 waybill_string** text,
                                                                 waybill_error** error);

/* VerifyReport */
typedef struct waybill_verify_report {
  bool sound;
  uint64_t pages;
  uint64_t values;
  waybill_strings findings;
} waybill_verify_report;

/* Reads everything. Damage is not an error; the report lists it. WAYBILL_NOT_FOUND, WAYBILL_IO. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_verify(waybill_store* store,
                                                           waybill_verify_report** report,
                                                           waybill_error** error);

/* TrustKind in waybill/report.h. Others may come: each is a reason like any other. */
enum {
  WAYBILL_TRUST_OTHER = 1,
  WAYBILL_TRUST_OPERATOR = 2,
  WAYBILL_TRUST_STORE_LOST = 3,
  WAYBILL_TRUST_STORE_STALE = 4,
  WAYBILL_TRUST_STORE_REBUILT = 5,
  WAYBILL_TRUST_STORE_RESTORED = 6,
  WAYBILL_TRUST_IMPORT_UNFINISHED = 7,
  WAYBILL_TRUST_GAP = 8,
  WAYBILL_TRUST_JOURNAL_FULL = 9
};
/* TrustAction: a reason for distrust; the end of all reasons; the end of the one reason of the same
 * kind and words; an operator's word on a single image or pull. */
enum {
  WAYBILL_TRUST_DISTRUST = 1,
  WAYBILL_TRUST_TRUST = 2,
  WAYBILL_TRUST_TAKEN_BACK = 3,
  WAYBILL_TRUST_NOTE = 4
};

typedef struct waybill_trust_event {
  waybill_timestamp at;
  int32_t kind;     /* WAYBILL_TRUST_OTHER … */
  int32_t action;   /* WAYBILL_TRUST_DISTRUST … */
  bool distrustful; /* the state from then on */
  waybill_string reason;
} waybill_trust_event;

typedef struct waybill_trust_state {
  bool distrustful;
  const waybill_trust_event* journal; /* oldest first */
  size_t journal_count;
} waybill_trust_state;

/* WAYBILL_DAMAGED, WAYBILL_UNAVAILABLE: as in "Whole records". */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_get_trust(waybill_store* store,
                                                              waybill_trust_state** trust,
                                                              waybill_error** error);
/* ClearOptions in waybill/options.h. NULL stands for the defaults. */
typedef struct waybill_clear_options {
  size_t struct_size;
  const waybill_images_on_node* images_on_node; /* NULL: the next list does that */
  bool adopt; /* enter images without record in the ledger, instead of closing them */
  bool allow_empty;
  bool dry_run;
} waybill_clear_options;
#define WAYBILL_CLEAR_OPTIONS_INIT WAYBILL_INIT(waybill_clear_options)

/* An operator clears distrust; `reason` (1 to 1024 bytes) is kept. `report` may be NULL. Errors as
 * in "Recording a pull". */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_clear_distrust(
    waybill_store* store, waybill_string reason, const waybill_clear_options* options,
    waybill_observe_report** report, waybill_error** error);

/* --- Going back, and whole stores (waybill/maintenance.h) ---------------------------------------
 */

typedef struct waybill_export_options {
  size_t struct_size;
  waybill_string kubelet_directory;
  int32_t api_version;                          /* WAYBILL_KUBELET_… */
  bool allow_empty;                             /* accept an empty images_on_node */
  const waybill_images_on_node* images_on_node; /* NULL: unknown */
} waybill_export_options;
#define WAYBILL_EXPORT_OPTIONS_INIT WAYBILL_INIT(waybill_export_options)

/* ExportReport */
typedef struct waybill_export_report {
  uint64_t records;
  uint64_t intents;
  uint64_t preloaded;
  uint64_t closed;
  uint64_t made;
  uint64_t spellings;
  uint64_t without_credentials;
  uint64_t id_mappings;
  waybill_string replaced_path;
  waybill_strings removed_paths;
} waybill_export_report;

/* Writes the kubelet's own files. WAYBILL_CONFLICT, WAYBILL_INVALID_ARGUMENT, WAYBILL_DAMAGED,
 * WAYBILL_OWNED, WAYBILL_NOT_FOUND, WAYBILL_UNSAFE_PATH, WAYBILL_DISK_FULL, WAYBILL_IO:
 * NodeStore::Export. `report` may be NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_export(waybill_store* store,
                                                           const waybill_export_options* options,
                                                           waybill_export_report** report,
                                                           waybill_error** error);

typedef struct waybill_migrate_options {
  size_t struct_size;
  waybill_string directory;
  uint32_t to; /* 0: the newest */
  bool dry_run;
  bool accept_loss;
  uint64_t map_bytes; /* 0: as the store remembers it */
  waybill_clock clock;
  void* clock_context;
  waybill_progress progress;
  void* progress_context;
  waybill_boot_clock boot_clock;
  void* boot_clock_context;
} waybill_migrate_options;
#define WAYBILL_MIGRATE_OPTIONS_INIT WAYBILL_INIT(waybill_migrate_options)

/* WAYBILL_INVALID_ARGUMENT, WAYBILL_CONFLICT, WAYBILL_DISK_FULL, WAYBILL_OWNED, WAYBILL_NOT_FOUND,
 * WAYBILL_DAMAGED, WAYBILL_INTERRUPTED, WAYBILL_NEWER_SCHEMA, WAYBILL_UNSAFE_PATH, WAYBILL_IO,
 * WAYBILL_STORE_FULL: the store is intact and has the version of the last completed step.
 * WAYBILL_OUTCOME_UNKNOWN: waybill_open finds out. `report` may be NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_migrate(const waybill_migrate_options* options,
                                                            waybill_migration_report** report,
                                                            waybill_error** error);

typedef struct waybill_backup {
  waybill_string path;
  uint32_t schema_version;
  uint64_t commit_sequence;
  uint64_t bytes;
} waybill_backup;

typedef struct waybill_backups {
  const waybill_backup* items;
  size_t count;
} waybill_backups;

/* Newest first. WAYBILL_UNSAFE_PATH, WAYBILL_IO, WAYBILL_NOT_FOUND. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_backups(waybill_string directory,
                                                                 waybill_backups** backups,
                                                                 waybill_error** error);

/* The owner makes one of the store as it is now, while others go on. The last three are kept, and
 * only the last of each state. WAYBILL_DISK_FULL, WAYBILL_DAMAGED, WAYBILL_UNAVAILABLE (another one
 * is being made), WAYBILL_UNSAFE_PATH, WAYBILL_NOT_OWNER, WAYBILL_OWNED, WAYBILL_OUTCOME_UNKNOWN,
 * WAYBILL_IO: NodeStore::MakeBackup. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_make_backup(waybill_store* store,
                                                                waybill_backup** backup,
                                                                waybill_error** error);

typedef struct waybill_restore_options {
  size_t struct_size;
  waybill_string directory;
  waybill_string backup;
  bool dry_run;       /* report what would be done, and change nothing */
  uint64_t map_bytes; /* 0: as the store remembers it */
  waybill_clock clock;
  void* clock_context;
  waybill_boot_clock boot_clock;
  void* boot_clock_context;
} waybill_restore_options;
#define WAYBILL_RESTORE_OPTIONS_INIT WAYBILL_INIT(waybill_restore_options)

/* RestoreReport */
typedef struct waybill_restore_report {
  uint32_t schema_version;
  uint64_t backup_commit_sequence;
  uint64_t records;
  uint64_t records_without_credentials;
  uint64_t id_mappings;
  uint64_t id_mappings_kept; /* of the backup's */
  uint64_t id_mappings_held;
  uint64_t id_mappings_dropped;
  bool id_ranges_lost;
  waybill_string replaced_path;
  waybill_strings removed_paths;
  waybill_string distrust_reason;
  bool streaming; /* of streaming requests: its tokens are void, and opening it ends the distrust */
} waybill_restore_report;

/* WAYBILL_DAMAGED, WAYBILL_CONFLICT, WAYBILL_NEWER_SCHEMA, WAYBILL_OWNED, WAYBILL_NOT_FOUND,
 * WAYBILL_UNSAFE_PATH, WAYBILL_DISK_FULL, WAYBILL_IO: the store is as it was. `report` may be
 * NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_restore(const waybill_restore_options* options,
                                                            waybill_restore_report** report,
                                                            waybill_error** error);

/* --- Streaming requests (KEP-1558) --------------------------------------------------------------
 * The requests (exec, attach, port-forward) that a runtime's streaming server prepared, each under
 * a token that opens one stream, once: waybill/streaming.h. A store of its own, in a directory of
 * its own: a node's store is refused (WAYBILL_INVALID_ARGUMENT), and waybill_open refuses this one.
 * Threads as for a waybill_store. */

typedef struct waybill_streaming_store waybill_streaming_store;

/* StreamKind */
enum { WAYBILL_STREAM_EXEC = 1, WAYBILL_STREAM_ATTACH = 2, WAYBILL_STREAM_PORT_FORWARD = 3 };
WAYBILL_API waybill_string waybill_stream_kind_name(int32_t kind); /* "portforward" */

/* CRI's ExecRequest, AttachRequest and PortForwardRequest. */
typedef struct waybill_streaming_request {
  int32_t kind WAYBILL_EMPTY;                  /* WAYBILL_STREAM_… */
  waybill_string container_id WAYBILL_EMPTY;   /* exec, attach */
  waybill_string pod_sandbox_id WAYBILL_EMPTY; /* port-forward */
  waybill_strings command WAYBILL_EMPTY;       /* exec */
  bool std_in WAYBILL_EMPTY;                   /* exec, attach; likewise below */
  bool std_out WAYBILL_EMPTY;
  bool std_err WAYBILL_EMPTY;
  bool tty WAYBILL_EMPTY;
  const uint16_t* ports WAYBILL_EMPTY; /* port-forward */
  size_t port_count WAYBILL_EMPTY;
} waybill_streaming_request;

/* WAYBILL_INVALID_ARGUMENT, WAYBILL_LIMIT_EXCEEDED: CheckStreamingRequest. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_check_streaming_request(const waybill_streaming_request* request, waybill_error** error);
/* What names a token in logs without opening anything: 16 hex digits. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_stream_token_id(waybill_string token,
                                                                    waybill_string** id,
                                                                    waybill_error** error);

/* StreamingOptions */
typedef struct waybill_streaming_options {
  size_t struct_size;
  waybill_string directory; /* the store's own */
  bool must_exist;
  int32_t witness_kind; /* WAYBILL_WITNESS_…; must be set */
  waybill_string witness_path;
  /* A streaming server that restarts makes all tokens void; this keeps those that are still open.
   * Another boot, an older copy of the store and a distrustful one make all void always. */
  bool keeps_tokens;
  /* No restart: a command that does a part of what a server does (StreamingStore::Continue). */
  bool continues;
  uint64_t time_to_live_ns; /* 1 s to 1 h; 0: 60 s */
  uint64_t max_open;        /* tokens, 1 to 65,536; 0: 1,000 */
  bool no_migration;
  bool skip_unreadable;
  bool flushes_twice;
  uint64_t map_bytes; /* 0: as the store remembers it */
  waybill_clock clock;
  void* clock_context;
  waybill_boot_clock boot_clock; /* NULL: the system's */
  void* boot_clock_context;
} waybill_streaming_options;
#define WAYBILL_STREAMING_OPTIONS_INIT WAYBILL_INIT(waybill_streaming_options)

/* Errors as of waybill_open. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_streaming_open(const waybill_streaming_options* options, waybill_streaming_store** store,
                       waybill_error** error);
/* Opens to read, beside a live owner or without one; others get WAYBILL_NOT_OWNER. Errors as of
 * waybill_observe. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_streaming_observe(
    waybill_string directory, waybill_streaming_store** store, waybill_error** error);
/* As waybill_close and waybill_store_free. */
WAYBILL_API waybill_code waybill_streaming_close(waybill_streaming_store* store,
                                                 waybill_error** error);
WAYBILL_API void waybill_streaming_store_free(waybill_streaming_store* store);

/* StreamingReport: what opening did. Empty for an observer. */
typedef struct waybill_streaming_report {
  const waybill_recovery_report* recovery; /* never NULL */
  uint64_t voided;                         /* tokens that opening made void */
  waybill_string void_reason; /* why all were; empty: only those of another boot, or unreadable */
  uint64_t open;
} waybill_streaming_report;
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_get_streaming_report(
    waybill_streaming_store* store, waybill_streaming_report** report, waybill_error** error);

/* Stores the request, and gives its token: 32 hex digits, which nobody can get again. On disk when
 * this returns. WAYBILL_LIMIT_EXCEEDED with (*error)->retry_after_ns: as many are open as may be.
 * After WAYBILL_OUT_OF_MEMORY a token that nobody has may be open until it expires. Others:
 * StreamingStore::Prepare. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_prepare_stream(waybill_streaming_store* store, const waybill_streaming_request* request,
                       waybill_string** token, waybill_error** error);
/* Uses the token up, and gives its request. On disk when this returns. WAYBILL_NOT_FOUND: it was
 * never prepared, was used, is void, has expired or is of another kind; nothing is written. Others:
 * StreamingStore::Consume. After WAYBILL_OUT_OF_MEMORY the token may be used up. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_consume_stream(waybill_streaming_store* store, waybill_string token, int32_t kind,
                       waybill_streaming_request** request, waybill_error** error);

/* A token that waits for its client. */
typedef struct waybill_open_stream {
  waybill_string id; /* waybill_stream_token_id */
  int32_t kind;      /* WAYBILL_STREAM_… */
  waybill_timestamp prepared;
  uint64_t expires_in_ns;
} waybill_open_stream;

typedef struct waybill_open_streams {
  const waybill_open_stream* items;
  size_t count;
} waybill_open_streams;

/* Oldest first. WAYBILL_DAMAGED, WAYBILL_UNAVAILABLE. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_streams(waybill_streaming_store* store,
                                                                 waybill_open_streams** streams,
                                                                 waybill_error** error);

/* StreamingCounters: since the store was opened. */
typedef struct waybill_streaming_counters {
  uint64_t prepared;
  uint64_t prepare_invalid;
  uint64_t prepare_full;
  uint64_t prepare_failed;
  uint64_t consumed;
  uint64_t refused_unknown;
  uint64_t refused_expired;
  uint64_t refused_kind;
  uint64_t consume_failed;
  uint64_t voided;
  uint64_t open;
  waybill_string prometheus_text; /* all of it, in the text exposition format */
} waybill_streaming_counters;
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_get_streaming_counters(
    waybill_streaming_store* store, waybill_streaming_counters** counters, waybill_error** error);

/* As waybill_verify. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_verify_streaming(waybill_streaming_store* store,
                                                                     waybill_verify_report** report,
                                                                     waybill_error** error);

/* --- Streaming: addresses and rates ---------------------------------------------------------- */

/* Which addresses of a runtime's streaming server may be dialled (StreamUrlPolicy in
 * waybill/stream_url.h, which also says what a list may hold). All zero: any port of a loopback
 * address, and no redirect. */
typedef struct waybill_stream_url_policy {
  size_t struct_size;
  waybill_strings hosts; /* allowed beside loopback: IP addresses, host names */
  const uint16_t* ports; /* none: all */
  size_t port_count;
  bool require_https;
  bool same_host_redirects;
} waybill_stream_url_policy;
#define WAYBILL_STREAM_URL_POLICY_INIT WAYBILL_INIT(waybill_stream_url_policy)

/* StreamUrlRefusal in waybill/stream_url.h says when each comes. */
enum {
  WAYBILL_STREAM_URL_ALLOWED = 0,
  WAYBILL_STREAM_URL_POLICY = 1,
  WAYBILL_STREAM_URL_TOO_LONG = 2,
  WAYBILL_STREAM_URL_CHARACTER = 3,
  WAYBILL_STREAM_URL_NO_SCHEME = 4,
  WAYBILL_STREAM_URL_SCHEME = 5,
  WAYBILL_STREAM_URL_NOT_HTTPS = 6,
  WAYBILL_STREAM_URL_NO_HOST = 7,
  WAYBILL_STREAM_URL_USER_INFO = 8,
  WAYBILL_STREAM_URL_ZONE = 9,
  WAYBILL_STREAM_URL_ENCODED_HOST = 10,
  WAYBILL_STREAM_URL_PORT = 11,
  WAYBILL_STREAM_URL_SYNTAX = 12,
  WAYBILL_STREAM_URL_FRAGMENT = 13,
  WAYBILL_STREAM_URL_ADDRESS_FORM = 14,
  WAYBILL_STREAM_URL_HOST_NAME = 15,
  WAYBILL_STREAM_URL_UNSPECIFIED = 16,
  WAYBILL_STREAM_URL_NOT_ALLOWED = 17,
  WAYBILL_STREAM_URL_PORT_NOT_ALLOWED = 18,
  WAYBILL_STREAM_URL_REDIRECT = 19,
  WAYBILL_STREAM_URL_REDIRECT_HOST = 20,
  WAYBILL_STREAM_URL_REDIRECT_DOWNGRADE = 21
};

enum { WAYBILL_STREAM_HTTP = 0, WAYBILL_STREAM_HTTPS = 1 };

/* If refused: why, in words that hold neither path nor query; the address is empty, with port 0.
 * Otherwise where to connect, and what to ask for there. */
typedef struct waybill_stream_url_check {
  int32_t refusal; /* WAYBILL_STREAM_URL_… */
  int32_t scheme;  /* WAYBILL_STREAM_HTTP, WAYBILL_STREAM_HTTPS */
  waybill_string message;
  waybill_string host; /* without brackets, in its one canonical form */
  uint16_t port;
  waybill_string path; /* with the query. Holds the token: do not log it */
} waybill_stream_url_check;

/* "noScheme"; "none" for WAYBILL_STREAM_URL_ALLOWED. "http" or "https". Empty for other numbers. */
WAYBILL_API waybill_string waybill_stream_url_refusal_name(int32_t refusal);
WAYBILL_API waybill_string waybill_stream_scheme_name(int32_t scheme);

/* Whether `url`, as a runtime's answer names it, may be dialled: CheckStreamUrl. A refusal is
 * WAYBILL_OK, with the reason in *check. `policy` may be NULL: all zero. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_check_stream_url(waybill_string url, const waybill_stream_url_policy* policy,
                         waybill_stream_url_check** check, waybill_error** error);

/* Whether a redirect from `original` to `location` may be followed: CheckStreamRedirect. The caller
 * counts them. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_check_stream_redirect(
    waybill_string original, waybill_string location, const waybill_stream_url_policy* policy,
    waybill_stream_url_check** check, waybill_error** error);

/* A token bucket: RateLimit in waybill/rate_limit.h. Its memory is the caller's, and its content
 * the library's. A copy is a bucket of its own; all zero is no limit. Nothing here fails. One
 * thread at a time. Times are nanoseconds of a monotonic clock. */
typedef struct waybill_rate_limit {
  uint64_t state[8];
} waybill_rate_limit;

/* `bytes_per_second` 0: no limit. `burst_bytes` 0: a tenth of a second's. */
WAYBILL_API waybill_rate_limit waybill_rate_limit_make(uint64_t bytes_per_second,
                                                       uint64_t burst_bytes, int64_t now_ns);
/* How many of `wanted` bytes may pass now; they count as passed. NULL: 0. */
WAYBILL_API uint64_t waybill_rate_limit_take(waybill_rate_limit* limit, uint64_t wanted,
                                             int64_t now_ns);
/* Bytes of the last take that did not pass. */
WAYBILL_API void waybill_rate_limit_give_back(waybill_rate_limit* limit, uint64_t bytes);
/* Nanoseconds until `wanted` bytes may pass, or a full burst if that is less. NULL: INT64_MAX. */
WAYBILL_API int64_t waybill_rate_limit_wait(waybill_rate_limit* limit, uint64_t wanted,
                                            int64_t now_ns);

/* --- Streaming: plan and lint ------------------------------------------------------------------
 * waybill/streaming_plan.h: exec, attach and port-forward for a kubelet and an API server of given
 * releases and settings (KEP-1558, KEP-4006). Pure: no store, and no file is read. */

typedef struct waybill_kubernetes_version {
  uint32_t major;
  uint32_t minor;
} waybill_kubernetes_version;

/* "v1.22.3", "1.22". WAYBILL_INVALID_ARGUMENT: ParseKubernetesVersion. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_parse_kubernetes_version(
    waybill_string text, waybill_kubernetes_version* version, waybill_error** error);

/* StreamingComponent */
enum {
  WAYBILL_STREAMING_KUBELET = 0,
  WAYBILL_STREAMING_API_SERVER = 1,
};

/* StreamingGate */
enum {
  WAYBILL_GATE_STREAMING_PROXY_REDIRECTS = 0,
  WAYBILL_GATE_VALIDATE_PROXY_REDIRECTS = 1,
  WAYBILL_GATE_TRANSLATE_STREAM_CLOSE_WEBSOCKET_REQUESTS = 2,
  WAYBILL_GATE_PORT_FORWARD_WEBSOCKETS = 3,
  WAYBILL_GATE_EXTEND_WEBSOCKETS_TO_KUBELET = 4,
  WAYBILL_GATE_NODE_DECLARED_FEATURES = 5,
  WAYBILL_GATE_ALL_ALPHA = 6,
  WAYBILL_GATE_ALL_BETA = 7,
};
/* "StreamingProxyRedirects"; empty for no such gate. */
WAYBILL_API waybill_string waybill_streaming_gate_name(int32_t gate);
/* Whether the name, spelt exactly so, is one of them. `gate` may be NULL. */
WAYBILL_API bool waybill_find_streaming_gate(waybill_string name, int32_t* gate);
/* Whether waybill_lint_streaming judges the flag: IsStreamingFlag. */
WAYBILL_API bool waybill_is_streaming_flag(waybill_string name);

typedef struct waybill_streaming_gate_setting {
  int32_t gate;
  bool enabled;
} waybill_streaming_gate_setting;

/* A boolean flag of a command line. */
enum {
  WAYBILL_FLAG_NOT_GIVEN = 0,
  WAYBILL_FLAG_FALSE = 1,
  WAYBILL_FLAG_TRUE = 2,
};

/* StreamingSeverity */
enum {
  WAYBILL_STREAMING_IGNORED = 0,
  WAYBILL_STREAMING_DEPRECATED = 1,
  WAYBILL_STREAMING_REMOVED = 2,
  WAYBILL_STREAMING_FATAL = 3,
};
/* "fatal"; empty for no such severity. */
WAYBILL_API waybill_string waybill_streaming_severity_name(int32_t severity);

/* StreamingOrigin */
enum {
  WAYBILL_STREAMING_COMMAND_LINE = 0,
  WAYBILL_STREAMING_CONFIGURATION = 1,
};

/* StreamingFinding */
typedef struct waybill_streaming_finding {
  int32_t component;
  int32_t origin;
  int32_t severity;
  waybill_string subject;
  waybill_string setting;
  waybill_string words; /* what the release prints; empty: nothing, or not known */
  waybill_string advice;
  waybill_string source;
} waybill_streaming_finding;

typedef struct waybill_streaming_findings {
  const waybill_streaming_finding* items;
  size_t count;
} waybill_streaming_findings;

/* StreamingPlanRequest */
typedef struct waybill_streaming_plan_request {
  size_t struct_size;
  waybill_kubernetes_version api_server;
  waybill_kubernetes_version kubelet;
  int32_t redirect_container_streaming; /* the kubelet's flag: WAYBILL_FLAG_… */
  const waybill_streaming_gate_setting* api_server_gates;
  size_t api_server_gate_count;
  const waybill_streaming_gate_setting* kubelet_gates;
  size_t kubelet_gate_count;
} waybill_streaming_plan_request;
#define WAYBILL_STREAMING_PLAN_REQUEST_INIT WAYBILL_INIT(waybill_streaming_plan_request)

/* StreamingProxy, RedirectFollower, RedirectCheck, WebSocketTranslator, StreamingOutcome,
 * VersionSkew */
enum {
  WAYBILL_STREAMING_PROXY_KUBELET = 0,
  WAYBILL_STREAMING_PROXY_REDIRECT = 1,
};
enum {
  WAYBILL_REDIRECT_NOT_NEEDED = 0,
  WAYBILL_REDIRECT_API_SERVER = 1,
  WAYBILL_REDIRECT_NOBODY = 2,
};
enum {
  WAYBILL_REDIRECT_CHECK_NOT_NEEDED = 0,
  WAYBILL_REDIRECT_CHECK_SAME_HOST = 1,
  WAYBILL_REDIRECT_CHECK_NONE = 2,
};
enum {
  WAYBILL_WEBSOCKETS_NOBODY = 0,
  WAYBILL_WEBSOCKETS_API_SERVER = 1,
  WAYBILL_WEBSOCKETS_KUBELET = 2,
};
enum {
  WAYBILL_STREAMING_WORKS = 0,
  WAYBILL_STREAMING_WORKS_ON_SAME_HOST = 1,
  WAYBILL_STREAMING_FAILS = 2,
  WAYBILL_STREAMING_DOES_NOT_START = 3,
};
enum {
  WAYBILL_SKEW_SUPPORTED = 0,
  WAYBILL_SKEW_KUBELET_TOO_OLD = 1,
  WAYBILL_SKEW_KUBELET_NEWER = 2,
};

/* StreamingAnswer */
typedef struct waybill_streaming_answer {
  int32_t proxy;
  int32_t follower;
  int32_t check;
  int32_t exec_websockets;
  int32_t port_forward_websockets;
  int32_t outcome;
  int32_t skew;
  waybill_streaming_findings findings;
  waybill_strings notes;
} waybill_streaming_answer;

/* WAYBILL_INVALID_ARGUMENT, WAYBILL_LIMIT_EXCEEDED: StreamingPlan. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_streaming_plan(const waybill_streaming_plan_request* request,
                       waybill_streaming_answer** answer, waybill_error** error);

/* StreamingConfigValue */
typedef struct waybill_streaming_config_value {
  waybill_string key;
  waybill_string value; /* JSON */
} waybill_streaming_config_value;

/* StreamingLintRequest */
typedef struct waybill_streaming_lint_request {
  size_t struct_size;
  int32_t component;
  waybill_kubernetes_version version;
  waybill_strings arguments; /* behind the program's name */
  bool has_configuration;    /* false: it is not at hand, and `configuration` is ignored */
  const waybill_streaming_config_value* configuration;
  size_t configuration_count;
} waybill_streaming_lint_request;
#define WAYBILL_STREAMING_LINT_REQUEST_INIT WAYBILL_INIT(waybill_streaming_lint_request)

/* StreamingLint */
typedef struct waybill_streaming_lint {
  waybill_streaming_findings findings;
  int32_t redirect_container_streaming; /* WAYBILL_FLAG_… */
  const waybill_streaming_gate_setting* gates;
  size_t gate_count;
  waybill_strings notes;
} waybill_streaming_lint;

/* WAYBILL_INVALID_ARGUMENT, WAYBILL_LIMIT_EXCEEDED: LintStreaming. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_lint_streaming(const waybill_streaming_lint_request* request, waybill_streaming_lint** lint,
                       waybill_error** error);

#ifdef __cplusplus
}
#endif

#endif /* WAYBILL_H_ */
