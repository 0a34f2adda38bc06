#include "bench/sizing/kubelet_files.h"

#include <malloc.h>

#include <algorithm>
#include <thread>
#include <tuple>
#include <unordered_set>

#include "bench/measure.h"
#include "bench/scratch.h"
#include "migrations/kubelet_files/kubelet_records.h"
#include "store/base/image_name.h"
#include "store/base/options.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::bench {

namespace {

// As the allocator rounds sizes.
std::uint64_t HeapInUse() {
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

RecordPtr Decoded(std::string_view content) {
  return std::make_shared<const ImagePulledRecord>(Must(DecodePulledRecord(content)));
}

auto Coordinates(const ImagePullSecret& secret) {
  return std::tie(secret.namespace_name, secret.name, secret.uid);
}

// The kubelet's merge by coordinates, which sorts if anything changed. Whether it did.
bool Merge(std::vector<ImagePullSecret>& stored, const std::vector<ImagePullSecret>& added) {
  bool changed = false;
  for (const ImagePullSecret& secret : added) {
    const auto at = std::find_if(stored.begin(), stored.end(), [&](const ImagePullSecret& one) {
      return Coordinates(one) == Coordinates(secret);
    });
    if (at != stored.end() && *at == secret) continue;
    changed = true;
    at == stored.end() ? stored.push_back(secret) : void(*at = secret);
  }
  if (changed) std::ranges::sort(stored, {}, Coordinates);
  return changed;
}

}  // namespace

RecordPtr RecordCache::Get(std::string_view image_ref) {
  const auto found = index_.find(image_ref);
  if (found == index_.end()) return nullptr;
  used_.splice(used_.begin(), used_, found->second);
  return *found->second;
}

void RecordCache::Put(const RecordPtr& record) {
  Remove(record->image_ref);
  used_.push_front(record);
  index_.emplace(record->image_ref, used_.begin());
  if (index_.size() <= capacity_) return;
  const RecordPtr oldest = used_.back();
  Remove(oldest->image_ref);
  evicted_ = true;
}

void RecordCache::Remove(std::string_view image_ref) {
  const auto found = index_.find(image_ref);
  if (found == index_.end()) return;
  const auto entry = found->second;
  index_.erase(found);
  used_.erase(entry);
}

void RecordCache::Clear() {
  index_ = {};
  used_.clear();
  evicted_ = false;
}

KubeletFiles::KubeletFiles(const std::filesystem::path& directory, std::size_t capacity,
                           const NodeState& node)
    : Side(node),
      pulled_(directory / "pulled"),
      pulling_(directory / "pulling"),
      cache_(capacity) {}

double KubeletFiles::HitRate() const {
  return lookups_ == 0 ? 0 : static_cast<double>(hits_) / static_cast<double>(lookups_);
}

std::uint64_t KubeletFiles::ResidentBytes() {
  const std::uint64_t before = HeapInUse();
  // What a thread frees, and keeps for later, goes when it ends.
  std::thread([this] { cache_.Clear(); }).join();
  return before - std::min(before, HeapInUse());
}

RecordPtr KubeletFiles::Read(std::string_view image_ref) {
  const auto content = pulled_.Read(image_ref);
  return content ? Decoded(*content) : nullptr;
}

RecordPtr KubeletFiles::Find(std::string_view image_ref) {
  ++lookups_;
  RecordPtr record = cache_.Get(image_ref);
  if (record != nullptr || cache_.holds_all()) {
    ++hits_;
  } else if ((record = Read(image_ref)) != nullptr) {
    cache_.Put(record);
  }
  return record;
}

Answer KubeletFiles::Decide(const ImageCopy& copy, const ImagePullSecret& secret) {
  if (copy.image_ref.empty()) return {true, Reason::kImageAbsent};
  const RecordPtr record = Find(copy.image_ref);
  if (record == nullptr && intents_.contains(copy.image)) return {true, Reason::kPullInFlight};
  if (record == nullptr) return {false, Reason::kPolicyPresumedPreloaded};
  const auto name = ImageName(copy.image);
  if (!name) return {true, Reason::kImageDoesNotParse};
  const auto entry = record->credential_mapping.find(std::string(*name));
  if (entry == record->credential_mapping.end()) return {true, Reason::kNoEntryForImageName};
  const ImagePullCredentials& credentials = entry->second;
  if (credentials.node_pods_accessible) return {false, Reason::kNodePodsAccessible};
  if (credentials.empty()) return {true, Reason::kEntryWithoutCredentials};
  const bool may_write = credentials.kubernetes_secrets.size() < kMaxSecretsForWriteBack;
  for (const ImagePullSecret& stored : credentials.kubernetes_secrets) {
    const bool same_hash =
        !stored.credential_hash.empty() && stored.credential_hash == secret.credential_hash;
    const bool same = Coordinates(stored) == Coordinates(secret);
    if (!same_hash && !(same && may_write)) continue;
    if (may_write && !(same && same_hash)) Update(copy, {.kubernetes_secrets = {secret}});
    return {false, same_hash ? Reason::kSecretHashMatches : Reason::kSecretCoordinatesMatch};
  }
  return {true, Reason::kNoCredentialMatches};
}

void KubeletFiles::Update(const ImageCopy& copy, const ImagePullCredentials& credentials) {
  const RecordPtr stored = Read(copy.image_ref);
  ImagePulledRecord record = stored == nullptr ? ImagePulledRecord() : *stored;
  const std::string name(*ImageName(copy.image));
  auto [entry, changed] = record.credential_mapping.try_emplace(name, credentials);
  if (!changed && !entry->second.node_pods_accessible) {
    changed = Merge(entry->second.kubernetes_secrets, credentials.kubernetes_secrets);
  }
  if (!changed) return;
  record.image_ref = std::string(copy.image_ref);
  record.last_updated = node().now();
  pulled_.Write(record.image_ref, EncodePulledRecord(record));
  cache_.Put(std::make_shared<const ImagePulledRecord>(std::move(record)));
}

void KubeletFiles::BeginPull(ImageId image) {
  const std::string text = ImageText(image);
  pulling_.Write(text, EncodePullIntent({.image = text}));
  intents_.insert(text);
}

void KubeletFiles::EndPull(ImageId image, const ImagePullCredentials& credentials) {
  const std::string text = ImageText(image);
  const std::string ref = RefText(image.ref);
  Update({.image = text, .image_ref = ref}, credentials);
  FailPull(image);
}

// What a power cut brings back is an intent that only closes an image: no flush.
void KubeletFiles::FailPull(ImageId image) {
  pulling_.Remove(ImageText(image));
  intents_.erase(ImageText(image));
}

void KubeletFiles::List(bool collected) {
  if (!collected) return;
  std::unordered_set<std::string> listed;
  for (const ListedImage& image : node().images()) listed.insert(image.id);
  std::vector<std::string> gone;
  pulled_.ForEach([&](std::string_view content) {
    const RecordPtr record = Decoded(content);
    if (!listed.contains(record->image_ref) && record->last_updated < node().now()) {
      gone.push_back(record->image_ref);
    }
  });
  for (const std::string& image_ref : gone) {
    pulled_.Remove(image_ref);
    cache_.Remove(image_ref);
  }
  if (!gone.empty()) pulled_.Sync();
}

double KubeletFiles::Restart() {
  return NanosecondsOf([this] {
           std::vector<RecordPtr> records;
           for (int time = 0; time < 2; ++time) {
             records.clear();
             pulled_.ForEach([&](std::string_view text) { records.push_back(Decoded(text)); });
           }
           intents_.clear();
           pulling_.ForEach(
               [&](std::string_view text) { intents_.insert(Must(DecodePullIntent(text)).image); });
           cache_.Clear();
           for (const RecordPtr& record : records) cache_.Put(record);
         }) /
         1e9;
}

std::vector<std::string> KubeletFiles::Records() {
  std::vector<std::string> contents;
  pulled_.ForEach([&](std::string_view content) { contents.emplace_back(content); });
  return contents;
}

}  // namespace waybill::bench
