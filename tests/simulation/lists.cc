// Lists of the runtime's images, and garbage collection.

#include <fmt/format.h>

#include <algorithm>

#include "tests/simulation/machine.h"
#include "tests/simulation/node_life.h"

namespace waybill::simulation {

void NodeLife::ListRegularly() {
  timeline_.After(scenario_.lists, [this] { ListRegularly(); });
  if (mode_ != Role::kWaybill) return;
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
  const std::uint64_t start = starts_;
  const auto same_process = [this, start] { return mode_ == Role::kWaybill && starts_ == start; };
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
  LookAtPulls(listing);
  return listing;
}

// Which pulls that ended are over, as the runtime shows before it lists its images.
void NodeLife::LookAtPulls(Listing& listing) {
  if (!scenario_.tells_quiet || runtime_.kind() != RuntimeKind::kContainerd) return;
  const BootTime now = machine_->Now();
  std::vector<BootTime> ends;
  for (const UnresolvedPull& pull : Must(store_->ListOpenPulls(), "ListOpenPulls")) {
    if (pull.ended && pull.ended_at.boot_id == now.boot_id) ends.push_back(pull.ended_at);
  }
  if (ends.empty()) return;
  cri::PullLook look{.began = now.nanoseconds, .ended = now.nanoseconds, .process = server_};
  std::erase_if(leases_left_, [&](const auto& one) { return one.second <= timeline_.now(); });
  for (const auto& [lease, until] : leases_left_) look.leases.push_back(lease);
  for (const auto& [number, pull] : pulls_) {
    if (pull->leased_from <= timeline_.now()) look.leases.push_back(std::to_string(number));
  }
  if (Broken(Breakage::kQuietTooEarly)) look.leases.clear();
  pull_ends_.Saw(std::move(look));
  for (const BootTime& end : ends) {
    const bool is_later =
        !listing.quiet_until || end.nanoseconds > listing.quiet_until->nanoseconds;
    if (is_later && pull_ends_.Quiet(end.nanoseconds)) listing.quiet_until = end;
  }
  if (!std::exchange(looks_again_, true)) {
    timeline_.After(kMinute, [this] {
      looks_again_ = false;
      if (mode_ == Role::kWaybill) ListNow();
    });
  }
  if (!listing.quiet_until) return;
  const auto has = [&](const std::string& name, const std::string& target) {
    listing.containerd.push_back({.name = name, .target = target});
  };
  for (const ListedImage& image : runtime_.List()) {
    const std::string& target = world_.content(*runtime_.Resolve(image.id)).top_digest();
    has(image.id, target);
    for (const std::string& tag : image.repo_tags) has(tag, target);
    for (const std::string& digest : image.repo_digests) {
      has(digest, digest.substr(digest.find('@') + 1));
    }
  }
  for (const auto& [number, pull] : not_shown_) {
    has(pull->name->text(), world_.content(*pull->content).top_digest());
  }
}

std::vector<ListedImage> NodeLife::Listed() const {
  std::vector<ListedImage> images = runtime_.List();
  if (Broken(Breakage::kImportedAlways)) {
    for (ListedImage& image : images) image.imported = true;
  }
  return images;
}

void NodeLife::Take(Listing& listing) {
  listing.images = Listed();
  if (listing.quiet_until) {
    listing.names_to_come = cri::NotShown(listing.containerd, listing.images);
  }
  const std::vector<ContentIndex> contents = runtime_.Contents();
  listing.contents = {contents.begin(), contents.end()};
  listing.listed = listing.contents;
  if (!old_list_) old_list_ = listing.images;
}

// A filter: some images are not listed.
void NodeLife::LeaveOut(Listing& listing) {
  std::erase_if(listing.images, [&](const ListedImage& image) {
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
  const ListToken& token = listing.token;
  const bool is_older =
      token.commit < newest_token_.commit ||
      (token.commit == newest_token_.commit && token.drawn.boot_id == newest_token_.drawn.boot_id &&
       token.drawn.nanoseconds < newest_token_.drawn.nanoseconds);
  const Result<ClassifyReport> report =
      store_->ObserveImages({.images = listing.images,
                             .token = listing.token,
                             .complete = complete,
                             .quiet_until = listing.quiet_until,
                             .names_to_come = listing.names_to_come});
  if (!report) {
    const bool is_refused = is_older || (listing.images.empty() && !scenario_.remembers);
    if (is_refused && report.error().code == ErrorCode::kInvalidArgument) return;
    Fail("ObserveImages: " + report.error().ToString(), std::nullopt);
  }
  if (is_older) Fail("a list is taken although a newer one was observed", std::nullopt);
  newest_token_ = listing.token;
  left_ = report->left;
  const bool judged = report->not_judged_because.empty();
  // Closing a gap closes what is unknown, whatever other reasons for distrust there are.
  if (judged && (distrusted_ || gap_open_) && !(gap_open_ && complete)) {
    Fail("a distrustful store judges images", std::nullopt);
  }
  if (!judged && !distrusted_ && !gap_open_) {
    Fail("no image is judged: " + report->not_judged_because, std::nullopt);
  }
  for (const ClassifiedImage& image : report->judged) {
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
    // A list that has nothing of what is known closes no gap, and settles nothing.
    const bool is_strange = scenario_.wipes > 0 && report->known == 0;
    if (gap_open_) {
      truth_.ForgottenUnjudged();
      const bool stays = is_strange && Must(store_->GetStatistics(), "GetStatistics").distrustful;
      if (!stays) GapClosed();
    }
    if (!distrusted_) CheckOpenPulls(listing.token, report->left > 0 || is_strange);
  }
}

// Those that run are ours; none that ended stays longer than it must, unless the list left an image
// to a later one.
void NodeLife::CheckOpenPulls(const ListToken& token, bool any_left) {
  const std::vector<UnresolvedPull> pulls = Must(store_->ListOpenPulls(), "ListOpenPulls");
  figures_.open_pulls_most = std::max(figures_.open_pulls_most, pulls.size());
  std::multiset<std::string> ours;
  for (const auto& [number, pull] : pulls_) {
    if (pull->attached && pull->has_intent) ours.insert(pull->question.image);
  }
  std::multiset<std::string> running;
  for (const UnresolvedPull& pull : pulls) {
    if (pull.state == PullState::kRunning) {
      running.insert(pull.image);
      continue;
    }
    // What stands for images beyond the bound stays.
    if (any_left || (scenario_.most_remembered > 0 && pull.anything)) continue;
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
  CollectContent(content);
  std::erase_if(waits_, [&](const auto& one) {
    if (one.first.second != content) return false;
    figures_.waits.push_back(timeline_.now() - one.second.since);
    return true;
  });
}

// Nobody needs it any more: no image, no pull that holds a lease.
void NodeLife::CollectContent(ContentIndex content) {
  if (!scenario_.tells_imports || runtime_.Has(content) || away_.contains(content)) return;
  for (const auto* pulls : {&pulls_, &not_shown_}) {
    for (const auto& [number, pull] : *pulls) {
      if (pull->content == content) return;
    }
  }
  runtime_.Collect(content);
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
  if (mode_ == Role::kStockKubelet || scenario_.kubelet_beside) {
    // After a collection for disk space the kubelet passes only some of what it kept.
    const bool all = scenario_.kubelet_beside || draw_.OneIn(2);
    std::set<std::string> kept;
    for (const ContentIndex content : runtime_.Contents()) {
      if (all || draw_.OneIn(2)) kept.insert(runtime_.Id(content));
    }
    kubelet_->Prune(kept, clock_.Now());
  }
  if (mode_ != Role::kWaybill) return;
  if (!draw_.OneIn(4) || runtime_.size() == 0) {
    ListNow();
    return;
  }
  Listing listing = BeginListing();
  Take(listing);
  Must(store_->Prune(listing.images, listing.token), "Prune");
  newest_token_ = listing.token;
  truth_.SeenGone(listing.contents, listing.token_step);
}

}  // namespace waybill::simulation
