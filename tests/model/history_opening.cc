// The steps of a history that begin a new process.

#include "tests/model/describe.h"
#include "tests/model/drawn_values.h"
#include "tests/model/history.h"
#include "tests/support/kubelet_dir.h"

namespace waybill::testing {

ModelOpening History::DrawOpening() {
  ModelOpening opening;
  if (!draw_.OneIn(3)) opening.images = DrawImagesOnNode(draw_);
  if (opening.images) {
    for (ImageOnNode& image : *opening.images) image.runtime_handler = DrawHandler();
  }
  if (!default_only_ && draw_.OneIn(4)) opening.handlers = DrawHandlers(draw_);
  if (draw_.OneIn(4)) {
    if (draw_.OneIn(2)) opening.broken_refs.insert(draw_.From(Refs()));
    if (draw_.OneIn(2)) opening.broken_images.insert(DrawImage(draw_).image);
    // Otherwise the broken files would count as a gap.
    opening.gap = Gap::kNo;
  }
  if (draw_.OneIn(8)) opening.gap = Gap::kYes;
  return opening;
}

std::string History::DescribeOpening(const ModelOpening& opening) const {
  std::string what = " under " + std::string(VerificationModeName(policy_.mode));
  if (opening.handlers) what += ", handlers" + DescribeHandlers(*opening.handlers);
  if (opening.gap != Gap::kDetect) what += opening.gap == Gap::kYes ? ", after a gap" : ", no gap";
  for (const std::string& ref : opening.broken_refs) what += ", broken " + Quote(ref);
  for (const std::string& image : opening.broken_images) what += ", broken " + Quote(image);
  if (!opening.images) return what + ", without a list";
  for (const ImageOnNode& image : *opening.images) {
    what += "\n    " + image.id + For(image.runtime_handler) + " [";
    for (const auto& tag : image.repo_tags) what += Quote(tag) + " ";
    for (const auto& digest : image.repo_digests) what += Quote(digest) + " ";
    what += "]";
  }
  return what;
}

void History::RestartStep() {
  const ModelOpening opening = DrawOpening();
  if (draw_.OneIn(2)) policy_ = DrawPolicy(draw_);
  if (draw_.OneIn(3)) {
    Timestamp now = clock_.Now();
    now.seconds -= static_cast<std::int64_t>(draw_.Below(100));
    SetTime(now);
  }
  Note("restart" + DescribeOpening(opening));
  ++moment_;
  for (Side& side : sides_) {
    Stop(side);
    Open(side, opening);
  }
}

void History::Stop(Side& side) {
  CompareMetrics(side);
  if (draw_.OneIn(2)) ExpectDone(side.store->Close(), side);
  side.store.reset();
}

void History::MakeBroken(const Side& side, const ModelOpening& opening) {
  const std::filesystem::path kubelet = side.directory.string() + ".kubelet";
  std::filesystem::remove_all(kubelet);
  std::filesystem::create_directory(kubelet);
  for (const std::string& ref : opening.broken_refs) {
    WriteRecordFile(kubelet, "pulled", ref, "broken " + std::to_string(++broken_files_));
  }
  for (const std::string& image : opening.broken_images) {
    WriteRecordFile(kubelet, "pulling", image, "broken " + std::to_string(++broken_files_));
  }
}

void History::Open(Side& side, ModelOpening opening) {
  if (opening.images) {
    for (ImageOnNode& image : *opening.images) {
      image.runtime_handler = Named(side, image.runtime_handler);
    }
  }
  auto policy = VerificationPolicy::Make(policy_.mode, policy_.patterns, policy_.scope);
  Expect(policy.has_value(), side, "the policy is refused");
  OpenOptions options{.directory = side.directory,
                      .witness = Witness::At(side.directory.string() + ".witness")};
  options.rules = side.rules;
  options.policy = *policy;
  options.images_on_node = opening.images;
  options.allow_empty = true;
  options.runtime_handlers = opening.handlers;
  options.gap = opening.gap;
  if (!opening.broken_refs.empty() || !opening.broken_images.empty()) {
    MakeBroken(side, opening);
    options.kubelet_directory = side.directory.string() + ".kubelet";
  }
  options.clock = clock_.AsClock();
  options.map_bytes = std::uint64_t{64} << 20U;
  const bool first = !std::filesystem::exists(side.directory);
  auto opened = NodeStore::Open(std::move(options));
  if (!opened) Expect(false, side, opened.error().ToString());
  side.store = std::move(*opened);
  const RecoveryReport& report = side.store->recovery_report();

  Expect(report.created == first, side, "the store was made anew, or not");
  if (first) side.model.Made();
  Expect(report.migration.has_value() == (side.version != kNewestSchema), side,
         "the store was migrated, or not");
  if (report.migration) {
    Expect(report.migration->losses.empty(), side, "going up loses something");
    NoteBackup(side, report.migration->backup);
    side.model.Up();
    side.version = kNewestSchema;
  }
  side.model.set_policy(policy_);
  CompareOpened(side, report, side.model.Restart(opening));
  Expect(report.runtimes.has_value() == opening.handlers.has_value() &&
             report.replay_skipped == !opening.images.has_value(),
         side, "the report of opening is wrong");
}

void History::CompareOpened(Side& side, const RecoveryReport& report, const ModelOpened& expected) {
  Expect(report.findings.empty() && !report.set_aside && !report.witness_made, side,
         "opening did not find all as it was left");
  Expect(report.distrustful == side.model.distrustful(), side,
         report.distrustful ? "distrustful: " + report.distrust_reason : "trustful");
  if (report.runtimes) {
    Expect(Describe(*report.runtimes) == Describe(expected.runtimes), side,
           Describe(*report.runtimes) + "\n  instead of " + Describe(expected.runtimes));
  }
  const auto count = [&](const char* what, std::uint64_t got, std::uint64_t wanted) {
    Expect(got == wanted, side,
           std::to_string(got) + what + " instead of " + std::to_string(wanted));
  };
  count(" intents found", report.intents_found, expected.intents_found);
  count(" intents replayed", report.intents_replayed, expected.intents_replayed);
  count(" intents left", report.intents_left, side.model.intents().size());
  count(" records", report.records, side.model.records().size());
  count(" closed after a gap", report.gap_closed, expected.gap_closed);
  ExpectSame(side);
}

void History::ClearDistrustStep() {
  Note("clear distrust");
  for (Side& side : sides_) {
    ExpectDone(side.store->ClearDistrust("an operator looked"), side);
    side.model.ClearDistrust();
    const auto trust = side.store->GetTrust();
    Expect(trust.has_value() && !trust->distrustful, side, "still distrustful");
  }
}

}  // namespace waybill::testing
