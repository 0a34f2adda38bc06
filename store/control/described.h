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
inline constexpr auto kLast<VerifiedBy> = 3;
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
struct Members<ListedImage> {
  static constexpr std::tuple value{
      Member<&ListedImage::id>(),           Member<&ListedImage::repo_tags>(),
      Member<&ListedImage::repo_digests>(), Member<&ListedImage::runtime_handler>(),
      Member<&ListedImage::pinned>(),       Member<&ListedImage::imported>()};
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
struct Members<ClassifiedImage> {
  static constexpr std::tuple value{
      Member<&ClassifiedImage::image_ref>(), Member<&ClassifiedImage::runtime_handler>(),
      Member<&ClassifiedImage::name>(), Member<&ClassifiedImage::preloaded>(),
      Member<&ClassifiedImage::because>()};
};

template <>
struct Members<ClassifyReport> {
  static constexpr std::tuple value{Member<&ClassifyReport::listed>(),
                                    Member<&ClassifyReport::repeated>(),
                                    Member<&ClassifyReport::not_names>(),
                                    Member<&ClassifyReport::known>(),
                                    Member<&ClassifyReport::preloaded>(),
                                    Member<&ClassifyReport::closed>(),
                                    Member<&ClassifyReport::left>(),
                                    Member<&ClassifyReport::united>(),
                                    Member<&ClassifyReport::pulls_settled>(),
                                    Member<&ClassifyReport::records_removed>(),
                                    Member<&ClassifyReport::preloaded_removed>(),
                                    Member<&ClassifyReport::judged>(),
                                    Member<&ClassifyReport::shared_digests>(),
                                    Member<&ClassifyReport::not_judged_because>()};
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
struct Members<CleanUpReport> {
  static constexpr std::tuple value{
      Member<&CleanUpReport::examined>(), Member<&CleanUpReport::released>(),
      Member<&CleanUpReport::kept_in_lists>(), Member<&CleanUpReport::kept_newer>(),
      Member<&CleanUpReport::released_pods>()};
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
struct Members<RevokeReport> {
  static constexpr std::tuple value{
      Member<&RevokeReport::records>(),          Member<&RevokeReport::secrets>(),
      Member<&RevokeReport::service_accounts>(), Member<&RevokeReport::node_pods>(),
      Member<&RevokeReport::equal_hashes>(),     Member<&RevokeReport::stored>(),
      Member<&RevokeReport::untidied>()};
};

template <>
struct Members<ExistingCredentials> {
  static constexpr std::tuple value{Member<&ExistingCredentials::secrets>(),
                                    Member<&ExistingCredentials::service_accounts>()};
};

template <>
struct Members<RevokeMissingReport> {
  static constexpr std::tuple value{
      Member<&RevokeMissingReport::forgotten>(), Member<&RevokeMissingReport::known>(),
      Member<&RevokeMissingReport::gone>(), Member<&RevokeMissingReport::newer>()};
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
