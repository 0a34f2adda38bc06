// What caches are asked for, in order of time: the input of every simulation here.

#ifndef WAYBILL_SIZING_REQUESTS_H_
#define WAYBILL_SIZING_REQUESTS_H_

#include <cstdint>
#include <vector>

namespace waybill::sizing {

struct Request {
  std::uint32_t object = 0;
  std::int64_t time_ms = 0;
};

struct Requests {
  std::vector<std::uint64_t> bytes = {};  // of each object, at least 1; an object is its place here
  std::vector<Request> all = {};

  std::uint64_t total_bytes() const;     // requested
  std::uint64_t distinct_bytes() const;  // of all objects
};

// What a cache's capacity is counted in.
enum class Unit : std::uint8_t { kObjects, kBytes };

struct Misses {
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Misses&, const Misses&) = default;
};

// The same 64 bits for the same number everywhere (splitmix64).
constexpr std::uint64_t Mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

}  // namespace waybill::sizing

#endif  // WAYBILL_SIZING_REQUESTS_H_
