// The report of `waybill start`.

#ifndef WAYBILL_BINDINGS_CLI_START_REPORT_H_
#define WAYBILL_BINDINGS_CLI_START_REPORT_H_

#include <cstdint>
#include <string>

#include "bindings/cli/output.h"
#include "waybill/report.h"
#include "waybill/rules.h"

namespace waybill::cli {

struct StartOutcome {
  RecoveryReport report;
  Statistics statistics;
  std::uint64_t open_pulls = 0;
  bool anything = false;       // one of them is of anything
  std::uint64_t presumed = 0;  // entries of the ledger
};

struct StartContext {
  std::string store;  // the directory as it was given
  Rules rules = Rules::kClosed;
  bool images_given = false;
  bool preloaded_given = false;
  bool dry_run = false;
};

// Warns of what closes images on standard error, too.
void WriteStartReport(const StartOutcome& outcome, const StartContext& context, Output& out);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_START_REPORT_H_
