#include "bench/sizing/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "bench/measure.h"
#include "bench/scratch.h"
#include "bench/sizing/kubelet_files.h"
#include "bench/sizing/store_side.h"
#include "bench/sizing/trace.h"

namespace waybill::bench {

namespace {

Times QuantilesOf(std::vector<double> nanoseconds) {
  if (nanoseconds.empty()) return {};
  std::sort(nanoseconds.begin(), nanoseconds.end());
  const auto at = [&nanoseconds](double part) {
    return nanoseconds[static_cast<std::size_t>(part *
                                                static_cast<double>(nanoseconds.size() - 1))];
  };
  return {at(0.5), at(0.99)};
}

Held HeldBy(StoreSide& side) {
  Held held;
  const std::vector<ImagePulledRecord> records = Must(side.store().ListRecords());
  held.records = records.size();
  for (const ImagePulledRecord& record : records) {
    std::uint64_t secrets = 0;
    for (const auto& [name, entry] : record.credential_mapping) {
      secrets += entry.kubernetes_secrets.size();
    }
    held.secrets += secrets;
    held.most_secrets = std::max(held.most_secrets, secrets);
  }
  held.store_bytes = side.UsedBytes();
  return held;
}

class Player {
 public:
  Player(const cli::NodeShape& shape, const ReplayOptions& options)
      : options_(options), trace_(shape, options.seed, options.days), node_(trace_.preloaded()) {
    if (options.cache) {
      side_ = std::make_unique<KubeletFiles>(options.directory / "files", *options.cache, node_);
      return;
    }
    auto store = std::make_unique<StoreSide>(options.directory / "store", options.rules, node_,
                                             options.trace);
    store_ = store.get();
    side_ = std::move(store);
  }

  ReplayResult Play();

 private:
  // Returns what the event is counted as; nullptr: nothing.
  Operations* Do(const Event& event);
  Operations* Decide(const Event& event);
  void Finish();

  const ReplayOptions& options_;
  Trace trace_;
  NodeState node_;
  std::unique_ptr<Side> side_;
  StoreSide* store_ = nullptr;  // it, if it is one
  std::vector<double> times_;
  bool filling_ = true;
  ReplayResult result_;
};

Operations* Player::Decide(const Event& event) {
  const std::string image = ImageText(event.image);
  const std::string ref =
      event.reason == Reason::kImageAbsent ? std::string() : RefText(event.image.ref);
  const ImagePullSecret secret = SecretText(event.secrets.front());
  const ImageCopy copy{.image = image, .image_ref = ref};
  ++result_.decisions;
  if (!event.pull) ++result_.allowed;
  Answer answer;
  times_.push_back(NanosecondsOf([&] { answer = side_->Decide(copy, secret); }));
  side_->Flush();
  if (answer.pull != event.pull && result_.differences++ == 0) {
    result_.first_difference = fmt::format(
        "second {}, {}, tenant {}: {} ({})", event.second, image, event.secrets.front().tenant,
        answer.pull ? "pull" : "no pull", ReasonName(answer.reason));
  }
  return event.writes_back ? &result_.write_backs : nullptr;
}

Operations* Player::Do(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kDecide:
      return Decide(event);
    case Event::Kind::kPull: {
      node_.Add(event.image);
      ImagePullCredentials credentials;
      for (const SecretId secret : event.secrets) {
        credentials.kubernetes_secrets.push_back(SecretText(secret));
      }
      credentials.node_pods_accessible = event.secrets.empty();
      side_->BeginPull(event.image);
      side_->EndPull(event.image, credentials);
      return &result_.pulls;
    }
    case Event::Kind::kFailedPull:
      side_->BeginPull(event.image);
      side_->FailPull(event.image);
      return &result_.failed_pulls;
    case Event::Kind::kCutPull:
      side_->BeginPull(event.image);
      return &result_.failed_pulls;
    case Event::Kind::kList: {
      const bool collected = !event.collected.empty();
      node_.Remove(event.collected);
      side_->List(collected);
      return collected ? &result_.collections : &result_.lists;
    }
    case Event::Kind::kRestart:
      node_.Reboot();
      side_->Restart();
      return &result_.restarts;
  }
  return nullptr;
}

ReplayResult Player::Play() {
  SkipFlushes();
  while (const auto event = trace_.Next()) {
    if (filling_ && !event->filling) side_->Restart();
    filling_ = event->filling;
    node_.SetTime(event->second);
    const DiskCalls before = DiskCallsSoFar();
    Operations* const kind = Do(*event);
    if (kind != nullptr && !filling_) {
      ++kind->count;
      kind->io += DiskCallsSoFar() - before;
    }
    if (event->kind == Event::Kind::kList && store_ != nullptr) {
      const std::uint64_t records = Must(store_->store().GetStatistics()).records;
      result_.most_records = std::max(result_.most_records, records);
    }
  }
  Finish();
  return std::move(result_);
}

void Player::Finish() {
  result_.decision = QuantilesOf(std::move(times_));
  result_.hit_rate = side_->HitRate();
  result_.resident_bytes = side_->ResidentBytes();
  if (store_ != nullptr) result_.end = HeldBy(*store_);
  std::vector<double> starts;
  for (int i = 0; i < options_.starts; ++i) starts.push_back(side_->Restart());
  result_.start_seconds = Median(starts);
  if (!options_.keeps_records) return;
  result_.records = side_->Records();
  std::ranges::sort(result_.records);
}

}  // namespace

ReplayResult Replay(const cli::NodeShape& shape, const ReplayOptions& options) {
  return Player(shape, options).Play();
}

}  // namespace waybill::bench
