// Two stores that had the same history under different rules: where closed rules may answer
// otherwise than by keeping an image closed.

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
  // Returns a ref of which kubelet rules have a record, and closed ones lost theirs; "" for none.
  std::string After(const Model& kubelet, const Model& closed, bool garbage_collected);

  // Garbage collection took the record of one side alone, or its credentials; or what only that
  // record said of its manifest or guest cost it the credentials: the other may still prove what
  // was proven.
  bool Parted(const std::string& ref, const std::string& stored) const {
    return parted_.contains({ref, stored});
  }
  // What kubelet rules wrote last of this ref, for some handler, is younger than what closed rules
  // did for the same (theirs was there already): garbage collection may then take the closed one
  // first.
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
