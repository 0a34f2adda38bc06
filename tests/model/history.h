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

#include "store/base/options.h"
#include "store/base/words.h"
#include "tests/support/draw.h"
#include "tests/support/fake_clock.h"
#include "tests/support/model.h"
#include "tests/support/node_store.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::testing {

// The store and its model differ.
struct Mismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// How the stores of one history are related, beside each doing what its own model does.
enum class Relation : std::uint8_t {
  kNone,
  // Default handler only. The second has a registry of handlers and may name the default handler by
  // its name; it answers as the first.
  kSameAnswers,
};

struct HistoryPlan {
  std::vector<Mode> rules;  // one a store
  Relation relation = Relation::kNone;
};

// A backup that a migration made, and what the store was then.
struct ModelBackup {
  std::string path;
  std::uint32_t version = 0;
  std::uint64_t moment = 0;  // the same number: made at the same moment of the history
  std::shared_ptr<Model> model;
};

struct Side {
  Side(Mode rules_in, std::filesystem::path directory_in)
      : rules(rules_in), directory(std::move(directory_in)), model(rules_in) {}

  Mode rules;
  std::filesystem::path directory;
  Model model;
  std::unique_ptr<NodeStore> store;
  std::deque<ListToken> tokens;
  std::deque<PullId> pulls;         // of History::begun_
  std::deque<ModelBackup> backups;  // oldest first
  std::uint32_t version = kNewestSchema;
};

// A pull that began, and that may have ended since.
struct BegunPull {
  KnownImage image;
  std::string handler;
};

class History {
 public:
  History(const std::filesystem::path& scratch, const HistoryPlan& plan, std::uint64_t seed);

  // Throws Mismatch with the seed, the step and what was done last.
  void Play(std::uint64_t steps);

 private:
  using Action = void (History::*)();

  void Step();
  void CheckStep();
  void EnsureStep();
  void CompareStep();
  void FlushStep();
  void ClockStep();
  // Recording (history_steps.cc).
  void IntentStep();
  void PulledStep();
  void FailedStep();
  void PutRecordStep();
  void GetRecordStep();
  void DeleteRecordStep();
  void PutIntentStep();
  void DeleteIntentStep();
  void RefusedStep();
  // Lists, the ledger, open pulls (history_evidence.cc).
  void ObserveStep();
  void AddToLedgerStep();
  void RemoveFromLedgerStep();
  void SettlePresumedStep();
  void DropPullStep();
  void SpellingsStep();
  void ObserveIn(const ImageList& drawn, std::optional<std::size_t> token, bool allow_empty);
  void RemoveFromLedger(const std::string& ref, const std::string& handler);
  void SettlePresumed(const std::string& ref, const std::string& handler, Settled settled);
  // Clocks that are wrong, images that are away (history_away.cc).
  void WrongClockStep();
  void AwayStep();
  void BeyondBoundStep();
  void BackupStep();
  void ObserveComplete(std::vector<ListedImage> images);
  // One step more of this step.
  void Also(Action action);
  // Revocation (history_revocation.cc).
  void ForgetStep();
  void ReconcileStep();
  // Garbage collection (history_prune.cc).
  void PruneByTokenStep();
  void PruneByTimeStep();
  void DrawTokenStep();
  // A new process (history_opening.cc).
  void RestartStep();
  void ClearDistrustStep();
  // The registry (history_handlers.cc).
  void HandlersStep();
  void ReplaceHandlers(const std::vector<RuntimeHandler>& handlers);
  void ReplaceHandlersAtStart(const std::vector<RuntimeHandler>& handlers);
  void CollapseHandlers();
  void RefuseHandlers();
  // Whole stores (history_maintenance.cc).
  void MaintenanceStep();
  void MigrateDownAndUp();
  void RestoreBackup();

  // A decision that reads before something is forgotten, and compares after it.
  struct Question {
    KnownImage image;
    std::string ref;
    ModelPod pod;
    std::string handler;
  };
  std::optional<Question> DrawQuestion();
  template <typename Report, typename Call, typename Expected>
  void ForgetIn(Side& side, const std::optional<Question>& in_flight, const Call& call,
                const Expected& expect);
  // Decisions, perhaps of the next process.
  void AskAfterRevoking();
  std::string DrawHandler();
  std::optional<PulledManifest> DrawManifest();
  // The handler as the caller of this side names it; under kSameAnswers perhaps by its own name.
  std::string Named(const Side& side, const std::string& handler) const;
  std::vector<ListedImage> DrawListed();
  std::vector<ListedImage> ListedFor(const Side& side, std::vector<ListedImage> images) const;
  // One that began, by its ID, or nullopt: any, without.
  std::optional<std::size_t> DrawBegun();
  ModelOpening DrawOpening();
  std::string DescribeOpening(const ModelOpening& opening) const;
  void Stop(Side& side);
  void Open(Side& side, ModelOpening opening);
  void MakeBroken(const Side& side, const ModelOpening& opening);
  void CompareOpened(Side& side, const OpeningReport& report, const ModelOpened& expected);
  void NoteBackup(Side& side, const std::string& path);
  void GoDown(Side& side, bool accept_loss, bool dry_run);
  void GoUp(Side& side);
  void CompareBackups(const Side& side) const;
  void ExpectOwned(const Side& side) const;
  // Nothing is open to a pod now that was closed before, under these handlers.
  void ExpectNothingOpened(const Side& side, const Model& before,
                           const std::set<std::string>& handlers);
  void CompareMetrics(Side& side);
  Decision Ask(Side& side, const KnownImage& image, const std::string& ref, const ModelPod& pod,
               const std::string& handler);
  void SettleWriteBack(Side& side, const KnownImage& image, const std::string& ref,
                       const ModelPod& pod, const std::string& handler,
                       const std::optional<ImagePullSecret>& write_back);
  // Tries a dry run, and without allow_empty, before the run itself.
  void ComparePruned(Side& side, const std::vector<ListedImage>& images,
                     const std::function<Result<PruneReport>(const waybill::ChangeOptions&)>& prune,
                     const std::function<PruneReport(Model&)>& expect);
  void Note(std::string what);
  void SetTime(Timestamp now);
  void Expect(bool ok, const Side& side, const std::string& what) const;
  // The store holds what its model does.
  void ExpectSame(const Side& side, const std::string& otherwise = "") const;
  void ExpectDone(const Result<void>& result, const Side& side) const;
  // Done, or refused for its handler if the model refused it, too.
  void ExpectTaken(const Result<void>& result, bool taken, const Side& side) const;
  // Whether the models of all sides say the same. If closed rules kept something of a handler that
  // vanished, one store accepts what the other refuses, and they can't be compared any more.
  template <typename Says>
  bool Agree(const Says& says) const {
    for (const Side& side : sides_) {
      if (says(side.model) != says(sides_[0].model)) return false;
    }
    return true;
  }

  Draw draw_;
  const Relation relation_;
  const bool default_only_;
  const bool plain_;          // nor any manifests: what schema version 1 can say
  bool by_own_name_ = false;  // this step names the default handler so, where that is possible
  FakeClock clock_;
  ModelPolicy policy_;
  std::vector<Side> sides_;
  std::deque<std::string> last_;  // what was done last
  std::uint64_t moment_ = 0;
  std::uint64_t broken_files_ = 0;
  EvidenceOptions evidence_;
  std::size_t rows_at_once_ = 0;
  std::deque<BegunPull> begun_;
  std::deque<ImagePulledRecord> read_;  // from the first store, at some time
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_MODEL_HISTORY_H_
