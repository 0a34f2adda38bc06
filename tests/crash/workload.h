// What several threads do to a store, repeatable from a seed and told in such a way that somebody
// else can say afterwards what must be there: each thread has images, repositories and refs of its
// own.

#ifndef WAYBILL_TESTS_CRASH_WORKLOAD_H_
#define WAYBILL_TESTS_CRASH_WORKLOAD_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/draw.h"
#include "tests/support/model.h"
#include "waybill/node_store.h"

namespace waybill::testing {

inline constexpr std::size_t kWorkers = 3;

struct Operation {
  enum class Kind : std::uint8_t {
    kIntent,
    kPulled,
    kFailed,
    kPutRecord,
    kDeleteRecord,
    kPutIntent,
    kDeleteIntent,
    kDrawToken,
    kPrune,
  };
  Kind kind = Kind::kIntent;
  KnownImage image = {};
  std::string ref = {};
  std::optional<ImagePullCredentials> credentials = {};
  PullFailure failure = PullFailure::kFailed;
  ImagePulledRecord record = {};
  std::vector<std::string> listed = {};
};

// The operations of one worker, in order.
class Worker {
 public:
  Worker(std::uint64_t seed, std::size_t which) : which_(which), draw_(seed * kWorkers + which) {}
  Operation Next();

 private:
  std::string Ref(std::size_t number) const;
  KnownImage Image();

  std::size_t which_;
  Draw draw_;
};

// Whose record or intent it is.
bool BelongsTo(std::size_t worker, const std::string& ref_or_image);

// Does them on a store.
class StoreDoer {
 public:
  // In the order of the operations; across several openings of the store.
  Result<void> Do(NodeStore& store, const Operation& operation);

 private:
  std::optional<PruneToken> token_;
};

// Does them on a model.
class ModelDoer {
 public:
  void Do(Model& model, const Operation& operation);

 private:
  std::optional<std::uint64_t> token_;
};

// Runs all workers on one store after the other: `sessions` openings of `operations` operations
// each and worker. `started` and `done` are told of the worker and the number of its operation.
// False where an operation failed; the error went to stderr.
struct WorkPlan {
  OpenOptions options;
  std::uint64_t seed = 0;
  std::uint64_t sessions = 0;
  std::uint64_t operations = 0;
  std::function<void(std::size_t, std::uint64_t)> started = {};
  std::function<void(std::size_t, std::uint64_t)> done = {};
};
bool Work(const WorkPlan& plan);

// What the workers' models say after so many operations, and whether the store agrees.
class WorkJudge {
 public:
  WorkJudge(Rules rules, Timestamp now);

  // The workers began anew with `plan`, did `acknowledged` and may have done one more of `started`.
  // The store is open again since. "" where nothing is missing and nothing contradicts.
  struct Progress {
    std::uint64_t started = 0;
    std::uint64_t acknowledged = 0;
  };
  std::string Judge(const WorkPlan& plan, const std::vector<Progress>& progress,
                    const NodeStore& store);

 private:
  std::vector<Model> models_;
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_CRASH_WORKLOAD_H_
