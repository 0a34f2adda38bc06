#include "bindings/cli/start_report.h"

#include "bindings/cli/change_report.h"
#include "bindings/cli/described_json.h"
#include "bindings/cli/evidence_report.h"
#include "bindings/cli/store_access.h"
#include "bindings/cli/userns_json.h"

namespace waybill::cli {
namespace {

Json ReportJson(const StartOutcome& outcome, const StartContext& context) {
  const RecoveryReport& report = outcome.report;
  return {{"store", context.store},
          {"created", report.created},
          {"setAside", report.set_aside},
          {"setAsidePath", report.set_aside_path},
          {"removedPaths", report.removed_paths},
          {"recordsCarried", report.records_carried},
          {"recordsWithoutCredentials", report.records_without_credentials},
          {"intentsCarried", report.intents_carried},
          {"witnessMade", report.witness_made},
          {"witnessInStore", report.witness_in_store},
          {"commitUndone", report.commit_undone},
          {"findings", report.findings},
          {"mended", report.mended},
          {"warnings", report.warnings},
          {"distrustful", report.distrustful},
          {"distrustReason", report.distrust_reason},
          {"migration", report.migration ? JsonOf(*report.migration) : Json(nullptr)},
          {"runtimes", report.runtimes ? JsonOf(*report.runtimes) : Json(nullptr)},
          {"import", JsonOf(report.import)},
          {"userNamespaces", JsonOf(report.user_namespaces)},
          {"afterGap", report.after_gap},
          {"gapReason", report.gap_reason},
          {"gapClosed", report.gap_closed},
          {"gapImages", report.gap_images},
          {"firstStart", report.first_start},
          {"observed", report.observed ? JsonOf(*report.observed) : Json(nullptr)},
          {"intentsFound", report.intents_found},
          {"intentsReplayed", report.intents_replayed},
          {"intentsLeft", report.intents_left},
          {"replayed", report.replayed},
          {"replaySkipped", report.replay_skipped},
          {"clockWasAhead", report.clock_was_ahead},
          {"timesMended", report.times_mended},
          {"readersCleared", report.readers_cleared},
          {"records", report.records},
          {"ledgerEntries", outcome.statistics.ledger_entries},
          {"presumed", outcome.presumed},
          {"openPulls", outcome.open_pulls},
          {"quarantineEntries", report.quarantine_entries},
          {"commitSequence", report.commit_sequence},
          {"dryRun", context.dry_run}};
}

void WriteFound(const RecoveryReport& report, const std::string& store, Output& out) {
  if (report.created) {
    out.Line("store       {} was created", store);
  } else if (report.set_aside) {
    out.Line("store       {} was damaged and set aside; the damaged one is kept at {}", store,
             report.set_aside_path);
    out.Line("carried     {} ({} of them must be verified again), {}",
             HowMany(report.records_carried, "record"), report.records_without_credentials,
             HowMany(report.intents_carried, "intent"));
  } else {
    out.Line("store       {} opened", store);
  }
  if (report.commit_undone) {
    out.Line(
        "undone      the last commit, which a crash had cut short before anybody was told of it");
  }
  for (const std::string& path : report.removed_paths) out.Line("removed     {}", path);
  for (const std::string& finding : report.findings) out.Line("found       {}", finding);
  for (const std::string& mended : report.mended) out.Line("mended      {}", mended);
  for (const std::string& warning : report.warnings) out.Line("warning     {}", warning);
  if (!report.set_aside && report.records_without_credentials > 0) {
    out.Line("to verify   {}, whose credentials may be out of date",
             HowMany(report.records_without_credentials, "record"));
  }
  if (report.witness_made) out.Line("witness     it was missing, and was created");
  if (!report.clock_was_ahead.empty()) {
    out.Line("clock       {}; {} had a later time, and now have that of this start",
             report.clock_was_ahead, HowMany(report.times_mended, "record"));
  }
  if (report.readers_cleared > 0) {
    out.Line("cleared     {} of dead readers", HowMany(report.readers_cleared, "slot"));
  }
}

void WriteImported(const ImportReport& import, Output& out) {
  if (import.files_seen == 0 && import.problems.empty()) return;
  out.Line("imported    {}, {}, {} from {}", HowMany(import.records, "record"),
           HowMany(import.intents, "intent"), HowMany(import.preloaded, "preloaded image"),
           HowMany(import.files_seen, "file"));
  if (import.unchanged + import.known_refs + import.skipped > 0) {
    out.Line("passed over {} unchanged, {} of known images, {} that are not the kubelet's",
             import.unchanged, import.known_refs, import.skipped);
  }
  if (import.quarantined > 0) {
    out.Line("quarantined {}: unreadable; closed until the image is pulled again",
             import.quarantined);
  }
  for (const std::string& problem : import.problems) out.Line("problem     {}", problem);
}

void WriteGap(const RecoveryReport& report, Output& out) {
  if (!report.after_gap) return;
  out.Line("gap         {}", report.gap_reason);
  // With the closed rules the list says which images were closed, and why.
  if (report.gap_closed == 0 || report.observed) return;
  out.Line("closed      {} without a record: open to no pod until pulled again",
           HowMany(report.gap_closed, "image"));
  for (const std::string& image : report.gap_images) out.Line("closed      {}", image);
  if (report.gap_closed > report.gap_images.size()) {
    out.Line("closed      and {} more", report.gap_closed - report.gap_images.size());
  }
}

void WriteReplayed(const StartOutcome& outcome, Rules rules, Output& out) {
  const RecoveryReport& report = outcome.report;
  if (report.intents_found == 0 && (rules == Rules::kClosed || report.intents_left == 0)) return;
  if (rules == Rules::kClosed) {
    // At the first take-over of a kubelet's directory.
    const bool unnamed = report.created && outcome.anything && report.intents_found > 0;
    const std::uint64_t pulls = report.intents_found - (unnamed ? 1 : 0);
    if (pulls > 0) {
      out.Line("cut short   {}: open until it is known what {} brought", HowMany(pulls, "pull"),
               pulls == 1 ? "it" : "they");
    }
    if (unnamed) {
      out.Line(
          "may come    what the kubelet gave up before: until the window is over, or the machine "
          "boots, an image that comes without a record is closed");
    }
    return;
  }
  out.Line("cut short   {}: {} found on the node, {} left", HowMany(report.intents_found, "pull"),
           report.intents_replayed, HowMany(report.intents_left, "intent"));
  for (const std::string& image : report.replayed) out.Line("replayed    {}", image);
  if (report.replay_skipped && report.intents_left > 0) {
    out.Line("replay      skipped: give --images what crictl images -o json prints");
  }
}

// Schema version 5 brought the ledger.
bool IsFromBeforeLedger(const RecoveryReport& report) {
  return report.migration && report.migration->from < 5;
}

void WriteList(const RecoveryReport& report, const StartContext& context, Output& out) {
  if (report.created && !context.images_given && context.rules == Rules::kClosed) {
    out.Line("no list     images that are on the node are closed until one is judged: --images");
  }
  if (!report.observed) return;
  if (report.first_start) {
    out.Line("first start an image with neither record nor open pull is presumed preloaded");
  }
  WriteObserved(*report.observed,
                IsFromBeforeLedger(report)
                    ? "until now an image without a record was presumed preloaded"
                    : "",
                out);
}

void WriteHeld(const StartOutcome& outcome, const StartContext& context, Output& out) {
  const RecoveryReport& report = outcome.report;
  if (context.rules == Rules::kKubelet) {
    out.Line("holds       {}, {}, {} in quarantine, at commit {}",
             HowMany(report.records, "record"), HowMany(report.intents_left, "intent"),
             HowMany(report.quarantine_entries, "image"), report.commit_sequence);
  } else {
    out.Line("holds       {}, {}, {}, {} in quarantine, at commit {}",
             HowMany(report.records, "record"),
             HowMany(outcome.statistics.ledger_entries, "preloaded image"),
             HowMany(outcome.open_pulls, "open pull"), HowMany(report.quarantine_entries, "image"),
             report.commit_sequence);
  }
  if (outcome.presumed > 0) {
    out.Line(
        "presumed    {}: open, but nobody knows where {} came from; settle with waybill preload "
        "confirm, or close",
        HowMany(outcome.presumed, "image"), outcome.presumed == 1 ? "it" : "they");
  }
  if (report.distrustful) {
    out.Line("trust       DISTRUSTFUL: {}", report.distrust_reason);
  } else if (context.rules == Rules::kKubelet) {
    out.Line("trust       images without a record are presumed preloaded");
  } else {
    out.Line("trust       an image is open by a credential, or by the ledger of preloaded ones");
  }
}

// Without a list nothing is judged: images that an older schema presumed preloaded stay closed.
void WarnOfNoList(const RecoveryReport& report, const StartContext& context) {
  if (context.rules == Rules::kKubelet || context.images_given || report.distrustful) return;
  if (!IsFromBeforeLedger(report)) return;
  Warn(
      "no list of images was given: images without a record, until now presumed preloaded, are "
      "closed until one is judged",
      "run waybill start again with --images FILE, with what `crictl images -o json` prints, "
      "before a pull begins");
}

void WarnOfUnusedList(const RecoveryReport& report, const StartContext& context) {
  if (!context.preloaded_given || report.first_start || report.after_gap) return;
  Warn("the list of preloaded images was not used: it counts at a first start only",
       "enter an image with waybill preload add --images LIST --reason REASON");
}

}  // namespace

void WriteStartReport(const StartOutcome& outcome, const StartContext& context, Output& out) {
  const RecoveryReport& report = outcome.report;
  const std::string& store = context.store;
  WriteDryRun(context.dry_run, out);
  out.WriteJson(ReportJson(outcome, context));
  WriteFound(report, store, out);
  if (report.migration) WriteMigration(*report.migration, true, out);
  if (report.runtimes) WriteRuntimes(*report.runtimes, out);
  WriteImported(report.import, out);
  WriteReplayed(outcome, context.rules, out);
  WriteGap(report, out);
  WriteList(report, context, out);
  WriteUserNamespaces(report.user_namespaces, out);
  WriteHeld(outcome, context, out);
  // Warnings come last. main reports a failed write.
  (void)out.Flush();
  if (!report.user_namespaces.refused_because.empty()) {
    Warn("no new host IDs can be given to pods: " + report.user_namespaces.refused_because,
         "waybill userns list --store " + ShellWord(store) +
             " shows whose ranges are not known; waybill userns adopt POD FIRST LENGTH for a pod "
             "that lives, release POD for one that is gone, release --lost where the list has all");
  }
  WarnOfNoList(report, context);
  WarnOfUnusedList(report, context);
  if (!report.distrustful) return;
  const bool can_fill = report.after_gap && report.replay_skipped;
  Warn("the store is DISTRUSTFUL: " + report.distrust_reason + "; " + std::string(kDistrustMeans),
       can_fill ? "to close the gap: waybill start --store " + ShellWord(store) +
                      " --after-gap --images FILE, with what `crictl images -o json` prints"
                : ClearDistrustHint(store));
}

}  // namespace waybill::cli
