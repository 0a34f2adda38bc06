#include "tests/simulation/stock_kubelet.h"

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "migrations/kubelet_files/kubelet_records.h"
#include "store/base/image_name.h"
#include "store/base/options.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/temp_dir.h"
#include "waybill/values.h"

namespace waybill::simulation {

namespace {

namespace fs = std::filesystem;

// With so many a record takes no further ones from decisions.
constexpr std::size_t kMostSecrets = 100;

std::vector<std::string> FilesIn(const fs::path& folder) {
  std::vector<std::string> contents;
  if (!fs::exists(folder)) return contents;
  for (const fs::directory_entry& file : fs::directory_iterator(folder)) {
    contents.push_back(testing::ReadFile(file.path()));
  }
  return contents;
}

// Returns whether anything changed.
bool Merge(ImagePullCredentials& into, const ImagePullCredentials& from) {
  if (into.node_pods_accessible) return false;
  if (from.node_pods_accessible) {
    into = {};
    into.node_pods_accessible = true;
    return true;
  }
  bool changed = false;
  for (const ImagePullSecret& secret : from.kubernetes_secrets) {
    auto& all = into.kubernetes_secrets;
    const auto known = std::find_if(all.begin(), all.end(),
                                    [&](const auto& one) { return SameSecret(one, secret); });
    if (known != all.end() && known->credential_hash == secret.credential_hash) continue;
    changed = true;
    if (known != all.end()) {
      *known = secret;
    } else {
      all.push_back(secret);
    }
  }
  std::sort(into.kubernetes_secrets.begin(), into.kubernetes_secrets.end(),
            [](const auto& a, const auto& b) {
              return std::tie(a.namespace_name, a.name, a.uid) <
                     std::tie(b.namespace_name, b.name, b.uid);
            });
  if (!from.kubernetes_secrets.empty()) return changed;
  for (const ImagePullServiceAccount& account : from.kubernetes_service_accounts) {
    auto& all = into.kubernetes_service_accounts;
    if (std::find(all.begin(), all.end(), account) != all.end()) continue;
    changed = true;
    all.push_back(account);
  }
  return changed;
}

}  // namespace

void StockKubelet::Write(const ImagePulledRecord& record) {
  if (directory_.empty()) return;
  testing::WriteRecordFile(directory_, "pulled", record.image_ref, EncodePulledRecord(record));
}

void StockKubelet::Start(const std::vector<ListedImage>& images, Timestamp now) {
  in_flight_.clear();
  if (!directory_.empty()) {
    records_.clear();
    intents_.clear();
    const fs::path image_manager = directory_ / "image_manager";
    for (const char* folder : {"pulled", "pulling"}) {
      fs::create_directories(image_manager / folder);
    }
    for (const std::string& file : FilesIn(image_manager / "pulled")) {
      Result<ImagePulledRecord> record = DecodePulledRecord(file);
      if (record) records_[record->image_ref] = *record;
    }
    for (const std::string& file : FilesIn(image_manager / "pulling")) {
      const Result<ImagePullIntent> intent = DecodePullIntent(file);
      if (intent) intents_.insert(intent->image);
    }
  }
  for (const std::string& image : std::set(intents_)) {
    for (const ListedImage& entry : images) {
      const auto has = [&](const std::vector<std::string>& names) {
        return std::find(names.begin(), names.end(), image) != names.end();
      };
      if (!has(entry.repo_tags) && !has(entry.repo_digests)) continue;
      ImagePulledRecord& record = records_[entry.id];
      record.image_ref = entry.id;
      record.last_updated = now;
      Write(record);
      EndOne(image);
    }
  }
}

StockKubelet::Answer StockKubelet::Decide(std::string_view image, const std::string& ref,
                                          const Proof& proof, Timestamp now) {
  const auto found = records_.find(ref);
  if (found == records_.end() && !intents_.contains(std::string(image))) {
    return {false, Match::kAnyway};
  }
  const auto name = ImageName(image);
  if (found == records_.end() || !name) return {};
  ImagePulledRecord& record = found->second;
  const auto entry = record.credential_mapping.find(std::string(*name));
  if (entry == record.credential_mapping.end()) return {};
  ImagePullCredentials& known = entry->second;
  if (known.node_pods_accessible) return {false, Match::kAnyway};
  if (proof.secret) {
    const bool may_write = known.kubernetes_secrets.size() < kMostSecrets;
    for (const ImagePullSecret& one : std::vector(known.kubernetes_secrets)) {
      const bool by_hash =
          !one.credential_hash.empty() && one.credential_hash == proof.secret->credential_hash;
      const bool by_coordinates = SameSecret(one, *proof.secret);
      if (!by_hash && !(by_coordinates && may_write)) continue;
      if (may_write && by_hash != by_coordinates) {
        ImagePullCredentials added;
        added.kubernetes_secrets.push_back(*proof.secret);
        Merge(known, added);
        record.last_updated = now;
        Write(record);
      }
      return {false, by_hash ? Match::kHash : Match::kCoordinates};
    }
  }
  const auto& accounts = known.kubernetes_service_accounts;
  if (proof.account &&
      std::find(accounts.begin(), accounts.end(), *proof.account) != accounts.end()) {
    return {false, Match::kAnyway};
  }
  return {};
}

void StockKubelet::Begin(const std::string& image) {
  intents_.insert(image);
  ++in_flight_[image];
  if (directory_.empty()) return;
  testing::WriteRecordFile(directory_, "pulling", image, EncodePullIntent({.image = image}));
}

void StockKubelet::EndOne(const std::string& image) {
  const auto running = in_flight_.find(image);
  if (running != in_flight_.end() && --running->second > 0) return;
  if (running != in_flight_.end()) in_flight_.erase(running);
  intents_.erase(image);
  if (!directory_.empty()) fs::remove(directory_ / testing::RecordFile("pulling", image));
}

void StockKubelet::Succeed(const std::string& image, const std::string& ref,
                           const ImagePullCredentials& credentials, Timestamp now) {
  const auto name = ImageName(image);
  if (!name) return;
  const auto [at, is_new] = records_.try_emplace(ref);
  ImagePulledRecord& record = at->second;
  record.image_ref = ref;
  const bool is_new_entry = !record.credential_mapping.contains(std::string(*name));
  const bool changed = Merge(record.credential_mapping[std::string(*name)], credentials);
  if (is_new || is_new_entry || changed) {
    record.last_updated = now;
    Write(record);
  }
  EndOne(image);
}

void StockKubelet::Fail(const std::string& image) { EndOne(image); }

void StockKubelet::Prune(const std::set<std::string>& kept, Timestamp until) {
  for (auto at = records_.begin(); at != records_.end();) {
    const std::optional<Timestamp>& written = at->second.last_updated;
    if (kept.contains(at->first) || (written && written->seconds >= until.seconds)) {
      ++at;
      continue;
    }
    if (!directory_.empty()) fs::remove(directory_ / testing::RecordFile("pulled", at->first));
    at = records_.erase(at);
  }
}

void StockKubelet::RunAlone(Timestamp now) {
  alone_since_ = now;
  intents_then_ = intents_;
}

bool StockKubelet::LeftASign() const {
  const auto is_new = [&](const std::string& intent) { return !intents_then_.contains(intent); };
  const auto was_written = [&](const auto& record) {
    return record.second.last_updated &&
           (!alone_since_ || record.second.last_updated->seconds > alone_since_->seconds);
  };
  return std::any_of(intents_.begin(), intents_.end(), is_new) ||
         std::any_of(records_.begin(), records_.end(), was_written);
}

const ImagePulledRecord* StockKubelet::Find(const std::string& ref) const {
  const auto found = records_.find(ref);
  return found == records_.end() ? nullptr : &found->second;
}

bool StockKubelet::Presumes(const ListedImage& image) const {
  if (records_.contains(image.id)) return false;
  const auto has_record = [&](const std::string& digest) { return records_.contains(digest); };
  if (std::any_of(image.repo_digests.begin(), image.repo_digests.end(), has_record)) return false;
  const auto pulls = [&](const std::string& name) { return intents_.contains(name); };
  return std::none_of(image.repo_tags.begin(), image.repo_tags.end(), pulls) &&
         std::none_of(image.repo_digests.begin(), image.repo_digests.end(), pulls);
}

}  // namespace waybill::simulation
