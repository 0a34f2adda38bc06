// Lists of the runtime's images, and garbage collection.

#include <fmt/format.h>

#include <algorithm>

#include "tests/simulation/node_life.h"

namespace waybill::simulation {

void NodeLife::ListRegularly() {
  timeline_.After(5 * kMinute, [this] { ListRegularly(); });
  if (mode_ != Mode::kWaybill) return;
  if (Broken(Breakage::kOldListAsNew) && old_list_ && draw_.OneIn(2)) {
    Listing listing = BeginListing();
    Take(listing);
    listing.images = *std::exchange(old_list_, std::nullopt);
    Observe(listing, true);
    return;
  }
  if (draw_.OneIn(10)) {
    Listing listing = BeginListing();
    Take(listing);
    LeaveOut(listing);
    Observe(listing, Broken(Breakage::kPartialListAsComplete) || MisleadOnce(listing));
    return;
  }
  if (!Broken(Breakage::kTokenAfterList) && !draw_.OneIn(3)) {
    ListNow();
    return;
  }
  // Something may happen between the token, the list and its use.
  auto listing = std::make_shared<Listing>();
  const std::uint64_t start = figures_.starts;
  const auto same_process = [this, start] {
    return mode_ == Mode::kWaybill && figures_.starts == start;
  };
  *listing = BeginListing();
  timeline_.After(Between(draw_, 0, 3 * kSecond), [this, listing, same_process] {
    if (!same_process()) return;
    Take(*listing);
    timeline_.After(Between(draw_, 0, 3 * kSecond), [this, listing, same_process] {
      if (!same_process()) return;
      if (Broken(Breakage::kTokenAfterList)) {
        listing->token = Must(store_->BeginList(), "BeginList");
      }
      Observe(*listing, true);
    });
  });
}

NodeLife::Listing NodeLife::BeginListing() {
  Listing listing;
  listing.token = Must(store_->BeginList(), "BeginList");
  listing.token_step = NextStep();
  return listing;
}

void NodeLife::Take(Listing& listing) {
  listing.images = runtime_.List();
  const std::vector<ContentIndex> contents = runtime_.Contents();
  listing.contents = {contents.begin(), contents.end()};
  listing.listed = listing.contents;
  if (!old_list_) old_list_ = listing.images;
}

// A filter: some images are not listed.
void NodeLife::LeaveOut(Listing& listing) {
  std::erase_if(listing.images, [&](const ImageOnNode& image) {
    if (image.pinned || !draw_.OneIn(3)) return false;
    listing.listed.erase(*runtime_.Resolve(image.id));
    return true;
  });
}

// Where limits may be passed: whether a partial list is passed as complete.
bool NodeLife::MisleadOnce(const Listing& listing) {
  if (!scenario_.beyond_limits || !draw_.OneIn(20)) return false;
  for (const ContentIndex content : runtime_.Contents()) {
    if (!listing.listed.contains(content)) {
      truth_.LeftOut(content);
      Log(content, "a list without it is passed as complete");
    }
  }
  return true;
}

void NodeLife::ListNow() {
  Listing listing = BeginListing();
  Take(listing);
  Observe(listing, true);
  listed_since_start_ = true;
}

void NodeLife::Observe(const Listing& listing, bool complete) {
  const bool is_older = listing.token.commit < newest_token_;
  const Result<ObserveReport> report = store_->ObserveImages(
      {.images = listing.images, .token = listing.token, .complete = complete});
  ++figures_.lists;
  if (!report) {
    if (is_older && report.error().code == ErrorCode::kInvalidArgument) return;
    Fail("ObserveImages: " + report.error().ToString(), std::nullopt);
  }
  if (is_older) Fail("a list is taken although a newer one was observed", std::nullopt);
  newest_token_ = listing.token.commit;
  figures_.judged_preloaded += report->preloaded;
  figures_.judged_closed += report->closed;
  const bool judged = report->not_judged_because.empty();
  // Closing a gap closes what is unknown, whatever other reasons for distrust there are.
  if (judged && (distrusted_ || gap_open_) && !(gap_open_ && complete)) {
    Fail("a distrustful store judges images", std::nullopt);
  }
  if (!judged && !distrusted_ && !gap_open_) {
    Fail("no image is judged: " + report->not_judged_because, std::nullopt);
  }
  for (const JudgedImage& image : report->judged) {
    const std::optional<ContentIndex> content = runtime_.Resolve(image.image_ref);
    if (!content) continue;
    Log(content,
        fmt::format("judged: {}, {}", image.preloaded ? "preloaded" : "closed", image.because));
  }
  if (report->records_removed + report->preloaded_removed + report->united > 0) {
    Log(std::nullopt,
        fmt::format("a list removes {} records and {} ledger entries, unites {}",
                    report->records_removed, report->preloaded_removed, report->united));
  }
  if (judged) {
    for (const ContentIndex content : listing.listed) truth_.Judged(content);
  }
  if (complete) {
    truth_.SeenGone(listing.contents, listing.token_step);
    if (gap_open_) GapClosed();
    if (!distrusted_) CheckOpenPulls(listing.token, report->left > 0);
  }
}

// Those that run are ours; none that ended stays longer than it must, unless the list left an image
// to a later one.
void NodeLife::CheckOpenPulls(const ListToken& token, bool any_left) {
  const std::vector<OpenPull> pulls = Must(store_->ListOpenPulls(), "ListOpenPulls");
  figures_.open_pulls_most = std::max(figures_.open_pulls_most, pulls.size());
  std::multiset<std::string> ours;
  for (const auto& [number, pull] : pulls_) {
    if (pull->attached && pull->has_intent) ours.insert(pull->question.image);
  }
  std::multiset<std::string> running;
  for (const OpenPull& pull : pulls) {
    if (pull.state == PullState::kRunning) {
      running.insert(pull.image);
      continue;
    }
    if (any_left) continue;
    if (pull.ended_at.boot_id != token.drawn.boot_id) {
      Fail("an open pull of an earlier boot stays: " + pull.image, std::nullopt);
    }
    const Millis since = (token.drawn.nanoseconds - pull.ended_at.nanoseconds) / 1'000'000;
    figures_.pull_stuck_longest = std::max(figures_.pull_stuck_longest, since);
    const Millis longest = pull.state == PullState::kFailed ? kGrace : kWindow;
    if (since > longest) {
      Fail(fmt::format("an open pull stays {} s after its end: {}", since / 1000, pull.image),
           std::nullopt);
    }
  }
  const bool should_agree = breakage_ == Breakage::kNone || Broken(Breakage::kPullsNeverEnd) ||
                            Broken(Breakage::kSuccessOfAnotherPull);
  if (should_agree && running != ours) {
    std::string text = "the pulls that run are others than ours:";
    for (const std::string& image : running) text += "\n  open: " + image;
    for (const std::string& image : ours) text += "\n  ours: " + image;
    Fail(text, std::nullopt);
  }
}

void NodeLife::RemoveImage(ContentIndex content) {
  Log(content, NameOf(content) + " is removed");
  runtime_.Remove(content);
  truth_.Removed(content);
}

void NodeLife::CollectGarbage() {
  std::vector<ContentIndex> contents = runtime_.Contents();
  if (contents.size() > 45) {
    std::sort(contents.begin(), contents.end(), [&](ContentIndex a, ContentIndex b) {
      return runtime_.last_used(a) < runtime_.last_used(b);
    });
    contents.resize(contents.size() - 30);
    for (const ContentIndex content : contents) {
      if (!runtime_.IsPinned(content)) RemoveImage(content);
    }
  }
  if (mode_ == Mode::kStockKubelet || scenario_.kubelet_beside) {
    // After a collection for disk space the kubelet passes only some of what it kept.
    const bool all = scenario_.kubelet_beside || draw_.OneIn(2);
    std::set<std::string> kept;
    for (const ContentIndex content : runtime_.Contents()) {
      if (all || draw_.OneIn(2)) kept.insert(runtime_.Id(content));
    }
    kubelet_->Prune(kept, clock_.Now());
  }
  if (mode_ != Mode::kWaybill) return;
  if (!draw_.OneIn(4)) {
    ListNow();
    return;
  }
  Listing listing = BeginListing();
  Take(listing);
  Must(store_->Prune(listing.images, listing.token), "Prune");
  newest_token_ = listing.token.commit;
  truth_.SeenGone(listing.contents, listing.token_step);
}

}  // namespace waybill::simulation
