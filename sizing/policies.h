// Caches of one size, by the rule that says what they evict. An object that is larger than the
// whole cache passes by and evicts nothing.

#ifndef WAYBILL_SIZING_POLICIES_H_
#define WAYBILL_SIZING_POLICIES_H_

#include <array>
#include <cstdint>
#include <string_view>

#include "sizing/requests.h"

namespace waybill::sizing {

enum class Policy : std::uint8_t { kLru, kLfu, kFifo, kS3Fifo, kSieve };
inline constexpr std::array<Policy, 5> kPolicies = {Policy::kLru, Policy::kLfu, Policy::kFifo,
                                                    Policy::kS3Fifo, Policy::kSieve};
std::string_view NameOf(Policy policy);  // "S3-FIFO"

// What a cache that begins empty misses. Not kLru: LruMisses (stack_distances.h) has all sizes at
// once.
//
// LFU counts uses while an object is in the cache; of those with the fewest the one that was not
// used for longest goes. S3-FIFO: Yang et al., SOSP 2023: a small queue of a tenth, a main queue
// with two-bit counters, and a ghost queue as large as the main one; an object that was used twice
// in the small queue moves to the main one. SIEVE: Zhang et al., NSDI 2024.
Misses Simulate(Policy policy, const Requests& requests, Unit unit, std::uint64_t capacity);

}  // namespace waybill::sizing

#endif  // WAYBILL_SIZING_POLICIES_H_
