// Reports on changes of a whole store, as JSON and as lines of text, for `start`, `migrate` and
// `runtimes`.

#ifndef WAYBILL_BINDINGS_CLI_CHANGE_REPORT_H_
#define WAYBILL_BINDINGS_CLI_CHANGE_REPORT_H_

#include "bindings/cli/output.h"
#include "waybill/maintenance.h"
#include "waybill/runtime_handler.h"

namespace waybill::cli {

// `done` is false for what a dry run or a refusal did not do.
void WriteMigration(const MigrationReport& report, bool done, Output& out);
void WriteRuntimes(const RuntimesReport& report, Output& out);
void WriteCollapse(const CollapseReport& report, Output& out);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_CHANGE_REPORT_H_
