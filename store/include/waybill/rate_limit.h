// How fast bytes may pass through one proxied connection: MaxConnectionBytesPerSec, which KEP-1558
// ("Risks and Mitigations") adds to the kubelet, as the API server has it. A token bucket without a
// clock, a thread or I/O of its own.

#ifndef WAYBILL_RATE_LIMIT_H_
#define WAYBILL_RATE_LIMIT_H_

#include <cstdint>

namespace [[gnu::visibility("default")]] waybill {

struct RateLimitOptions {
  // 0: no limit, as in the API server's --max-connection-bytes-per-sec.
  std::uint64_t bytes_per_second = 0;
  // How many bytes may pass at once after a pause. 0: what passes in a tenth of a second, at least
  // one byte. A burst below the size of the caller's buffer only cuts what it moves at a time.
  std::uint64_t burst_bytes = 0;
};

// Use one for each connection; both directions may share it, or have one each. Not thread-safe: the
// caller locks. Nothing allocates, throws or fails; every argument is allowed.
//
// Each call is given the time, in nanoseconds of a monotonic clock (CLOCK_MONOTONIC) whose zero
// does not matter. The elapsed time is the sum of its steps forward. If the clock goes back, that
// step gives nothing, and time counts from there on, so that nobody waits until the clock has
// caught up.
//
// Promise: after any calls, at most burst + rate * elapsed bytes have passed. A caller that always
// takes what is available gets all of that except for less than one byte, however often it asks,
// unless it lets the bucket fill up.
class RateLimit {
 public:
  // Begins with a full burst.
  RateLimit(const RateLimitOptions& options, std::int64_t now_ns);

  // Up to `wanted` bytes that may pass now, and are counted as passed. 0: wait.
  std::uint64_t Take(std::uint64_t wanted, std::int64_t now_ns);

  // Gives back bytes of the last Take that did not pass, for instance because a read returned
  // fewer. The bucket never holds more than the burst.
  void GiveBack(std::uint64_t bytes);

  // How many nanoseconds from `now_ns` on until Take(wanted) gives all of `wanted`, or a full burst
  // if that is less; 0: now. At most INT64_MAX (292 years).
  std::int64_t Wait(std::uint64_t wanted, std::int64_t now_ns);

  // As configured, with the default burst filled in. Without a limit, 0 and 0.
  std::uint64_t bytes_per_second() const { return bytes_per_second_; }
  std::uint64_t burst_bytes() const { return burst_bytes_; }

 private:
  void Refill(std::int64_t now_ns);

  std::uint64_t bytes_per_second_;
  std::uint64_t burst_bytes_;
  // What may pass: whole bytes, and billionths of one, below 1,000,000,000. A full bucket has no
  // fraction.
  std::uint64_t bytes_;
  std::uint64_t billionths_ = 0;
  std::int64_t last_ns_;
};

}  // namespace waybill

#endif  // WAYBILL_RATE_LIMIT_H_
