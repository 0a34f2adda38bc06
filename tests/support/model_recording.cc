// What the model makes of pulls, and of records that are put and deleted whole.

#include <algorithm>
#include <tuple>
#include <utility>

#include "tests/support/model.h"

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

template <typename T>
bool MergeList(std::vector<T>& list, const std::vector<T>& added) {
  bool changed = false;
  std::vector<T> merged = WithoutDoubles(list);
  for (const T& item : added) {
    const auto same = std::find_if(merged.begin(), merged.end(),
                                   [&](const T& other) { return SameCoordinates(item, other); });
    if (same != merged.end() && *same == item) continue;
    changed = true;
    if (same == merged.end()) {
      merged.push_back(item);
    } else {
      *same = item;
    }
  }
  if (!changed) return false;
  Sort(merged);
  list = merged;
  return true;
}

// Whether it changed anything.
bool Merge(ImagePulledRecord& record, const std::string& name, const ImagePullCredentials& added) {
  const bool nothing = !added.node_pods_accessible && added.kubernetes_secrets.empty() &&
                       added.kubernetes_service_accounts.empty();
  if (nothing) return false;
  if (!record.credential_mapping.contains(name)) {
    record.credential_mapping[name] = added;
    return true;
  }
  ImagePullCredentials& entry = record.credential_mapping[name];
  if (entry.node_pods_accessible) return false;
  if (added.node_pods_accessible) {
    entry = {true, {}, {}};
    return true;
  }
  if (!added.kubernetes_secrets.empty()) {
    return MergeList(entry.kubernetes_secrets, added.kubernetes_secrets);
  }
  return MergeList(entry.kubernetes_service_accounts, added.kubernetes_service_accounts);
}

}  // namespace

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
  if (intents_.contains({image.image, handler})) return handler;
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

// A clock that went back does not make a closed record older than what was written before it.
Timestamp Model::TimeOfWriting() const { return closed_ ? std::max(now_, latest_) : now_; }

void Model::Written() {
  latest_ = std::max(latest_, now_);
  ++writes_;
}

void Model::Erase(const IntentKey& key) {
  if (intents_.erase(key) != 0) Written();
}

bool Model::PutIntent(const KnownImage& image, const std::string& handler) {
  const auto stored = Stored(handler);
  if (!stored) return false;
  if (intents_.emplace(IntentKey(image.image, *stored), image).second) Written();
  return true;
}

void Model::DeleteIntent(const KnownImage& image, const std::string& handler) {
  const IntentKey key(image.image, Stored(handler).value_or(handler));
  // What is in flight counts as being pulled, stored or not.
  if (const auto pulls = in_flight_.find(key); pulls != in_flight_.end()) {
    pulls->second.intent_is_older = false;
  } else {
    Erase(key);
  }
}

bool Model::HasIntent(const KnownImage& image, const std::string& handler) const {
  return intents_.contains({image.image, Stored(handler).value_or(handler)});
}

bool Model::Intent(const KnownImage& image, const std::string& handler) {
  const auto stored = Stored(handler);
  if (!stored) return false;
  const IntentKey key(image.image, *stored);
  InFlight& pulls = in_flight_[key];
  if (pulls.count == 0) pulls.intent_is_older = intents_.contains(key);
  ++pulls.count;
  return PutIntent(image, handler);
}

bool Model::Pulled(const KnownImage& image, const std::string& ref,
                   const std::optional<ImagePullCredentials>& credentials,
                   const std::string& handler, const std::optional<PulledManifest>& manifest) {
  if (ref.empty() || !image.name) return false;
  const auto stored = StoredOfPull(image, handler);
  if (!stored) return false;
  // Nobody can tell for which guest a handler that went away pulled.
  const auto proven = Stored(handler) ? credentials : std::nullopt;
  const bool is_new = !records_.contains({ref, *stored});
  ImagePulledRecord& record = records_[{ref, *stored}];
  const ImagePulledRecord before = record;
  record.image_ref = ref;
  record.runtime_handler = *stored;
  record.guest_platform = GuestOf(*stored);
  const bool other_manifest =
      manifest && !record.manifest_digest.empty() && record.manifest_digest != manifest->digest;
  // Another image: what was proven for the old one says nothing about it.
  if (other_manifest || record.guest_platform != before.guest_platform) {
    record.credential_mapping.clear();
    record.manifest_digest.clear();
    record.platform.reset();
  }
  if (manifest) {
    record.manifest_digest = manifest->digest;
    record.platform = manifest->platform;
  }
  bool merged = false;
  if (is_new && proven) {
    record.credential_mapping[*image.name] = *proven;
  } else if (proven) {
    merged = Merge(record, *image.name, *proven);
  }
  // Closed rule 4: a successful pull always stamps its record.
  const bool stamp = is_new || merged || record != before || closed_;
  const IntentKey key(image.image, *stored);
  const bool ends = in_flight_[key].count <= 1;
  const bool erases = ends && intents_.contains(key);
  const bool clears = broken_refs_.erase(ref) != 0;
  const bool clears_image = ClearBroken(image, *stored);
  const Timestamp time = TimeOfWriting();
  if (stamp || erases || clears || clears_image) Written();
  if (stamp) {
    // Nor does a closed record that is ahead of the clock become older.
    const bool ahead = closed_ && record.last_updated && *record.last_updated > time;
    if (!ahead) record.last_updated = time;
    record.stamp = writes_;
  }
  if (ends) {
    in_flight_.erase(key);
    intents_.erase(key);
  } else {
    --in_flight_[key].count;
    in_flight_[key].intent_is_older = false;
  }
  return true;
}

// A broken intent is one of the default handler's, of a kubelet that knew no other. Another one's
// pull tells which image it is for, and leaves it in force.
bool Model::ClearBroken(const KnownImage& image, const std::string& stored) {
  if (broken_images_.erase(image.image) == 0) return false;
  if (stored.empty()) return true;
  const IntentKey key(image.image, "");
  intents_.emplace(key, image);
  if (in_flight_.contains(key)) in_flight_[key].intent_is_older = true;
  return true;
}

bool Model::Failed(const KnownImage& image, PullFailure failure, const std::string& handler) {
  const auto stored = StoredOfPull(image, handler);
  if (!stored) return false;
  const IntentKey key(image.image, *stored);
  const InFlight pulls = in_flight_[key];
  in_flight_.erase(key);
  // Closed rule 2.
  const bool own = pulls.count > 0 && !pulls.intent_is_older && failure == PullFailure::kFailed;
  if (pulls.count > 1) {
    in_flight_[key] = {pulls.count - 1, !own};
  } else if (!closed_ || own) {
    Erase(key);
  }
  return true;
}

void Model::WriteBack(const KnownImage& image, const std::string& ref,
                      const ImagePullSecret& secret, const std::string& handler) {
  ImagePulledRecord& record = records_.at({ref, Stored(handler).value()});
  if (!Merge(record, image.name.value(), {false, {secret}, {}})) return;
  record.last_updated = TimeOfWriting();
  Written();
  record.stamp = writes_;
}

const ImagePulledRecord* Model::Find(const std::string& ref, const std::string& handler) const {
  const auto at = records_.find({ref, Stored(handler).value_or(handler)});
  return at == records_.end() ? nullptr : &at->second;
}

bool Model::Put(const ImagePulledRecord& record) {
  const std::string& handler = record.runtime_handler;
  const auto stored = Stored(handler);
  // What is left of a handler that vanished may still be replaced.
  if (!stored && !records_.contains({record.image_ref, handler})) return false;
  Written();
  ImagePulledRecord& put = records_[{record.image_ref, stored.value_or(handler)}];
  const auto guest = stored ? GuestOf(*stored) : put.guest_platform;
  put = record;
  put.runtime_handler = stored.value_or(handler);
  put.guest_platform = guest;
  put.stamp = writes_;
  broken_refs_.erase(record.image_ref);
  return true;
}

void Model::Delete(const std::string& ref, const std::string& handler) {
  if (records_.erase({ref, Stored(handler).value_or(handler)}) != 0) Written();
}

}  // namespace waybill::testing
