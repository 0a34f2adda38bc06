// Why decisions are made, in words.

#include <array>
#include <string_view>

#include "store/base/words.h"
#include "store/images/decide.h"
#include "waybill/values.h"

namespace waybill {

namespace {

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

std::string_view CheckResultName(CheckResult result) { return WordOf(result); }

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

}  // namespace waybill
