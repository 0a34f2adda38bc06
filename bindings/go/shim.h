/* Go calls these instead of functions of waybill.h that need a callback, or to make a call cheaper.
 * C never calls into Go, so a panic never crosses C; C keeps no Go memory. */

#ifndef WAYBILL_GO_SHIM_H_
#define WAYBILL_GO_SHIM_H_

#include <stdlib.h>
#include <string.h>

#include "waybill.h"

/* --- Clock and progress: cells of C memory that Go writes atomically ---------------------------
 */

static inline waybill_timestamp waybill_go_clock(void* nanoseconds) {
  const int64_t now = __atomic_load_n((const int64_t*)nanoseconds, __ATOMIC_SEQ_CST);
  waybill_timestamp time = {now / 1000000000, (int32_t)(now % 1000000000)};
  if (time.nanoseconds < 0) {
    time.seconds -= 1;
    time.nanoseconds += 1000000000;
  }
  return time;
}

/* Written under a sequence number that is odd meanwhile. */
typedef struct waybill_go_boot_cell {
  uint64_t sequence;
  uint64_t boot_id[2];
  int64_t nanoseconds;
} waybill_go_boot_cell;

static inline waybill_boot_time waybill_go_boot_clock(void* cell) {
  const waybill_go_boot_cell* from = (const waybill_go_boot_cell*)cell;
  waybill_boot_time time;
  uint64_t boot_id[2];
  uint64_t sequence;
  do {
    sequence = __atomic_load_n(&from->sequence, __ATOMIC_SEQ_CST);
    boot_id[0] = __atomic_load_n(&from->boot_id[0], __ATOMIC_SEQ_CST);
    boot_id[1] = __atomic_load_n(&from->boot_id[1], __ATOMIC_SEQ_CST);
    time.nanoseconds = __atomic_load_n(&from->nanoseconds, __ATOMIC_SEQ_CST);
  } while (sequence % 2 != 0 || sequence != __atomic_load_n(&from->sequence, __ATOMIC_SEQ_CST));
  memcpy(time.boot_id, boot_id, sizeof time.boot_id);
  return time;
}

static inline waybill_boot_clock waybill_go_boot_clock_of(const waybill_go_boot_cell* cell) {
  return cell == NULL ? NULL : waybill_go_boot_clock;
}

static inline bool waybill_go_progress(void* stop, uint64_t done, uint64_t total) {
  (void)done;
  (void)total;
  return __atomic_load_n((const int32_t*)stop, __ATOMIC_SEQ_CST) == 0;
}

static inline waybill_clock waybill_go_clock_of(const int64_t* nanoseconds) {
  return nanoseconds == NULL ? NULL : waybill_go_clock;
}

static inline waybill_progress waybill_go_progress_of(const int32_t* stop) {
  return stop == NULL ? NULL : waybill_go_progress;
}

/* --- A pod's credentials ------------------------------------------------------------------------
 * Go may pass pointers to its strings as arguments, also in structs by value, but not memory that
 * holds such pointers. So up to 8 secrets are arguments. More come packed into one buffer, each
 * string as
 *
 *   8 bytes, its length in the machine's order | its bytes
 *
 * and for each secret: uid, namespace, name, credential hash; then, if there is a service account:
 * uid, namespace, name. */

enum { WAYBILL_GO_FEW_SECRETS = 8 };

typedef struct waybill_go_few {
  waybill_image_pull_secret secrets[WAYBILL_GO_FEW_SECRETS];
} waybill_go_few;

enum {
  WAYBILL_GO_SECRETS = 1,
  WAYBILL_GO_SECRETS_AND_ACCOUNT = 2,
  WAYBILL_GO_UNAVAILABLE = 3, /* the credentials are unavailable */
};

typedef struct waybill_go_pod {
  waybill_pod_credentials credentials;
  waybill_image_pull_service_account account;
  waybill_image_pull_secret* many; /* on the heap, or NULL */
} waybill_go_pod;

static inline bool waybill_go_take(const char** at, const char* end, waybill_string* string) {
  uint64_t length = 0;
  if ((size_t)(end - *at) < sizeof length) return false;
  memcpy(&length, *at, sizeof length);
  *at += sizeof length;
  if ((uint64_t)(end - *at) < length) return false;
  string->data = *at;
  string->length = (size_t)length;
  *at += length;
  return true;
}

/* false: out of memory, or not packed as above. Call free(pod->many) afterwards in either case. */
static inline bool waybill_go_unpack(waybill_go_pod* pod, const char* packed, size_t bytes,
                                     size_t secrets, int32_t kind) {
  const char* at = packed;
  const char* end = packed + bytes;
  size_t i;
  pod->many = NULL;
  if (secrets > bytes / (4 * sizeof(uint64_t))) return false;
  pod->many = malloc(secrets * sizeof *pod->many + 1);
  if (pod->many == NULL) return false;
  for (i = 0; i < secrets; ++i) {
    waybill_image_pull_secret* secret = &pod->many[i];
    if (!waybill_go_take(&at, end, &secret->uid) ||
        !waybill_go_take(&at, end, &secret->namespace_name) ||
        !waybill_go_take(&at, end, &secret->name) ||
        !waybill_go_take(&at, end, &secret->credential_hash)) {
      return false;
    }
  }
  pod->credentials.secrets = pod->many;
  pod->credentials.secret_count = secrets;
  pod->credentials.service_account = NULL;
  if (kind == WAYBILL_GO_SECRETS_AND_ACCOUNT) {
    if (!waybill_go_take(&at, end, &pod->account.uid) ||
        !waybill_go_take(&at, end, &pod->account.namespace_name) ||
        !waybill_go_take(&at, end, &pod->account.name)) {
      return false;
    }
    pod->credentials.service_account = &pod->account;
  }
  return at == end;
}

/* --- Decisions ----------------------------------------------------------------------------------
 * A handle comes as a number, since cgo checks what pointers point to. */

/* pull | credentials_read << 1 | result << 8 | reason << 16 */
static inline uint32_t waybill_go_bits(waybill_decision decision) {
  return (uint32_t)decision.pull | (uint32_t)decision.credentials_read << 1 |
         (uint32_t)decision.result << 8 | (uint32_t)decision.reason << 16;
}

/* The first of two calls: its decision, and its first look as a number; 0: no second call. */
typedef struct waybill_go_first {
  uintptr_t look;
  uint32_t bits;
} waybill_go_first;

static inline waybill_go_first waybill_go_decide_first(uintptr_t store, waybill_image_copy copy) {
  waybill_first_look* look = NULL;
  waybill_go_first first;
  first.bits = waybill_go_bits(waybill_must_attempt_pull_first((waybill_store*)store, copy, &look));
  first.look = (uintptr_t)look;
  return first;
}

/* The only call (look 0), or the second one, which frees `look`. `credentials` NULL: they are
 * unavailable. */
static inline uint32_t waybill_go_decide(uintptr_t store, uintptr_t look, waybill_image_copy copy,
                                         const waybill_pod_credentials* credentials) {
  waybill_store* s = (waybill_store*)store;
  uint32_t bits;
  if (look == 0) {
    return waybill_go_bits(waybill_must_attempt_pull(s, copy, credentials));
  }
  bits = waybill_go_bits(
      waybill_must_attempt_pull_second(s, copy, (waybill_first_look*)look, credentials));
  waybill_free((void*)look);
  return bits;
}

static inline uint32_t waybill_go_decide_without(uintptr_t store, uintptr_t look,
                                                 waybill_image_copy copy) {
  return waybill_go_decide(store, look, copy, NULL);
}

/* At most one secret. */
static inline uint32_t waybill_go_decide_one(uintptr_t store, uintptr_t look,
                                             waybill_image_copy copy,
                                             waybill_image_pull_secret secret, size_t secrets,
                                             waybill_image_pull_service_account account,
                                             int32_t kind) {
  const waybill_pod_credentials credentials = {
      &secret, secrets, kind == WAYBILL_GO_SECRETS_AND_ACCOUNT ? &account : NULL};
  return waybill_go_decide(store, look, copy, &credentials);
}

static inline uint32_t waybill_go_decide_few(uintptr_t store, uintptr_t look,
                                             waybill_image_copy copy, waybill_go_few few,
                                             size_t secrets,
                                             waybill_image_pull_service_account account,
                                             int32_t kind) {
  const waybill_pod_credentials credentials = {
      few.secrets, secrets, kind == WAYBILL_GO_SECRETS_AND_ACCOUNT ? &account : NULL};
  return waybill_go_decide(store, look, copy, &credentials);
}

static inline uint32_t waybill_go_decide_many(uintptr_t store, uintptr_t look,
                                              waybill_image_copy copy, const char* packed,
                                              size_t bytes, size_t secrets, int32_t kind) {
  waybill_go_pod pod;
  const bool unpacked = waybill_go_unpack(&pod, packed, bytes, secrets, kind);
  const uint32_t decision =
      waybill_go_decide(store, look, copy, unpacked ? &pod.credentials : NULL);
  free(pod.many);
  return decision;
}

static inline waybill_code waybill_go_ensure_first(waybill_store* store, waybill_image_copy copy,
                                                   int32_t pull_policy, uintptr_t* look,
                                                   waybill_ensure_outcome** outcome,
                                                   waybill_error** error) {
  waybill_first_look* first = NULL;
  const waybill_code code =
      waybill_ensure_image_first(store, copy, pull_policy, &first, outcome, error);
  *look = (uintptr_t)first;
  return code;
}

/* Frees `look`. */
static inline waybill_code waybill_go_ensure_second(waybill_store* store, uintptr_t look,
                                                    waybill_image_copy copy, int32_t pull_policy,
                                                    const char* packed, size_t bytes,
                                                    size_t secrets, int32_t kind,
                                                    waybill_ensure_outcome** outcome,
                                                    waybill_error** error) {
  waybill_go_pod pod;
  waybill_code code;
  bool unpacked = false;
  pod.many = NULL;
  if (kind != WAYBILL_GO_UNAVAILABLE) {
    unpacked = waybill_go_unpack(&pod, packed, bytes, secrets, kind);
  }
  code = waybill_ensure_image_second(store, copy, pull_policy, (waybill_first_look*)look,
                                     unpacked ? &pod.credentials : NULL, outcome, error);
  free(pod.many);
  waybill_free((void*)look);
  return code;
}

/* --- Calls that would pass a struct with Go memory in it, or return views of Go memory ----------
 */

static inline waybill_code waybill_go_user_namespace(waybill_store* store, waybill_string pod_uid,
                                                     int32_t host_users,
                                                     waybill_string runtime_handler,
                                                     uint32_t length,
                                                     waybill_user_namespace* user_namespace,
                                                     waybill_error** error) {
  waybill_user_namespace_request request = WAYBILL_USER_NAMESPACE_REQUEST_INIT;
  request.pod_uid = pod_uid;
  request.host_users = host_users;
  request.runtime_handler = runtime_handler;
  request.length = length;
  return waybill_get_or_create_user_namespace(store, &request, user_namespace, error);
}

/* The offset of each part in the image string, and its length. */
typedef struct waybill_go_image_parts {
  size_t parts[5][2];
} waybill_go_image_parts;

static inline bool waybill_go_parse_image(waybill_string image, waybill_go_image_parts* out) {
  waybill_image_parts parts;
  size_t i;
  memset(out, 0, sizeof *out);
  if (!waybill_parse_image(image, &parts)) return false;
  {
    const waybill_string* const each[5] = {&parts.name, &parts.domain, &parts.path, &parts.tag,
                                           &parts.digest};
    for (i = 0; i < 5; ++i) {
      if (each[i]->length == 0) continue;
      out->parts[i][0] = (size_t)(each[i]->data - image.data);
      out->parts[i][1] = each[i]->length;
    }
  }
  return true;
}

#endif /* WAYBILL_GO_SHIM_H_ */
