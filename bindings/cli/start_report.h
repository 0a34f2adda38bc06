// The report of `waybill start`.

#ifndef WAYBILL_BINDINGS_CLI_START_REPORT_H_
#define WAYBILL_BINDINGS_CLI_START_REPORT_H_

#include <string>

#include "bindings/cli/output.h"
#include "waybill/report.h"

namespace waybill::cli {

// `store` is the directory as it was given. Warns of distrust on standard error, too.
void WriteStartReport(const RecoveryReport& report, const std::string& store, Output& out);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_START_REPORT_H_
