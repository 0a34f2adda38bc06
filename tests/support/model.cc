// The decisions of the model.

#include "tests/support/model.h"

#include <algorithm>
#include <utility>

namespace waybill::testing {

namespace {

bool Matches(const std::string& pattern, const std::string& name) {
  if (!pattern.ends_with("/*")) return pattern == name;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

constexpr std::size_t kFalse = 0;
constexpr std::size_t kTrue = 1;
constexpr std::size_t kUnknown = 2;

Model::Answer Error(Reason reason) { return {{true, CheckResult::kError, reason, false}, {}}; }

Model::Answer MustAuthenticate(Reason reason) {
  return {{true, CheckResult::kMustAuthenticate, reason, false}, {}};
}

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

// What a pull brings is not known yet, so whose handler it is for does not matter.
bool Model::RuleThreeCloses(const KnownImage& image) const {
  return std::any_of(intents_.begin(), intents_.end(), [&](const auto& intent) {
    return intent.second.repository == image.repository;
  });
}

bool Model::IntentCloses(const KnownImage& image) const {
  const bool same = std::any_of(intents_.begin(), intents_.end(), [&](const auto& intent) {
    return intent.second.image == image.image;
  });
  return same || (closed_ && RuleThreeCloses(image));
}

bool Model::AnyRecordOf(const std::string& ref) const {
  return std::any_of(records_.begin(), records_.end(),
                     [&](const auto& record) { return record.first.first == ref; });
}

Model::Answer Model::Decide(const KnownImage& image, const std::string& ref, const ModelPod& pod,
                            const std::string& handler) const {
  if (ref.empty()) return {{true, CheckResult::kNotCounted, Reason::kImageAbsent, false}, {}};
  const auto stored = Stored(handler);
  if (!stored) return Error(Reason::kRuntimeHandlerUnknown);
  // The kubelet asks for an intent only where there is no record.
  const bool intent_closes =
      broken_images_.contains(image.image) && (closed_ || !records_.contains({ref, *stored}));
  if (broken_refs_.contains(ref) || intent_closes) return Error(Reason::kQuarantined);
  return DecideCopy(image, {ref, *stored}, pod);
}

Model::Answer Model::DecideCopy(const KnownImage& image, const CopyKey& copy,
                                const ModelPod& pod) const {
  const auto record = records_.find(copy);
  const bool has_record = record != records_.end();
  if (!has_record) {
    // Of a broken intent only the hash of one string is known: closed asks for all that it may be.
    for (const KnownImage& other : KnownImages()) {
      const bool equivalent = image.normalised && other.normalised == image.normalised;
      if (closed_ && equivalent && broken_images_.contains(other.image)) {
        return Error(Reason::kQuarantined);
      }
    }
  }
  const bool kubelet_pulled = has_record || AnyRecordOf(copy.first) || IntentCloses(image);
  // Of a store that lost records nobody can say what was not pulled.
  if (PolicyOpens(image, kubelet_pulled || distrustful())) {
    const Reason reason = policy_.mode == VerificationMode::kNeverVerify
                              ? Reason::kPolicyNeverVerifies
                          : policy_.mode == VerificationMode::kNeverVerifyPreloadedImages
                              ? Reason::kPolicyPresumedPreloaded
                              : Reason::kPolicyAllowlisted;
    return {{false, CheckResult::kCredentialPolicyAllowed, reason, false}, {}};
  }
  if (!has_record) return WithoutRecord(image, copy.first);
  if (!image.name) return Error(Reason::kImageDoesNotParse);
  const auto& mapping = record->second.credential_mapping;
  const auto entry = mapping.find(*image.name);
  if (entry == mapping.end()) {
    return MustAuthenticate(mapping.empty() ? Reason::kEntryWithoutCredentials
                                            : Reason::kNoEntryForImageName);
  }
  if (entry->second.node_pods_accessible) {
    return {{false, CheckResult::kCredentialRecordFound, Reason::kNodePodsAccessible, false}, {}};
  }
  if (entry->second.kubernetes_secrets.empty() &&
      entry->second.kubernetes_service_accounts.empty()) {
    return MustAuthenticate(Reason::kEntryWithoutCredentials);
  }
  if (!pod.available) {
    return {{true, CheckResult::kError, Reason::kCredentialsUnavailable, true}, {}};
  }
  return Compare(entry->second, pod);
}

Model::Answer Model::WithoutRecord(const KnownImage& image, const std::string& ref) const {
  if (AnyRecordOf(ref)) return MustAuthenticate(Reason::kPulledForOtherHandler);
  if (IntentCloses(image)) return MustAuthenticate(Reason::kPullInFlight);
  return MustAuthenticate(distrustful() ? Reason::kStoreDistrustful : Reason::kNoRecord);
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

Model::Answer Model::Check(const KnownImage& image, const std::string& ref, const ModelPod& pod,
                           const std::string& handler) {
  Answer answer = Decide(image, ref, pod, handler);
  if (answer.decision.result != CheckResult::kNotCounted) {
    ++metrics_.mustpull_checks[static_cast<std::size_t>(answer.decision.result)];
  }
  return answer;
}

EnsureAction Model::Ensure(const KnownImage& image, const std::string& ref, PullPolicy policy,
                           const ModelPod& pod, std::optional<ImagePullSecret>& write_back,
                           const std::string& handler) {
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
  const Answer answer = Check(image, ref, pod, handler);
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

}  // namespace waybill::testing
