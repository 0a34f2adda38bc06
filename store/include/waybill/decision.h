// Answers "must this pull be attempted?" (MustAttemptPull), and the kubelet's question around that:
// pull, use the image, or refuse (EnsureImage).

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
  std::span<const ImagePullSecretView> secrets = {};
  std::optional<ImagePullServiceAccountView> service_account = {};
};

// What a decision saw before the pod's credentials were fetched: a copy of the record, for the
// comparison afterwards. Only decisions use its members. Serves one question about one image.
struct FirstLook {
  std::vector<std::uint8_t> record = {};
  std::string image_ref = {};
  std::uint64_t read_at = 0;  // the commit that it shows

  // Whether a decision stored something here.
  explicit operator bool() const { return !record.empty(); }
};

// Where a decision gets the pod's credentials. It asks at most once, and only if the answer depends
// on them: the policy requires verification, and the record's entry for the image name is not open
// to all pods of the node (kubelet behaviour). An error makes the answer "pull", `error`. Called on
// the deciding thread, so a source that threads share is called from several at once. The views
// must stay valid until the decision returns.
class CredentialSource {
 public:
  // No lock is held. May not call back into the same store.
  virtual Result<PodCredentials> Fetch() = 0;

  // Whether Fetch may wait for something. If so, the decision copies the record (an allocation) and
  // releases its snapshot meanwhile, so that a slow API server does not keep old pages of the store
  // alive. It compares the credentials with that copy, as the kubelet does. Then it reads the store
  // again: that may close the image, but never opens it.
  virtual bool may_block() const { return true; }

  // True: the credentials are not available yet, and Fetch must not be called. A decision that
  // depends on them is then "pull", kCredentialsNeeded, and no metric counts it: get them, and ask
  // again.
  virtual bool deferred() const { return false; }
  // Where a deferred decision stores what it saw, for the decision that asks again.
  virtual FirstLook* first_look() { return nullptr; }

 protected:
  ~CredentialSource() = default;
};

// Credentials at hand.
class FixedCredentials final : public CredentialSource {
 public:
  explicit FixedCredentials(PodCredentials credentials) : credentials_(credentials) {}
  Result<PodCredentials> Fetch() override { return credentials_; }
  bool may_block() const override { return false; }

 private:
  PodCredentials credentials_;
};

// Credentials that the caller gets only if a decision depends on them: for callers that can't wait
// inside a decision, such as another language's.
//
//   DeferredCredentials credentials;
//   Decision decision = store.MustAttemptPull(copy, credentials);
//   if (decision.reason == Reason::kCredentialsNeeded) {  // "pull" so far; no metric counts it
//     credentials.Provide(…);                             // or the error of getting them
//     decision = store.MustAttemptPull(copy, credentials);
//   }
//
// The second call must name the same image and store, or its answer is "pull". It needs the same
// object: with another source, a record that was removed between the calls would look as if it had
// never existed. Use a new object for each question, on one thread at a time.
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

// A label `result` of kubelet_imagemanager_image_mustpull_checks_total. kNotCounted: the image is
// not on the node, and the metric does not count it.
enum class CheckResult : std::uint8_t {
  kNotCounted,
  kCredentialPolicyAllowed,
  kCredentialRecordFound,
  kMustAuthenticate,
  kError,
};
// "credentialPolicyAllowed" …; "" for kNotCounted.
std::string_view CheckResultName(CheckResult result);

// Why a decision was made, one step finer than CheckResult. ReasonText explains each in a sentence.
enum class Reason : std::uint8_t {
  kImageAbsent,              // the image ref is empty: not on the node
  kPolicyNeverVerifies,      // NeverVerify
  kPolicyPresumedPreloaded,  // Rules::kKubelet: no record, no intent, nothing lost
  kPolicyAllowlisted,
  kNodePodsAccessible,
  kSecretHashMatches,
  kSecretCoordinatesMatch,
  kServiceAccountMatches,
  kNoRecord,               // verification required, but no record to verify against
  kPullInFlight,           // Rules::kKubelet: no record, but a pull of this image began
  kStoreDistrustful,       // no record, but the store may have lost it
  kPulledForOtherHandler,  // no record of this handler's copy, but one of another's
  kNoEntryForImageName,
  kEntryWithoutCredentials,
  kNoCredentialMatches,
  kImageDoesNotParse,
  kArgumentTooLong,  // an image, ref or handler above limits.h
  kRuntimeHandlerUnknown,
  kRecordDamaged,
  kQuarantined,             // an import file for this image could not be read
  kCredentialsUnavailable,  // the CredentialSource failed
  kStoreUnavailable,        // closed, out of reader slots, or in an unknown state
  kCredentialsNeeded,       // the answer depends on credentials that are deferred
  kPolicyKnownPreloaded,    // Rules::kClosed: the image is in the ledger
  kNoEvidence,              // Rules::kClosed: no record, and not in the ledger (Explain says more)
  // A credential matches, but was proven too long ago (AgeLimits), or ended (Proof::good_until).
  kProofTooOld,
  kProofNotByRegistry,  // one matches, but VerificationPolicy::ProofCounts says that it does not
};
std::string_view ReasonName(Reason reason);  // "secretHashMatches"
std::string_view ReasonText(Reason reason);  // one sentence, no full stop

struct [[nodiscard]] Decision {
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
  kPull,              // ask the runtime to pull: record the intent before, the outcome after
  kUsePresent,        // start the container with the image on the node
  kInvalidImageName,  // the kubelet's InvalidImageName
  kNeverPull,         // the kubelet's ErrImageNeverPull
  kCredentialsError,  // Rules::kKubelet only: the pod's credentials are not available
};
std::string_view EnsureActionName(EnsureAction action);  // "ErrImageNeverPull"

struct EnsureOutcome {
  EnsureAction action = EnsureAction::kPull;
  // What the pod may see, in the kubelet's words. Under Rules::kClosed, `action` and `message` are
  // the same for an absent image and for one that this pod may not use.
  std::string message = {};
  // For the node's own log, never for the pod. nullopt: no decision was needed.
  std::optional<Decision> decision = {};
};

}  // namespace waybill

#endif  // WAYBILL_DECISION_H_
