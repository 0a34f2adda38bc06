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
 * C11.
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
 *
 * Made by ./dev generate.
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
/* What the caller of a failed call should do. waybill_error.message says it to a person. */
enum {
  WAYBILL_OK = 0,
  /* The call itself is wrong: correct the argument. Unlike WAYBILL_LIMIT_EXCEEDED, no smaller input
   * helps. */
  WAYBILL_INVALID_ARGUMENT = 1,
  WAYBILL_LIMIT_EXCEEDED = 2, /* The argument is sound but larger than a documented bound. */
  WAYBILL_NOT_FOUND = 3,      /* The store knows for certain that nothing has that name. */
  /* Stored bytes do not verify. Never read it as WAYBILL_NOT_FOUND: something was there. */
  WAYBILL_DAMAGED = 4,
  /* Another process owns the store: wait for it, or observe instead of owning. Or the store's files
   * were removed or replaced under this one: close and open again. */
  WAYBILL_OWNED = 5,
  /* The store was written by a newer schema. Use the newer waybill; nothing was touched. */
  WAYBILL_NEWER_SCHEMA = 6,
  /* The store was written by an older schema, and migrating was not allowed. Nothing was touched.
   */
  WAYBILL_OLDER_SCHEMA = 7,
  /* The owner, mode or type of a path is unsafe. Correct it, then try again. */
  WAYBILL_UNSAFE_PATH = 8,
  /* The map is full: prune, or open with a larger map. Deleting still works. */
  WAYBILL_STORE_FULL = 9,
  WAYBILL_DISK_FULL = 10, /* The file system is full: free space, then try again. */
  WAYBILL_IO = 11, /* The operating system refused a read or a write. The text has its reason. */
  /* Two identities share one key, or a newer state forbids the change. Nothing was changed. */
  WAYBILL_CONFLICT = 12,
  WAYBILL_NOT_OWNER = 13, /* The handle is an observer's: open the store as the owner. */
  /* The caller's progress callback asked to stop. What was done so far is kept. */
  WAYBILL_INTERRUPTED = 14,
  /* A commit failed half way, in this call or an earlier one: it may or may not be on disk. Close
   * and open again to find out. */
  WAYBILL_OUTCOME_UNKNOWN = 15,
  /* The caller's waybill_credential_source could not get the pod's credentials. */
  WAYBILL_CREDENTIALS_UNAVAILABLE = 16,
  /* Nothing can be read at this moment: no reader slot is free, or an observer could not reopen
   * files that were replaced. Nothing is known to be damaged: try again. Never read it as
   * WAYBILL_NOT_FOUND. */
  WAYBILL_UNAVAILABLE = 17,
  /* The handle was closed: open the store again. Never read it as WAYBILL_NOT_FOUND. */
  WAYBILL_CLOSED = 64,
  WAYBILL_OUT_OF_MEMORY = 65, /* Memory ran out. Nothing was changed. */
  /* A callback of the caller threw an exception, or the library has a bug. Nothing was changed. */
  WAYBILL_INTERNAL = 66
};

typedef int32_t waybill_hint;
/* What to do next, where it is a call of waybill. Each binding has its own words for it
 * (waybill_hint_text). */
enum {
  WAYBILL_HINT_NONE = 0,
  WAYBILL_HINT_RECOVER = 1, /* The store is damaged or stale. An owner that opens it recovers it. */
  /* Part of the store can't be read. Verifying it says what is damaged; an owner recovers it. */
  WAYBILL_HINT_VERIFY = 2,
  /* One record can't be read. Pulling its image again replaces it; an owner recovers the store. */
  WAYBILL_HINT_PULL_AGAIN = 3,
  WAYBILL_HINT_CREATE = 4, /* There is no store yet. An owner makes one. */
  /* The store has an older schema. An owner takes it to the newest, after a backup. */
  WAYBILL_HINT_MIGRATE = 5,
  /* The migration would lose something. It goes on only where the caller accepts the loss. */
  WAYBILL_HINT_ACCEPT_LOSS = 6,
  WAYBILL_HINT_RESTORE = 7, /* The migration failed. Put back the backup that the message names. */
  WAYBILL_HINT_LIST_BACKUPS = 8, /* The backup is damaged. Take another one. */
  /* This version of LMDB was not tested. Use a tested one, or allow this one. */
  WAYBILL_HINT_ALLOW_UNTESTED_LMDB = 9,
  /* The map is full. Prune records, or open with a larger map. */
  WAYBILL_HINT_PRUNE_OR_ENLARGE = 10,
  /* The disk refuses to read a part. Skipping what it refuses treats that as damaged. */
  WAYBILL_HINT_SKIP_UNREADABLE = 11,
  /* The list was empty, but the store is not. List again; confirm an empty list if it is right. */
  WAYBILL_HINT_ALLOW_EMPTY = 12,
  /* The token is not of this store. Draw one before listing the images. */
  WAYBILL_HINT_BEGIN_LIST = 13,
  /* The token is not of this store. Draw one before listing the pods. */
  WAYBILL_HINT_BEGIN_USERNS_CLEANUP = 14,
  /* The registry of runtime handlers does not allow it. Load what the runtime serves. */
  WAYBILL_HINT_LOAD_HANDLERS = 15,
  /* All ID ranges are taken. Release those of pods that are gone, or enlarge the pool. */
  WAYBILL_HINT_FREE_RANGES = 16,
  /* Held pods have unverified ID ranges. Adopt the ranges of pods that live, release the others. */
  WAYBILL_HINT_SETTLE_HELD_PODS = 17,
  /* Another pod has the ID range. Release it once that pod is gone. */
  WAYBILL_HINT_RELEASE_POD = 18,
  /* Another file is in the witness's place. Name another path; if a store was lost, close the gap.
   */
  WAYBILL_HINT_REPLACE_WITNESS = 19
};

typedef struct waybill_error {
  waybill_code code;
  waybill_hint hint_code; /* WAYBILL_HINT_NONE: `hint` needs no translation, or is empty */
  waybill_string message; /* what failed, on which path or key, what was left as it was */
  waybill_string hint;    /* what to do next, in calls of this header; may be empty */
  /* How long until the same call can succeed; 0: unknown. waybill_prepare_stream sets it. */
  uint64_t retry_after_ns;
} waybill_error;

/* Frees a result that came through a pointer to a pointer, except stores and policies. NULL is
 * allowed. WAYBILL_INVALID_ARGUMENT: the pointer is not a result, as far as can be told; nothing is
 * done. A second free is detected only until the memory is used again. */
WAYBILL_API waybill_code waybill_free(void* result);

/* "invalidArgument", as the command line and JSON print it; "ok". This name and those below live
 * for ever, and are empty for a number that has none. */
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

/* A point in time, UTC. Seconds since 1970 may be negative; 0 <= nanoseconds < 1,000,000,000.
 * Covers the years 1 to 9999, which is what RFC 3339 can write. */
typedef struct waybill_timestamp {
  int64_t seconds;
  int32_t nanoseconds;
} waybill_timestamp;

/* A time since the machine booted. Changes of the wall clock do not affect it. */
typedef struct waybill_boot_time {
  uint8_t boot_id[16]; /* which boot; zeros: unknown */
  int64_t nanoseconds; /* CLOCK_BOOTTIME */
} waybill_boot_time;

/* Which copy of an image a call is about, borrowed for the call. Name the members ({.image = …,
 * .image_ref = …}): an image string in the place of the ref would ask about another copy, of which
 * the store may know nothing. Each function says which members it needs, and ignores the others:
 * the same value serves for a decision and for the pull after it. */
typedef struct waybill_image_copy {
  waybill_string image WAYBILL_EMPTY; /* the container's image string, as the pod wrote it */
  /* what the runtime returned for it; empty: not on the node */
  waybill_string image_ref WAYBILL_EMPTY;
  waybill_string runtime_handler WAYBILL_EMPTY; /* of the pod's RuntimeClass; empty: the default */
} waybill_image_copy;

/* Coordinates of a Kubernetes Secret and the hash of the credentials that it held when an image was
 * pulled with it. The hash is opaque and only compared. Empty: hashing failed; the hash then
 * matches nothing, but the coordinates still can. */
typedef struct waybill_image_pull_secret {
  waybill_string uid;
  waybill_string namespace_name;
  waybill_string name;
  waybill_string credential_hash;
} waybill_image_pull_secret;

typedef struct waybill_image_pull_service_account {
  waybill_string uid;
  waybill_string namespace_name;
  waybill_string name;
} waybill_image_pull_service_account;

/* Which credentials opened an image under one image name. With node_pods_accessible (pulled without
 * credentials, or with the node's own) every pod of the node may use it. If all fields are empty,
 * every pod must pull it again. */
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

/* What an image was built for, and what it is to run on. An empty member: not given. */
typedef struct waybill_platform {
  waybill_string architecture; /* Go's names: "amd64", "arm64" */
  waybill_string os;           /* Go's names: "linux", "windows" */
  waybill_string os_version;   /* Windows: "10.0.20348.1970" */
  waybill_strings os_features;
  waybill_string variant; /* of arm, "v5" to "v8"; of arm64; of amd64, "v1" to "v4" */
} waybill_platform;

typedef struct waybill_image_pulled_record {
  waybill_string image_ref;
  const waybill_timestamp* last_updated; /* NULL: none */
  const waybill_credential_mapping* credential_mapping;
  size_t credential_mapping_count;
  uint64_t stamp; /* set by the store, as is guest_platform; both ignored in arguments */
  waybill_string runtime_handler; /* empty: the default one */
  /* Which manifest of an index was pulled, and its platform, if the caller passed them. */
  waybill_string manifest_digest;
  const waybill_platform* platform;       /* NULL: not known */
  const waybill_platform* guest_platform; /* NULL: none */
  /* Why the image was closed without a pull by this kubelet, if it was. Set by the store, too. */
  waybill_string closed_because;
} waybill_image_pulled_record;

/* Coordinates of a Secret or a service account. */
typedef struct waybill_credential_name {
  waybill_string namespace_name WAYBILL_EMPTY;
  waybill_string name WAYBILL_EMPTY;
  waybill_string uid WAYBILL_EMPTY; /* empty: whatever the UID */
} waybill_credential_name;

/* Who checked a credential when a pull proved it. The numbers are stored. */
enum {
  WAYBILL_CHECKER_UNKNOWN = 0, /* nobody said */
  /* the image's own registry, or nobody else by the runtime's configuration */
  WAYBILL_CHECKER_REGISTRY = 1,
  /* By the runtime's configuration another host may have served the pull. Many of them ask for no
   * credentials: then any Secret "proves" itself. */
  WAYBILL_CHECKER_MIRROR = 2,
  /* The pull happened in the guest of a confidential container: the node proved nothing. */
  WAYBILL_CHECKER_GUEST = 3
};
/* "unknown", "registry", "mirror", "guest"; "" for a number of a later version. */
WAYBILL_API waybill_string waybill_proof_checker_name(int32_t checker);
/* The inverse. WAYBILL_INVALID_ARGUMENT for any other spelling. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_parse_proof_checker(waybill_string name,
                                                                        int32_t* checker,
                                                                        waybill_error** error);

/* When and by whom a credential was last proven. A match proves nothing: a credential that is
 * written back because it matched gets the proof of the one that it matched. A newer proof takes
 * the place of an older one, unless the registry checked the older one alone, and it still counts.
 * Set by the store, ignored in arguments, and not compared: two values with different proofs are
 * equal. */
typedef struct waybill_proof {
  /* Whole seconds; NULL: unknown. By the clock of ages (waybill_age_limits): where the wall clock
   * was put back after a jump, it is ahead of that clock for good. */
  const waybill_timestamp* proven;
  /* The commit in which that pull began (waybill_record_pull_intent); 0: unknown. */
  uint64_t pull_began;
  int32_t checker; /* WAYBILL_CHECKER_UNKNOWN … */
  /* From then on the proof does not count, whatever waybill_age_limits say. Whole seconds; NULL:
   * not said. */
  const waybill_timestamp* good_until;
} waybill_proof;

typedef struct waybill_image_pulled_records {
  const waybill_image_pulled_record* items;
  size_t count;
} waybill_image_pulled_records;

/* A pull that began and whose outcome is not recorded. `image` is the container's image string as
 * the pod wrote it; it need not parse. */
typedef struct waybill_image_pull_intent {
  waybill_string image;
  waybill_string runtime_handler; /* empty: the default handler */
} waybill_image_pull_intent;

typedef struct waybill_image_pull_intents {
  const waybill_image_pull_intent* items;
  size_t count;
} waybill_image_pull_intents;

/* An image that a newer kubelet found on the node before it pulled anything: a file of
 * observed-preloaded/. WAYBILL_RULES_CLOSED judges it as an image of a list
 * (waybill_observe_images). */
typedef struct waybill_image_preloaded_record {
  waybill_string image_ref;
  const waybill_timestamp* last_updated; /* NULL: none */
  waybill_strings observed_images;       /* image names, sorted */
} waybill_image_preloaded_record;

typedef struct waybill_image_preloaded_records {
  const waybill_image_preloaded_record* items;
  size_t count;
} waybill_image_preloaded_records;

/* An image as the container runtime lists it: CRI's Image message, `crictl images -o json`. Its
 * spellings are the ID, with and without `sha256:`, and its repo digests. A function that only asks
 * which images are there (waybill_prune) needs one spelling as `id`, and no names. */
typedef struct waybill_image_on_node {
  waybill_string id;            /* the image ref */
  waybill_strings repo_tags;    /* names: `repo:tag` */
  waybill_strings repo_digests; /* names: `repo@digest` */
  /* CRI's Image.spec.runtime_handler. Empty: not given, so the image may be any handler's. */
  waybill_string runtime_handler;
  bool pinned; /* by the runtime's configuration */
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

/* Which pull is meant. Durable, and never used twice in one store. 0: no pull is named. */
typedef uint64_t waybill_pull_id;

/* What state an open pull is in. The numbers are stored. */
enum {
  WAYBILL_OPEN_PULL_RUNNING = 1,
  /* the runtime reported an error, but something may have been transferred */
  WAYBILL_OPEN_PULL_FAILED = 2,
  /* cancelled, timed out, connection lost, or the process that pulled ended */
  WAYBILL_OPEN_PULL_UNKNOWN = 3,
  /* No pull: more images were gone than are remembered (10,000), and it stands for those that were
   * dropped, as one of anything. It ends when the node has run for as long as
   * waybill_evidence_options.remember_seconds since the last of them. */
  WAYBILL_OPEN_PULL_DROPPED = 4
};
/* "running", "failed", "unknown", "dropped"; "" for a number of a later version. */
WAYBILL_API waybill_string waybill_pull_state_name(int32_t state);

/* A pull that may still bring an image, or may have brought one that nobody recorded. */
typedef struct waybill_open_pull {
  waybill_pull_id id;
  bool anything; /* stands for pulls that can't be named: it may have brought any image */
  /* It stands for several pulls of one string that ended alike, with the last end. The success of a
   * single pull does not remove it. */
  bool several;
  waybill_string image; /* the container's image string as the pod wrote it; it need not parse */
  waybill_string runtime_handler; /* empty: the default handler */
  int32_t state;                  /* WAYBILL_OPEN_PULL_RUNNING … */
  waybill_timestamp began;
  const waybill_timestamp* ended; /* NULL: it is running */
  waybill_boot_time ended_at;     /* the same moment, by the boot clock */
  uint64_t stamp;                 /* the commit in which it began */
} waybill_open_pull;

typedef struct waybill_open_pulls {
  const waybill_open_pull* items;
  size_t count;
} waybill_open_pulls;

/* The source of a ledger entry that is presumed: a first start found the image, and nobody knows
 * where it came from. */
#define WAYBILL_PRESUMED_SOURCE "presumed"

/* An image that is known or presumed to have come to the node without the kubelet. While it is on
 * the node, it is open to all pods, under every name. */
typedef struct waybill_ledger_entry {
  waybill_string image_ref;
  waybill_string runtime_handler; /* empty: the default handler's copy */
  waybill_strings names;          /* at that time, sorted */
  /* How it is known: "listed", "imported" (waybill_image_list.imported), "pinned",
   * "preloaded-list", "observed-preloaded", "adopted", "operator", or what the caller named.
   * WAYBILL_PRESUMED_SOURCE: nobody knows, so it is presumed. */
  waybill_string source;
  waybill_string reason; /* an operator's; may be empty */
  waybill_timestamp since;
  uint64_t stamp; /* the commit that wrote it */
  /* Since when the image has been gone from the node. The entry is then only remembered, and opens
   * nothing. Whole seconds. NULL: none */
  const waybill_timestamp* absent_since;
} waybill_ledger_entry;

typedef struct waybill_ledger_entries {
  const waybill_ledger_entry* items;
  size_t count;
} waybill_ledger_entries;

/* What an unreadable file stood for; only its name tells. */
enum {
  WAYBILL_QUARANTINED_IMAGE_REF = 1, /* of pulled/: SHA-256 of an image ref */
  WAYBILL_QUARANTINED_IMAGE = 2      /* of pulling/: SHA-256 of an image string */
};
/* Closes an image until it is pulled again: decisions on it answer "pull", with the result `error`.
 */
typedef struct waybill_quarantine_entry {
  int32_t kind;          /* WAYBILL_QUARANTINED_IMAGE_REF … */
  waybill_string sha256; /* 64 lower-case hex digits */
  waybill_string source; /* the file, below the kubelet directory */
  waybill_string reason;
  waybill_timestamp since;
} waybill_quarantine_entry;

typedef struct waybill_quarantine_entries {
  const waybill_quarantine_entry* items;
  size_t count;
} waybill_quarantine_entries;

/* What a RuntimeClass selects (KEP-4216). The empty name selects the default one. */
typedef struct waybill_runtime_handler {
  /* 1 to 253 bytes above 0x20, without '/'. Only a default handler whose name is unknown has an
   * empty name. */
  waybill_string name;
  bool is_default;      /* the empty name selects it; at most one on a node */
  bool user_namespaces; /* CRI, RuntimeHandlerFeatures.user_namespaces */
  /* The platform of a utility VM, which its images must be built for. NULL: the host's. */
  const waybill_platform* guest_platform;
} waybill_runtime_handler;

typedef struct waybill_runtime_handlers {
  const waybill_runtime_handler* items;
  size_t count;
} waybill_runtime_handlers;

/* --- Credential hashes, image names, platforms: pure -------------------------------------------
 */

/* Lower-case hex SHA-256 of the auth config's compact JSON as Go writes it: username, password,
 * email in this order, empty ones left out, '<', '>', '&', U+2028, U+2029 and control characters
 * escaped, invalid UTF-8 replaced by U+FFFD. WAYBILL_OUT_OF_MEMORY. Pure, thread-safe. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_hash_credentials(waybill_string username,
                                                                     waybill_string password,
                                                                     waybill_string email,
                                                                     waybill_string** hash,
                                                                     waybill_error** error);

/* The parts of an image string, as views into it. Credentials are stored under `name`, the string
 * without tag and digest, otherwise unchanged: `nginx` and `docker.io/library/nginx` are two names,
 * since a runtime may resolve a short name elsewhere. */
typedef struct waybill_image_parts {
  waybill_string name;
  waybill_string domain; /* "registry.example.com:443"; may be empty */
  waybill_string path;   /* what follows domain and '/'; at most 255 bytes */
  waybill_string tag;    /* without ':'; may be empty */
  waybill_string digest; /* "sha256:…", without '@'; may be empty */
} waybill_image_parts;

/* Whether `image` parses; if not, *parts is empty. `parts` may be NULL. */
WAYBILL_API bool waybill_parse_image(waybill_string image, waybill_image_parts* parts);
/* The full form. WAYBILL_INVALID_ARGUMENT: `image` does not parse or is ambiguous. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_normalise_image(waybill_string image,
                                                                    waybill_string** full,
                                                                    waybill_error** error);
/* The repository of an image string: equal for two strings that name the same one, whatever their
 * tags and digests. It is the name in the full form; without a full form, the image name; if the
 * string does not parse, the string itself. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_repository_of(waybill_string image,
                                                                  waybill_string** repository,
                                                                  waybill_error** error);

/* Reads OS/ARCHITECTURE[/VARIANT] and normalises it. WAYBILL_INVALID_ARGUMENT: too few or too many
 * parts, an empty part, or characters other than letters, digits, '.', '_' and '-'. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_parse_platform(waybill_string text,
                                                                   waybill_platform** platform,
                                                                   waybill_error** error);
/* "linux/arm/v7", "windows/amd64 10.0.20348.1970"; OS features follow in parentheses. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_format_platform(
    const waybill_platform* platform, waybill_string** text, waybill_error** error);
/* The one spelling of a platform, as containerd compares them: x86_64 becomes amd64, aarch64 arm64,
 * arm without a variant arm/v7, arm64/v8 arm64, macos darwin. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_normalise_platform(
    const waybill_platform* platform, waybill_platform** normalised, waybill_error** error);

/* One entry of an image index. */
typedef struct waybill_manifest_descriptor {
  waybill_string media_type;
  waybill_string digest;
  uint64_t size;                    /* bytes; 0: not given */
  const waybill_platform* platform; /* as written; NULL: not given */
  /* provenance or an SBOM, not an image (annotation vnd.docker.reference.type) */
  bool is_attestation;
} waybill_manifest_descriptor;

typedef struct waybill_image_index {
  const waybill_manifest_descriptor* items;
  size_t count;
} waybill_image_index;

/* Reads an OCI image index or a Docker manifest list. Other fields are ignored.
 * WAYBILL_INVALID_ARGUMENT: not JSON, neither of the two formats, no manifests, or a manifest with
 * a malformed digest or a media type other than that of an image manifest or an index.
 * WAYBILL_LIMIT_EXCEEDED: above 4 MiB, 32 levels of nesting or 4,096 manifests. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_decode_image_index(waybill_string json,
                                                                       waybill_image_index** index,
                                                                       waybill_error** error);
/* The manifest of `index` that a runtime on `host` pulls. If the handler has a guest platform,
 * `guest` alone is matched, not `host`.
 *
 *   Linux and others   The OS, architecture and variant of the platform come first, then, in this
 *                      order, what it can also run: arm/v7 runs v6 and v5, arm64 runs arm, amd64
 *                      runs 386 and its own lower levels (containerd, platforms.Only).
 *   Windows            OS, architecture and OS version must match. A platform below build 20348
 *                      takes its own build; a later one takes 20348 up to its own build, the newest
 *                      first (Microsoft, "Windows container version compatibility").
 *
 * A platform without an OS version can't choose among Windows manifests that have one. A Windows
 * manifest without one fits any host (host-process images are built so) and is chosen last.
 * Manifests without a known platform, attestations and nested indexes are never chosen.
 * WAYBILL_NOT_FOUND: none matches; the error lists what the index offers. WAYBILL_INVALID_ARGUMENT:
 * the platform lacks OS or architecture, or its Windows version is malformed. `guest` NULL: none.
 * *chosen is an index into index->items. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_choose_manifest(const waybill_image_index* index, const waybill_platform* host,
                        const waybill_platform* guest, size_t* chosen, waybill_error** error);

/* --- The kubelet's JSON: pure ------------------------------------------------------------------
 */

/* Which API version the kubelet's files are written in. */
enum {
  WAYBILL_KUBELET_V1BETA1 = 0, /* kubelets since v1.35 */
  WAYBILL_KUBELET_V1ALPHA1 = 1 /* to v1.34 */
};

/* Reads a file of the kubelet's pulled/, strictly: WAYBILL_INVALID_ARGUMENT names the field that is
 * unknown, repeated, in another case or of another type; WAYBILL_LIMIT_EXCEEDED names the bound.
 * Accepts apiVersion kubelet.config.k8s.io/v1alpha1 and /v1beta1, and the form in KEP-2535: the
 * group imagemanager.kubelet.config.k8s.io/v1alpha1, and the list kubernetesSecretCoordinates (one
 * of the two lists, not both). */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_decode_pulled_record(
    waybill_string json, waybill_image_pulled_record** record, waybill_error** error);
/* Reads a file of the kubelet's pulling/. Errors as of waybill_decode_pulled_record. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_decode_pull_intent(
    waybill_string json, waybill_image_pull_intent** intent, waybill_error** error);
/* Reads a file of the kubelet's observed-preloaded/. Errors as of waybill_decode_pulled_record. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_decode_preloaded_record(
    waybill_string json, waybill_image_preloaded_record** record, waybill_error** error);

/* The bytes that kubelet v1.36.3 writes, or, for v1alpha1, kubelets up to v1.34: times cut to the
 * second, the mapping sorted by name. Runtime handlers and manifests are left out. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_encode_pulled_record(const waybill_image_pulled_record* record, int32_t version,
                             waybill_string** json, waybill_error** error);
/* As kubelets of that API version write it. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_encode_pull_intent(const waybill_image_pull_intent* intent, int32_t version,
                           waybill_string** json, waybill_error** error);
/* As kubelets of that API version write it. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_encode_preloaded_record(const waybill_image_preloaded_record* record, int32_t version,
                                waybill_string** json, waybill_error** error);

/* Reads `crictl images -o json`: {"images":[{"id":…,"repoTags":[…],"repoDigests":[…],
 * "pinned":…,"spec":{"runtimeHandler":…},…}]}. Other fields are ignored. WAYBILL_INVALID_ARGUMENT:
 * "images" or the id of an image is missing. WAYBILL_LIMIT_EXCEEDED: more than 200,000 images. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_decode_image_list(
    waybill_string json, waybill_images_on_node** images, waybill_error** error);
/* The UIDs of the pods in a list that `kubectl get pods -o json`, the kubelet's /pods or `crictl
 * pods -o json` prints: {"items":[{"metadata":{"uid":…},…},…]}. For a static pod, the UID under
 * which its node knows it is included (annotations kubernetes.io/config.hash and .mirror). A UID
 * may occur more than once. WAYBILL_INVALID_ARGUMENT: "items" or the UID of a pod is missing, or
 * the list is only one page of several. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_decode_pod_list(waybill_string json,
                                                                    waybill_strings** pod_uids,
                                                                    waybill_error** error);
/* Reads `crictl info` (CRI's StatusResponse). The handlers and their features (in either spelling)
 * come from "runtimeHandlers"; the default's name and the guest platforms from containerd's
 * configuration under "config", if present. CRI's nameless handler is merged with the named
 * default. WAYBILL_INVALID_ARGUMENT: not JSON, no "runtimeHandlers", a field of the wrong type, or
 * a name that is malformed or occurs twice. WAYBILL_LIMIT_EXCEEDED: above 256 MiB, 32 levels of
 * nesting or 1,024 handlers. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_decode_runtime_status(
    waybill_string json, waybill_runtime_handlers** handlers, waybill_error** error);

/* --- Who serves a pull -------------------------------------------------------------------------
 */

enum { WAYBILL_RUNTIME_UNKNOWN = 0, WAYBILL_RUNTIME_CONTAINERD = 1, WAYBILL_RUNTIME_CRI_O = 2 };
/* What waybill_read_runtime_pulls begins with. What is empty is not known. */
typedef struct waybill_runtime_answers {
  size_t struct_size;
  /* Name and version, as CRI's VersionResponse has them: "containerd v2.4.2", "cri-o 1.33.1". */
  waybill_string version;
  /* CRI's StatusResponse, as `crictl info` prints it: containerd's says how it runs. */
  waybill_string status;
  waybill_string config; /* The runtime's configuration file, where it is not at its usual place. */
  waybill_string root;   /* Below which all files are looked for, symlinks too; empty: "/". */
} waybill_runtime_answers;
#define WAYBILL_RUNTIME_ANSWERS_INIT WAYBILL_INIT(waybill_runtime_answers)
/* containerd's registry.mirrors: the endpoints that are asked before a registry; "*": any other. */
typedef struct waybill_registry_endpoints {
  waybill_string registry;
  waybill_strings endpoints;
  waybill_string where; /* the file, or what else says so */
} waybill_registry_endpoints;
/* A runtime handler whose images are pulled in the guest. */
typedef struct waybill_guest_puller {
  waybill_string handler;
  waybill_string because;
} waybill_guest_puller;
/* How a runtime is configured to pull. A plain value: keep it while the runtime runs. What it names
 * (folders, registries.conf) is read again for each image. */
typedef struct waybill_runtime_pulls {
  int32_t runtime; /* WAYBILL_RUNTIME_UNKNOWN … */
  /* containerd's config_path: folders with a folder for each registry. */
  waybill_strings config_path;
  const waybill_registry_endpoints* mirrors; /* instead of config_path */
  size_t mirror_count;
  waybill_string registries_conf; /* CRI-O's registries.conf, and its folders of drop-ins. */
  waybill_strings registries_conf_dirs;
  waybill_string default_handler;
  waybill_strings handlers; /* that are configured */
  const waybill_guest_puller* guest_pullers;
  size_t guest_puller_count;
  /* Hosts, "*" for any, that the runtime shows credentials or a certificate of its own. */
  waybill_strings own_credentials;
  waybill_strings files;    /* that were read */
  waybill_strings problems; /* what could not be read: the checker is unknown */
  waybill_string root;
} waybill_runtime_pulls;

/* Reads the runtime's configuration: from its own answers, and from files where these say less
 * (containerd from 2.0 on leaves out registries). An answer or a file that can't be understood is
 * one of `problems`. At most 1 MiB a file, and 256 files. WAYBILL_INTERNAL alone. Any thread may
 * call this and waybill_pull_sources_of at any time. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_read_runtime_pulls(
    const waybill_runtime_answers* answers, waybill_runtime_pulls** pulls, waybill_error** error);

/* A host that may serve a pull instead of the registry. */
typedef struct waybill_pull_source {
  waybill_string host;   /* with the port, if it is named, and a path that is not the usual */
  bool serves_manifests; /* Of this image: by tag, or by digest. Who does checks credentials. */
  bool serves_layers;
  /* Plain HTTP, or its certificate is not verified: whoever is on the way can answer. */
  bool insecure;
  bool open; /* Said to ask no pod for its credentials. */
  waybill_string open_because;
  waybill_string where; /* "/etc/containerd/certs.d/_default/hosts.toml, line 3" */
} waybill_pull_source;
typedef struct waybill_pull_sources {
  waybill_string registry;           /* of the image's full name: "docker.io" */
  const waybill_pull_source* others; /* in the order in which they are asked */
  size_t other_count;
  int32_t checker;          /* WAYBILL_CHECKER_UNKNOWN … */
  waybill_strings problems; /* why it is unknown */
} waybill_pull_sources;

/* Which hosts may serve a pull of `image`, as a pod writes it, for a runtime handler (empty: the
 * default). The registry's own names are not others: docker.io is index.docker.io and
 * registry-1.docker.io, and a port that is the usual one may be named. Unknown, never registry:
 * where anything of the configuration can't be read, where the registry is shown the node's own
 * credentials, and for an image that does not parse. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_pull_sources_of(
    const waybill_runtime_pulls* pulls, waybill_string image, waybill_string runtime_handler,
    waybill_pull_sources** sources, waybill_error** error);

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

/* Reads a docker config, or a Secret that holds one, in the document's order. Other fields are
 * ignored, as by the kubelet. WAYBILL_INVALID_ARGUMENT: an `auth` is not base64 of "user:password";
 * the error names the registry. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_decode_auth_document(
    waybill_string json, waybill_registry_auths** auths, waybill_error** error);

/* "2026-01-02T03:04:05Z", with a fraction if the time has one. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_format_timestamp(waybill_timestamp time,
                                                                     waybill_string** text,
                                                                     waybill_error** error);
/* Reads RFC 3339 with any offset, a fraction of up to nine digits, and years 1 to 9999, but no leap
 * second (kubelet behaviour). WAYBILL_INVALID_ARGUMENT for anything else. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_parse_timestamp(waybill_string text,
                                                                    waybill_timestamp* time,
                                                                    waybill_error** error);

/* --- Rules and policy --------------------------------------------------------------------------
 */

/* By which rules a store decides. */
enum {
  /* An image is open only if a credential was proven for it, or if it is in the ledger of images
   * that came to the node without the kubelet. */
  WAYBILL_RULES_CLOSED = 0,
  /* Every answer and every stored state is that of the kubelet v1.36.3, which presumes an image
   * preloaded if it has neither record nor intent. */
  WAYBILL_RULES_KUBELET = 1
};
/* "closed", "kubelet" */
WAYBILL_API waybill_string waybill_rules_name(int32_t rules);
/* The inverse. WAYBILL_INVALID_ARGUMENT for any other spelling. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_parse_rules(waybill_string name, int32_t* rules,
                                                                waybill_error** error);

/* The kubelet's imagePullCredentialsVerificationPolicy. */
enum {
  WAYBILL_NEVER_VERIFY = 0,
  WAYBILL_NEVER_VERIFY_PRELOADED_IMAGES = 1, /* the kubelet's default */
  WAYBILL_NEVER_VERIFY_ALLOWLISTED_IMAGES = 2,
  WAYBILL_ALWAYS_VERIFY = 3
};
/* "NeverVerifyPreloadedImages", as the kubelet's configuration spells it. */
WAYBILL_API waybill_string waybill_verification_mode_name(int32_t mode);
/* The inverse. WAYBILL_INVALID_ARGUMENT for any other spelling. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_parse_verification_mode(waybill_string name,
                                                                            int32_t* mode,
                                                                            waybill_error** error);

/* What an allowlist pattern opens. The kubelet's code compares names alone; KEP-2535 speaks of
 * images that the kubelet did not pull. */
enum { WAYBILL_ALLOWLIST_ANY_IMAGE = 0, WAYBILL_ALLOWLIST_PRELOADED_ONLY = 1 };

/* Which proofs count, by who checked the credential (WAYBILL_CHECKER_…). Kubelets count any. */
enum {
  WAYBILL_PROOFS_ANY = 0,
  /* Only those that the registry checked. With any other the image is pulled again instead of
   * opened. That does not make the mirror ask: it still gives the image to whoever pulls. */
  WAYBILL_PROOFS_REGISTRY = 1
};
/* "any", "registry" */
WAYBILL_API waybill_string waybill_proofs_name(int32_t proofs);
/* The inverse. WAYBILL_INVALID_ARGUMENT for any other spelling. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_parse_proofs(waybill_string name,
                                                                 int32_t* proofs,
                                                                 waybill_error** error);

/* Of the images that a pattern names. `pattern`: as in an allowlist; empty: all that no other rule
 * names. */
typedef struct waybill_proof_rule {
  waybill_string pattern;
  int32_t proofs; /* WAYBILL_PROOFS_ANY … */
} waybill_proof_rule;

/* What is known of an image's origin when the policy is asked. */
enum {
  WAYBILL_ORIGIN_KUBELET_PULLED = 0, /* a record exists; WAYBILL_RULES_KUBELET: or an intent */
  /* WAYBILL_RULES_KUBELET: neither exists, and nothing was lost. WAYBILL_RULES_CLOSED: it is in the
   * ledger */
  WAYBILL_ORIGIN_PRELOADED = 1,
  WAYBILL_ORIGIN_UNKNOWN = 2 /* neither is known */
};

/* Immutable. Stores copy it. */
typedef struct waybill_policy waybill_policy;

/* WAYBILL_INVALID_ARGUMENT, WAYBILL_LIMIT_EXCEEDED: VerificationPolicy::Make. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_policy_make(int32_t mode,
                                                                waybill_strings patterns,
                                                                int32_t scope,
                                                                waybill_policy** policy,
                                                                waybill_error** error);
/* `made`: the same policy with other rules for proofs. WAYBILL_INVALID_ARGUMENT,
 * WAYBILL_LIMIT_EXCEEDED: VerificationPolicy::WithProofs. policy NULL: the default policy. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_policy_with_proofs(const waybill_policy* policy, const waybill_proof_rule* rules,
                           size_t count, waybill_policy** made, waybill_error** error);
WAYBILL_API void waybill_policy_free(waybill_policy* policy);
/* WAYBILL_NEVER_VERIFY …; for NULL, the mode of the default policy. */
WAYBILL_API int32_t waybill_policy_mode(const waybill_policy* policy);
WAYBILL_API int32_t waybill_policy_scope(const waybill_policy* policy);
/* NULL: the default policy. true for an unknown origin. */
WAYBILL_API bool waybill_policy_requires_verification(const waybill_policy* policy,
                                                      waybill_string image_name, int32_t origin);
/* Whether a proof that `checker` checked counts (VerificationPolicy::ProofCounts). NULL: the
 * default policy. false for an unknown checker. */
WAYBILL_API bool waybill_policy_proof_counts(const waybill_policy* policy,
                                             waybill_string image_name, int32_t checker);

/* --- User namespaces: values -------------------------------------------------------------------
 */

/* Where new ranges are taken from. The types are wider than IDs, so that an out-of-bounds pool can
 * be reported. */
typedef struct waybill_user_namespace_pool {
  uint64_t first_id; /* A multiple of ids_per_pod, and at least that. */
  uint64_t id_count; /* A multiple of ids_per_pod; first_id + id_count <= 2^32. */
  /* Length of each new range: a multiple of 65,536 below 2^32 (the kubelet's
   * userNamespaces.idsPerPod). */
  uint64_t ids_per_pod;
  uint64_t max_pods; /* Pods that the pool must have room for (the kubelet's maxPods). */
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
/* WAYBILL_INVALID_ARGUMENT, in the kubelet's words: the pool breaks one of the rules above.
 * Reserved ranges do not count for max_pods. Pure, thread-safe. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_check_user_namespace_pool(const waybill_user_namespace_pool* pool, waybill_error** error);
/* The pool that a node is configured for (KEP-127, "Configuration of ranges"). If the user or the
 * tool is missing, that is the default pool. (v1.36.3 fails to start if only the tool is missing,
 * against the KEP.) Otherwise both outputs must be the same single line, "0: kubelet FIRST COUNT".
 * WAYBILL_INVALID_ARGUMENT, in the kubelet's words: they are not, or the pool is invalid. Pure,
 * thread-safe. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_pool_of_subordinate_ids(bool user_exists, bool tool_exists, waybill_string uids,
                                waybill_string gids, uint64_t ids_per_pod, uint64_t max_pods,
                                waybill_user_namespace_pool* pool, waybill_error** error);

/* CRI's IDMapping. */
typedef struct waybill_id_mapping {
  uint32_t host_id;
  uint32_t container_id;
  uint32_t length;
} waybill_id_mapping;

/* A mode of user namespaces, with CRI's numbers. */
enum { WAYBILL_NAMESPACE_POD = 0, WAYBILL_NAMESPACE_NODE = 2 };

/* CRI's UserNamespace. With POD, uids and gids are the same single mapping; with NODE, unused. */
typedef struct waybill_user_namespace {
  int32_t mode;           /* WAYBILL_NAMESPACE_POD … */
  uint32_t mapping_count; /* 0 or 1 */
  waybill_id_mapping uids;
  waybill_id_mapping gids;
} waybill_user_namespace;

enum { WAYBILL_HOST_USERS_UNSET = 0, WAYBILL_HOST_USERS_TRUE = 1, WAYBILL_HOST_USERS_FALSE = 2 };

typedef struct waybill_user_namespace_request {
  size_t struct_size;
  /* 1 to 253 bytes above 0x20, neither "." nor "..", without '/': the name of the pod's directory.
   */
  waybill_string pod_uid;
  int32_t host_users; /* pod.spec.hostUsers */
  /* The handler of the pod's RuntimeClass; empty: the default handler. */
  waybill_string runtime_handler;
  uint32_t length; /* that the caller requires; 0: any */
} waybill_user_namespace_request;
#define WAYBILL_USER_NAMESPACE_REQUEST_INIT WAYBILL_INIT(waybill_user_namespace_request)

/* How a pod's range relates to the current pool. */
enum {
  WAYBILL_POOL_INSIDE = 0,
  WAYBILL_POOL_OUTSIDE = 1,     /* partly or wholly (kubernetes#141941) */
  WAYBILL_POOL_OTHER_LENGTH = 2 /* differs from the pool's ids_per_pod (kubernetes#137912) */
};
/* A pod's ID mapping. Whatever the pool is now, the mapping stays valid for its pod and blocks the
 * ranges that it overlaps until it is released. */
typedef struct waybill_user_namespace_allocation {
  waybill_string pod_uid;
  uint32_t host_id;
  uint32_t length;
  waybill_timestamp created;
  int32_t relation; /* WAYBILL_POOL_INSIDE … */
} waybill_user_namespace_allocation;

typedef struct waybill_user_namespace_allocations {
  const waybill_user_namespace_allocation* items;
  size_t count;
} waybill_user_namespace_allocations;

/* A range of host IDs. */
typedef struct waybill_host_id_range {
  uint64_t first;
  uint64_t length;
} waybill_host_id_range;

/* Why a pod is held. The numbers are stored, and never 0. A number that this version does not know
 * holds as much as any other. */
enum {
  WAYBILL_HELD_OTHER = 1,
  WAYBILL_HELD_FILE_CONFLICT = 2,     /* its file contradicts another one, or the store */
  WAYBILL_HELD_TABLES_CONTRADICT = 3, /* the store's own tables contradict each other */
  WAYBILL_HELD_UNREADABLE_FILE = 4,   /* its file can't be read, or no kubelet would accept it */
  WAYBILL_HELD_FROM_BACKUP = 5, /* its range comes from a backup, and may be another pod's by now */
  WAYBILL_HELD_LOST_RANGES = 6, /* without a UID: ranges were lost */
  /* without a UID: until the files of the kubelet's pods are taken over */
  WAYBILL_HELD_UNTIL_IMPORT = 7
};

/* A pod that may live with unverified host IDs: its file was broken, or its range overlaps another
 * one or was lost. It gets no mapping, and its ranges are not handed out. */
typedef struct waybill_held_pod {
  waybill_string pod_uid; /* empty: ranges of unknown pods were lost */
  /* Empty: the range is unknown, so no new range can be handed out to any pod. */
  const waybill_host_id_range* ranges;
  size_t range_count;
  waybill_string source; /* the file, below the kubelet directory; or empty */
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
/* Whether images on the node may have been pulled unrecorded, by a kubelet without waybill or
 * without the feature (KEP-2535, "What happens if we reenable the feature"). */
enum {
  /* Under WAYBILL_RULES_CLOSED, look for signs in the kubelet directory: files that a kubelet wrote
   * since the last take-over. At the first take-over, if a kubelet has used the directory, an open
   * pull of anything stands for pulls that it cut short; waybill_open_options.first_start decides
   * about the images then on the node. */
  WAYBILL_GAP_DETECT = 0,
  WAYBILL_GAP_YES = 1,
  WAYBILL_GAP_NO = 2
};
/* What a first start makes of images that have neither record nor open pull. Nobody can tell
 * whether a kubelet pulled them before it kept records (KEP-2535, "What happens if we reenable the
 * feature"). */
enum {
  /* they enter the ledger as presumed: open, as a kubelet presumes */
  WAYBILL_FIRST_START_PRESUME = 0,
  WAYBILL_FIRST_START_CLOSE = 1 /* they get records without credentials, as after a gap */
};

/* CLOCK_BOOTTIME and the boot ID. Called on any thread. */
typedef waybill_boot_time (*waybill_boot_clock)(void* context);

/* What an image string without a registry host may name on this node. */
enum {
  /* the runtime may complete it, or have an alias for it (CRI-O) */
  WAYBILL_SHORT_NAMES_ANYWHERE = 0,
  WAYBILL_SHORT_NAMES_DOCKER_HUB = 1 /* the runtime completes it with docker.io only (containerd) */
};
/* "anywhere", "docker.io" */
WAYBILL_API waybill_string waybill_short_names_name(int32_t short_names);
/* The inverse. WAYBILL_INVALID_ARGUMENT for any other spelling. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_parse_short_names(waybill_string name,
                                                                      int32_t* short_names,
                                                                      waybill_error** error);

/* Which names the pull could have given an image: "r.example/x:1", "r.example/x@…", or "anything".
 */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_names_given_by(const waybill_open_pull* pull,
                                                                   int32_t short_names,
                                                                   waybill_strings** names,
                                                                   waybill_error** error);

/* How long a pull stays open after it ended, since its image may still arrive. Grace and window are
 * measured by CLOCK_BOOTTIME, from the end of the pull to the token of a complete list. Each is 0
 * to 10 years. */
typedef struct waybill_evidence_options {
  size_t struct_size;
  int64_t grace_seconds;    /* after a failure that the runtime reported; 0: 2 minutes */
  int64_t window_seconds;   /* after an unknown end; a reboot ends it, too; 0: 2 hours */
  int32_t short_names;      /* WAYBILL_SHORT_NAMES_… */
  int64_t remember_seconds; /* of images that are gone; 0: the default, 30 days. < 0: not at all */
} waybill_evidence_options;
#define WAYBILL_EVIDENCE_OPTIONS_INIT WAYBILL_INIT(waybill_evidence_options)

/* How long a proof counts, in seconds. 0: for ever; otherwise 60 to 315,360,000 (10 years), or the
 * call is WAYBILL_INVALID_ARGUMENT. Past the limit a matching credential gives "pull",
 * WAYBILL_REASON_PROOF_TOO_OLD, until a pull proves it again. */
typedef struct waybill_age_limits {
  size_t struct_size;
  int64_t credentials_seconds;      /* Secrets and service accounts */
  int64_t service_accounts_seconds; /* a shorter one for these; 0: as credentials_seconds */
  int64_t node_pods_seconds;        /* of images that were pulled without credentials */
  /* How long a revocation is kept at least: 86,400 (a day) to 315,360,000; 0: the default, 30 days.
   * / */
  int64_t revocations_seconds;
} waybill_age_limits;
#define WAYBILL_AGE_LIMITS_INIT WAYBILL_INIT(waybill_age_limits)

/* A trace of what the owner does, for whoever plans capacity (docs/trace.md). No call fails for it:
 * what can't be written is dropped, and waybill_metrics counts it. */
typedef struct waybill_trace_options {
  size_t struct_size;
  /* A file of the caller's, outside the store's directory; empty: no trace. Beside it come path.1,
   * … and path.salt. */
  waybill_string path;
  uint64_t max_file_bytes; /* 262,144 or more; 0: 16 MiB */
  uint32_t files;          /* 1 to 100; 0: 4 */
} waybill_trace_options;
#define WAYBILL_TRACE_OPTIONS_INIT WAYBILL_INIT(waybill_trace_options)

/* All zero but struct_size, directory and witness_kind: the defaults. */
typedef struct waybill_open_options {
  size_t struct_size;
  /* The store's own directory. If it is missing, create_if_missing makes it (0700); its parent must
   * exist. An existing one must be a directory, not a symlink, owned by the caller, and neither
   * group- nor world-writable. A store is made only in a directory that holds nothing except
   * remains of a store or the lost+found of a file system, and never in kubelet_directory itself:
   * otherwise WAYBILL_UNSAFE_PATH. */
  waybill_string directory;
  bool must_exist; /* otherwise a missing store is created */
  bool no_migration;
  bool allow_empty;     /* accept an empty images_on_node or runtime_handlers */
  bool skip_unreadable; /* otherwise a read error of the disk is WAYBILL_IO */
  int32_t witness_kind;
  waybill_string witness_path; /* for WAYBILL_WITNESS_AT and _ANEW only */
  int32_t rules;               /* WAYBILL_RULES_CLOSED … */
  /* WAYBILL_GAP_DETECT …; After a gap each image in images_on_node without a record gets one
   * without credentials, and the report names it; without that list the store turns distrustful. */
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
  /* Counts the values of the migration. If it stops the migration, the store is as before the step
   * (WAYBILL_INTERRUPTED). */
  waybill_progress migration_progress;
  void* migration_context;
  const waybill_images_on_node* preloaded;  /* NULL: none; an entry without an ID names its image */
  const waybill_evidence_options* evidence; /* NULL: the defaults */
  bool continues_pulls;          /* otherwise pulls left running count as ended, outcome unknown */
  bool leaves_witness;           /* opening reads the witness, but neither makes nor writes it */
  waybill_boot_clock boot_clock; /* NULL: the system's */
  void* boot_clock_context;
  bool flushes_twice;                 /* each commit flushes the disk twice, even if once is safe */
  const waybill_age_limits* ages;     /* the store remembers them; NULL: as remembered */
  int32_t first_start;                /* WAYBILL_FIRST_START_… */
  const waybill_trace_options* trace; /* NULL: none */
} waybill_open_options;
#define WAYBILL_OPEN_OPTIONS_INIT WAYBILL_INIT(waybill_open_options)

typedef struct waybill_observe_options {
  size_t struct_size;
  waybill_string directory;
  int32_t rules; /* WAYBILL_RULES_CLOSED … */
  const waybill_policy* policy;
  const waybill_user_namespace_options* user_namespaces;
  waybill_clock clock;
  void* clock_context;
  int32_t short_names;            /* for waybill_explain */
  const waybill_age_limits* ages; /* NULL: those of the owner */
  /* A store that no process owns is read whatever its witness says, so it may be an older copy.
   * This is for showing its content: every decision is "pull". */
  bool ignores_witness;
} waybill_observe_options;
#define WAYBILL_OBSERVE_OPTIONS_INIT WAYBILL_INIT(waybill_observe_options)

typedef struct waybill_store waybill_store;

/* Opens as the only owner: takes the lock, walks the pages, opens LMDB, checks header and witness,
 * imports, replays. Idempotent: after a crash or an error at any point, open again. These errors
 * leave the store unchanged: WAYBILL_OWNED (another process owns it, this process has it open, or
 * data.mdb changes while it is checked), WAYBILL_UNSAFE_PATH, WAYBILL_NEWER_SCHEMA,
 * WAYBILL_OLDER_SCHEMA, WAYBILL_INVALID_ARGUMENT (options), WAYBILL_NOT_FOUND (create_if_missing is
 * false, or pods_directory does not exist); but with WAYBILL_OLDER_SCHEMA or WAYBILL_NEWER_SCHEMA,
 * a commit that a crash cut short may have been undone. After WAYBILL_DISK_FULL, WAYBILL_IO,
 * WAYBILL_STORE_FULL, WAYBILL_CONFLICT, WAYBILL_OUTCOME_UNKNOWN, WAYBILL_INVALID_ARGUMENT (an empty
 * list; see waybill_open_options.allow_empty) and WAYBILL_INTERRUPTED (import_progress returned
 * false), what was recovered and imported so far is kept. A damaged database is not an error: it is
 * set aside, and recovery_report says so. Nor is it an error if the witness is missing, unreadable
 * or contradicts the store: the store turns distrustful, its records lose their credentials, and
 * `findings` says why. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_open(const waybill_open_options* options,
                                                         waybill_store** store,
                                                         waybill_error** error);

/* Opens to decide and to read, with or without a live owner. Changes nothing; every recording
 * function returns WAYBILL_NOT_OWNER. Needs write permission for the reader table
 * (WAYBILL_UNSAFE_PATH otherwise). WAYBILL_NOT_FOUND: no store. WAYBILL_DAMAGED: the store fails
 * the walk, or its witness is missing or contradicts it; opening it as an owner recovers it.
 * WAYBILL_OWNED: this process has the store open already, or data.mdb changes while it is checked.
 * WAYBILL_OLDER_SCHEMA: an owner must migrate it. WAYBILL_NEWER_SCHEMA, WAYBILL_IO as for Open. */
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

/* Answers other processes from now on, on threads of its own: through the socket owner.sock (0600)
 * in the store's directory, waybill_owner_client asks for what only the owner may do. Clients are
 * root and this process's effective user. None of them can delay a decision or Close, however it
 * behaves. A socket left by an owner that has ended is replaced. Serving ends with Close or
 * destruction, which wait for running requests and remove the socket. Errors, which leave
 * everything as it was: WAYBILL_CONFLICT (this store serves already), WAYBILL_UNSAFE_PATH
 * (owner.sock is not a socket of this user, and is left alone), WAYBILL_INVALID_ARGUMENT (options),
 * WAYBILL_LIMIT_EXCEEDED (the path has more than 107 bytes, and /proc is not mounted),
 * WAYBILL_NOT_OWNER, WAYBILL_DISK_FULL, WAYBILL_IO; WAYBILL_OWNED and WAYBILL_OUTCOME_UNKNOWN as in
 * "Recording a pull". `options` may be NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_serve(waybill_store* store,
                                                          const waybill_serve_options* options,
                                                          waybill_error** error);

/* Commits waiting write-backs, syncs the witness, releases the lock. Later calls fail closed:
 * decisions answer "pull", and every other call that can fail returns WAYBILL_CLOSED. Do not call
 * it while another call runs. An error concerns only write-backs (as of Flush), the witness
 * (WAYBILL_DAMAGED: it was removed, replaced or changed while the store was open) or commit.mark
 * (WAYBILL_IO: it could not be written); the store is closed all the same. A second call is
 * WAYBILL_CLOSED. */
WAYBILL_API waybill_code waybill_close(waybill_store* store, waybill_error** error);

/* Closes the store if it is open, and frees the handle; no other call may use it then. NULL is
 * allowed. Called from a callback of this store, it does nothing. */
WAYBILL_API void waybill_store_free(waybill_store* store);

/* --- What opening did ---------------------------------------------------------------------------
 */

/* A step between two schema versions. */
typedef struct waybill_migration_step {
  uint32_t from;
  uint32_t to;
  waybill_string name;
  uint64_t values_written;
} waybill_migration_step;

/* What a migration did, or what a dry run would do. */
typedef struct waybill_migration_report {
  uint32_t from; /* equal to `to`: nothing to do */
  uint32_t to;
  const waybill_migration_step* steps; /* done; in a dry run, planned */
  size_t step_count;
  waybill_string backup; /* made before the first step; empty in a dry run */
  /* What going down loses, one line each, with the images that must be verified again. */
  waybill_strings losses;
} waybill_migration_report;

/* What loading a list of handlers changed. */
typedef struct waybill_runtimes_report {
  waybill_strings added;
  waybill_strings vanished; /* their records stay until they are pruned */
  /* Handlers whose guest platform changed, and the default if its name changed: their images must
   * be verified again. */
  waybill_strings changed;
  uint64_t records_to_verify; /* lost their credentials through that */
  /* Runtime classes were off before. Leftovers from an earlier time with handlers were cleaned up.
   */
  bool turned_on;
  uint64_t records_collapsed;
  uint64_t intents_collapsed;
} waybill_runtimes_report;

/* What importing a kubelet directory did. Files that have not changed since an earlier import count
 * as `unchanged` only. */
typedef struct waybill_import_report {
  uint64_t files_seen;
  uint64_t unchanged;
  uint64_t records;     /* taken from pulled/ */
  uint64_t intents;     /* taken from pulling/ */
  uint64_t preloaded;   /* taken from observed-preloaded/ */
  uint64_t known_refs;  /* changed files of refs that the store knows already: not taken */
  uint64_t quarantined; /* quarantine entries made */
  uint64_t skipped;     /* names that are not the kubelet's, and unfinished .tmp files */
  bool interrupted;
  /* The first file in pulled/ or pulling/ that a kubelet wrote since the last import; may be empty.
   */
  waybill_string newly_written;
  waybill_strings problems; /* one line for each unreadable file; the first 100 */
} waybill_import_report;

/* What opening found and did about ranges. */
typedef struct waybill_user_namespace_report {
  uint64_t files_seen;
  uint64_t unchanged;       /* files whose mappings the store already has */
  uint64_t imported;        /* mappings taken */
  uint64_t held;            /* pods held by this import, or still held for the same reason */
  uint64_t repaired_blocks; /* block table entries that contradicted allocations */
  waybill_strings problems; /* one line a pod; the first 100 */
  uint64_t allocations;     /* after opening */
  uint64_t held_pods;
  uint64_t outside_pool;
  uint64_t other_length;
  waybill_strings off_pool;       /* UIDs of the pods of both; the first 100 */
  waybill_string refused_because; /* As in waybill_user_namespace_statistics. */
} waybill_user_namespace_report;

/* What became of an image that was judged. */
typedef struct waybill_judged_image {
  waybill_string image_ref;
  waybill_string runtime_handler;
  waybill_string name;    /* its first name, or its ref */
  bool preloaded;         /* it is in the ledger now; otherwise it is closed */
  waybill_string because; /* one sentence, no full stop */
} waybill_judged_image;

/* What a list of images did (waybill_observe_images). */
typedef struct waybill_observe_report {
  uint64_t listed;            /* entries of the list */
  uint64_t repeated;          /* of those, an image that was in the list already */
  uint64_t not_names;         /* names that do not parse, and so do not count */
  uint64_t known;             /* had a record or a ledger entry, or are in quarantine */
  uint64_t preloaded;         /* entered the ledger */
  uint64_t closed;            /* got a record without credentials */
  uint64_t left;              /* neither: left to a later list, or the store judges nothing */
  uint64_t united;            /* records under another spelling of the same image, now one */
  uint64_t pulls_settled;     /* open pulls that can bring nothing any more */
  uint64_t records_removed;   /* of images that are not listed */
  uint64_t preloaded_removed; /* ledger entries likewise */
  const waybill_judged_image* judged; /* the first 1000 of each kind */
  size_t judged_count;
  waybill_strings shared_digests;    /* of two images, so of neither; first 100 */
  waybill_string not_judged_because; /* Why no image was judged; empty: images were judged. */
} waybill_observe_report;

/* What opening did. */
typedef struct waybill_recovery_report {
  bool created;                         /* the store is new */
  bool set_aside;                       /* the database failed its check; see set_aside_path */
  waybill_string set_aside_path;        /* where the failed one is kept */
  waybill_strings removed_paths;        /* set aside earlier, now deleted (3 are kept) */
  uint64_t records_carried;             /* into the rebuilt store */
  uint64_t records_without_credentials; /* of those: must be verified again */
  uint64_t intents_carried;
  bool witness_made;        /* the witness was missing, and a new one was made */
  bool witness_in_store;    /* it lies in the store's directory and would be lost with it */
  waybill_strings findings; /* what was wrong, one line each */
  /* Files and folders of the store that other users could read or write, and now can't: one line
   * each, with the old and the new mode. */
  waybill_strings mended;
  /* Problems that change no answer, but that an operator should know: the file system does not
   * guarantee what the store needs. */
  waybill_strings warnings;
  bool distrustful;
  waybill_string distrust_reason;
  /* What was done to a store of an older schema; NULL: it had the newest. */
  const waybill_migration_report* migration;
  /* What a new list of runtime handlers changed; NULL: no list was given. */
  const waybill_runtimes_report* runtimes;
  const waybill_import_report* import;                  /* never NULL */
  const waybill_user_namespace_report* user_namespaces; /* never NULL */
  /* Pulls may be unrecorded (waybill_open_options.gap), and why the store assumes so. */
  bool after_gap;
  waybill_string gap_reason;
  uint64_t gap_closed;        /* images that had neither record nor ledger entry */
  waybill_strings gap_images; /* their names, or refs; the first 1000 */
  uint64_t intents_found;     /* left by an earlier process; WAYBILL_RULES_CLOSED: open pulls */
  uint64_t intents_replayed;  /* those whose image was on the node: a record closed it */
  uint64_t intents_left;      /* still stored when opening ended */
  waybill_strings replayed;   /* their image strings; the first 100 */
  bool replay_skipped;        /* no list of images was given to replay against */
  uint64_t readers_cleared;   /* slots of readers that died */
  uint64_t records;           /* after opening */
  uint64_t quarantine_entries;
  uint64_t commit_sequence;
  /* WAYBILL_RULES_CLOSED: the store had a time more than a day ahead of the clock, and now follows
   * the clock again. Empty: it had not. */
  waybill_string clock_was_ahead;
  /* Records with a time in the future, which now have the time of this opening. */
  uint64_t times_mended;
  /* WAYBILL_RULES_CLOSED: what judging images_on_node did. NULL: there was no list. */
  const waybill_observe_report* observed;
  bool first_start; /* the list was judged as that of a first start */
  /* A crash had cut the last commit short, before anybody was told of it, and the commit was
   * undone. False if the database failed its check even then (set_aside). */
  bool commit_undone;
  /* The directory of the store that this one was copied or moved from, and to which the witness
   * still belongs. This store reads the witness but does not write it, so an older copy of this
   * store may go unnoticed. Empty: the witness is this store's. In an observer's report nothing
   * else is set. */
  waybill_string copy_of;
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

/* A label `result` of kubelet_imagemanager_image_mustpull_checks_total. WAYBILL_CHECK_NOT_COUNTED:
 * the image is not on the node, and the metric does not count it. */
enum {
  WAYBILL_CHECK_NOT_COUNTED = 0,
  WAYBILL_CHECK_CREDENTIAL_POLICY_ALLOWED = 1,
  WAYBILL_CHECK_CREDENTIAL_RECORD_FOUND = 2,
  WAYBILL_CHECK_MUST_AUTHENTICATE = 3,
  WAYBILL_CHECK_ERROR = 4
};
WAYBILL_API waybill_string waybill_check_result_name(int32_t result);

/* Why a decision was made, one step finer than WAYBILL_CHECK_…. waybill_reason_text explains each
 * in a sentence. */
enum {
  WAYBILL_REASON_IMAGE_ABSENT = 0,          /* the image ref is empty: not on the node */
  WAYBILL_REASON_POLICY_NEVER_VERIFIES = 1, /* NeverVerify */
  /* WAYBILL_RULES_KUBELET: no record, no intent, nothing lost */
  WAYBILL_REASON_POLICY_PRESUMED_PRELOADED = 2,
  WAYBILL_REASON_POLICY_ALLOWLISTED = 3,
  WAYBILL_REASON_NODE_PODS_ACCESSIBLE = 4,
  WAYBILL_REASON_SECRET_HASH_MATCHES = 5,
  WAYBILL_REASON_SECRET_COORDINATES_MATCH = 6,
  WAYBILL_REASON_SERVICE_ACCOUNT_MATCHES = 7,
  WAYBILL_REASON_NO_RECORD = 8, /* verification required, but no record to verify against */
  /* WAYBILL_RULES_KUBELET: no record, but a pull of this image began */
  WAYBILL_REASON_PULL_IN_FLIGHT = 9,
  WAYBILL_REASON_STORE_DISTRUSTFUL = 10, /* no record, but the store may have lost it */
  /* no record of this handler's copy, but one of another's */
  WAYBILL_REASON_PULLED_FOR_OTHER_HANDLER = 11,
  WAYBILL_REASON_NO_ENTRY_FOR_IMAGE_NAME = 12,
  WAYBILL_REASON_ENTRY_WITHOUT_CREDENTIALS = 13,
  WAYBILL_REASON_NO_CREDENTIAL_MATCHES = 14,
  WAYBILL_REASON_IMAGE_DOES_NOT_PARSE = 15,
  WAYBILL_REASON_ARGUMENT_TOO_LONG = 16, /* an image, ref or handler above limits.h */
  WAYBILL_REASON_RUNTIME_HANDLER_UNKNOWN = 17,
  WAYBILL_REASON_RECORD_DAMAGED = 18,
  WAYBILL_REASON_QUARANTINED = 19,             /* an import file for this image could not be read */
  WAYBILL_REASON_CREDENTIALS_UNAVAILABLE = 20, /* the waybill_credential_source failed */
  WAYBILL_REASON_STORE_UNAVAILABLE = 21,  /* closed, out of reader slots, or in an unknown state */
  WAYBILL_REASON_CREDENTIALS_NEEDED = 22, /* the answer depends on credentials that are deferred */
  WAYBILL_REASON_POLICY_KNOWN_PRELOADED = 23, /* WAYBILL_RULES_CLOSED: the image is in the ledger */
  /* WAYBILL_RULES_CLOSED: no record, and not in the ledger (Explain says more) */
  WAYBILL_REASON_NO_EVIDENCE = 24,
  /* A credential matches, but was proven too long ago (waybill_age_limits), or ended
   * (waybill_proof.good_until). */
  WAYBILL_REASON_PROOF_TOO_OLD = 25,
  /* one matches, but waybill_proof_counts says that it does not */
  WAYBILL_REASON_PROOF_NOT_BY_REGISTRY = 26
};
/* "secretHashMatches" */
WAYBILL_API waybill_string waybill_reason_name(int32_t reason);
WAYBILL_API waybill_string waybill_reason_text(int32_t reason); /* one sentence, no full stop */

typedef struct waybill_decision {
  bool pull;             /* Fail-closed: a default-made Decision says "pull". */
  bool credentials_read; /* whether the decision used them */
  uint8_t result;        /* WAYBILL_CHECK_… */
  uint8_t reason;        /* WAYBILL_REASON_… */
} waybill_decision;

/* KEP-2535, MustAttemptImagePull. Needs all of `copy`. Never fails: if something can't be read,
 * verified or understood, the answer is "pull". Takes no lock that another thread holds, waits for
 * no write, and allocates nothing unless something is in quarantine or credentials are fetched
 * late. A credential that matched by hash or by coordinates only is queued to be written back
 * (Flush waits for that); an observer does not write back. Under WAYBILL_RULES_KUBELET a decision
 * that would be "pull" first waits for the write-backs that are queued for the ref. Credentials of
 * another handler's copy do not count, but a record or intent under any handler shows that the
 * kubelet pulled the image (KEP-4216). A handler that is not in the registry: "pull",
 * WAYBILL_REASON_RUNTIME_HANDLER_UNKNOWN. `credentials` NULL: they are unavailable; if the answer
 * depends on them, it is "pull", WAYBILL_REASON_CREDENTIALS_UNAVAILABLE. (A pod without credentials
 * passes an empty struct, not NULL.) */
WAYBILL_API WAYBILL_MUST_CHECK waybill_decision waybill_must_attempt_pull(
    waybill_store* store, waybill_image_copy copy, const waybill_pod_credentials* credentials);
/* The same, with credentials that are fetched only if needed. `fetch` NULL: as if it failed. */
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
/* "IfNotPresent" */
WAYBILL_API waybill_string waybill_pull_policy_name(int32_t policy);
/* The inverse. WAYBILL_INVALID_ARGUMENT for any other spelling. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_parse_pull_policy(waybill_string name,
                                                                      int32_t* policy,
                                                                      waybill_error** error);

/* What the kubelet does next. */
enum {
  /* ask the runtime to pull: record the intent before, the outcome after */
  WAYBILL_ENSURE_PULL = 0,
  WAYBILL_ENSURE_USE_PRESENT = 1,        /* start the container with the image on the node */
  WAYBILL_ENSURE_INVALID_IMAGE_NAME = 2, /* the kubelet's InvalidImageName */
  WAYBILL_ENSURE_NEVER_PULL = 3,         /* the kubelet's ErrImageNeverPull */
  /* WAYBILL_RULES_KUBELET only: the pod's credentials are not available */
  WAYBILL_ENSURE_CREDENTIALS_ERROR = 4
};
/* "ErrImageNeverPull" */
WAYBILL_API waybill_string waybill_ensure_action_name(int32_t action);

typedef struct waybill_ensure_outcome {
  int32_t action; /* WAYBILL_ENSURE_PULL … */
  bool decided;   /* whether a decision was needed, and `decision` is set */
  /* For the node's own log, never for the pod. NULL: no decision was needed. */
  waybill_decision decision;
  waybill_string message; /* what the pod may see */
} waybill_ensure_outcome;

/* The kubelet's outer question: pull, use the image on the node, or refuse. If the call fails (a
 * code other than WAYBILL_OK), do not start the container. `credentials`, `fetch` and `first_look`
 * as above; an outcome with the reason WAYBILL_REASON_CREDENTIALS_NEEDED is not final, and not
 * counted. WAYBILL_INVALID_ARGUMENT also for a `first_look` of NULL. */
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
 * WAYBILL_STORE_FULL and WAYBILL_OUTCOME_UNKNOWN as for a recording; a failed write-back is
 * dropped, and the next decision that needs it queues it again. Does nothing for an observer. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_flush(waybill_store* store,
                                                          waybill_error** error);

/* --- Recording a pull (owner) -------------------------------------------------------------------
 * Each call is one transaction, on disk when it returns. WAYBILL_INVALID_ARGUMENT,
 * WAYBILL_LIMIT_EXCEEDED, WAYBILL_CONFLICT, WAYBILL_NOT_OWNER, WAYBILL_OWNED, WAYBILL_STORE_FULL,
 * WAYBILL_DISK_FULL, WAYBILL_IO: the store is as before. WAYBILL_OUTCOME_UNKNOWN: the commit may or
 * may not have happened; decisions answer "pull" until the store is closed and opened again. */

/* Records that a pull begins. Call it before each pull, and after the pull exactly one of
 * waybill_record_image_pulled and waybill_record_image_pull_failed. Counts the pull as in flight,
 * and returns its ID, by which a later process can end it, too. WAYBILL_LIMIT_EXCEEDED also above
 * 65,536. The image need not parse. Ignores copy.image_ref. Under WAYBILL_RULES_CLOSED each call
 * makes an open pull of its own; under WAYBILL_RULES_KUBELET an image has one intent, whose ID
 * every call returns. `pull` may be NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_record_pull_intent(waybill_store* store,
                                                                       waybill_image_copy copy,
                                                                       waybill_pull_id* pull,
                                                                       waybill_error** error);

/* What a caller says of the proof that a pull brought, beside that it succeeded. */
typedef struct waybill_proof_terms {
  int32_t checker; /* WAYBILL_CHECKER_UNKNOWN … */
  /* Until when the credential is good by its own word: a token's `exp`, a credential provider's
   * cacheDuration. Its fraction of a second does not count. NULL: it does not say. */
  const waybill_timestamp* good_until;
} waybill_proof_terms;

/* What the runtime says of a pull that succeeded. */
typedef struct waybill_pull_result {
  size_t struct_size;
  waybill_pull_id pull;                    /* as waybill_record_pull_intent returned it */
  const waybill_pulled_manifest* manifest; /* which one of an index it was; NULL: none */
  /* the runtime's entry, for the image's spellings; NULL: none */
  const waybill_image_on_node* image;
  waybill_proof_terms terms; /* who checked the credentials, and how long they last */
} waybill_pull_result;
#define WAYBILL_PULL_RESULT_INIT WAYBILL_INIT(waybill_pull_result)

/* Records that the pull succeeded. Merges `credentials` into the record of copy.image_ref (the ref
 * that the runtime returned after the pull), drops one in-flight count of copy.image, and clears
 * the quarantine entries of both. NULL: credentials unknown; the record then only says that the
 * kubelet pulled it. WAYBILL_INVALID_ARGUMENT: the image does not parse, or the ref is empty;
 * intent and count stay (kubelet behaviour). An unreadable record is replaced. `result.manifest` is
 * kept with the record (digest and platform, if within their bounds). If the manifest or the guest
 * platform differs from the record's, it is another image: proofs for the old one are dropped.
 * `result.terms` are kept with each proof. WAYBILL_RULES_CLOSED removes only the open pull
 * `result.pull`; without an ID, the newest running pull of this string, or else the newest of
 * unknown end. Without an ID it may be any of these, so credentials forgotten since the oldest of
 * them began are not proven. A record under another spelling of the image is taken over: it is then
 * stored under this ref. WAYBILL_RULES_KUBELET removes the intent when no count is left. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_record_image_pulled(waybill_store* store, waybill_image_copy copy,
                            const waybill_image_pull_credentials* credentials,
                            const waybill_pull_result* result, waybill_error** error);

/* How a pull that did not succeed ended. WAYBILL_RULES_KUBELET treats all alike. */
enum {
  WAYBILL_PULL_FAILED = 0, /* the runtime reports an error; something may have been transferred */
  /* time-out, cancelled, connection lost: the image may still arrive */
  WAYBILL_PULL_OUTCOME_UNKNOWN = 1,
  /* the runtime reported an error, was asked afterwards, and said that the image is not there */
  WAYBILL_PULL_NOTHING_TRANSFERRED = 2
};
/* Records that the pull did not succeed. Drops one in-flight count. Ignores copy.image_ref.
 * WAYBILL_RULES_CLOSED chooses the open pull as waybill_record_image_pulled does, removes it after
 * WAYBILL_PULL_NOTHING_TRANSFERRED, and otherwise marks it failed or unknown; without an ID it then
 * counts as begun with the oldest that it may be. WAYBILL_RULES_KUBELET removes the intent when no
 * count is left. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_record_image_pull_failed(waybill_store* store, waybill_image_copy copy, int32_t failure,
                                 waybill_pull_id pull, waybill_error** error);

/* What kind of error a pull ended with, for metrics alone. Numbers do not change. */
enum {
  WAYBILL_PULL_ERROR_UNKNOWN = 0, /* nobody said */
  WAYBILL_PULL_ERROR_AUTH = 1, /* the registry refused the credentials, or wants some: 401, 403 */
  WAYBILL_PULL_ERROR_NOT_FOUND = 2, /* it has no such image: 404 */
  /* it can't be reached, or does not serve now: time-outs, 429, 5xx */
  WAYBILL_PULL_ERROR_UNAVAILABLE = 3,
  WAYBILL_PULL_ERROR_OTHER = 4 /* an error of none of these kinds */
};
/* Reads the text of an error of containerd, CRI-O, a CRI client or a kubelet; of an empty text
 * nothing is known. Metrics go by it, and no decision: registries choose some of these words. Never
 * fails; thread-safe. */
WAYBILL_API int32_t waybill_classify_pull_error(waybill_string text);
/* How a pull did not succeed, and why. */
typedef struct waybill_pull_error {
  size_t struct_size;
  int32_t failure;      /* WAYBILL_PULL_FAILED … */
  int32_t error_class;  /* WAYBILL_PULL_ERROR_UNKNOWN … */
  waybill_pull_id pull; /* 0: it is not named */
} waybill_pull_error;
#define WAYBILL_PULL_ERROR_INIT WAYBILL_INIT(waybill_pull_error)
/* As waybill_record_image_pull_failed, which counts it as of no known class:
 * waybill_store_counters.pulls. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_record_image_pull_error(waybill_store* store, waybill_image_copy copy,
                                const waybill_pull_error* failed, waybill_error** error);

/* Options of changes that delete. */
typedef struct waybill_change_options {
  size_t struct_size;
  /* Accepts an empty list. A runtime that starts up lists nothing, so an empty list is otherwise
   * WAYBILL_INVALID_ARGUMENT if it would delete something. For waybill_observe_images also: the
   * list counts although it has none of the known images. */
  bool allow_empty;
  bool dry_run; /* Makes the change, reports it, and undoes it: nothing reaches the disk. */
} waybill_change_options;
#define WAYBILL_CHANGE_OPTIONS_INIT WAYBILL_INIT(waybill_change_options)

/* --- Evidence (owner) ---------------------------------------------------------------------------
 * Under WAYBILL_RULES_CLOSED an image is open for one of two reasons: a credential was proven for
 * it, or it is in the ledger of images that came to the node without the kubelet. Under
 * WAYBILL_RULES_KUBELET there is no ledger. Errors as in "Recording a pull"; of those that read, as
 * in "Whole records". */

/* Says how old a list of images or pods is at most. It is drawn before the list is made
 * (waybill_begin_list), so whatever the store learns later is newer than the token. */
typedef struct waybill_list_token {
  uint64_t commit; /* the commit sequence then */
  waybill_boot_time drawn;
  uint64_t store; /* which store drew it; any other refuses it */
} waybill_list_token;

/* Draws a token. Call it before you list the images, the pods (waybill_clean_up_user_namespaces),
 * or the Secrets and service accounts (waybill_reconcile). */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_begin_list(waybill_store* store,
                                                               waybill_list_token* token,
                                                               waybill_error** error);

typedef struct waybill_image_list {
  size_t struct_size;
  waybill_images_on_node images;
  const waybill_list_token* token; /* NULL: the list can't be placed in time */
  bool complete;                   /* everything that the runtime has, unfiltered */
  waybill_string source;           /* who made the list; empty: the runtime */
  /* IDs of listed images that no pull brought, as the runtime shows. Never name one by guessing: it
   * is then open to all pods. Ignored in a list with a source. */
  waybill_strings imported;
  /* Pulls that ended by this moment can't bring an image that the list lacks: the runtime showed
   * that before it made the list. NULL: the runtime was not asked. */
  const waybill_boot_time* quiet_until;
  /* Names that the runtime has, but that the list does not show yet. quiet_until does not end a
   * pull that could have given one of them. */
  waybill_strings names_to_come;
  /* Bytes of each of images on the node's disk, 0: unknown; as many as images. NULL: none is known.
   * For a trace alone. */
  const uint64_t* sizes;
} waybill_image_list;
#define WAYBILL_IMAGE_LIST_INIT WAYBILL_INIT(waybill_image_list)

/* Learns the spellings of each listed image, unites records that turn out to be of one image, and
 * judges each image that has neither record nor ledger entry, once. A name that no open pull could
 * have given it proves that it came without the kubelet: it enters the ledger. Otherwise it gets a
 * record without credentials, and is closed until a pod proves some. A pull of `repo:tag` could
 * have given that tag and any `repo@digest`, one with a digest any `repo@digest`, and one without a
 * registry host any name (waybill_evidence_options.short_names). If only a pull that began after
 * the token could have given a name, the image is left to a later list. Names that do not parse do
 * not count. An image that may be the same as one known under another ID or digest is closed, or
 * takes over that image's ledger entry. A distrustful store judges nothing. After a gap
 * (waybill_open_options.gap) a complete list closes each image that has neither record nor ledger
 * entry, and ends the gap. If the runtime shows that nobody pulled an image
 * (waybill_image_list.imported), it enters the ledger in each of these cases, even if a list closed
 * it before, or if it was pulled and a complete list lacked it since. It does not if an operator
 * closed it, if the pulled image was never gone, or if a record is of another handler's copy; an
 * entry without a handler is about every copy if all of the image's entries say so. What the
 * runtime pins enters the ledger after a gap, too, unless an open pull names it; a list without a
 * token leaves it to a later one.
 *
 * A complete list also drops open pulls that can bring nothing any more (waybill_evidence_options,
 * waybill_image_list.quiet_until). Records and ledger entries of images that are not on it are
 * remembered, unless they are newer than its token (waybill_evidence_options.remember_seconds;
 * 10,000 of each, the oldest go first). If the image comes back without a recorded pull, its record
 * counts again, less what was forgotten or grew too old. Its ledger entry counts again if the image
 * has one of the entry's names that no open pull could have given it, and the image does not come
 * back in a gap. A pull that succeeds begins anew: what was proven before the image was gone no
 * longer counts. If a list leaves an image unjudged, it does not remove what may be known of that
 * image under another ref. A list that has none of the images that the store knows may come from
 * another runtime, or the disk may not be mounted. Such a list settles no pull and closes no gap,
 * and in a gap it leaves the ledger entries of images without a record as they are, unless
 * waybill_change_options.allow_empty confirms it. A list without a token closes images, and does
 * nothing else. A list that changes nothing is not written, and a later process knows of its token
 * only if something was written since. WAYBILL_INVALID_ARGUMENT: a token from the future, of
 * another store, or older than that of a list observed before (nothing was changed: list again);
 * or, if remembering is off, an empty complete list although there are records, open pulls or
 * ledger entries (waybill_change_options.allow_empty). WAYBILL_LIMIT_EXCEEDED: more than 200,000
 * images. `report` may be NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_observe_images(
    waybill_store* store, const waybill_image_list* list, const waybill_change_options* options,
    waybill_observe_report** report, waybill_error** error);

/* Notes a gap while the store is open, as WAYBILL_GAP_YES does at opening: nobody recorded a pull
 * that happened or may still happen, since whoever records for a kubelet missed it. The store is
 * distrustful until the next complete list, which closes each image that has neither record nor
 * ledger entry, and leaves an open pull of anything. Does nothing while a gap is open already.
 * `why` (1 to 1,024 bytes, WAYBILL_INVALID_ARGUMENT otherwise) goes into the journal of trust. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_note_gap(waybill_store* store,
                                                             waybill_string why,
                                                             waybill_error** error);
/* Lists all open pulls, the oldest first. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_open_pulls(waybill_store* store,
                                                                    waybill_open_pulls** pulls,
                                                                    waybill_error** error);
/* Records an operator's word that this pull brought nothing, and will bring nothing. The reason (1
 * to 1,024 bytes) goes into the journal of trust. WAYBILL_NOT_FOUND: there is no such pull.
 * WAYBILL_CONFLICT: it runs in this process. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_drop_open_pull(waybill_store* store, waybill_pull_id pull, waybill_string reason,
                       const waybill_change_options* options, waybill_error** error);

/* Lists all ledger entries, sorted by image ref and handler; also those that are only remembered
 * since their image is gone, which open nothing (waybill_ledger_entry.absent_since). */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_ledger(waybill_store* store,
                                                                waybill_ledger_entries** entries,
                                                                waybill_error** error);
/* Records an operator's word that this image is preloaded, so that lists do not judge it.
 * `image.id` is any spelling of it; its names are kept. `source` and `reason`: 1 to 1,024 bytes.
 * Records of the image stay, but an operator's closing of this copy is taken back; its quarantine
 * stays, too, and closes it all the same. WAYBILL_INVALID_ARGUMENT: no ID, or a digest that two
 * images have. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_add_to_ledger(
    waybill_store* store, const waybill_image_on_node* image, waybill_string source,
    waybill_string reason, const waybill_change_options* options, waybill_error** error);
/* Records an operator's word that the image is not preloaded, also of one that is gone and only
 * remembered. Without a record of this copy it gets one without credentials, or the next list would
 * enter it again; of an image that is gone that is remembered, too, and closes it when it is back.
 * What was proven stays. From then on no list enters the image, whatever the runtime says of it,
 * until waybill_add_to_ledger: only what pulls prove opens it. The reason goes into the journal of
 * trust. *removed (may be NULL) says whether there was an entry. Ignores copy.image.
 * WAYBILL_LIMIT_EXCEEDED: operators closed 10,000 copies; nothing was changed. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_remove_from_ledger(
    waybill_store* store, waybill_image_copy copy, waybill_string reason,
    const waybill_change_options* options, bool* removed, waybill_error** error);

/* An operator's word on an image that is presumed preloaded. */
enum {
  WAYBILL_SETTLED_PRELOADED = 0, /* it is known from now on, source "operator" */
  /* it leaves the ledger; without a record it gets one without credentials */
  WAYBILL_SETTLED_CLOSED = 1
};
/* Records an operator's word on an image that is presumed preloaded (WAYBILL_PRESUMED_SOURCE).
 * Returns whether it was presumed; otherwise nothing is changed. One that is gone and only
 * remembered can be closed, as by waybill_remove_from_ledger, but not confirmed. `reason`: 1 to
 * 1,024 bytes; it is kept in the entry, or in the record that closes the image. Ignores copy.image.
 * WAYBILL_INVALID_ARGUMENT: no image ref, no reason or a longer one, an unknown runtime handler, or
 * WAYBILL_RULES_KUBELET. WAYBILL_LIMIT_EXCEEDED: as there. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_settle_presumed(
    waybill_store* store, waybill_image_copy copy, int32_t settled, waybill_string reason,
    const waybill_change_options* options, bool* presumed, waybill_error** error);

/* What an explained credential is. */
enum {
  WAYBILL_EXPLAINED_NODE_PODS = 0,
  WAYBILL_EXPLAINED_SECRET = 1,
  WAYBILL_EXPLAINED_SERVICE_ACCOUNT = 2
};
/* Whether a credential in a record still counts. */
enum {
  WAYBILL_STANDING_COUNTS = 0,
  /* proven too long ago (waybill_age_limits), or past its own end (waybill_proof.good_until) */
  WAYBILL_STANDING_TOO_OLD = 1,
  WAYBILL_STANDING_FORGOTTEN = 2, /* revoked, and not taken out yet */
  /* the policy counts only what the registry checked (WAYBILL_PROOFS_…) */
  WAYBILL_STANDING_NOT_BY_REGISTRY = 3
};
/* "counts", "tooOld", … */
WAYBILL_API waybill_string waybill_credential_standing_name(int32_t standing);

/* What a record has under an image name: a Secret, a service account, or that every pod of the node
 * may use it. */
typedef struct waybill_explained_credential {
  waybill_string image_name WAYBILL_EMPTY;
  int32_t kind WAYBILL_EMPTY;                /* WAYBILL_EXPLAINED_NODE_PODS … */
  waybill_credential_name who WAYBILL_EMPTY; /* empty for WAYBILL_EXPLAINED_NODE_PODS */
  waybill_proof proof WAYBILL_EMPTY;
  int32_t standing WAYBILL_EMPTY; /* WAYBILL_STANDING_COUNTS … */
} waybill_explained_credential;

/* Why an image is open or closed, for a person (waybill_explain). Holds no hash of a credential. */
typedef struct waybill_explanation {
  const waybill_ledger_entry* ledger_entry; /* NULL: none */
  bool recorded;                            /* it has a record under this handler */
  waybill_string closed_because; /* the record's; empty: a pull made it, or there is none */
  waybill_open_pulls pulls;      /* could have brought an image of this name; newest first */
  bool in_quarantine;
  bool distrustful;
  waybill_string text; /* what closes the image, in one sentence; empty: nothing does */
  waybill_string hint; /* what would open it */
  /* The record as it is stored, but with an empty mapping: `credentials` has its content. NULL:
   * none */
  const waybill_image_pulled_record* record;
  const waybill_explained_credential* credentials;
  size_t credential_count;
  waybill_strings image_names;           /* of the mapping, also without credentials */
  bool unreadable;                       /* the record, or a record of the same ref */
  waybill_strings spellings;             /* of the image, as the store knows them, sorted */
  waybill_strings other_handlers;        /* that have a record of it; "": the default */
  waybill_quarantine_entries quarantine; /* those that close it */
  /* What is remembered of an image that was preloaded, and is gone
   * (waybill_ledger_entry.absent_since). It opens nothing. NULL: none */
  const waybill_ledger_entry* gone_entry;
} waybill_explanation;

/* Explains why the image is open or closed: everything that bears on the answer except the pod's
 * credentials and the policy. `names` are those that the runtime lists it by; if there are none,
 * copy.image is used. WAYBILL_RULES_KUBELET: records and intents count under the exact ref and
 * string only, and there is no ledger. WAYBILL_INVALID_ARGUMENT: the ref is empty, or the handler
 * is not in the registry. Errors of reading as in "Whole records". */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_explain(waybill_store* store,
                                                            waybill_image_copy copy,
                                                            waybill_strings names,
                                                            waybill_explanation** explanation,
                                                            waybill_error** error);
/* What would have to change to reverse a decision with this reason, in one sentence without a full
 * stop. `hint` is that of the same image's explanation; empty: there is
 * none. WAYBILL_INVALID_ARGUMENT: no reason has this number. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_other_answer(int32_t reason,
                                                                 waybill_string hint,
                                                                 waybill_string** answer,
                                                                 waybill_error** error);

/* --- Revocation (owner) -------------------------------------------------------------------------
 * Credentials that are forgotten, and do not come back. Each call forgets at once: no decision that
 * begins after it returned counts what was forgotten, not even after a crash. The records stay, so
 * the images must be verified again. Pulls that begin later prove anew; a pull that began before, a
 * match that is written back, an import and a restored backup do not. A revocation is kept even if
 * the store does not have the credential. `options`: dry_run applies to all calls, allow_empty only
 * to waybill_reconcile. `report` may be NULL. WAYBILL_INVALID_ARGUMENT: a namespace, name, ref or
 * hash is empty. Otherwise errors as in "Recording a pull". */

/* What a call to forget did. */
typedef struct waybill_forget_report {
  uint64_t records; /* that lost something */
  uint64_t secrets; /* counted for each image name of each record; likewise below */
  uint64_t service_accounts;
  uint64_t node_pods; /* image names that were open to all pods of the node */
  /* Secrets elsewhere with the hash of a forgotten one. They still open what they opened: forget
   * them by that hash if the credentials themselves are to be refused. */
  uint64_t equal_hashes;
  /* Whether a revocation was stored: always, except that a truth stores one only if something was
   * gone. */
  bool stored;
  /* Of `records`, those that still store forgotten credentials, which no longer count: a thread of
   * this owner, or of the next one, tidies them up. */
  uint64_t untidied;
} waybill_forget_report;

/* Forgets a Secret by its coordinates, under every image name; `who.uid` empty: whatever the UID.
 * Another Secret with the same credentials still opens what it opened
 * (waybill_forget_report.equal_hashes). `report` may be NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_forget_secret(
    waybill_store* store, waybill_credential_name who, const waybill_change_options* options,
    waybill_forget_report** report, waybill_error** error);
/* Forgets a service account, likewise. `report` may be NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_forget_service_account(
    waybill_store* store, waybill_credential_name who, const waybill_change_options* options,
    waybill_forget_report** report, waybill_error** error);
/* Forgets every Secret and service account of the namespace. `report` may be NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_forget_namespace(
    waybill_store* store, waybill_string namespace_name, const waybill_change_options* options,
    waybill_forget_report** report, waybill_error** error);
/* Forgets every credential of one handler's copy of the image, and that every pod may use it. Under
 * WAYBILL_RULES_CLOSED by any spelling; WAYBILL_INVALID_ARGUMENT for a digest that two images have.
 * Ignores copy.image. Ledger entries stay (waybill_remove_from_ledger). The handler may be one that
 * is not in the registry any more: its records stay until a prune. `report` may be NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_forget_image(
    waybill_store* store, waybill_image_copy copy, const waybill_change_options* options,
    waybill_forget_report** report, waybill_error** error);
/* Forgets every Secret with this hash (waybill_hash_credentials). A Secret that is rotated to it
 * later opens nothing by its coordinates either, until a pull proves the hash. `report` may be
 * NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_forget_credential(
    waybill_store* store, waybill_string credential_hash, const waybill_change_options* options,
    waybill_forget_report** report, waybill_error** error);

/* A truth: all Secrets and service accounts that exist in the cluster. A name without a UID stands
 * for every UID. At most 1,000,000 in all. */
typedef struct waybill_existing_credentials {
  size_t struct_size;
  const waybill_credential_name* secrets;
  size_t secret_count;
  const waybill_credential_name* service_accounts;
  size_t service_account_count;
} waybill_existing_credentials;
#define WAYBILL_EXISTING_CREDENTIALS_INIT WAYBILL_INIT(waybill_existing_credentials)

/* What a truth did. */
typedef struct waybill_reconcile_report {
  const waybill_forget_report* forgotten; /* never NULL */
  uint64_t known;                         /* Secrets and service accounts in records that exist */
  uint64_t gone;                          /* those in records that do not exist */
  uint64_t newer; /* those that do not, but were proven after the token: they stay */
} waybill_reconcile_report;

/* Forgets each credential in a record that `truth` lacks, if it was proven by a pull that began
 * before `token` was drawn (waybill_begin_list). `truth` is every Secret and every service account
 * that exists, listed after that. A pull that began before and ends later records no Secret or
 * service account: it may have used one that is gone, so the next pod must prove its own.
 * WAYBILL_INVALID_ARGUMENT also: a token from the future, of another store, or older than that of
 * the last truth; an empty truth although records mention credentials
 * (waybill_change_options.allow_empty). WAYBILL_LIMIT_EXCEEDED: more than 1,000,000. `report` may
 * be NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_reconcile(waybill_store* store, const waybill_existing_credentials* truth,
                  waybill_list_token token, const waybill_change_options* options,
                  waybill_reconcile_report** report, waybill_error** error);

/* Waits until forgotten credentials are taken out of all records, for a process that is about to
 * end. If very many records have some, a thread of the owner takes them out later
 * (waybill_forget_report.untidied). Returns the error of a batch that failed; the next call, or the
 * next owner, does the rest. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_tidy_up(waybill_store* store,
                                                            waybill_error** error);

/* What a revocation is about. The numbers are stored. */
enum {
  WAYBILL_REVOKED_SECRET = 1,
  WAYBILL_REVOKED_SERVICE_ACCOUNT = 2,
  WAYBILL_REVOKED_NAMESPACE = 3, /* every Secret and service account of it */
  /* every credential of one handler's copy, and that all pods may use it */
  WAYBILL_REVOKED_IMAGE = 4,
  /* Every Secret that held the credentials with this hash. A Secret that is rotated to them later
   * opens nothing by its coordinates either, until a pull proves them. */
  WAYBILL_REVOKED_CREDENTIAL = 5
};
/* "secret", "serviceAccount", "namespace", "image", "credential"; "" for a number of a later
 * version. */
WAYBILL_API waybill_string waybill_revocation_kind_name(int32_t kind);

/* What was forgotten. Proofs by pulls that began in `commit` or before do not come back: neither by
 * a pull that ends later, nor by a credential written back, a restored backup or an import. */
typedef struct waybill_revocation {
  int32_t kind WAYBILL_EMPTY;                /* WAYBILL_REVOKED_SECRET … */
  waybill_credential_name who WAYBILL_EMPTY; /* WAYBILL_REVOKED_NAMESPACE: its namespace_name */
  waybill_string image_ref WAYBILL_EMPTY;
  waybill_string runtime_handler WAYBILL_EMPTY;
  waybill_string credential_hash WAYBILL_EMPTY;
  uint64_t commit WAYBILL_EMPTY;
  waybill_timestamp since WAYBILL_EMPTY;
  bool untidied WAYBILL_EMPTY; /* records still store some of it, which no longer counts */
} waybill_revocation;

typedef struct waybill_revocations {
  const waybill_revocation* items;
  size_t count;
} waybill_revocations;

/* Lists the revocations that are kept, in no order. Errors of reading as in "Whole records". */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_revocations(
    waybill_store* store, waybill_revocations** revocations, waybill_error** error);

/* --- Garbage collection (owner) ----------------------------------------------------------------
 * Errors as in "Recording a pull". */

/* What a garbage collection of records did. */
typedef struct waybill_prune_report {
  uint64_t examined;
  uint64_t removed;
  uint64_t kept_in_list;
  uint64_t kept_newer; /* written or confirmed after the token, or not before `until` */
  /* Listed under another handler only, but the last record of its ref: lost its credentials. */
  uint64_t kept_without_credentials;
  uint64_t preloaded_removed; /* ledger entries (WAYBILL_RULES_CLOSED) */
} waybill_prune_report;

/* Deletes each record whose image is not listed, unless the record was written or confirmed after
 * `token` was drawn (waybill_begin_list); under WAYBILL_RULES_CLOSED ledger entries likewise.
 * `images` is the complete list of images on the node, by any spelling, made after that. Judges
 * nothing (waybill_observe_images does both, and is the better call). Under WAYBILL_RULES_CLOSED,
 * deleting a record whose image no list ever had leaves an open pull of anything, since the image
 * may be listed under another ref; the same holds for waybill_prune_before and
 * waybill_delete_record. If the list omits an image by mistake, its record is lost; it may then be
 * presumed preloaded (WAYBILL_RULES_KUBELET), or is judged anew (WAYBILL_RULES_CLOSED). An image
 * that is listed under one handler keeps its record there and loses those under others, except the
 * last record that says that the image was pulled: that one loses its credentials instead.
 * WAYBILL_INVALID_ARGUMENT: a token from the future or of another store, or an empty list although
 * records exist (waybill_change_options.allow_empty). `report` may be NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_prune(
    waybill_store* store, waybill_images_on_node images, waybill_list_token token,
    const waybill_change_options* options, waybill_prune_report** report, waybill_error** error);
/* Deletes unlisted records that were last updated before `until`, but no ledger entries: the
 * kubelet's form of Prune. It compares clocks, so prefer a token. WAYBILL_RULES_KUBELET cuts times
 * to the second, as the kubelet does. WAYBILL_RULES_CLOSED: a record whose time is more than a day
 * ahead of the clock gets the time of this call, so that a later call can delete it. If the clock
 * was ahead and was corrected, an `until` ahead of it does not delete records written since.
 * WAYBILL_INVALID_ARGUMENT: an empty list, as for Prune. `report` may be NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_prune_before(
    waybill_store* store, waybill_images_on_node images, waybill_timestamp until,
    const waybill_change_options* options, waybill_prune_report** report, waybill_error** error);

/* --- Whole records ------------------------------------------------------------------------------
 * Functions that read: WAYBILL_DAMAGED: stored data can't be read or may have been lost.
 * WAYBILL_UNAVAILABLE: nothing can be read at this moment. WAYBILL_OUTCOME_UNKNOWN, WAYBILL_OWNED:
 * as for functions that write, from the call on that found it. WAYBILL_INVALID_ARGUMENT,
 * WAYBILL_LIMIT_EXCEEDED. Functions that write: as in "Recording a pull"; they do not change the
 * counts of pulls in flight. Functions about a record ignore copy.image, those about an intent
 * copy.image_ref. WAYBILL_INVALID_ARGUMENT: the member that is needed is empty, and the other is
 * not.
 */

/* Returns the record without credentials that do not count: past their age or their own end, not
 * checked by whom the policy demands, or forgotten but not taken out yet. So does
 * waybill_list_records. WAYBILL_RULES_CLOSED finds it under any spelling of the image; so does
 * waybill_delete_record. WAYBILL_NOT_FOUND: there is certainly no such record. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_get_record(waybill_store* store,
                                                               waybill_image_copy copy,
                                                               waybill_image_pulled_record** record,
                                                               waybill_error** error);
/* Lists all records, in no order. If one can't be read, none is returned. */
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

/* Replaces the record of record.image_ref under record.runtime_handler. A credential that counts in
 * the stored record keeps its proof. One that matches such a credential by hash or coordinates gets
 * that one's proof (but a forgotten hash gets none by its coordinates). Any other is proven by the
 * running pull of the image name, on `terms`. Credentials forgotten since that pull began, or
 * forgotten at all if none runs, are left out; the stored Secret of the same coordinates stays.
 * Clears the ref's quarantine entry. WAYBILL_INVALID_ARGUMENT: an empty ref, or an unknown handler
 * without such a record. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_put_record(
    waybill_store* store, const waybill_image_pulled_record* record, waybill_error** error);
/* Deletes the record, if it exists; records of the ref under other handlers stay, and so does a
 * quarantine entry. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_delete_record(waybill_store* store,
                                                                  waybill_image_copy copy,
                                                                  waybill_error** error);

/* *exists says whether there is an open pull of this string and handler. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_has_intent(waybill_store* store,
                                                               waybill_image_copy copy,
                                                               bool* exists, waybill_error** error);
/* Lists one intent for each image string and handler with an open pull, sorted by both.
 * waybill_list_open_pulls says more. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_intents(
    waybill_store* store, waybill_image_pull_intents** intents, waybill_error** error);
/* Stores an intent, unless a pull of the image runs already. Counts no pull in flight. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_put_intent(waybill_store* store,
                                                               waybill_image_copy copy,
                                                               waybill_error** error);
/* Deletes the intents of this string and handler: the caller's word that their pulls bring nothing
 * more. While a pull of the image is in flight in this process, its intent stays until it ends. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_delete_intent(waybill_store* store,
                                                                  waybill_image_copy copy,
                                                                  waybill_error** error);

/* Lists the quarantine entries, which close images until they are pulled again. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_quarantine(
    waybill_store* store, waybill_quarantine_entries** entries, waybill_error** error);
/* Lists the preloaded images that a kubelet's files name. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_preloaded(
    waybill_store* store, waybill_image_preloaded_records** records, waybill_error** error);

/* --- Runtime handlers (KEP-4216) ----------------------------------------------------------------
 * Errors as in "Whole records". */

/* What turning runtime classes off changed. */
typedef struct waybill_collapse_report {
  uint64_t records; /* taken from other handlers than the default */
  uint64_t intents;
  uint64_t records_to_verify; /* under the default handler, without credentials now */
  waybill_strings handlers;   /* the handlers that had them */
} waybill_collapse_report;

/* Lists the registry of runtime handlers, sorted by name. Empty: no list was ever loaded, and only
 * the default handler is known. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_runtime_handlers(
    waybill_store* store, waybill_runtime_handlers** handlers, waybill_error** error);
/* Replaces the whole registry. Records of vanished handlers stay until they are pruned. Records
 * lose their credentials if their handler's guest platform changed since the pull, or if the
 * default handler's name changed. If only the default handler was known before, leftovers from an
 * earlier time with runtime classes are cleaned up, as by waybill_collapse_runtime_handlers.
 * WAYBILL_INVALID_ARGUMENT: a name that is malformed or occurs twice, two defaults, a nameless
 * handler that is not the default, or an empty list although the registry has handlers
 * (waybill_change_options.allow_empty). WAYBILL_LIMIT_EXCEEDED. WAYBILL_CONFLICT: pulls in flight
 * in this process use a handler whose guest platform or default this would change, or whose intents
 * would become the default's. After an error nothing was changed. `report` may be NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_replace_runtime_handlers(
    waybill_store* store, const waybill_runtime_handlers* handlers,
    const waybill_change_options* options, waybill_runtimes_report** report, waybill_error** error);
/* Turns runtime classes off (KEP-4216, "Can the feature be disabled"). Each record under another
 * handler than the default becomes a record of the default's, without credentials. The default's
 * own record of that ref loses its credentials, too, since the copies can't be told apart. Intents
 * become the default's, and the other handlers leave the registry. WAYBILL_CONFLICT: pulls for
 * other handlers are in flight in this process. Ignores allow_empty. `report` may be NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_collapse_runtime_handlers(waybill_store* store, const waybill_change_options* options,
                                  waybill_collapse_report** report, waybill_error** error);

/* --- User namespaces (KEP-127) ------------------------------------------------------------------
 * Errors as in "Whole records"; WAYBILL_INVALID_ARGUMENT for a UID that can't be a pod's. */

/* Returns the user namespace for the pod's sandbox and mounts. hostUsers unset or true: NODE, and
 * nothing is stored. False: the pod's mapping, always the same, on disk before it is returned. A
 * lookup costs as much as a decision. A pod's first lookup after an opening or a new token also
 * costs a commit, which keeps a cleanup from taking the range of a pod that came back. An observer
 * answers for pods with a mapping; for others it returns WAYBILL_NOT_OWNER. Errors, in this order:
 *   WAYBILL_CONFLICT         hostUsers is set, and user namespaces are switched off (kubelet's
 * words) WAYBILL_INVALID_ARGUMENT  the runtime handler does not support user namespaces, or is not
 * in the registry (kubelet's words); or no registry was ever loaded: an old runtime would ignore
 * the mapping and run the pod as the host's root WAYBILL_CONFLICT         the pod is held
 * (waybill_held_pod), or its mapping has another length than request.length
 *   WAYBILL_INVALID_ARGUMENT  request.length is not the pool's, for a pod without a mapping
 *   WAYBILL_CONFLICT         a pod of unknown range is held, so no new range is handed out
 *   WAYBILL_LIMIT_EXCEEDED    the pool is full (kubelet's words)
 * After an error nothing was changed. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_get_or_create_user_namespace(
    waybill_store* store, const waybill_user_namespace_request* request,
    waybill_user_namespace* user_namespace, waybill_error** error);

/* Returns a pod's mapping. WAYBILL_NOT_FOUND: the pod certainly has no mapping. WAYBILL_CONFLICT:
 * it is held. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_get_user_namespace(waybill_store* store, waybill_string pod_uid,
                           waybill_user_namespace_allocation** allocation, waybill_error** error);
/* Releases the mapping of a pod that is gone, and forgets that it was held. *released (may be NULL)
 * says whether there was either. Ignores allow_empty. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_release_user_namespace(
    waybill_store* store, waybill_string pod_uid, const waybill_change_options* options,
    bool* released, waybill_error** error);
/* Lists all mappings, sorted by host ID. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_user_namespaces(
    waybill_store* store, waybill_user_namespace_allocations** allocations, waybill_error** error);
/* Lists the held pods, sorted by UID. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_held_pods(waybill_store* store,
                                                                   waybill_held_pods** pods,
                                                                   waybill_error** error);

/* What a cleanup of mappings did. */
typedef struct waybill_user_namespace_cleanup_report {
  uint64_t examined; /* pods */
  uint64_t released;
  uint64_t kept_in_lists;
  uint64_t kept_newer;           /* written after the token was drawn */
  waybill_strings released_pods; /* their UIDs, the first 1000 */
} waybill_user_namespace_cleanup_report;

/* Releases the mappings of pods in neither list. `existing` are the pods that the node should run,
 * `running` those that the runtime runs. Both are complete lists of UIDs, made in this order after
 * `token` was drawn (waybill_begin_list); mappings handed out since stay. All in one transaction.
 * WAYBILL_INVALID_ARGUMENT: a token from the future, or both lists are empty although pods have
 * mappings or are held (waybill_change_options.allow_empty: a drained node has no pods). `report`
 * may be NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_clean_up_user_namespaces(
    waybill_store* store, waybill_strings existing, waybill_strings running,
    waybill_list_token token, const waybill_change_options* options,
    waybill_user_namespace_cleanup_report** report, waybill_error** error);

/* Adopts a range: an operator confirms that the pod, whose file was unreadable, lives with it. The
 * pod is then no longer held. WAYBILL_INVALID_ARGUMENT: host_id and length must be multiples of
 * 65,536, host_id also of length, as all ranges of kubelets; the range must not contain the host's
 * block or 2^32−1. WAYBILL_CONFLICT: another pod has or may have some of it, or the pod has another
 * mapping and is not held. Does nothing if the pod has this mapping. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_adopt_user_namespace(waybill_store* store,
                                                                         waybill_string pod_uid,
                                                                         uint64_t host_id,
                                                                         uint64_t length,
                                                                         waybill_error** error);
/* Releases lost ranges (waybill_held_pod without a UID): an operator confirms that every live pod
 * in a user namespace is listed, so they no longer block new ones. *released (may be NULL) says
 * whether they did. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_release_lost_user_namespaces(waybill_store* store, const waybill_change_options* options,
                                     bool* released, waybill_error** error);

/* In ranges of the pool's ids_per_pod. */
typedef struct waybill_user_namespace_statistics {
  bool enabled;
  waybill_user_namespace_pool pool;
  uint64_t ranges;           /* all but the reserved ones */
  uint64_t used;             /* of those: taken, or overlapped by another range */
  uint64_t free;             /* ranges - used */
  uint64_t largest_free_run; /* ranges side by side */
  uint64_t allocations;
  uint64_t outside_pool; /* of those; see WAYBILL_POOL_… */
  uint64_t other_length; /* likewise */
  uint64_t held_pods;
  /* Why no range can be handed out now: the range of a held pod is unknown. Empty: ranges can. */
  waybill_string refused_because;
} waybill_user_namespace_statistics;

/* Counts ranges and pods. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_get_user_namespace_statistics(
    waybill_store* store, waybill_user_namespace_statistics** statistics, waybill_error** error);

/* --- State --------------------------------------------------------------------------------------
 */

/* What a store holds. */
typedef struct waybill_statistics {
  waybill_string store_uuid;
  uint32_t schema_version;
  uint64_t commit_sequence;
  uint64_t records; /* including remembered ones (waybill_evidence_options.remember_seconds) */
  uint64_t nondefault_handler_records; /* Of those: not under the default runtime handler. */
  uint64_t runtime_handlers;
  uint64_t intents;
  uint64_t quarantine_entries;
  uint64_t preloaded_records;
  uint64_t imported_files;
  uint64_t ledger_entries; /* likewise */
  uint64_t spellings;      /* under which images are known */
  uint64_t id_mappings;    /* of pods in user namespaces */
  uint64_t held_pods;      /* with unverified ID ranges */
  bool distrustful;
  uint64_t map_bytes;
  uint64_t used_bytes; /* of the map, free pages inside included */
  uint32_t readers;    /* slots in use, over all processes */
  uint32_t max_readers;
  uint64_t revocations; /* that are kept (waybill_list_revocations) */
} waybill_statistics;

/* Counts what the store holds. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_get_statistics(waybill_store* store,
                                                                   waybill_statistics** statistics,
                                                                   waybill_error** error);

/* What the owner of a store counts, since it opened the store. */
typedef struct waybill_store_counters {
  uint64_t decisions[32];                  /* by WAYBILL_REASON_…, those that are counted */
  uint64_t mustpull_checks[5];             /* by WAYBILL_CHECK_… */
  uint64_t ensure_image_requests[3][3][3]; /* as in waybill_metrics */
  uint64_t commit_failures;                /* changes that were refused, or may not be on disk */
  uint64_t write_back_failures;            /* rotated credentials that could not be written back */
  uint64_t write_backs_dropped;            /* not written back, since too many waited */
  uint64_t id_range_failures;  /* requests for a pod in a user namespace that got no mapping */
  double reverification_ratio; /* 0 to 1 (KEP-2535); -1: there was no request */
  /* by how they ended (0 succeeded, 1 failed, 2 it is not known), and by WAYBILL_PULL_ERROR_… */
  uint64_t pulls[3][8];
  /* how long they took, as far as it is known, and how many that is of */
  uint64_t pull_nanoseconds;
  uint64_t pull_count;
} waybill_store_counters;

/* What an opening as the owner found, in numbers; waybill_recovery_report has the words. */
typedef struct waybill_opening_summary {
  waybill_timestamp at; /* when it ended */
  uint64_t damage;      /* waybill_recovery_report.findings */
  uint64_t warnings;
  uint64_t modes_mended;
  uint64_t import_problems;   /* files of a kubelet that could not be read */
  uint64_t id_range_problems; /* pods whose ranges could not be taken over */
  uint64_t gap_closed;        /* images that a gap closed */
  bool created;
  bool rebuilt;       /* the database failed its check and was set aside */
  bool commit_undone; /* a crash had cut the last commit short */
  bool witness_made;  /* the witness was missing */
  bool clock_was_ahead;
  bool after_gap;
} waybill_opening_summary;

/* How many records a runtime handler has. */
typedef struct waybill_handler_records {
  waybill_string runtime_handler; /* empty: the default handler */
  uint64_t records;
} waybill_handler_records;

/* What a store counts and holds. The kubelet's names are those of KEP-2535. */
typedef struct waybill_metrics {
  uint64_t mustpull_checks[5]; /* By WAYBILL_CHECK_…; [WAYBILL_CHECK_NOT_COUNTED] stays 0. */
  uint64_t ensure_image_requests[3][3][3];
  uint64_t ondisk_pullintents;
  uint64_t ondisk_pulledrecords;
  /* The store has no cache. Instead of a cache's use, these give how much of a bound is in use:
   * images in flight of 65,536, and used pages of the map. */
  double inmemory_pullintents_usage_percent;
  double inmemory_pulledrecords_usage_percent;
  /* Images under other runtime handlers than the default (KEP-4216, "How can an operator determine
   * if the feature is in use"). waybill_nondefault_runtime_handler_images. */
  uint64_t nondefault_runtime_handler_images;
  uint64_t preloaded_images; /* in the ledger. waybill_preloaded_images */
  uint64_t open_pulls;       /* WAYBILL_RULES_CLOSED. waybill_open_pulls */
  /* This object is the store's owner: its counters are those of the process that decides. */
  bool live_owner;
  bool readable; /* False: the gauges could not all be read, and are 0 or empty. */
  bool distrustful;
  bool user_namespaces;   /* false: they are off, and there are no ranges */
  bool id_ranges_refused; /* a held pod's range is unknown, so none is handed out */
  uint32_t schema_version;
  uint64_t commit_sequence;
  const waybill_handler_records* records_by_handler; /* the default handler first, then by name */
  size_t records_by_handler_count;
  /* Records that close their image because nobody knows where it came from (closed_because). */
  uint64_t closed_images;
  uint64_t quarantine_entries;
  /* Reasons in force, by WAYBILL_TRUST_…; [0]: of kinds that this version does not know. */
  uint64_t distrust_reasons[16];
  /* By WAYBILL_OPEN_PULL_…; [0]: pulls of anything, in any state. WAYBILL_RULES_CLOSED. */
  uint64_t open_pulls_by_state[4];
  uint64_t id_mappings;
  uint64_t held_pods;
  uint64_t id_ranges_free; /* of the pool, in ranges */
  uint64_t id_ranges_used;
  uint64_t map_bytes;
  uint64_t used_bytes; /* of the map, free pages inside included */
  uint32_t readers;
  uint32_t max_readers;
  /* When the oldest credential was proven by a pull, among those for which that is known; NULL:
   * there is none. A forgotten credential counts until it is taken out of its record. */
  const waybill_timestamp* oldest_credential;
  uint64_t undated_credentials;                /* nobody knows when they were proven */
  uint64_t revocations;                        /* that are kept */
  const waybill_store_counters* counters;      /* NULL: this is an observer. */
  const waybill_opening_summary* last_opening; /* NULL: likewise */
  /* Of preloaded_images, those presumed since a first start. waybill_presumed_images */
  uint64_t presumed_images;
  /* Credentials on record, by WAYBILL_CHECKER_…. waybill_credentials */
  uint64_t credentials_by_checker[4];
  /* The owner writes a trace (waybill_trace_options): events that it wrote, and that it could not
   * write. */
  bool writes_trace;
  uint64_t trace_events;
  uint64_t trace_events_dropped;
} waybill_metrics;

WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_get_metrics(waybill_store* store,
                                                                waybill_metrics** metrics,
                                                                waybill_error** error);
/* Every family that applies, in a fixed order. Series that are 0 are included, so that a rate is
 * defined from the first scrape. Left out are, without a live owner, the kubelet's names, what
 * owners count, and the last opening; gauges that could not be read (waybill_store_readable is 0
 * then); ranges without user namespaces; the age of the oldest credential without one; the ratio
 * without requests. As Prometheus' text exposition format, version 0.0.4. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_metrics_text(waybill_store* store,
                                                                 waybill_string** text,
                                                                 waybill_error** error);

/* What Verify found. `sound` is the verdict. */
typedef struct waybill_verify_report {
  bool sound;
  uint64_t pages;
  uint64_t values;
  waybill_strings findings;
} waybill_verify_report;

/* Walks the raw pages, reads every value, recomputes the digests. Damage is not an error; the
 * report lists it. Blocks the commits of this process meanwhile. Beside a busy owner it may have to
 * start over, and is WAYBILL_IO after several tries. WAYBILL_INTERRUPTED: `progress` (bytes), which
 * must not call this store, returned false. WAYBILL_NOT_FOUND, WAYBILL_IO: the file can't be read.
 */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_verify(waybill_store* store,
                                                           waybill_verify_report** report,
                                                           waybill_error** error);
/* The same; `progress` may be NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_verify_with_progress(waybill_store* store, waybill_progress progress, void* context,
                             waybill_verify_report** report, waybill_error** error);

/* Why a store's trust changed. The numbers are stored, and never 0. A number that this version does
 * not know closes as much as any other. */
enum {
  WAYBILL_TRUST_OTHER = 1,          /* given in words only, by a version before schema version 4 */
  WAYBILL_TRUST_OPERATOR = 2,       /* an operator's word */
  WAYBILL_TRUST_STORE_LOST = 3,     /* the database was gone */
  WAYBILL_TRUST_STORE_STALE = 4,    /* it may be an older copy: its witness is gone, or says so */
  WAYBILL_TRUST_STORE_REBUILT = 5,  /* it failed its check */
  WAYBILL_TRUST_STORE_RESTORED = 6, /* a backup was put back */
  WAYBILL_TRUST_IMPORT_UNFINISHED = 7, /* files of a kubelet directory are not taken over yet */
  WAYBILL_TRUST_GAP = 8,               /* images may have been pulled unrecorded */
  WAYBILL_TRUST_JOURNAL_FULL = 9       /* there are more reasons than the journal holds */
};
/* What an entry of the journal of distrust did. */
enum {
  /* a reason to judge no image (closed), or to presume none preloaded (kubelet) */
  WAYBILL_TRUST_DISTRUST = 1,
  WAYBILL_TRUST_TRUST = 2, /* ends every reason before it */
  /* ends the reason of the same kind and words: its cause was repaired */
  WAYBILL_TRUST_TAKEN_BACK = 3,
  WAYBILL_TRUST_NOTE = 4 /* an operator's word on a single image or pull; changes no reason */
};

/* An entry of the journal of distrust. */
typedef struct waybill_trust_event {
  waybill_timestamp at;
  int32_t kind;          /* WAYBILL_TRUST_OTHER … */
  int32_t action;        /* WAYBILL_TRUST_DISTRUST … */
  bool distrustful;      /* the state from then on */
  waybill_string reason; /* the store's; if distrust was cleared, the operator's */
} waybill_trust_event;

/* Whether a store is distrustful, and its journal. The journal only grows, except that an
 * unfinished import leaves no entry if the same opening finishes it. Of more than 64 entries, the
 * oldest that are no longer a reason for distrust are deleted. */
typedef struct waybill_trust_state {
  bool distrustful;
  const waybill_trust_event* journal; /* oldest first */
  size_t journal_count;
} waybill_trust_state;

/* Returns whether the store is distrustful, and since when and why. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_get_trust(waybill_store* store,
                                                              waybill_trust_state** trust,
                                                              waybill_error** error);
/* How distrust is cleared (waybill_clear_distrust). */
typedef struct waybill_clear_options {
  size_t struct_size;
  /* The runtime's complete list. Its images that have neither record nor ledger entry get a record
   * without credentials, or a ledger entry with `adopt`, and if the runtime pins them and no open
   * pull names them. NULL: the next list does that. */
  const waybill_images_on_node* images_on_node;
  bool adopt; /* the operator's word that no pod's credentials brought those images */
  bool allow_empty;
  bool dry_run;
} waybill_clear_options;
#define WAYBILL_CLEAR_OPTIONS_INIT WAYBILL_INIT(waybill_clear_options)

/* Records an operator's word that the store is whole again. `reason` (1 to 1,024 bytes,
 * WAYBILL_INVALID_ARGUMENT otherwise) goes into the journal, also if the store was trustful.
 * WAYBILL_RULES_CLOSED: images on the node that have neither record nor ledger entry are closed, or
 * adopted (waybill_clear_options), and one open pull of anything stands for those that may still
 * arrive. WAYBILL_RULES_KUBELET: images without a record are presumed preloaded again; ignores
 * `options`. WAYBILL_INVALID_ARGUMENT: an empty list, as in waybill_observe_images. `report` may be
 * NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_clear_distrust(
    waybill_store* store, waybill_string reason, const waybill_clear_options* options,
    waybill_observe_report** report, waybill_error** error);

/* --- Going back, and whole stores ---------------------------------------------------------------
 */

typedef struct waybill_export_options {
  size_t struct_size;
  /* The directory that has or gets image_manager/. The kubelet must not be running. */
  waybill_string kubelet_directory;
  int32_t api_version;                          /* WAYBILL_KUBELET_… */
  bool allow_empty;                             /* accept an empty images_on_node */
  const waybill_images_on_node* images_on_node; /* NULL: unknown */
} waybill_export_options;
#define WAYBILL_EXPORT_OPTIONS_INIT WAYBILL_INIT(waybill_export_options)

/* What was written for the kubelet. */
typedef struct waybill_export_report {
  uint64_t records;
  uint64_t intents;
  uint64_t preloaded;
  uint64_t closed;    /* in quarantine: written as files that the kubelet can't read either */
  uint64_t made;      /* records without credentials, for images of unknown origin */
  uint64_t spellings; /* records under further spellings of their images */
  /* Written without credentials: refs with records under other handlers only, and files that a
   * kubelet wrote and no import took. */
  uint64_t without_credentials;
  uint64_t id_mappings;          /* pods/<uid>/userns */
  waybill_string replaced_path;  /* where the earlier files are kept; empty: there were none */
  waybill_strings removed_paths; /* kept by earlier exports, now deleted (3 are kept) */
} waybill_export_report;

/* Writes the kubelet's own files, with its names and forms, to image_manager/{pulled,pulling,
 * observed-preloaded}. Each folder is replaced in one step, and the old one is kept aside. Images
 * in quarantine become files that the kubelet can't read either. A ref under several handlers gets
 * the default's credentials. WAYBILL_RULES_CLOSED: a record is written under every spelling of its
 * image, and images_on_node is required: each listed image with neither record nor ledger entry
 * gets a record without credentials. ID mappings go to pods/<uid>/userns; a file with other content
 * is kept beside it. Works beside an owner, but the kubelet must be stopped. WAYBILL_CONFLICT, and
 * nothing is written: a pod is held, or the file of a pod that the store does not know overlaps a
 * range. WAYBILL_INVALID_ARGUMENT: the store is distrustful, and options.images_on_node is missing,
 * or empty without options.allow_empty. WAYBILL_DAMAGED: a record is unreadable. WAYBILL_OWNED:
 * another export into that directory is running. WAYBILL_NOT_FOUND, WAYBILL_UNSAFE_PATH,
 * WAYBILL_DISK_FULL, WAYBILL_IO: the directory. After an error the folders are complete, old or
 * new; call it again. `report` may be NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_export(waybill_store* store,
                                                           const waybill_export_options* options,
                                                           waybill_export_report** report,
                                                           waybill_error** error);

typedef struct waybill_migrate_options {
  size_t struct_size;
  waybill_string directory;
  uint32_t to;        /* 0: the newest */
  bool dry_run;       /* report what would be done, and change nothing */
  bool accept_loss;   /* go down even if that loses something */
  uint64_t map_bytes; /* 0: as the store remembers it */
  waybill_clock clock;
  void* clock_context;
  waybill_progress progress;
  void* progress_context;
  waybill_boot_clock boot_clock;
  void* boot_clock_context;
} waybill_migrate_options;
#define WAYBILL_MIGRATE_OPTIONS_INIT WAYBILL_INIT(waybill_migrate_options)

/* Makes and verifies a backup, then takes a store to another schema version, one transaction for
 * each step. waybill_open does the same up to the newest version unless told not to. Idempotent:
 * after a crash the store has the version before or after a step, and the same call continues from
 * there. Uses the witness that the store remembers. WAYBILL_INVALID_ARGUMENT: a version below 1 or
 * above 9. WAYBILL_CONFLICT: going down would lose something and accept_loss is false; or, from 3
 * to 2 and whatever accept_loss says, a kubelet's files can't hold the ID ranges (held pods, ranges
 * of several lengths). The message says which. WAYBILL_DISK_FULL: no room for the backup or for a
 * step. WAYBILL_OWNED: the store is in use. WAYBILL_NOT_FOUND: no store. WAYBILL_DAMAGED: the store
 * fails its check, or its witness is missing or contradicts it; waybill_open recovers it.
 * WAYBILL_INTERRUPTED: `progress` returned false. WAYBILL_NEWER_SCHEMA, WAYBILL_UNSAFE_PATH,
 * WAYBILL_IO, WAYBILL_STORE_FULL as for Open. After each of these the store is intact and has the
 * version of the last completed step. WAYBILL_OUTCOME_UNKNOWN: the disk failed during a commit;
 * waybill_open finds out. `report` may be NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_migrate(const waybill_migrate_options* options,
                                                            waybill_migration_report** report,
                                                            waybill_error** error);

/* backup/<version>-<commit sequence>-<time>.mdb in the store's directory: a compact copy. The last
 * three are kept; of several of the same state, only the last. */
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

/* The backups in `directory`, newest first, by name; their content is not read.
 * WAYBILL_UNSAFE_PATH, WAYBILL_IO. WAYBILL_NOT_FOUND: no such directory. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_backups(waybill_string directory,
                                                                 waybill_backups** backups,
                                                                 waybill_error** error);

/* Makes a compact copy of the store as it is now, checked and on the disk, in backup/ in the
 * store's directory (waybill_backup): for Restore. Only the owner may call it; other calls go on
 * meanwhile. The last three backups are kept, those of migrations included; of several backups of
 * this state, only the new one. WAYBILL_DISK_FULL: no room. WAYBILL_DAMAGED: the copy fails its
 * check. WAYBILL_UNAVAILABLE: another backup is being made, or all slots of readers are taken.
 * WAYBILL_UNSAFE_PATH, WAYBILL_NOT_OWNER, WAYBILL_IO; WAYBILL_OWNED and WAYBILL_OUTCOME_UNKNOWN as
 * in "Recording a pull". After each of these no backup was removed; one may have been made if an
 * old one, or the folder, can't be written. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_make_backup(waybill_store* store,
                                                                waybill_backup** backup,
                                                                waybill_error** error);
/* Writes such a copy into a new file outside the store, mode 0600, for Restore; also by an
 * observer, whether or not the owner serves. No other backup is removed. WAYBILL_INVALID_ARGUMENT:
 * `file` exists already (it is left as it is), is not in an existing directory, or lies in the
 * store. WAYBILL_INTERRUPTED: `progress` (bytes) returned false. Others as for waybill_make_backup.
 * After each of these the file was not made, except if the final sync of its directory failed: the
 * error says so. `progress` may be NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_write_backup(waybill_store* store, waybill_string file, waybill_progress progress,
                     void* context, waybill_backup** backup, waybill_error** error);

typedef struct waybill_restore_options {
  size_t struct_size;
  waybill_string directory;
  /* A backup, a data.mdb that was copied while no process owned its store, or a directory with one.
   */
  waybill_string backup;
  bool dry_run;       /* report what would be done, and change nothing */
  uint64_t map_bytes; /* 0: as the store remembers it */
  waybill_clock clock;
  void* clock_context;
  waybill_boot_clock boot_clock;
  void* boot_clock_context;
} waybill_restore_options;
#define WAYBILL_RESTORE_OPTIONS_INIT WAYBILL_INIT(waybill_restore_options)

/* What a backup brought back. */
typedef struct waybill_restore_report {
  uint32_t schema_version;
  uint64_t backup_commit_sequence;
  /* Beside these, each image that the replaced store has on record, and the backup lacks, stays on
   * record without credentials, present or gone: it was pulled, or closed, after the backup. */
  uint64_t records;
  /* Of those, without credentials, and so to be verified again: the credentials may have been
   * revoked after the backup. Either the replaced store held other ones, or it was unreadable,
   * older than its witness or than the backup, or its witness was missing. */
  uint64_t records_without_credentials;
  uint64_t id_mappings; /* of pods in user namespaces */
  /* What became of the backup's mappings. Kept: the pod has it. Held: the pod is held, since its
   * range is unverified or may overlap another pod's. Dropped: the replaced store gave the pod
   * another range, or had released this one. */
  uint64_t id_mappings_kept;
  uint64_t id_mappings_held;
  uint64_t id_mappings_dropped;
  /* Other ranges may have been lost, so no new ones are handed out (waybill_held_pod without a
   * UID). */
  bool id_ranges_lost;
  /* Where the replaced store is kept; empty: there was none, or it is a dry run. */
  waybill_string replaced_path;
  waybill_strings removed_paths; /* kept there earlier, now deleted (3 are kept) */
  waybill_string distrust_reason;
  /* It is a streaming store: all its tokens are void, and opening it ends the distrust. */
  bool streaming;
} waybill_restore_report;

/* Replaces the store with a backup. The replaced store is kept under quarantine/ (3 are kept). The
 * new store is distrustful, since images pulled after the backup have no record in it. Images that
 * the replaced store had closed, by its quarantine, its intents or an operator's word, stay closed,
 * and so do those of which only that store has a record, as far as it can be read, whether they are
 * on the node or gone. Pods keep the ID ranges that the replaced store gave them. If that store is
 * unreadable or had lost ranges itself, the backup's ranges are kept or held as well, ranges count
 * as lost (waybill_held_pod), and a backup of a version without ranges is restored as the newest
 * version. Credentials that the replaced store had forgotten stay forgotten. Credentials that both
 * stores have keep the replaced store's proofs (waybill_proof). If the replaced store is older than
 * the backup, pods whose ranges differ between the two are held. Streaming tokens are not put back:
 * they may have opened their streams since. WAYBILL_DAMAGED: the backup fails its check, for
 * instance because data.mdb was copied during a write. WAYBILL_CONFLICT: the backup belongs to
 * another store (by UUID, against the store or its witness), or one of the two is a streaming store
 * and the other a node's. WAYBILL_INVALID_ARGUMENT: the backup is the store itself. WAYBILL_OWNED:
 * a process owns the store, or the store whose data.mdb the backup is. WAYBILL_NEWER_SCHEMA,
 * WAYBILL_NOT_FOUND, WAYBILL_UNSAFE_PATH, WAYBILL_DISK_FULL, WAYBILL_IO. After each of these the
 * store is unchanged; if the final sync of the directory fails, or after a crash, it is the old or
 * the new one, intact. `report` may be NULL. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_restore(const waybill_restore_options* options,
                                                            waybill_restore_report** report,
                                                            waybill_error** error);

/* --- Streaming requests (KEP-1558) --------------------------------------------------------------
 * The requests (exec, attach, port-forward) that a runtime's streaming server prepared, each under
 * a token that opens one stream, once. A store of its own, in a directory of
 * its own: a node's store is refused (WAYBILL_INVALID_ARGUMENT), and waybill_open refuses this one.
 * Threads as for a waybill_store. */

typedef struct waybill_streaming_store waybill_streaming_store;

/* The CRI call that prepared a stream. */
enum { WAYBILL_STREAM_EXEC = 1, WAYBILL_STREAM_ATTACH = 2, WAYBILL_STREAM_PORT_FORWARD = 3 };
/* "exec", "attach", "portforward", as in the URLs of CRI streaming servers. */
WAYBILL_API waybill_string waybill_stream_kind_name(int32_t kind);

/* CRI's ExecRequest, AttachRequest and PortForwardRequest. */
typedef struct waybill_streaming_request {
  int32_t kind WAYBILL_EMPTY;                  /* WAYBILL_STREAM_EXEC … */
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

/* WAYBILL_INVALID_ARGUMENT, by the rules of CRI's streaming server (k8s.io/cri-streaming, v0.36):
 * the container ID or the pod sandbox ID is missing; tty and std_err are both set, although a
 * terminal has one output; or none of std_in, std_out and std_err is set. By waybill's own rules:
 * exec without a command, or with an empty first argument; a port that is 0 (no ports at all is
 * valid: clients that use SPDY name them later); a field that the kind does not have; text that has
 * a zero byte or, unlike CRI's, is not UTF-8. WAYBILL_LIMIT_EXCEEDED: above a bound. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_check_streaming_request(const waybill_streaming_request* request, waybill_error** error);
/* A name for a token in logs, which opens nothing: the first 16 hex digits of its SHA-256. Takes
 * any text. Empty: libcrypto failed. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_stream_token_id(waybill_string token,
                                                                    waybill_string** id,
                                                                    waybill_error** error);

typedef struct waybill_streaming_options {
  size_t struct_size;
  waybill_string directory; /* the store's own */
  bool must_exist;
  int32_t witness_kind; /* WAYBILL_WITNESS_…; must be set */
  waybill_string witness_path;
  /* By default a restart of the streaming server makes all tokens void; this keeps those that are
   * still open. After another boot, or if the store is a copy, an older copy or distrustful, all
   * are void in any case. */
  bool keeps_tokens;
  /* Not a restart of the server: a command that shares its work keeps the tokens that a server with
   * keeps_tokens would keep. */
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
/* Opens to read, beside a live owner or without one; functions that write are WAYBILL_NOT_OWNER.
 * Errors as of waybill_observe. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_streaming_observe(
    waybill_string directory, waybill_streaming_store** store, waybill_error** error);
/* As waybill_close and waybill_store_free. */
WAYBILL_API waybill_code waybill_streaming_close(waybill_streaming_store* store,
                                                 waybill_error** error);
WAYBILL_API void waybill_streaming_store_free(waybill_streaming_store* store);

/* What opening did. */
typedef struct waybill_streaming_report {
  /* of the database; its members about images are empty; never NULL */
  const waybill_recovery_report* recovery;
  uint64_t voided; /* tokens that this opening made void; expired ones are not counted */
  /* Why all were made void; empty: they were kept, except those that are of another boot or can't
   * be read. */
  waybill_string void_reason;
  uint64_t open; /* tokens that are open now */
} waybill_streaming_report;
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_get_streaming_report(
    waybill_streaming_store* store, waybill_streaming_report** report, waybill_error** error);

/* Stores the request, on disk when this returns, and returns its token: 32 lower-case hex digits,
 * 128 random bits from the kernel. Nobody can get it again. Errors, which leave the store as it
 * was: those of waybill_check_streaming_request; WAYBILL_LIMIT_EXCEEDED with
 * waybill_error.retry_after_ns: as many tokens as waybill_streaming_options.max_open are open, and
 * the first of them expires then (gRPC ResourceExhausted, HTTP 429); WAYBILL_IO: no randomness;
 * WAYBILL_NOT_OWNER, WAYBILL_CLOSED, WAYBILL_STORE_FULL, WAYBILL_DISK_FULL, WAYBILL_IO,
 * WAYBILL_OWNED as in "Recording a pull". WAYBILL_INTERNAL also: the boot clock says an impossible
 * time. WAYBILL_OUTCOME_UNKNOWN: the request may be on disk, but nobody has its token. After
 * WAYBILL_OUT_OF_MEMORY a token that nobody has may be open until it expires. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_prepare_stream(waybill_streaming_store* store, const waybill_streaming_request* request,
                       waybill_string** token, waybill_error** error);
/* Uses the token up, and returns its request. On disk when this returns: whatever crashes, and
 * whenever, no token opens a second stream. Of several callers one gets the request.
 * WAYBILL_NOT_FOUND, with one and the same text: the token was never prepared, was used, is void,
 * has expired or is of another kind. A refusal writes nothing, so a token of another kind stays
 * good for its own. (The kubelet's in-memory cache uses such a token up.) WAYBILL_DAMAGED: the row
 * can't be read; the token opens nothing. WAYBILL_NOT_OWNER, WAYBILL_CLOSED, WAYBILL_STORE_FULL,
 * WAYBILL_DISK_FULL, WAYBILL_IO, WAYBILL_OWNED: the token is still good. WAYBILL_OUTCOME_UNKNOWN:
 * it may be used up or not; do not use it again. After WAYBILL_OUT_OF_MEMORY the token may be used
 * up. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_consume_stream(waybill_streaming_store* store, waybill_string token, int32_t kind,
                       waybill_streaming_request** request, waybill_error** error);

/* A token that waits for its client. Its request stays sealed. */
typedef struct waybill_open_stream {
  waybill_string id;          /* waybill_stream_token_id */
  int32_t kind;               /* WAYBILL_STREAM_EXEC … */
  waybill_timestamp prepared; /* by the wall clock */
  uint64_t expires_in_ns;     /* more than 0 */
} waybill_open_stream;

typedef struct waybill_open_streams {
  const waybill_open_stream* items;
  size_t count;
} waybill_open_streams;

/* Lists the open tokens, the oldest first. WAYBILL_DAMAGED: a row can't be read.
 * WAYBILL_UNAVAILABLE, WAYBILL_CLOSED. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_list_streams(waybill_streaming_store* store,
                                                                 waybill_open_streams** streams,
                                                                 waybill_error** error);

/* StreamingCounters: since the store was opened. */
typedef struct waybill_streaming_counters {
  uint64_t prepared;
  uint64_t prepare_invalid; /* WAYBILL_INVALID_ARGUMENT, and above a bound */
  uint64_t prepare_full;    /* max_open tokens were open already */
  uint64_t prepare_failed;  /* any other error */
  uint64_t consumed;
  uint64_t refused_unknown;       /* WAYBILL_NOT_FOUND: never prepared, used before, or void */
  uint64_t refused_expired;       /* WAYBILL_NOT_FOUND: expired */
  uint64_t refused_kind;          /* WAYBILL_NOT_FOUND: of another kind */
  uint64_t consume_failed;        /* any other error */
  uint64_t voided;                /* waybill_streaming_report.voided */
  uint64_t open;                  /* now; those that expired since the last Prepare among them */
  waybill_string prometheus_text; /* all of it, in the text exposition format */
} waybill_streaming_counters;
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_get_streaming_counters(
    waybill_streaming_store* store, waybill_streaming_counters** counters, waybill_error** error);

/* Does what waybill_verify does. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_verify_streaming(waybill_streaming_store* store,
                                                                     waybill_verify_report** report,
                                                                     waybill_error** error);

/* --- Streaming: addresses and rates ---------------------------------------------------------- */

/* What may be dialled. The default: any port of a loopback address, and no redirect. */
typedef struct waybill_stream_url_policy {
  size_t struct_size;
  /* What is allowed beside loopback addresses. Either an IP address, without brackets and zone (an
   * IPv4-mapped one is its IPv4 address), or a host name of letters, digits, '-', '_' and '.',
   * compared without regard to case and otherwise exactly: it covers neither subdomains nor the
   * same name with a '.' at the end. Whoever lists a name trusts the resolver. At most 1,024. */
  waybill_strings hosts;
  const uint16_t* ports; /* The ports that are allowed, 1 to 65535; empty: all. At most 65,535. */
  size_t port_count;
  bool require_https;       /* Refuse http. */
  bool same_host_redirects; /* Allow a redirect to the same host: waybill_check_stream_redirect. */
} waybill_stream_url_policy;
#define WAYBILL_STREAM_URL_POLICY_INIT WAYBILL_INIT(waybill_stream_url_policy)

/* Why an address must not be dialled. The rules are checked in this order; the first that fails is
 * the reason. */
enum {
  WAYBILL_STREAM_URL_ALLOWED = 0, /* Not refused. */
  /* The policy itself can't be followed: an entry of `hosts` is neither an IP address nor a host
   * name, a port is 0, or a list is too long. Nothing was checked. */
  WAYBILL_STREAM_URL_POLICY = 1,
  /* Longer than 2,048 bytes, by itself or resolved against the original. */
  WAYBILL_STREAM_URL_TOO_LONG = 2,
  /* A control character, a space, a backslash, or a byte outside ASCII. Readers of URLs disagree
   * about each of them. */
  WAYBILL_STREAM_URL_CHARACTER = 3,
  /* Begins with "//" or with host and port: the runtime's streaming server was configured without a
   * scheme. A kubelet from 1.36 on dials the URL itself, which needs one (KEP-4006; the URLs of
   * cri-dockerd up to 0.4.4, Mirantis/cri-dockerd#569). */
  WAYBILL_STREAM_URL_NO_SCHEME = 4,
  WAYBILL_STREAM_URL_SCHEME = 5,    /* A scheme other than http and https. */
  WAYBILL_STREAM_URL_NOT_HTTPS = 6, /* http, where the policy asks for https. */
  WAYBILL_STREAM_URL_NO_HOST = 7,   /* No host: "http:/path", "http:path", "http://:80/". */
  /* User information ("user@", also empty), which would go to the server, or hide the host. */
  WAYBILL_STREAM_URL_USER_INFO = 8,
  /* An IPv6 zone ("[fe80::1%25eth0]"): it means something on one machine only. */
  WAYBILL_STREAM_URL_ZONE = 9,
  WAYBILL_STREAM_URL_ENCODED_HOST = 10, /* A percent-encoded byte in the host. */
  /* A port that is empty, not a decimal number, 0, above 65535, or has a leading zero. */
  WAYBILL_STREAM_URL_PORT = 11,
  WAYBILL_STREAM_URL_SYNTAX = 12,   /* Not a URL by RFC 3986 in any other way. */
  WAYBILL_STREAM_URL_FRAGMENT = 13, /* A fragment, also an empty one. No client sends it. */
  /* An IP address in another form than four decimal numbers, or than an IPv6 address in brackets:
   * 127.1, 0177.0.0.1, 2130706433, 0x7f.1, [v1.x]. Resolvers take these for different addresses. */
  WAYBILL_STREAM_URL_ADDRESS_FORM = 14,
  /* A host name, `localhost` too, that the policy does not list: where it leads is up to the
   * resolver. */
  WAYBILL_STREAM_URL_HOST_NAME = 15,
  /* 0.0.0.0 or ::, where the policy does not list it: what a server listens on if it listens on
   * every interface. */
  WAYBILL_STREAM_URL_UNSPECIFIED = 16,
  /* Any other IP address that is neither loopback nor on the policy's list. */
  WAYBILL_STREAM_URL_NOT_ALLOWED = 17,
  WAYBILL_STREAM_URL_PORT_NOT_ALLOWED = 18, /* A port that is not on the policy's list. */
  /* waybill_check_stream_redirect only: a redirect, where the policy follows none. */
  WAYBILL_STREAM_URL_REDIRECT = 19,
  /* waybill_check_stream_redirect only: a redirect to another host; or one that names no location;
   * or one that resolves to a path that begins with "//" or has the segment "." or "..": readers of
   * URLs disagree about those. */
  WAYBILL_STREAM_URL_REDIRECT_HOST = 20,
  /* waybill_check_stream_redirect only: a redirect from https to http. */
  WAYBILL_STREAM_URL_REDIRECT_DOWNGRADE = 21
};
/* "noScheme", "notAllowed"; empty for an unknown number. */
WAYBILL_API waybill_string waybill_stream_url_refusal_name(int32_t refusal);

enum { WAYBILL_STREAM_HTTP = 0, WAYBILL_STREAM_HTTPS = 1 };
/* "http" or "https". */
WAYBILL_API waybill_string waybill_stream_scheme_name(int32_t scheme);

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

/* Whether the kubelet, or what stands in for it, may connect to `url`, as the runtime's answer to
 * Exec, Attach or PortForward names it. 127.0.0.0/8, ::1, and IPv4-mapped loopback addresses are
 * loopback. Connect to `address`, not to `url`: another parser may read the URL differently. A
 * refusal is WAYBILL_OK, with the reason in *check. `policy` may be NULL: all zero. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_check_stream_url(waybill_string url, const waybill_stream_url_policy* policy,
                         waybill_stream_url_check** check, waybill_error** error);

/* Whether a redirect to `location` (the header Location, absolute or relative) may be followed,
 * when `original` answered with it. By default none may. With `same_host_redirects`, the location,
 * resolved as in RFC 3986 section 5.2, must pass waybill_check_stream_url, have the host of
 * `original` and not go from https to http. The port may differ (KEP-1558, "Background":
 * ValidateProxyRedirects compared the hosts). `original` must pass waybill_check_stream_url as
 * well; otherwise its refusal is the answer.
 *
 * The caller counts redirects, and passes the URL of the last answer as `original`; the API server
 * gave up after 10. The caller counts them. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_check_stream_redirect(
    waybill_string original, waybill_string location, const waybill_stream_url_policy* policy,
    waybill_stream_url_check** check, waybill_error** error);

/* A token bucket. Its memory is the caller's, and its content
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
 * Exec, attach and port-forward for a kubelet and an API server of given releases and settings
 * (KEP-1558, KEP-4006). Pure: no store, and no file is read. */

/* A release of Kubernetes, without its patch: no fact of the table depends on one. */
typedef struct waybill_kubernetes_version {
  uint32_t major;
  uint32_t minor;
} waybill_kubernetes_version;

/* Reads what `kubelet --version`, `kubectl version` and packages print: "v1.22.3", "1.22", "1.22+",
 * "Kubernetes v1.36.0-rc.1+k3s1". WAYBILL_INVALID_ARGUMENT for anything else, and for a release
 * before WAYBILL_OLDEST_STREAMING_VERSION or a major version other than 1. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code waybill_parse_kubernetes_version(
    waybill_string text, waybill_kubernetes_version* version, waybill_error** error);

/* Which component's settings are meant. */
enum { WAYBILL_STREAMING_KUBELET = 0, WAYBILL_STREAMING_API_SERVER = 1 };

/* The feature gates that decide how streaming requests go. */
enum {
  WAYBILL_GATE_STREAMING_PROXY_REDIRECTS = 0, /* API server: follow a kubelet's redirect */
  /* API server: follow it only to the kubelet's own host */
  WAYBILL_GATE_VALIDATE_PROXY_REDIRECTS = 1,
  /* API server: translate WebSockets of exec and attach */
  WAYBILL_GATE_TRANSLATE_STREAM_CLOSE_WEBSOCKET_REQUESTS = 2,
  WAYBILL_GATE_PORT_FORWARD_WEBSOCKETS = 3, /* API server: translate those of port-forward */
  /* both: the kubelet translates them, and declares it in its Node */
  WAYBILL_GATE_EXTEND_WEBSOCKETS_TO_KUBELET = 4,
  /* both: WAYBILL_GATE_EXTEND_WEBSOCKETS_TO_KUBELET depends on it */
  WAYBILL_GATE_NODE_DECLARED_FEATURES = 5,
  WAYBILL_GATE_ALL_ALPHA = 6, /* both: every alpha gate that is not set by itself */
  WAYBILL_GATE_ALL_BETA = 7   /* both: every beta gate, likewise; since 1.17 */
};
/* "StreamingProxyRedirects" */
WAYBILL_API waybill_string waybill_streaming_gate_name(int32_t gate);
/* Whether the name is exactly that of a gate. `gate` may be NULL. */
WAYBILL_API bool waybill_find_streaming_gate(waybill_string name, int32_t* gate);

/* The setting of a feature gate in a component. */
typedef struct waybill_streaming_gate_setting {
  int32_t gate; /* WAYBILL_GATE_STREAMING_PROXY_REDIRECTS … */
  bool enabled;
} waybill_streaming_gate_setting;

/* A boolean flag of a command line. */
enum {
  WAYBILL_FLAG_NOT_GIVEN = 0,
  WAYBILL_FLAG_FALSE = 1,
  WAYBILL_FLAG_TRUE = 2,
};

/* What a release makes of a setting. */
enum {
  WAYBILL_STREAMING_IGNORED = 0, /* accepted, and never had an effect in this component */
  /* still does what it says, but the component warns that it will go */
  WAYBILL_STREAMING_DEPRECATED = 1,
  WAYBILL_STREAMING_REMOVED = 2, /* still accepted, but does nothing any more */
  WAYBILL_STREAMING_FATAL = 3    /* the component does not start */
};
/* "ignored", "deprecated", "removed", "fatal". */
WAYBILL_API waybill_string waybill_streaming_severity_name(int32_t severity);

/* What a release makes of one setting. The texts are on one line, without control characters. */
typedef struct waybill_streaming_finding {
  int32_t component; /* WAYBILL_STREAMING_KUBELET … */
  int32_t severity;  /* WAYBILL_STREAMING_IGNORED … */
  /* "--redirect-container-streaming", "StreamingProxyRedirects": for programs that compare. */
  waybill_string subject;
  waybill_string setting; /* As it was written, quoted if it holds anything unusual, cut if long. */
  /* What this release of the component prints about it; empty: nothing, or no source shows it. */
  waybill_string words;
  waybill_string advice;
  waybill_string source; /* where the fact is from: a release and its file, or a pull request */
} waybill_streaming_finding;

typedef struct waybill_streaming_findings {
  const waybill_streaming_finding* items;
  size_t count;
} waybill_streaming_findings;

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

/* What the kubelet does with a streaming request. */
enum {
  /* the kubelet connects to the runtime's streaming server, and proxies */
  WAYBILL_STREAMING_PROXY_KUBELET = 0,
  /* the kubelet answers 302 with the address of the runtime's streaming server */
  WAYBILL_STREAMING_PROXY_REDIRECT = 1
};
/* Who follows the kubelet's redirect. */
enum {
  WAYBILL_REDIRECT_NOT_NEEDED = 0, /* there is no redirect */
  WAYBILL_REDIRECT_API_SERVER = 1,
  WAYBILL_REDIRECT_NOBODY = 2 /* the client gets a redirect or an error instead of a stream */
};
/* Which redirects are followed. */
enum {
  WAYBILL_REDIRECT_CHECK_NOT_NEEDED = 0,
  /* the redirect must name the kubelet's own host, or it is an error */
  WAYBILL_REDIRECT_CHECK_SAME_HOST = 1,
  /* any host is followed: whoever controls a kubelet sends the API server anywhere */
  WAYBILL_REDIRECT_CHECK_NONE = 2
};
/* Who translates WebSockets to SPDY. */
enum {
  /* The WebSocket goes on to the runtime's streaming server as it is; kubectl falls back to SPDY.
   */
  WAYBILL_WEBSOCKETS_NOBODY = 0,
  WAYBILL_WEBSOCKETS_API_SERVER = 1, /* to SPDY, before the kubelet */
  WAYBILL_WEBSOCKETS_KUBELET = 2     /* to SPDY, before the runtime's streaming server */
};
/* How a streaming request ends. */
enum {
  WAYBILL_STREAMING_WORKS = 0,
  /* if the runtime's streaming server has the kubelet's host name or address */
  WAYBILL_STREAMING_WORKS_ON_SAME_HOST = 1,
  WAYBILL_STREAMING_FAILS = 2,
  WAYBILL_STREAMING_DOES_NOT_START = 3 /* a setting is fatal to the kubelet or the API server */
};
/* Whether the two releases may run together. */
enum {
  WAYBILL_SKEW_SUPPORTED = 0,
  /* by more than 2 releases; by more than 3 for a kubelet from 1.25 on */
  WAYBILL_SKEW_KUBELET_TOO_OLD = 1,
  WAYBILL_SKEW_KUBELET_NEWER = 2 /* than the API server: never supported */
};

/* How a streaming request goes. If `outcome` is WAYBILL_STREAMING_DOES_NOT_START, the other members
 * say what holds once the fatal settings are taken out. */
typedef struct waybill_streaming_answer {
  int32_t proxy;                   /* WAYBILL_STREAMING_PROXY_KUBELET … */
  int32_t follower;                /* WAYBILL_REDIRECT_NOT_NEEDED … */
  int32_t check;                   /* WAYBILL_REDIRECT_CHECK_NOT_NEEDED … */
  int32_t exec_websockets;         /* WAYBILL_WEBSOCKETS_NOBODY …; of exec and attach */
  int32_t port_forward_websockets; /* WAYBILL_WEBSOCKETS_NOBODY … */
  int32_t outcome;                 /* WAYBILL_STREAMING_WORKS … */
  int32_t skew;                    /* WAYBILL_SKEW_SUPPORTED … */
  /* About the flag and the gates in the request, the kubelet's first. Each setting is written as on
   * the component's command line. */
  waybill_streaming_findings findings;
  waybill_strings notes; /* what a reader must know besides */
} waybill_streaming_answer;

/* WAYBILL_INVALID_ARGUMENT: a version before WAYBILL_OLDEST_STREAMING_VERSION, or with another
 * major version than 1. WAYBILL_LIMIT_EXCEEDED: more than 10,000 gates. Unsupported version skew is
 * not an error: the answer covers it, too. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_streaming_plan(const waybill_streaming_plan_request* request,
                       waybill_streaming_answer** answer, waybill_error** error);

typedef struct waybill_streaming_lint_request {
  size_t struct_size;
  int32_t component; /* WAYBILL_STREAMING_KUBELET … */
  waybill_kubernetes_version version;
  waybill_strings arguments; /* behind the program's name */
} waybill_streaming_lint_request;
#define WAYBILL_STREAMING_LINT_REQUEST_INIT WAYBILL_INIT(waybill_streaming_lint_request)

typedef struct waybill_streaming_lint {
  /* Flags in their order, then feature gates. A repeated setting is one finding, with its last
   * spelling, unless it is wrong in several ways. */
  waybill_streaming_findings findings;
  int32_t redirect_container_streaming; /* WAYBILL_FLAG_… */
  const waybill_streaming_gate_setting* gates;
  size_t gate_count;
  waybill_strings notes; /* what could not be judged, and why */
} waybill_streaming_lint;

/* Reads a command line as the component does (pflag): "--flag", "--flag=value", "--flag value";
 * underscores stand for dashes; "--" ends the flags; a value that does not parse is fatal. It does
 * not know which other flags take a value, so it reads what follows such a flag as a flag if it
 * looks like one.
 *
 * WAYBILL_INVALID_ARGUMENT: the version, as for waybill_streaming_plan. WAYBILL_LIMIT_EXCEEDED:
 * more than 10,000 arguments, or more than 1 MiB of them. */
WAYBILL_API WAYBILL_MUST_CHECK waybill_code
waybill_lint_streaming(const waybill_streaming_lint_request* request, waybill_streaming_lint** lint,
                       waybill_error** error);

#ifdef __cplusplus
}
#endif

#endif /* WAYBILL_H_ */
