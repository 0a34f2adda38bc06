// The life of one node: a runtime, a kubelet that keeps its evidence in a real NodeStore, pods that
// ask, and everything that goes wrong. Each answer is held against the truth.

#ifndef WAYBILL_TESTS_SIMULATION_NODE_LIFE_H_
#define WAYBILL_TESTS_SIMULATION_NODE_LIFE_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/cri/pull_ends.h"
#include "store/base/options.h"
#include "store/base/words.h"
#include "tests/simulation/figures.h"
#include "tests/simulation/runtime.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/stock_kubelet.h"
#include "tests/simulation/timeline.h"
#include "tests/simulation/truth.h"
#include "tests/simulation/world.h"
#include "tests/support/fake_clock.h"
#include "tests/support/node_store.h"
#include "waybill/values.h"

namespace waybill::simulation {

using testing::NodeStore;
using testing::PullResult;
using testing::Settled;

// How long the store expects the content of a pull that ended.
inline constexpr Millis kGrace = 2 * kMinute;
inline constexpr Millis kWindow = 2 * kHour;

// A wrong answer, or a call that should have succeeded. What it says has the history.
struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class NodeLife {
 public:
  // `directory` is empty, and in memory if possible.
  NodeLife(const Scenario& scenario, std::filesystem::path directory, std::uint64_t seed,
           Breakage breakage = Breakage::kNone);
  ~NodeLife();
  NodeLife(const NodeLife&) = delete;
  NodeLife& operator=(const NodeLife&) = delete;

  // Until so many decisions were made, or the time is over. Throws Wrong.
  void Live(std::uint64_t decisions, Millis time);
  const Figures& figures() const { return figures_; }

 private:
  struct Question {
    Pod pod;
    std::string image;
    PullPolicy policy = PullPolicy::kIfNotPresent;
    bool is_hasty = false;  // the pod will be deleted while its image is pulled
    int tries = 0;
  };

  // What a pull that the kubelet began is, beyond what the store knows of it.
  struct Pull {
    std::uint64_t number = 0;
    Question question;
    std::optional<FullName> name = {};
    std::optional<ContentIndex> content = {};  // that it would bring
    bool anonymous = false;                    // the registry wanted no credentials
    bool by_node = false;                      // the node's own credential served it
    ProofTerms terms = {};
    Proof proof = {};  // that the registry was shown
    Step began = 0;
    Millis leased_from = 0;
    PullId id = {};
    bool has_intent = false;
    bool attached = true;  // the process that began it still waits for its end
    bool stopped = false;  // it brings nothing any more
    bool lost = false;     // it failed, and brought nothing until then
    bool mixed = false;    // while it ran, another pull of the string failed
    // The store must expect the content until then.
    Millis expected_until = kNever;
    bool forgotten = false;  // the store does not know it, or lost it
  };
  using PullPointer = std::shared_ptr<Pull>;

  enum class Role { kDown, kWaybill, kKubeletRules, kWithoutWaybill, kStockKubelet };

  // --- questions.cc: pods ask ---
  void AskSomething();
  void AskOutOfTurn();
  void AskAbout(const ListedImage& entry, const Pod& pod);
  void Ask(const Question& question);
  EnsureOutcome Ensure(const Question& question, std::optional<ContentIndex> present);
  Question SomeQuestion();
  Pod SomePod(std::size_t tenant);
  std::string SomeString(const Repository& repository);
  std::string SomeId(const Repository& repository);
  Proof ProofOf(const Pod& pod) const;
  // Throws Wrong if the image must not be open.
  void CheckOpen(const Pod& pod, const std::string& image, std::string_view ref,
                 ContentIndex content, const Decision& decision);
  void CheckClosed(const Question& question, ContentIndex content, bool opened,
                   const Decision& decision);
  // The pod was not let in.
  void AskAgain(Question question);
  // Of the tenant, for that content or under that string.
  void EndWaits(std::size_t tenant, std::optional<ContentIndex> content, std::string_view image);
  void AskKubelet(const Question& question, std::optional<ContentIndex> present);
  void AskKubeletBeside(const Pod& pod, const std::string& image, ContentIndex content);

  // --- pulls.cc ---
  static ImageCopy CopyOf(const Pull& pull);  // without the ref
  void StartPull(const Question& question);
  // Who checks what it shows, and until when that is good.
  void DrawServed(Pull& pull, ContentIndex served, bool mirrored);
  void DrawTerms(Pull& pull, bool mirrored);
  void PlanEnd(const PullPointer& pull, Millis duration);
  void Done(const PullPointer& pull);
  void Arrive(const PullPointer& pull);
  void Appear(const PullPointer& pull, bool late);
  void ArriveLater(const PullPointer& pull, Millis expected_for);
  ImagePullCredentials AcceptedCredentials(const Pull& pull) const;
  Step KnownBeginning(const Pull& pull) const;
  void RecordSuccess(const Pull& pull, ContentIndex content);
  void Succeed(const PullPointer& pull);
  void Cut(const PullPointer& pull);
  void CutOff(const PullPointer& pull);
  void Fail(const PullPointer& pull, bool can_ask);
  void ReportFailure(const PullPointer& pull, PullOutcome failure);
  // What the kubelet knows of a pull's end, for what the store must expect.
  void Ended(const PullPointer& pull, Millis expected_for);

  // --- lists.cc ---
  struct Listing {
    ListToken token;
    Step token_step = 0;
    std::vector<ListedImage> images;
    std::set<ContentIndex> contents;  // on the node then
    std::set<ContentIndex> listed;    // of these, in `images`
    std::optional<BootTime> quiet_until;
    std::vector<cri::ContainerdImage> containerd;  // its images, if it is quiet
    std::vector<std::string> names_to_come;
  };
  void ListRegularly();
  // At once: token, list, observe.
  void ListNow();
  Listing BeginListing();
  void LookAtPulls(Listing& listing);
  std::vector<ListedImage> Listed() const;
  void Take(Listing& listing);
  void LeaveOut(Listing& listing);
  bool MisleadOnce(const Listing& listing);
  void Observe(const Listing& listing, bool complete);
  void CheckOpenPulls(const ListToken& token, bool any_left);
  void CollectGarbage();
  void RemoveImage(ContentIndex content);
  void CollectContent(ContentIndex content);

  // --- troubles.cc: what happens to the node ---
  void FirstStart();
  void Kill(Millis downtime);
  // The process ends, and so do the pulls that it waits for.
  void StopProcess();
  void Open(Role mode, bool continues_pulls = false);
  void DescribeStart(const OpeningReport& report);
  void HandOver();
  void Reboot();
  void LoseStore();
  void LoseFiles();
  void ClearDistrust();
  void HaveGap();
  void LeaveKubeletAlone();
  void TakeKubeletOver(NodeStoreOptions& options) const;
  void TookKubeletOver(const OpeningReport& report);
  void EndGap();
  void GapClosed();
  // What pulls that the store never saw may still bring comes from now on.
  void ExpectForgottenPulls();
  void ForgetPulls();
  void JumpClock();
  void UpgradeRuntime();
  void RestartRuntime();
  void WipeRuntime();
  void LoseRegistries();

  // --- away.cc: disks that go and come back, clocks that are wrong for a while
  void SetClocks();
  void DiskGoes();
  void DiskComesBack();
  void SpeakOfAway();
  void CloseAway(ContentIndex content, const ImageCopy& copy, const PreloadedImage& entry);
  void MistakeTheTime();
  void SetWrongTime();
  void PutTheClockRight(Millis after);
  void KubeletWritesAgain();

  // --- people.cc: developers, prefetchers, operators, tenants who mean no good ---
  void MoveTag();
  void ImportFile();
  void ImportTag();
  void ImportFor(const Question& question);
  void BringByHand(ContentIndex content, const FullName& name, bool as_pulled);
  void Operate();
  void Retag(ContentIndex content);
  void Attack();
  void Storm();
  void RotateSecret();

  // --- forgetting.cc: what is deleted, and a node agent that tells the store of it ---
  void DeleteSomething();
  void Forget(const Revocation& what);
  void ForgetMeanwhile(const ImagePullSecret& secret);
  void ForgetAsOperator();
  // Pods that show it ask about what is on the node.
  void AskWithHash(std::size_t tenant, const std::string& hash);
  void ForgetImage(ContentIndex content);
  // Pods that have it still ask about what is on the node.
  void AskWithFormer(std::size_t tenant);
  ExistingCredentials WhatExists() const;
  void ReconcileSoon();
  void DrawAges();
  void LimitAges(NodeStoreOptions& options);

  // --- node_life.cc ---
  void Log(std::optional<ContentIndex> content, std::string text);
  void LogPull(const Pull& pull, std::string text);
  [[noreturn]] void Fail(const std::string& what, std::optional<ContentIndex> content);
  // The value of a call that must succeed.
  template <typename T>
  T Must(Result<T> result, std::string_view call) {
    if (!result) Fail(std::string(call) + ": " + result.error().ToString(), std::nullopt);
    if constexpr (!std::is_void_v<T>) return std::move(*result);
  }
  Step NextStep() { return ++step_; }
  Millis Uptime() const { return timeline_.now() - booted_; }
  bool Broken(Breakage breakage) const { return breakage_ == breakage; }
  std::string NameOf(ContentIndex content) const;
  std::string History(std::optional<ContentIndex> content, std::size_t most) const;

  const Scenario& scenario_;
  const Breakage breakage_;
  const std::uint64_t seed_;
  const std::filesystem::path directory_;
  Draw draw_;
  Timeline timeline_;
  World world_;
  Runtime runtime_;
  Truth truth_;
  Figures figures_;

  // The kubelet.
  Role mode_ = Role::kDown;
  testing::FakeClock clock_;
  Millis clock_offset_ = 0;
  Millis uncounted_ = 0;  // what a store can't have counted of the time
  struct Machine;         // its boot clock, which the store may ask for at any time
  std::shared_ptr<Machine> machine_;
  Millis booted_ = 0;
  std::unique_ptr<NodeStore> store_;
  std::optional<StockKubelet> kubelet_;  // that runs at other times, or beside
  bool kubelet_ran_ = false;             // since waybill did
  // The memory of one that runs beside, and whose guard keeps the store.
  std::optional<StockKubelet> memory_;
  bool took_over_ = false;  // the kubelet's directory, at least once
  // Pods name images without a registry or by IDs, each of which may stand for anything.
  bool short_names_ = true;
  bool names_pulls_ = true;     // ends pulls by their IDs
  bool passes_entries_ = true;  // asks the runtime for the entry of what it pulled
  bool listed_since_start_ = false;
  Millis last_list_on_a_miss_ = -kDay;
  ListToken newest_token_;  // of the newest list that was observed, in this process
  std::optional<std::vector<ListedImage>> old_list_;
  // Those that run or may still bring something, by their numbers.
  std::map<std::uint64_t, PullPointer> pulls_;
  std::uint64_t next_pull_ = 1;
  bool distrusted_ = false;
  bool gap_open_ = false;
  bool registries_reachable_ = true;
  std::uint64_t starts_ = 0;           // of processes
  std::uint64_t sequence_ = 0;         // the store's, when the process ended
  std::uint64_t copied_sequence_ = 0;  // of the copy of the store; 0: none
  bool lost_ = false;                  // since the last start
  bool had_gap_ = false;               // likewise
  bool had_kubelet_rules_ = false;     // in that gap
  // After a loss or a gap the store can't tell what is brought by hand.
  Millis can_tell_from_ = 0;
  std::map<ContentIndex, Millis> refused_since_;
  struct Wait {
    Millis since;
    std::string image;
  };
  std::map<std::pair<std::size_t, ContentIndex>, Wait> waits_;  // by tenant
  // containerd beside CRI.
  cri::PullEnds pull_ends_;
  cri::ServerProcess server_{.pid = 1};
  std::map<std::string, Millis> leases_left_;       // of pulls that ended, until then
  std::map<std::uint64_t, PullPointer> not_shown_;  // by CRI, yet
  bool looks_again_ = false;
  std::uint64_t files_imported_ = 0;
  // Of the last list, and of a disk that is away: what the ledger had of it.
  std::uint64_t left_ = 0;
  struct Away {
    Runtime::Image image;
    std::optional<PreloadedImage> entry;
  };
  std::map<ContentIndex, Away> away_;
  Millis last_storm_ = 0;
  std::chrono::seconds max_age_{0};
  std::chrono::seconds revocations_kept_{std::chrono::hours(24 * 30)};
  bool ages_told_ = false;        // the store remembers these
  std::uint64_t last_truth_ = 0;  // the commit of its token, in this process
  std::optional<Backup> backup_;  // of the last state that had one

  struct Event {
    Millis at;
    std::optional<ContentIndex> content;  // nullopt: concerns them all
    bool is_minor;                        // but need not be told of one
    std::string text;
  };
  std::vector<Event> history_;
  Step step_ = 0;
};

}  // namespace waybill::simulation

#endif  // WAYBILL_TESTS_SIMULATION_NODE_LIFE_H_
