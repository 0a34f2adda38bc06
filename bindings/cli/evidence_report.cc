#include "bindings/cli/evidence_report.h"

#include <string>
#include <vector>

#include "bindings/cli/handler_names.h"
#include "bindings/cli/record_json.h"

namespace waybill::cli {
namespace {

void WriteJudged(const ClassifyReport& report, Output& out) {
  for (const ClassifiedImage& image : report.judged) {
    const bool named = image.name != image.image_ref && !image.image_ref.empty();
    out.Line("{}  {}{}{}: {}", image.preloaded ? "preloaded " : "closed    ", image.name,
             named ? " (" + image.image_ref + ")" : "", ForHandler(image.runtime_handler),
             image.because);
  }
  if (report.preloaded + report.closed > report.judged.size()) {
    out.Line("judged      and {} more", report.preloaded + report.closed - report.judged.size());
  }
}

// What an operator may run.
std::string_view CommandFor(const Explanation& explanation, Reason reason) {
  if (explanation.in_quarantine || explanation.ledger_entry) return {};
  if (explanation.recorded) return explanation.closed_because.empty() ? "" : "waybill allow";
  if (!explanation.pulls.empty()) return "waybill allow";
  if (explanation.distrustful) return "waybill trust --clear";
  return reason == Reason::kPulledForOtherHandler ? "" : "waybill observe";
}

}  // namespace

std::string ImageText(const UnresolvedPull& pull) {
  return pull.anything ? "(anything)" : pull.image;
}

std::string PullText(const UnresolvedPull& pull, const Output& out) {
  return fmt::format("{}: {}{}, {}, began {}{}", pull.id.value, ImageText(pull),
                     ForHandler(pull.runtime_handler), WordOf(pull.state), out.TimeText(pull.began),
                     pull.ended ? ", ended " + out.TimeText(pull.ended) : std::string());
}

void WriteObserved(const ClassifyReport& report, Output& out) {
  out.Line("listed      {}: {} known already, {} preloaded, {} closed, {} not judged",
           HowMany(report.listed, "image"), report.known, report.preloaded, report.closed,
           report.left);
  if (!report.not_judged_because.empty()) {
    out.Line("not judged  {}", report.not_judged_because);
  }
  if (report.repeated > 0) {
    out.Line("repeated    {} of the list, for an image that it had already",
             report.repeated == 1 ? "1 entry" : fmt::format("{} entries", report.repeated));
  }
  if (report.not_names > 0) {
    out.Line("no names    {} of the list, which do not parse and do not count",
             HowMany(report.not_names, "name"));
  }
  for (const std::string& digest : report.shared_digests) {
    out.Line("shared      {}: listed for two images, so it identifies neither", digest);
  }
  if (report.united > 0) {
    out.Line("united      {} under another spelling of an image that has a record",
             HowMany(report.united, "record"));
  }
  WriteJudged(report, out);
  if (report.pulls_settled > 0) {
    out.Line("settled     {} that can bring nothing any more",
             HowMany(report.pulls_settled, "open pull"));
  }
  if (report.records_removed + report.preloaded_removed > 0) {
    out.Line("gone        {} and {} of images that are not listed",
             HowMany(report.records_removed, "record"),
             report.preloaded_removed == 1
                 ? "1 ledger entry"
                 : fmt::format("{} ledger entries", report.preloaded_removed));
  }
}

void WriteExplanation(const Explanation& explanation, Reason reason, Output& out) {
  constexpr std::size_t kMostPulls = 10;
  if (!explanation.text.empty()) out.Line("why: {}", explanation.text);
  std::size_t told = 0;
  // An image with a recorded pull is closed by that pull's credentials, whatever else was pulled.
  const bool pulls_matter = !explanation.recorded || !explanation.closed_because.empty();
  for (const UnresolvedPull& pull :
       pulls_matter ? explanation.pulls : std::vector<UnresolvedPull>()) {
    if (told++ == kMostPulls) {
      out.Line("and {} more: see waybill pulls", explanation.pulls.size() - kMostPulls);
      break;
    }
    out.Line("pull {}", PullText(pull, out));
  }
  if (explanation.hint.empty()) return;
  const std::string_view command = CommandFor(explanation, reason);
  out.Line("to open it: {}{}", explanation.hint,
           command.empty() ? "" : fmt::format(" (`{}`)", command));
}

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

void WriteCollapse(const RuntimesReport& report, Output& out) {
  if (report.changed.empty()) {
    out.Line("collapsed   nothing: no record or intent was under another handler");
    return;
  }
  out.Line("collapsed   {} and {} of {}", HowMany(report.records_collapsed, "record"),
           HowMany(report.intents_collapsed, "intent"), Joined(report.changed));
  out.Line("to verify   {} under the default handler, open to nobody until pulled again",
           HowMany(report.records_to_verify, "record"));
}

}  // namespace waybill::cli
