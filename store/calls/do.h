// What each call does to a node's store: a function for each struct of waybill/calls.h, in the file
// of this folder that is named for what it is about.

#ifndef WAYBILL_STORE_CALLS_DO_H_
#define WAYBILL_STORE_CALLS_DO_H_

#include "store/calls/node_store.h"
#include "store/door/calls.h"
#include "waybill/result.h"

namespace waybill::door {

#define WAYBILL_DECLARE(C) Result<C::Answer> Do(NodeStore&, const C&, const Progress&);
WAYBILL_READING_CALLS(WAYBILL_DECLARE)
WAYBILL_CHANGING_CALLS(WAYBILL_DECLARE)
WAYBILL_UNSERVED_CALLS(WAYBILL_DECLARE)
#undef WAYBILL_DECLARE

}  // namespace waybill::door

#endif  // WAYBILL_STORE_CALLS_DO_H_
