// What must be in a store after a workload was cut off: each worker's operations on a model of its
// own, and whether the store agrees.

#ifndef WAYBILL_TESTS_CRASH_WORK_JUDGE_H_
#define WAYBILL_TESTS_CRASH_WORK_JUDGE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/crash/workload.h"
#include "tests/support/model.h"
#include "tests/support/node_store.h"
#include "waybill/values.h"

namespace waybill::testing {

// Which of a worker's pods has which first host ID.
class MappingModel {
 public:
  // `may_be_full`: a pod without a mapping may be given none.
  explicit MappingModel(bool may_be_full) : may_be_full_(may_be_full) {}

  using Mappings = std::map<std::string, std::uint32_t>;

  const Mappings& mappings() const { return mappings_; }
  // Draws of tokens are forgotten, as a new process does.
  void BeginAnew() { fresh_.reset(); }
  // An operation that was acknowledged, and what StoreDoer::Do returned. "", or what is wrong with
  // that.
  std::string Do(const Operation& operation, std::uint32_t host_id);
  // One that was not, but happened: `stored` says what it was given.
  void DoUnacknowledged(const Operation& operation, const Mappings& stored);

 private:
  bool may_be_full_;
  Mappings mappings_;
  std::optional<std::set<std::string>> fresh_;  // handed out since the token was drawn, if one was
};

// Which of a worker's images that nobody pulls are in the ledger, and which are closed.
class LedgerModel {
 public:
  explicit LedgerModel(Mode rules) : closed_(rules == Mode::kStrict) {}

  struct Held {
    std::set<std::string> entries;
    std::set<std::string> records;  // without credentials: taken out of the ledger once
    friend bool operator==(const Held&, const Held&) = default;
  };
  const Held& held() const { return held_; }
  void BeginAnew() { fresh_.reset(); }
  // As MappingModel::Do.
  std::string Do(const Operation& operation, std::uint32_t result);
  // Whether a store holds what it should. It settles what the model can't know.
  bool Agrees(const Held& stored);

 private:
  bool closed_;
  Held held_;
  std::set<std::string> guesses_;  // records that a list made, and no operator confirmed
  std::set<std::string> words_;    // images that an operator closed
  // Images that a prune found gone while an operator's closing waited for them. Any worker's list
  // that has one makes its record as young as that list. A prune with an earlier token then lets
  // the record stay, if the operator opened the image meanwhile.
  std::set<std::string> gone_;
  std::set<std::string> unsure_;  // of these, pruned or not
  std::optional<Held> fresh_;     // written since the token was drawn, if one was
};

class WorkJudge {
 public:
  WorkJudge(Mode rules, Timestamp now, bool may_be_full = false);

  // The workers began anew with `plan`, did `acknowledged` and may have done one more of `started`.
  // The store is open again since. "" where nothing is missing and nothing contradicts.
  struct Progress {
    std::uint64_t started = 0;
    std::uint64_t acknowledged = 0;
    // Of each acknowledged operation: what StoreDoer::Do returned.
    std::vector<std::uint32_t> host_ids = {};
  };
  std::string Judge(const WorkPlan& plan, const std::vector<Progress>& progress,
                    const NodeStore& store);

 private:
  std::string JudgeImages(const WorkPlan& plan, std::size_t which, const Progress& progress,
                          const NodeStore& store);
  std::string JudgeMappings(const WorkPlan& plan, std::size_t which, const Progress& progress,
                            const std::vector<PodMapping>& stored);
  std::string JudgeLedger(const WorkPlan& plan, std::size_t which, const Progress& progress,
                          const NodeStore& store);

  std::vector<Model> models_;
  std::vector<LedgerModel> ledgers_;
  std::vector<MappingModel> mappings_;
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_CRASH_WORK_JUDGE_H_
