// The words for the numbers of each enumeration: in JSON, flags, metrics and messages.

#ifndef WAYBILL_STORE_BASE_WORDS_H_
#define WAYBILL_STORE_BASE_WORDS_H_

#include <string_view>

#include "store/base/names.h"
#include "store/base/options.h"
#include "waybill/values.h"

namespace waybill {

constexpr auto NamesOf(Mode) {
  return internal::Names<Mode>({{Mode::kStrict, "strict"}, {Mode::kKubelet, "kubelet"}});
}
constexpr auto NamesOf(Verification) {
  return internal::Names<Verification>(
      {{Verification::kNeverVerify, "NeverVerify"},
       {Verification::kNeverVerifyPreloadedImages, "NeverVerifyPreloadedImages"},
       {Verification::kNeverVerifyAllowlistedImages, "NeverVerifyAllowlistedImages"},
       {Verification::kAlwaysVerify, "AlwaysVerify"}});
}
constexpr auto NamesOf(VerifiedBy) {
  return internal::Names<VerifiedBy>({{VerifiedBy::kUnknown, "unknown"},
                                      {VerifiedBy::kRegistry, "registry"},
                                      {VerifiedBy::kMirror, "mirror"},
                                      {VerifiedBy::kGuest, "guest"},
                                      {VerifiedBy::kNobody, "nobody"}});
}
constexpr auto NamesOf(PullPolicy) {
  return internal::Names<PullPolicy>({{PullPolicy::kAlways, "Always"},
                                      {PullPolicy::kIfNotPresent, "IfNotPresent"},
                                      {PullPolicy::kNever, "Never"}});
}
constexpr auto NamesOf(PullState) {
  return internal::Names<PullState>({{PullState::kRunning, "running"},
                                     {PullState::kFailed, "failed"},
                                     {PullState::kUnknown, "unknown"},
                                     {PullState::kDropped, "dropped"}});
}
constexpr auto NamesOf(PullOutcome) {
  return internal::Names<PullOutcome>({{PullOutcome::kPulled, "pulled"},
                                       {PullOutcome::kFailed, "failed"},
                                       {PullOutcome::kUnknown, "unknown"},
                                       {PullOutcome::kNothing, "nothing"}});
}
constexpr auto NamesOf(QuarantineKind) {
  return internal::Names<QuarantineKind>(
      {{QuarantineKind::kImageRef, "imageRef"}, {QuarantineKind::kImage, "image"}});
}
constexpr auto NamesOf(CredentialStanding) {
  return internal::Names<CredentialStanding>({{CredentialStanding::kCounts, "counts"},
                                              {CredentialStanding::kTooOld, "tooOld"},
                                              {CredentialStanding::kForgotten, "revoked"},
                                              {CredentialStanding::kNotByRegistry, "notByRegistry"},
                                              {CredentialStanding::kUnknown, "unknown"}});
}
constexpr std::string_view TypeNameOf(const ExplainedCredential::Kind*) { return "CredentialKind"; }
constexpr auto NamesOf(ExplainedCredential::Kind) {
  using Kind = ExplainedCredential::Kind;
  return internal::Names<Kind>({{Kind::kNodePods, "everyPod"},
                                {Kind::kSecret, "secret"},
                                {Kind::kServiceAccount, "serviceAccount"}});
}
constexpr auto NamesOf(RevocationKind) {
  return internal::Names<RevocationKind>({{RevocationKind::kSecret, "secret"},
                                          {RevocationKind::kServiceAccount, "serviceAccount"},
                                          {RevocationKind::kNamespace, "namespace"},
                                          {RevocationKind::kImage, "image"},
                                          {RevocationKind::kCredential, "credential"}});
}
constexpr auto NamesOf(PoolRelation) {
  return internal::Names<PoolRelation>({{PoolRelation::kInPool, "inPool"},
                                        {PoolRelation::kOutsidePool, "outsidePool"},
                                        {PoolRelation::kOtherLength, "otherLength"}});
}
constexpr auto NamesOf(PodQuarantineKind) {
  using Kind = PodQuarantineKind;
  return internal::Names<Kind>({{Kind{}, "unknown"},
                                {Kind::kOther, "other"},
                                {Kind::kFileConflict, "fileConflict"},
                                {Kind::kOverlap, "overlap"},
                                {Kind::kUnreadableFile, "unreadableFile"},
                                {Kind::kFromBackup, "fromBackup"},
                                {Kind::kLostRanges, "lostRanges"},
                                {Kind::kUntilImport, "untilImport"}});
}
constexpr auto NamesOf(DegradedKind) {
  using Kind = DegradedKind;
  return internal::Names<Kind>({{Kind{}, "unknown"},
                                {Kind::kOther, "other"},
                                {Kind::kOperator, "operator"},
                                {Kind::kStoreLost, "storeLost"},
                                {Kind::kStoreStale, "storeStale"},
                                {Kind::kStoreRebuilt, "storeRebuilt"},
                                {Kind::kStoreRestored, "storeRestored"},
                                {Kind::kImportUnfinished, "importUnfinished"},
                                {Kind::kGap, "unrecordedPeriod"},
                                {Kind::kJournalFull, "historyFull"}});
}
constexpr auto NamesOf(DegradedAction) {
  using Action = DegradedAction;
  return internal::Names<Action>({{Action{}, "unknown"},
                                  {Action::kDistrust, "degraded"},
                                  {Action::kTrust, "accepted"},
                                  {Action::kTakenBack, "takenBack"},
                                  {Action::kNote, "note"}});
}
constexpr auto NamesOf(Gap) {
  return internal::Names<Gap>({{Gap::kDetect, "detect"}, {Gap::kYes, "yes"}, {Gap::kNo, "no"}});
}
constexpr auto NamesOf(KubeletApiVersion) {
  return internal::Names<KubeletApiVersion>(
      {{KubeletApiVersion::kV1Beta1, "v1beta1"}, {KubeletApiVersion::kV1Alpha1, "v1alpha1"}});
}
constexpr auto NamesOf(StreamKind) {
  return internal::Names<StreamKind>({{StreamKind::kExec, "exec"},
                                      {StreamKind::kAttach, "attach"},
                                      {StreamKind::kPortForward, "portForward"}});
}
constexpr auto NamesOf(StreamingOutcome) {
  using Outcome = StreamingOutcome;
  return internal::Names<Outcome>({{Outcome::kWorks, "works"},
                                   {Outcome::kWorksOnSameHost, "worksOnSameHost"},
                                   {Outcome::kFails, "fails"},
                                   {Outcome::kDoesNotStart, "doesNotStart"}});
}
constexpr auto NamesOf(StreamingProxy) {
  return internal::Names<StreamingProxy>(
      {{StreamingProxy::kKubelet, "kubelet"}, {StreamingProxy::kRedirect, "redirect"}});
}
constexpr auto NamesOf(RedirectFollower) {
  return internal::Names<RedirectFollower>({{RedirectFollower::kNotNeeded, "notNeeded"},
                                            {RedirectFollower::kApiServer, "apiServer"},
                                            {RedirectFollower::kNobody, "nobody"}});
}
constexpr auto NamesOf(RedirectCheck) {
  return internal::Names<RedirectCheck>({{RedirectCheck::kNotNeeded, "notNeeded"},
                                         {RedirectCheck::kSameHost, "sameHost"},
                                         {RedirectCheck::kNone, "none"}});
}
constexpr auto NamesOf(WebSocketTranslator) {
  return internal::Names<WebSocketTranslator>({{WebSocketTranslator::kNobody, "nobody"},
                                               {WebSocketTranslator::kApiServer, "apiServer"},
                                               {WebSocketTranslator::kKubelet, "kubelet"}});
}
constexpr auto NamesOf(VersionSkew) {
  return internal::Names<VersionSkew>({{VersionSkew::kSupported, "supported"},
                                       {VersionSkew::kKubeletTooOld, "kubeletTooOld"},
                                       {VersionSkew::kKubeletNewer, "kubeletNewer"}});
}
constexpr auto NamesOf(StreamingComponent) {
  return internal::Names<StreamingComponent>(
      {{StreamingComponent::kKubelet, "kubelet"}, {StreamingComponent::kApiServer, "apiServer"}});
}
constexpr auto NamesOf(StreamingSeverity) {
  return internal::Names<StreamingSeverity>({{StreamingSeverity::kIgnored, "ignored"},
                                             {StreamingSeverity::kDeprecated, "deprecated"},
                                             {StreamingSeverity::kRemoved, "removed"},
                                             {StreamingSeverity::kFatal, "fatal"}});
}
constexpr auto NamesOf(CheckResult) {
  return internal::Names<CheckResult>(
      {{CheckResult::kNotCounted, ""},
       {CheckResult::kCredentialPolicyAllowed, "credentialPolicyAllowed"},
       {CheckResult::kCredentialRecordFound, "credentialRecordFound"},
       {CheckResult::kMustAuthenticate, "mustAuthenticate"},
       {CheckResult::kError, "error"}});
}
constexpr auto NamesOf(EnsureAction) {
  return internal::Names<EnsureAction>({{EnsureAction::kPull, "Pull"},
                                        {EnsureAction::kUsePresent, "UsePresent"},
                                        {EnsureAction::kInvalidImageName, "InvalidImageName"},
                                        {EnsureAction::kNeverPull, "ErrImageNeverPull"},
                                        {EnsureAction::kCredentialsError, "CredentialsError"}});
}
constexpr auto NamesOf(PullErrorClass) {
  return internal::Names<PullErrorClass>({{PullErrorClass::kUnknown, "unknown"},
                                          {PullErrorClass::kAuth, "auth"},
                                          {PullErrorClass::kNotFound, "notFound"},
                                          {PullErrorClass::kUnavailable, "unavailable"},
                                          {PullErrorClass::kOther, "other"}});
}
constexpr auto NamesOf(ShortNames) {
  return internal::Names<ShortNames>(
      {{ShortNames::kAnywhere, "anywhere"}, {ShortNames::kDockerHub, "docker.io"}});
}
constexpr auto NamesOf(Proofs) {
  return internal::Names<Proofs>({{Proofs::kAny, "any"}, {Proofs::kRegistry, "registry"}});
}
constexpr auto NamesOf(FirstStart) {
  return internal::Names<FirstStart>(
      {{FirstStart::kPresume, "presume"}, {FirstStart::kClose, "close"}});
}

using internal::FromWord;
using internal::HasWord;
using internal::WordOf;

}  // namespace waybill

#endif  // WAYBILL_STORE_BASE_WORDS_H_
