// Long work: a line that shows how far it is, and a signal that stops it.

#ifndef WAYBILL_BINDINGS_CLI_PROGRESS_H_
#define WAYBILL_BINDINGS_CLI_PROGRESS_H_

#include <cstdint>
#include <string>

#include "waybill/maintenance.h"

namespace waybill::cli {

// A line on standard error that is written over and over; nothing where nobody watches.
class ProgressLine {
 public:
  // "importing", "files".
  ProgressLine(std::string doing, std::string units);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { Clear(); }

  void Show(std::uint64_t done, std::uint64_t total);
  void Clear();

  // Shows how far it is, and stops once SIGINT or SIGTERM came; a second one kills. Refers to this
  // object.
  Progress UntilStopped();

 private:
  std::string doing_;
  std::string units_;
  bool shown_;
  bool written_ = false;
};

// An error of work that can be gone on with says so.
Error WithResumeHint(Error error);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_PROGRESS_H_
