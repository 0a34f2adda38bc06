// How decisions and rules are spelt.

#include "store/base/names.h"

#include <array>
#include <string>

#include "store/base/caught.h"
#include "store/node/decision/decision_steps.h"
#include "waybill/decision.h"
#include "waybill/evidence.h"
#include "waybill/revocation.h"
#include "waybill/rules.h"

namespace waybill {

using internal::NameIn;

namespace {

template <typename Enum, std::size_t kCount>
Result<Enum> Parse(std::string_view name, const std::string_view (&names)[kCount],
                   std::string_view what) {
  return internal::Guarded([&]() -> Result<Enum> {
    std::string known;
    for (std::size_t i = 0; i < kCount; ++i) {
      if (names[i] == name) return static_cast<Enum>(i);
      known += (i == 0 ? "" : ", ") + std::string(names[i]);
    }
    return Error{ErrorCode::kInvalidArgument,
                 "unknown " + std::string(what) + " \"" + std::string(name) + "\"",
                 "use one of " + known};
  });
}

constexpr std::string_view kRules[] = {"closed", "kubelet"};
constexpr std::string_view kPullPolicies[] = {"Always", "IfNotPresent", "Never"};
constexpr std::string_view kCheckResults[] = {"", "credentialPolicyAllowed",
                                              "credentialRecordFound", "mustAuthenticate", "error"};
constexpr std::string_view kEnsureActions[] = {"Pull", "UsePresent", "InvalidImageName",
                                               "ErrImageNeverPull", "CredentialsError"};

constexpr std::string_view kRevocationKinds[] = {"",          "secret", "serviceAccount",
                                                 "namespace", "image",  "credential"};
constexpr std::string_view kPullStates[] = {"", "running", "failed", "unknown", "dropped"};
constexpr std::string_view kPullErrorClasses[] = {"unknown", "auth", "notFound", "unavailable",
                                                  "other"};
constexpr std::string_view kShortNames[] = {"anywhere", "docker.io"};
constexpr std::string_view kCheckers[] = {"unknown", "registry", "mirror", "guest"};
constexpr std::string_view kProofs[] = {"any", "registry"};
constexpr std::string_view kFirstStarts[] = {"presume", "close"};

struct ReasonNames {
  std::string_view name;
  std::string_view text;
};
constexpr std::array<ReasonNames, 27> kReasons = {{
    {"imageAbsent", "the image is not on the node"},
    {"policyNeverVerifies", "the policy NeverVerify asks for no credentials"},
    {"policyPresumedPreloaded",
     "the image has neither record nor intent, so it is presumed preloaded, which the policy "
     "allows"},
    {"policyAllowlisted", "the image name is on the policy's allowlist"},
    {"nodePodsAccessible", "the image was pulled with no credentials, or with the node's own"},
    {"secretHashMatches", "the image was pulled with the same credentials"},
    {"secretCoordinatesMatch",
     "the image was pulled with the same Secret, whose content changed or is not known"},
    {"serviceAccountMatches", "the image was pulled with the same service account"},
    {"noRecord", "the policy demands verification and no pull of this image is on record"},
    {"pullInFlight", "a pull of this image began, and no successful one is on record"},
    {"storeDistrustful",
     "no pull of this image is on record, and the store lost records, so it may not be preloaded"},
    {"pulledForOtherHandler",
     "the image was pulled, but for another runtime handler, whose copy may be another"},
    {"noEntryForImageName", "the image was pulled, but not under this image name"},
    {"entryWithoutCredentials",
     "it is not known which credentials the image was pulled with, or they were forgotten"},
    {"noCredentialMatches", "no credential of the pod is one that the image was pulled with"},
    {"imageDoesNotParse", "the image string does not parse"},
    {"argumentTooLong", "the image string or the image ref is too long"},
    {"runtimeHandlerUnknown", "the runtime handler is not one that the node's runtime serves"},
    {"recordDamaged", "the record of this image can't be read"},
    {"quarantined",
     "a file of the kubelet about this image could not be read when it was imported"},
    {"credentialsUnavailable", "the pod's credentials could not be had"},
    {"storeUnavailable", "the store can't be read at this moment"},
    {"credentialsNeeded", "the answer depends on the pod's credentials, which were not given"},
    {"policyKnownPreloaded",
     "the image is in the ledger of preloaded ones, which the policy allows to all pods"},
    {"noEvidence",
     "no pull of this image is on record, and it is not in the ledger of preloaded ones"},
    {"proofTooOld", "a credential matches, but it was proven too long ago, or has ended by itself"},
    {"proofNotByRegistry",
     "a credential matches, but the registry itself is not known to have checked it, as the policy "
     "demands"},
}};

}  // namespace

std::string_view RulesName(Rules rules) { return NameIn(kRules, rules); }
Result<Rules> ParseRules(std::string_view name) {
  return Parse<Rules>(name, kRules, "set of rules");
}

std::string_view PullPolicyName(PullPolicy policy) { return NameIn(kPullPolicies, policy); }
Result<PullPolicy> ParsePullPolicy(std::string_view name) {
  return Parse<PullPolicy>(name, kPullPolicies, "pull policy");
}

std::string_view CheckResultName(CheckResult result) { return NameIn(kCheckResults, result); }
std::string_view EnsureActionName(EnsureAction action) { return NameIn(kEnsureActions, action); }
std::string_view RevocationKindName(RevocationKind kind) { return NameIn(kRevocationKinds, kind); }
std::string_view PullStateName(PullState state) { return NameIn(kPullStates, state); }

static_assert(kReasons.size() == static_cast<std::size_t>(Reason::kProofNotByRegistry) + 1);
static_assert(kReasons.size() <= kMaxReasons);
std::size_t internal::ReasonCount() { return kReasons.size(); }
std::string_view ReasonName(Reason reason) {
  const auto at = static_cast<std::size_t>(reason);
  return at < kReasons.size() ? kReasons[at].name : std::string_view();
}
std::string_view ReasonText(Reason reason) {
  const auto at = static_cast<std::size_t>(reason);
  return at < kReasons.size() ? kReasons[at].text : std::string_view();
}

std::string_view ShortNamesName(ShortNames short_names) { return NameIn(kShortNames, short_names); }
Result<ShortNames> ParseShortNames(std::string_view name) {
  return Parse<ShortNames>(name, kShortNames, "meaning of short names");
}

std::string_view VerifiedByName(VerifiedBy checker) { return NameIn(kCheckers, checker); }
Result<VerifiedBy> ParseVerifiedBy(std::string_view name) {
  return Parse<VerifiedBy>(name, kCheckers, "checker of a proof");
}

std::string_view ProofsName(Proofs proofs) { return NameIn(kProofs, proofs); }
Result<Proofs> ParseProofs(std::string_view name) {
  return Parse<Proofs>(name, kProofs, "word for the proofs that count");
}

std::string_view FirstStartName(FirstStart first_start) {
  return NameIn(kFirstStarts, first_start);
}
Result<FirstStart> ParseFirstStart(std::string_view name) {
  return Parse<FirstStart>(name, kFirstStarts, "first start");
}

std::string_view PullErrorClassName(PullErrorClass error_class) {
  return NameIn(kPullErrorClasses, error_class);
}
Result<PullErrorClass> ParsePullErrorClass(std::string_view name) {
  return Parse<PullErrorClass>(name, kPullErrorClasses, "class of errors");
}

}  // namespace waybill
