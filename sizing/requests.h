// What a node asked for, in order of time: the input of every simulation here.

#ifndef WAYBILL_SIZING_REQUESTS_H_
#define WAYBILL_SIZING_REQUESTS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace waybill::sizing {

struct Request {
  std::uint32_t object = 0;
  std::int64_t time_ms = 0;
};

struct Requests {
  // Of each object, as its runtime lists it, at least 1. An object is its place here.
  std::vector<std::uint64_t> bytes = {};
  std::vector<Request> all = {};
  // What an object takes on the disk, for each byte that is listed.
  double unpacked = 1;

  std::uint64_t BytesOnDisk(std::uint32_t object) const {
    return static_cast<std::uint64_t>(
        std::max(1LL, std::llround(static_cast<double>(bytes[object]) * unpacked)));
  }
};

struct Misses {
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Misses&, const Misses&) = default;
};

}  // namespace waybill::sizing

#endif  // WAYBILL_SIZING_REQUESTS_H_
