/* Go calls these to make a decision cheap. */

#ifndef WAYBILL_GO_SHIM_H_
#define WAYBILL_GO_SHIM_H_

#include <stdlib.h>

#include "waybill.h"

/* Go may pass pointers to its texts as arguments, also in structs by value, but memory that holds
 * such pointers only if they are pinned, which costs. So up to 8 secrets are arguments. */
enum { WAYBILL_GO_FEW_SECRETS = 8 };

typedef struct waybill_go_few {
  waybill_credential secrets[WAYBILL_GO_FEW_SECRETS];
} waybill_go_few;

/* The number of the look has no type that cgo checks. */
typedef struct waybill_go_first {
  uint32_t bits;
  uintptr_t look;
} waybill_go_first;

static inline uint32_t waybill_go_bits(waybill_decision decision) {
  return (uint32_t)decision.use | (uint32_t)decision.credentials_read << 1 |
         (uint32_t)decision.result << 8 | (uint32_t)decision.reason << 16;
}

static inline waybill_go_first waybill_go_decide_first(uintptr_t store, waybill_copy copy) {
  waybill_look* look = NULL;
  waybill_go_first first;
  first.bits = waybill_go_bits(waybill_decide_first((waybill_store*)store, copy, &look));
  first.look = (uintptr_t)look;
  return first;
}

/* Frees `look`. */
static inline uint32_t waybill_go_decide(uintptr_t store, uintptr_t look, waybill_copy copy,
                                         const waybill_credentials* credentials) {
  uint32_t bits;
  waybill_store* s = (waybill_store*)store;
  if (look == 0) return waybill_go_bits(waybill_decide(s, copy, credentials));
  bits = waybill_go_bits(waybill_decide_second(s, copy, (waybill_look*)look, credentials));
  waybill_free((void*)look);
  return bits;
}

static inline uint32_t waybill_go_decide_without(uintptr_t store, uintptr_t look,
                                                 waybill_copy copy) {
  return waybill_go_decide(store, look, copy, NULL);
}

static inline uint32_t waybill_go_decide_many(uintptr_t store, uintptr_t look, waybill_copy copy,
                                              const waybill_credential* many, size_t secrets,
                                              waybill_credential account, size_t accounts) {
  const waybill_credentials credentials = {many, secrets, &account, accounts, false};
  return waybill_go_decide(store, look, copy, &credentials);
}

/* At most one secret and one account. Fewer arguments are cheaper, and the usual pod has one
 * secret. */
static inline uint32_t waybill_go_decide_one(uintptr_t store, uintptr_t look, waybill_copy copy,
                                             waybill_credential secret, size_t secrets,
                                             waybill_credential account, size_t accounts) {
  return waybill_go_decide_many(store, look, copy, &secret, secrets, account, accounts);
}

/* One secret, and no account. */
static inline uint32_t waybill_go_decide_secret(uintptr_t store, waybill_copy copy,
                                                waybill_credential secret) {
  const waybill_credentials credentials = {&secret, 1, NULL, 0, false};
  return waybill_go_bits(waybill_decide((waybill_store*)store, copy, &credentials));
}

static inline uint32_t waybill_go_decide_few(uintptr_t store, uintptr_t look, waybill_copy copy,
                                             waybill_go_few few, size_t secrets,
                                             waybill_credential account, size_t accounts) {
  return waybill_go_decide_many(store, look, copy, few.secrets, secrets, account, accounts);
}

#endif /* WAYBILL_GO_SHIM_H_ */
