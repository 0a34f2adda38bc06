#include "bench/sizing/kubelet_files.h"

#include <malloc.h>

#include <algorithm>
#include <thread>
#include <tuple>

#include "bench/scratch.h"
#include "migrations/kubelet/kubelet_records.h"
#include "store/base/image_name.h"
#include "store/base/options.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::bench {

namespace {

// As the allocator rounds sizes.
std::int64_t HeapInUse() {
  const struct mallinfo2 heap = mallinfo2();
  return static_cast<std::int64_t>(heap.uordblks + heap.hblkhd);
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
    if (at == stored.end()) {
      stored.push_back(secret);
    } else if (*at == secret) {
      continue;
    } else {
      *at = secret;
    }
    changed = true;
  }
  if (changed) {
    std::sort(stored.begin(), stored.end(), [](const ImagePullSecret& a, const ImagePullSecret& b) {
      return Coordinates(a) < Coordinates(b);
    });
  }
  return changed;
}

}  // namespace

bool RecordCache::Get(std::string_view image_ref, RecordPtr& record, bool* known_absent) {
  const std::lock_guard lock(mutex_);
  const auto found = index_.find(image_ref);
  if (found == index_.end()) {
    *known_absent = !evicted_;
    return false;
  }
  used_.splice(used_.begin(), used_, found->second);
  record = found->second->record;
  return true;
}

void RecordCache::Put(std::string_view image_ref, const RecordPtr& record) {
  const std::lock_guard lock(mutex_);
  if (const auto found = index_.find(image_ref); found != index_.end()) {
    found->second->record = record;
    used_.splice(used_.begin(), used_, found->second);
    return;
  }
  used_.push_front({std::string(image_ref), record});
  index_.emplace(used_.front().image_ref, used_.begin());
  if (index_.size() <= capacity_) return;
  index_.erase(used_.back().image_ref);
  used_.pop_back();
  evicted_ = true;
}

void RecordCache::Remove(std::string_view image_ref) {
  const std::lock_guard lock(mutex_);
  const auto found = index_.find(image_ref);
  if (found == index_.end()) return;
  const auto entry = found->second;
  index_.erase(found);
  used_.erase(entry);
}

void RecordCache::Clear() {
  const std::lock_guard lock(mutex_);
  index_.clear();
  used_.clear();
  evicted_ = false;
}

std::int64_t RecordCache::HeapBytes() const {
  std::int64_t bytes = 0;
  // On a thread for which the allocator keeps nothing yet.
  std::thread([&] {
    std::vector<const Entry*> oldest_first;
    oldest_first.reserve(used_.size());
    for (auto entry = used_.rbegin(); entry != used_.rend(); ++entry) {
      oldest_first.push_back(&*entry);
    }
    const std::int64_t before = HeapInUse();
    RecordCache copy(capacity_);
    for (const Entry* entry : oldest_first) {
      copy.Put(entry->image_ref, std::make_shared<const ImagePulledRecord>(*entry->record));
    }
    bytes = HeapInUse() - before;
  }).join();
  return bytes;
}

KubeletFiles::KubeletFiles(const std::filesystem::path& directory, std::size_t capacity)
    : pulled_(directory / "pulled"), pulling_(directory / "pulling"), cache_(capacity) {}

double KubeletFiles::HitRate() const {
  return lookups_ == 0 ? 0 : static_cast<double>(hits_) / static_cast<double>(lookups_);
}

RecordPtr KubeletFiles::ReadRecord(std::string_view image_ref) {
  const auto content = pulled_.Read(image_ref);
  return content ? Decoded(*content) : nullptr;
}

void KubeletFiles::WriteRecord(const ImagePulledRecord& record) {
  pulled_.Write(record.image_ref, EncodePulledRecord(record));
  cache_.Put(record.image_ref, std::make_shared<const ImagePulledRecord>(record));
}

bool KubeletFiles::HasIntent(std::string_view image) {
  return !intents_.empty() && intents_.contains(std::string(image));
}

Decision KubeletFiles::MustAttemptPull(const ImageCopy& copy, const ImagePullSecretView& secret,
                                       bool* write_back) {
  *write_back = false;
  if (copy.image_ref.empty()) return {true, CheckResult::kNotCounted, Reason::kImageAbsent, false};
  ++lookups_;
  RecordPtr record;
  bool known_absent = false;
  if (cache_.Get(copy.image_ref, record, &known_absent) || known_absent) {
    ++hits_;
  } else if ((record = ReadRecord(copy.image_ref)) != nullptr) {
    cache_.Put(copy.image_ref, record);
  }
  const auto name = ImageName(copy.image);
  if (record == nullptr) {
    if (HasIntent(copy.image)) {
      return {true, CheckResult::kMustAuthenticate, Reason::kPullInFlight, false};
    }
    return {false, CheckResult::kCredentialPolicyAllowed, Reason::kPolicyPresumedPreloaded, false};
  }
  if (!name) return {true, CheckResult::kError, Reason::kImageDoesNotParse, false};
  const auto entry = record->credential_mapping.find(std::string(*name));
  if (entry == record->credential_mapping.end()) {
    return {true, CheckResult::kMustAuthenticate, Reason::kNoEntryForImageName, false};
  }
  const ImagePullCredentials& credentials = entry->second;
  if (credentials.node_pods_accessible) {
    return {false, CheckResult::kCredentialRecordFound, Reason::kNodePodsAccessible, false};
  }
  if (credentials.empty()) {
    return {true, CheckResult::kMustAuthenticate, Reason::kEntryWithoutCredentials, false};
  }
  const bool may_write = credentials.kubernetes_secrets.size() < kMaxSecretsForWriteBack;
  for (const ImagePullSecret& stored : credentials.kubernetes_secrets) {
    const bool coordinates = stored.uid == secret.uid &&
                             stored.namespace_name == secret.namespace_name &&
                             stored.name == secret.name;
    if (!stored.credential_hash.empty() && stored.credential_hash == secret.credential_hash) {
      *write_back = !coordinates && may_write;
      return {false, CheckResult::kCredentialRecordFound, Reason::kSecretHashMatches, true};
    }
    if (coordinates && may_write) {
      *write_back = true;
      return {false, CheckResult::kCredentialRecordFound, Reason::kSecretCoordinatesMatch, true};
    }
  }
  return {true, CheckResult::kMustAuthenticate, Reason::kNoCredentialMatches, true};
}

void KubeletFiles::WriteBack(const ImageCopy& copy, const ImagePullSecret& secret, Timestamp now) {
  const RecordPtr stored = ReadRecord(copy.image_ref);
  if (stored == nullptr) return;
  ImagePulledRecord record = *stored;
  ImagePullCredentials& entry = record.credential_mapping[std::string(*ImageName(copy.image))];
  if (!Merge(entry.kubernetes_secrets, {secret})) return;
  record.last_updated = now;
  WriteRecord(record);
}

void KubeletFiles::RecordPullIntent(std::string_view image) {
  ImagePullIntent intent;
  intent.image = std::string(image);
  pulling_.Write(image, EncodePullIntent(intent));
  intents_.insert(intent.image);
}

void KubeletFiles::RecordImagePulled(const ImageCopy& copy, const ImagePullCredentials& credentials,
                                     Timestamp now) {
  const RecordPtr stored = ReadRecord(copy.image_ref);
  ImagePulledRecord record = stored == nullptr ? ImagePulledRecord() : *stored;
  const std::string name(*ImageName(copy.image));
  bool changed = stored == nullptr;
  const auto [entry, is_new] = record.credential_mapping.try_emplace(name, credentials);
  if (is_new) {
    changed = true;
  } else if (!entry->second.node_pods_accessible) {
    changed = Merge(entry->second.kubernetes_secrets, credentials.kubernetes_secrets) || changed;
  }
  if (changed) {
    record.image_ref = std::string(copy.image_ref);
    record.last_updated = now;
    WriteRecord(record);
  }
  RecordImagePullFailed(copy.image);
}

// What a power cut brings back is an intent that only closes an image: no flush.
void KubeletFiles::RecordImagePullFailed(std::string_view image) {
  pulling_.Remove(image);
  intents_.erase(std::string(image));
}

void KubeletFiles::Prune(const std::vector<ListedImage>& images, Timestamp until) {
  std::unordered_set<std::string_view> listed;
  for (const ListedImage& image : images) listed.insert(image.id);
  std::vector<std::string> gone;
  pulled_.ForEach([&](std::string_view content) {
    const RecordPtr record = Decoded(content);
    if (!listed.contains(record->image_ref) && record->last_updated < until) {
      gone.push_back(record->image_ref);
    }
  });
  for (const std::string& image_ref : gone) {
    pulled_.Remove(image_ref);
    cache_.Remove(image_ref);
  }
  if (!gone.empty()) pulled_.Sync();
}

std::size_t KubeletFiles::Start() {
  std::vector<RecordPtr> records;
  for (int time = 0; time < 2; ++time) {
    records.clear();
    pulled_.ForEach([&](std::string_view content) { records.push_back(Decoded(content)); });
  }
  intents_.clear();
  pulling_.ForEach(
      [&](std::string_view content) { intents_.insert(Must(DecodePullIntent(content)).image); });
  cache_.Clear();
  for (const RecordPtr& record : records) cache_.Put(record->image_ref, record);
  return records.size();
}

std::vector<std::string> KubeletFiles::ReadAll() {
  std::vector<std::string> contents;
  pulled_.ForEach([&](std::string_view content) { contents.emplace_back(content); });
  return contents;
}

}  // namespace waybill::bench
