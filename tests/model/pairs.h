// Two stores with the same history under different rules: where closed rules may do something else
// than keep an image closed.

#ifndef WAYBILL_TESTS_MODEL_PAIRS_H_
#define WAYBILL_TESTS_MODEL_PAIRS_H_

#include <map>
#include <set>
#include <string>

#include "tests/support/model.h"

namespace waybill::testing {

class Pairs {
 public:
  // Around each step.
  void Before(const Model& kubelet, const Model& closed);
  // A ref with a record under kubelet rules whose record closed rules lost; "": there is none.
  std::string After(const Model& kubelet, const Model& closed, bool garbage_collected);

  // Only one side lost its record or its credentials: by garbage collection, or because only its
  // record named a manifest or guest. The other side may still prove credentials.
  bool Parted(const std::string& ref, const std::string& stored) const {
    return parted_.contains({ref, stored});
  }
  // For some handler, kubelet rules wrote this ref later than closed rules, which had a record
  // already: garbage collection may remove the closed record first.
  bool Younger(const std::string& ref) const;

  // Of a backup made in this step, and back again.
  void Remember(std::uint64_t moment);
  void Restored(std::uint64_t moment);

 private:
  struct Differences {
    std::set<Model::CopyKey> parted;
    std::set<Model::CopyKey> younger;
  };
  void Remember(Differences& then) const;

  std::set<Model::CopyKey> parted_;
  std::set<Model::CopyKey> younger_;
  std::map<std::uint64_t, Differences> remembered_;
  std::set<std::uint64_t> moments_;  // of this step: a backup may be of any state within it
  // Before the step.
  std::set<Model::CopyKey> proven_;  // under kubelet rules
  // Of those: with another manifest or guest than under closed rules.
  std::set<Model::CopyKey> of_another_image_;
  std::uint64_t kubelet_token_ = 0;
  std::uint64_t closed_token_ = 0;
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_MODEL_PAIRS_H_
