#include "bench/sizing/kubelet_files.h"

#include <fcntl.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <tuple>

#include "bench/scratch.h"
#include "bench/sizing/live_bytes.h"
#include "waybill/image_name.h"
#include "waybill/kubelet_format.h"
#include "waybill/limits.h"

namespace waybill::bench {

namespace {

[[noreturn]] void Fail(const char* what, const std::filesystem::path& path) {
  throw std::runtime_error("cannot " + std::string(what) + " " + path.string() + ": " +
                           std::strerror(errno));
}

std::string FileName(std::string_view identity) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(identity.data()), identity.size(), digest);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string name = "sha256-";
  for (const unsigned char byte : digest) {
    name += kDigits[byte >> 4];
    name += kDigits[byte & 0xf];
  }
  return name;
}

// False: there is no such file.
bool ReadWhole(const std::filesystem::path& path, std::string& content) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) return false;
    Fail("open", path);
  }
  struct stat status {};
  if (fstat(fd, &status) != 0) Fail("look at", path);
  content.resize(static_cast<std::size_t>(status.st_size));
  const ssize_t got = read(fd, content.data(), content.size());
  close(fd);
  if (got != status.st_size) Fail("read", path);
  return true;
}

void SyncDirectory(const std::filesystem::path& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || fsync(fd) != 0) Fail("sync", directory);
  close(fd);
}

void WriteDurably(const std::filesystem::path& path, const std::string& content) {
  const std::filesystem::path temporary = path.string() + ".tmp";
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) Fail("make", temporary);
  if (write(fd, content.data(), content.size()) != static_cast<ssize_t>(content.size())) {
    Fail("write", temporary);
  }
  if (fsync(fd) != 0) Fail("sync", temporary);
  close(fd);
  if (rename(temporary.c_str(), path.c_str()) != 0) Fail("rename", temporary);
  SyncDirectory(path.parent_path());
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
  const std::int64_t before = LiveHeapBytes();
  RecordCache copy(capacity_);
  for (auto entry = used_.rbegin(); entry != used_.rend(); ++entry) {
    copy.Put(entry->image_ref, std::make_shared<const ImagePulledRecord>(*entry->record));
  }
  return LiveHeapBytes() - before;
}

KubeletFiles::KubeletFiles(const std::filesystem::path& directory, std::size_t capacity)
    : pulled_(directory / "pulled"), pulling_(directory / "pulling"), cache_(capacity) {
  std::filesystem::create_directories(pulled_);
  std::filesystem::create_directories(pulling_);
}

double KubeletFiles::HitRate() const {
  return lookups_ == 0 ? 0 : static_cast<double>(hits_) / static_cast<double>(lookups_);
}

RecordPtr KubeletFiles::ReadRecord(std::string_view image_ref) const {
  std::string content;
  if (!ReadWhole(pulled_ / FileName(image_ref), content)) return nullptr;
  return std::make_shared<const ImagePulledRecord>(Must(DecodePulledRecord(content)));
}

void KubeletFiles::WriteRecord(const ImagePulledRecord& record) {
  WriteDurably(pulled_ / FileName(record.image_ref), EncodePulledRecord(record));
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
  WriteDurably(pulling_ / FileName(image), EncodePullIntent(intent));
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
  const std::filesystem::path path = pulling_ / FileName(image);
  if (unlink(path.c_str()) != 0 && errno != ENOENT) Fail("delete", path);
  intents_.erase(std::string(image));
}

void KubeletFiles::Prune(const std::vector<ImageOnNode>& images, Timestamp until) {
  std::unordered_set<std::string_view> listed;
  for (const ImageOnNode& image : images) listed.insert(image.id);
  bool deleted = false;
  std::string content;
  for (const auto& file : std::filesystem::directory_iterator(pulled_)) {
    if (!ReadWhole(file.path(), content)) continue;
    const ImagePulledRecord record = Must(DecodePulledRecord(content));
    if (listed.contains(record.image_ref) || !(record.last_updated < until)) continue;
    if (unlink(file.path().c_str()) != 0) Fail("delete", file.path());
    cache_.Remove(record.image_ref);
    deleted = true;
  }
  if (deleted) SyncDirectory(pulled_);
}

std::size_t KubeletFiles::Start() {
  std::vector<RecordPtr> records;
  std::string content;
  for (int time = 0; time < 2; ++time) {
    records.clear();
    for (const auto& file : std::filesystem::directory_iterator(pulled_)) {
      if (!ReadWhole(file.path(), content)) continue;
      records.push_back(
          std::make_shared<const ImagePulledRecord>(Must(DecodePulledRecord(content))));
    }
  }
  intents_.clear();
  for (const auto& file : std::filesystem::directory_iterator(pulling_)) {
    if (ReadWhole(file.path(), content)) intents_.insert(Must(DecodePullIntent(content)).image);
  }
  cache_.Clear();
  for (const RecordPtr& record : records) cache_.Put(record->image_ref, record);
  return records.size();
}

std::uint64_t KubeletFiles::DiskBytes() const {
  std::uint64_t bytes = 0;
  for (const auto& folder : {pulled_, pulling_}) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      struct stat status {};
      if (stat(file.path().c_str(), &status) == 0) {
        bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;
      }
    }
  }
  return bytes;
}

std::vector<std::string> KubeletFiles::ReadAll() const {
  std::vector<std::string> contents;
  std::string content;
  for (const auto& file : std::filesystem::directory_iterator(pulled_)) {
    if (ReadWhole(file.path(), content)) contents.push_back(content);
  }
  return contents;
}

}  // namespace waybill::bench
