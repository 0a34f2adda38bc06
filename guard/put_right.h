// Makes a kubelet's files what Compare found that they must be. What closes goes before what opens,
// and only a removed record opens. All is on the disk when it returns.

#ifndef WAYBILL_GUARD_PUT_RIGHT_H_
#define WAYBILL_GUARD_PUT_RIGHT_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "guard/compare.h"
#include "guard/kept_files.h"
#include "guard/life.h"
#include "waybill/result.h"

namespace waybill::guard {

class PutRight {
 public:
  explicit PutRight(Life& life) : life_(life), kept_(life.image_manager / kOwnFolder) {}

  Result<void> BeginKeeping() { return kept_.Begin(); }
  // `watched`: the guard saw what came before, so what is gone went while a kubelet ran. An act
  // that fails keeps no other from being done. Returns whether to look again: something changed, or
  // was not what it was expected to be. What can't be done is logged, once.
  Result<bool> operator()(std::vector<Act> acts, bool watched);

 private:
  // nullopt: it can't be done now.
  Result<bool> Do(const Act& act, bool watched);
  void TellOnce(const std::string& problem);
  std::optional<std::string> Keep(const Act& act);
  void Tell(const Act& act, bool watched, const std::string& kept);
  void TellRemoved(const Act& act, const std::string& kept) const;

  Life& life_;
  KeptFiles kept_;
  std::set<std::string> told_;   // what can't be done
  std::set<std::string> stays_;  // of that, what these acts could not do
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_PUT_RIGHT_H_
