/* Every function that takes a store, each with arguments that are right: for tests that want the
 * same of all of them. In their order on a new store of `open_store`, none fails but as said. */

#ifndef WAYBILL_TESTS_C_CALLS_H_
#define WAYBILL_TESTS_C_CALLS_H_

#include <stddef.h>

#include "waybill.h"

typedef struct store_call {
  const char* name;
  /* Checks that a result comes out where it succeeds, and NULL where it fails; frees it. */
  waybill_code (*call)(waybill_store* store, waybill_error** error);
  waybill_code on_new_store; /* WAYBILL_OK, or WAYBILL_NOT_FOUND */
  bool needs_owner;
} store_call;

/* All but waybill_close, waybill_store_free, waybill_get_recovery_report (which a closed store has,
 * too), and the decisions, which have no codes. */
extern const store_call kStoreCalls[];
extern const size_t kStoreCallCount;

/* That each of them says `expected`, with and without an error to fill in. */
void check_all_calls(waybill_store* store, waybill_code expected);

/* Whether both forms of the decision answer "pull". */
bool all_decide_to_pull(waybill_store* store);

#endif /* WAYBILL_TESTS_C_CALLS_H_ */
