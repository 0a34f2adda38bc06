#include "bindings/cli/change_report.h"

#include <string>
#include <vector>

namespace waybill::cli {
namespace {

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    if (!text.empty()) text += ", ";
    text += name.empty() ? "(default)" : name;
  }
  return text;
}

}  // namespace

void WriteMigration(const MigrationReport& report, bool done, Output& out) {
  if (report.from == report.to) {
    out.Line("migrated    nothing to do: the store has schema version {}", report.to);
  }
  for (const MigrationStep& step : report.steps) {
    if (done) {
      out.Line("migrated    schema version {} to {}: {} ({})", step.from, step.to, step.name,
               step.values_written == 0 ? "no value had to be rewritten"
                                        : HowMany(step.values_written, "value") + " rewritten");
    } else {
      out.Line("to do       schema version {} to {}: {}", step.from, step.to, step.name);
    }
  }
  if (!report.backup.empty()) out.Line("backup      {}", report.backup);
  for (const std::string& loss : report.losses) {
    out.Line("{}  {}", done ? "lost      " : "would lose", loss);
  }
}

void WriteRuntimes(const RuntimesReport& report, Output& out) {
  if (report.added.empty() && report.vanished.empty() && report.changed.empty() &&
      report.records_collapsed + report.intents_collapsed == 0) {
    out.Line("handlers    none was added or removed, and no record is affected");
  }
  if (!report.added.empty()) out.Line("handlers    new: {}", Joined(report.added));
  if (!report.vanished.empty()) {
    out.Line("handlers    gone: {}; their records stay until they are pruned",
             Joined(report.vanished));
  }
  if (report.records_to_verify > 0) {
    out.Line("to verify   {} of {}: the guest platform or the default handler changed",
             HowMany(report.records_to_verify, "record"), Joined(report.changed));
  }
  if (report.records_collapsed + report.intents_collapsed > 0) {
    out.Line("collapsed   {} and {} {} went to the default handler, to be verified again",
             HowMany(report.records_collapsed, "record"),
             HowMany(report.intents_collapsed, "intent"),
             report.turned_on ? "from an earlier use of runtime classes"
                              : "under the name that is now the default's");
  }
}

void WriteCollapse(const CollapseReport& report, Output& out) {
  if (report.handlers.empty()) {
    out.Line("collapsed   nothing: no record or intent was under another handler");
    return;
  }
  out.Line("collapsed   {} and {} of {}", HowMany(report.records, "record"),
           HowMany(report.intents, "intent"), Joined(report.handlers));
  out.Line("to verify   {} under the default handler, open to nobody until pulled again",
           HowMany(report.records_to_verify, "record"));
}

}  // namespace waybill::cli
