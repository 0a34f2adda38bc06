// Waiting for a store that another process owns (--wait).

#ifndef WAYBILL_BINDINGS_CLI_OWNER_WAIT_H_
#define WAYBILL_BINDINGS_CLI_OWNER_WAIT_H_

#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <random>
#include <type_traits>

#include "bindings/cli/parse.h"
#include "waybill/result.h"

namespace waybill::cli {

// Naps between attempts, each longer than the one before, up to 100 ms, and never as long as
// another process's.
class OwnerWait {
 public:
  explicit OwnerWait(const StoreFlags& flags);
  ~OwnerWait();
  OwnerWait(const OwnerWait&) = delete;
  OwnerWait& operator=(const OwnerWait&) = delete;

  // After an attempt that failed with `owned` (kOwned): naps. nullopt: try again. Otherwise the
  // error to end with: the time is up, or kInterrupted: SIGINT or SIGTERM came.
  std::optional<Error> Nap(const Error& owned);

 private:
  using Clock = std::chrono::steady_clock;

  const StoreFlags& flags_;
  const Clock::time_point began_ = Clock::now();
  std::chrono::microseconds nap_{2'000};
  std::minstd_rand draw_;
  bool catches_ = false;
  std::array<struct sigaction, 2> before_{};
};

// A nap between two requests to an owner that is busy.
void NapWhileBusy();

// Calls `request`, which returns a Result, again as long as the owner did not take it
// (kUnavailable: nothing was changed): for half a minute, or for `wait` if that is longer.
template <typename Request>
std::invoke_result_t<Request> WhileBusy(std::chrono::seconds wait, const Request& request) {
  constexpr std::chrono::seconds kLeast{30};
  const auto deadline = std::chrono::steady_clock::now() + std::max(wait, kLeast);
  while (true) {
    auto result = std::invoke(request);
    if (result || result.error().code != ErrorCode::kUnavailable ||
        std::chrono::steady_clock::now() >= deadline) {
      return result;
    }
    NapWhileBusy();
  }
}

// Calls `attempt`, which returns a Result, again as long as it is kOwned and --wait allows.
template <typename Attempt>
std::invoke_result_t<Attempt> WhileOwned(const StoreFlags& flags, const Attempt& attempt) {
  OwnerWait wait(flags);
  while (true) {
    auto result = std::invoke(attempt);
    if (result || result.error().code != ErrorCode::kOwned) return result;
    if (auto error = wait.Nap(result.error())) return *std::move(error);
  }
}

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_OWNER_WAIT_H_
