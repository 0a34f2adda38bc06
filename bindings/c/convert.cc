#include "bindings/c/convert.h"

#include <algorithm>
#include <iterator>

namespace waybill::c {

bool IsTime(waybill_timestamp time) {
  return time.nanoseconds >= 0 && time.nanoseconds <= 999'999'999 &&
         time.seconds >= -62'135'596'800 && time.seconds <= 253'402'300'799;
}

std::optional<Timestamp> ToTimestamp(const waybill_timestamp* time, Arguments& arguments) {
  if (time == nullptr) return std::nullopt;
  if (!IsTime(*time)) arguments.Wrong("the time", "is outside the years 1 to 9999");
  return ToTimestamp(*time);
}

ImageCopy ToImageCopy(const waybill_image_copy& copy, Arguments& arguments) {
  return {.image = arguments.Text(copy.image, "copy.image"),
          .image_ref = arguments.Text(copy.image_ref, "copy.image_ref"),
          .runtime_handler = arguments.Text(copy.runtime_handler, "copy.runtime_handler")};
}

Platform ToPlatform(const waybill_platform& platform, Arguments& arguments) {
  return {.architecture = arguments.String(platform.architecture, "architecture"),
          .os = arguments.String(platform.os, "os"),
          .os_version = arguments.String(platform.os_version, "os_version"),
          .os_features = arguments.Strings(platform.os_features, "os_features"),
          .variant = arguments.String(platform.variant, "variant")};
}

std::optional<Platform> ToPlatform(const waybill_platform* platform, Arguments& arguments) {
  if (platform == nullptr) return std::nullopt;
  return ToPlatform(*platform, arguments);
}

ImagePullCredentials ToCredentials(const waybill_image_pull_credentials& credentials,
                                   Arguments& arguments) {
  ImagePullCredentials to;
  to.node_pods_accessible = credentials.node_pods_accessible;
  for (const auto& secret :
       arguments.Array(credentials.secrets, credentials.secret_count, "secrets")) {
    to.kubernetes_secrets.push_back({arguments.String(secret.uid, "uid"),
                                     arguments.String(secret.namespace_name, "namespace_name"),
                                     arguments.String(secret.name, "name"),
                                     arguments.String(secret.credential_hash, "credential_hash")});
  }
  for (const auto& account : arguments.Array(
           credentials.service_accounts, credentials.service_account_count, "service_accounts")) {
    to.kubernetes_service_accounts.push_back(
        {arguments.String(account.uid, "uid"),
         arguments.String(account.namespace_name, "namespace_name"),
         arguments.String(account.name, "name")});
  }
  return to;
}

ImagePulledRecord ToRecord(const waybill_image_pulled_record& record, Arguments& arguments) {
  ImagePulledRecord to;
  to.image_ref = arguments.String(record.image_ref, "image_ref");
  to.last_updated = ToTimestamp(record.last_updated, arguments);
  for (const auto& entry : arguments.Array(record.credential_mapping,
                                           record.credential_mapping_count, "credential_mapping")) {
    const bool is_new = to.credential_mapping
                            .try_emplace(arguments.String(entry.image_name, "image_name"),
                                         ToCredentials(entry.credentials, arguments))
                            .second;
    if (!is_new) arguments.Wrong("credential_mapping", "has two entries of one image name");
  }
  to.runtime_handler = arguments.String(record.runtime_handler, "runtime_handler");
  to.manifest_digest = arguments.String(record.manifest_digest, "manifest_digest");
  to.platform = ToPlatform(record.platform, arguments);
  return to;
}

ImagePreloadedRecord ToPreloaded(const waybill_image_preloaded_record& record,
                                 Arguments& arguments) {
  return {.image_ref = arguments.String(record.image_ref, "image_ref"),
          .last_updated = ToTimestamp(record.last_updated, arguments),
          .observed_images = arguments.Strings(record.observed_images, "observed_images")};
}

PulledManifest ToManifest(const waybill_pulled_manifest& manifest, Arguments& arguments) {
  return {.digest = arguments.String(manifest.digest, "digest"),
          .platform = ToPlatform(manifest.platform, arguments)};
}

ImageOnNode ToImage(const waybill_image_on_node& image, Arguments& arguments) {
  return {.id = arguments.String(image.id, "id"),
          .repo_tags = arguments.Strings(image.repo_tags, "repo_tags"),
          .repo_digests = arguments.Strings(image.repo_digests, "repo_digests"),
          .runtime_handler = arguments.String(image.runtime_handler, "runtime_handler"),
          .pinned = image.pinned};
}

std::vector<ImageOnNode> ToImages(const waybill_images_on_node& images, Arguments& arguments) {
  std::vector<ImageOnNode> to;
  for (const auto& image : arguments.Array(images.items, images.count, "images")) {
    to.push_back(ToImage(image, arguments));
  }
  return to;
}

std::optional<std::vector<ImageOnNode>> ToImages(const waybill_images_on_node* images,
                                                 Arguments& arguments) {
  if (images == nullptr) return std::nullopt;
  return ToImages(*images, arguments);
}

OpenPull ToOpenPull(const waybill_open_pull& pull, Arguments& arguments) {
  // The first state is 1.
  if (pull.state < WAYBILL_OPEN_PULL_RUNNING) arguments.Wrong("state", "has no such value");
  return {.id = {pull.id},
          .anything = pull.anything,
          .image = arguments.String(pull.image, "image"),
          .runtime_handler = arguments.String(pull.runtime_handler, "runtime_handler"),
          .state = arguments.OneOf(pull.state, PullState::kUnknown, "state"),
          .began = ToTimestamp(&pull.began, arguments).value_or(Timestamp{}),
          .ended = ToTimestamp(pull.ended, arguments),
          .ended_at = ToBootTime(pull.ended_at),
          .stamp = pull.stamp,
          .several = pull.several};
}

BootTime ToBootTime(const waybill_boot_time& time) {
  BootTime to{.nanoseconds = time.nanoseconds};
  std::copy(std::begin(time.boot_id), std::end(time.boot_id), to.boot_id.begin());
  return to;
}

ListToken ToToken(const waybill_list_token& token) {
  return {.commit = token.commit, .drawn = ToBootTime(token.drawn), .store = token.store};
}

ChangeOptions ToChangeOptions(const waybill_change_options* options, Arguments& arguments) {
  if (options == nullptr) return {};
  const auto o = arguments.Options(options, "options");
  return {.allow_empty = o.allow_empty, .dry_run = o.dry_run};
}

std::vector<RuntimeHandler> ToHandlers(const waybill_runtime_handlers& handlers,
                                       Arguments& arguments) {
  std::vector<RuntimeHandler> to;
  for (const auto& handler : arguments.Array(handlers.items, handlers.count, "handlers")) {
    to.push_back({.name = arguments.String(handler.name, "name"),
                  .is_default = handler.is_default,
                  .user_namespaces = handler.user_namespaces,
                  .guest_platform = ToPlatform(handler.guest_platform, arguments)});
  }
  return to;
}

UserNamespacePool ToPool(const waybill_user_namespace_pool& pool) {
  return {.first_id = pool.first_id,
          .id_count = pool.id_count,
          .ids_per_pod = pool.ids_per_pod,
          .max_pods = pool.max_pods};
}

CredentialName ToCredentialName(const waybill_credential_name& who, Arguments& arguments) {
  return {.namespace_name = arguments.String(who.namespace_name, "namespace_name"),
          .name = arguments.String(who.name, "name"),
          .uid = arguments.String(who.uid, "uid")};
}

waybill_boot_time ToC(const BootTime& time) {
  waybill_boot_time to{.boot_id = {}, .nanoseconds = time.nanoseconds};
  std::copy(time.boot_id.begin(), time.boot_id.end(), to.boot_id);
  return to;
}

waybill_list_token ToC(const ListToken& token) {
  return {token.commit, ToC(token.drawn), token.store};
}

waybill_user_namespace_pool ToC(const UserNamespacePool& pool) {
  return {pool.first_id, pool.id_count, pool.ids_per_pod, pool.max_pods};
}

waybill_platform ToC(const Platform& platform, Memory& memory) {
  return {Copy(platform.architecture, memory), Copy(platform.os, memory),
          Copy(platform.os_version, memory), CopyStrings(platform.os_features, memory),
          Copy(platform.variant, memory)};
}

const waybill_platform* ToC(const std::optional<Platform>& platform, Memory& memory) {
  return platform ? CopyOne(ToC(*platform, memory), memory) : nullptr;
}

namespace {

const waybill_timestamp* ToC(const std::optional<Timestamp>& time, Memory& memory) {
  return time ? CopyOne(c::ToC(*time), memory) : nullptr;
}

waybill_image_pull_credentials ToC(const ImagePullCredentials& credentials, Memory& memory) {
  const auto secret = [](const ImagePullSecret& from, Memory& into) {
    return waybill_image_pull_secret{Copy(from.uid, into), Copy(from.namespace_name, into),
                                     Copy(from.name, into), Copy(from.credential_hash, into)};
  };
  const auto account = [](const ImagePullServiceAccount& from, Memory& into) {
    return waybill_image_pull_service_account{Copy(from.uid, into), Copy(from.namespace_name, into),
                                              Copy(from.name, into)};
  };
  const auto& secrets = credentials.kubernetes_secrets;
  const auto& accounts = credentials.kubernetes_service_accounts;
  return {credentials.node_pods_accessible,
          CopyEach<waybill_image_pull_secret>(secrets, memory, secret), secrets.size(),
          CopyEach<waybill_image_pull_service_account>(accounts, memory, account), accounts.size()};
}

}  // namespace

waybill_proof ToC(const Proof& proof, Memory& memory) {
  return {ToC(proof.proven, memory), proof.pull_began};
}

waybill_credential_name ToC(const CredentialName& who, Memory& memory) {
  return {.namespace_name = Copy(who.namespace_name, memory),
          .name = Copy(who.name, memory),
          .uid = Copy(who.uid, memory)};
}

waybill_image_pulled_record ToC(const ImagePulledRecord& record, Memory& memory) {
  const auto entry = [](const auto& from, Memory& into) {
    return waybill_credential_mapping{Copy(from.first, into), ToC(from.second, into)};
  };
  return {.image_ref = Copy(record.image_ref, memory),
          .last_updated = ToC(record.last_updated, memory),
          .credential_mapping =
              CopyEach<waybill_credential_mapping>(record.credential_mapping, memory, entry),
          .credential_mapping_count = record.credential_mapping.size(),
          .stamp = record.stamp,
          .runtime_handler = Copy(record.runtime_handler, memory),
          .manifest_digest = Copy(record.manifest_digest, memory),
          .platform = c::ToC(record.platform, memory),
          .guest_platform = c::ToC(record.guest_platform, memory),
          .closed_because = Copy(record.closed_because, memory)};
}

waybill_proven_record ToProvenC(const ImagePulledRecord& record, Memory& memory) {
  const auto proof = [](const auto& credential, Memory& into) {
    return ToC(credential.proof, into);
  };
  const auto entry = [&](const auto& from, Memory& into) {
    const ImagePullCredentials& credentials = from.second;
    return waybill_credential_proofs{
        ToC(credentials.node_pods_proof, into),
        CopyEach<waybill_proof>(credentials.kubernetes_secrets, into, proof),
        CopyEach<waybill_proof>(credentials.kubernetes_service_accounts, into, proof)};
  };
  // In the order of the map, as the record's own entries.
  return {c::ToC(record, memory),
          CopyEach<waybill_credential_proofs>(record.credential_mapping, memory, entry)};
}

waybill_revocation ToC(const Revocation& revocation, Memory& memory) {
  return {.kind = static_cast<std::int32_t>(revocation.kind),
          .who = ToC(revocation.who, memory),
          .image_ref = Copy(revocation.image_ref, memory),
          .runtime_handler = Copy(revocation.runtime_handler, memory),
          .credential_hash = Copy(revocation.credential_hash, memory),
          .commit = revocation.commit,
          .since = ToC(revocation.since),
          .untidied = revocation.untidied};
}

waybill_image_pull_intent ToC(const ImagePullIntent& intent, Memory& memory) {
  return {Copy(intent.image, memory), Copy(intent.runtime_handler, memory)};
}

waybill_image_preloaded_record ToC(const ImagePreloadedRecord& record, Memory& memory) {
  return {Copy(record.image_ref, memory), ToC(record.last_updated, memory),
          CopyStrings(record.observed_images, memory)};
}

waybill_image_on_node ToC(const ImageOnNode& image, Memory& memory) {
  return {Copy(image.id, memory), CopyStrings(image.repo_tags, memory),
          CopyStrings(image.repo_digests, memory), Copy(image.runtime_handler, memory),
          image.pinned};
}

waybill_open_pull ToC(const OpenPull& pull, Memory& memory) {
  return {.id = pull.id.value,
          .anything = pull.anything,
          .several = pull.several,
          .image = Copy(pull.image, memory),
          .runtime_handler = Copy(pull.runtime_handler, memory),
          .state = static_cast<std::int32_t>(pull.state),
          .began = ToC(pull.began),
          .ended = ToC(pull.ended, memory),
          .ended_at = ToC(pull.ended_at),
          .stamp = pull.stamp};
}

waybill_ledger_entry ToC(const LedgerEntry& entry, Memory& memory) {
  return {.image_ref = Copy(entry.image_ref, memory),
          .runtime_handler = Copy(entry.runtime_handler, memory),
          .names = CopyStrings(entry.names, memory),
          .source = Copy(entry.source, memory),
          .reason = Copy(entry.reason, memory),
          .since = ToC(entry.since),
          .stamp = entry.stamp};
}

waybill_quarantine_entry ToC(const QuarantineEntry& entry, Memory& memory) {
  return {static_cast<std::int32_t>(entry.kind), Copy(entry.sha256, memory),
          Copy(entry.source, memory), Copy(entry.reason, memory), ToC(entry.since)};
}

waybill_runtime_handler ToC(const RuntimeHandler& handler, Memory& memory) {
  return {Copy(handler.name, memory), handler.is_default, handler.user_namespaces,
          c::ToC(handler.guest_platform, memory)};
}

waybill_manifest_descriptor ToC(const ManifestDescriptor& manifest, Memory& memory) {
  return {Copy(manifest.media_type, memory), Copy(manifest.digest, memory), manifest.size,
          c::ToC(manifest.platform, memory), manifest.is_attestation};
}

waybill_registry_auth ToC(const RegistryAuth& auth, Memory& memory) {
  return {Copy(auth.registry, memory), Copy(auth.auth.username, memory),
          Copy(auth.auth.password, memory), Copy(auth.auth.email, memory)};
}

waybill_user_namespace_allocation ToC(const UserNamespaceAllocation& allocation, Memory& memory) {
  return {Copy(allocation.pod_uid, memory), allocation.host_id, allocation.length,
          ToC(allocation.created), static_cast<std::int32_t>(allocation.relation)};
}

waybill_held_pod ToC(const HeldPod& pod, Memory& memory) {
  const auto range = [](const HostIdRange& from, Memory&) {
    return waybill_host_id_range{from.first, from.length};
  };
  return {Copy(pod.pod_uid, memory),
          CopyEach<waybill_host_id_range>(pod.ranges, memory, range),
          pod.ranges.size(),
          Copy(pod.source, memory),
          Copy(pod.reason, memory),
          ToC(pod.since),
          static_cast<std::int32_t>(pod.kind)};
}

waybill_trust_event ToC(const TrustEvent& event, Memory& memory) {
  return {ToC(event.at), static_cast<std::int32_t>(event.kind),
          static_cast<std::int32_t>(event.action), event.distrustful, Copy(event.reason, memory)};
}

waybill_backup ToC(const Backup& backup, Memory& memory) {
  return {Copy(backup.path.native(), memory), backup.schema_version, backup.commit_sequence,
          backup.bytes};
}

}  // namespace waybill::c
