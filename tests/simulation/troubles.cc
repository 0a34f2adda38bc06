// What happens to the node: the process is killed, the machine reboots, the store is lost, a
// kubelet without waybill runs, the clock jumps, the runtime is upgraded.

#include <fmt/format.h>

#include <mutex>

#include "store/base/policy.h"
#include "store/maintenance.h"
#include "tests/simulation/machine.h"
#include "tests/simulation/node_life.h"

namespace waybill::simulation {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMapBytes = std::uint64_t{64} << 20U;

}  // namespace

// The installer's images are there; sometimes the runtime is not up yet.
void NodeLife::FirstStart() {
  for (Repository& repository : world_.repositories()) {
    const bool is_installers = repository.name.starts_with("registry.k8s.io/");
    for (const Tag& tag : repository.tags) {
      if (!is_installers && !draw_.OneIn(6)) continue;
      BringByHand(tag.content, {repository.name, tag.name, ""}, is_installers || draw_.OneIn(2));
    }
  }
  runtime_.Pin(*runtime_.Resolve("registry.k8s.io/pause:3.10"));
  fs::create_directories(directory_ / "kubelet");
  if (!scenario_.kubelet_first) {
    Open(Role::kWaybill);
    return;
  }
  Open(Role::kStockKubelet);
  timeline_.After(Between(draw_, 10 * kMinute, 4 * kHour), [this] { EndGap(); });
}

void NodeLife::StopProcess() {
  mode_ = Role::kDown;
  if (store_) sequence_ = Must(store_->GetStatistics(), "GetStatistics").commit_sequence;
  if (store_ && draw_.OneIn(2)) Must(store_->Close(), "Close");
  store_.reset();
  listed_since_start_ = false;
  pull_ends_ = {};
  for (const auto& [number, pull] : std::map(pulls_)) {
    if (!pull->attached) continue;
    pull->attached = false;
    AskAgain(pull->question);
    // Some runtimes notice that nobody waits.
    if (draw_.OneIn(3)) Done(pull);
  }
}

void NodeLife::Kill(Millis downtime) {
  if (mode_ == Role::kDown) return;
  const Role mode = mode_;
  Log(std::nullopt, "the process is killed");
  StopProcess();
  timeline_.After(downtime, [this, mode] { Open(mode); });
}

void NodeLife::Open(Role mode, bool continues_pulls) {
  ++starts_;
  mode_ = mode;
  if (mode == Role::kWithoutWaybill) return;
  if (mode == Role::kStockKubelet || scenario_.kubelet_beside) {
    kubelet_->Start(runtime_.List(), clock_.Now());
  }
  if (mode == Role::kStockKubelet) {
    kubelet_ran_ = true;
    Log(std::nullopt, "the kubelet starts");
    return;
  }
  NodeStoreOptions options{.directory = directory_ / "store",
                           .witness = Witness::At(directory_ / "witness")};
  options.rules = mode == Role::kWaybill ? Mode::kStrict : Mode::kKubelet;
  options.evidence.short_names =
      runtime_.kind() == RuntimeKind::kCrio && !Broken(Breakage::kShortNamesHaveNoAliases)
          ? ShortNames::kAnywhere
          : ShortNames::kDockerHub;
  if (scenario_.percent_mirrored > 0) {
    options.policy = Must(options.policy.WithProofs({{"", Proofs::kRegistry}}), "WithProofs");
  }
  if (!scenario_.remembers) options.evidence.remember = std::chrono::seconds(0);
  if (Broken(Breakage::kWindowTooShort)) options.evidence.window = std::chrono::seconds(1);
  options.continues_pulls = continues_pulls || Broken(Breakage::kPullsNeverEnd);
  options.clock = clock_.AsClock();
  if (Broken(Breakage::kEveryStartIsABoot)) machine_->ChangeBootId();
  options.boot_clock = [machine = machine_] { return machine->Now(); };
  if (scenario_.runtime_handlers) {
    options.runtime_handlers = {{.name = "runc", .is_default = true}, {.name = "kata"}};
  }
  options.map_bytes = kMapBytes;
  const bool is_gap = had_gap_ && mode == Role::kWaybill;
  options.gap = Gap::kNo;
  // That it ran under kubelet rules, the store knows by itself.
  if (is_gap && !Broken(Breakage::kGapUnreported)) {
    options.gap = had_kubelet_rules_ ? Gap::kDetect : Gap::kYes;
  }
  if (kubelet_ && !scenario_.kubelet_beside) TakeKubeletOver(options);
  LimitAges(options);
  const bool has_list = !(scenario_.runtime_down_at_start && draw_.OneIn(6)) && runtime_.size() > 0;
  if (has_list) options.images_on_node = Listed();
  // A copy of today's store, to be put back one day.
  const fs::path data = directory_ / "store" / "data.mdb";
  if (scenario_.losses > 0 && !scenario_.only_restores && fs::exists(data) && draw_.OneIn(3)) {
    fs::copy_file(data, directory_ / "copy.mdb", fs::copy_options::overwrite_existing);
    copied_sequence_ = sequence_;
  }
  store_ = Must(NodeStore::Open(options), "Open");
  const OpeningReport& report = store_->recovery_report();
  newest_token_ = {};
  last_truth_ = 0;
  ReconcileSoon();
  if (lost_) {
    lost_ = false;
    distrusted_ = !Broken(Breakage::kLossUnwitnessed);
    copied_sequence_ = 0;
    if (report.distrustful != distrusted_) {
      Fail("the store does not notice that it was lost", std::nullopt);
    }
    truth_.Forgotten();
    ForgetPulls();
  }
  if (is_gap) {
    had_gap_ = false;
    gap_open_ = true;
  }
  if (kubelet_ran_) TookKubeletOver(report);
  if (mode == Role::kKubeletRules) {
    ForgetPulls();
  } else if (gap_open_ && has_list && !(scenario_.wipes > 0 && report.distrustful)) {
    GapClosed();
  }
  if (breakage_ == Breakage::kNone && mode == Role::kWaybill &&
      report.distrustful != (distrusted_ || gap_open_)) {
    Fail(fmt::format("the store is {}: {}", report.distrustful ? "distrustful" : "trustful",
                     report.distrust_reason),
         std::nullopt);
  }
  // Rule 4: whatever ran has ended now.
  for (const auto& [number, pull] : pulls_) {
    if (!pull->attached && pull->has_intent && pull->expected_until == kNever) {
      Ended(pull, kWindow);
    }
  }
  DescribeStart(report);
}

void NodeLife::DescribeStart(const OpeningReport& report) {
  std::string text = fmt::format("the process starts: {} open pulls", report.intents_found);
  if (report.first_start) text += ", a first start";
  if (report.distrustful) text += ", distrustful: " + report.distrust_reason;
  if (!report.observed) text += ", without a list";
  Log(std::nullopt, text);
  if (!report.observed) return;
  for (const ClassifiedImage& image : report.observed->judged) {
    if (const std::optional<ContentIndex> content = runtime_.Resolve(image.image_ref)) {
      Log(content, fmt::format("judged at the start: {}, {}",
                               image.preloaded ? "preloaded" : "closed", image.because));
    }
  }
}

// Another process goes on with what this one began.
void NodeLife::HandOver() {
  if (mode_ != Role::kWaybill) return;
  Must(store_->Close(), "Close");
  store_.reset();
  listed_since_start_ = false;
  pull_ends_ = {};
  Open(Role::kWaybill, true);
}

void NodeLife::Reboot() {
  if (mode_ == Role::kDown) return;
  Log(std::nullopt, "the machine reboots");
  const Role mode = mode_;
  StopProcess();
  for (const auto& [number, pull] : std::map(pulls_)) Done(pull);
  // What it ran since its last commit is lost with what it was off: at most an hour, and until a
  // list has committed that.
  uncounted_ += 90 * kMinute;
  timeline_.After(Between(draw_, kMinute, 10 * kMinute), [this, mode, off = timeline_.now()] {
    uncounted_ += timeline_.now() - off;
    if (memory_) {
      memory_.emplace(fs::path());
      truth_.KubeletBegan(NextStep());
    }
    SetClocks();
    booted_ = timeline_.now();
    machine_->Boot();
    server_ = {.pid = server_.pid + 1};
    Open(mode);
  });
}

void NodeLife::LoseStore() {
  if (mode_ != Role::kWaybill || (scenario_.only_restores && !backup_)) return;
  StopProcess();
  LoseFiles();
  lost_ = true;
  timeline_.After(Around(draw_, kMinute), [this] { Open(Role::kWaybill); });
  const Millis longest = scenario_.only_restores ? kHour : 6 * kHour;
  timeline_.After(Between(draw_, 10 * kMinute, longest), [this] { ClearDistrust(); });
}

void NodeLife::LoseFiles() {
  const fs::path store = directory_ / "store";
  ages_told_ = false;
  if (Broken(Breakage::kLossUnwitnessed)) {
    fs::remove_all(store);
    fs::remove(directory_ / "witness");
    Log(std::nullopt, "the store and its witness are lost");
  } else if (copied_sequence_ != 0 && copied_sequence_ < sequence_ && draw_.OneIn(2)) {
    fs::copy_file(directory_ / "copy.mdb", store / "data.mdb",
                  fs::copy_options::overwrite_existing);
    fs::remove(store / "lock.mdb");
    Log(std::nullopt, "an older copy of the store takes its place");
  } else if (backup_ && (scenario_.only_restores || draw_.OneIn(2))) {
    Must(RestoreStore({.directory = store,
                       .backup = backup_->path,
                       .clock = clock_.AsClock(),
                       .boot_clock = [machine = machine_] { return machine->Now(); },
                       .map_bytes = kMapBytes}),
         "Restore");
    Log(std::nullopt, "a backup takes the store's place");
  } else if (draw_.OneIn(2)) {
    fs::remove_all(store);
    backup_.reset();
    Log(std::nullopt, "the store is lost");
  } else {
    fs::remove(store / "data.mdb");
    backup_.reset();  // those are of another store than the next one
    Log(std::nullopt, "data.mdb is lost");
  }
}

void NodeLife::ClearDistrust() {
  if (!distrusted_) return;
  if (mode_ != Role::kWaybill || lost_) {
    timeline_.After(5 * kMinute, [this] { ClearDistrust(); });
    return;
  }
  AcceptLoss options;
  options.allow_all = Broken(Breakage::kDistrustClearedByAdoption);
  if (draw_.OneIn(3)) {
    // An operator who is sure of what is left may adopt it.
    for (const ContentIndex content : runtime_.Contents()) {
      if (!truth_.CameByHand(content)) RemoveImage(content);
    }
    options.allow_all = true;
  }
  if (options.allow_all || draw_.OneIn(2)) options.images = Listed();
  if (runtime_.size() == 0) options = {};
  Log(std::nullopt, fmt::format("distrust is cleared{}{}", options.images ? "" : ", without a list",
                                options.allow_all ? ", what is there is adopted" : ""));
  const ClassifyReport report =
      Must(store_->ClearDistrust("looked at the node", options), "ClearDistrust");
  for (const ClassifiedImage& image : report.judged) {
    if (const std::optional<ContentIndex> content = runtime_.Resolve(image.image_ref)) {
      Log(content,
          fmt::format("judged: {}, {}", image.preloaded ? "preloaded" : "closed", image.because));
    }
  }
  distrusted_ = false;
  truth_.Forgotten();
  if (options.allow_all && !Broken(Breakage::kDistrustClearedByAdoption)) {
    for (const ContentIndex content : runtime_.Contents()) {
      // What has a record is not adopted.
      if (truth_.IsRecorded(content) || truth_.IsClosed(content)) continue;
      truth_.CalledPreloaded(content, NextStep());
    }
  }
  GapClosed();
}

// A kubelet without waybill takes the node over, or one with a kubelet's rules.
void NodeLife::HaveGap() {
  if (mode_ != Role::kWaybill) return;
  const Role mode = draw_.OneIn(3) ? Role::kKubeletRules : Role::kWithoutWaybill;
  Log(std::nullopt,
      mode == Role::kKubeletRules ? "kubelet rules begin" : "a kubelet without waybill begins");
  StopProcess();
  had_gap_ = true;
  had_kubelet_rules_ = mode == Role::kKubeletRules;
  Open(mode);
  timeline_.After(Between(draw_, 5 * kMinute, 4 * kHour), [this] { EndGap(); });
}

// A kubelet without waybill goes on with its files, sometimes with what waybill wrote there.
void NodeLife::LeaveKubeletAlone() {
  if (mode_ != Role::kWaybill) return;
  const bool exports = draw_.OneIn(2);
  if (exports) {
    Must(store_->Export({.kubelet_directory = directory_ / "kubelet", .images = runtime_.List()}),
         "Export");
  }
  Log(std::nullopt, fmt::format("a kubelet without waybill begins{}",
                                exports ? ", with what waybill knows" : ""));
  StopProcess();
  Open(Role::kStockKubelet);
  kubelet_->RunAlone(clock_.Now());
  timeline_.After(draw_.OneIn(2) ? Between(draw_, kMinute, 5 * kMinute)
                                 : Between(draw_, 5 * kMinute, 4 * kHour),
                  [this] { EndGap(); });
}

void NodeLife::TakeKubeletOver(NodeStoreOptions& options) const {
  if (Broken(Breakage::kKubeletUnseen)) return;
  options.kubelet_directory = directory_ / "kubelet";
  options.witness = Witness::At(options.kubelet_directory / "image_manager" / "waybill");
  options.gap = Broken(Breakage::kGapUnreported) ? Gap::kNo : Gap::kDetect;
}

// A first take-over believes what the kubelet presumes, and a later one nothing.
void NodeLife::TookKubeletOver(const OpeningReport& report) {
  kubelet_ran_ = false;
  const bool is_first = scenario_.kubelet_first && !took_over_;
  if (is_first) {
    for (const ContentIndex content : runtime_.Contents()) {
      if (kubelet_->Presumes(runtime_.Entry(content))) {
        truth_.Presumed(content);
      } else {
        truth_.Forgotten(content);  // a record that the kubelet made closes what it had by hand
      }
    }
  }
  took_over_ = true;
  Log(std::nullopt, report.after_gap ? "the gap is seen" : "no gap is seen");
  const bool unseen = !is_first && !report.after_gap && !kubelet_->LeftASign();
  gap_open_ = gap_open_ || report.after_gap;
  ExpectForgottenPulls();
  if (!unseen) return;
  truth_.RanUnseen();
  for (const auto& [number, pull] : pulls_) {
    if (pull->forgotten) pull->expected_until = Uptime();
  }
}

void NodeLife::EndGap() {
  if (mode_ == Role::kDown) {
    timeline_.After(kMinute, [this] { EndGap(); });
    return;
  }
  Log(std::nullopt, "waybill is back");
  StopProcess();
  Open(Role::kWaybill);
}

// What may still arrive stands as one pull of anything from now on.
void NodeLife::GapClosed() {
  gap_open_ = false;
  ExpectForgottenPulls();
}

void NodeLife::ExpectForgottenPulls() {
  can_tell_from_ = timeline_.now() + kWindow + 10 * kMinute;
  truth_.ForgottenUnjudged();
  for (const auto& [number, pull] : pulls_) {
    if (!pull->forgotten) continue;
    pull->expected_until = Uptime() + kWindow;
  }
}

void NodeLife::ForgetPulls() {
  for (const auto& [number, pull] : pulls_) {
    pull->forgotten = true;
    pull->expected_until = kNever;
  }
}

void NodeLife::JumpClock() {
  clock_offset_ += Between(draw_, -40 * kDay, 40 * kDay);
  truth_.ClockJumped(NextStep());
  Log(std::nullopt, "the clock jumps");
}

// The kubelet is restarted with it.
void NodeLife::UpgradeRuntime() {
  if (mode_ != Role::kWaybill) return;
  const bool crio = runtime_.kind() == RuntimeKind::kCrio;
  runtime_.ChangeForms(draw_.OneIn(2), crio && draw_.OneIn(2));
  passes_entries_ = !scenario_.older_adapters || draw_.OneIn(2);
  Log(std::nullopt, "the runtime is upgraded");
  Kill(Around(draw_, kMinute));
}

// It is killed, and no pull goes on. Their leases stay.
void NodeLife::RestartRuntime() {
  Log(std::nullopt, "the runtime is killed, and starts again");
  for (const auto& [number, pull] : std::map(pulls_)) {
    leases_left_[std::to_string(number)] = timeline_.now() + kDay;
    CutOff(pull);
    Done(pull);
  }
  server_ = {.pid = server_.pid + 1, .started = machine_->Now().nanoseconds};
}

// Everything is gone, and comes back by pulls and by hand.
void NodeLife::WipeRuntime() {
  RestartRuntime();
  leases_left_.clear();
  not_shown_.clear();
  Log(std::nullopt, "the runtime's disk is new");
  for (const ContentIndex content : runtime_.Contents()) {
    const bool is_pinned = runtime_.IsPinned(content);
    const bool comes_back = is_pinned || (truth_.CameByHand(content) && draw_.OneIn(2));
    const std::vector<std::string> tags = runtime_.Entry(content).repo_tags;
    RemoveImage(content);
    if (!comes_back || tags.empty()) continue;
    const FullName name = *runtime_.Complete(tags.front());
    timeline_.After(Between(draw_, kMinute, is_pinned ? 10 * kMinute : 6 * kHour),
                    [this, content, name, is_pinned] {
                      BringByHand(content, name, false);
                      if (is_pinned) runtime_.Pin(content);
                    });
  }
}

void NodeLife::LoseRegistries() {
  registries_reachable_ = false;
  timeline_.After(Between(draw_, kHour, 8 * kHour), [this] { registries_reachable_ = true; });
}

}  // namespace waybill::simulation
