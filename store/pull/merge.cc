#include "store/pull/merge.h"

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace waybill::internal {

namespace {

// In the order that the kubelet sorts by.
using Coordinates = std::tuple<std::string, std::string, std::string>;

template <typename T>
Coordinates CoordinatesOf(const T& value) {
  return {value.namespace_name, value.name, value.uid};
}

bool MergeSecrets(std::vector<ImagePullSecret>& secrets,
                  const std::vector<ImagePullSecret>& added) {
  std::map<Coordinates, std::string> hashes;
  for (const auto& s : secrets) hashes[CoordinatesOf(s)] = s.credential_hash;
  bool changed = false;
  for (const auto& s : added) {
    const auto [at, is_new] = hashes.try_emplace(CoordinatesOf(s), s.credential_hash);
    if (is_new || at->second != s.credential_hash) {
      at->second = s.credential_hash;
      changed = true;
    }
  }
  if (!changed) return false;
  secrets.clear();
  for (const auto& [at, hash] : hashes) {
    secrets.push_back({std::get<2>(at), std::get<0>(at), std::get<1>(at), hash});
  }
  return true;
}

bool MergeServiceAccounts(std::vector<ImagePullServiceAccount>& accounts,
                          const std::vector<ImagePullServiceAccount>& added) {
  std::set<Coordinates> all;
  for (const auto& s : accounts) all.insert(CoordinatesOf(s));
  bool changed = false;
  for (const auto& s : added) changed = all.insert(CoordinatesOf(s)).second || changed;
  if (!changed) return false;
  accounts.clear();
  for (const auto& at : all)
    accounts.push_back({std::get<2>(at), std::get<0>(at), std::get<1>(at)});
  return true;
}

}  // namespace

bool MergeCredentials(ImagePulledRecord& record, std::string_view image_name,
                      const ImagePullCredentials& added) {
  if (added.empty()) return false;
  const auto [at, is_new] = record.credential_mapping.try_emplace(std::string(image_name), added);
  if (is_new) return true;
  ImagePullCredentials& entry = at->second;
  if (entry.node_pods_accessible) return false;
  if (added.node_pods_accessible) {
    entry = {};
    entry.node_pods_accessible = true;
    return true;
  }
  if (!added.kubernetes_secrets.empty()) {
    return MergeSecrets(entry.kubernetes_secrets, added.kubernetes_secrets);
  }
  return MergeServiceAccounts(entry.kubernetes_service_accounts, added.kubernetes_service_accounts);
}

}  // namespace waybill::internal
