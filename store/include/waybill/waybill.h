// The whole public interface.

#ifndef WAYBILL_WAYBILL_H_
#define WAYBILL_WAYBILL_H_

#if __cplusplus < 202002L
#error "waybill's headers need C++20, which is not this compiler's default: -std=c++20"
#endif

#include "waybill/calls.h"   // IWYU pragma: export
#include "waybill/limits.h"  // IWYU pragma: export
#include "waybill/result.h"  // IWYU pragma: export
#include "waybill/store.h"   // IWYU pragma: export
#include "waybill/values.h"  // IWYU pragma: export

#endif  // WAYBILL_WAYBILL_H_
