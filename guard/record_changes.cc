#include "guard/record_changes.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>


namespace waybill::guard {
namespace {

// Of two Secrets, or of two service accounts.
template <typename T>
bool SameCoordinates(const T& a, const T& b) {
  return a.uid == b.uid && a.namespace_name == b.namespace_name && a.name == b.name;
}

bool Holds(const ImagePullCredentials& all, const ImagePullSecret& secret) {
  return std::ranges::any_of(all.kubernetes_secrets, [&](const ImagePullSecret& one) {
    return SameCoordinates(one, secret) && one.credential_hash == secret.credential_hash;
  });
}

bool Holds(const ImagePullCredentials& all, const ImagePullServiceAccount& account) {
  return std::ranges::any_of(
      all.kubernetes_service_accounts,
      [&](const ImagePullServiceAccount& one) { return SameCoordinates(one, account); });
}

// `into`, with what only `from` has. If both have a hash of one secret, that of `into` stays.
ImagePullCredentials UnitedCredentials(ImagePullCredentials into,
                                       const ImagePullCredentials& from) {
  if (into.node_pods_accessible || from.node_pods_accessible) {
    if (!into.node_pods_accessible) into.node_pods_proof = from.node_pods_proof;
    into.node_pods_accessible = true;
    into.kubernetes_secrets.clear();
    into.kubernetes_service_accounts.clear();
    return into;
  }
  for (const ImagePullSecret& secret : from.kubernetes_secrets) {
    const bool known = std::ranges::any_of(
        into.kubernetes_secrets,
        [&](const ImagePullSecret& one) { return SameCoordinates(one, secret); });
    if (!known) into.kubernetes_secrets.push_back(secret);
  }
  for (const ImagePullServiceAccount& account : from.kubernetes_service_accounts) {
    if (!Holds(into, account)) into.kubernetes_service_accounts.push_back(account);
  }
  return into;
}

// In the kubelet's order, and without entries that say nothing.
std::map<std::string, ImagePullCredentials> Sorted(
    std::map<std::string, ImagePullCredentials> all) {
  std::erase_if(all, [](const auto& entry) { return entry.second.empty(); });
  for (auto& [name, credentials] : all) {
    const auto order = [](const auto& one) {
      return std::tie(one.namespace_name, one.name, one.uid);
    };
    std::ranges::sort(credentials.kubernetes_secrets, {}, order);
    std::ranges::sort(credentials.kubernetes_service_accounts, {}, order);
  }
  return all;
}

}  // namespace

bool IsPlaceholder(const ImagePulledRecord& record) {
  return !record.last_updated && record.credential_mapping.empty();
}

bool SaysTheSame(const ImagePulledRecord& a, const ImagePulledRecord& b) {
  return Sorted(a.credential_mapping) == Sorted(b.credential_mapping);
}

ImagePulledRecord United(const ImagePulledRecord& newer, const ImagePulledRecord& older) {
  ImagePulledRecord united = newer;
  for (const auto& [name, credentials] : older.credential_mapping) {
    auto [at, is_new] = united.credential_mapping.emplace(name, credentials);
    if (!is_new) at->second = UnitedCredentials(at->second, credentials);
  }
  return united;
}

ImagePulledRecord Added(const ImagePulledRecord& after, const ImagePulledRecord& before) {
  ImagePulledRecord added = after;
  for (auto& [name, credentials] : added.credential_mapping) {
    const auto was = before.credential_mapping.find(name);
    if (was == before.credential_mapping.end()) continue;
    if (was->second.node_pods_accessible) credentials.node_pods_accessible = false;
    std::erase_if(credentials.kubernetes_secrets,
                  [&](const ImagePullSecret& secret) { return Holds(was->second, secret); });
    std::erase_if(credentials.kubernetes_service_accounts,
                  [&](const ImagePullServiceAccount& one) { return Holds(was->second, one); });
  }
  std::erase_if(added.credential_mapping, [](const auto& entry) { return entry.second.empty(); });
  return added;
}

ImagePulledRecord Common(const ImagePulledRecord& a, const ImagePulledRecord& b) {
  return Added(a, Added(a, b));
}

bool OnlyAPullWrites(const ImagePullCredentials* before, const ImagePullCredentials& after) {
  if (after.empty()) return false;
  if (before == nullptr) return true;
  if (after.node_pods_accessible) return !before->node_pods_accessible;
  std::size_t added = 0;
  for (const ImagePullSecret& secret : after.kubernetes_secrets) {
    if (Holds(*before, secret)) continue;
    ++added;
    const bool is_akin =
        std::ranges::any_of(before->kubernetes_secrets, [&](const ImagePullSecret& one) {
          return SameCoordinates(one, secret) || one.credential_hash == secret.credential_hash;
        });
    if (is_akin) return false;
  }
  for (const ImagePullServiceAccount& account : after.kubernetes_service_accounts) {
    if (!Holds(*before, account)) ++added;
  }
  return added == 1;
}

}  // namespace waybill::guard
