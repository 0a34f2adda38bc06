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
// Its parts, each of which knows those before it: Life, ListedImages, Pulls, RecordPlan,
// RecordsTakenOver, RecordsPutRight. Taking over reads what the kubelet wrote into the store,
// putting right writes what the store says; both may be repeated at any time.
//
// Not thread-safe: one thread drives it (service.h, or a test).

#ifndef WAYBILL_GUARD_GUARD_H_
#define WAYBILL_GUARD_GUARD_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "guard/life.h"
#include "guard/listed_images.h"
#include "guard/pod_mappings.h"
#include "guard/pulls.h"
#include "guard/records.h"
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
  // What the kubelet did since the last call; in a hurry, some of it. Errors of the store that no
  // later call can mend: kOutcomeUnknown, kOwned, kClosed, kNotOwner. The guard must then be
  // started anew. Anything else is logged, and tried again before the next list is judged.
  Result<void> HandleEvents();

  // A list of images: draw the token, make the list, hand both over. `list` may be an error.
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
  // Compares everything with everything, and sees to directories that were replaced. To be called
  // now and then.
  Result<void> Compare();

  // A kubelet started while this guard runs. It knows only what the files say.
  Result<void> KubeletStarted();

  // Leaves a directory that the kubelet understands. `again`: another guard starts at once, so the
  // markers stay. A kubelet that lists its folders without one looks up nothing any more. In a
  // hurry, what is not recorded yet goes into the mark (session.h).
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
  Result<void> PutMarkers() const;
  Result<void> Watch();
  Result<void> PutAllRight();
  Result<void> TakeLeft();
  Result<void> TakeOverAll();
  Result<void> FirstList();
  Result<void> GoOnWithoutList(const Error& error);

  Result<void> HandleOrRetry(WatchEvent event);
  Result<void> Handle(const WatchEvent& event);
  Result<void> CompareNow();
  // Begins anew with folders that were replaced. false: others decide what a kubelet finds.
  Result<bool> SeeToFolders();
  Result<void> NoteWide(const std::string& wide);
  Result<void> NarrowFolders();
  std::string Wide() const;
  // Since the last list was judged.
  bool NothingChanged(const std::vector<ListedImage>& images) const;
  Result<void> Judge(const ListToken& token, std::vector<ListedImage> images, EndedPulls ended);
  void TellJudged(const std::vector<ClassifiedImage>& judged);
  void TellPutBack(const std::set<std::string>& removed);
  Result<void> PutRight();

  Result<void> CaptureLast();
  Result<void> LeaveToNext(const WatchEvent& event);
  Result<void> SettleLeft();
  Result<void> LeaveMark();

  // Logs an error after which the call can be tried again, and returns any other.
  Result<void> Survive(Result<void> result, const std::string& doing);
  Result<void> NoteKubeletBegan();

  Life life_;
  std::optional<Session> session_;
  std::unique_ptr<Watches> watches_;
  std::unique_ptr<PodMappings> pods_;
  ListedImages listed_{life_};
  Pulls pulls_{life_, listed_};
  RecordPlan plan_{life_, listed_};
  RecordsTakenOver taken_over_{life_, plan_, pulls_};
  RecordsPutRight put_right_{life_, listed_, plan_, taken_over_};
  std::int64_t put_right_at_ = 0;  // when the start was done, by the boot clock
  Timestamp judged_at_ = {};       // the last list
  bool lost_its_place_ = false;
  std::vector<WatchEvent> unhandled_;  // tried again before the next list is judged
  Left left_;  // by the guard before this one, until it is recorded; at the end, for the next one
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_GUARD_H_
