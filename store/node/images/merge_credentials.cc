#include "store/node/images/merge_credentials.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>


namespace waybill::internal {

namespace {

// Merges secrets or service accounts by their coordinates, and sorts them as the kubelet does.
// Returns whether anything changed; if not, the order is unchanged, too.
template <typename T>
bool Merge(std::vector<T>& all, const std::vector<T>& added, std::chrono::seconds most,
           const Clocks& now) {
  std::map<std::tuple<std::string, std::string, std::string>, T> merged;
  for (const T& one : all) {
    merged.insert_or_assign({one.namespace_name, one.name, one.uid}, one);
  }
  bool changed = false;
  for (const T& one : added) {
    const auto [at, is_new] = merged.try_emplace({one.namespace_name, one.name, one.uid}, one);
    const bool same = at->second == one;
    changed = changed || is_new || !same;
    const Proof proof = same ? Better(at->second.proof, one.proof, most, now) : one.proof;
    at->second = one;
    at->second.proof = proof;
  }
  if (!changed) {
    for (T& one : all) one.proof = merged.at({one.namespace_name, one.name, one.uid}).proof;
    return false;
  }
  all.clear();
  for (auto& [coordinates, one] : merged) all.push_back(std::move(one));
  return true;
}

}  // namespace

Proof Better(const Proof& a, const Proof& b, std::chrono::seconds most, const Clocks& now) {
  const auto when = [](const Proof& proof) { return std::tie(proof.proven, proof.pull_began); };
  const Proof& later = when(a) < when(b) ? b : a;
  const Proof& earlier = &later == &a ? b : a;
  if (later.checker != earlier.checker) {
    const bool stays = earlier.checker == VerifiedBy::kRegistry && !IsPastAge(earlier, most, now);
    return stays ? earlier : later;
  }
  Proof better = later;
  better.pull_began = std::max(a.pull_began, b.pull_began);
  return better;
}

bool MergeCredentials(ImagePulledRecord& record, std::string_view image_name,
                      const ImagePullCredentials& added, const Aging& aging) {
  if (added.empty()) return false;
  const auto [at, is_new] = record.credential_mapping.try_emplace(std::string(image_name), added);
  if (is_new) return true;
  ImagePullCredentials& entry = at->second;
  if (entry.node_pods_accessible) {
    if (added.node_pods_accessible) {
      entry.node_pods_proof =
          Better(entry.node_pods_proof, added.node_pods_proof, aging.limits.node_pods, aging.now);
    }
    return false;
  }
  if (added.node_pods_accessible) {
    entry = {};
    entry.node_pods_accessible = true;
    entry.node_pods_proof = added.node_pods_proof;
    return true;
  }
  if (!added.kubernetes_secrets.empty()) {
    return Merge(entry.kubernetes_secrets, added.kubernetes_secrets, aging.limits.credentials,
                 aging.now);
  }
  return Merge(entry.kubernetes_service_accounts, added.kubernetes_service_accounts,
               AgeOfServiceAccounts(aging.limits), aging.now);
}

}  // namespace waybill::internal
