// Plays a random history on one or more stores, each beside its model, and compares at every step.

#ifndef WAYBILL_TESTS_MODEL_HISTORY_H_
#define WAYBILL_TESTS_MODEL_HISTORY_H_

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/draw.h"
#include "tests/support/fake_clock.h"
#include "tests/support/model.h"
#include "waybill/node_store.h"

namespace waybill::testing {

// A store that does not do what its model does.
struct Mismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A token and the model's, drawn together.
struct TokenPair {
  PruneToken store;
  std::uint64_t model = 0;
};

struct Side {
  Side(Rules rules_in, std::filesystem::path directory_in)
      : rules(rules_in), directory(std::move(directory_in)), model(rules_in) {}

  Rules rules;
  std::filesystem::path directory;
  Model model;
  std::unique_ptr<NodeStore> store;
  std::deque<TokenPair> tokens;
};

class History {
 public:
  History(const std::filesystem::path& scratch, const std::vector<Rules>& rules,
          std::uint64_t seed);

  // Throws Mismatch with the seed, the step and what was done last.
  void Play(std::uint64_t steps);

 private:
  using Action = void (History::*)();

  void Step();
  void CheckStep();
  void EnsureStep();
  void IntentStep();
  void PulledStep();
  void FailedStep();
  void PruneByTokenStep();
  void PruneByTimeStep();
  void DrawTokenStep();
  void PutRecordStep();
  void GetRecordStep();
  void DeleteRecordStep();
  void PutIntentStep();
  void DeleteIntentStep();
  void FlushStep();
  void ClockStep();
  void RefusedStep();
  void RestartStep();
  void CompareStep();

  void Open(Side& side, const std::optional<std::vector<ImageOnNode>>& images);
  void CompareMetrics(Side& side);
  Decision Ask(Side& side, const KnownImage& image, const std::string& ref, const ModelPod& pod);
  void SettleWriteBack(Side& side, const KnownImage& image, const std::string& ref,
                       const ModelPod& pod, const std::optional<ImagePullSecret>& write_back);
  void ComparePruned(Side& side, const Result<PruneReport>& got, const PruneReport& expected) const;
  // `before`: the refs of which the first side had a record.
  void NoteParted(const std::set<std::string>& before);
  void Note(std::string what);
  void SetTime(Timestamp now);
  void Expect(bool ok, const Side& side, const std::string& what) const;
  void ExpectDone(const Result<void>& result, const Side& side) const;

  Draw draw_;
  FakeClock clock_;
  ModelPolicy policy_;
  std::vector<Side> sides_;
  std::deque<std::string> last_;  // what was done last
  // Image refs of which one side lost a record to garbage collection that the other kept: on these
  // the answers may differ either way.
  std::set<std::string> parted_;
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_MODEL_HISTORY_H_
