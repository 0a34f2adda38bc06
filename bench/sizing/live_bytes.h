// What the heap holds, by taking the place of operator new.

#ifndef WAYBILL_BENCH_SIZING_LIVE_BYTES_H_
#define WAYBILL_BENCH_SIZING_LIVE_BYTES_H_

#include <cstdint>

namespace waybill::bench {

// Taken by this thread less given back by it since it began, as the allocator rounds sizes.
std::int64_t LiveHeapBytes();

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_SIZING_LIVE_BYTES_H_
