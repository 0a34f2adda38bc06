// The decisions of the model.

#include "tests/support/model.h"

#include <algorithm>
#include <utility>

#include "store/base/policy.h"

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

// Whether the allowlist has the name, or the whole string if it is not one.
bool Allowlisted(const ModelPolicy& policy, const KnownImage& image) {
  const std::string& name = image.name ? *image.name : image.image;
  return std::any_of(policy.patterns.begin(), policy.patterns.end(),
                     [&](const std::string& pattern) { return Matches(pattern, name); });
}

}  // namespace

bool Model::PolicyOpens(const KnownImage& image, ImageOrigin origin) const {
  switch (policy_.mode) {
    case Verification::kNeverVerify:
      return true;
    case Verification::kNeverVerifyPreloadedImages:
      return origin == ImageOrigin::kPreloaded;
    case Verification::kAlwaysVerify:
      return false;
    case Verification::kNeverVerifyAllowlistedImages:
      break;
  }
  if (policy_.scope == AllowlistScope::kPreloadedOnly && origin != ImageOrigin::kPreloaded) {
    return false;
  }
  return Allowlisted(policy_, image);
}

Model::Answer Model::AllowedByPolicy(Reason preloaded) const {
  const Reason reason = policy_.mode == Verification::kNeverVerify ? Reason::kPolicyNeverVerifies
                        : policy_.mode == Verification::kNeverVerifyPreloadedImages
                            ? preloaded
                            : Reason::kPolicyAllowlisted;
  return {{false, CheckResult::kCredentialPolicyAllowed, reason, false}, {}};
}

bool Model::AnyRecordOf(const std::string& ref) const {
  const std::string image = ImageOf(ref);
  return std::any_of(records_.begin(), records_.end(),
                     [&](const auto& record) { return record.first.first == image; });
}

bool Model::HasIntentOf(const std::string& image) const {
  return std::any_of(pulls_.begin(), pulls_.end(),
                     [&](const ModelPull& one) { return one.pull.image == image; });
}

Model::Answer Model::Decide(const KnownImage& image, const std::string& ref, const ModelPod& pod,
                            const std::string& handler) const {
  if (ref.empty()) return {{true, CheckResult::kNotCounted, Reason::kImageAbsent, false}, {}};
  const auto stored = Stored(handler);
  if (!stored) return Error(Reason::kRuntimeHandlerUnknown);
  if (InQuarantine(ref)) return Error(Reason::kQuarantined);
  // Of a broken intent only the hash of one string is known: the closed rules ask for all that it
  // may be. The kubelet asks for an intent only where there is no record.
  for (const std::string& broken : broken_images_) {
    const KnownImage* const known = FindKnownImage(broken);
    const bool same = broken == image.image;
    const bool equivalent = image.normalised && known && known->normalised == image.normalised;
    const bool has_record = FindRecord(ref, *stored) != records_.end();
    if (closed_ ? same || equivalent : same && !has_record) {
      return Error(Reason::kQuarantined);
    }
  }
  return DecideCopy(image, ref, *stored, pod);
}

std::size_t Model::SecretsFor(const KnownImage& image, const std::string& ref,
                              const std::string& handler) const {
  const auto stored = Stored(handler);
  const auto record = stored ? FindRecord(ref, *stored) : records_.end();
  if (record == records_.end() || !image.name) return 0;
  const auto entry = record->second.credential_mapping.find(*image.name);
  return entry == record->second.credential_mapping.end() ? 0
                                                          : entry->second.kubernetes_secrets.size();
}

Model::Answer Model::DecideCopy(const KnownImage& image, const std::string& ref,
                                const std::string& stored, const ModelPod& pod) const {
  // What the ledger opens is open, whatever a record says.
  const auto unless_preloaded = [&](Answer answer) {
    return LedgerOpens(image, {ref, stored}).value_or(std::move(answer));
  };
  const auto record = FindRecord(ref, stored);
  const bool has_record = record != records_.end();
  if (closed_ && !has_record) {
    if (const auto opened = LedgerOpens(image, {ref, stored})) return *opened;
  }
  const bool kubelet_pulled =
      has_record || AnyRecordOf(ref) || (!closed_ && HasIntentOf(image.image));
  // Of a store that lost records nobody can say what was not pulled.
  const ImageOrigin origin = kubelet_pulled             ? ImageOrigin::kKubeletPulled
                             : closed_ || distrustful() ? ImageOrigin::kUnknown
                                                        : ImageOrigin::kPreloaded;
  if (PolicyOpens(image, origin)) return AllowedByPolicy(Reason::kPolicyPresumedPreloaded);
  if (!has_record) return WithoutRecord(image, ref);
  if (!image.name) return unless_preloaded(Error(Reason::kImageDoesNotParse));
  const auto& mapping = record->second.credential_mapping;
  const auto entry = mapping.find(*image.name);
  if (entry == mapping.end()) {
    return unless_preloaded(MustAuthenticate(mapping.empty() ? Reason::kEntryWithoutCredentials
                                                             : Reason::kNoEntryForImageName));
  }
  if (entry->second.node_pods_accessible) {
    if (!IsCheckedEnough(*image.name, entry->second.node_pods_proof)) {
      return unless_preloaded(MustAuthenticate(Reason::kProofNotByRegistry));
    }
    if (IsPastAge(entry->second.node_pods_proof)) {
      return unless_preloaded(MustAuthenticate(Reason::kProofTooOld));
    }
    return {{false, CheckResult::kCredentialRecordFound, Reason::kNodePodsAccessible, false}, {}};
  }
  if (const auto opened = LedgerOpens(image, {ref, stored})) return *opened;
  if (entry->second.empty()) return MustAuthenticate(Reason::kEntryWithoutCredentials);
  if (!pod.available) {
    return {{true, CheckResult::kError, Reason::kCredentialsUnavailable, true}, {}};
  }
  return Compare(*image.name, entry->second, pod);
}

Model::Answer Model::WithoutRecord(const KnownImage& image, const std::string& ref) const {
  if (AnyRecordOf(ref)) return MustAuthenticate(Reason::kPulledForOtherHandler);
  if (!closed_ && HasIntentOf(image.image)) return MustAuthenticate(Reason::kPullInFlight);
  if (distrustful()) return MustAuthenticate(Reason::kStoreDistrustful);
  // Where the policy verifies what is preloaded, too, it does not matter whether it is.
  const bool matters = closed_ && PolicyOpens(image, ImageOrigin::kPreloaded);
  return MustAuthenticate(matters ? Reason::kNoEvidence : Reason::kNoRecord);
}

// The closed rules: an image that is known to be preloaded is so under every name. An allowlist
// looks at the names by which it was.
std::optional<Model::Answer> Model::LedgerOpens(const KnownImage& image,
                                                const CopyKey& asked) const {
  const auto entry = ledger_.find({ImageOf(asked.first), asked.second});
  if (entry == ledger_.end() || entry->second.absent_since) return std::nullopt;
  bool opens = PolicyOpens(image, ImageOrigin::kPreloaded);
  if (policy_.mode == Verification::kNeverVerifyAllowlistedImages) {
    const auto& names = entry->second.names;
    opens = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return Allowlisted(policy_, *FindKnownImage(name));
    });
  }
  if (!opens) return std::nullopt;
  return AllowedByPolicy(Reason::kPolicyKnownPreloaded);
}

Model::Answer Model::Compare(const std::string& name, const ImagePullCredentials& entry,
                             const ModelPod& pod) const {
  const auto found = [](Reason reason, std::optional<ImagePullSecret> write_back) {
    return Answer{{false, CheckResult::kCredentialRecordFound, reason, true},
                  std::move(write_back)};
  };
  const bool room = entry.kubernetes_secrets.size() < 100;
  Reason none = Reason::kNoCredentialMatches;
  const auto counts = [&](const Proof& proof) {
    const bool is_checked = IsCheckedEnough(name, proof);
    const bool is_old = IsPastAge(proof);
    if (is_checked && is_old) none = Reason::kProofTooOld;
    if (!is_checked) none = Reason::kProofNotByRegistry;
    return is_checked && !is_old;
  };
  for (const ImagePullSecret& mine : pod.secrets) {
    for (const ImagePullSecret& stored : entry.kubernetes_secrets) {
      const bool same_place = SameCoordinates(mine, stored);
      const bool same_hash =
          !mine.credential_hash.empty() && mine.credential_hash == stored.credential_hash;
      if (!same_hash && !(same_place && room)) continue;
      if (!same_hash && IsHashForgotten(mine.credential_hash)) continue;
      if (!counts(stored.proof)) continue;
      if (same_hash) {
        return found(Reason::kSecretHashMatches,
                     room && !same_place ? std::optional(mine) : std::nullopt);
      }
      return found(Reason::kSecretCoordinatesMatch, mine);
    }
  }
  for (const ImagePullServiceAccount& stored : entry.kubernetes_service_accounts) {
    if (pod.service_account && SameCoordinates(*pod.service_account, stored) &&
        counts(stored.proof)) {
      return found(Reason::kServiceAccountMatches, std::nullopt);
    }
  }
  return {{true, CheckResult::kMustAuthenticate, none, true}, {}};
}

Model::Answer Model::Check(const KnownImage& image, const std::string& ref, const ModelPod& pod,
                           const std::string& handler) {
  Answer answer = Decide(image, ref, pod, handler);
  Count(answer.decision);
  return answer;
}

void Model::Count(const Decision& decision) {
  if (decision.result == CheckResult::kNotCounted) return;
  ++metrics_.mustpull_checks[static_cast<std::size_t>(decision.result)];
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
  // The closed rules: to the pod it is an image that is not there.
  if (no_credentials && !closed_) {
    ++counters[present][kUnknown];
    return EnsureAction::kCredentialsError;
  }
  ++counters[present][kTrue];
  return policy == PullPolicy::kNever ? EnsureAction::kNeverPull : EnsureAction::kPull;
}

}  // namespace waybill::testing
