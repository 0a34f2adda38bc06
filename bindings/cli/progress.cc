#include "bindings/cli/progress.h"

#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "bindings/cli/sizing_model.h"

namespace waybill::cli {
namespace {

constexpr auto kBetweenLines = std::chrono::seconds(10);
constexpr auto kBetweenRewrites = std::chrono::milliseconds(100);

bool is_hidden = false;

// Set by the first SIGINT or SIGTERM. A second one kills.
volatile sig_atomic_t stop_requested = 0;

void RequestStop(int) { stop_requested = 1; }

}  // namespace

void CatchStopSignals() {
  struct sigaction action = {};
  action.sa_handler = RequestStop;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
}

bool StopRequested() { return stop_requested != 0; }

void HideProgress(bool hidden) { is_hidden = hidden; }

ProgressLine::ProgressLine(std::string doing, std::string units)
    : doing_(std::move(doing)),
      units_(std::move(units)),
      terminal_(::isatty(STDERR_FILENO) == 1),
      next_(std::chrono::steady_clock::now() +
            (terminal_ ? std::chrono::milliseconds(0) : kBetweenLines)) {}

void ProgressLine::Show(std::uint64_t done, std::uint64_t total) {
  const auto now = std::chrono::steady_clock::now();
  if (is_hidden || now < next_) return;
  next_ = now + (terminal_ ? kBetweenRewrites : kBetweenLines);
  const std::string text =
      units_ == "bytes" ? fmt::format("{}: {} of {}", doing_, BytesText(static_cast<double>(done)),
                                      BytesText(static_cast<double>(total)))
                        : fmt::format("{}: {} of {} {}", doing_, done, total, units_);
  // What is left of a longer line goes.
  fmt::print(stderr, "{}{}{}", terminal_ ? "\r" : "", text, terminal_ ? "\x1b[K" : "\n");
  written_ = terminal_;
  std::fflush(stderr);
}

void ProgressLine::Clear() {
  if (!written_) return;
  written_ = false;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
}

Progress ProgressLine::UntilStopped() {
  CatchStopSignals();
  return [this](std::uint64_t done, std::uint64_t total) {
    Show(done, total);
    return !StopRequested();
  };
}

Error WithResumeHint(Error error) {
  if (error.code == ErrorCode::kInterrupted && !error.has_hint()) {
    error.hint = "it is safe to run the same command again: it goes on from here";
  }
  return error;
}

}  // namespace waybill::cli
