/* Every function that takes a store, with valid arguments, for tests that expect the same of all.
 * In this order, on a new store of `open_store`, each returns `on_new_store`. */

#ifndef WAYBILL_TESTS_C_CALLS_H_
#define WAYBILL_TESTS_C_CALLS_H_

#include <stddef.h>

#include "waybill.h"

typedef struct store_call {
  const char* name;
  /* Checks that success sets a result and failure NULL; frees the result. */
  waybill_code (*call)(waybill_store* store, waybill_error** error);
  waybill_code on_new_store; /* WAYBILL_OK, or WAYBILL_NOT_FOUND */
  bool needs_owner;
} store_call;

/* All except waybill_close, waybill_store_free, waybill_get_recovery_report (which also works on a
 * closed store) and the decisions, which have no codes. */
extern const store_call kStoreCalls[];
extern const size_t kStoreCallCount;

/* Checks that each returns `expected`, with and without an error to fill in. */
void check_all_calls(waybill_store* store, waybill_code expected);

/* Whether both forms of the decision answer "pull". */
bool all_decide_to_pull(waybill_store* store);

#endif /* WAYBILL_TESTS_C_CALLS_H_ */
