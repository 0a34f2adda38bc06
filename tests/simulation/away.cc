// Disks that go with their images and come back, what operators say of those images meanwhile,
// clocks that are wrong for a while, and a kubelet that writes again what it remembers.

#include <fmt/format.h>

#include <algorithm>

#include "store/base/image_name.h"
#include "store/base/options.h"
#include "store/base/words.h"
#include "tests/simulation/node_life.h"
#include "waybill/values.h"

namespace waybill::simulation {

namespace {

// What a guard passes on: what the store has, and what else the kubelet's file says.
ImagePulledRecord United(const ImagePulledRecord& file, ImagePulledRecord known) {
  known.last_updated = file.last_updated;
  for (const auto& [name, from] : file.credential_mapping) {
    ImagePullCredentials& into = known.credential_mapping[name];
    if (into.node_pods_accessible) continue;
    if (from.node_pods_accessible) into = {.node_pods_accessible = true};
    if (from.node_pods_accessible) continue;
    for (const ImagePullSecret& secret : from.kubernetes_secrets) {
      auto& all = into.kubernetes_secrets;
      const bool is_known = std::any_of(all.begin(), all.end(),
                                        [&](const auto& one) { return SameSecret(one, secret); });
      if (!is_known) all.push_back(secret);
    }
    for (const ImagePullServiceAccount& account : from.kubernetes_service_accounts) {
      auto& all = into.kubernetes_service_accounts;
      if (std::find(all.begin(), all.end(), account) == all.end()) all.push_back(account);
    }
  }
  return known;
}

}  // namespace

// What no list had before its disk went is a limit.
void NodeLife::DiskGoes() {
  if (mode_ != Role::kWaybill || distrusted_ || gap_open_ || !away_.empty()) return;
  ListNow();
  if (left_ > 0) return;
  const std::vector<PreloadedImage> ledger = Must(store_->ListLedger(), "ListLedger");
  const bool all = scenario_.most_remembered > 0 || draw_.OneIn(3);
  for (const ContentIndex content : runtime_.Contents()) {
    if (runtime_.IsPinned(content) || !(all || draw_.OneIn(2))) continue;
    const auto entry = std::find_if(ledger.begin(), ledger.end(), [&](const PreloadedImage& one) {
      return one.image_ref.ends_with(world_.content(content).hex);
    });
    Log(content, NameOf(content) + " is away, with its disk");
    away_[content] = {runtime_.Take(content),
                      entry == ledger.end() ? std::nullopt : std::optional(*entry)};
    truth_.WentAway(content);
    std::erase_if(waits_, [&](const auto& one) { return one.first.second == content; });
  }
  // What comes by hand may be one of those that are not remembered.
  if (scenario_.most_remembered > 0) can_tell_from_ = kNever;
  if (scenario_.only_restores) timeline_.After(Around(draw_, kHour), [this] { LoseStore(); });
  timeline_.After(Between(draw_, 10 * kMinute, 12 * kHour), [this] { DiskComesBack(); });
}

void NodeLife::DiskComesBack() {
  const auto back = std::exchange(away_, {});
  for (const auto& [content, away] : back) {
    runtime_.GiveBack(content, away.image);
    truth_.CameBack(content, NextStep());
    Log(content, NameOf(content) + " is back");
  }
  timeline_.After(Around(draw_, 5 * kMinute), [this, back] {
    if (mode_ != Role::kWaybill) return;
    ListNow();
    for (const auto& [content, away] : back) {
      if (runtime_.Has(content)) AskAbout(runtime_.Entry(content), SomePod(World::kHostile));
    }
  });
}

// What they say is true.
void NodeLife::SpeakOfAway() {
  if (mode_ != Role::kWaybill || away_.empty()) return;
  auto at = away_.begin();
  std::advance(at, draw_.Below(away_.size()));
  auto& [content, away] = *at;
  if (runtime_.Has(content)) return;
  const bool is_closed = truth_.IsClosed(content);
  if (!is_closed && !truth_.CameByHand(content)) {
    ForgetImage(content);
    return;
  }
  const std::string id = draw_.OneIn(2) ? world_.content(content).hex : runtime_.Id(content);
  if (!is_closed && !draw_.OneIn(4)) {
    if (away.entry) CloseAway(content, {.image_ref = id}, *away.entry);
    return;
  }
  const ListedImage entry{
      .id = id, .repo_tags = away.image.tags, .repo_digests = away.image.digests};
  Must(store_->AddToLedger(entry, "operator", "ours"), "AddToLedger");
  away.entry = PreloadedImage{.image_ref = id, .source = "operator"};
  truth_.CalledPreloaded(content, NextStep());
  Log(content, "an operator says that it is preloaded, while it is away");
}

void NodeLife::CloseAway(ContentIndex content, const ImageCopy& copy, const PreloadedImage& entry) {
  bool taken = Broken(Breakage::kClosingsUntold);
  if (!taken) {
    taken = IsPresumed(entry) && draw_.OneIn(2)
                ? Must(store_->SettlePresumed(copy, Settled::kClosed, "not ours"), "SettlePresumed")
                : Must(store_->RemoveFromLedger(copy, "not ours"), "RemoveFromLedger");
  }
  // What was pulled meanwhile, or is beyond the bound, is in the ledger no more.
  const bool may_be_refused = truth_.IsRecorded(content) || scenario_.most_remembered > 0;
  truth_.CalledNotPreloaded(content, taken || !may_be_refused);
  Log(content, fmt::format("an operator says that it is not preloaded, while it is away{}",
                           taken ? "" : ": the store does not know it"));
}

void NodeLife::SetClocks() {
  clock_.Set({testing::kFakeEpoch + (timeline_.now() + clock_offset_) / kSecond, 0});
  const std::int64_t time = testing::kFakeEpoch + timeline_.now() / kSecond;
  const std::int64_t shown = clock_.Now().seconds;
  if (scenario_.wrong_clocks) truth_.SetClock(time, time - uncounted_ / kSecond);
  if (!scenario_.wrong_clocks) truth_.SetClock(shown, shown);
}

void NodeLife::SetWrongTime() {
  switch (draw_.Below(6)) {
    case 0:
      clock_offset_ = 20 * kHour;
      break;
    case 1:
      clock_offset_ = Between(draw_, kDay, 36 * kHour);
      break;
    case 2:
      clock_offset_ = 20 * kDay;
      break;
    case 3:
      // It has lost its time.
      clock_offset_ = draw_.OneIn(2) ? -40 * kDay : -testing::kFakeEpoch * kSecond;
      break;
    default:
      clock_offset_ = 40 * kDay;
      break;
  }
  truth_.ClockJumped(NextStep());
  Log(std::nullopt, fmt::format("the clock is {} s ahead", clock_offset_ / kSecond));
  SetClocks();
}

void NodeLife::PutTheClockRight(Millis after) {
  timeline_.After(after, [this] {
    clock_offset_ = 0;
    truth_.ClockJumped(NextStep());
    Log(std::nullopt, "the clock is right again");
    SetClocks();
  });
}

void NodeLife::MistakeTheTime() {
  if (mode_ != Role::kWaybill || clock_offset_ != 0) return;
  switch (draw_.Below(4)) {
    case 0:  // for one command
      SetWrongTime();
      switch (draw_.Below(3)) {
        case 0:
          ListNow();
          break;
        case 1:
          Ask(SomeQuestion());
          break;
        default:
          ForgetAsOperator();
          break;
      }
      PutTheClockRight(0);
      return;
    case 1:  // for hours
      SetWrongTime();
      PutTheClockRight(Between(draw_, kMinute, 6 * kHour));
      return;
    case 2: {  // at a start
      const Millis downtime = Between(draw_, kSecond, kMinute);
      Kill(downtime);
      SetWrongTime();
      PutTheClockRight(downtime + Between(draw_, 0, draw_.OneIn(2) ? kMinute : 2 * kHour));
      return;
    }
    default:  // at a boot, which takes ten minutes at most
      Reboot();
      SetWrongTime();
      PutTheClockRight(10 * kMinute + Between(draw_, 0, draw_.OneIn(2) ? kMinute : 2 * kHour));
      return;
  }
}

// Of an image whose pull ended: what a pull that runs adds is another matter.
void NodeLife::KubeletWritesAgain() {
  if (mode_ != Role::kWaybill || runtime_.size() == 0) return;
  const ContentIndex content = draw_.From(runtime_.Contents());
  const ImagePulledRecord* const file = memory_->Find(runtime_.Id(content));
  if (file == nullptr) return;
  for (const auto& [number, pull] : pulls_) {
    const auto name = ImageName(pull->question.image);
    if (name && file->credential_mapping.contains(std::string(*name))) return;
  }
  const auto known = store_->GetRecord({.image_ref = runtime_.Id(content)});
  if (!known || known->absent_since) return;
  Must(store_->PutRecord(United(*file, *known)), "PutRecord");
  for (const auto& [name, entry] : file->credential_mapping) {
    for (const ImagePullSecret& secret : entry.kubernetes_secrets) {
      for (const bool by_hash : {true, false}) {
        truth_.WrittenBack(content, {name, ""}, secret, by_hash, false, NextStep());
      }
    }
  }
  Log(content, "the kubelet writes again what it remembers of it");
  for (std::size_t tenant = 0; tenant < World::kTenants; ++tenant) {
    AskAbout(runtime_.Entry(content), {tenant, Credential::kSecret});
  }
}

}  // namespace waybill::simulation
