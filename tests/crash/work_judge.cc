#include "tests/crash/work_judge.h"

#include <algorithm>

namespace waybill::testing {

namespace {

using Kind = Operation::Kind;

// Does operations on a model, all but those with ID mappings.
class ModelDoer {
 public:
  void Do(Model& model, const Operation& operation);

 private:
  std::optional<std::uint64_t> token_;
};

void ModelDoer::Do(Model& model, const Operation& operation) {
  switch (operation.kind) {
    case Kind::kIntent:
      static_cast<void>(model.Intent(operation.image));
      return;
    case Kind::kPulled:
      static_cast<void>(model.Pulled(operation.image, operation.ref, operation.credentials));
      return;
    case Kind::kFailed:
      static_cast<void>(model.Failed(operation.image, operation.failure));
      return;
    case Kind::kPutRecord:
      static_cast<void>(model.Put(operation.record));
      return;
    case Kind::kDeleteRecord:
      return model.Delete(operation.ref);
    case Kind::kPutIntent:
      static_cast<void>(model.PutIntent(operation.image));
      return;
    case Kind::kDeleteIntent:
      return model.DeleteIntent(operation.image);
    case Kind::kDrawToken:
      token_ = model.token();
      return;
    case Kind::kPrune:
      if (!token_) return;
      static_cast<void>(model.Prune({operation.listed.begin(), operation.listed.end()}, *token_));
      return;
    case Kind::kGetMapping:
    case Kind::kReleaseMapping:
    case Kind::kCleanUpMappings:
      return;
  }
}

std::string Has(const std::string& pod_uid, std::uint32_t host_id) {
  return pod_uid + " has " + std::to_string(host_id);
}

std::string Difference(const MappingModel::Mappings& expected,
                       const MappingModel::Mappings& stored) {
  for (const auto& [pod_uid, host_id] : expected) {
    const auto found = stored.find(pod_uid);
    if (found == stored.end()) return Has(pod_uid, host_id) + ", but not in the store";
    if (found->second != host_id) {
      return Has(pod_uid, found->second) + ", but was given " + std::to_string(host_id);
    }
  }
  for (const auto& [pod_uid, host_id] : stored) {
    if (!expected.contains(pod_uid)) return Has(pod_uid, host_id) + ", which was released";
  }
  return "";
}

std::string FaultOfAllocations(std::vector<UserNamespaceAllocation> stored) {
  std::sort(stored.begin(), stored.end(),
            [](const auto& a, const auto& b) { return a.host_id < b.host_id; });
  std::uint64_t end = kIdsPerBlock;
  for (const UserNamespaceAllocation& allocation : stored) {
    if (allocation.host_id < end) {
      return Has(allocation.pod_uid, allocation.host_id) + ", which is the host's or another pod's";
    }
    end = std::uint64_t{allocation.host_id} + allocation.length;
  }
  if (end >= kHostIds) return stored.back().pod_uid + " has the last host ID";
  return "";
}

}  // namespace

std::string MappingModel::Do(const Operation& operation, std::uint32_t host_id) {
  switch (operation.kind) {
    case Kind::kGetMapping: {
      if (host_id == 0) {
        const bool right = may_be_full_ && !mappings_.contains(operation.pod_uid);
        return right ? "" : operation.pod_uid + " was given nothing";
      }
      const auto [known, is_new] = mappings_.emplace(operation.pod_uid, host_id);
      if (known->second != host_id) {
        return Has(operation.pod_uid, known->second) + ", but was given " + std::to_string(host_id);
      }
      if (fresh_) fresh_->insert(operation.pod_uid);
      return "";
    }
    case Kind::kReleaseMapping:
      if (mappings_.erase(operation.pod_uid) == host_id) return "";
      return operation.pod_uid + " had a mapping or not, and the release said otherwise";
    case Kind::kDrawToken:
      fresh_.emplace();
      return "";
    case Kind::kCleanUpMappings:
      if (!fresh_) return "";
      std::erase_if(mappings_, [&](const auto& mapping) {
        return std::count(operation.listed_pods.begin(), operation.listed_pods.end(),
                          mapping.first) == 0 &&
               !fresh_->contains(mapping.first);
      });
      return "";
    default:
      return "";
  }
}

void MappingModel::DoUnacknowledged(const Operation& operation, const Mappings& stored) {
  if (operation.kind != Kind::kGetMapping) {
    static_cast<void>(Do(operation, 0));
    return;
  }
  if (const auto found = stored.find(operation.pod_uid); found != stored.end()) {
    mappings_.insert(*found);
  }
}

WorkJudge::WorkJudge(Rules rules, Timestamp now, bool may_be_full)
    : models_(kWorkers, Model(rules)), mappings_(kWorkers, MappingModel(may_be_full)) {
  for (Model& model : models_) model.set_now(now);
}

std::string WorkJudge::Judge(const WorkPlan& plan, const std::vector<Progress>& progress,
                             const NodeStore& store) {
  const auto stored = store.ListUserNamespaces();
  if (!stored) return stored.error().ToString();
  if (std::string overlap = FaultOfAllocations(*stored); !overlap.empty()) return overlap;
  for (std::size_t which = 0; which < kWorkers; ++which) {
    std::string difference = JudgeImages(plan, which, progress[which], store);
    if (difference.empty()) difference = JudgeMappings(plan, which, progress[which], *stored);
    if (difference.empty()) continue;
    return "worker " + std::to_string(which) + " after " +
           std::to_string(progress[which].acknowledged) +
           " operations and perhaps one more: " + difference;
  }
  return "";
}

std::string WorkJudge::JudgeImages(const WorkPlan& plan, std::size_t which,
                                   const Progress& progress, const NodeStore& store) {
  const auto records = store.ListRecords();
  if (!records) return records.error().ToString();
  const auto intents = store.ListIntents();
  if (!intents) return intents.error().ToString();
  std::vector<ImagePulledRecord> own_records;
  for (const auto& record : *records) {
    if (BelongsTo(which, record.image_ref)) own_records.push_back(record);
  }
  std::vector<ImagePullIntent> own_intents;
  for (const auto& intent : *intents) {
    if (BelongsTo(which, intent.image)) own_intents.push_back(intent);
  }
  Model& model = models_[which];
  Worker worker(plan.seed, which, plan.doing);
  ModelDoer doer;
  std::string difference;
  for (std::uint64_t i = 0;; ++i) {
    if (i % plan.operations == 0) static_cast<void>(model.Restart());
    if (i == progress.acknowledged) difference = Difference(model, own_records, own_intents);
    if (i == progress.started) break;
    if (i == progress.acknowledged && difference.empty()) break;
    doer.Do(model, worker.Next());
  }
  if (difference.empty() || Difference(model, own_records, own_intents).empty()) return "";
  return difference;
}

std::string WorkJudge::JudgeMappings(const WorkPlan& plan, std::size_t which,
                                     const Progress& progress,
                                     const std::vector<UserNamespaceAllocation>& stored) {
  MappingModel::Mappings own;
  for (const UserNamespaceAllocation& allocation : stored) {
    if (BelongsTo(which, allocation.pod_uid)) own.emplace(allocation.pod_uid, allocation.host_id);
  }
  MappingModel& model = mappings_[which];
  model.BeginAnew();
  Worker worker(plan.seed, which, plan.doing);
  for (std::uint64_t i = 0; i < progress.acknowledged; ++i) {
    const std::uint32_t host_id = progress.host_ids[static_cast<std::size_t>(i)];
    if (std::string wrong = model.Do(worker.Next(), host_id); !wrong.empty()) return wrong;
  }
  std::string difference = Difference(model.mappings(), own);
  if (difference.empty() || progress.started == progress.acknowledged) return difference;
  model.DoUnacknowledged(worker.Next(), own);
  if (Difference(model.mappings(), own).empty()) return "";
  return difference;
}

}  // namespace waybill::testing
