#include "store/node/userns/import.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "store/base/quote.h"
#include "store/base/try.h"
#include "store/node/records/userns_tables.h"
#include "store/node/userns/pool.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

constexpr std::size_t kMaxProblems = 100;
constexpr std::size_t kNobody = SIZE_MAX;
// The bound for a held pod. If its file keeps naming more ranges, its range counts as unknown.
constexpr std::size_t kMaxRanges = 4 * kMaxMappingsPerFile;

bool Within(HostIdRange inner, HostIdRange outer) {
  return inner.first >= outer.first && inner.length <= outer.length &&
         inner.first - outer.first <= outer.length - inner.length;
}

bool AllWithin(const std::vector<HostIdRange>& ranges, HostIdRange outer) {
  return std::all_of(ranges.begin(), ranges.end(),
                     [&](HostIdRange range) { return Within(range, outer); });
}

// A file whose pod gets the mapping, unless another pod may have part of it.
struct Candidate {
  const UsernsFile* file;
  std::string conflict;  // why not; empty: it gets the mapping
};

class Import {
 public:
  Import(StoreTxn& txn, IdMappingReport& report) : txn_(txn), report_(report) {}

  Result<void> ReadStore() {
    auto mappings = TRY(ReadMappings(txn_));
    for (const UsernsMapping& mapping : mappings) {
      mappings_[mapping.pod_uid] = {mapping.host_id, mapping.length};
    }
    auto held = TRY(ReadHeld(txn_));
    for (UsernsHeld& one : held) held_[one.pod.pod_uid] = std::move(one.pod);
    return {};
  }

  Result<void> Look(const UsernsFile& file) {
    ++report_.files_seen;
    const auto mapping = mappings_.find(file.pod_uid);
    const auto held = held_.find(file.pod_uid);
    if (!file.mapping) {
      if (mapping != mappings_.end() && AllWithin(file.ranges, mapping->second)) {
        Tell(file, ": " + file.problem + "; the store knows its range");
        return {};
      }
      return Hold(file, PodQuarantineKind::kUnreadableFile, file.problem, file.ranges);
    }
    if (mapping == mappings_.end()) {
      if (held != held_.end() && !AllWithin(held->second.ranges, *file.mapping)) {
        return Hold(file, held->second.kind, held->second.reason, {*file.mapping});
      }
      candidates_.push_back({&file, {}});
      return {};
    }
    if (mapping->second != *file.mapping) {
      return Hold(file, PodQuarantineKind::kFileConflict,
                  "its file says " + ShownRange(*file.mapping) + ", the store " +
                      ShownRange(mapping->second),
                  {*file.mapping});
    }
    if (held != held_.end()) {
      Tell(file, " is held: " + held->second.reason);
      ++report_.held;
      return {};
    }
    ++report_.unchanged;
    return {};
  }

  Result<void> TakeCandidates() {
    CompareCandidates();
    for (Candidate& candidate : candidates_) {
      const UsernsFile& file = *candidate.file;
      if (candidate.conflict.empty()) {
        auto tenant = TRY(StoreMapping(txn_, file.pod_uid, *file.mapping));
        if (tenant) candidate.conflict = "its range is taken by pod " + ShownPodUid(*tenant);
      }
      if (!candidate.conflict.empty()) {
        TRY(Hold(file, PodQuarantineKind::kFileConflict, std::move(candidate.conflict),
                 {*file.mapping}));
        continue;
      }
      TRY(EraseHeld(txn_, file.pod_uid));
      ++report_.imported;
    }
    return {};
  }

 private:
  void Tell(const UsernsFile& file, const std::string& problem) {
    if (report_.problems.size() >= kMaxProblems) return;
    report_.problems.push_back("pod " + ShownPodUid(file.pod_uid) + problem);
  }

  // Adds to what the pod is held for already.
  Result<void> Hold(const UsernsFile& file, PodQuarantineKind kind, std::string reason,
                    std::vector<HostIdRange> ranges) {
    Tell(file, " is held: " + reason);
    ++report_.held;
    QuarantinedPod& held = held_[file.pod_uid];
    const bool was_unknown = !held.pod_uid.empty() && held.ranges.empty();
    held.pod_uid = file.pod_uid;
    held.source = file.source;
    held.reason = std::move(reason);
    held.kind = kind;
    if (ranges.empty() || was_unknown) {
      held.ranges.clear();
    } else {
      for (const HostIdRange range : ranges) {
        if (std::find(held.ranges.begin(), held.ranges.end(), range) == held.ranges.end()) {
          held.ranges.push_back(range);
        }
      }
      if (held.ranges.size() > kMaxRanges) held.ranges.clear();
    }
    return StoreHeld(txn_, held);
  }

  void CompareCandidates() {
    // The pod that has each block: by the store's mappings and held pods first, then by candidates.
    std::vector<const std::string*> taken(kBlocks, nullptr);
    const auto take = [&](const std::string& pod_uid, HostIdRange range) {
      const BlockRange blocks = BlocksOf(range.first, range.length);
      for (std::uint32_t block = blocks.first; block < blocks.end(); ++block) {
        taken[block] = &pod_uid;
      }
    };
    for (const auto& [pod_uid, range] : mappings_) take(pod_uid, range);
    std::set<std::string_view> judged_anew;
    for (const Candidate& candidate : candidates_) judged_anew.insert(candidate.file->pod_uid);
    for (const auto& [pod_uid, held] : held_) {
      if (judged_anew.contains(pod_uid)) continue;
      for (const HostIdRange range : held.ranges) take(pod_uid, range);
    }
    std::vector<std::size_t> claimed(kBlocks, kNobody);
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      Candidate& candidate = candidates_[i];
      const BlockRange blocks =
          BlocksOf(candidate.file->mapping->first, candidate.file->mapping->length);
      for (std::uint32_t block = blocks.first; block < blocks.end(); ++block) {
        if (taken[block] != nullptr) {
          candidate.conflict = "its range overlaps that of pod " + ShownPodUid(*taken[block]);
        }
        if (claimed[block] == kNobody) {
          claimed[block] = i;
          continue;
        }
        Candidate& other = candidates_[claimed[block]];
        candidate.conflict = "its range overlaps that of pod " + ShownPodUid(other.file->pod_uid);
        other.conflict = "its range overlaps that of pod " + ShownPodUid(candidate.file->pod_uid);
      }
    }
  }

  StoreTxn& txn_;
  IdMappingReport& report_;
  std::map<std::string, HostIdRange> mappings_;
  std::map<std::string, QuarantinedPod> held_;
  std::vector<Candidate> candidates_;
};

}  // namespace

Result<void> ImportUserNamespaces(StoreTxn& txn, const std::vector<UsernsFile>& files,
                                  IdMappingReport& report) {
  Import import(txn, report);
  if (auto r = import.ReadStore(); !r) return r;
  for (const UsernsFile& file : files) TRY(import.Look(file));
  return import.TakeCandidates();
}

}  // namespace waybill::internal
