// waybill start: takes over a kubelet's records, recovers, reports.

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "bindings/cli/command.h"
#include "bindings/cli/evidence_report.h"
#include "bindings/cli/input.h"
#include "bindings/cli/output.h"
#include "bindings/cli/parse.h"
#include "bindings/cli/progress.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/runtime_lists.h"
#include "bindings/cli/sizing_model.h"
#include "bindings/cli/store_access.h"
#include "bindings/cli/user_namespace_flags.h"
#include "store/base/files.h"
#include "store/base/options.h"
#include "store/base/try.h"
#include "store/calls/node_store.h"
#include "store/for_the_command.h"
#include "waybill/values.h"

namespace waybill::cli {
namespace {

namespace fs = std::filesystem;

struct StartOutcome {
  OpeningReport report;
  StoreCounts statistics;
  std::uint64_t open_pulls = 0;
  bool anything = false;       // one of them is of anything
  std::uint64_t presumed = 0;  // entries of the ledger
};

void WriteFound(const OpeningReport& report, const std::string& store, Output& out) {
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

void WriteGap(const OpeningReport& report, Output& out) {
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

void WriteUserNamespaces(const IdMappingReport& report, Output& out) {
  if (report.files_seen > 0) {
    out.Line("host IDs    {} taken over from {}, {} unchanged", HowMany(report.imported, "mapping"),
             HowMany(report.files_seen, "file"), report.unchanged);
  }
  for (const std::string& problem : report.problems) out.Line("problem     {}", problem);
  if (report.outside_pool + report.other_length > 0) {
    out.Line(
        "off pool    {} outside the pool, {} of another length: they stay valid for their pods",
        HowMany(report.outside_pool, "mapping"), report.other_length);
  }
  for (const std::string& pod : report.off_pool) out.Line("off pool    {}", pod);
  if (report.outside_pool + report.other_length > report.off_pool.size()) {
    out.Line("off pool    and {} more",
             report.outside_pool + report.other_length - report.off_pool.size());
  }
  if (report.held_pods > 0) {
    out.Line("held        {} with unverified host IDs: see waybill userns list",
             HowMany(report.held_pods, "pod"));
  }
  if (!report.refused_because.empty()) out.Line("refused     {}", report.refused_because);
}

// Only an opening finds out what it does, in many commits: so it is tried on a copy. That is of all
// that an opening reads, which also shows that a store was lost.
Result<void> CopyStore(const fs::path& store, const fs::path& copy) {
  constexpr std::string_view kFlag = "--dry-run-in";
  if (TRY(internal::Exists(copy))) {
    return BadFlag(kFlag, copy.string() + " exists already", "name a directory that does not");
  }
  if (internal::IsBelow(copy, store)) {
    return BadFlag(kFlag, copy.string() + " lies in the store", "name one that lies elsewhere");
  }
  if (!TRY(internal::Exists(store))) {
    const fs::path parent = internal::WithoutTrailingSlashes(fs::absolute(store)).parent_path();
    if (TRY(internal::IsDirectory(parent))) return {};
    return Error{ErrorCode::kNotFound,
                 fmt::format("cannot make directory {}: {} is not a directory", store.string(),
                             parent.string()),
                 {}};
  }
  TRY(internal::CheckPrivateDirectory(store));
  TRY(internal::CheckStoreFiles(store));
  const fs::path database = store / "data.mdb";
  internal::Fd without_owners;
  if (TRY(internal::Exists(database))) {
    without_owners = TRY(internal::OpenFile(database, O_RDONLY));
    TRY(internal::LockOutOwners(without_owners, database));
  } else {
    TRY(internal::CheckNewDirectory(store));
  }
  // Somebody may have made it since.
  TRY(internal::MakePrivateDirectory(copy));
  TRY(internal::CheckPrivateDirectory(copy));
  if (std::error_code error; !fs::is_empty(copy, error)) {
    return BadFlag(kFlag, copy.string() + " is not empty", "name another");
  }
  for (const char* name :
       {"data.mdb", "lock.mdb", "commit.mark", "owner.lock", "backup", "quarantine"}) {
    std::error_code error;
    const bool is_there = fs::exists(store / name, error);
    if (is_there) fs::copy(store / name, copy / name, fs::copy_options::recursive, error);
    if (error) {
      return Error{ErrorCode::kIo,
                   fmt::format("{} could not be copied to {}: {}", (store / name).string(),
                               copy.string(), error.message()),
                   "remove " + copy.string() + ", and name a directory with room for the store"};
    }
  }
  return {};
}

class StartCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    flags.Value("--kubelet-dir", &kubelet_directory_, "DIR",
                "a kubelet directory, the one with image_manager/ in it", ParseKubeletDirectory,
                kTakesSetting);
    flags.Value("--pods-dir", &options_.pods_directory, "DIR",
                "the pods' directories; else pods/ in --kubelet-dir", ParsePodsDirectory, kSeldom);
    images_.Declare(flags, ": all images").TakesSetting();
    flags.Value("--preloaded", &preloaded_, "FILE|-",
                "an installer's list of the images that it loaded, in the same form");
    DeclareFirstStart(flags, &options_.first_start);
    flags.Value("--runtimes", &runtimes_, "FILE|-",
                "what crictl info prints: the runtime handlers; --cri gives both");
    flags.Value("--runtime-config", &runtime_config_, "FILE|-",
                "containerd's configuration, for what crictl info leaves out", kSeldom);
    flags.Switch("--allow-empty", &options_.allow_empty,
                 "accept empty lists (--images, --runtimes); otherwise they are\n"
                 "refused (2) if the store holds something");
    flags.Switch("--after-gap", &after_gap_, "images were pulled without a record: close them",
                 kSeldom);
    flags.Switch("--no-after-gap", &no_after_gap_, "there was no gap, whatever start detects",
                 kSeldom);
    flags.Value("--dry-run-in", &dry_run_in_, "DIR",
                "try it on a copy of the store, and change nothing else. The copy\n"
                "is made in DIR, a new directory, and stays",
                Length());
    flags.Switch("--strict", &strict_,
                 "exit with 3 if the store is distrustful in the end, after the report", kSeldom);
    flags.Switch("--no-migrate", &no_migrate_, "refuse a store of an older schema", kSeldom);
    flags.Switch("--skip-unreadable", &options_.skip_unreadable,
                 "go on without what the disk refuses to read", kSeldom);
    policy_.Declare(flags);
    short_names_.Declare(flags);
    DeclareMaxAge(flags, &max_age_);
    user_namespaces_.Declare(flags);
    flags.Choice("--rules", &rules_, "strict|kubelet",
                 "strict (default), or exactly what the kubelet answers", Word<Mode>("mode"),
                 kSeldom);
    flags.Value("--witness", &witness_, "FILE|none",
                "the witness file, outside the store; none: as --no-witness", Length(),
                kTakesSetting);
    flags.Switch("--forget-witness", &forget_witness_,
                 "the store is the newest, although its old witness is gone", kSeldom);
    flags.Switch("--no-witness", &no_witness_, "no witness: a wiped store then goes unnoticed",
                 kSeldom);
    flags.Value("--map-size", &options_.map_bytes, "BYTES",
                "the most that the store may grow to, in whole pages; new: 16 GiB", ParseMapSize,
                kSeldom);
    flags.Value("--trace", &trace_, "FILE", "write a trace for `waybill advise` there", Length(),
                kSeldom);
    flags.Excludes("--no-witness", {"--witness"});
    flags.Needs("--forget-witness", {"--witness"}, "give it the path of the new witness");
    flags.Excludes("--cri", {"--runtimes"});
    flags.Needs("--runtime-config", {"--runtimes", "--cri"}, "it adds to them");
    flags.Needs("--allow-empty", {"--images", "--runtimes", "--cri"});
    flags.Needs("--preloaded", {"--images", "--cri"}, "its images are found there");
    flags.Excludes("--no-after-gap", {"--after-gap"});
  }

  Result<ExitCode> Run(Output& out) override {
    NodeStoreOptions options = options_;
    TRY(Complete(options));
    options.images_on_node = TRY(images_.ReadIfGiven());
    if (preloaded_) {
      options.preloaded = TRY(ReadPreloadedList(*preloaded_));
    }
    if (runtimes_) {
      options.runtime_handlers = TRY(ReadRuntimeHandlers(*runtimes_, runtime_config_));
    }
    if (images_.cri().given()) {
      auto handlers = TRY(images_.cri().ListHandlers(runtime_config_, runtime_config_.has_value()));
      // A runtime that names no handlers, as containerd before 2.0, says nothing about them.
      if (!handlers.empty()) options.runtime_handlers = std::move(handlers);
    }
    // Before opening, which creates the directory for the witness.
    const bool lost = ::access((store_.store + "/data.mdb").c_str(), F_OK) != 0 &&
                      ::access(options.witness.path().c_str(), F_OK) == 0;
    const bool nothing_there =
        kubelet_directory_ && ::access((*kubelet_directory_ + "/image_manager").c_str(), F_OK) != 0;
    auto outcome =
        WhileOwned(store_, [&] { return dry_run_in_ ? Try(options) : OpenAndClose(options); });
    if (!outcome) return images_.cri().About(outcome.error());
    const OpeningReport* const report = &outcome->report;
    WriteStartReport(*outcome, out);
    if (lost && report->distrustful) WarnOfFormerStore(options.witness.path().string());
    const ExitCode ending = strict_ && report->distrustful ? ExitCode::kStore : ExitCode::kYes;
    if (dry_run_in_) return ending;
    // The report on a gap says more.
    if (nothing_there && !report->after_gap) {
      (void)out.Flush();
      Warn(*kubelet_directory_ + " has no image_manager in it: nothing was taken over",
           "that is right for a node that never pulled an image; otherwise name the kubelet's root "
           "directory");
    }
    if (report->created && !witness_ && !no_witness_ && !kubelet_directory_) {
      (void)out.Flush();
      Warn("the store has no witness: if it is wiped, that goes unnoticed and opens images",
           "run it again with --kubelet-dir or --witness, or with --no-witness if you accept that");
    }
    if (report->witness_in_store) {
      (void)out.Flush();
      Warn(
          "the witness lies in the store's directory: if that is wiped or put back, it goes "
          "unnoticed",
          "move it: waybill start --store " + ShellWord(store_.store) + " --witness FILE");
    }
    return ending;
  }

 private:
  Json ReportJson(const StartOutcome& outcome) const {
    Json answer = {{"store", store_.store}};
    answer.update(JsonOf(outcome.report));
    answer["preloaded"] = outcome.statistics.ledger_entries;
    answer["presumed"] = outcome.presumed;
    answer["openPulls"] = outcome.open_pulls;
    answer["dryRun"] = dry_run_in_.has_value();
    return answer;
  }

  void WriteReplayed(const StartOutcome& outcome, Output& out) const {
    const OpeningReport& report = outcome.report;
    if (report.intents_found == 0 && (rules_ == Mode::kStrict || report.intents_left == 0)) return;
    if (rules_ == Mode::kStrict) {
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

  void WriteList(const OpeningReport& report, Output& out) const {
    if (report.created && !images_.given() && rules_ == Mode::kStrict) {
      out.Line("no list     images that are on the node are closed until one is judged: --images");
    }
    if (!report.observed) return;
    if (report.first_start) {
      out.Line("first start an image with neither record nor open pull is presumed preloaded");
    }
    WriteObserved(*report.observed, out);
  }

  void WriteHeld(const StartOutcome& outcome, Output& out) const {
    const OpeningReport& report = outcome.report;
    if (rules_ == Mode::kKubelet) {
      out.Line("holds       {}, {}, {} in quarantine, at commit {}",
               HowMany(report.records, "record"), HowMany(report.intents_left, "intent"),
               HowMany(report.quarantine_entries, "image"), report.commit_sequence);
    } else {
      out.Line("holds       {}, {}, {}, {} in quarantine, at commit {}",
               HowMany(report.records, "record"),
               HowMany(outcome.statistics.ledger_entries, "preloaded image"),
               HowMany(outcome.open_pulls, "open pull"),
               HowMany(report.quarantine_entries, "image"), report.commit_sequence);
    }
    if (outcome.presumed > 0) {
      out.Line(
          "presumed    {}: open, but nobody knows where {} came from; settle with waybill preload "
          "confirm, or close",
          HowMany(outcome.presumed, "image"), outcome.presumed == 1 ? "it" : "they");
    }
    if (report.distrustful) {
      out.Line("trust       DISTRUSTFUL: {}", report.distrust_reason);
    } else if (rules_ == Mode::kKubelet) {
      out.Line("trust       images without a record are presumed preloaded");
    } else {
      out.Line("trust       an image is open by a credential, or by the ledger of preloaded ones");
    }
  }

  void WarnOfUnusedList(const OpeningReport& report) const {
    if (!preloaded_ || report.first_start || report.after_gap) return;
    Warn("the list of preloaded images was not used: it counts at a first start only",
         "enter an image with waybill preload add --images LIST --reason REASON");
  }

  void WriteStartReport(const StartOutcome& outcome, Output& out) const {
    const OpeningReport& report = outcome.report;
    if (dry_run_in_) out.Line("dry run in {}: nothing else was changed", *dry_run_in_);
    out.WriteJson(ReportJson(outcome));
    WriteFound(report, store_.store, out);
    if (report.migration) WriteMigration(*report.migration, true, out);
    if (report.runtimes) WriteRuntimes(*report.runtimes, out);
    WriteImported(report.import, out);
    WriteReplayed(outcome, out);
    WriteGap(report, out);
    WriteList(report, out);
    WriteUserNamespaces(report.user_namespaces, out);
    WriteHeld(outcome, out);
    // Warnings come last. main reports a failed write.
    (void)out.Flush();
    if (!report.user_namespaces.refused_because.empty()) {
      Warn("no new host IDs can be given to pods: " + report.user_namespaces.refused_because,
           "waybill userns list --store " + ShellWord(store_.store) +
               " shows whose ranges are not known; waybill userns adopt POD FIRST LENGTH for a pod "
               "that lives, release POD for one that is gone, release --lost where the list has "
               "all");
    }
    WarnOfUnusedList(report);
    if (!report.distrustful) return;
    const bool can_fill = report.after_gap && report.replay_skipped;
    Warn("the store is DISTRUSTFUL: " + report.distrust_reason + "; " + std::string(kDistrustMeans),
         can_fill ? "to close the gap: waybill start --store " + ShellWord(store_.store) +
                        " --after-gap --images FILE, with what `crictl images -o json` prints"
                  : ClearDistrustHint(store_.store));
  }

  Result<void> Complete(NodeStoreOptions& options) {
    options.directory = store_.store;
    options.rules = rules_;
    options.policy = policy_.policy;
    if (kubelet_directory_) options.kubelet_directory = *kubelet_directory_;
    // As everywhere. A file of that name: ./none.
    if (witness_ == "none") {
      witness_.reset();
      no_witness_ = true;
    }
    if (forget_witness_ && !witness_) {
      return BadFlag("--forget-witness", "it needs --witness",
                     "give it the path of the new witness");
    }
    if (no_witness_) {
      options.witness = Witness::None();
    } else if (witness_) {
      options.witness = forget_witness_ ? Witness::Anew(std::filesystem::absolute(*witness_))
                                        : WitnessAt(*witness_);
    } else if (kubelet_directory_) {
      options.witness = WitnessAt(options.kubelet_directory / "image_manager" / "waybill");
    } else {
      options.witness = Witness::Remembered();
    }
    if (trace_ && !dry_run_in_) options.trace.path = std::filesystem::absolute(*trace_);
    options.evidence = short_names_.options();
    options.max_age = max_age_;
    options.gap = after_gap_ ? Gap::kYes : no_after_gap_ ? Gap::kNo : Gap::kDetect;
    options.migrate = !no_migrate_;
    if (options.map_bytes != 0) {
      TRY(CheckRoom(options.map_bytes));
    }
    options.user_namespaces = TRY(user_namespaces_.Read());
    return {};
  }

  Result<void> CheckRoom(std::uint64_t map_bytes) const {
    auto store = NodeStore::Observe({.directory = store_.store, .needs_slot = false});
    // No store yet, or one that opening must recover or migrate first: such a store gets the map
    // that it needs.
    if (!store) return {};
    auto statistics = (*store)->GetStatistics();
    if (!statistics) return {};
    const std::uint64_t used = statistics->used_bytes;
    const auto reserve = static_cast<std::uint64_t>(ReserveOf(static_cast<double>(map_bytes)));
    if (used + reserve <= map_bytes) return {};
    return BadFlag(
        "--map-size",
        fmt::format("{} bytes are too few: the store has {}, and deletions need {} more", map_bytes,
                    used, reserve),
        "name a larger size; `waybill restore --map-size` of a backup makes a store that "
        "has no unused pages");
  }

  // Absolute: the store remembers the path, and is used from other directories.
  static Witness WitnessAt(const std::filesystem::path& path) {
    return Witness::At(std::filesystem::absolute(path));
  }

  // Its witness is left.
  void WarnOfFormerStore(const std::string& witness) const {
    const std::string store = ShellWord(store_.store);
    const std::string remove = "rm -rf " + store + " " + ShellWord(witness);
    Warn("a store was here before: its witness " + witness +
             " is left, and the store is gone, as after a loss; this new one opens only what it "
             "knows",
         "if it was lost, put a backup back: " + remove + " && mkdir -m 0700 " + store +
             " && waybill restore --store " + store + " BACKUP; if it was removed on purpose, " +
             remove +
             " and start again: an image without a record is presumed preloaded then, but for "
             "--first-start close");
  }

  Result<StartOutcome> Try(NodeStoreOptions options) const {
    TRY(CopyStore(options.directory, *dry_run_in_));
    options.directory = *dry_run_in_;
    options.leaves_witness = true;
    return OpenAndClose(std::move(options));
  }

  static Result<StartOutcome> OpenAndClose(NodeStoreOptions options) {
    ProgressLine migrating("migrating", "values");
    options.migration_progress = migrating.UntilStopped();
    ProgressLine importing("importing", "files");
    options.import_progress = importing.UntilStopped();
    auto store = NodeStore::Open(std::move(options));
    migrating.Clear();
    importing.Clear();
    if (!store) return WithResumeHint(store.error());
    return WithStore(std::move(store), [](const NodeStore& opened) -> Result<StartOutcome> {
      StartOutcome outcome;
      outcome.report = opened.recovery_report();
      auto statistics = TRY(opened.GetStatistics());
      outcome.statistics = std::move(statistics);
      auto pulls = TRY(opened.ListOpenPulls());
      outcome.open_pulls = pulls.size();
      outcome.anything = std::any_of(pulls.begin(), pulls.end(),
                                     [](const UnresolvedPull& pull) { return pull.anything; });
      auto ledger = TRY(opened.ListLedger());
      outcome.presumed = static_cast<std::uint64_t>(std::count_if(
          ledger.begin(), ledger.end(),
          [](const PreloadedImage& entry) { return IsPresumed(entry) && !entry.absent_since; }));
      return outcome;
    });
  }

  Mode rules_ = Mode::kStrict;
  PolicyFlags policy_;
  UserNamespaceFlags user_namespaces_;
  std::optional<std::string> kubelet_directory_;
  ShortNamesFlag short_names_;
  std::optional<std::chrono::seconds> max_age_;
  ImagesFlags images_;
  std::optional<std::string> preloaded_;
  std::optional<std::string> dry_run_in_;
  std::optional<std::string> trace_;
  std::optional<std::string> witness_;
  bool forget_witness_ = false;
  bool no_witness_ = false;
  std::optional<std::string> runtimes_;
  std::optional<std::string> runtime_config_;
  bool after_gap_ = false;
  bool no_after_gap_ = false;
  bool strict_ = false;
  bool no_migrate_ = false;
  NodeStoreOptions options_{.directory = {}, .witness = Witness::None()};
};

}  // namespace

Command StartCommand() {
  return {.name = "start",
          .task = kTaskTakeOver,
          .summary = "take over a kubelet's records, recover, report",
          .notes =
              R"(Creates the store if there is none. It is safe to run again after a crash or an
interruption: finished work is kept, and each file is imported once. Later lists of
images are for `waybill observe`, which has a token: without one a list only closes. The
witness reveals that the store was wiped or put back from an older copy. It is the file
of --witness, else image_manager/waybill in the kubelet directory, else the one that the
store remembers. If that is gone, each image must be verified again. The policy is not
stored: each command takes its own. A store of an older schema is backed up and
migrated.)",
          .examples =
              R"(waybill start --store /var/lib/waybill --kubelet-dir /var/lib/kubelet --cri auto
waybill start --dry-run-in /tmp/try --kubelet-dir /var/lib/kubelet --cri auto)",
          .call = New<StartCall>};
}

}  // namespace waybill::cli
