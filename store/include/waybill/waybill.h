// The whole public interface.

#ifndef WAYBILL_WAYBILL_H_
#define WAYBILL_WAYBILL_H_

#include "waybill/calls.h"   // IWYU pragma: export
#include "waybill/limits.h"  // IWYU pragma: export
#include "waybill/result.h"  // IWYU pragma: export
#include "waybill/store.h"   // IWYU pragma: export
#include "waybill/values.h"  // IWYU pragma: export

#endif  // WAYBILL_WAYBILL_H_
