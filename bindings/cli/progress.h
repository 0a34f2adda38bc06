// Long work: a progress line, and a signal that stops it.

#ifndef WAYBILL_BINDINGS_CLI_PROGRESS_H_
#define WAYBILL_BINDINGS_CLI_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "waybill/values.h"

namespace waybill::cli {

// From now on SIGINT and SIGTERM are noted instead of ending the process. A second one kills.
void CatchStopSignals();
bool StopRequested();

// From now on no ProgressLine shows anything.
void HideProgress(bool hidden);

// A line on standard error: on a terminal one that is rewritten, ten times a second at most;
// elsewhere a new one every ten seconds.
class ProgressLine {
 public:
  // "importing", "files".
  ProgressLine(std::string doing, std::string units);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { Clear(); }

  void Show(std::uint64_t done, std::uint64_t total);
  void Clear();

  // Shows progress, and stops after SIGINT or SIGTERM; a second signal kills. Refers to this
  // object.
  Progress UntilStopped();

 private:
  std::string doing_;
  std::string units_;
  bool terminal_;
  bool written_ = false;
  std::chrono::steady_clock::time_point next_;  // not before
};

// If the work was interrupted, the hint says that it can be continued.
Error WithResumeHint(Error error);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_PROGRESS_H_
