#include "bindings/cli/progress.h"

#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace waybill::cli {
namespace {

constexpr auto kBetweenLines = std::chrono::seconds(10);

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
      next_(std::chrono::steady_clock::now() + kBetweenLines) {}

void ProgressLine::Show(std::uint64_t done, std::uint64_t total) {
  if (is_hidden) return;
  const std::string text = fmt::format("{}: {} of {} {}", doing_, done, total, units_);
  if (terminal_) {
    written_ = true;
    fmt::print(stderr, "\r{}", text);
  } else if (const auto now = std::chrono::steady_clock::now(); now >= next_) {
    next_ = now + kBetweenLines;
    fmt::print(stderr, "{}\n", text);
  }
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
