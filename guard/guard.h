// The guard: keeps the files of an unmodified kubelet right, by a store of its own.
//
// A kubelet decides by its files: image_manager/pulled/ (records) and image_manager/pulling/
// (intents). It loses some, and forgets others. The guard records in a NodeStore what the kubelet
// writes, judges what the runtime lists by the rules of evidence (ClassifyImages), and
// writes what the kubelet must find:
//
//   an image with a record                             its record, under its ID
//   an image in the ledger, without a record           no file: open to all
//   any other listed image                             a record without credentials: closed
//   an image that is not listed                        its record stays, less what does not count
//   an open pull                                       its intent, unless its string names an image
//                                                      that is open by the ledger
//
// It waits for anything, looks at the whole directory (look.h), compares (compare.h), takes over
// what is new in one commit, and puts right (put_right.h). Start, restart, a full queue of events
// and another kubelet are one path: what must be known later is one table of the store
// (known_files.h).
//
// Not thread-safe: one thread drives it (service.h, or a test).

#ifndef WAYBILL_GUARD_GUARD_H_
#define WAYBILL_GUARD_GUARD_H_

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "guard/compare.h"
#include "guard/known_files.h"
#include "guard/life.h"
#include "guard/look.h"
#include "guard/opening.h"
#include "guard/pod_mappings.h"
#include "guard/put_right.h"
#include "guard/session.h"
#include "guard/watches.h"
#include "store/base/try.h"
#include "store/calls/node_store.h"
#include "waybill/values.h"

namespace waybill::guard {

// What the runtime showed of pulls that ended (ImageList::quiet_until).
struct EndedPulls {
  std::optional<BootTime> quiet_until = {};
  std::vector<std::string> names_to_come = {};
};

class Guard {
 public:
  // The phase before a kubelet starts: takes over what is new, judges it, and puts the kubelet's
  // directory right. With a kubelet that runs already, too, but then what that has in memory stays.
  // Errors: those of NodeStore::Open; kOwned also for a second guard, and for a kubelet that has
  // waybill inside; kUnavailable: the runtime gave no list, or an empty one although the store has
  // records or a ledger; kInvalidArgument: it can't be asked like this; kInterrupted: in a hurry.
  // What was done before an error stays, and can be repeated. In a hurry the directory may not be
  // right although there is no error: then the kubelet must not start.
  static Result<std::unique_ptr<Guard>> Start(GuardOptions options);
  // Without Stop the end counts as a crash: what happens until the next start is a gap.
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // Readable when the kubelet changed something.
  int fd() const { return watches_->fd(); }
  // Looks, takes over and puts right until nothing is left to do. Errors of the store that no later
  // call can mend: kOutcomeUnknown, kOwned, kClosed, kNotOwner. The guard must then be started
  // anew. Anything else is logged, and tried again at the next look.
  Result<void> Again();
  // Whether to look again though nothing happened; and how long until then.
  bool IsTime() const { return life_.Now() >= wakes_at_; }
  std::chrono::milliseconds WaitsFor() const;
  // Of the kubelet that ran at the last look.
  const std::string& kubelet_life() const { return life_seen_; }

  // A list of images: draw the token, make the list, hand both over. `list` may be an error.
  // Nothing is judged before everything is taken over.
  Result<ListToken> BeginList() const { return TRY(store().Call(waybill::BeginList())).token; }
  Result<void> TakeList(const ListToken& token, Result<std::vector<ListedImage>> list,
                        EndedPulls ended = {});
  // When pulls ended whose images may still come, in this boot.
  Result<std::vector<BootTime>> EndsOfPulls() const;
  // Whether others decide by now what a kubelet finds: the guard must be started anew, or stand
  // aside (aside.h).
  bool lost_its_place() const { return lost_its_place_; }
  // Whether something happened that only a list can settle.
  bool wants_list() const { return life_.wants_list; }
  // Looks again even if nothing tells that something happened, also at folders that were replaced.
  // To be called now and then.
  Result<void> Compare();

  // Leaves a directory that the kubelet understands. `again`: another guard starts at once, so the
  // markers stay. A kubelet that lists its folders without one looks up nothing any more.
  Result<void> Stop(bool again = false);

  const std::filesystem::path& kubelet_directory() const { return life_.options.kubelet_directory; }
  const GuardStatus& status() const { return life_.status; }
  // What the node was found to be; a check that begins to fail, or ends to, is logged.
  void TakeChecks(std::vector<CheckResult> checks);
  Result<std::string> StatusJson() const { return life_.StatusJson(); }
  std::string MetricsText() const { return life_.MetricsText(); }
  std::filesystem::path own_folder() const { return life_.own(); }
  NodeStore& store() const { return *life_.store; }

 private:
  explicit Guard(GuardOptions options);

  Result<void> Begin();
  Result<void> MakeKubeletDirectory() const;
  Result<void> MakeFolders();
  Result<void> Watch();
  Result<void> PutAllRight();
  Result<void> FirstList();
  Result<void> GoOnWithoutList(const Error& error);
  void TellStarted();

  // One look and what follows. Returns whether there was anything to do. `listing`: a list that is
  // about to be judged; then everything is taken over, and nothing put right.
  Result<bool> Look(const std::vector<ListedImage>* listing = nullptr);
  Result<void> Settle();
  Result<void> LookUntilDone(const std::vector<ListedImage>* listing = nullptr);
  bool NothingHappened();
  bool ClockWasSet() const;
  Result<void> ReadQueue();
  Result<void> ReadStore();
  // What a kubelet must find by the store, a list and the pulls that run.
  struct Projected {
    std::uint64_t reads = 0;
    std::uint64_t lists = 0;
    std::set<FileName> running;
    Known known;
    MustFind must;
  };
  const Projected& Project(const std::vector<ListedImage>* listing);
  Context ContextOf(const guard::Look& look, const std::set<FileName>* listing);
  Result<void> TakeOver(Compared& compared);
  Result<void> Tell(const StoreCall& call);
  Result<PutImage> BesideRecord(const ProvenRecord& proven) const;
  Result<void> Put(const PutImage& put) const;
  Result<void> SyncEvidence(const Compared& compared) const;
  void NoteCompared(const Compared& compared, const Context& context);
  Result<bool> SeeToMarkers(const guard::Look& look) const;
  Result<void> SeeToWide(bool is_noted);
  Result<void> NoteRevocations(const Context& context);
  void TellUnlisted();
  void SetTimer(const guard::Look& look);
  Places PlacesNow() const;

  // Begins anew with folders that were replaced. false: others decide what a kubelet finds.
  Result<bool> SeeToFolders();
  // Since the last list was judged.
  bool NothingChanged(const std::vector<ListedImage>& images) const;
  Result<void> Judge(const ListToken& token, std::vector<ListedImage> images, EndedPulls ended);
  Result<std::vector<ListedImage>> WithoutNameless(const std::vector<ListedImage>& images);
  void TellJudged(const std::vector<ClassifiedImage>& judged);
  void TellPutBack();

  // Logs an error after which the call can be tried again, and returns any other.
  Result<void> Survive(Result<void> result, const std::string& doing);

  Life life_;
  std::optional<Session> session_;
  std::unique_ptr<Watches> watches_;
  std::unique_ptr<PodMappings> pods_;
  Opened opened_;
  std::uint64_t opened_at_ = 0;  // the commit
  bool was_used_ = false;        // a kubelet has used the directory before
  KnownFiles known_;
  std::optional<Looker> looker_;
  PutRight put_right_{life_};

  // What the kernel's queue told since the last look.
  std::map<std::pair<KubeletFolder, FileName>, int> written_;
  std::map<std::pair<KubeletFolder, FileName>, int> exchanged_;  // by the guard: it tells of these
  bool overflow_ = false;
  bool replaced_ = false;  // a folder may be another one
  std::string narrowed_;   // others could write there until the last look

  // The store, as of its newest commit.
  std::optional<internal::StoreContent> content_;
  BootTime content_at_;             // when it was read
  Timestamp wall_at_;               // likewise
  std::int64_t content_until_ = 0;  // it counts less from then on, by the boot clock
  std::unique_ptr<const Projected> projected_;
  std::uint64_t reads_ = 0;  // of the store
  std::uint64_t lists_ = 0;  // that were handed over
  bool lost_ = false;

  bool had_list_ = false;
  std::vector<ListedImage> listed_;               // the last list
  std::map<std::string, std::int64_t> nameless_;  // IDs of images without a name, since when
  // When a list was judged last that made nothing known: the same one again tells nothing.
  std::optional<Timestamp> judged_at_;
  bool no_list_comes_ = false;

  bool watched_ = false;        // nothing happened unseen since the last look
  bool is_done_ = false;        // after that, nothing was left to do
  bool markers_stood_ = false;  // at the last look
  std::string life_seen_;       // the kubelet's, at the last look
  std::int64_t wakes_at_ = 0;
  bool lost_its_place_ = false;
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_GUARD_H_
