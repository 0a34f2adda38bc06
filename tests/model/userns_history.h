// Plays a random history of ID mappings on a store beside its model. After every step the store
// says what the model says, and no two pods share a host ID.

#ifndef WAYBILL_TESTS_MODEL_USERNS_HISTORY_H_
#define WAYBILL_TESTS_MODEL_USERNS_HISTORY_H_

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/base/options.h"
#include "tests/model/userns_draw.h"
#include "tests/model/userns_model.h"
#include "tests/support/draw.h"
#include "tests/support/fake_clock.h"
#include "tests/support/node_store.h"
#include "waybill/values.h"

namespace waybill::testing {

class UsernsHistory {
 public:
  UsernsHistory(std::filesystem::path scratch, std::uint64_t seed);

  // Throws std::runtime_error with the step and what was done last.
  void Play(std::uint64_t steps);

  // How often what happened, so that a test can check that everything did.
  const std::map<std::string, std::uint64_t>& counts() const { return counts_; }

 private:
  struct Token {
    ListToken token;
    Timestamp drawn;
  };

  void Step();
  // Calls (userns_history.cc).
  void GetStep();
  void LookUpStep();
  void ReleaseStep();
  void AdoptStep();
  void TokenStep();
  void CleanUpStep();
  void HandlersStep();
  void HeldStep();
  // A new process (userns_history_opening.cc).
  void RestartStep();
  void CrashStep();
  void WrongPoolStep();
  void UnreadableStep();
  void Stop();
  void Open(bool with_pods);
  Result<std::unique_ptr<NodeStore>> TryToOpen(bool with_pods);
  void WritePods();
  std::filesystem::path pods() const { return scratch_ / "pods"; }

  void CompareAll();
  void CheckInvariants(const std::vector<PodMapping>& list);
  void Note(std::string what);
  void Expect(bool ok, const std::string& what) const;
  void ExpectCode(const Error& error, ErrorCode code, const std::string& words = "") const;

  Draw draw_;
  std::filesystem::path scratch_;
  FakeClock clock_;
  UserNamespaceOptions options_;
  UsernsModel model_;
  DrawnPods pods_;
  std::unique_ptr<NodeStore> store_;
  std::deque<Token> tokens_;
  // The range of each pod that may run, from return values alone.
  std::map<std::string, HostIdRange> seen_;
  std::deque<std::string> last_;
  std::map<std::string, std::uint64_t> counts_;
  std::uint64_t step_ = 0;
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_MODEL_USERNS_HISTORY_H_
