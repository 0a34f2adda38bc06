// What a store must say about ID mappings, written as plainly as possible: a list, and nothing
// faster. Time tells what is newer: no two calls are in the same second.

#ifndef WAYBILL_TESTS_MODEL_USERNS_MODEL_H_
#define WAYBILL_TESTS_MODEL_USERNS_MODEL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/base/options.h"
#include "waybill/values.h"

namespace waybill::testing {

// A file of a pod, and what is known of it.
struct DrawnUsernsFile {
  std::string content;
  std::optional<HostIdRange> mapping;  // set: a kubelet takes it
  std::vector<HostIdRange> ranges;     // otherwise; none: it can't be read
};
// By the name of the pod's directory.
using DrawnPods = std::map<std::string, DrawnUsernsFile>;

class UsernsModel {
 public:
  struct Mapping {
    HostIdRange range;
    Timestamp created;
    Timestamp stamp = {};  // handed out last
  };
  struct Held {
    std::vector<HostIdRange> ranges;  // empty: not known
    std::string source = {};
    std::optional<Timestamp> since = {};  // nullopt: changed or not, the store decides (Settle)
    Timestamp before = {};                // what it was then
  };

  void set_now(Timestamp now) { now_ = now; }
  void set_handlers(std::vector<RuntimeHandler> handlers) { handlers_ = std::move(handlers); }
  const std::map<std::string, Mapping>& mappings() const { return mappings_; }
  const std::map<std::string, Held>& held() const { return held_; }
  const UserNamespaceOptions& options() const { return options_; }

  // What a call must say; the model changes with it. The store chooses a new pod's range: kNew, and
  // Give takes the choice.
  enum class Answer : std::uint8_t { kNode, kMapping, kNew, kRefused };
  struct Asked {
    Answer answer = Answer::kRefused;
    std::optional<ErrorCode> code = {};
    std::string words = {};  // part of the error
    HostIdRange range = {};
  };
  Asked Get(const UserNamespaceRequest& request);
  // Why the store must not give the pod that; "": the pod has it now.
  std::string Give(const std::string& pod_uid, const IdMapping& mapping);

  // nullopt: kInvalidArgument.
  std::optional<bool> Release(const std::string& pod_uid);
  // nullopt: done.
  std::optional<ErrorCode> Adopt(const std::string& pod_uid, HostIdRange range);
  CleanUpReport CleanUp(const std::vector<std::string>& pods, Timestamp token);
  bool ReleaseLost() { return held_.erase("") > 0; }

  // `pods`: the files in the directory that the store is opened with; null: opened without one.
  IdMappingReport Open(const UserNamespaceOptions& options, const DrawnPods* pods);
  // An opening that could not read the directory.
  void FailToImport();

  // Whether a pod of unknown range stands in the way of new ones.
  bool Refuses() const;
  PoolUse StoreCounts() const;
  std::vector<PodMapping> List() const;

  // Takes over since when each pod is held if that was not sure. What is wrong; "": nothing.
  std::string Settle(const std::vector<QuarantinedPod>& held);

 private:
  bool MayBeTaken(HostIdRange range, const std::string& by_others_than) const;
  void Hold(const std::string& pod_uid, const std::vector<HostIdRange>& ranges,
            IdMappingReport& report);
  void Look(const std::string& pod_uid, const DrawnUsernsFile& file, IdMappingReport& report,
            std::map<std::string, HostIdRange>& candidates);
  void Take(const std::map<std::string, HostIdRange>& candidates, IdMappingReport& report);
  PoolRelation RelationOf(const Mapping& mapping) const;
  std::vector<HostIdRange> PoolRanges() const;

  Timestamp now_;
  UserNamespaceOptions options_;
  std::vector<RuntimeHandler> handlers_;
  std::map<std::string, Mapping> mappings_;
  std::map<std::string, Held> held_;
};

bool Overlap(HostIdRange a, HostIdRange b);
// The range has neither the host's IDs nor 2^32−1.
bool MayBeHandedOut(HostIdRange range);

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_MODEL_USERNS_MODEL_H_
