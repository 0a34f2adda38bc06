#include "tests/model/history.h"

#include <string_view>
#include <utility>

#include "tests/model/drawn_values.h"
#include "tests/support/pod.h"

namespace waybill::testing {

namespace {

constexpr std::size_t kRemembered = 30;

std::string Quote(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string Describe(const Decision& decision) {
  return std::string(decision.pull ? "pull" : "no pull") + " " +
         std::string(CheckResultName(decision.result)) + " " +
         std::string(ReasonName(decision.reason)) +
         (decision.credentials_read ? ", credentials read" : "");
}

bool Same(const Decision& a, const Decision& b) {
  return a.pull == b.pull && a.result == b.result && a.reason == b.reason &&
         a.credentials_read == b.credentials_read;
}

std::string Describe(const PruneReport& report) {
  return std::to_string(report.examined) + " examined, " + std::to_string(report.removed) +
         " removed, " + std::to_string(report.kept_in_list) + " in list, " +
         std::to_string(report.kept_newer) + " newer, " + std::to_string(report.kept_intent) +
         " with intent";
}

Pod PodOf(const ModelPod& pod) {
  Pod source(pod.secrets, pod.service_account);
  if (!pod.available) source.MakeUnavailable();
  return source;
}

std::string DescribePod(const ModelPod& pod) {
  ImagePullCredentials all;
  all.kubernetes_secrets = pod.secrets;
  if (pod.service_account) all.kubernetes_service_accounts.push_back(*pod.service_account);
  return pod.available ? DescribeCredentials(all) : "unavailable";
}

const std::string& DrawRefOrNone(Draw& draw) {
  static const std::string none;
  return draw.OneIn(20) ? none : draw.From(Refs());
}

}  // namespace

History::History(const std::filesystem::path& scratch, const std::vector<Rules>& rules,
                 std::uint64_t seed)
    : draw_(seed) {
  for (const Rules r : rules) sides_.emplace_back(r, scratch / std::string(RulesName(r)));
  SetTime(clock_.Now());
  for (Side& side : sides_) Open(side, std::nullopt);
}

void History::Play(std::uint64_t steps) {
  std::uint64_t step = 0;
  try {
    for (; step < steps; ++step) Step();
    CompareStep();
  } catch (const std::exception& e) {
    std::string text = e.what();
    text += "\nin step " + std::to_string(step) + "; the last ones were:";
    for (const std::string& what : last_) text += "\n  " + what;
    throw Mismatch(text);
  }
}

void History::Step() {
  struct Weighted {
    std::size_t weight;
    Action action;
  };
  static const std::vector<Weighted> actions = {
      {40, &History::CheckStep},       {10, &History::EnsureStep},
      {20, &History::IntentStep},      {22, &History::PulledStep},
      {12, &History::FailedStep},      {3, &History::PruneByTokenStep},
      {3, &History::PruneByTimeStep},  {4, &History::DrawTokenStep},
      {4, &History::PutRecordStep},    {6, &History::GetRecordStep},
      {3, &History::DeleteRecordStep}, {3, &History::PutIntentStep},
      {3, &History::DeleteIntentStep}, {2, &History::FlushStep},
      {6, &History::ClockStep},        {2, &History::RefusedStep},
      {1, &History::RestartStep},      {2, &History::CompareStep}};
  static const std::size_t total = [] {
    std::size_t sum = 0;
    for (const Weighted& w : actions) sum += w.weight;
    return sum;
  }();
  std::size_t at = draw_.Below(total);
  for (const Weighted& w : actions) {
    if (at < w.weight) return (this->*w.action)();
    at -= w.weight;
  }
}

void History::CheckStep() {
  const KnownImage& image = DrawImage(draw_);
  const std::string& ref = DrawRefOrNone(draw_);
  const ModelPod pod = DrawPod(draw_);
  Note("check " + Quote(image.image) + " " + Quote(ref) + " " + DescribePod(pod));
  std::vector<Decision> answers;
  for (Side& side : sides_) answers.push_back(Ask(side, image, ref, pod));
  if (sides_.size() < 2) return;
  // Each closed rule can only keep an image closed. Where garbage collection took the kubelet's
  // record alone, the closed one may still prove what was proven.
  const Decision& kubelet = answers[0];
  const Decision& closed = answers[1];
  const bool still_proven =
      parted_.contains(ref) && closed.result == CheckResult::kCredentialRecordFound;
  Expect(closed.pull || !kubelet.pull || still_proven, sides_[1],
         "opens what kubelet rules keep closed: " + Describe(closed) + " instead of " +
             Describe(kubelet));
}

Decision History::Ask(Side& side, const KnownImage& image, const std::string& ref,
                      const ModelPod& pod) {
  const Model::Answer expected = side.model.Check(image, ref, pod);
  Pod source = PodOf(pod);
  const Decision decision = side.store->MustAttemptPull(image.image, ref, source);
  Expect(Same(decision, expected.decision), side,
         Describe(decision) + " instead of " + Describe(expected.decision));
  Expect((source.asked() != 0) == decision.credentials_read, side, "the pod was asked or not");
  SettleWriteBack(side, image, ref, pod, expected.write_back);
  return decision;
}

void History::SettleWriteBack(Side& side, const KnownImage& image, const std::string& ref,
                              const ModelPod& pod,
                              const std::optional<ImagePullSecret>& write_back) {
  if (!write_back) return;
  Model after = side.model;
  after.WriteBack(image, ref, *write_back);
  // A decision that meets another thread at the queue drops what it would write; the next offers
  // it.
  for (int attempt = 0; attempt < 100; ++attempt) {
    ExpectDone(side.store->Flush(), side);
    auto record = side.store->GetRecord(ref);
    Expect(record.has_value(), side, "the record of a write-back is gone");
    record->stamp = after.records().at(ref).stamp;
    if (*record == after.records().at(ref)) {
      side.model.WriteBack(image, ref, *write_back);
      return;
    }
    Pod source = PodOf(pod);
    static_cast<void>(side.store->MustAttemptPull(image.image, ref, source));
    static_cast<void>(side.model.Check(image, ref, pod));
  }
  Expect(false, side, "a write-back never arrived");
}

void History::EnsureStep() {
  const KnownImage& image = DrawImage(draw_);
  const std::string& ref = DrawRefOrNone(draw_);
  const ModelPod pod = DrawPod(draw_);
  const auto policy = static_cast<PullPolicy>(draw_.Below(3));
  Note("ensure " + Quote(image.image) + " " + Quote(ref) + " " +
       std::string(PullPolicyName(policy)) + " " + DescribePod(pod));
  for (Side& side : sides_) {
    std::optional<ImagePullSecret> write_back;
    const EnsureAction expected = side.model.Ensure(image, ref, policy, pod, write_back);
    Pod source = PodOf(pod);
    const EnsureOutcome outcome = side.store->EnsureImage(image.image, ref, policy, source);
    Expect(outcome.action == expected, side,
           std::string(EnsureActionName(outcome.action)) + " instead of " +
               std::string(EnsureActionName(expected)));
    const std::string container = "Container image \"" + image.image + "\" ";
    if (expected == EnsureAction::kUsePresent) {
      Expect(outcome.message ==
                 container + "already present on machine and can be accessed by the pod",
             side, outcome.message);
    } else if (expected == EnsureAction::kNeverPull) {
      Expect(outcome.message == container + "is not present with pull policy of Never", side,
             outcome.message);
    }
    SettleWriteBack(side, image, ref, pod, write_back);
  }
}

void History::RestartStep() {
  std::optional<std::vector<ImageOnNode>> images;
  if (!draw_.OneIn(3)) images = DrawImagesOnNode(draw_);
  if (draw_.OneIn(2)) policy_ = DrawPolicy(draw_);
  if (draw_.OneIn(3)) {
    Timestamp now = clock_.Now();
    now.seconds -= static_cast<std::int64_t>(draw_.Below(100));
    SetTime(now);
  }
  std::string what = "restart under " + std::string(VerificationModeName(policy_.mode));
  if (!images) what += " without a list";
  for (const ImageOnNode& image : images.value_or(std::vector<ImageOnNode>())) {
    what += " " + image.id + " [";
    for (const auto& tag : image.repo_tags) what += Quote(tag) + " ";
    for (const auto& digest : image.repo_digests) what += Quote(digest) + " ";
    what += "]";
  }
  Note(what);
  for (Side& side : sides_) {
    CompareMetrics(side);
    if (draw_.OneIn(2)) ExpectDone(side.store->Close(), side);
    side.store.reset();
    Open(side, images);
    const std::string difference = Difference(side.model, *side.store);
    Expect(difference.empty(), side, difference);
  }
}

void History::Open(Side& side, const std::optional<std::vector<ImageOnNode>>& images) {
  const std::uint64_t found = side.model.intents().size();
  side.model.set_policy(policy_);
  const std::uint64_t replayed = side.model.Restart(images, KnownImages());
  auto policy = VerificationPolicy::Make(policy_.mode, policy_.patterns, policy_.scope);
  Expect(policy.has_value(), side, "the policy is refused");
  const bool first = !std::filesystem::exists(side.directory);
  if (first) side.model.Made();
  OpenOptions options{.directory = side.directory,
                      .witness = Witness::At(side.directory.string() + ".witness")};
  options.rules = side.rules;
  options.policy = *policy;
  options.images_on_node = images;
  options.clock = clock_.AsClock();
  options.map_bytes = std::uint64_t{64} << 20U;
  auto opened = NodeStore::Open(std::move(options));
  if (!opened) Expect(false, side, opened.error().ToString());
  side.store = std::move(*opened);
  const RecoveryReport& report = side.store->recovery_report();
  Expect(report.findings.empty() && !report.distrustful && !report.set_aside &&
             !report.witness_made && report.created == first,
         side, "opening did not find all as it was left");
  Expect(report.intents_found == found && report.intents_replayed == replayed &&
             report.intents_left == side.model.intents().size() &&
             report.records == side.model.records().size() &&
             report.replay_skipped == !images.has_value(),
         side, "the report of opening is wrong");
}

void History::CompareMetrics(Side& side) {
  const Metrics got = side.store->GetMetrics();
  const Metrics& expected = side.model.metrics();
  Expect(got.mustpull_checks == expected.mustpull_checks, side, "the counters of checks differ");
  Expect(got.ensure_image_requests == expected.ensure_image_requests, side,
         "the counters of requests differ");
  Expect(got.ondisk_pullintents == side.model.intents().size() &&
             got.ondisk_pulledrecords == side.model.records().size(),
         side, "the gauges differ");
  const double in_flight = 100.0 * static_cast<double>(side.model.in_flight()) / 65536.0;
  Expect(got.inmemory_pullintents_usage_percent == in_flight, side,
         "the pulls in flight differ: " + std::to_string(got.inmemory_pullintents_usage_percent) +
             " instead of " + std::to_string(in_flight));
}

void History::CompareStep() {
  Note("compare");
  for (Side& side : sides_) {
    const std::string difference = Difference(side.model, *side.store);
    Expect(difference.empty(), side, difference);
    CompareMetrics(side);
  }
}

void History::ComparePruned(Side& side, const Result<PruneReport>& got,
                            const PruneReport& expected) const {
  if (!got) Expect(false, side, got.error().ToString());
  Expect(Describe(*got) == Describe(expected), side,
         Describe(*got) + " instead of " + Describe(expected));
}

void History::NoteParted(const std::set<std::string>& before) {
  if (sides_.size() < 2) return;
  for (const std::string& ref : Refs()) {
    const bool kubelet = sides_[0].model.records().contains(ref);
    const bool closed = sides_[1].model.records().contains(ref);
    Expect(closed || !kubelet, sides_[1], "garbage collection took what kubelet rules keep");
    if (!closed) parted_.erase(ref);
    if (closed && !kubelet && before.contains(ref)) parted_.insert(ref);
  }
}

void History::Note(std::string what) {
  last_.push_back(std::move(what));
  if (last_.size() > kRemembered) last_.pop_front();
}

void History::SetTime(Timestamp now) {
  clock_.Set(now);
  for (Side& side : sides_) side.model.set_now(now);
}

void History::Expect(bool ok, const Side& side, const std::string& what) const {
  if (!ok) throw Mismatch(std::string(RulesName(side.rules)) + " rules: " + what);
}

void History::ExpectDone(const Result<void>& result, const Side& side) const {
  if (!result) Expect(false, side, result.error().ToString());
}

}  // namespace waybill::testing
