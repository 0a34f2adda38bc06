// waybill start: takes over a kubelet's records, recovers, reports.

#include <unistd.h>

#include <algorithm>

#include "bindings/cli/command.h"
#include "bindings/cli/input.h"
#include "bindings/cli/map_size.h"
#include "bindings/cli/owner_wait.h"
#include "bindings/cli/progress.h"
#include "bindings/cli/runtime_lists.h"
#include "bindings/cli/scratch_start.h"
#include "bindings/cli/start_report.h"
#include "bindings/cli/store_access.h"
#include "bindings/cli/user_namespace_flags.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

class StartCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    flags.Value("--kubelet-dir", &kubelet_directory_, "DIR",
                "a kubelet directory, the one with image_manager/ in it", ParseKubeletDirectory,
                kTakesSetting);
    flags.Value("--pods-dir", &options_.pods_directory, "DIR",
                "the pods' directories, to take host IDs over from; else pods/ in\n"
                "--kubelet-dir",
                ParsePodsDirectory, kSeldom);
    images_.Declare(flags, ": all images").TakesSetting();
    flags.Value("--preloaded", &preloaded_, "FILE|-",
                "an installer's list of the images that it loaded, in the same form;\n"
                "an image with a name needs no ID there");
    DeclareFirstStart(flags, &options_.first_start);
    flags.Value("--runtimes", &runtimes_, "FILE|-",
                "what crictl info prints: the runtime handlers; --cri gives both");
    flags.Value("--runtime-config", &runtime_config_, "FILE|-",
                "containerd's configuration, for what crictl info leaves out", kSeldom);
    flags.Switch("--allow-empty", &options_.allow_empty,
                 "accept empty lists (--images, --runtimes); otherwise they are\n"
                 "refused (2) if the store holds something");
    flags.Switch("--after-gap", &after_gap_,
                 "images were pulled without a record: close them (detected\n"
                 "automatically with --kubelet-dir, but at a first start)",
                 kSeldom);
    flags.Switch("--no-after-gap", &no_after_gap_, "there was no gap, whatever start detects",
                 kSeldom);
    flags.Switch("--dry-run", &dry_run_,
                 "say what would be done, and which images would open and close, on\n"
                 "a copy in TMPDIR, and change nothing");
    flags.Switch("--strict", &strict_,
                 "exit with 3 if the store is distrustful in the end, after the report", kSeldom);
    flags.Switch("--no-migrate", &no_migrate_, "refuse a store of an older schema", kSeldom);
    flags.Switch("--skip-unreadable", &options_.skip_unreadable,
                 "go on if the disk refuses to read something: the image that a\n"
                 "kubelet's file is about is closed, the rest of a store is kept",
                 kSeldom);
    policy_.Declare(flags);
    evidence_.Declare(flags);
    ages_.Declare(flags);
    user_namespaces_.Declare(flags);
    store_.DeclareRules(flags);
    flags.Value("--witness", &witness_, "FILE|none",
                "the witness file, outside the store; none: as --no-witness", Length(),
                kTakesSetting);
    flags.Switch("--forget-witness", &forget_witness_,
                 "with --witness: the store is the newest, although the witness\n"
                 "that it remembers at another path is gone",
                 kSeldom);
    flags.Switch("--no-witness", &no_witness_,
                 "no witness, and forget the remembered one: a wiped store then\n"
                 "goes unnoticed",
                 kSeldom);
    flags.Value("--map-size", &options_.map_bytes, "BYTES",
                "the largest size that the store may grow to: a multiple of the\n"
                "page size, which the store remembers; a new one has 16 GiB",
                ParseMapSize, kSeldom);
    flags.Value("--trace", &trace_, "FILE",
                "add to a trace that the store began, and the images of --images,\n"
                "for `waybill advise`; a kubelet with waybill inside, or the guard,\n"
                "goes on with it",
                Length(), kSeldom);
    flags.Excludes("--no-witness", {"--witness"});
    flags.Needs("--forget-witness", {"--witness"}, "give it the path of the new witness");
    flags.Excludes("--cri", {"--runtimes"});
    flags.Needs("--runtime-config", {"--runtimes", "--cri"}, "it adds to them");
    flags.Needs("--allow-empty", {"--images", "--runtimes", "--cri"});
    flags.Needs("--preloaded", {"--images", "--cri"}, "its images are found there");
    flags.Excludes("--no-after-gap", {"--after-gap"});
  }

  Result<ExitCode> Run(Output& out) override {
    OpenOptions options = options_;
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
    const StartContext context{.store = store_.store,
                               .rules = store_.rules(),
                               .images_given = options.images_on_node.has_value(),
                               .preloaded_given = preloaded_.has_value(),
                               .dry_run = dry_run_};
    auto outcome =
        WhileOwned(store_, [&] { return dry_run_ ? Try(options) : OpenAndClose(options); });
    if (!outcome) return images_.cri().About(outcome.error());
    const RecoveryReport* const report = &outcome->report;
    WriteStartReport(*outcome, context, out);
    if (lost && report->distrustful) WarnOfFormerStore(options.witness.path().string());
    const ExitCode ending = strict_ && report->distrustful ? ExitCode::kStore : ExitCode::kYes;
    if (dry_run_) return ending;
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
  Result<void> Complete(OpenOptions& options) {
    options.directory = store_.store;
    options.rules = store_.rules();
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
    if (trace_ && !dry_run_) options.trace.path = std::filesystem::absolute(*trace_);
    options.evidence = evidence_.options();
    options.ages = ages_.limits;
    options.gap = after_gap_ ? Gap::kYes : no_after_gap_ ? Gap::kNo : Gap::kDetect;
    options.migrate = !no_migrate_;
    if (options.map_bytes != 0) {
      TRY(CheckRoom(options.map_bytes));
    }
    options.user_namespaces = TRY(user_namespaces_.Read());
    return {};
  }

  Result<void> CheckRoom(std::uint64_t map_bytes) const {
    auto store = NodeStore::Observe({.directory = store_.store});
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

  // On a copy, since only opening finds out what opening does.
  // Its witness is left.
  void WarnOfFormerStore(const std::string& witness) const {
    const std::string store = ShellWord(store_.store);
    const std::string remove =
        "rm -rf " + store + " " + ShellWord(witness) + " " + ShellWord(witness + ".store");
    Warn("a store was here before: its witness " + witness +
             " is left, and the store is gone, as after a loss; this new one opens only what it "
             "knows",
         "if it was lost, put a backup back: " + remove + " && mkdir -m 0700 " + store +
             " && waybill restore --store " + store + " BACKUP; if it was removed on purpose, " +
             remove +
             " and start again: an image without a record is presumed preloaded then, but for "
             "--first-start close");
  }

  static Result<StartOutcome> Try(const OpenOptions& options) {
    ProgressLine copying("copying", "bytes");
    auto scratch = ScratchStart::Make(options, copying.UntilStopped());
    copying.Clear();
    if (!scratch) return scratch.error();
    auto outcome = OpenAndClose((*scratch)->options());
    if (!outcome) return (*scratch)->InTruth(outcome.error());
    (*scratch)->PutInTruth(outcome->report);
    return outcome;
  }

  static Result<StartOutcome> OpenAndClose(OpenOptions options) {
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
                                     [](const OpenPull& pull) { return pull.anything; });
      auto ledger = TRY(opened.ListLedger());
      outcome.presumed = static_cast<std::uint64_t>(std::count_if(
          ledger.begin(), ledger.end(),
          [](const LedgerEntry& entry) { return IsPresumed(entry) && !entry.absent_since; }));
      return outcome;
    });
  }

  PolicyFlags policy_;
  UserNamespaceFlags user_namespaces_;
  std::optional<std::string> kubelet_directory_;
  EvidenceFlags evidence_;
  AgeFlags ages_;
  ImagesFlags images_;
  std::optional<std::string> preloaded_;
  bool dry_run_ = false;
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
  OpenOptions options_{.directory = {}, .witness = Witness::None()};
};

}  // namespace

Command StartCommand() {
  return {
      .name = "start",
      .task = kTaskTakeOver,
      .summary = "take over a kubelet's records, recover, report",
      .notes = R"(Creates the store if there is none. It is safe to run again after a crash or an
interruption at any point: finished work is kept, and each file is imported once.
At a first start the images of --images that have neither record nor open pull are
presumed preloaded, as a kubelet presumes: they are open, and stand in the ledger as
presumed until `waybill preload confirm` or `close`. Those that the runtime pins, and
those of --preloaded, are known to be. Later lists are better
given to `waybill observe`, which has a token: without one a list only closes. A pull
that was interrupted stays open until it can bring nothing any more, which keeps an
image closed that it could have given its name. The witness reveals that the whole store was wiped or put back from an older
copy. It is the file of --witness, else image_manager/waybill in the kubelet
directory, else the one that the store remembers. If that one is gone or unreadable,
the store may be an older copy: it turns distrustful, and each image must be verified
again; --forget-witness beside another --witness states that it is the newest. The
policy is checked, but not stored: each command takes its own. Images that were pulled
without a record (a gap) are closed, if --images names them. A store of an older
schema is backed up and migrated.)",
      .examples =
          R"(waybill start --store /var/lib/waybill --kubelet-dir /var/lib/kubelet --cri auto
waybill start --dry-run --kubelet-dir /var/lib/kubelet --cri auto)",
      .call = New<StartCall>};
}

}  // namespace waybill::cli
