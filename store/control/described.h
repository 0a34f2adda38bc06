// Made by ./dev generate from the public headers.
// What the values of OwnerCalls are made of, in the order in which they are sent: wire.h.

#ifndef WAYBILL_STORE_CONTROL_DESCRIBED_H_
#define WAYBILL_STORE_CONTROL_DESCRIBED_H_

#include <limits>
#include <tuple>
#include <type_traits>

#include "waybill/owner.h"

namespace waybill::internal {

template <auto Pointer>
struct Member {
  static constexpr auto pointer = Pointer;
};

template <typename T>
struct Members;  // `value`: a tuple of Member

// The greatest number of an enumeration.
template <typename E>
inline constexpr auto kLast = std::numeric_limits<std::underlying_type_t<E>>::max();
template <>
inline constexpr auto kLast<Rules> = 1;
template <>
inline constexpr auto kLast<ShortNames> = 1;
template <>
inline constexpr auto kLast<Settled> = 1;
template <>
inline constexpr auto kLast<RevocationKind> = 5;
template <>
inline constexpr auto kLast<ProofChecker> = 3;
template <>
inline constexpr auto kLast<PullFailure> = 2;
template <>
inline constexpr auto kLast<PullErrorClass> = 4;

template <>
struct Members<Error> {
  static constexpr std::tuple value{Member<&Error::code>(), Member<&Error::message>(),
                                    Member<&Error::hint>(), Member<&Error::hint_code>(),
                                    Member<&Error::retry_after>()};
};

template <>
struct Members<EvidenceOptions> {
  static constexpr std::tuple value{
      Member<&EvidenceOptions::grace>(), Member<&EvidenceOptions::window>(),
      Member<&EvidenceOptions::short_names>(), Member<&EvidenceOptions::remember>()};
};

template <>
struct Members<OwnerDescription> {
  static constexpr std::tuple value{Member<&OwnerDescription::process_id>(),
                                    Member<&OwnerDescription::rules>(),
                                    Member<&OwnerDescription::evidence>()};
};

template <>
struct Members<BootTime> {
  static constexpr std::tuple value{Member<&BootTime::boot_id>(), Member<&BootTime::nanoseconds>()};
};

template <>
struct Members<ListToken> {
  static constexpr std::tuple value{Member<&ListToken::commit>(), Member<&ListToken::drawn>(),
                                    Member<&ListToken::store>()};
};

template <>
struct Members<ImageOnNode> {
  static constexpr std::tuple value{
      Member<&ImageOnNode::id>(),           Member<&ImageOnNode::repo_tags>(),
      Member<&ImageOnNode::repo_digests>(), Member<&ImageOnNode::runtime_handler>(),
      Member<&ImageOnNode::pinned>(),       Member<&ImageOnNode::imported>()};
};

template <>
struct Members<ImageList> {
  static constexpr std::tuple value{
      Member<&ImageList::images>(),      Member<&ImageList::token>(),
      Member<&ImageList::complete>(),    Member<&ImageList::source>(),
      Member<&ImageList::quiet_until>(), Member<&ImageList::names_to_come>()};
};

template <>
struct Members<ChangeOptions> {
  static constexpr std::tuple value{Member<&ChangeOptions::allow_empty>(),
                                    Member<&ChangeOptions::dry_run>()};
};

template <>
struct Members<JudgedImage> {
  static constexpr std::tuple value{Member<&JudgedImage::image_ref>(),
                                    Member<&JudgedImage::runtime_handler>(),
                                    Member<&JudgedImage::name>(), Member<&JudgedImage::preloaded>(),
                                    Member<&JudgedImage::because>()};
};

template <>
struct Members<ObserveReport> {
  static constexpr std::tuple value{Member<&ObserveReport::listed>(),
                                    Member<&ObserveReport::repeated>(),
                                    Member<&ObserveReport::not_names>(),
                                    Member<&ObserveReport::known>(),
                                    Member<&ObserveReport::preloaded>(),
                                    Member<&ObserveReport::closed>(),
                                    Member<&ObserveReport::left>(),
                                    Member<&ObserveReport::united>(),
                                    Member<&ObserveReport::pulls_settled>(),
                                    Member<&ObserveReport::records_removed>(),
                                    Member<&ObserveReport::preloaded_removed>(),
                                    Member<&ObserveReport::judged>(),
                                    Member<&ObserveReport::shared_digests>(),
                                    Member<&ObserveReport::not_judged_because>()};
};

template <>
struct Members<PruneReport> {
  static constexpr std::tuple value{Member<&PruneReport::examined>(),
                                    Member<&PruneReport::removed>(),
                                    Member<&PruneReport::kept_in_list>(),
                                    Member<&PruneReport::kept_newer>(),
                                    Member<&PruneReport::kept_without_credentials>(),
                                    Member<&PruneReport::preloaded_removed>()};
};

template <>
struct Members<Timestamp> {
  static constexpr std::tuple value{Member<&Timestamp::seconds>(),
                                    Member<&Timestamp::nanoseconds>()};
};

template <>
struct Members<ImageCopy> {
  static constexpr std::tuple value{Member<&ImageCopy::image>(), Member<&ImageCopy::image_ref>(),
                                    Member<&ImageCopy::runtime_handler>()};
};

template <>
struct Members<PullId> {
  static constexpr std::tuple value{Member<&PullId::value>()};
};

template <>
struct Members<ClearOptions> {
  static constexpr std::tuple value{
      Member<&ClearOptions::images_on_node>(), Member<&ClearOptions::adopt>(),
      Member<&ClearOptions::allow_empty>(), Member<&ClearOptions::dry_run>()};
};

template <>
struct Members<UserNamespaceCleanupReport> {
  static constexpr std::tuple value{Member<&UserNamespaceCleanupReport::examined>(),
                                    Member<&UserNamespaceCleanupReport::released>(),
                                    Member<&UserNamespaceCleanupReport::kept_in_lists>(),
                                    Member<&UserNamespaceCleanupReport::kept_newer>(),
                                    Member<&UserNamespaceCleanupReport::released_pods>()};
};

template <>
struct Members<Backup> {
  static constexpr std::tuple value{Member<&Backup::path>(), Member<&Backup::schema_version>(),
                                    Member<&Backup::commit_sequence>(), Member<&Backup::bytes>()};
};

template <>
struct Members<CredentialName> {
  static constexpr std::tuple value{Member<&CredentialName::namespace_name>(),
                                    Member<&CredentialName::name>(),
                                    Member<&CredentialName::uid>()};
};

template <>
struct Members<Revocation> {
  static constexpr std::tuple value{Member<&Revocation::kind>(),
                                    Member<&Revocation::who>(),
                                    Member<&Revocation::image_ref>(),
                                    Member<&Revocation::runtime_handler>(),
                                    Member<&Revocation::credential_hash>(),
                                    Member<&Revocation::commit>(),
                                    Member<&Revocation::since>(),
                                    Member<&Revocation::untidied>(),
                                    Member<&Revocation::ran>()};
};

template <>
struct Members<ForgetReport> {
  static constexpr std::tuple value{
      Member<&ForgetReport::records>(),          Member<&ForgetReport::secrets>(),
      Member<&ForgetReport::service_accounts>(), Member<&ForgetReport::node_pods>(),
      Member<&ForgetReport::equal_hashes>(),     Member<&ForgetReport::stored>(),
      Member<&ForgetReport::untidied>()};
};

template <>
struct Members<ExistingCredentials> {
  static constexpr std::tuple value{Member<&ExistingCredentials::secrets>(),
                                    Member<&ExistingCredentials::service_accounts>()};
};

template <>
struct Members<ReconcileReport> {
  static constexpr std::tuple value{
      Member<&ReconcileReport::forgotten>(), Member<&ReconcileReport::known>(),
      Member<&ReconcileReport::gone>(), Member<&ReconcileReport::newer>()};
};

template <>
struct Members<Proof> {
  static constexpr std::tuple value{Member<&Proof::proven>(), Member<&Proof::pull_began>(),
                                    Member<&Proof::checker>(), Member<&Proof::good_until>()};
};

template <>
struct Members<ImagePullSecret> {
  static constexpr std::tuple value{
      Member<&ImagePullSecret::uid>(), Member<&ImagePullSecret::namespace_name>(),
      Member<&ImagePullSecret::name>(), Member<&ImagePullSecret::credential_hash>(),
      Member<&ImagePullSecret::proof>()};
};

template <>
struct Members<ImagePullServiceAccount> {
  static constexpr std::tuple value{
      Member<&ImagePullServiceAccount::uid>(), Member<&ImagePullServiceAccount::namespace_name>(),
      Member<&ImagePullServiceAccount::name>(), Member<&ImagePullServiceAccount::proof>()};
};

template <>
struct Members<ImagePullCredentials> {
  static constexpr std::tuple value{Member<&ImagePullCredentials::node_pods_accessible>(),
                                    Member<&ImagePullCredentials::kubernetes_secrets>(),
                                    Member<&ImagePullCredentials::kubernetes_service_accounts>(),
                                    Member<&ImagePullCredentials::node_pods_proof>()};
};

template <>
struct Members<Platform> {
  static constexpr std::tuple value{Member<&Platform::architecture>(), Member<&Platform::os>(),
                                    Member<&Platform::os_version>(),
                                    Member<&Platform::os_features>(), Member<&Platform::variant>()};
};

template <>
struct Members<PulledManifest> {
  static constexpr std::tuple value{Member<&PulledManifest::digest>(),
                                    Member<&PulledManifest::platform>()};
};

template <>
struct Members<ProofTerms> {
  static constexpr std::tuple value{Member<&ProofTerms::checker>(),
                                    Member<&ProofTerms::good_until>()};
};

template <>
struct Members<PullResult> {
  static constexpr std::tuple value{Member<&PullResult::pull>(), Member<&PullResult::manifest>(),
                                    Member<&PullResult::image>(), Member<&PullResult::terms>()};
};

template <>
struct Members<PullError> {
  static constexpr std::tuple value{Member<&PullError::failure>(),
                                    Member<&PullError::error_class>(), Member<&PullError::pull>()};
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_CONTROL_DESCRIBED_H_
