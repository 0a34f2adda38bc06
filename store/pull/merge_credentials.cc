#include "store/pull/merge_credentials.h"

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
bool Merge(std::vector<T>& all, const std::vector<T>& added) {
  std::map<std::tuple<std::string, std::string, std::string>, T> merged;
  for (const T& one : all) {
    merged.insert_or_assign({one.namespace_name, one.name, one.uid}, one);
  }
  bool changed = false;
  for (const T& one : added) {
    const auto [at, is_new] = merged.try_emplace({one.namespace_name, one.name, one.uid}, one);
    changed = changed || is_new || at->second != one;
    at->second = one;
  }
  if (!changed) return false;
  all.clear();
  for (auto& [coordinates, one] : merged) all.push_back(std::move(one));
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
    return Merge(entry.kubernetes_secrets, added.kubernetes_secrets);
  }
  return Merge(entry.kubernetes_service_accounts, added.kubernetes_service_accounts);
}

}  // namespace waybill::internal
