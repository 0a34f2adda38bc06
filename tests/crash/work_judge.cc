#include "tests/crash/work_judge.h"

#include <algorithm>

#include "store/base/words.h"

namespace waybill::testing {

namespace {

using Kind = Operation::Kind;

// Does operations on a model, all but those with ID mappings and with the ledger.
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
      static_cast<void>(model.Prune(operation.listed, *token_));
      return;
    case Kind::kGetMapping:
    case Kind::kReleaseMapping:
    case Kind::kCleanUpMappings:
    case Kind::kAddPreloaded:
    case Kind::kRemovePreloaded:
    case Kind::kObserve:
      return;
  }
}

// How often a worker's string has a pull in a state.
using PullStates = std::map<std::string, std::size_t>;

void Count(const UnresolvedPull& pull, PullStates& states) {
  ++states[pull.image + " " + std::string(WordOf(pull.state)) + (pull.several ? ", several" : "")];
}

std::string Difference(const PullStates& expected, const PullStates& stored) {
  if (expected == stored) return "";
  std::string text = "open pulls";
  for (const auto& [pull, count] : stored) text += " " + pull + " x" + std::to_string(count) + ";";
  text += " instead of";
  for (const auto& [pull, count] : expected) {
    text += " " + pull + " x" + std::to_string(count) + ";";
  }
  return text;
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

std::string FaultOfAllocations(std::vector<PodMapping> stored) {
  std::sort(stored.begin(), stored.end(),
            [](const auto& a, const auto& b) { return a.host_id < b.host_id; });
  std::uint64_t end = kIdsPerBlock;
  for (const PodMapping& allocation : stored) {
    if (allocation.host_id < end) {
      return Has(allocation.pod_uid, allocation.host_id) + ", which is the host's or another pod's";
    }
    end = std::uint64_t{allocation.host_id} + allocation.length;
  }
  if (end >= kHostIds) return stored.back().pod_uid + " has the last host ID";
  return "";
}

}  // namespace

std::string LedgerModel::Do(const Operation& operation, std::uint32_t result) {
  const std::string& ref = operation.preloaded;
  const auto enter = [&] {
    held_.entries.insert(ref);
    if (fresh_) fresh_->entries.insert(ref);
  };
  switch (operation.kind) {
    case Kind::kDrawToken:
      fresh_.emplace();
      return "";
    case Kind::kPrune: {
      if (!fresh_ || !closed_) return "";
      const auto goes = [&](const std::set<std::string>& fresh) {
        return [&](const std::string& one) {
          return !fresh.contains(one) &&
                 std::none_of(operation.listed.begin(), operation.listed.end(),
                              [&](const ListedImage& image) { return image.id == one; });
        };
      };
      const auto entry_goes = goes(fresh_->entries);
      std::erase_if(held_.entries, entry_goes);
      const auto record_goes = [&, is_old = goes(fresh_->records)](const std::string& one) {
        return is_old(one) && entry_goes(one);
      };
      // An operator's closing waits for its image.
      std::erase_if(held_.records, [&](const std::string& one) {
        if (!record_goes(one)) return false;
        if (words_.contains(one)) {
          gone_.insert(one);
          return false;
        }
        if (gone_.contains(one)) unsure_.insert(one);
        return true;
      });
      std::erase_if(guesses_, [&](const std::string& one) { return !held_.records.contains(one); });
      return "";
    }
    case Kind::kAddPreloaded:
      if (result != std::uint32_t{closed_}) return ref + " was not added to the ledger";
      if (closed_) enter();
      if (closed_) words_.erase(ref);
      return "";
    case Kind::kRemovePreloaded:
      if (held_.entries.erase(ref) != result) {
        return ref + " was in the ledger or not, and the removal said otherwise";
      }
      if (result == 0) return "";
      words_.insert(ref);
      // What a list guessed is written anew as the operator's word.
      if (const bool was_sure = unsure_.erase(ref) == 0;
          (held_.records.insert(ref).second && was_sure) || guesses_.contains(ref)) {
        if (fresh_) fresh_->records.insert(ref);
        guesses_.erase(ref);
      }
      return "";
    case Kind::kObserve: {
      if (result == kRefused || (!closed_ && result == kLeft)) return "";
      const bool entered = held_.entries.contains(ref);
      if (!entered && unsure_.erase(ref) != 0 && result == kKnown) held_.records.insert(ref);
      const bool known = entered || held_.records.contains(ref);
      if ((result == kKnown) != known) {
        return ref + " was known or not, and the list said otherwise";
      }
      // A prune removed a record that no list had: a pull of anything.
      if (result == kClosed) {
        held_.records.insert(ref);
        gone_.erase(ref);
        guesses_.insert(ref);
        if (fresh_) fresh_->records.insert(ref);
      }
      if (result == kEntered) enter();
      return "";
    }
    default:
      return "";
  }
}

bool LedgerModel::Agrees(const Held& stored) {
  Held sure = held_;
  for (const std::string& ref : unsure_) {
    if (stored.records.contains(ref)) sure.records.insert(ref);
  }
  if (sure != stored) return false;
  held_ = std::move(sure);
  unsure_.clear();
  return true;
}

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

WorkJudge::WorkJudge(Mode rules, Timestamp now, bool may_be_full)
    : models_(kWorkers, Model(rules)),
      ledgers_(kWorkers, LedgerModel(rules)),
      mappings_(kWorkers, MappingModel(may_be_full)) {
  for (Model& model : models_) {
    model.set_now(now);
    model.set_evidence(kEvidenceOfWorkers);
  }
}

std::string WorkJudge::Judge(const WorkPlan& plan, const std::vector<Progress>& progress,
                             const NodeStore& store) {
  const auto stored = store.ListUserNamespaces();
  if (!stored) return stored.error().ToString();
  if (std::string overlap = FaultOfAllocations(*stored); !overlap.empty()) return overlap;
  for (std::size_t which = 0; which < kWorkers; ++which) {
    std::string difference = JudgeImages(plan, which, progress[which], store);
    if (difference.empty()) difference = JudgeMappings(plan, which, progress[which], *stored);
    if (difference.empty()) difference = JudgeLedger(plan, which, progress[which], store);
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
    const bool is_own = BelongsTo(which, record.image_ref) && !IsPreloaded(record.image_ref);
    if (is_own) own_records.push_back(record);
  }
  std::vector<ImagePullIntent> own_intents;
  for (const auto& intent : *intents) {
    if (BelongsTo(which, intent.image)) own_intents.push_back(intent);
  }
  const auto pulls = store.ListOpenPulls();
  if (!pulls) return pulls.error().ToString();
  PullStates own_pulls;
  for (const UnresolvedPull& pull : *pulls) {
    if (BelongsTo(which, pull.image)) Count(pull, own_pulls);
  }
  Model& model = models_[which];
  // The store was opened once more since: what ran has ended.
  const auto compare = [&] {
    Model opened = model;
    static_cast<void>(opened.Restart());
    std::string found = Difference(opened, own_records, own_intents);
    if (!found.empty() || !opened.closed()) return found;
    PullStates expected;
    for (const ModelPull& one : opened.pulls()) {
      // One of anything is everybody's.
      if (!one.pull.anything) Count(one.pull, expected);
    }
    return Difference(expected, own_pulls);
  };
  Worker worker(plan.seed, which, plan.doing);
  ModelDoer doer;
  std::string difference;
  for (std::uint64_t i = 0;; ++i) {
    if (i % plan.operations == 0) static_cast<void>(model.Restart());
    if (i == progress.acknowledged) difference = compare();
    if (i == progress.started) break;
    if (i == progress.acknowledged && difference.empty()) break;
    doer.Do(model, worker.Next());
  }
  if (difference.empty() || compare().empty()) return "";
  return difference;
}

std::string WorkJudge::JudgeMappings(const WorkPlan& plan, std::size_t which,
                                     const Progress& progress,
                                     const std::vector<PodMapping>& stored) {
  MappingModel::Mappings own;
  for (const PodMapping& allocation : stored) {
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

std::string WorkJudge::JudgeLedger(const WorkPlan& plan, std::size_t which,
                                   const Progress& progress, const NodeStore& store) {
  const auto entries = store.ListLedger();
  if (!entries) return entries.error().ToString();
  const auto records = store.ListRecords();
  if (!records) return records.error().ToString();
  LedgerModel::Held stored;
  for (const PreloadedImage& entry : *entries) {
    if (BelongsTo(which, entry.image_ref)) stored.entries.insert(entry.image_ref);
  }
  for (const ImagePulledRecord& record : *records) {
    const bool is_own = BelongsTo(which, record.image_ref) && IsPreloaded(record.image_ref);
    if (is_own) stored.records.insert(record.image_ref);
    if (is_own && !record.credential_mapping.empty()) return record.image_ref + " is open";
  }
  LedgerModel& model = ledgers_[which];
  model.BeginAnew();
  Worker worker(plan.seed, which, plan.doing);
  for (std::uint64_t i = 0; i < progress.acknowledged; ++i) {
    const std::uint32_t result = progress.host_ids[static_cast<std::size_t>(i)];
    if (std::string wrong = model.Do(worker.Next(), result); !wrong.empty()) return wrong;
  }
  if (model.Agrees(stored)) return "";
  const std::string missing = "the ledger has " + std::to_string(stored.entries.size()) +
                              " entries, and there should be " +
                              std::to_string(model.held().entries.size()) + ", or others";
  if (progress.started == progress.acknowledged) return missing;
  // The operation under way, with any of its results.
  const Operation last = worker.Next();
  for (std::uint32_t result = 0; result <= kClosed; ++result) {
    LedgerModel after = model;
    if (!after.Do(last, result).empty() || !after.Agrees(stored)) continue;
    model = after;
    return "";
  }
  return missing;
}

}  // namespace waybill::testing
