#include "tests/support/model.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "waybill/limits.h"

namespace waybill::testing {

namespace {

template <typename T>
bool SameCoordinates(const T& a, const T& b) {
  return a.uid == b.uid && a.namespace_name == b.namespace_name && a.name == b.name;
}

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

bool Matches(const std::string& pattern, const std::string& name) {
  if (!pattern.ends_with("/*")) return pattern == name;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

constexpr std::size_t kFalse = 0;
constexpr std::size_t kTrue = 1;
constexpr std::size_t kUnknown = 2;

}  // namespace

bool Model::PolicyOpens(const KnownImage& image, bool kubelet_pulled) const {
  switch (policy_.mode) {
    case VerificationMode::kNeverVerify:
      return true;
    case VerificationMode::kNeverVerifyPreloadedImages:
      return !kubelet_pulled;
    case VerificationMode::kAlwaysVerify:
      return false;
    case VerificationMode::kNeverVerifyAllowlistedImages:
      break;
  }
  if (policy_.scope == AllowlistScope::kPreloadedOnly && kubelet_pulled) return false;
  const std::string& name = image.name ? *image.name : image.image;
  return std::any_of(policy_.patterns.begin(), policy_.patterns.end(),
                     [&](const std::string& pattern) { return Matches(pattern, name); });
}

bool Model::RuleThreeCloses(const KnownImage& image) const {
  return std::any_of(intents_.begin(), intents_.end(), [&](const auto& intent) {
    return intent.second.repository == image.repository;
  });
}

bool Model::IntentCloses(const KnownImage& image) const {
  if (intents_.contains(image.image)) return true;
  return closed_ && RuleThreeCloses(image);
}

Model::Answer Model::Decide(const KnownImage& image, const std::string& ref,
                            const ModelPod& pod) const {
  if (ref.empty()) return {{true, CheckResult::kNotCounted, Reason::kImageAbsent, false}, {}};
  const auto record = records_.find(ref);
  const bool has_record = record != records_.end();
  const bool intent = !has_record && IntentCloses(image);
  if (PolicyOpens(image, has_record || intent)) {
    const Reason reason = policy_.mode == VerificationMode::kNeverVerify
                              ? Reason::kPolicyNeverVerifies
                          : policy_.mode == VerificationMode::kNeverVerifyPreloadedImages
                              ? Reason::kPolicyPresumedPreloaded
                              : Reason::kPolicyAllowlisted;
    return {{false, CheckResult::kCredentialPolicyAllowed, reason, false}, {}};
  }
  const auto must_authenticate = [](Reason reason) {
    return Answer{{true, CheckResult::kMustAuthenticate, reason, false}, {}};
  };
  if (!has_record) return must_authenticate(intent ? Reason::kPullInFlight : Reason::kNoRecord);
  if (!image.name) return {{true, CheckResult::kError, Reason::kImageDoesNotParse, false}, {}};
  const auto entry = record->second.credential_mapping.find(*image.name);
  if (entry == record->second.credential_mapping.end()) {
    return must_authenticate(record->second.credential_mapping.empty()
                                 ? Reason::kEntryWithoutCredentials
                                 : Reason::kNoEntryForImageName);
  }
  if (entry->second.node_pods_accessible) {
    return {{false, CheckResult::kCredentialRecordFound, Reason::kNodePodsAccessible, false}, {}};
  }
  if (entry->second.kubernetes_secrets.empty() &&
      entry->second.kubernetes_service_accounts.empty()) {
    return must_authenticate(Reason::kEntryWithoutCredentials);
  }
  if (!pod.available) {
    return {{true, CheckResult::kError, Reason::kCredentialsUnavailable, true}, {}};
  }
  return Compare(entry->second, pod);
}

Model::Answer Model::Compare(const ImagePullCredentials& entry, const ModelPod& pod) const {
  const auto found = [](Reason reason, std::optional<ImagePullSecret> write_back) {
    return Answer{{false, CheckResult::kCredentialRecordFound, reason, true},
                  std::move(write_back)};
  };
  const bool room = entry.kubernetes_secrets.size() < 100;
  for (const ImagePullSecret& mine : pod.secrets) {
    for (const ImagePullSecret& stored : entry.kubernetes_secrets) {
      const bool same_place = SameCoordinates(mine, stored);
      if (!mine.credential_hash.empty() && mine.credential_hash == stored.credential_hash) {
        return found(Reason::kSecretHashMatches,
                     room && !same_place ? std::optional(mine) : std::nullopt);
      }
      if (same_place && room) return found(Reason::kSecretCoordinatesMatch, mine);
    }
  }
  for (const ImagePullServiceAccount& stored : entry.kubernetes_service_accounts) {
    if (pod.service_account && SameCoordinates(*pod.service_account, stored)) {
      return found(Reason::kServiceAccountMatches, std::nullopt);
    }
  }
  return {{true, CheckResult::kMustAuthenticate, Reason::kNoCredentialMatches, true}, {}};
}

Model::Answer Model::Check(const KnownImage& image, const std::string& ref, const ModelPod& pod) {
  Answer answer = Decide(image, ref, pod);
  if (answer.decision.result != CheckResult::kNotCounted) {
    ++metrics_.mustpull_checks[static_cast<std::size_t>(answer.decision.result)];
  }
  return answer;
}

void Model::WriteBack(const KnownImage& image, const std::string& ref,
                      const ImagePullSecret& secret) {
  ImagePulledRecord& record = records_.at(ref);
  if (!Merge(record, image.name.value(), {false, {secret}, {}})) return;
  record.last_updated = TimeOfWriting();
  Written();
  record.stamp = writes_;
}

EnsureAction Model::Ensure(const KnownImage& image, const std::string& ref, PullPolicy policy,
                           const ModelPod& pod, std::optional<ImagePullSecret>& write_back) {
  auto& counters = metrics_.ensure_image_requests[static_cast<std::size_t>(policy)];
  if (!image.normalised) {
    ++counters[kUnknown][kUnknown];
    return EnsureAction::kInvalidImageName;
  }
  const std::size_t present = ref.empty() ? kFalse : kTrue;
  if (policy == PullPolicy::kAlways) {
    ++counters[present][kTrue];
    return EnsureAction::kPull;
  }
  const Answer answer = Check(image, ref, pod);
  write_back = answer.write_back;
  if (!answer.decision.pull) {
    ++counters[present][kFalse];
    return EnsureAction::kUsePresent;
  }
  const bool no_credentials = answer.decision.reason == Reason::kCredentialsUnavailable;
  // Closed rule 5: to the pod it is an image that is not there.
  if (no_credentials && !closed_) {
    ++counters[present][kUnknown];
    return EnsureAction::kCredentialsError;
  }
  ++counters[present][kTrue];
  return policy == PullPolicy::kNever ? EnsureAction::kNeverPull : EnsureAction::kPull;
}

// A clock that went back does not make a closed record older than what was written before it.
Timestamp Model::TimeOfWriting() const { return closed_ ? std::max(now_, latest_) : now_; }

void Model::Written() {
  latest_ = std::max(latest_, now_);
  ++writes_;
}

void Model::Erase(const KnownImage& image) {
  if (intents_.erase(image.image) != 0) Written();
}

void Model::PutIntent(const KnownImage& image) {
  if (intents_.emplace(image.image, image).second) Written();
}

void Model::DeleteIntent(const KnownImage& image) {
  // What is in flight counts as being pulled, stored or not.
  if (const auto pulls = in_flight_.find(image.image); pulls != in_flight_.end()) {
    pulls->second.intent_is_older = false;
  } else {
    Erase(image);
  }
}

void Model::Intent(const KnownImage& image) {
  InFlight& pulls = in_flight_[image.image];
  if (pulls.count == 0) pulls.intent_is_older = intents_.contains(image.image);
  ++pulls.count;
  PutIntent(image);
}

bool Model::Pulled(const KnownImage& image, const std::string& ref,
                   const std::optional<ImagePullCredentials>& credentials) {
  if (ref.empty() || !image.name) return false;
  bool write = false;
  if (!records_.contains(ref)) {
    write = true;
    records_[ref].image_ref = ref;
    if (credentials) records_[ref].credential_mapping[*image.name] = *credentials;
  } else if (credentials) {
    write = Merge(records_[ref], *image.name, *credentials);
  }
  // Closed rule 4: a successful pull always stamps its record.
  const bool stamp = write || closed_;
  const bool ends = in_flight_[image.image].count <= 1;
  const bool erases = ends && intents_.contains(image.image);
  const Timestamp time = TimeOfWriting();
  if (stamp || erases) Written();
  if (stamp) {
    records_[ref].last_updated = time;
    records_[ref].stamp = writes_;
  }
  if (ends) {
    in_flight_.erase(image.image);
    intents_.erase(image.image);
  } else {
    --in_flight_[image.image].count;
    in_flight_[image.image].intent_is_older = false;
  }
  return true;
}

void Model::Failed(const KnownImage& image, PullFailure failure) {
  InFlight pulls = in_flight_[image.image];
  in_flight_.erase(image.image);
  // Closed rule 2.
  const bool own = pulls.count > 0 && !pulls.intent_is_older && failure == PullFailure::kFailed;
  if (pulls.count > 1) {
    in_flight_[image.image] = {pulls.count - 1, !own};
  } else if (!closed_ || own) {
    Erase(image);
  }
}

bool Model::RuleFourSpares(const ImagePulledRecord& record) const {
  for (const auto& [name, credentials] : record.credential_mapping) {
    for (const auto& [image, intent] : intents_) {
      // The repository of a name is that of any image of that name.
      for (const KnownImage& known : KnownImages()) {
        if (known.name == name && known.repository == intent.repository) return true;
      }
      if (intent.name == name) return true;
    }
  }
  return false;
}

PruneReport Model::PruneIf(const std::vector<std::string>& refs, const auto& old_enough) {
  PruneReport report;
  for (auto at = records_.begin(); at != records_.end();) {
    ++report.examined;
    const auto& [ref, record] = *at;
    std::uint64_t* counter = &report.removed;
    if (std::find(refs.begin(), refs.end(), ref) != refs.end()) {
      counter = &report.kept_in_list;
    } else if (!old_enough(record)) {
      counter = &report.kept_newer;
    } else if (closed_ && RuleFourSpares(record)) {
      counter = &report.kept_intent;
    }
    ++*counter;
    at = counter == &report.removed ? records_.erase(at) : std::next(at);
  }
  if (report.removed != 0) Written();
  return report;
}

PruneReport Model::Prune(const std::vector<std::string>& refs, std::uint64_t token) {
  return PruneIf(refs, [&](const ImagePulledRecord& record) { return record.stamp <= token; });
}

PruneReport Model::PruneBefore(const std::vector<std::string>& refs, Timestamp until) {
  return PruneIf(refs, [&](const ImagePulledRecord& record) {
    if (!record.last_updated) return true;
    Timestamp time = *record.last_updated;
    if (!closed_) time.nanoseconds = 0;  // what a kubelet's file keeps
    return time < until;
  });
}

void Model::Put(const ImagePulledRecord& record) {
  Written();
  records_[record.image_ref] = record;
  records_[record.image_ref].stamp = writes_;
}

void Model::Delete(const std::string& ref) {
  if (records_.erase(ref) != 0) Written();
}

std::uint64_t Model::Restart(const std::optional<std::vector<ImageOnNode>>& images,
                             const std::vector<KnownImage>& known) {
  in_flight_.clear();
  metrics_ = {};
  if (!images) return 0;
  const auto full = [&](const std::string& listed) {
    for (const KnownImage& image : known) {
      if (image.image == listed && image.normalised) return *image.normalised;
    }
    return listed;
  };
  // Closed rule 1: compared in full, closed, kept.
  const auto same = [&](const KnownImage& intent, const std::string& listed) {
    if (!closed_) return intent.name && intent.image == listed;
    return intent.normalised.value_or(intent.image) == full(listed);
  };
  std::vector<KnownImage> matched;
  const Timestamp time = TimeOfWriting();
  bool wrote = false;
  for (const auto& [string, intent] : intents_) {
    bool matches = false;
    for (const ImageOnNode& image : *images) {
      std::vector<std::string> all = image.repo_tags;
      all.insert(all.end(), image.repo_digests.begin(), image.repo_digests.end());
      for (const std::string& listed : all) {
        if (!same(intent, listed)) continue;
        matches = true;
        if (records_.contains(image.id)) continue;
        wrote = true;
        records_[image.id] = {image.id, time, {}, writes_ + 1};
      }
    }
    if (matches) matched.push_back(intent);
  }
  for (const KnownImage& intent : matched) {
    if (closed_) continue;
    intents_.erase(intent.image);
    wrote = true;
  }
  if (wrote) Written();
  return matched.size();
}

}  // namespace waybill::testing
