// The steps of a history that begin a new process.

#include "store/base/options.h"
#include "store/base/policy.h"
#include "store/base/words.h"
#include "store/maintenance.h"
#include "tests/model/describe.h"
#include "tests/model/drawn_values.h"
#include "tests/model/history.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/node_store.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::testing {

ModelOpening History::DrawOpening() {
  ModelOpening opening;
  if (!draw_.OneIn(3)) opening.images = DrawImagesOnNode(draw_);
  if (opening.images && draw_.OneIn(4)) opening.preloaded = DrawImagesOnNode(draw_);
  opening.continues_pulls = draw_.OneIn(3);
  if (opening.images) {
    for (ListedImage& image : *opening.images) image.runtime_handler = DrawHandler();
  }
  if (!default_only_ && draw_.OneIn(4)) opening.handlers = DrawHandlers(draw_);
  if (draw_.OneIn(4)) {
    if (draw_.OneIn(2)) opening.broken_refs.insert(draw_.From(Refs()));
    if (draw_.OneIn(2)) opening.broken_images.insert(DrawImage(draw_).image);
    // Otherwise the broken files would count as a gap.
    opening.gap = Gap::kNo;
  }
  if (draw_.OneIn(8)) opening.gap = Gap::kYes;
  if (draw_.OneIn(6)) opening.first_start = FirstStart::kClose;
  if (draw_.OneIn(3)) opening.max_age = DrawMaxAge(draw_);
  if (draw_.OneIn(2)) opening.revocations_kept = std::chrono::hours(24);
  return opening;
}

std::string History::DescribeOpening(const ModelOpening& opening) const {
  std::string what = " under " + std::string(WordOf(policy_.mode));
  for (const ProofRule& rule : policy_.proofs) {
    what += ", proofs of " + Quote(rule.pattern) + " by " + std::string(WordOf(rule.proofs));
  }
  if (opening.handlers) what += ", handlers" + DescribeHandlers(*opening.handlers);
  if (opening.continues_pulls) what += ", continuing pulls";
  if (opening.preloaded) what += ", preloaded:" + DescribeListed(*opening.preloaded);
  if (opening.gap != Gap::kDetect) what += opening.gap == Gap::kYes ? ", after a gap" : ", no gap";
  if (opening.first_start == FirstStart::kClose) what += ", closing at a first start";
  if (opening.max_age) what += ", ages " + std::to_string(opening.max_age->count()) + " s";
  what += ", revocations " + std::to_string(opening.revocations_kept.count()) + " h";
  for (const std::string& ref : opening.broken_refs) what += ", broken " + Quote(ref);
  for (const std::string& image : opening.broken_images) what += ", broken " + Quote(image);
  if (!opening.images) return what + ", without a list";
  return what + ", listed:" + DescribeListed(*opening.images);
}

void History::RestartStep() {
  const ModelOpening opening = DrawOpening();
  if (draw_.OneIn(2)) policy_ = DrawPolicy(draw_);
  const bool reboots = draw_.OneIn(4);
  if (reboots) clock_.Reboot();
  if (reboots || draw_.OneIn(3)) {
    Timestamp now = clock_.Now();
    now.seconds -= static_cast<std::int64_t>(draw_.Below(100));
    SetTime(now);
  }
  Note(std::string(reboots ? "reboot" : "restart") + DescribeOpening(opening));
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
  // Closing may commit what is queued, and with it the last list's token.
  const auto closed = Must(NodeStore::Observe({.directory = side.directory}));
  side.model.CommittedSoFar(Must(closed->GetStatistics()).commit_sequence);
  side.model.Ended();
}

void History::MakeBroken(const Side& side, const ModelOpening& opening) {
  const std::filesystem::path kubelet = side.directory.string() + ".kubelet";
  std::filesystem::remove_all(kubelet);
  // A kubelet makes it at its start; without it nobody knows what the kubelet still has.
  std::filesystem::create_directories(kubelet / "image_manager/pulled");
  for (const std::string& ref : opening.broken_refs) {
    WriteRecordFile(kubelet, "pulled", ref, "broken " + std::to_string(++broken_files_));
  }
  for (const std::string& image : opening.broken_images) {
    WriteRecordFile(kubelet, "pulling", image, "broken " + std::to_string(++broken_files_));
  }
}

void History::Open(Side& side, ModelOpening opening) {
  if (opening.images) {
    for (ListedImage& image : *opening.images) {
      image.runtime_handler = Named(side, image.runtime_handler);
    }
  }
  auto policy = VerificationPolicy::Make(policy_.mode, policy_.patterns, policy_.scope);
  if (policy) policy = policy->WithProofs(policy_.proofs);
  Expect(policy.has_value(), side, "the policy is refused");
  NodeStoreOptions options{.directory = side.directory,
                           .witness = Witness::At(side.directory.string() + ".witness")};
  options.rules = side.rules;
  options.policy = *policy;
  options.images_on_node = opening.images;
  options.preloaded = opening.preloaded;
  options.evidence = evidence_;
  options.rows_at_once = rows_at_once_;
  options.continues_pulls = opening.continues_pulls;
  options.boot_clock = clock_.AsBootClock();
  options.allow_empty = true;
  options.runtime_handlers = opening.handlers;
  options.gap = opening.gap;
  options.first_start = opening.first_start;
  options.max_age = opening.max_age;
  options.revocations_kept = opening.revocations_kept;
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
  const OpeningReport& report = side.store->recovery_report();

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
  for (const Backup& backup : Must(BackupsOf(side.directory))) {
    opening.oldest_backup = std::min(opening.oldest_backup, backup.commit_sequence);
  }
  CompareOpened(side, report, side.model.Restart(opening));
  side.model.set_opened_at(report.commit_sequence);
  Expect(report.runtimes.has_value() == opening.handlers.has_value() &&
             report.replay_skipped == !opening.images.has_value(),
         side, "the report of opening is wrong");
}

void History::CompareOpened(Side& side, const OpeningReport& report, const ModelOpened& expected) {
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
  count(" intents left", report.intents_left, side.model.CountPulls());
  Expect(report.observed.has_value() == expected.observed.has_value(), side, "observed, or not");
  if (report.observed) {
    Expect(Describe(*report.observed) == Describe(*expected.observed), side,
           Describe(*report.observed) + "\n  instead of " + Describe(*expected.observed));
  }
  count(" records", report.records, side.model.records().size());
  count(" closed after a gap", report.gap_closed, expected.gap_closed);
  ExpectSame(side);
}

void History::ClearDistrustStep() {
  AcceptLoss options{.allow_empty = true};
  if (draw_.OneIn(2)) options.images = DrawImagesOnNode(draw_);
  options.allow_all = options.images && draw_.OneIn(2);
  Note(std::string("clear distrust") + (options.allow_all ? ", adopting" : "") +
       (options.images ? DescribeListed(*options.images) : ", without a list"));
  for (Side& side : sides_) {
    const auto cleared = side.store->ClearDistrust("an operator looked", options);
    if (!cleared) Expect(false, side, cleared.error().ToString());
    const ClassifyReport expected = side.model.ClearDistrust(options, "an operator looked");
    Expect(Describe(*cleared) == Describe(expected), side,
           Describe(*cleared) + "\n  instead of " + Describe(expected));
    const auto trust = side.store->GetTrust();
    Expect(trust.has_value() && !trust->distrustful, side, "still distrustful");
    ExpectSame(side);
  }
}

}  // namespace waybill::testing
