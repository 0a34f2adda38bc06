#include "store/pods/import.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "store/base/try.h"
#include "store/pods/host_ids.h"
#include "store/pods/pool.h"

namespace waybill::internal {

namespace {

bool Within(HostIdRange inner, HostIdRange outer) {
  return inner.first >= outer.first && inner.length <= outer.length &&
         inner.first - outer.first <= outer.length - inner.length;
}

bool AllWithin(const std::vector<HostIdRange>& ranges, HostIdRange outer) {
  return std::all_of(ranges.begin(), ranges.end(),
                     [&](HostIdRange range) { return Within(range, outer); });
}

class Import {
 public:
  Import(StoreTxn& txn, IdMappingReport& report) : txn_(txn), report_(report) {}

  Result<void> ReadStore() {
    auto rows = TRY(ReadHostIds(txn_));
    for (HostIds& row : rows) rows_.emplace(row.pod_uid, std::move(row));
    return {};
  }

  Result<void> Look(const UsernsFile& file) {
    ++report_.files_seen;
    HostIds& row = RowOf(file);
    if (!file.mapping) {
      if (row.has_range() && AllWithin(file.ranges, row.range)) {
        Tell(file, ": " + file.problem + "; the store knows its range");
        return {};
      }
      return HoldWith(file, PodQuarantineKind::kUnreadableFile, file.problem, file.ranges);
    }
    if (!row.has_range()) {
      if (row.held && !AllWithin(row.held->ranges, *file.mapping)) {
        return HoldWith(file, row.held->kind, row.held->reason, {*file.mapping});
      }
      candidates_.emplace(file.pod_uid, Candidate{&file, {}});
      return {};
    }
    if (row.range != *file.mapping) {
      return HoldWith(
          file, PodQuarantineKind::kFileConflict,
          "its file says " + ShownRange(*file.mapping) + ", the store " + ShownRange(row.range),
          {*file.mapping});
    }
    if (row.held) {
      Tell(file, " is held: " + row.held->reason);
      ++report_.held;
      return {};
    }
    ++report_.unchanged;
    return {};
  }

  Result<void> TakeCandidates() {
    CompareCandidates();
    for (auto& [pod_uid, candidate] : candidates_) {
      const UsernsFile& file = *candidate.file;
      if (!candidate.conflict.empty()) {
        TRY(HoldWith(file, PodQuarantineKind::kFileConflict, std::move(candidate.conflict),
                     {*file.mapping}));
        continue;
      }
      TRY(PutHostIds(txn_, {.pod_uid = pod_uid, .range = *file.mapping, .created = txn_.now()}));
      ++report_.imported;
    }
    return {};
  }

 private:
  // A file whose pod gets the mapping, unless another pod may have part of it.
  struct Candidate {
    const UsernsFile* file;
    std::string conflict;  // why not; empty: it gets the mapping
  };

  HostIds& RowOf(const UsernsFile& file) {
    return rows_.try_emplace(file.pod_uid, HostIds{.pod_uid = file.pod_uid}).first->second;
  }

  void Tell(const UsernsFile& file, const std::string& problem) {
    if (report_.problems.size() >= kMaxNamedProblems) return;
    report_.problems.push_back(NameOfPod(file.pod_uid) + problem);
  }

  Result<void> HoldWith(const UsernsFile& file, PodQuarantineKind kind, std::string reason,
                        std::vector<HostIdRange> ranges) {
    Tell(file, " is held: " + reason);
    ++report_.held;
    return Hold(txn_, RowOf(file),
                {.ranges = std::move(ranges),
                 .source = file.source,
                 .reason = std::move(reason),
                 .kind = kind});
  }

  void CompareCandidates() {
    // The pod that has each block, or may have it: by the store first, then by candidates. Of a
    // candidate the store's ranges are within its own.
    std::vector<const std::string*> taken(kBlocks, nullptr);
    const auto take = [&](const std::string& pod_uid, HostIdRange range) {
      const BlockRange blocks = BlocksOf(range.first, range.length);
      for (std::uint32_t block = blocks.first; block < blocks.end(); ++block) {
        if (taken[block] != nullptr) Contradict(pod_uid, *taken[block]);
        if (taken[block] == nullptr) taken[block] = &pod_uid;
      }
    };
    for (const auto& [pod_uid, row] : rows_) {
      if (candidates_.contains(pod_uid)) continue;
      for (const HostIdRange range : RangesOf(row)) take(pod_uid, range);
    }
    for (const auto& [pod_uid, candidate] : candidates_) take(pod_uid, *candidate.file->mapping);
  }

  // Two pods may have one block. What the store has of a pod stays.
  void Contradict(const std::string& one, const std::string& other) {
    for (const auto& [pod_uid, by] : {std::tie(one, other), std::tie(other, one)}) {
      const auto candidate = candidates_.find(pod_uid);
      if (candidate == candidates_.end()) continue;
      candidate->second.conflict = "its range overlaps that of " + NameOfPod(by);
    }
  }

  StoreTxn& txn_;
  IdMappingReport& report_;
  std::map<std::string, HostIds> rows_;
  std::map<std::string, Candidate> candidates_;
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
