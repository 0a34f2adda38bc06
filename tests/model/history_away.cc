// The steps of a history in which clocks are wrong for a while, images are away and come back, and
// an operator speaks of them meanwhile.

#include <utility>

#include "store/images/retire.h"
#include "tests/model/describe.h"
#include "tests/model/drawn_values.h"
#include "tests/model/history.h"

namespace waybill::testing {

// For one step, also one that begins a new process, or until a later one has begun.
void History::WrongClockStep() {
  constexpr std::int64_t kDay = 86400;
  constexpr std::int64_t kAhead[] = {kDay + 100, 20 * kDay, 40 * kDay};
  const std::int64_t ahead = kAhead[draw_.Below(std::size(kAhead))];
  const Timestamp right = clock_.Now();
  Note("the clock is ahead by " + std::to_string(ahead) + " s");
  SetTime({right.seconds + ahead, right.nanoseconds});
  static const std::vector<std::pair<std::size_t, Action>> actions = {
      {3, &History::RestartStep}, {2, &History::ObserveStep}, {2, &History::PulledStep},
      {1, &History::IntentStep},  {1, &History::ForgetStep},  {1, &History::AwayStep},
  };
  Also(draw_.Weighted(actions));
  Note("the clock is right again");
  for (Side& side : sides_) {
    side.model.CommittedSoFar(Must(side.store->GetStatistics()).commit_sequence);
  }
  SetTime(right);
  if (draw_.OneIn(2)) Also(&History::RestartStep);
}

void History::ObserveComplete(std::vector<ListedImage> images) {
  Also(&History::DrawTokenStep);
  for (Side& side : sides_) {
    side.model.CommittedSoFar(Must(side.store->GetStatistics()).commit_sequence);
  }
  ObserveIn({.images = std::move(images), .complete = true}, sides_[0].tokens.size() - 1, true);
}

// A complete list has it, the next one does not, something happens, and a third one has it again.
void History::AwayStep() {
  if (sides_[0].tokens.empty()) DrawTokenStep();
  ListedImage image = ImageOfRef(draw_.From(Refs()));
  const KnownImage& name = DrawImage(draw_);
  if (name.digest.empty()) image.repo_tags = {name.image};
  const std::vector<ListedImage> others = DrawImagesOnNode(draw_);
  std::vector<ListedImage> all = others;
  all.push_back(image);
  ObserveComplete(all);
  ObserveComplete(others);
  for (Side& side : sides_) {
    side.model.CommittedSoFar(Must(side.store->GetStatistics()).commit_sequence);
  }
  switch (draw_.Below(6)) {
    case 0:
      RemoveFromLedger(image.id, "");
      break;
    case 1:
      SettlePresumed(image.id, "", Settled::kClosed);
      break;
    case 2:
      Also(&History::AddToLedgerStep);
      break;
    case 3:
      Also(&History::RestartStep);
      break;
    case 4:
      Also(&History::MaintenanceStep);
      break;
    default:
      break;
  }
  ObserveComplete(all);
  for (std::size_t i = 0; i < 3; ++i) {
    const ModelPod pod = DrawPod(draw_);
    Note("check " + Quote(name.image) + " " + Quote(image.id) + " " + DescribePod(pod));
    for (Side& side : sides_) {
      side.model.CommittedSoFar(Must(side.store->GetStatistics()).commit_sequence);
      static_cast<void>(Ask(side, name, image.id, pod, ""));
    }
  }
}

// Whatever is away is beyond it.
void History::BeyondBoundStep() {
  Note("nothing that is away is remembered");
  // A mismatch ends this history, and the next one has to begin with the bound.
  struct Bound {
    Bound() { internal::SetMostRememberedForTests(0); }
    ~Bound() { internal::SetMostRememberedForTests(kMaxRemembered); }
  };
  const Bound bound;
  for (Side& side : sides_) side.model.set_most_remembered(0);
  Also(&History::AwayStep);
  for (Side& side : sides_) side.model.set_most_remembered(kMaxRemembered);
}

void History::BackupStep() {
  Note("make a backup");
  ++moment_;
  for (Side& side : sides_) NoteBackup(side, Must(side.store->MakeBackup()).path.string());
}

}  // namespace waybill::testing
