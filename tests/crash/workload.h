// What several threads do to a store, repeatable from a seed, so that work_judge.h can say what
// must be there afterwards. Each thread has images, repositories, refs and pods of its own.

#ifndef WAYBILL_TESTS_CRASH_WORKLOAD_H_
#define WAYBILL_TESTS_CRASH_WORKLOAD_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/base/options.h"
#include "tests/support/draw.h"
#include "tests/support/known_images.h"
#include "tests/support/node_store.h"
#include "waybill/values.h"

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
    kGetMapping,
    kReleaseMapping,
    kCleanUpMappings,
    kAddPreloaded,
    kRemovePreloaded,
    kObserve,
  };
  Kind kind = Kind::kIntent;
  KnownImage image = {};
  std::string ref = {};
  std::optional<ImagePullCredentials> credentials = {};
  PullOutcome failure = PullOutcome::kFailed;
  ImagePulledRecord record = {};
  std::vector<ListedImage> listed = {};  // for a prune
  std::string preloaded = {};  // the ref of an image that no worker pulls, to be added or observed
  std::string pod_uid = {};
  std::vector<std::string> listed_pods = {};
};

enum class Doing : std::uint8_t { kAnything, kMappings };

// The operations of one worker, in order.
class Worker {
 public:
  Worker(std::uint64_t seed, std::size_t which, Doing doing)
      : which_(which), doing_(doing), draw_(seed * kWorkers + which) {}
  Operation Next();

 private:
  std::string Ref(std::size_t number) const;
  KnownImage Image();

  std::size_t which_;
  Doing doing_;
  Draw draw_;
};

// Whose record, intent or pod it is.
bool BelongsTo(std::size_t worker, const std::string& ref_or_image_or_pod_uid);
bool IsPreloaded(const std::string& ref);

// What StoreDoer::Do returns of kObserve.
enum Observed : std::uint32_t { kRefused, kLeft, kKnown, kEntered, kClosed };

// Does them on a store.
class StoreDoer {
 public:
  // In the order of the operations; across several openings of the store. The first host ID that
  // the operation was given, 0: none. Of a release 1: there was a mapping. Of kAddPreloaded 1: it
  // was added. Of kRemovePreloaded 1: there was an entry.
  Result<std::uint32_t> Do(NodeStore& store, const Operation& operation);

 private:
  Result<void> Change(NodeStore& store, const Operation& operation);
  Result<std::uint32_t> ChangeLedger(NodeStore& store, const Operation& operation);

  std::optional<ListToken> token_;
};

// What the workers need of a store: user namespaces, and a range for each of their pods but not
// one more, so that a range that is free is soon handed out again.
void MakeRoomForWorkers(NodeStoreOptions& options);
// The models of workers know no image that is gone and comes back.
inline const EvidenceOptions kEvidenceOfWorkers{.remember = std::chrono::seconds(0)};

// Runs all workers on one store after the other: `sessions` openings of `operations` operations
// each and worker. `started` and `done` are told of the worker and the number of its operation,
// `done` also of the first host ID that it was given (0: none). False where an operation failed;
// the error went to stderr.
struct WorkPlan {
  NodeStoreOptions options;
  std::uint64_t seed = 0;
  std::uint64_t sessions = 0;
  std::uint64_t operations = 0;
  Doing doing = Doing::kAnything;
  std::function<void(std::size_t, std::uint64_t)> started = {};
  std::function<void(std::size_t, std::uint64_t, std::uint32_t)> done = {};
};
bool Work(const WorkPlan& plan);

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_CRASH_WORKLOAD_H_
