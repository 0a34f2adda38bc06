// The words for the numbers of each enumeration: in JSON, flags, metrics and messages.

#ifndef WAYBILL_STORE_BASE_WORDS_H_
#define WAYBILL_STORE_BASE_WORDS_H_

#include <string_view>

#include "store/base/names.h"
#include "store/base/options.h"
#include "waybill/values.h"

namespace waybill {

constexpr auto NamesOf(Mode) { return internal::OwnNames<Mode>(); }
constexpr auto NamesOf(Verification) {
  return internal::OwnNames<Verification, internal::First::kCapital>();
}
constexpr auto NamesOf(VerifiedBy) { return internal::OwnNames<VerifiedBy>(); }
constexpr auto NamesOf(PullPolicy) {
  return internal::OwnNames<PullPolicy, internal::First::kCapital>();
}
constexpr auto NamesOf(PullState) { return internal::OwnNames<PullState>(); }
constexpr auto NamesOf(PullOutcome) { return internal::OwnNames<PullOutcome>(); }
constexpr auto NamesOf(QuarantineKind) { return internal::OwnNames<QuarantineKind>(); }
constexpr auto NamesOf(CredentialStanding) {
  return internal::But<CredentialStanding>(internal::OwnNames<CredentialStanding>(),
                                           {{CredentialStanding::kForgotten, "revoked"}});
}
constexpr std::string_view TypeNameOf(const ExplainedCredential::Kind*) { return "CredentialKind"; }
constexpr auto NamesOf(ExplainedCredential::Kind) {
  using Kind = ExplainedCredential::Kind;
  return internal::But<Kind>(internal::OwnNames<Kind>(), {{Kind::kNodePods, "everyPod"}});
}
constexpr auto NamesOf(RevocationKind) { return internal::OwnNames<RevocationKind>(); }
constexpr auto NamesOf(PoolRelation) { return internal::OwnNames<PoolRelation>(); }
constexpr auto NamesOf(PodQuarantineKind) {
  return internal::OrUnknown(internal::OwnNames<PodQuarantineKind>());
}
constexpr auto NamesOf(DegradedKind) {
  using Kind = DegradedKind;
  return internal::But<Kind>(
      internal::OrUnknown(internal::OwnNames<Kind>()),
      {{Kind::kGap, "unrecordedPeriod"}, {Kind::kJournalFull, "historyFull"}});
}
constexpr auto NamesOf(DegradedAction) {
  using Action = DegradedAction;
  return internal::But<Action>(internal::OrUnknown(internal::OwnNames<Action>()),
                               {{Action::kDistrust, "degraded"}, {Action::kTrust, "accepted"}});
}
constexpr auto NamesOf(Gap) { return internal::OwnNames<Gap>(); }
constexpr auto NamesOf(KubeletApiVersion) {
  return internal::Names<KubeletApiVersion>(
      {{KubeletApiVersion::kV1Beta1, "v1beta1"}, {KubeletApiVersion::kV1Alpha1, "v1alpha1"}});
}
constexpr auto NamesOf(StreamKind) { return internal::OwnNames<StreamKind>(); }
constexpr auto NamesOf(StreamingOutcome) { return internal::OwnNames<StreamingOutcome>(); }
constexpr auto NamesOf(StreamingProxy) { return internal::OwnNames<StreamingProxy>(); }
constexpr auto NamesOf(RedirectFollower) { return internal::OwnNames<RedirectFollower>(); }
constexpr auto NamesOf(RedirectCheck) { return internal::OwnNames<RedirectCheck>(); }
constexpr auto NamesOf(WebSocketTranslator) { return internal::OwnNames<WebSocketTranslator>(); }
constexpr auto NamesOf(VersionSkew) { return internal::OwnNames<VersionSkew>(); }
constexpr auto NamesOf(StreamingComponent) { return internal::OwnNames<StreamingComponent>(); }
constexpr auto NamesOf(StreamingSeverity) { return internal::OwnNames<StreamingSeverity>(); }
constexpr auto NamesOf(CheckResult) {
  return internal::But<CheckResult>(internal::OwnNames<CheckResult>(),
                                    {{CheckResult::kNotCounted, ""}});
}
constexpr auto NamesOf(EnsureAction) {
  return internal::But<EnsureAction>(internal::OwnNames<EnsureAction, internal::First::kCapital>(),
                                     {{EnsureAction::kNeverPull, "ErrImageNeverPull"}});
}
constexpr auto NamesOf(PullErrorClass) { return internal::OwnNames<PullErrorClass>(); }
constexpr auto NamesOf(ShortNames) {
  return internal::But<ShortNames>(internal::OwnNames<ShortNames>(),
                                   {{ShortNames::kDockerHub, "docker.io"}});
}
constexpr auto NamesOf(Proofs) { return internal::OwnNames<Proofs>(); }
constexpr auto NamesOf(FirstStart) { return internal::OwnNames<FirstStart>(); }

using internal::FromWord;
using internal::HasWord;
using internal::WordOf;

}  // namespace waybill

#endif  // WAYBILL_STORE_BASE_WORDS_H_
