#include "bindings/cli/owner_wait.h"

#include <fmt/core.h>
#include <time.h>
#include <unistd.h>

#include "bindings/cli/progress.h"

namespace waybill::cli {
namespace {

constexpr std::chrono::microseconds kLongestNap{100'000};
constexpr std::array kEndingSignals = {SIGINT, SIGTERM};

// Cut short by a signal.
void NapFor(std::chrono::microseconds span) {
  constexpr long kNanosPerMicro = 1'000;
  const struct timespec nap = {.tv_sec = 0, .tv_nsec = span.count() * kNanosPerMicro};
  static_cast<void>(::nanosleep(&nap, nullptr));
}

}  // namespace

void NapWhileBusy() {
  static std::minstd_rand draw(static_cast<std::minstd_rand::result_type>(::getpid()));
  std::uniform_int_distribution<std::chrono::microseconds::rep> length(2'000, 50'000);
  NapFor(std::chrono::microseconds(length(draw)));
}

OwnerWait::OwnerWait(const StoreFlags& flags)
    : flags_(flags), draw_(static_cast<std::minstd_rand::result_type>(::getpid())) {}

OwnerWait::~OwnerWait() {
  if (!catches_) return;
  for (std::size_t i = 0; i < kEndingSignals.size(); ++i) {
    ::sigaction(kEndingSignals[i], &before_[i], nullptr);
  }
}

std::optional<Error> OwnerWait::Nap(const Error& owned) {
  Error error = owned;
  if (flags_.wait.count() == 0) {
    error.hint += std::string(error.hint.empty() ? "" : "; ") + "`--wait 30s` waits until it ends";
    return error;
  }
  if (!catches_) {
    for (std::size_t i = 0; i < kEndingSignals.size(); ++i) {
      ::sigaction(kEndingSignals[i], nullptr, &before_[i]);
    }
    CatchStopSignals();
    catches_ = true;
  }
  const auto left =
      std::chrono::duration_cast<std::chrono::microseconds>(began_ + flags_.wait - Clock::now());
  if (left.count() > 0 && !StopRequested()) {
    std::uniform_int_distribution<std::chrono::microseconds::rep> length(nap_.count() / 2,
                                                                         nap_.count());
    NapFor(std::min(left, std::chrono::microseconds(length(draw_))));
    nap_ = std::min(2 * nap_, kLongestNap);
  }
  if (StopRequested()) {
    error.code = ErrorCode::kInterrupted;
    error.message = "stopped by a signal while waiting: " + error.message;
    error.hint = "run the same command again, or stop the process that owns the store";
    return error;
  }
  if (left.count() > 0) return std::nullopt;
  error.message = fmt::format("waited {}s in vain: {}", flags_.wait.count(), error.message);
  error.hint = "wait for longer (--wait), or find out what that process does";
  return error;
}

}  // namespace waybill::cli
