// What a store must answer and hold, written a second time: in memory, slow and plain. It uses only
// the library's public types. It follows the kubelet; what Mode::kStrict does differently is in
// model_evidence.cc, and elsewhere where it says so.

#ifndef WAYBILL_TESTS_SUPPORT_MODEL_H_
#define WAYBILL_TESTS_SUPPORT_MODEL_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/base/options.h"
#include "store/base/policy.h"
#include "tests/support/known_images.h"
#include "tests/support/metrics.h"
#include "tests/support/node_store.h"
#include "waybill/values.h"

namespace waybill::testing {

struct ModelPod {
  bool available = true;
  std::vector<ImagePullSecret> secrets;
  std::optional<ImagePullServiceAccount> service_account;
};

// Of secrets or service accounts.
template <typename T>
bool SameCoordinates(const T& a, const T& b) {
  return a.uid == b.uid && a.namespace_name == b.namespace_name && a.name == b.name;
}

struct ModelPolicy {
  Verification mode = Verification::kNeverVerifyPreloadedImages;
  std::vector<std::string> patterns = {};
  AllowlistScope scope = AllowlistScope::kAnyImage;
  std::vector<ProofRule> proofs = {};
};

// What a store is opened with, beside its policy.
struct ModelOpening {
  std::optional<std::vector<ListedImage>> images = std::nullopt;
  std::optional<std::vector<ListedImage>> preloaded = std::nullopt;
  std::optional<std::vector<RuntimeHandler>> handlers = std::nullopt;
  bool continues_pulls = false;
  Gap gap = Gap::kDetect;  // nothing here to detect one by
  FirstStart first_start = FirstStart::kPresume;
  std::optional<std::chrono::seconds> max_age = std::nullopt;
  std::chrono::hours revocations_kept{24 * 30};
  // The commit of the oldest backup that lies in backup/.
  std::uint64_t oldest_backup = std::numeric_limits<std::uint64_t>::max();
  // Files of the kubelet that can't be read, known by their names.
  std::set<std::string> broken_refs = {};
  std::set<std::string> broken_images = {};
};

struct ModelOpened {
  std::uint64_t intents_found = 0;
  std::uint64_t intents_replayed = 0;
  std::uint64_t gap_closed = 0;
  RuntimesReport runtimes = {};
  std::optional<ClassifyReport> observed = std::nullopt;
};

struct ModelPull {
  UnresolvedPull pull;
  KnownImage image;
  std::uint64_t number = 0;  // as the pulls began; of several, the last

  friend bool operator==(const ModelPull& a, const ModelPull& b) {
    return a.pull == b.pull && a.number == b.number;
  }
};

class Model {
 public:
  // Image (ImageOf), handler as it is stored.
  using CopyKey = std::pair<std::string, std::string>;
  using IntentKey = std::pair<std::string, std::string>;  // image, handler as it is stored

  explicit Model(Mode rules) : closed_(rules == Mode::kStrict) {}

  void set_now(Timestamp now, BootTime boot = {}) {
    now_ = now;
    boot_ = boot;
  }
  void set_policy(ModelPolicy policy) { policy_ = std::move(policy); }
  // Instead of kMaxRemembered. Here it is known of 0 alone, which ones are beyond it.
  void set_most_remembered(std::size_t most) { most_remembered_ = most; }
  void set_evidence(EvidenceOptions options) { evidence_ = options; }
  // The store's last commit, before a step and before time passes: whatever the step writes is of a
  // later one. What was committed since the last call was written now, though perhaps nothing of it
  // shows. Without this, the model numbers its own writes.
  void CommittedSoFar(std::uint64_t commits) {
    if (commits > writes_) Committed();
    writes_ = commits;
    counts_ = false;
  }
  // The process ended. What no commit has is forgotten.
  void Ended() { last_list_ = kept_list_; }

  // The name under which records are kept; nullopt: not in the registry. Handlers are named here as
  // callers name them.
  std::optional<std::string> Stored(const std::string& handler) const;

  // A decision, which is counted, and the secret of the pod that the record gets.
  struct Answer {
    Decision decision;
    std::optional<ImagePullSecret> write_back;
  };
  Answer Check(const KnownImage& image, const std::string& ref, const ModelPod& pod,
               const std::string& handler = {});
  void Count(const Decision& decision);
  // Secrets that the record which such a question is about has for the image's name.
  std::size_t SecretsFor(const KnownImage& image, const std::string& ref,
                         const std::string& handler) const;
  // The same, not counted.
  Answer Decide(const KnownImage& image, const std::string& ref, const ModelPod& pod,
                const std::string& handler) const;
  void WriteBack(const KnownImage& image, const std::string& ref, const ImagePullSecret& secret,
                 const std::string& handler = {});
  EnsureAction Ensure(const KnownImage& image, const std::string& ref, PullPolicy policy,
                      const ModelPod& pod, std::optional<ImagePullSecret>& write_back,
                      const std::string& handler = {});

  // false: refused, and nothing changed. The store's ID of the pull, if anybody asks for it.
  bool Intent(const KnownImage& image, const std::string& handler = {}, PullId id = {});
  bool Pulled(const KnownImage& image, const std::string& ref,
              const std::optional<ImagePullCredentials>& credentials,
              const std::string& handler = {}, const PullResult& result = {});
  bool Failed(const KnownImage& image, PullOutcome failure, const std::string& handler = {},
              PullId pull = {});
  // Whether the end of a pull may be recorded.
  bool MayEnd(const KnownImage& image, const std::string& handler) const;

  // Whether the last list, prune by token or call that forgets had to be committed.
  bool changed() const { return changed_; }
  // A token is the number of the last commit.
  std::uint64_t token() const { return writes_; }
  PruneReport Prune(const std::vector<ListedImage>& images, std::uint64_t token);
  PruneReport PruneBefore(const std::vector<ListedImage>& images, Timestamp until);

  // --- Mode::kStrict (model_evidence.cc)

  // nullopt: refused, since the token is older than one that was observed. `judged` is left empty.
  std::optional<ClassifyReport> Observe(const ImageList& list, bool allow_empty);
  // This process drew a token, or is open, at this commit.
  void Drew(std::uint64_t token) { last_token_ = std::max(last_token_, token); }
  void set_opened_at(std::uint64_t commits) { opened_at_ = commits; }
  // A backup's: of an intent that was put, a later RecordPullIntent tells the ID.
  void LearnPullIds(const Model& later);
  bool DropPull(PullId pull);
  bool Runs(PullId pull) const;
  // The image that the ref is of, by what is known: under it its record is kept. Mode::kKubelet:
  // the ref.
  std::string ImageOf(const std::string& ref) const;
  // The ref, and by what is known the other spellings of its image.
  std::vector<std::string> RefsOf(const std::string& ref) const;
  void AddToLedger(const ListedImage& image, const std::string& source, const std::string& reason);
  bool RemoveFromLedger(const std::string& ref, const std::string& handler);
  bool SettlePresumed(const std::string& ref, const std::string& handler, Settled settled,
                      const std::string& reason);
  ClassifyReport ClearDistrust(const AcceptLoss& options = {}, const std::string& reason = {});

  // --- Revocation (model_revocation.cc)

  // `what` as a caller says it, with kind and identity.
  RevokeReport Forget(Revocation what);
  // nullopt: refused, since the token is older than that of the last truth.
  std::optional<RevokeMissingReport> Reconcile(const ExistingCredentials& truth,
                                               std::uint64_t token);
  bool MentionsCredentials() const;
  const std::vector<Revocation>& revocations() const { return revocations_; }
  // The record as it counts: without what is past its age, or not checked as the policy demands.
  ImagePulledRecord Counting(ImagePulledRecord record) const;
  // The commit in which a revocation of very many records changed it.
  void set_stamp(const CopyKey& copy, std::uint64_t stamp) { records_.at(copy).stamp = stamp; }

  // False: refused, and nothing changed.
  bool Put(const ImagePulledRecord& record, const ProofTerms& terms = {});
  void Delete(const std::string& ref, const std::string& handler = {});
  bool PutIntent(const KnownImage& image, const std::string& handler = {});
  void DeleteIntent(const KnownImage& image, const std::string& handler = {});
  bool HasIntent(const KnownImage& image, const std::string& handler = {}) const;
  // nullptr: there is no such record.
  const ImagePulledRecord* Find(const std::string& ref, const std::string& handler) const;

  // The registry. Refused because of pulls in flight: nothing changed.
  bool MayReplace(const std::vector<RuntimeHandler>& handlers) const;
  RuntimesReport Replace(std::vector<RuntimeHandler> handlers);
  bool MayCollapse() const;
  RuntimesReport Collapse();

  // The store was created, which is a write at this time.
  void Made() { Written(); }

  // A new process.
  ModelOpened Restart(const ModelOpening& opening);
  ModelOpened Restart() { return Restart({}); }

  // Schema versions: whether going down loses something; going down; going up.
  bool DownLoses() const;
  void Down();
  void Up();

  // Replaces this with a backup. How many records lose their credentials.
  std::uint64_t Restore(const Model& backup);
  bool distrustful() const { return gap_ || loss_; }
  bool closed() const { return closed_; }

  // Here, stamps are numbers of writes: do not compare them.
  const std::map<CopyKey, ImagePulledRecord>& records() const { return records_; }
  const std::vector<ModelPull>& pulls() const { return pulls_; }  // the oldest first
  // Without those that brought nothing, which count against older lists only.
  std::size_t CountPulls() const {
    return static_cast<std::size_t>(std::count_if(
        pulls_.begin(), pulls_.end(), [](const auto& one) { return one.pull.nothing_at == 0; }));
  }
  std::set<IntentKey> intents() const;
  const std::map<CopyKey, PreloadedImage>& ledger() const { return ledger_; }
  const std::vector<RuntimeHandler>& handlers() const { return handlers_; }  // sorted by name
  // Image refs and images whose files could not be read.
  const std::set<std::string>& broken_refs() const { return broken_refs_; }
  const std::set<std::string>& broken_images() const { return broken_images_; }
  std::size_t in_flight() const { return in_flight_.size(); }
  const Counted& metrics() const { return metrics_; }

 private:
  using Chosen = std::function<bool(const std::string& stored)>;
  using Records = std::map<CopyKey, ImagePulledRecord>;

  // --- Revocation and ages

  // By more than a day. Such a clock is right now, and so are the times of records.
  bool IsPastAge(const Proof& proof) const;
  bool IsCheckedEnough(const std::string& name, const Proof& proof) const;
  // Of two proofs of the same credentials.
  Proof Better(const Proof& a, const Proof& b) const;
  template <typename T>
  bool MergeList(std::vector<T>& list, const std::vector<T>& added) const;
  // Merges what a pull proved into a record, as the kubelet does. Whether it changed anything but
  // proofs.
  bool Merge(ImagePulledRecord& record, const std::string& name,
             const ImagePullCredentials& added) const;
  bool AnyEnds() const;
  std::uint64_t PullBegan(const KnownImage& image, const std::string& stored, PullId id) const;
  std::uint64_t PullOfNameBegan(const std::string& name, const std::string& stored) const;
  ImagePullCredentials Proven(ImagePullCredentials credentials, std::uint64_t began,
                              const ProofTerms& terms) const;
  void GiveProofs(const ImagePulledRecord& before, ImagePulledRecord& put,
                  const ProofTerms& terms) const;
  bool MayBeTheNodes(const ImagePulledRecord& before, const std::string& name,
                     const ProofTerms& terms) const;
  void PutRevocation(const Revocation& revocation);
  template <typename T>
  bool IsForgotten(const T& credential, const ImagePulledRecord& of) const;
  std::set<std::string> SpellingsOf(const std::string& ref) const;
  bool IsImageForgotten(const Proof& proof, const ImagePulledRecord& of) const;
  // Whether there was any.
  bool DropForgotten(ImagePulledRecord& record) const;
  // Of what is to be added to a record. False: all of it was forgotten.
  bool DropForgottenOf(const CopyKey& copy, ImagePullCredentials& added) const;
  // Whenever it was.
  bool IsHashForgotten(const std::string& hash) const;
  void DropOldRevocations(std::chrono::seconds kept, std::uint64_t oldest);
  template <typename Leaves>
  RevokeReport Count(const Leaves& leaves, const Revocation* image) const;

  Answer DecideCopy(const KnownImage& image, const std::string& ref, const std::string& stored,
                    const ModelPod& pod) const;
  Answer Compare(const std::string& name, const ImagePullCredentials& entry,
                 const ModelPod& pod) const;
  Answer WithoutRecord(const KnownImage& image, const std::string& ref) const;
  bool PolicyOpens(const KnownImage& image, ImageOrigin origin) const;
  Answer AllowedByPolicy(Reason preloaded) const;
  std::optional<Answer> LedgerOpens(const KnownImage& image, const CopyKey& asked) const;
  bool AnyRecordOf(const std::string& ref) const;
  bool HasIntentOf(const std::string& image) const;
  std::optional<std::string> StoredOfPull(const KnownImage& image,
                                          const std::string& handler) const;
  std::optional<Platform> GuestOf(const std::string& stored) const;
  using OldEnough = std::function<bool(const ImagePulledRecord&)>;
  using EntryOldEnough = std::function<bool(const PreloadedImage&)>;
  PruneReport PruneRecords(const std::vector<ListedImage>& images, const OldEnough& old_enough,
                           const EntryOldEnough& entry_old_enough, bool& wrote);
  bool Fold(const Chosen& chosen, Timestamp time, RuntimesReport& report);
  bool DropEntries(const std::function<bool(const CopyKey&)>& drops);
  bool FoldRevocations(const Chosen& takes, RuntimesReport& report);
  bool TurnsOn(const std::vector<RuntimeHandler>& handlers) const;
  void DropOutdated(bool other_default, RuntimesReport& report);
  bool ClearBroken(const KnownImage& image, const std::string& stored);
  bool CountDown(const IntentKey& key);
  void Begin(const KnownImage& image, const std::string& stored, PullId id);
  void TakeBroken(const ModelOpening& opening);
  bool Close(const std::string& ref, const std::string& stored, Timestamp time,
             bool by_list = false);
  void KeepRecorded(const CopyKey& copy, const ImagePulledRecord& old);
  void KeepRefs(const Model& replaced);
  void Replay(const std::vector<ListedImage>& images, ModelOpened& opened);
  void CloseGap(const std::vector<ListedImage>& images, ModelOpened& opened);
  bool EraseIntents(const IntentKey& key);
  void Written();
  void Committed();
  // Whether a list is committed for the time alone, by which ages are measured.
  bool MustKeepTime() const;

  // --- Mode::kStrict

  // One image of a list, for one handler.
  struct Listed {
    std::string id;
    std::string stored;
    bool pinned = false;
    bool imported = false;
    bool has_handler = false;
    std::vector<std::string> names;      // that parse
    std::set<std::string> digests = {};  // repo digests
  };
  enum class Origin : std::uint8_t { kPreloaded, kPulled, kUnplaced, kLater };

  // What is known of a copy beside its record and how it came.
  struct Row {
    bool listed = false;              // of the default handler: a list had the image
    std::set<std::string> refs = {};  // other refs of it
    std::uint64_t stamp = 0;          // of what is known while there is no record

    friend bool operator==(const Row&, const Row&) = default;
  };
  // What lists change.
  auto Evidence() const {
    return std::tie(records_, ledger_, pulls_, rows_, gap_, awaits_first_list_, evidence_removed_);
  }

  Records::const_iterator FindRecord(const std::string& ref, const std::string& stored) const;
  std::vector<Listed> Prepare(const std::vector<ListedImage>& images, ClassifyReport& report) const;
  std::uint64_t Learn(const std::vector<Listed>& images);
  void LearnEntry(const ListedImage& image);
  void LearnRef(const std::string& ref, const std::string& stored);
  // What is known under the digest is the image's. How many records became part of another.
  std::uint64_t Become(const std::string& digest, const std::string& image);
  void UniteRows(const CopyKey& copy, const CopyKey& with);
  // The copy's record or what was known of its coming goes; with the last of it, its refs.
  void Unrecord(const CopyKey& copy);
  void Unload(const CopyKey& copy);
  void TidyRow(const CopyKey& copy);
  // What is known of a copy without a record is so as of now.
  void Confirm(const CopyKey& copy);
  std::uint64_t StampOf(const CopyKey& copy) const;
  bool IsKnown(const Listed& image) const;
  std::vector<Listed> Unknown(const std::vector<Listed>& images, ClassifyReport& report) const;
  bool IsRecordedAs(const Listed& image) const;
  Origin JudgeOrigin(const Listed& image, std::optional<std::uint64_t> until, bool first) const;
  void Enter(const Listed& image, const std::string& source, const std::string& reason);
  void Leave(const Listed& image, ClassifyReport& report);
  void JudgeAll(const std::vector<Listed>& images, const ImageList& list,
                const std::vector<ListedImage>& preloaded, bool allow_empty,
                ClassifyReport& report);
  bool Names(const std::vector<ListedImage>& preloaded, const Listed& image) const;
  void CloseUnknown(const std::vector<Listed>& images, const std::vector<ListedImage>& preloaded,
                    bool may_enter, bool may_pin, ClassifyReport& report);
  ClassifyReport ObserveAt(const ImageList& list, const std::vector<ListedImage>& preloaded,
                           bool after_gap, bool allow_empty);
  std::uint64_t SettlePulls(const ImageList& list);
  // Whether a pull may have given the image the name. `until`: the list's token.
  bool Gives(const ModelPull& one, const KnownImage& name, bool pinned,
             std::optional<std::uint64_t> until, bool first) const;
  // What an image that comes back was before: the entry that it gets again, by what is known before
  // the list; nullptr: it is judged.
  const PreloadedImage* ComesBack(const Listed& image, std::optional<std::uint64_t> until,
                                  bool first) const;
  void GiveBack(const Listed& image);
  bool IsOver(std::uint64_t absent_ran) const;
  Timestamp AbsentFrom() const;
  void ForgetAbsent(const CopyKey& copy);
  void ForgetOutdone(const std::vector<Listed>& images);
  bool WasListed(const std::string& ref) const;
  void ForgetUnknown(const std::vector<ListedImage>& on_node, std::uint64_t token);
  void KeepWithinBound();
  std::uint64_t PruneLedger(const std::vector<ListedImage>& images, std::uint64_t token,
                            bool only_recorded = false);
  bool IsListed(const std::vector<ListedImage>& images, const std::string& ref,
                const std::optional<std::string>& stored) const;
  std::vector<ModelPull>::iterator Choose(const IntentKey& key, PullId id);
  void BeginWithTheOldest(UnresolvedPull& pull) const;
  void EndPull(std::vector<ModelPull>::iterator at, PullState state);
  void KeepEnded(ModelPull ended);
  void FailedOpenPull(const IntentKey& key, PullOutcome failure, PullId id);
  void EndRunningPulls();
  void TakeOverIntent(const KnownImage& image, const std::string& stored, Timestamp began);
  void PullOfAnything();
  void PullOfDropped();
  bool HasPullOfAnything() const;
  void SortPulls();
  std::uint64_t FoldPulls(const Chosen& takes, std::set<std::string>& names);
  void EvidenceRemoved();
  bool InQuarantine(const std::string& ref) const;
  void RestoreEvidence(const Model& backup);

  const bool closed_;
  ModelPolicy policy_;
  EvidenceOptions evidence_;
  std::size_t most_remembered_ = kMaxRemembered;
  Timestamp now_;
  BootTime boot_;
  // In nanoseconds, as of what was written last: how long the node ran, and two clocks that go on
  // by that or by the wall clock.
  struct Times {
    BootTime boot;
    std::int64_t wall = 0;
    std::int64_t ran = 0;
    std::int64_t boot_began = 0;
    std::int64_t ages = 0;
    std::int64_t ends = 0;
  };
  Times TimesNow() const;
  std::uint64_t RanSeconds() const;
  Times times_;
  bool took_files_over_ = false;
  std::uint64_t writes_ = 0;
  bool counts_ = true;
  Records records_;
  Records committed_;  // as the last write left them
  std::uint64_t last_number_ = 0;
  std::vector<ModelPull> pulls_;  // under kubelet rules at most one of an image and handler
  std::map<CopyKey, PreloadedImage> ledger_;  // by image and handler
  std::map<CopyKey, Row> rows_;
  std::vector<RuntimeHandler> handlers_;
  std::set<std::string> broken_refs_;
  std::set<std::string> broken_images_;
  // No list was judged yet, and nothing happened that would make it late.
  bool awaits_first_list_ = true;
  std::vector<ListedImage> preloaded_;  // an installer's list
  std::uint64_t opened_at_ = 0;
  std::vector<std::string> left_;  // names of images that the last list left
  bool changed_ = false;
  bool never_listed_went_ = false;      // with the last prune: a record that no list had
  std::uint64_t last_token_ = 0;        // drawn by this process
  std::uint64_t last_list_ = 0;         // its token; one that changed nothing is in no commit yet
  std::uint64_t kept_list_ = 0;         // that of the last commit
  std::uint64_t evidence_removed_ = 0;  // when something last went that tells of a pull
  // Why it is distrustful. A gap ends when the images that came meanwhile are closed; a loss, when
  // an operator says so.
  bool gap_ = false;
  bool loss_ = false;
  std::map<IntentKey, std::uint64_t> in_flight_;
  std::chrono::seconds max_age_{0};
  std::vector<Revocation> revocations_;  // one of an identity
  std::uint64_t last_truth_ = 0;         // its token; 0: there was none
  Counted metrics_;
};

// The digest that a ref spells, or the ref itself.
std::string SpellingOf(const std::string& ref);
// `ref`, and the other ways to write its digest without a repository.
std::vector<std::string> PlainSpellings(const std::string& ref);

// The first difference; "": the store holds what the model holds.
std::string Difference(const Model& model, NodeStore& store);
std::string Difference(const Model& model, const std::vector<ImagePulledRecord>& records,
                       const std::vector<ImagePullIntent>& intents);

// When the credentials of records were proven, and by pulls that began when: for models that are
// told of every commit (CommittedSoFar).
std::string DifferenceOfProofs(const Model& model, const NodeStore& store);

std::string DescribeCredentials(const ImagePullCredentials& credentials);
std::string DescribeRecord(const ImagePulledRecord& record);
std::string DescribeProofs(const ImagePulledRecord& record);
std::string DescribeHandlers(const std::vector<RuntimeHandler>& handlers);

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_MODEL_H_
