// The answer to "must this pull be attempted?", and to the kubelet's question around it.

#ifndef WAYBILL_DECISION_H_
#define WAYBILL_DECISION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waybill/result.h"
#include "waybill/types.h"

namespace [[gnu::visibility("default")]] waybill {

// A pod's credentials, borrowed. The secrets are those of its imagePullSecrets that match the
// image.
struct PodCredentials {
  std::span<const ImagePullSecretView> secrets;
  std::optional<ImagePullServiceAccountView> service_account;
};

// What a decision saw before the pod's credentials were fetched: a copy of the record, for the
// comparison afterwards. Opaque. Good for one question, about the same image.
class FirstLook {
 public:
  // Whether a decision left something here.
  explicit operator bool() const { return !record_.empty(); }

 private:
  friend class NodeStore;
  std::vector<std::uint8_t> record_;
};

// Where a decision gets them. Asked at most once a decision, and only if the answer depends on it:
// the policy requires verification, and the record has an entry for the image name that is not open
// to all pods of the node (kubelet behaviour). An error makes the answer "pull", `error`. Called on
// the deciding thread, so from several at once where the caller shares a source between them. The
// views must stay valid until the decision returns.
class CredentialSource {
 public:
  // No lock is held. May not call back into the same store.
  virtual Result<PodCredentials> Fetch() = 0;

  // Whether Fetch may wait for something. If so, the decision copies the record (an allocation) and
  // lets go of its snapshot meanwhile, so that a slow API server does not keep old pages of the
  // store alive. The credentials are compared with that copy, as in the kubelet. Afterwards the
  // decision looks again: what it sees then may close the image, and never opens it.
  virtual bool may_block() const { return true; }

  // Whether they are not at hand, and Fetch is not to be called either. A decision that depends on
  // them is then "pull", kCredentialsNeeded, and counted under no label: get them, and ask again.
  virtual bool deferred() const { return false; }
  // Where a deferred decision leaves what it saw, and the one that asks again finds it.
  virtual FirstLook* first_look() { return nullptr; }

 protected:
  ~CredentialSource() = default;
};

// Credentials that are at hand already.
class FixedCredentials final : public CredentialSource {
 public:
  explicit FixedCredentials(PodCredentials credentials) : credentials_(credentials) {}
  Result<PodCredentials> Fetch() override { return credentials_; }
  bool may_block() const override { return false; }

 private:
  PodCredentials credentials_;
};

// Credentials that are got only once a decision has shown that it depends on them: for callers that
// can't wait inside one, such as another language's.
//
//   DeferredCredentials credentials;
//   Decision decision = store.MustAttemptPull(image, image_ref, credentials);
//   if (decision.reason == Reason::kCredentialsNeeded) {  // "pull" so far, counted under no label
//     credentials.Provide(…);                             // or the error of getting them
//     decision = store.MustAttemptPull(image, image_ref, credentials);
//   }
//
// The second call is for the same image and the same store: for any other its answer is "pull". Do
// not ask it with another CredentialSource: a record that was removed between the two calls would
// then pass for one that never was. Made anew for each question; not for several threads.
class DeferredCredentials final : public CredentialSource {
 public:
  // The views must stay valid until the second call returns.
  void Provide(Result<PodCredentials> credentials) { credentials_ = std::move(credentials); }

  Result<PodCredentials> Fetch() override {
    return credentials_ ? *credentials_ : PodCredentials();
  }
  bool may_block() const override { return false; }
  bool deferred() const override { return !credentials_; }
  FirstLook* first_look() override { return &first_look_; }

 private:
  FirstLook first_look_;
  std::optional<Result<PodCredentials>> credentials_;
};

// The label `result` of kubelet_imagemanager_image_mustpull_checks_total. kNotCounted: an image
// that is not on the node is counted under no label.
enum class CheckResult : std::uint8_t {
  kNotCounted,
  kCredentialPolicyAllowed,
  kCredentialRecordFound,
  kMustAuthenticate,
  kError,
};
// "credentialPolicyAllowed" …; "" for kNotCounted.
std::string_view CheckResultName(CheckResult result);

// Why, one step finer than CheckResult. Each has a sentence: ReasonText.
enum class Reason : std::uint8_t {
  kImageAbsent,              // the image ref is empty: not on the node
  kPolicyNeverVerifies,      // NeverVerify
  kPolicyPresumedPreloaded,  // no record, no intent, nothing lost
  kPolicyAllowlisted,
  kNodePodsAccessible,
  kSecretHashMatches,
  kSecretCoordinatesMatch,
  kServiceAccountMatches,
  kNoRecord,               // verification required, and nothing is known to verify against
  kPullInFlight,           // no record, but a pull of this image, or of its repository, began
  kStoreDistrustful,       // no record, and records were lost once
  kPulledForOtherHandler,  // no record of this handler's copy, but of another's
  kNoEntryForImageName,
  kEntryWithoutCredentials,
  kNoCredentialMatches,
  kImageDoesNotParse,
  kArgumentTooLong,  // an image, ref or handler above limits.h
  kRuntimeHandlerUnknown,
  kRecordDamaged,
  kQuarantined,             // an import file for this image could not be read
  kCredentialsUnavailable,  // the CredentialSource failed
  kStoreUnavailable,        // closed, full of readers, or not to be trusted at this moment
  kCredentialsNeeded,       // the answer depends on credentials that are deferred
};
std::string_view ReasonName(Reason reason);  // "secretHashMatches"
std::string_view ReasonText(Reason reason);  // one sentence, no full stop

struct Decision {
  // Fail-closed: a default-made Decision says "pull".
  bool pull = true;
  CheckResult result = CheckResult::kError;
  Reason reason = Reason::kStoreUnavailable;
  bool credentials_read = false;  // whether the CredentialSource was asked
};

// A container's imagePullPolicy.
enum class PullPolicy : std::uint8_t { kAlways, kIfNotPresent, kNever };
std::string_view PullPolicyName(PullPolicy policy);  // "IfNotPresent"
Result<PullPolicy> ParsePullPolicy(std::string_view name);

// What the kubelet does next.
enum class EnsureAction : std::uint8_t {
  kPull,              // ask the runtime to pull, between an intent and its outcome
  kUsePresent,        // start the container with the image that is there
  kInvalidImageName,  // the kubelet's InvalidImageName
  kNeverPull,         // the kubelet's ErrImageNeverPull
  kCredentialsError,  // under Rules::kKubelet only: the pod's credentials could not be had
};
std::string_view EnsureActionName(EnsureAction action);  // "ErrImageNeverPull"

struct EnsureOutcome {
  EnsureAction action = EnsureAction::kPull;
  // What the pod may be told: the kubelet's words. Under Rules::kClosed neither `action` nor
  // `message` differs between an image that is absent and one that this pod may not use.
  std::string message;
  // For the node's own log, never for the pod. nullopt where no decision was asked for.
  std::optional<Decision> decision;
};

}  // namespace waybill

#endif  // WAYBILL_DECISION_H_
