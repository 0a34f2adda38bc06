#include "bench/sizing/store_side.h"

#include <atomic>
#include <fstream>
#include <ranges>
#include <sstream>

#include "bench/disk_calls.h"
#include "bench/measure.h"
#include "bench/scratch.h"
#include "migrations/kubelet_files/kubelet_records.h"
#include "store/base/options.h"
#include "store/calls/node_store.h"
#include "waybill/values.h"

namespace waybill::bench {

namespace {

constexpr std::int64_t kUptime = 1'000'000;     // longer than any window
constexpr std::uint32_t kCutImages = 1U << 30;  // from here on, images that no trace has

std::filesystem::path WitnessOf(const std::filesystem::path& directory) {
  return directory.string() + ".witness";
}

}  // namespace

// The store asks on other threads, too.
struct NodeState::Time {
  std::atomic<std::int64_t> second{0};
  std::atomic<std::uint8_t> boots{1};
};

NodeState::NodeState(const std::vector<ImageId>& preloaded) : time_(std::make_shared<Time>()) {
  for (const ImageId image : preloaded) Add(image);
}

void NodeState::SetTime(std::int64_t second) { time_->second = second; }

void NodeState::Reboot() {
  if (++time_->boots == 0) ++time_->boots;
}

Clock NodeState::AsClock() const {
  return [time = time_] { return Timestamp{kBegin + time->second, 0}; };
}

BootClock NodeState::AsBootClock() const {
  return [time = time_] {
    BootTime now{.nanoseconds = (kUptime + time->second) * 1'000'000'000};
    now.boot_id[0] = time->boots;
    return now;
  };
}

void NodeState::Add(ImageId image) {
  images_.try_emplace(image.ref, ListedImage{.id = RefText(image.ref),
                                             .repo_tags = {ImageText(image)},
                                             .repo_digests = {RepoDigestText(image)}});
}

void NodeState::Remove(const std::vector<ImageId>& images) {
  for (const ImageId image : images) images_.erase(image.ref);
}

std::vector<ListedImage> NodeState::images() const {
  const auto values = std::views::values(images_);
  return {values.begin(), values.end()};
}

StoreSide::StoreSide(std::filesystem::path directory, Mode rules, const NodeState& node,
                     std::filesystem::path trace)
    : Side(node), directory_(std::move(directory)), rules_(rules), trace_(std::move(trace)) {
  store_ = Open(directory_);
}

std::unique_ptr<NodeStore> StoreSide::Open(const std::filesystem::path& directory) const {
  NodeStoreOptions options{.directory = directory, .witness = Witness::At(WitnessOf(directory))};
  options.rules = rules_;
  options.images_on_node = node().images();
  options.allow_empty = true;
  options.clock = node().AsClock();
  options.boot_clock = node().AsBootClock();
  if (directory == directory_) options.trace.path = trace_;
  return Must(NodeStore::Open(std::move(options)));
}

Answer StoreSide::Decide(const ImageCopy& copy, const ImagePullSecret& secret) {
  const ImagePullSecretView view(secret);
  FixedCredentials credentials({.secrets = {&view, 1}});
  const Decision decision = store_->MustAttemptPull(copy, credentials);
  return {decision.pull, decision.reason};
}

void StoreSide::Flush() { Must(store_->Flush()); }

void StoreSide::BeginPull(ImageId image) {
  pull_ = Must(store_->Call(waybill::BeginPull{.image = ImageText(image)})).pull;
}

void StoreSide::EndPull(ImageId image, const ImagePullCredentials& credentials) {
  Must(store_->Call(waybill::EndPull{.image = ImageText(image),
                                     .image_ref = RefText(image.ref),
                                     .pull = pull_,
                                     .outcome = PullOutcome::kPulled,
                                     .credentials = credentials}));
}

void StoreSide::FailPull(ImageId image) {
  Must(store_->Call(
      waybill::EndPull{.image = ImageText(image), .pull = pull_, .outcome = PullOutcome::kFailed}));
}

void StoreSide::List(bool collected) {
  const ListToken token = Must(store_->Call(BeginList())).token;
  if (rules_ == Mode::kStrict) {
    const ClassifyReport report = Must(store_->Call(
        ClassifyImages{.list = {.images = node().images(), .token = token, .complete = true}}));
    if (report.preloaded + report.closed != 0) {
      throw std::runtime_error("a list judged images that the trace pulled");
    }
  } else if (collected) {
    Must(store_->Call(PruneBefore{.images = node().images(), .token = token}));
  }
}

double StoreSide::Restart() {
  Must(store_->Close());
  store_.reset();
  return NanosecondsOf([&] { store_ = Open(directory_); }) / 1e9;
}

double StoreSide::Recover() {
  namespace fs = std::filesystem;
  const fs::path copy = directory_.string() + ".killed";
  const auto cut = [&] {
    const std::uint32_t image = kCutImages + cut_pulls_++;
    BeginPull({image, image});
  };
  cut();
  BeforeNextCommitsFlush([&] {
    fs::copy(directory_, copy);
    fs::copy(WitnessOf(directory_), WitnessOf(copy));
  });
  cut();
  if (!fs::exists(copy)) throw std::runtime_error("a pull was begun without a flush");
  std::unique_ptr<NodeStore> killed;
  const double seconds = NanosecondsOf([&] { killed = Open(copy); }) / 1e9;
  // The one that was being flushed may be gone.
  if (Must(killed->GetStatistics()).intents + 1 < cut_pulls_) {
    throw std::runtime_error("a pull that was cut off is forgotten");
  }
  Must(killed->Close());
  fs::remove_all(copy);
  fs::remove(WitnessOf(copy));
  return seconds;
}

std::uint64_t StoreSide::UsedBytes() const { return Must(store_->GetStatistics()).used_bytes; }

std::vector<std::string> StoreSide::Records() {
  std::vector<std::string> records;
  for (const ImagePulledRecord& record : Must(store_->ListRecords())) {
    records.push_back(EncodePulledRecord(record));
  }
  return records;
}

std::uint64_t StoreSide::ResidentBytes() {
  std::ifstream in("/proc/self/smaps");
  const std::string file = (directory_ / "data.mdb").string();
  bool ours = false;
  std::uint64_t bytes = 0;
  for (std::string line; std::getline(in, line);) {
    // A mapping begins with its addresses, and ends with its file.
    if (line.find('-') < line.find(' ')) ours = line.ends_with(file);
    if (!ours || !line.starts_with("Rss:")) continue;
    std::istringstream fields(line.substr(4));
    std::uint64_t kib = 0;
    fields >> kib;
    bytes += kib * 1024;
  }
  return bytes;
}

}  // namespace waybill::bench
