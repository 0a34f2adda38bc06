#include "bench/sizing/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <unordered_set>

#include "bench/measure.h"
#include "bench/scratch.h"
#include "bench/sizing/kubelet_files.h"
#include "bench/sizing/store_side.h"
#include "bench/sizing/trace.h"
#include "migrations/kubelet/kubelet_records.h"
#include "store/base/options.h"
#include "store/node/facade/node_store.h"
#include "waybill/values.h"

namespace waybill::bench {

namespace {

using Clock = std::chrono::steady_clock;

class Stopwatch {
 public:
  template <typename Work>
  auto Time(Work&& work) {
    const Clock::time_point begin = Clock::now();
    auto result = work();
    const auto took = Clock::now() - begin;
    times_.push_back(static_cast<std::uint32_t>(std::min<std::int64_t>(
        UINT32_MAX, std::chrono::duration_cast<std::chrono::nanoseconds>(took).count())));
    return result;
  }

  Times Quantiles() {
    if (times_.empty()) return {};
    std::sort(times_.begin(), times_.end());
    const auto at = [this](double part) {
      const auto index = static_cast<std::size_t>(part * static_cast<double>(times_.size() - 1));
      return static_cast<double>(times_[index]);
    };
    return {at(0.5), at(0.99)};
  }

 private:
  std::vector<std::uint32_t> times_;
};

Sample SampleOf(StoreSide& side, double day) {
  Sample sample{.day = day};
  const std::vector<ImagePulledRecord> records = Must(side.store().ListRecords());
  sample.records = records.size();
  for (const ImagePulledRecord& record : records) {
    std::uint64_t secrets = 0;
    for (const auto& [name, entry] : record.credential_mapping) {
      secrets += entry.kubernetes_secrets.size();
    }
    sample.secrets += secrets;
    sample.most_secrets = std::max(sample.most_secrets, secrets);
  }
  sample.store_bytes = side.UsedBytes();
  return sample;
}

class Player {
 public:
  Player(const cli::NodeShape& shape, const ReplayOptions& options)
      : options_(options), trace_(shape, options.seed, options.days), node_(trace_.preloaded()) {
    if (options.store) {
      store_ = std::make_unique<StoreSide>(options.directory / "store", options.rules, node_,
                                           options.trace);
    }
    if (options.cache) {
      files_ = std::make_unique<KubeletFiles>(options.directory / "files", *options.cache);
    }
  }

  ReplayResult Play();

 private:
  void Do(const Event& event);
  void Decide(const Event& event);
  void Compare(const Event& event, const Decision& decision, std::string_view side);
  void Account(Operations& operations);
  void EndFilling();
  void Finish();
  template <typename Work>
  void OnStore(Operations& operations, Work&& work) {
    if (store_ == nullptr) return;
    work(*store_);
    Account(operations);
  }
  template <typename Work>
  void OnFiles(Work&& work) {
    if (files_ == nullptr) return;
    work(*files_);
  }
  void CompareStates();

  const ReplayOptions& options_;
  Trace trace_;
  NodeState node_;
  std::unique_ptr<StoreSide> store_;
  std::unique_ptr<KubeletFiles> files_;
  Stopwatch store_times_;
  Stopwatch file_times_;
  DiskCalls began_;    // when the node was filled
  DiskCalls counted_;  // up to there to operations
  bool filling_ = true;
  double next_sample_ = 0;
  ReplayResult result_;
};

// What the store wrote since the last call belongs to these operations.
void Player::Account(Operations& operations) {
  const DiskCalls now = DiskCallsSoFar();
  if (!filling_) {
    ++operations.count;
    operations.io += now - counted_;
  }
  counted_ = now;
}

void Player::Compare(const Event& event, const Decision& decision, std::string_view side) {
  if (decision.pull == event.pull) return;
  if (result_.differences++ == 0) {
    result_.first_difference =
        fmt::format("second {}, {}, tenant {}: {} says {} ({})", event.second,
                    ImageText(event.image), event.secrets.front().tenant, side,
                    decision.pull ? "pull" : "no pull", ReasonName(decision.reason));
  }
}

void Player::Decide(const Event& event) {
  const std::string image = ImageText(event.image);
  const std::string ref =
      event.reason == Reason::kImageAbsent ? std::string() : RefText(event.image.ref);
  const ImagePullSecret secret = SecretText(event.secrets.front());
  const ImagePullSecretView view(secret);
  const ImageCopy copy{.image = image, .image_ref = ref};
  ++result_.decisions;
  if (!event.pull) ++result_.allowed;
  if (store_ != nullptr) {
    FixedCredentials credentials({.secrets = {&view, 1}});
    NodeStore& store = store_->store();
    Compare(event, store_times_.Time([&] { return store.MustAttemptPull(copy, credentials); }),
            "waybill");
    Must(store.Flush());
    Operations nothing;
    Account(event.writes_back ? result_.write_backs : nothing);
  }
  OnFiles([&](KubeletFiles& files) {
    // It writes back before it answers, as the kubelet does.
    Compare(event, file_times_.Time([&] {
      bool write_back = false;
      const Decision decision = files.MustAttemptPull(copy, view, &write_back);
      if (write_back) files.WriteBack(copy, secret, node_.now());
      return decision;
    }),
            "the side of files");
  });
}

void Player::Do(const Event& event) {
  node_.SetTime(event.second);
  ImagePullCredentials credentials;
  for (const SecretId secret : event.secrets) {
    credentials.kubernetes_secrets.push_back(SecretText(secret));
  }
  credentials.node_pods_accessible = event.secrets.empty();
  const std::string image = ImageText(event.image);
  const std::string ref = RefText(event.image.ref);
  switch (event.kind) {
    case Event::Kind::kDecide:
      return Decide(event);
    case Event::Kind::kPull:
      node_.Add(event.image);
      OnStore(result_.pulls, [&](StoreSide& store) { store.Pull(event.image, credentials); });
      return OnFiles([&](KubeletFiles& files) {
        files.RecordPullIntent(image);
        files.RecordImagePulled({.image = image, .image_ref = ref}, credentials, node_.now());
      });
    case Event::Kind::kFailedPull:
      OnStore(result_.failed_pulls, [&](StoreSide& store) { store.FailPull(event.image); });
      return OnFiles([&](KubeletFiles& files) {
        files.RecordPullIntent(image);
        files.RecordImagePullFailed(image);
      });
    case Event::Kind::kCutPull:
      OnStore(result_.failed_pulls, [&](StoreSide& store) { store.CutPull(event.image); });
      return OnFiles([&](KubeletFiles& files) { files.RecordPullIntent(image); });
    case Event::Kind::kList: {
      const bool collected = !event.collected.empty();
      node_.Remove(event.collected);
      OnStore(collected ? result_.collections : result_.lists,
              [&](StoreSide& store) { store.List(collected); });
      if (!collected) return;
      return OnFiles([&](KubeletFiles& files) { files.Prune(node_.images(), node_.now()); });
    }
    case Event::Kind::kRestart:
      node_.Reboot();
      OnStore(result_.restarts, [](StoreSide& store) { store.Restart(); });
      return OnFiles([](KubeletFiles& files) { files.Start(); });
  }
}

void Player::EndFilling() {
  if (store_ != nullptr) store_->Restart();
  OnFiles([](KubeletFiles& files) { files.Start(); });
  filling_ = false;
  counted_ = began_ = DiskCallsSoFar();
  if (options_.sample_days > 0) result_.samples.push_back(SampleOf(*store_, 0));
  next_sample_ = static_cast<double>(options_.sample_days);
}

ReplayResult Player::Play() {
  SkipFlushes();
  while (const auto event = trace_.Next()) {
    if (filling_ && !event->filling) EndFilling();
    const double day = static_cast<double>(event->second) / 86'400;
    if (options_.sample_days > 0 && day >= next_sample_ && !event->filling) {
      result_.samples.push_back(SampleOf(*store_, next_sample_));
      next_sample_ += static_cast<double>(options_.sample_days);
    }
    Do(*event);
    if (event->kind == Event::Kind::kList && store_ != nullptr) {
      const std::uint64_t records = Must(store_->store().GetStatistics()).records;
      result_.most_records = std::max(result_.most_records, records);
    }
  }
  Finish();
  return std::move(result_);
}

void Player::Finish() {
  const int start_count = options_.measures_start ? 5 : 1;
  if (store_ != nullptr) {
    result_.decision = store_times_.Quantiles();
    result_.resident_bytes = store_->ResidentBytes();
    result_.end = SampleOf(*store_, options_.days);
    if (options_.sample_days > 0) result_.samples.push_back(result_.end);
    std::vector<double> starts;
    for (int i = 0; i < start_count; ++i) starts.push_back(store_->Restart());
    result_.start_seconds = Median(starts);
  }
  if (files_ == nullptr) return;
  result_.file_io = DiskCallsSoFar() - began_;
  result_.file_decision = file_times_.Quantiles();
  result_.hit_rate = files_->HitRate();
  result_.file_resident_bytes = files_->HeapBytes();
  std::vector<double> starts;
  for (int i = 0; i < start_count; ++i) {
    starts.push_back(NanosecondsOf([&] { files_->Start(); }) / 1e9);
  }
  result_.file_start_seconds = Median(starts);
  if (store_ != nullptr && options_.rules == Rules::kKubelet) CompareStates();
}

// Under the kubelet's rules both sides hold the same, to the byte.
void Player::CompareStates() {
  std::unordered_set<std::string> own;
  for (const ImagePulledRecord& record : Must(store_->store().ListRecords())) {
    own.insert(EncodePulledRecord(record));
  }
  const std::vector<std::string> theirs = files_->ReadAll();
  std::size_t same = 0;
  for (const std::string& content : theirs) {
    if (own.contains(content)) {
      ++same;
    } else if (result_.first_difference.empty()) {
      result_.first_difference = "waybill has no record like " + content;
    }
  }
  result_.state_differences = theirs.size() + own.size() - 2 * same;
}

}  // namespace

ReplayResult Replay(const cli::NodeShape& shape, const ReplayOptions& options) {
  return Player(shape, options).Play();
}

}  // namespace waybill::bench
