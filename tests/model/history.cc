#include "tests/model/history.h"

#include <string_view>
#include <utility>

#include "tests/model/describe.h"
#include "tests/model/drawn_values.h"
#include "tests/support/metrics.h"
#include "tests/support/pod.h"

namespace waybill::testing {

namespace {

constexpr std::size_t kRemembered = 60;

Pod PodOf(const ModelPod& pod) {
  Pod source(pod.secrets, pod.service_account);
  if (!pod.available) source.MakeUnavailable();
  return source;
}

const std::string& DrawRefOrNone(Draw& draw) {
  static const std::string none;
  return draw.OneIn(20) ? none : draw.From(Refs());
}

}  // namespace

History::History(const std::filesystem::path& scratch, const HistoryPlan& plan, std::uint64_t seed)
    : draw_(seed),
      relation_(plan.relation),
      default_only_(relation_ == Relation::kSameAnswers || draw_.OneIn(3)),
      plain_(default_only_ && draw_.OneIn(2)) {
  // Often, a few records are too many for one transaction.
  constexpr std::size_t kAtOnce[] = {1, 2, 3, 2048, 2048};
  rows_at_once_ = kAtOnce[draw_.Below(std::size(kAtOnce))];
  for (const Mode r : plan.rules) {
    sides_.emplace_back(r, scratch / std::to_string(sides_.size()));
  }
  if (draw_.OneIn(2)) evidence_.short_names = ShortNames::kDockerHub;
  for (Side& side : sides_) side.model.set_evidence(evidence_);
  SetTime(clock_.Now());
  ModelOpening first;
  if (!default_only_) first.handlers = DrawHandlers(draw_);
  for (Side& side : sides_) {
    if (relation_ == Relation::kSameAnswers && &side == &sides_[1]) {
      first.handlers = DrawHandlersBeside(draw_, DrawDefaultHandler(draw_));
    }
    Open(side, first);
  }
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
  static const std::vector<std::pair<std::size_t, Action>> actions = {
      {40, &History::CheckStep},         {10, &History::EnsureStep},
      {20, &History::IntentStep},        {22, &History::PulledStep},
      {12, &History::FailedStep},        {3, &History::PruneByTokenStep},
      {3, &History::PruneByTimeStep},    {4, &History::DrawTokenStep},
      {4, &History::PutRecordStep},      {6, &History::GetRecordStep},
      {3, &History::DeleteRecordStep},   {3, &History::PutIntentStep},
      {3, &History::DeleteIntentStep},   {2, &History::FlushStep},
      {6, &History::ClockStep},          {2, &History::RefusedStep},
      {1, &History::RestartStep},        {2, &History::CompareStep},
      {2, &History::HandlersStep},       {1, &History::MaintenanceStep},
      {1, &History::ClearDistrustStep},  {12, &History::ObserveStep},
      {2, &History::AddToLedgerStep},    {2, &History::RemoveFromLedgerStep},
      {2, &History::SettlePresumedStep}, {1, &History::DropPullStep},
      {6, &History::SpellingsStep},      {4, &History::ForgetStep},
      {2, &History::ReconcileStep},      {3, &History::AwayStep},
      {1, &History::BeyondBoundStep},    {1, &History::BackupStep},
  };
  by_own_name_ = draw_.OneIn(2);
  Also(draw_.Weighted(actions));
}

void History::Also(Action action) {
  for (Side& side : sides_) {
    side.model.CommittedSoFar(Must(side.store->GetStatistics()).commit_sequence);
  }
  (this->*action)();
}

std::string History::DrawHandler() {
  if (default_only_ || !draw_.OneIn(3)) return "";
  const auto& known = sides_[0].model.handlers();
  if (known.empty() || draw_.OneIn(6)) return draw_.From(HandlerNames());
  return draw_.From(known).name;
}

std::optional<PulledManifest> History::DrawManifest() {
  if (plain_ || !draw_.OneIn(8)) return std::nullopt;
  return DrawAnyManifest(draw_);
}

std::string History::Named(const Side& side, const std::string& handler) const {
  const bool may_name = relation_ == Relation::kSameAnswers && &side == &sides_[1];
  if (!may_name || !by_own_name_ || !handler.empty()) return handler;
  for (const RuntimeHandler& known : side.model.handlers()) {
    if (known.is_default) return known.name;
  }
  return handler;
}

void History::CheckStep() {
  const KnownImage& image = DrawImage(draw_);
  const std::string& ref = DrawRefOrNone(draw_);
  const ModelPod pod = DrawPod(draw_);
  const std::string handler = DrawHandler();
  Note("check " + Quote(image.image) + " " + Quote(ref) + For(handler) + " " + DescribePod(pod));
  std::vector<Decision> answers;
  for (Side& side : sides_) answers.push_back(Ask(side, image, ref, pod, handler));
  if (relation_ == Relation::kSameAnswers) {
    Expect(Same(answers[0], answers[1]), sides_[1],
           "with a registry " + Describe(answers[1]) + " instead of " + Describe(answers[0]));
  }
}

Decision History::Ask(Side& side, const KnownImage& image, const std::string& ref,
                      const ModelPod& pod, const std::string& handler) {
  const std::string name = Named(side, handler);
  const Model::Answer expected = side.model.Check(image, ref, pod, name);
  Pod source = PodOf(pod);
  const Decision decision = side.store->MustAttemptPull(
      {.image = image.image, .image_ref = ref, .runtime_handler = name}, source);
  Expect(Same(decision, expected.decision), side,
         Describe(decision) + " instead of " + Describe(expected.decision));
  Expect((source.asked() != 0) == decision.credentials_read, side, "the pod was asked or not");
  SettleWriteBack(side, image, ref, pod, name, expected.write_back);
  return decision;
}

void History::SettleWriteBack(Side& side, const KnownImage& image, const std::string& ref,
                              const ModelPod& pod, const std::string& handler,
                              const std::optional<ImagePullSecret>& write_back) {
  if (!write_back) return;
  Model after = side.model;
  after.WriteBack(image, ref, *write_back, handler);
  const ImagePulledRecord expected = after.Counting(*after.Find(ref, handler));
  // A decision that meets another thread at the queue drops its write-back; the next decision
  // offers it again.
  std::string arrived;
  for (int attempt = 0; attempt < 100; ++attempt) {
    ExpectDone(side.store->Flush(), side);
    auto record =
        side.store->GetRecord({.image_ref = expected.image_ref, .runtime_handler = handler});
    Expect(record.has_value(), side, "the record of a write-back is gone");
    record->stamp = expected.stamp;
    record->closed_because = expected.closed_because;
    if (record->absent_since) record->absent_since = expected.absent_since;
    arrived = DescribeRecord(*record);
    if (*record == expected) {
      side.model.WriteBack(image, ref, *write_back, handler);
      // A step may ask several times.
      side.model.CommittedSoFar(Must(side.store->GetStatistics()).commit_sequence);
      return;
    }
    Pod source = PodOf(pod);
    static_cast<void>(side.store->MustAttemptPull(
        {.image = image.image, .image_ref = ref, .runtime_handler = handler}, source));
    static_cast<void>(side.model.Check(image, ref, pod, handler));
  }
  Expect(false, side,
         "a write-back never arrived: " + arrived + "\n  instead of " + DescribeRecord(expected));
}

void History::EnsureStep() {
  const KnownImage& image = DrawImage(draw_);
  const std::string& ref = DrawRefOrNone(draw_);
  const ModelPod pod = DrawPod(draw_);
  const auto policy = static_cast<PullPolicy>(draw_.Below(3));
  const std::string handler = DrawHandler();
  Note("ensure " + Quote(image.image) + " " + Quote(ref) + For(handler) + " " +
       std::string(WordOf(policy)) + " " + DescribePod(pod));
  std::set<std::string> messages;
  for (Side& side : sides_) {
    const std::string name = Named(side, handler);
    std::optional<ImagePullSecret> write_back;
    const EnsureAction expected = side.model.Ensure(image, ref, policy, pod, write_back, name);
    Pod source = PodOf(pod);
    const EnsureOutcome outcome = side.store->EnsureImage(
        {.image = image.image, .image_ref = ref, .runtime_handler = name}, policy, source);
    messages.insert(outcome.message);
    Expect(outcome.action == expected, side,
           std::string(WordOf(outcome.action)) + " instead of " + std::string(WordOf(expected)));
    const std::string container = "Container image \"" + image.image + "\" ";
    if (expected == EnsureAction::kUsePresent) {
      Expect(outcome.message ==
                 container + "already present on machine and can be accessed by the pod",
             side, outcome.message);
    } else if (expected == EnsureAction::kNeverPull) {
      Expect(outcome.message == container + "is not present with pull policy of Never", side,
             outcome.message);
    }
    SettleWriteBack(side, image, ref, pod, name, write_back);
  }
  if (relation_ == Relation::kSameAnswers) {
    Expect(messages.size() == 1, sides_[1], "says something else with a registry");
  }
}

void History::CompareMetrics(Side& side) {
  const Metrics metrics = side.store->GetMetrics();
  const Counted got = CountedIn(metrics);
  const auto count = [&](std::string_view name) {
    return static_cast<std::uint64_t>(ValueOf(metrics, name));
  };
  const std::uint64_t pulls = count("kubelet_imagemanager_ondisk_pullintents");
  const std::uint64_t records = count("kubelet_imagemanager_ondisk_pulledrecords");
  const std::uint64_t others = count("waybill_nondefault_runtime_handler_images");
  const Model& model = side.model;
  Expect(got.mustpull_checks == model.metrics().mustpull_checks, side,
         "the counters of checks differ");
  Expect(got.ensure_image_requests == model.metrics().ensure_image_requests, side,
         "the counters of requests differ");
  std::uint64_t nondefault = 0;
  for (const auto& [copy, record] : model.records()) nondefault += copy.second.empty() ? 0U : 1U;
  Expect(pulls == model.CountPulls() && records == model.records().size() && others == nondefault,
         side,
         "the gauges differ: " + std::to_string(pulls) + " open pulls, " + std::to_string(records) +
             " records and " + std::to_string(others) + " of other handlers instead of " +
             std::to_string(model.CountPulls()) + ", " + std::to_string(model.records().size()) +
             " and " + std::to_string(nondefault));
  const double in_flight = 100.0 * static_cast<double>(model.in_flight()) / 65536.0;
  const double usage = ValueOf(metrics, "kubelet_imagemanager_inmemory_pullintents_usage_percent");
  Expect(usage == in_flight, side,
         "the pulls in flight differ: " + std::to_string(usage) + " instead of " +
             std::to_string(in_flight));
}

void History::CompareStep() {
  Note("compare");
  for (Side& side : sides_) {
    ExpectSame(side);
    CompareMetrics(side);
  }
}

void History::FlushStep() {
  Note("flush");
  for (Side& side : sides_) ExpectDone(side.store->Flush(), side);
}

void History::ClockStep() {
  Timestamp now = clock_.Now();
  now.seconds += static_cast<std::int64_t>(draw_.Below(5));
  now.nanoseconds = static_cast<std::int32_t>(draw_.Below(1'000'000'000));
  if (draw_.OneIn(20)) now.seconds -= static_cast<std::int64_t>(draw_.Below(50));
  // Past the time for which revocations are kept.
  constexpr std::int64_t kDay = 86400;
  if (draw_.OneIn(30)) now.seconds += draw_.OneIn(3) ? 31 * kDay : kDay + 100;
  // The machine's own time: past the grace, or the window, or neither.
  constexpr std::int64_t kPassed[] = {0, 1, 50, 130, 4000, 8000};
  const std::int64_t passed = kPassed[draw_.Below(std::size(kPassed))];
  clock_.AdvanceSeconds(passed);
  Note("clock " + std::to_string(now.seconds) + "." + std::to_string(now.nanoseconds) + ", " +
       std::to_string(passed) + " s passed");
  SetTime(now);
}

void History::Note(std::string what) {
  last_.push_back(std::move(what));
  if (last_.size() > kRemembered) last_.pop_front();
}

void History::SetTime(Timestamp now) {
  clock_.Set(now);
  for (Side& side : sides_) side.model.set_now(now, clock_.Boot());
}

void History::Expect(bool ok, const Side& side, const std::string& what) const {
  if (!ok) throw Mismatch(std::string(WordOf(side.rules)) + " rules: " + what);
}

void History::ExpectSame(const Side& side, const std::string& otherwise) const {
  std::string difference = Difference(side.model, *side.store);
  if (difference.empty()) difference = DifferenceOfProofs(side.model, *side.store);
  Expect(difference.empty(), side, otherwise + difference);
}

void History::ExpectDone(const Result<void>& result, const Side& side) const {
  if (!result) Expect(false, side, result.error().ToString());
}

void History::ExpectTaken(const Result<void>& result, bool taken, const Side& side) const {
  if (taken) return ExpectDone(result, side);
  Expect(!result && result.error().code == ErrorCode::kInvalidArgument, side,
         "it should have been refused");
}

}  // namespace waybill::testing
