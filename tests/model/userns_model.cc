#include "tests/model/userns_model.h"

#include <algorithm>
#include <set>
#include <utility>

namespace waybill::testing {

namespace {

bool Within(HostIdRange inner, HostIdRange outer) {
  return inner.first >= outer.first && inner.first + inner.length <= outer.first + outer.length;
}

bool AllWithin(const std::vector<HostIdRange>& ranges, HostIdRange outer) {
  return std::all_of(ranges.begin(), ranges.end(),
                     [&](HostIdRange range) { return Within(range, outer); });
}

bool IsPodUid(std::string_view uid) {
  const bool plain =
      std::all_of(uid.begin(), uid.end(), [](unsigned char c) { return c > ' ' && c != '/'; });
  return plain && !uid.empty() && uid.size() <= 253 && uid != "." && uid != "..";
}

}  // namespace

bool Overlap(HostIdRange a, HostIdRange b) {
  return a.first < b.first + b.length && b.first < a.first + a.length;
}

bool MayBeHandedOut(HostIdRange range) {
  return range.first >= kIdsPerBlock && range.first + range.length < kHostIds;
}

UsernsModel::Asked UsernsModel::Get(const UserNamespaceRequest& request) {
  const auto refuse = [](ErrorCode code, std::string words) {
    return Asked{Answer::kRefused, code, std::move(words)};
  };
  if (!options_.enabled && request.host_users) {
    return refuse(ErrorCode::kConflict, "\"UserNamespacesSupport\" is disabled");
  }
  if (request.host_users.value_or(true)) return {Answer::kNode};
  if (!IsPodUid(request.pod_uid)) return refuse(ErrorCode::kInvalidArgument, "invalid pod UID");
  if (handlers_.empty()) {
    return refuse(ErrorCode::kInvalidArgument, "was never told the runtime's handlers");
  }
  const auto handler = std::find_if(handlers_.begin(), handlers_.end(), [&](const auto& known) {
    return request.runtime_handler.empty() ? known.is_default
                                           : known.name == request.runtime_handler;
  });
  if (handler == handlers_.end() || !handler->user_namespaces) {
    return refuse(ErrorCode::kInvalidArgument, "does not support user namespaces");
  }
  const std::string pod_uid(request.pod_uid);
  if (held_.contains(pod_uid)) return refuse(ErrorCode::kConflict, "are unverified");
  if (const auto found = mappings_.find(pod_uid); found != mappings_.end()) {
    Mapping& mapping = found->second;
    if (request.length && *request.length != mapping.range.length) {
      return refuse(ErrorCode::kConflict, "has an ID mapping of length");
    }
    mapping.stamp = now_;
    return {Answer::kMapping, {}, {}, mapping.range};
  }
  if (request.length && *request.length != options_.pool.ids_per_pod) {
    return refuse(ErrorCode::kInvalidArgument, "a new ID mapping has length");
  }
  if (Refuses()) return refuse(ErrorCode::kConflict, "no new ID mapping can be handed out");
  for (const HostIdRange range : PoolRanges()) {
    if (!MayBeTaken(range, "")) return {Answer::kNew};
  }
  return refuse(ErrorCode::kLimitExceeded,
                "could not find an empty slot to allocate a user namespace");
}

std::string UsernsModel::Give(const std::string& pod_uid, const IdMapping& mapping) {
  const HostIdRange range{mapping.host_id, mapping.length};
  const auto ranges = PoolRanges();
  if (std::find(ranges.begin(), ranges.end(), range) == ranges.end()) {
    return "a range that is not the pool's";
  }
  if (MayBeTaken(range, "")) return "a range that another pod has or may have";
  mappings_[pod_uid] = {range, now_, now_};
  return "";
}

std::optional<bool> UsernsModel::Release(const std::string& pod_uid) {
  if (pod_uid.empty()) return std::nullopt;
  const bool had = mappings_.erase(pod_uid) > 0;
  const bool was_held = held_.erase(pod_uid) > 0;
  if (!had && !was_held && !IsPodUid(pod_uid)) return std::nullopt;
  return had || was_held;
}

std::optional<ErrorCode> UsernsModel::Adopt(const std::string& pod_uid, HostIdRange range) {
  const bool sound = range.length > 0 && range.length % kIdsPerBlock == 0 &&
                     range.first % range.length == 0 && MayBeHandedOut(range);
  if (!IsPodUid(pod_uid) || !sound) return ErrorCode::kInvalidArgument;
  const auto found = mappings_.find(pod_uid);
  const bool has_it = found != mappings_.end() && found->second.range == range;
  if (found != mappings_.end() && !has_it && !held_.contains(pod_uid)) return ErrorCode::kConflict;
  if (MayBeTaken(range, pod_uid)) return ErrorCode::kConflict;
  const bool was_held = held_.erase(pod_uid) > 0;
  if (!has_it) mappings_[pod_uid] = {range, now_, now_};
  if (was_held) mappings_[pod_uid].stamp = now_;
  return std::nullopt;
}

CleanUpReport UsernsModel::CleanUp(const std::vector<std::string>& pods, Timestamp token) {
  std::map<std::string, Timestamp> stamps;
  for (const auto& [uid, mapping] : mappings_) stamps[uid] = mapping.stamp;
  for (const auto& [uid, held] : held_) {
    if (!uid.empty()) stamps[uid] = std::max(stamps[uid], *held.since);
  }
  CleanUpReport report;
  report.examined = stamps.size();
  for (const auto& [uid, stamp] : stamps) {
    if (std::find(pods.begin(), pods.end(), uid) != pods.end()) {
      ++report.kept_in_lists;
    } else if (stamp > token) {
      ++report.kept_newer;
    } else {
      ++report.released;
      report.released_pods.push_back(uid);
      mappings_.erase(uid);
      held_.erase(uid);
    }
  }
  return report;
}

IdMappingReport UsernsModel::Open(const UserNamespaceOptions& options, const DrawnPods* pods) {
  options_ = options;
  IdMappingReport report;
  if (pods != nullptr) {
    std::map<std::string, HostIdRange> candidates;
    for (const auto& [uid, file] : *pods) Look(uid, file, report, candidates);
    Take(candidates, report);
    held_.erase("");
  }
  report.allocations = mappings_.size();
  report.held_pods = held_.size();
  for (const auto& [uid, mapping] : mappings_) {
    const PoolRelation relation = RelationOf(mapping);
    if (relation == PoolRelation::kOutsidePool) ++report.outside_pool;
    if (relation == PoolRelation::kOtherLength) ++report.other_length;
    if (relation != PoolRelation::kInPool) report.off_pool.push_back(uid);
  }
  return report;
}

void UsernsModel::FailToImport() {
  if (!held_.contains("")) held_[""] = {{}, "", now_};
}

void UsernsModel::Look(const std::string& pod_uid, const DrawnUsernsFile& file,
                       IdMappingReport& report, std::map<std::string, HostIdRange>& candidates) {
  ++report.files_seen;
  const auto mapping = mappings_.find(pod_uid);
  const auto held = held_.find(pod_uid);
  const bool has_mapping = mapping != mappings_.end();
  if (!file.mapping) {
    if (!has_mapping || !AllWithin(file.ranges, mapping->second.range)) {
      return Hold(pod_uid, file.ranges, report);
    }
    report.problems.emplace_back();
  } else if (!has_mapping) {
    if (held != held_.end() && !AllWithin(held->second.ranges, *file.mapping)) {
      return Hold(pod_uid, {*file.mapping}, report);
    }
    candidates[pod_uid] = *file.mapping;
  } else if (mapping->second.range != *file.mapping) {
    Hold(pod_uid, {*file.mapping}, report);
  } else if (held != held_.end()) {
    ++report.held;
    report.problems.emplace_back();
  } else {
    ++report.unchanged;
  }
}

void UsernsModel::Take(const std::map<std::string, HostIdRange>& candidates,
                       IdMappingReport& report) {
  std::set<std::string> refused;
  for (const auto& [uid, range] : candidates) {
    for (const auto& [other, theirs] : mappings_) {
      if (Overlap(range, theirs.range)) refused.insert(uid);
    }
    for (const auto& [other, theirs] : held_) {
      for (const HostIdRange one : theirs.ranges) {
        if (!candidates.contains(other) && Overlap(range, one)) refused.insert(uid);
      }
    }
    for (const auto& [other, theirs] : candidates) {
      if (other != uid && Overlap(range, theirs)) refused.insert(uid);
    }
  }
  for (const auto& [uid, range] : candidates) {
    if (refused.contains(uid)) {
      Hold(uid, {range}, report);
      continue;
    }
    mappings_[uid] = {range, now_, now_};
    held_.erase(uid);
    ++report.imported;
  }
}

void UsernsModel::Hold(const std::string& pod_uid, const std::vector<HostIdRange>& ranges,
                       IdMappingReport& report) {
  ++report.held;
  report.problems.emplace_back();
  const bool is_new = !held_.contains(pod_uid);
  Held& held = held_[pod_uid];
  held.source = "pods/" + pod_uid + "/userns";
  if (ranges.empty() || (!is_new && held.ranges.empty())) {
    held.ranges.clear();
  } else {
    for (const HostIdRange range : ranges) {
      const bool known =
          std::find(held.ranges.begin(), held.ranges.end(), range) != held.ranges.end();
      if (!known) held.ranges.push_back(range);
    }
  }
  if (is_new) {
    held.since = now_;
  } else if (held.since) {
    held.before = *std::exchange(held.since, std::nullopt);
  }
}

std::string UsernsModel::Settle(const std::vector<QuarantinedPod>& held) {
  if (held.size() != held_.size()) return std::to_string(held.size()) + " held pods";
  for (const QuarantinedPod& pod : held) {
    const auto found = held_.find(pod.pod_uid);
    if (found == held_.end()) return "pod " + pod.pod_uid + " is held";
    Held& mine = found->second;
    if (pod.ranges != mine.ranges) return "pod " + pod.pod_uid + " is held with other ranges";
    // Other bytes are quoted in the source.
    const bool plain = std::all_of(pod.pod_uid.begin(), pod.pod_uid.end(),
                                   [](char c) { return c > ' ' && c <= '~'; });
    if (plain && pod.source != mine.source) {
      return "pod " + pod.pod_uid + " is held for " + pod.source;
    }
    if (pod.reason.empty()) return "pod " + pod.pod_uid + " is held without a reason";
    if (!mine.since) {
      if (pod.since != mine.before && pod.since != now_) {
        return "pod " + pod.pod_uid + " is held since a time at which nothing happened";
      }
      mine.since = pod.since;
    }
    if (pod.since != *mine.since) return "pod " + pod.pod_uid + " is held since another time";
  }
  return "";
}

bool UsernsModel::MayBeTaken(HostIdRange range, const std::string& by_others_than) const {
  for (const auto& [uid, held] : held_) {
    for (const HostIdRange one : held.ranges) {
      if (uid != by_others_than && Overlap(range, one)) return true;
    }
  }
  for (const auto& [uid, mapping] : mappings_) {
    if (uid != by_others_than && Overlap(range, mapping.range)) return true;
  }
  return false;
}

std::vector<HostIdRange> UsernsModel::PoolRanges() const {
  std::vector<HostIdRange> ranges;
  if (!options_.enabled) return ranges;
  const IdPool& pool = options_.pool;
  for (std::uint64_t at = 0; at < pool.id_count; at += pool.ids_per_pod) {
    const HostIdRange range{pool.first_id + at, pool.ids_per_pod};
    if (MayBeHandedOut(range)) ranges.push_back(range);
  }
  return ranges;
}

PoolRelation UsernsModel::RelationOf(const Mapping& mapping) const {
  const IdPool& pool = options_.pool;
  if (!options_.enabled) return PoolRelation::kInPool;
  if (mapping.range.length != pool.ids_per_pod) return PoolRelation::kOtherLength;
  return Within(mapping.range, {pool.first_id, pool.id_count}) ? PoolRelation::kInPool
                                                               : PoolRelation::kOutsidePool;
}

bool UsernsModel::Refuses() const {
  return std::any_of(held_.begin(), held_.end(),
                     [](const auto& held) { return held.second.ranges.empty(); });
}

PoolUse UsernsModel::StoreCounts() const {
  PoolUse statistics;
  statistics.enabled = options_.enabled;
  statistics.pool = options_.pool;
  statistics.allocations = mappings_.size();
  statistics.held_pods = held_.size();
  std::uint64_t run = 0;
  for (const HostIdRange range : PoolRanges()) {
    ++statistics.ranges;
    if (MayBeTaken(range, "")) {
      ++statistics.used;
      run = 0;
    } else {
      ++statistics.free;
      statistics.largest_free_run = std::max(statistics.largest_free_run, ++run);
    }
  }
  for (const auto& [uid, mapping] : mappings_) {
    const PoolRelation relation = RelationOf(mapping);
    if (relation == PoolRelation::kOutsidePool) ++statistics.outside_pool;
    if (relation == PoolRelation::kOtherLength) ++statistics.other_length;
  }
  return statistics;
}

std::vector<PodMapping> UsernsModel::List() const {
  std::vector<PodMapping> list;
  for (const auto& [uid, mapping] : mappings_) {
    list.push_back({uid, static_cast<std::uint32_t>(mapping.range.first),
                    static_cast<std::uint32_t>(mapping.range.length), mapping.created,
                    RelationOf(mapping)});
  }
  std::sort(list.begin(), list.end(),
            [](const auto& a, const auto& b) { return a.host_id < b.host_id; });
  return list;
}

}  // namespace waybill::testing
