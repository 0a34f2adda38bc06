// Judges a whole store on damaged files: each replaces data.mdb and is opened. What had to be
// pulled before must still be pulled, also after a list of all images that is judged: what closes
// an image (a record, an open pull) may not get lost unseen. This happens in child processes, so
// that a crash is a count.

#ifndef WAYBILL_TESTS_SUPPORT_DAMAGE_JUDGE_H_
#define WAYBILL_TESTS_SUPPORT_DAMAGE_JUDGE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/sample_store.h"

namespace waybill::testing {

enum class OpenedBy { kOwner, kOwnerWithWitness, kObserver };

struct DamageVerdicts {
  std::uint64_t judged = 0;
  std::uint64_t accepted = 0;  // taken as it is, and trusted
  std::uint64_t set_aside = 0;
  std::uint64_t distrusted = 0;  // taken as it is, but distrusted
  std::uint64_t refused = 0;     // an error: right for an observer only
  // Each of these is a fault.
  std::uint64_t opened = 0;      // "pull" became "no pull", or a pod's ID range became free
  std::uint64_t changed = 0;     // accepted, but some answer differs
  std::uint64_t unrepaired = 0;  // the second opening found something, or answered otherwise
  std::uint64_t failed = 0;      // an owner was refused
  std::uint64_t crashes = 0;
  std::array<char, 500> first_fault{};

  bool Good() const { return opened + changed + unrepaired + failed + crashes == 0; }
};
std::ostream& operator<<(std::ostream& out, const DamageVerdicts& verdicts);

class DamageJudge {
 public:
  explicit DamageJudge(SampleStore sample);

  // Gets 0 … count − 1 and the sound bytes. A file that it leaves unchanged is not judged.
  using Damage = std::function<void(std::size_t, std::string&)>;
  // `every_asking`: asks about each file under both rules and both policies, else under one of the
  // four in turn.
  DamageVerdicts Run(std::size_t count, const Damage& damage, OpenedBy by,
                     bool every_asking = false);

  const SampleStore& sample() const { return sample_; }

 private:
  class Worker;

  SampleStore sample_;
  const std::vector<Asking> askings_ = AllAskings();
  struct Answers {
    std::vector<bool> opened;
    std::vector<bool> listed;  // after a list of the images; mode strict only
  };
  std::vector<Answers> answers_;  // of the sound store, by asking
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_DAMAGE_JUDGE_H_
