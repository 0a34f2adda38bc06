#include "store/images/proofs.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "waybill/limits.h"

namespace waybill::internal {

namespace {

bool HasAny(const ImagePullCredentials& entry) {
  return !entry.kubernetes_secrets.empty() || !entry.kubernetes_service_accounts.empty();
}

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

// A list only closed it: another row tells the handler's guest.
bool IsBare(const PulledPart& pulled) {
  return !pulled.guest_platform && pulled.entries.empty() && pulled.manifest_digest.empty();
}

PulledPart UniteProofs(PulledPart newer, PulledPart older, const Aging& aging) {
  if (IsBare(newer)) newer.guest_platform = older.guest_platform;
  const bool by_operator =
      newer.closed_by == ClosedBy::kOperator || older.closed_by == ClosedBy::kOperator;
  if (by_operator) {
    newer.closed_by = ClosedBy::kOperator;
  } else if (newer.closed_by == ClosedBy::kList) {
    newer.closed_by = older.closed_by;  // a guess only if both are
  }
  if (newer.guest_platform != older.guest_platform && !IsBare(older)) {
    newer.entries.clear();
    return newer;
  }
  if (IsOther(newer.manifest_digest, older.manifest_digest)) return newer;
  // The newer hash of a Secret wins, so it is added last.
  for (const auto& [name, credentials] : newer.entries) {
    MergeCredentials(older.entries, name, credentials, aging);
    older.entries.try_emplace(name, credentials);
  }
  newer.entries = std::move(older.entries);
  newer.last_updated = std::max(newer.last_updated, older.last_updated);
  if (newer.manifest_digest.empty()) {
    newer.manifest_digest = std::move(older.manifest_digest);
    newer.platform = std::move(older.platform);
  }
  if (newer.entries.empty()) return newer;
  newer.closed_because.clear();
  if (!by_operator) newer.closed_by = ClosedBy::kNobody;
  return newer;
}

PulledPart Unite(PulledPart newer, PulledPart older, const Aging& aging) {
  LeaveOutEveryPod(older, newer);
  LeaveOutEveryPod(newer, older);
  PulledPart one = UniteProofs(newer, older, aging);
  KeepPrivateNames(newer, one);
  KeepPrivateNames(older, one);
  return one;
}

// Of what is gone nothing counts beside a record: what comes back may be what a pull brought.
std::optional<PreloadedPart> UnitePreloaded(const ImageRow& a, const ImageRow& b) {
  const bool any_pulled = a.pulled || b.pulled;
  const auto rank = [](const ImageRow& row) {
    return std::pair(row.absent == 0, row.preloaded->as_of);
  };
  const ImageRow* best = nullptr;
  std::set<std::string> names;
  for (const ImageRow* row : {&a, &b}) {
    if (!row->preloaded || (any_pulled && row->absent != 0)) continue;
    names.insert(row->preloaded->names.begin(), row->preloaded->names.end());
    if (best == nullptr || rank(*best) < rank(*row)) best = row;
  }
  if (best == nullptr) return std::nullopt;
  PreloadedPart part = *best->preloaded;
  part.names.assign(names.begin(), names.end());
  if (part.names.size() > kMaxNamesPerImage) part.names.resize(kMaxNamesPerImage);
  return part;
}

// It is on the node if either row says so.
std::uint64_t UniteAbsent(const ImageRow& a, const ImageRow& b) {
  std::uint64_t absent = 0;
  for (const ImageRow* row : {&a, &b}) {
    if (!row->pulled && !row->preloaded) continue;
    if (row->absent == 0) return 0;
    absent = std::max(absent, row->absent);
  }
  return absent;
}

}  // namespace

bool IsOther(std::string_view a, std::string_view b) { return !a.empty() && !b.empty() && a != b; }

bool NeededCredentials(const PulledPart& pulled, std::string_view image_name) {
  const auto& names = pulled.private_names;
  if (!names.empty() && names.front().empty()) return true;
  if (std::ranges::binary_search(names, image_name)) return true;
  const auto at = pulled.entries.find(std::string(image_name));
  return at != pulled.entries.end() && HasAny(at->second);
}

void KeepPrivateNames(const PulledPart& was, PulledPart& now) {
  std::set<std::string> names(now.private_names.begin(), now.private_names.end());
  names.insert(was.private_names.begin(), was.private_names.end());
  for (const auto& [name, entry] : was.entries) {
    if (HasAny(entry)) names.insert(name);
  }
  std::erase_if(names, [&](const std::string& name) {
    const auto at = now.entries.find(name);
    return at != now.entries.end() && HasAny(at->second);
  });
  if (names.size() > kMaxPrivateNames) names = {std::string()};
  now.private_names.assign(names.begin(), names.end());
}

void LeaveOutEveryPod(const PulledPart& other, PulledPart& from) {
  std::erase_if(from.entries, [&](const auto& one) {
    if (!one.second.node_pods_accessible || !NeededCredentials(other, one.first)) return false;
    const auto there = other.entries.find(one.first);
    return there == other.entries.end() || !there->second.node_pods_accessible;
  });
}

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

void NoteNextEnd(const Aging& aging, const Credentials& counting,
                 std::optional<std::chrono::seconds>& next) {
  const auto note = [&](const Proof& proof) {
    std::int64_t left = std::numeric_limits<std::int64_t>::max();
    if (proof.good_until) left = proof.good_until->seconds - aging.now.ends.seconds;
    if (aging.max_age.count() != 0 && proof.proven) {
      left = std::min(left,
                      proof.proven->seconds + aging.max_age.count() + 1 - aging.now.ages.seconds);
    }
    if (left == std::numeric_limits<std::int64_t>::max()) return;
    const std::chrono::seconds until(std::max<std::int64_t>(left, 1));
    next = std::min(next.value_or(until), until);
  };
  for (const auto& [name, entry] : counting) {
    if (entry.node_pods_accessible) note(entry.node_pods_proof);
    for (const auto& one : entry.kubernetes_secrets) note(one.proof);
    for (const auto& one : entry.kubernetes_service_accounts) note(one.proof);
  }
}

bool MergeCredentials(Credentials& entries, std::string_view image_name,
                      const ImagePullCredentials& added, const Aging& aging) {
  if (added.empty()) return false;
  const auto [at, is_new] = entries.try_emplace(std::string(image_name), added);
  if (is_new) return true;
  ImagePullCredentials& entry = at->second;
  if (entry.node_pods_accessible) {
    if (added.node_pods_accessible) {
      entry.node_pods_proof =
          Better(entry.node_pods_proof, added.node_pods_proof, aging.max_age, aging.now);
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
    return Merge(entry.kubernetes_secrets, added.kubernetes_secrets, aging.max_age, aging.now);
  }
  return Merge(entry.kubernetes_service_accounts, added.kubernetes_service_accounts, aging.max_age,
               aging.now);
}

ImageRow Unite(ImageRow into, ImageRow other, const Aging& aging) {
  into.aliases.insert(into.aliases.end(), other.aliases.begin(), other.aliases.end());
  SortUnique(into.aliases);
  into.listed = into.listed || other.listed;
  if (into.alias_since == 0 || (other.alias_since != 0 && other.alias_since < into.alias_since)) {
    into.alias_since = other.alias_since;
  }
  auto preloaded = UnitePreloaded(into, other);
  const std::uint64_t absent = UniteAbsent(into, other);
  const bool other_is_newer = into.stamp < other.stamp;
  if (!into.pulled == !other.pulled) {
    into.stamp = std::max(into.stamp, other.stamp);
  } else if (other.pulled) {
    into.stamp = other.stamp;
  }
  if (other.pulled && (!into.pulled || other_is_newer)) {
    into.ref = other.Ref();
    std::swap(into.pulled, other.pulled);
  }
  if (into.pulled && other.pulled) {
    into.pulled = Unite(*std::move(into.pulled), *std::move(other.pulled), aging);
  }
  into.preloaded = std::move(preloaded);
  into.absent = absent;
  return into;
}

}  // namespace waybill::internal
