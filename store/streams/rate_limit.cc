
#include <algorithm>
#include <cstdint>
#include <limits>

#include "waybill/store.h"

namespace waybill {
namespace {

// A rate times a time, in billionths of a byte. Both factors have 64 bits at most, so no product
// overflows.
__extension__ using Billionths = unsigned __int128;

constexpr std::uint64_t kPerByte = 1'000'000'000;

std::uint64_t BurstOf(const RateLimitOptions& options) {
  if (options.bytes_per_second == 0) return 0;
  if (options.burst_bytes != 0) return options.burst_bytes;
  return std::max<std::uint64_t>(options.bytes_per_second / 10, 1);
}

}  // namespace

RateLimit::RateLimit(const RateLimitOptions& options, std::int64_t now_ns)
    : bytes_per_second_(options.bytes_per_second),
      burst_bytes_(BurstOf(options)),
      bytes_(burst_bytes_),
      last_ns_(now_ns) {}

void RateLimit::Refill(std::int64_t now_ns) {
  // The difference of any two times fits into 64 bits without a sign.
  const std::uint64_t elapsed =
      now_ns > last_ns_ ? static_cast<std::uint64_t>(now_ns) - static_cast<std::uint64_t>(last_ns_)
                        : 0;
  last_ns_ = now_ns;
  // Below 2^128: the product is at most (2^64 - 1)^2.
  const Billionths more = Billionths{elapsed} * bytes_per_second_ + billionths_;
  if (more / kPerByte >= burst_bytes_ - bytes_) {
    bytes_ = burst_bytes_;
    billionths_ = 0;
    return;
  }
  bytes_ += static_cast<std::uint64_t>(more / kPerByte);
  billionths_ = static_cast<std::uint64_t>(more % kPerByte);
}

std::uint64_t RateLimit::Take(std::uint64_t wanted, std::int64_t now_ns) {
  if (bytes_per_second_ == 0) return wanted;
  Refill(now_ns);
  const std::uint64_t taken = std::min(wanted, bytes_);
  bytes_ -= taken;
  return taken;
}

void RateLimit::GiveBack(std::uint64_t bytes) {
  if (bytes >= burst_bytes_ - bytes_) {
    bytes_ = burst_bytes_;
    billionths_ = 0;
  } else {
    bytes_ += bytes;
  }
}

std::int64_t RateLimit::Wait(std::uint64_t wanted, std::int64_t now_ns) {
  if (bytes_per_second_ == 0) return 0;
  Refill(now_ns);
  const std::uint64_t reachable = std::min(wanted, burst_bytes_);
  if (reachable <= bytes_) return 0;
  const Billionths missing = Billionths{reachable - bytes_} * kPerByte - billionths_;
  const Billionths wait = (missing + bytes_per_second_ - 1) / bytes_per_second_;
  constexpr auto kForEver = std::numeric_limits<std::int64_t>::max();
  return wait > static_cast<std::uint64_t>(kForEver) ? kForEver : static_cast<std::int64_t>(wait);
}

}  // namespace waybill
