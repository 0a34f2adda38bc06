// Reports as lines of text: what is known of images without a pull by this kubelet, and
// what changed a whole store.

#ifndef WAYBILL_BINDINGS_CLI_EVIDENCE_REPORT_H_
#define WAYBILL_BINDINGS_CLI_EVIDENCE_REPORT_H_

#include <string>
#include <string_view>

#include "bindings/cli/output.h"
#include "waybill/values.h"

namespace waybill::cli {

// The pull's image string; "(anything)" for one that stands for what can't be named.
std::string ImageText(const UnresolvedPull& pull);
// "7: IMAGE, running, began …".
std::string PullText(const UnresolvedPull& pull, const Output& out);

// Lines of 12 columns and a text, as `start` writes them.
void WriteObserved(const ClassifyReport& report, Output& out);

// "why: …", "pull 7: …" and "to open it: …", for an image that `reason` closes.
void WriteExplanation(const Explanation& explanation, Reason reason, Output& out);

// For `start`, `migrate` and `runtimes`. `done` is false for what a dry run or a refusal did not
// do.
void WriteMigration(const MigrationReport& report, bool done, Output& out);
void WriteRuntimes(const RuntimesReport& report, Output& out);
void WriteCollapse(const RuntimesReport& report, Output& out);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_EVIDENCE_REPORT_H_
