// What a node asked for, in order of time: the input of every simulation here.

#ifndef WAYBILL_SIZING_REQUESTS_H_
#define WAYBILL_SIZING_REQUESTS_H_

#include <cstdint>
#include <numeric>
#include <vector>

namespace waybill::sizing {

struct Request {
  std::uint32_t object = 0;
  std::int64_t time_ms = 0;
};

struct Requests {
  std::vector<std::uint64_t> bytes = {};  // of each object, at least 1; an object is its place here
  std::vector<Request> all = {};

  // Of all objects.
  std::uint64_t distinct_bytes() const {
    return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
  }
};

struct Misses {
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Misses&, const Misses&) = default;
};

}  // namespace waybill::sizing

#endif  // WAYBILL_SIZING_REQUESTS_H_
