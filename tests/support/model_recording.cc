// What the model makes of pulls, and of records that are put and deleted whole.

#include <algorithm>
#include <tuple>

#include "tests/support/model.h"
#include "tests/support/model_proofs.h"

namespace waybill::testing {

namespace {

template <typename T>
void Sort(std::vector<T>& list) {
  std::sort(list.begin(), list.end(), [](const T& a, const T& b) {
    return std::tie(a.namespace_name, a.name, a.uid) < std::tie(b.namespace_name, b.name, b.uid);
  });
}

// One of each coordinates: the last.
template <typename T>
std::vector<T> WithoutDoubles(const std::vector<T>& list) {
  std::vector<T> kept;
  for (const T& item : list) {
    std::erase_if(kept, [&](const T& other) { return SameCoordinates(item, other); });
    kept.push_back(item);
  }
  return kept;
}

}  // namespace

template <typename T>
bool Model::MergeList(std::vector<T>& list, const std::vector<T>& added) const {
  bool changed = false;
  std::vector<T> merged = WithoutDoubles(list);
  for (const T& item : added) {
    const auto same = std::find_if(merged.begin(), merged.end(),
                                   [&](const T& other) { return SameCoordinates(item, other); });
    if (same != merged.end() && *same == item) {
      // Proven once more.
      same->proof = Better(same->proof, item.proof);
      continue;
    }
    changed = true;
    if (same == merged.end()) {
      merged.push_back(item);
    } else {
      *same = item;
    }
  }
  if (!changed) {
    for (T& item : list) {
      item.proof = std::find_if(merged.begin(), merged.end(), [&](const T& other) {
                     return SameCoordinates(item, other);
                   })->proof;
    }
    return false;
  }
  Sort(merged);
  list = merged;
  return true;
}

Proof Model::Better(const Proof& a, const Proof& b) const {
  const auto is_before = [](const Proof& x, const Proof& y) {
    return x.proven != y.proven ? x.proven < y.proven : x.pull_began < y.pull_began;
  };
  Proof later = is_before(a, b) ? b : a;
  const Proof earlier = is_before(a, b) ? a : b;
  if (earlier.checker == later.checker) {
    later.pull_began = std::max(a.pull_began, b.pull_began);
    return later;
  }
  const bool stays = earlier.checker == VerifiedBy::kRegistry && !IsPastAge(earlier);
  return stays ? earlier : later;
}

bool Model::Merge(ImagePulledRecord& record, const std::string& name,
                  const ImagePullCredentials& added) const {
  const bool nothing = !added.node_pods_accessible && added.kubernetes_secrets.empty() &&
                       added.kubernetes_service_accounts.empty();
  if (nothing) return false;
  if (!record.credential_mapping.contains(name)) {
    record.credential_mapping[name] = added;
    return true;
  }
  ImagePullCredentials& entry = record.credential_mapping[name];
  if (entry.node_pods_accessible) {
    if (added.node_pods_accessible) {
      entry.node_pods_proof = Better(entry.node_pods_proof, added.node_pods_proof);
    }
    return false;
  }
  if (added.node_pods_accessible) {
    entry = {true, {}, {}, added.node_pods_proof};
    return true;
  }
  if (!added.kubernetes_secrets.empty()) {
    return MergeList(entry.kubernetes_secrets, added.kubernetes_secrets);
  }
  return MergeList(entry.kubernetes_service_accounts, added.kubernetes_service_accounts);
}

std::optional<std::string> Model::Stored(const std::string& handler) const {
  if (handler.empty()) return "";
  for (const RuntimeHandler& known : handlers_) {
    if (known.name == handler) return known.is_default ? "" : known.name;
  }
  return std::nullopt;
}

// A pull that began may end, whatever became of the registry meanwhile.
std::optional<std::string> Model::StoredOfPull(const KnownImage& image,
                                               const std::string& handler) const {
  if (const auto stored = Stored(handler)) return stored;
  if (intents().contains({image.image, handler})) return handler;
  return std::nullopt;
}

bool Model::MayEnd(const KnownImage& image, const std::string& handler) const {
  return StoredOfPull(image, handler).has_value();
}

std::optional<Platform> Model::GuestOf(const std::string& stored) const {
  for (const RuntimeHandler& known : handlers_) {
    if (stored.empty() ? known.is_default : !known.is_default && known.name == stored) {
      return known.guest_platform;
    }
  }
  return std::nullopt;
}

void Model::Written() {
  // Nothing that is written brings back what was forgotten.
  for (auto& [copy, record] : records_) {
    if (record.stamp > writes_) DropForgotten(record);
  }
  for (auto& [copy, record] : records_) {
    const auto was = committed_.find(copy);
    if (was != committed_.end()) StaysPrivate(was->second, record);
  }
  committed_ = records_;
  Committed();
  if (counts_) ++writes_;
}

void Model::Committed() {
  times_ = TimesNow();
  kept_list_ = last_list_;
}

std::set<Model::IntentKey> Model::intents() const {
  std::set<IntentKey> keys;
  for (const ModelPull& one : pulls_) {
    if (!one.pull.anything && one.pull.nothing_at == 0)
      keys.emplace(one.pull.image, one.pull.runtime_handler);
  }
  return keys;
}

// Whether there were any.
bool Model::EraseIntents(const IntentKey& key) {
  return std::erase_if(pulls_, [&](const ModelPull& one) {
           return !one.pull.anything && one.pull.image == key.first &&
                  one.pull.runtime_handler == key.second;
         }) != 0;
}

bool Model::PutIntent(const KnownImage& image, const std::string& handler) {
  const auto stored = Stored(handler);
  if (!stored) return false;
  const bool runs = std::any_of(pulls_.begin(), pulls_.end(), [&](const ModelPull& one) {
    return one.pull.image == image.image && one.pull.runtime_handler == *stored &&
           (!closed_ || one.pull.state == PullState::kRunning);
  });
  if (!runs) Begin(image, *stored, {});
  return true;
}

void Model::Begin(const KnownImage& image, const std::string& stored, PullId id) {
  UnresolvedPull pull{.id = id, .image = image.image, .runtime_handler = stored};
  pull.began = now_;
  pull.stamp = writes_ + 1;
  Written();
  pulls_.push_back({pull, image, ++last_number_});
  awaits_first_list_ = false;
}

void Model::DeleteIntent(const KnownImage& image, const std::string& handler) {
  const IntentKey key(image.image, Stored(handler).value_or(handler));
  // What is in flight stays until it ends.
  const bool in_flight = in_flight_.contains(key);
  const auto gone = std::erase_if(pulls_, [&](const ModelPull& one) {
    return !one.pull.anything && one.pull.nothing_at == 0 && one.pull.image == key.first &&
           one.pull.runtime_handler == key.second &&
           !(in_flight && one.pull.state == PullState::kRunning);
  });
  if (gone == 0) return;
  EvidenceRemoved();
  Written();
}

bool Model::HasIntent(const KnownImage& image, const std::string& handler) const {
  return intents().contains({image.image, Stored(handler).value_or(handler)});
}

bool Model::Intent(const KnownImage& image, const std::string& handler, PullId id) {
  const auto stored = Stored(handler);
  if (!stored) return false;
  ++in_flight_[{image.image, *stored}];
  // The kubelet has one for all pulls of a string.
  if (closed_ || !HasIntent(image, handler)) {
    Begin(image, *stored, id);
    return true;
  }
  // The newest, where a collapse or a backup made several.
  const auto newest = std::find_if(pulls_.rbegin(), pulls_.rend(), [&](const ModelPull& one) {
    return one.pull.image == image.image && one.pull.runtime_handler == *stored;
  });
  newest->pull.id = id;
  return true;
}

void Model::LearnPullIds(const Model& later) {
  for (ModelPull& one : pulls_) {
    for (const ModelPull& same : later.pulls_) {
      if (one.number == same.number && one.pull.id.value == 0) one.pull.id = same.pull.id;
    }
  }
}

bool Model::Pulled(const KnownImage& image, const std::string& returned,
                   const std::optional<ImagePullCredentials>& credentials,
                   const std::string& handler, const PullResult& result) {
  if (returned.empty() || !image.name) return false;
  const auto stored = StoredOfPull(image, handler);
  if (!stored) return false;
  const Timestamp time = now_;
  const std::uint64_t commit = writes_ + 1;
  if (closed_ && result.image) LearnEntry(*result.image);
  // Two images may have the digest that the pull returned.
  const std::string ref = closed_ && result.image ? result.image->id : returned;
  const CopyKey copy{ImageOf(ref), *stored};
  if (closed_) awaits_first_list_ = false;
  // Nobody can tell for which guest a handler that went away pulled.
  auto proven = Stored(handler) ? credentials : std::nullopt;
  if (proven && records_.contains(copy) &&
      MayBeTheNodes(records_.at(copy), *image.name, result.terms)) {
    proven->node_pods_accessible = false;
  }
  if (proven) proven = Proven(*proven, PullBegan(image, *stored, result.pull), result.terms);
  const bool is_new = !records_.contains(copy);
  if (closed_) ForgetAbsent(copy);
  ImagePulledRecord& record = records_[copy];
  // Of an image that was gone nothing counts that was proven then.
  if (closed_ && record.absent_since) DropCredentials(record);
  record.absent_since.reset();
  const ImagePulledRecord before = record;
  record.image_ref = ref;
  record.runtime_handler = *stored;
  if (closed_) LearnRef(ref, *stored);
  const bool is_forgotten = proven && !DropForgottenOf(copy, *proven);
  record.guest_platform = GuestOf(*stored);
  record.closed_because.clear();
  record.closed_by_list = false;
  const auto& manifest = result.manifest;
  const bool other_manifest =
      manifest && !record.manifest_digest.empty() && record.manifest_digest != manifest->digest;
  // Another image: what was proven for the old one says nothing about it.
  if (other_manifest || record.guest_platform != before.guest_platform) {
    DropCredentials(record);
    record.manifest_digest.clear();
    record.platform.reset();
  }
  if (manifest) {
    record.manifest_digest = manifest->digest;
    record.platform = manifest->platform;
  }
  bool merged = false;
  const bool proves = proven && !proven->empty();
  if (proves && record.credential_mapping.contains(*image.name)) {
    const ImagePullCredentials& entry = record.credential_mapping.at(*image.name);
    // What was open to all and does not count gives way.
    if (entry.node_pods_accessible && (IsPastAge(entry.node_pods_proof) ||
                                       !IsCheckedEnough(*image.name, entry.node_pods_proof))) {
      record.credential_mapping.erase(*image.name);
    }
  }
  if (is_new && proven && !is_forgotten) {
    record.credential_mapping[*image.name] = *proven;
  } else if (proven) {
    merged = Merge(record, *image.name, *proven);
  }
  // The closed rules: a successful pull always stamps its record.
  ImagePulledRecord known = before;
  // That a record without credentials learns its guest platform says nothing about the pull.
  if (before.credential_mapping.empty()) known.guest_platform = record.guest_platform;
  bool wrote = is_new || merged || record != known || closed_;
  if (wrote) {
    record.last_updated = time;
    record.stamp = commit;
  }
  // A proof alone is no new stamp.
  wrote = wrote || proves || record.guest_platform != before.guest_platform;
  for (const std::string& spelt : RefsOf(ref)) wrote = broken_refs_.erase(spelt) != 0 || wrote;
  wrote = ClearBroken(image, *stored) || wrote;
  const IntentKey key(image.image, *stored);
  const bool others = CountDown(key);
  if (closed_) {
    if (const auto pull = Choose(key, result.pull); pull != pulls_.end()) pulls_.erase(pull);
  } else if (!others) {
    wrote = EraseIntents(key) || wrote;
  }
  if (wrote) Written();
  return true;
}

// The node's own credentials may have served a pull that used none of a pod.
bool Model::MayBeTheNodes(const ImagePulledRecord& before, const std::string& name,
                          const ProofTerms& terms) const {
  return closed_ && !terms.node_had_no_credentials && IsPrivate(before, name);
}

// Whether others of this image and handler are in flight still.
bool Model::CountDown(const IntentKey& key) {
  const auto at = in_flight_.find(key);
  if (at == in_flight_.end()) return false;
  if (--at->second > 0) return true;
  in_flight_.erase(at);
  return false;
}

// A broken intent is one of the default handler's, of a kubelet that knew no other. Another one's
// pull tells which image it is for, and leaves it in force.
bool Model::ClearBroken(const KnownImage& image, const std::string& stored) {
  if (broken_images_.erase(image.image) == 0) return false;
  if (!stored.empty()) TakeOverIntent(image, "", now_);
  return true;
}

bool Model::Failed(const KnownImage& image, PullOutcome failure, const std::string& handler,
                   PullId pull) {
  const auto stored = StoredOfPull(image, handler);
  if (!stored) return false;
  const IntentKey key(image.image, *stored);
  const bool others = CountDown(key);
  if (closed_) {
    FailedOpenPull(key, failure, pull);
  } else if (!others && EraseIntents(key)) {
    Written();
  }
  return true;
}

void Model::WriteBack(const KnownImage& image, const std::string& ref,
                      const ImagePullSecret& secret, const std::string& handler) {
  ImagePulledRecord record = FindRecord(ref, Stored(handler).value())->second;
  ImagePullCredentials added;
  added.kubernetes_secrets.push_back(secret);
  added.kubernetes_secrets[0].proof =
      FindProofOfMatch(
          record.credential_mapping.at(image.name.value()).kubernetes_secrets, secret,
          [&](auto& one) {
            return IsCheckedEnough(*image.name, one.proof) && !IsPastAge(one.proof);
          },
          [&](const Proof& a, const Proof& b) { return Better(a, b); })
          .value_or(Proof());
  const CopyKey copy{ImageOf(ref), record.runtime_handler};
  if (!DropForgottenOf(copy, added)) return;
  if (!Merge(record, image.name.value(), added)) return;
  record.last_updated = now_;
  record.stamp = writes_ + 1;
  records_[copy] = record;
  Written();
}

const ImagePulledRecord* Model::Find(const std::string& ref, const std::string& handler) const {
  const auto at = FindRecord(ref, Stored(handler).value_or(handler));
  return at == records_.end() ? nullptr : &at->second;
}

bool Model::Put(const ImagePulledRecord& record, const ProofTerms& terms) {
  const std::string& handler = record.runtime_handler;
  const auto stored = Stored(handler);
  // What is left of a handler that vanished may still be replaced.
  const CopyKey copy{ImageOf(record.image_ref), stored.value_or(handler)};
  if (!stored && !records_.contains(copy)) return false;
  if (closed_) ForgetAbsent(copy);
  ImagePulledRecord& put = records_[copy];
  const auto guest = stored ? GuestOf(*stored) : put.guest_platform;
  const ImagePulledRecord before = put;
  put = record;
  put.absent_since.reset();
  put.closed_by_list = false;
  put.closed_by_operator = before.closed_by_operator;
  put.runtime_handler = stored.value_or(handler);
  put.guest_platform = guest;
  if (closed_) LearnRef(record.image_ref, copy.second);
  put.private_names.clear();
  GiveProofs(before, put, terms);
  put.stamp = writes_ + 1;
  Written();
  for (const std::string& spelt : RefsOf(record.image_ref)) broken_refs_.erase(spelt);
  return true;
}

void Model::Delete(const std::string& ref, const std::string& handler) {
  const CopyKey copy{ImageOf(ref), Stored(handler).value_or(handler)};
  if (!records_.contains(copy)) return;
  const bool was_listed = WasListed(records_.at(copy).image_ref);
  Unrecord(copy);
  EvidenceRemoved();
  if (closed_ && !was_listed) PullOfAnything();
  Written();
}

}  // namespace waybill::testing
