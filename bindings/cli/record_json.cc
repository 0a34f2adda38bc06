#include "bindings/cli/record_json.h"

#include <algorithm>
#include <tuple>

#include "waybill/kubelet_format.h"

namespace waybill::cli {
namespace {

Json CredentialsJson(const ImagePullCredentials& credentials, Hashes hashes) {
  Json entry = Json::object();
  if (credentials.node_pods_accessible) entry["nodePodsAccessible"] = true;
  for (const ImagePullSecret& secret : credentials.kubernetes_secrets) {
    const bool redact = hashes == Hashes::kRedacted && !secret.credential_hash.empty();
    entry["kubernetesSecrets"].push_back(
        {{"uid", secret.uid},
         {"namespace", secret.namespace_name},
         {"name", secret.name},
         {"credentialHash", redact ? "redacted" : secret.credential_hash}});
  }
  for (const ImagePullServiceAccount& account : credentials.kubernetes_service_accounts) {
    entry["kubernetesServiceAccounts"].push_back(
        {{"uid", account.uid}, {"namespace", account.namespace_name}, {"name", account.name}});
  }
  return entry;
}

Json ProofJson(const Proof& proof) {
  Json json = {{"proven", JsonOf(proof.proven)}, {"pullBegan", proof.pull_began}};
  if (proof.checker != VerifiedBy::kUnknown) json["checker"] = VerifiedByName(proof.checker);
  if (proof.good_until) json["goodUntil"] = JsonOf(proof.good_until);
  return json;
}

// When each credential was proven, and by whom: in the order of credentialMapping.
Json ProofsJson(const ImagePulledRecord& record) {
  const auto is_known = [](const Proof& proof) { return proof.proven || proof.pull_began != 0; };
  Json proofs = Json::object();
  for (const auto& [name, entry] : record.credential_mapping) {
    Json of_name = Json::object();
    bool known = false;
    if (entry.node_pods_accessible) {
      known = is_known(entry.node_pods_proof);
      of_name["nodePods"] = ProofJson(entry.node_pods_proof);
    }
    for (const ImagePullSecret& secret : entry.kubernetes_secrets) {
      known = known || is_known(secret.proof);
      of_name["kubernetesSecrets"].push_back(ProofJson(secret.proof));
    }
    for (const ImagePullServiceAccount& account : entry.kubernetes_service_accounts) {
      known = known || is_known(account.proof);
      of_name["kubernetesServiceAccounts"].push_back(ProofJson(account.proof));
    }
    if (known) proofs[name] = std::move(of_name);
  }
  return proofs;
}

}  // namespace

Json JsonOf(const std::optional<Timestamp>& time) {
  if (!time) return nullptr;
  // What a kubelet's file says to the second is stored as that second's end.
  constexpr std::int32_t kEndOfSecond = 999'999'999;
  return FormatTimestamp(time->nanoseconds == kEndOfSecond ? Timestamp{.seconds = time->seconds}
                                                           : *time);
}

Json JsonOf(const Platform& platform) {
  Json object = {{"architecture", platform.architecture}, {"os", platform.os}};
  if (!platform.os_version.empty()) object["osVersion"] = platform.os_version;
  if (!platform.os_features.empty()) object["osFeatures"] = platform.os_features;
  if (!platform.variant.empty()) object["variant"] = platform.variant;
  return object;
}

Json JsonOf(const RuntimeHandler& handler) {
  Json object = {{"name", handler.name},
                 {"default", handler.is_default},
                 {"userNamespaces", handler.user_namespaces}};
  if (handler.guest_platform) object["guestPlatform"] = JsonOf(*handler.guest_platform);
  return object;
}

Json JsonOf(const ImagePulledRecord& record, Hashes hashes) {
  Json mapping = Json::object();
  for (const auto& [name, credentials] : record.credential_mapping) {
    mapping[name] = CredentialsJson(credentials, hashes);
  }
  Json object = {{"imageRef", record.image_ref},
                 {"lastUpdatedTime", JsonOf(record.last_updated)},
                 {"credentialMapping", mapping},
                 {"stamp", record.stamp}};
  if (!record.runtime_handler.empty()) object["runtimeHandler"] = record.runtime_handler;
  if (!record.manifest_digest.empty()) object["manifestDigest"] = record.manifest_digest;
  if (record.platform) object["platform"] = JsonOf(*record.platform);
  if (record.guest_platform) object["guestPlatform"] = JsonOf(*record.guest_platform);
  if (!record.closed_because.empty()) object["closedBecause"] = record.closed_because;
  if (record.absent_since) object["absentSince"] = JsonOf(record.absent_since);
  Json proofs = ProofsJson(record);
  if (!proofs.empty()) object["proofs"] = std::move(proofs);
  return object;
}

Json JsonOf(const Revocation& what, Hashes hashes) {
  Json object = {{"kind", RevocationKindName(what.kind)},
                 {"commit", what.commit},
                 {"since", FormatTimestamp(what.since)},
                 {"untidied", what.untidied}};
  if (!what.who.namespace_name.empty()) object["namespace"] = what.who.namespace_name;
  if (!what.who.name.empty()) object["name"] = what.who.name;
  if (!what.who.uid.empty()) object["uid"] = what.who.uid;
  if (!what.image_ref.empty()) object["imageRef"] = what.image_ref;
  if (!what.runtime_handler.empty()) object["runtimeHandler"] = what.runtime_handler;
  if (!what.credential_hash.empty()) {
    object["credentialHash"] = hashes == Hashes::kShown ? what.credential_hash : "redacted";
  }
  return object;
}

Json JsonOf(const Backup& backup) {
  return {{"name", backup.path.filename().string()},
          {"path", backup.path.string()},
          {"schemaVersion", backup.schema_version},
          {"commitSequence", backup.commit_sequence},
          {"bytes", backup.bytes}};
}

Json JsonOf(const ImagePullIntent& intent) {
  Json object = {{"image", intent.image}};
  if (!intent.runtime_handler.empty()) object["runtimeHandler"] = intent.runtime_handler;
  return object;
}

void SortForReading(std::vector<ImagePulledRecord>& records) {
  std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) {
    return std::tie(a.image_ref, a.runtime_handler) < std::tie(b.image_ref, b.runtime_handler);
  });
}

void SortForReading(std::vector<Revocation>& revocations) {
  const auto in_order = [](const Revocation& one) {
    return std::tie(one.commit, one.kind, one.who, one.image_ref, one.runtime_handler,
                    one.credential_hash);
  };
  std::sort(revocations.begin(), revocations.end(),
            [&](const auto& a, const auto& b) { return in_order(a) < in_order(b); });
}

std::string_view QuarantineKindName(QuarantineKind kind) {
  return kind == QuarantineKind::kImageRef ? "imageRef" : "image";
}

std::string_view PoolRelationName(PoolRelation relation) {
  constexpr std::string_view kNames[] = {"inPool", "outsidePool", "otherLength"};
  return kNames[static_cast<std::size_t>(relation)];
}

std::string AccessText(const ImagePullCredentials& credentials) {
  if (credentials.node_pods_accessible) return "all pods of the node";
  if (credentials.empty()) return "nobody until pulled again";
  std::string text;
  if (!credentials.kubernetes_secrets.empty()) {
    text = HowMany(credentials.kubernetes_secrets.size(), "secret");
  }
  if (!credentials.kubernetes_service_accounts.empty()) {
    if (!text.empty()) text += ", ";
    text += HowMany(credentials.kubernetes_service_accounts.size(), "service account");
  }
  return text;
}

}  // namespace waybill::cli
