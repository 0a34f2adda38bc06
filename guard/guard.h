// The guard: keeps the files of an unmodified kubelet right, by a store of its own.
//
// A kubelet decides by its files: image_manager/pulled/ (records) and image_manager/pulling/
// (intents). It loses some, and forgets others. The guard records in a NodeStore what the kubelet
// writes, judges what the runtime lists by the rules of evidence (NodeStore::ObserveImages), and
// writes what the kubelet must find:
//
//   an image with a record                             its record, under its ID
//   an image in the ledger, without a record           no file: open to all
//   any other listed image                             a record without credentials: closed
//   an image that is not listed                        its record stays, less what does not count
//   an open pull                                       its intent, unless its string names an image
//                                                      that is open by the ledger
//
// Two directions, a file each: take_over.cc reads what the kubelet wrote into the store,
// put_right.cc writes what the store says. Both may be repeated at any time.
//
// Not thread-safe: one thread drives it (service.h, or a test).

#ifndef WAYBILL_GUARD_GUARD_H_
#define WAYBILL_GUARD_GUARD_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "guard/kept_files.h"
#include "guard/pod_mappings.h"
#include "guard/record_files.h"
#include "guard/session.h"
#include "guard/watches.h"
#include "waybill/kubelet_format.h"
#include "waybill/node_store.h"

namespace waybill::guard {

// A way in which this kubelet would have opened a private image, or did for a moment.
enum class HoleKind : std::uint8_t {
  kRecordLost,       // before the kubelet started: a record was gone
  kRecordDamaged,    // unreadable, or about another ref than its name says
  kRecordStale,      // older than the store's, or with credentials that do not count any more
  kRecordRemoved,    // while it runs: removed, although the runtime still has the image
  kIntentDropped,    // removed by another pull's failure, or by a restart of the kubelet
  kIntentLost,       // before the kubelet started: gone or damaged, and the pull may still go on
  kUnrecordedImage,  // an image appeared that nobody recorded, and that an open pull may have
                     // brought
};
inline constexpr std::size_t kHoleKinds = 7;
// "record-lost", …
std::string_view HoleName(HoleKind kind);

struct Hole {
  HoleKind kind = HoleKind::kRecordLost;
  std::string image;  // a name or a ref
};

enum class LogLevel : std::uint8_t {
  kError = 3,
  kWarning = 4,
  kNotice = 5,
  kInfo = 6
};  // syslog's

struct GuardOptions {
  std::filesystem::path kubelet_directory;
  // The store's directory, and how it is opened. The guard sets what it needs: rules, the kubelet's
  // directories, gaps. Witness::Remembered: waybill-guard/witness in image_manager.
  OpenOptions store = {.witness = Witness::Remembered()};
  // The runtime's complete list of images. Missing: the guard goes by records and ledger alone.
  std::function<Result<std::vector<ImageOnNode>>()> list_images;
  // Whether to ask once more, after a start's list failed or was empty though it can't be. Missing:
  // no.
  std::function<bool(const Error&)> try_again;
  // Whether a start without a list of images is an error.
  bool needs_runtime = true;
  // Whether the kubelet's policy opens preloaded images to all pods (NeverVerifyPreloadedImages,
  // the default). Otherwise their records stay, since such a kubelet verifies them by these.
  bool preloaded_is_open = true;
  // Whether it verifies every image that has a record: not NeverVerify, and no allowlist.
  bool verifies_recorded = true;
  // Whether the marker is put (kMarkerName).
  bool live = true;
  // Whether a kubelet runs on this directory. Missing: none does.
  std::function<bool()> kubelet_runs;
  // If a guard ran until just now: what its status said. nullopt: as kubelet_runs says.
  std::optional<bool> kubelet_ran_before = {};
  std::set<std::string> waiting = {};  // likewise
  // Whether the guard shall end as soon as it can: asked between two files. Guard::Stop leaves what
  // is not recorded by then to the next start; until Stop is called nothing more is done. Missing:
  // no.
  std::function<bool()> hurry;
  std::function<void(LogLevel, const std::string&)> log;
  std::function<void(const Hole&)> on_hole;
  SyncObserver synced;
};

struct GuardStatus {
  Timestamp since = {};
  bool kubelet_ran_before = false;  // the kubelet ran when the guard started
  bool gap = false;                 // the time before this start was a gap
  std::uint64_t images = 0;         // on the last list
  std::uint64_t presumed = 0;       // ledger entries that are presumed
  std::uint64_t events = 0;
  std::uint64_t comparisons = 0;
  std::optional<Timestamp> last_comparison = {};
  std::optional<Timestamp> last_list = {};
  std::string runtime_error = {};  // why the last list failed; empty: it did not
  std::uint64_t files_written = 0;
  std::uint64_t files_removed = 0;
  std::uint64_t left_alone = 0;  // files in a later kubelet's format
  std::uint64_t files_kept = 0;  // copies of what was taken away (kept_files.h)
  // How many records the first list had no image for, and the first refs of these.
  std::uint64_t records_unlisted = 0;
  std::vector<std::string> unlisted = {};
  std::uint64_t judged_commit = 0;  // the store's, when the files were put right last
  // Images whose files changed under a kubelet that may have read them before, and then goes by the
  // old ones until it starts again.
  std::set<std::string> waiting = {};
  std::uint64_t holes[kHoleKinds] = {};

  friend bool operator==(const GuardStatus&, const GuardStatus&) = default;
};

inline constexpr std::size_t kMaxNamedUnlisted = 100;
inline constexpr std::size_t kMaxNamedWaiting = 1000;

// A record that the guard writes for an image that the store does not judge yet. No kubelet writes
// one without a time.
bool IsPlaceholder(const ImagePulledRecord& record);

// What the runtime showed of pulls that ended (ImageList::quiet_until).
struct EndedPulls {
  std::optional<BootTime> quiet_until = {};
  std::vector<std::string> names_to_come = {};
};

// Whether a live process owns the store of a kubelet with waybill inside. Such a kubelet needs no
// guard.
bool IsKubeletWithStore(const std::filesystem::path& kubelet_directory,
                        const std::filesystem::path& own_store);

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
  Result<ListToken> BeginList() const { return store_->BeginList(); }
  Result<void> TakeList(const ListToken& token, Result<std::vector<ImageOnNode>> list,
                        EndedPulls ended = {});
  // When pulls ended whose images may still come, in this boot.
  Result<std::vector<BootTime>> EndsOfPulls() const;
  // Whether something happened that only a list can settle.
  bool wants_list() const { return wants_list_; }
  // Compares everything with everything, and sees to directories that were replaced. To be called
  // now and then.
  Result<void> Compare();

  // A kubelet started while this guard runs. It knows only what the files say.
  Result<void> KubeletStarted();

  // Leaves a directory that the kubelet understands. `again`: another guard starts at once, so the
  // markers stay. A kubelet that lists its folders without one looks up nothing any more. In a
  // hurry, what is not recorded yet goes into the mark (session.h).
  Result<void> Stop(bool again = false);

  const std::filesystem::path& kubelet_directory() const { return options_.kubelet_directory; }
  const GuardStatus& status() const { return status_; }
  Result<std::string> StatusJson() const;
  // waybill_guard_…, in Prometheus' text format.
  std::string MetricsText() const;
  std::filesystem::path status_path() const { return image_manager_ / kOwnFolder / "status.json"; }
  NodeStore& store() { return *store_; }

 private:
  // The pulls of one image string, while its intent exists.
  struct RunningPull {
    std::string image;
    std::vector<PullId> ids;  // empty: they have ended, and the intent was left
    std::int64_t since = 0;   // of the last one; nanoseconds since the boot
    // The ref of a record that only a pull of this image name can have written since.
    std::string proven_ref;
    // There may be several such pulls or refs, so no record proves that this one succeeded.
    bool ambiguous = false;
  };
  // A pull whose intent vanished as a record appeared: the next list tells whether that record is
  // its own.
  struct EndedPull {
    std::string image;
    PullId id;
    std::string image_ref;
    std::uint64_t lists_before = 0;
  };
  enum class Phase : std::uint8_t { kStarting, kRunning };

  explicit Guard(GuardOptions options);

  Result<void> Begin();
  Result<void> PutAllRight();
  Result<void> LeaveMark();
  // What can be told of `event` without recording it goes to left_.
  Result<void> LeaveToNext(const WatchEvent& event);
  Result<void> TakeLeft();
  bool Hurries() const { return options_.hurry && options_.hurry(); }
  Result<void> OpenStore();
  Result<void> CheckNoneInside() const;
  Result<void> MakeKubeletDirectory() const;
  Result<void> MakeFolders();
  Result<void> Watch();
  Result<void> FirstList();

  // --- take_over.cc: from the kubelet's files into the store
  Result<void> TakeOverAll();
  Result<void> TakeOverRecord(const std::string& name);
  Result<void> TakeOverContent(const std::string& name, ImagePulledRecord record);
  ImagePulledRecord Seen(const std::string& name) const;
  ImagePulledRecord NewIn(const std::string& name, const ImagePulledRecord& record, bool believed);
  Result<void> TakeOverUnproven(const std::vector<ImageOnNode>* images);
  Result<void> CloseDamaged(const std::vector<ImageOnNode>& images);
  void NoteVersion(const std::string& content);
  void LeaveAlone(const std::filesystem::path& path);
  Result<void> TakeOverIntent(const std::string& name, bool was_written);
  Result<void> IntentMissed(const std::string& name);
  std::optional<std::string> StringOfIntent(const std::string& name);
  Result<void> IntentGone(const std::string& name);
  Result<void> RecordGone(const std::string& name);
  Result<void> NoteUnknownPull(const std::string& image);
  Result<void> EndRunning(std::optional<std::int64_t> before);
  Result<void> EndPull(const std::string& image, PullId id);
  Result<void> SettleEnded(const std::vector<ImageOnNode>& images);
  void NoteProof(const ImagePulledRecord& before, const ImagePulledRecord& after);
  Result<void> MissedSomething(const std::string& what);
  bool LostSomething() const;

  // --- put_right.cc: from the store into the kubelet's files
  Result<void> PutRight();
  Result<void> PlanRecords();
  Result<void> PlanIntents();
  Result<void> PutRecords();
  Result<void> PutIntents();
  Result<std::optional<ImagePulledRecord>> WantedRecord(const ImageOnNode& image);
  Result<void> PutRecord(const std::string& name, const ImagePulledRecord& wanted);
  Result<void> SweepRecord(const std::string& name);
  Result<void> SetForm(const std::string& name, const RecordFile& file);
  Result<void> SetForms();
  Result<void> SeeToUnlisted(const std::string& name, const RecordFile& file,
                             const ImagePulledRecord& there);
  // The content of the file for a record; in ClosingForm if it only closes.
  std::string FileOf(ImagePulledRecord record) const;
  void WaitsForKubelet(const std::string& image_ref);
  std::optional<std::string> KeepAside(const std::string& name, const RecordFile& file);
  void NameUnlisted();

  Result<void> Handle(const WatchEvent& event);
  Result<void> CompareNow();
  bool IsPulledNow(const std::string& name) const;
  bool IsListed(const std::string& image_ref) const;
  Result<void> Judge(const ListToken& token, std::vector<ImageOnNode> images, EndedPulls ended);
  Result<std::vector<ImageOnNode>> WithoutNameless(const std::vector<ImageOnNode>& images);
  bool NothingChanged(const std::vector<ImageOnNode>& images) const;
  // Logs an error after which the call can be tried again, and returns any other.
  Result<void> Survive(Result<void> result, const std::string& doing);
  void Log(LogLevel level, const std::string& text) const;
  void Found(HoleKind kind, const std::string& image, const std::string& text);

  GuardOptions options_;
  std::filesystem::path image_manager_;
  RecordFiles pulled_;
  RecordFiles pulling_;
  KeptFiles kept_;
  std::optional<Session> session_;
  std::unique_ptr<Watches> watches_;
  std::unique_ptr<NodeStore> store_;
  std::unique_ptr<PodMappings> pods_;
  Phase phase_ = Phase::kStarting;
  bool stopping_ = false;
  bool kubelet_runs_ = false;  // it did when the guard started
  bool lost_all_ = false;      // store and witness are gone, although waybill was here
  bool gap_ = false;           // the kubelet may have recorded something before this start, unseen
  // The guard saw everything that the kubelet has in memory.
  bool believes_memory_ = true;
  bool lost_ = false;  // something newer than what the store has may be lost
  KubeletApiVersion api_version_ = KubeletApiVersion::kV1Alpha1;

  bool wants_list_ = false;
  std::uint64_t lists_ = 0;
  std::uint64_t observed_at_ = 0;  // the store's commit after the last list that was judged
  Timestamp observed_time_ = {};
  std::optional<std::vector<ImageOnNode>> images_;  // the last list
  // Its names, in all spellings, by the names of their intents. Made when it is needed.
  std::optional<std::map<std::string, std::string>> listed_strings_;
  std::map<std::string, std::int64_t> nameless_;  // images without a name, since when

  std::vector<WatchEvent> unhandled_;  // tried again before the next list is judged
  Left left_;  // by the guard before this one, until it is recorded; at the end, for the next one
  std::map<std::string, RunningPull> running_;  // by the intent's file name
  std::vector<EndedPull> ended_;
  std::map<std::string, ImagePulledRecord> wanted_records_;  // by file name
  // What each record said when it was last read, by file name: what the kubelet added since tells
  // whether a pull wrote it.
  std::map<std::string, ImagePulledRecord> seen_;
  // When the guard last changed a record that the kubelet had.
  std::map<std::string, std::int64_t> rewritten_;
  std::map<std::string, std::string> wanted_intents_;  // image strings by file name
  std::set<std::string> preloaded_;  // names of files that images of the ledger must not have
  std::set<std::string> removed_;    // records that vanished; the next list tells whether rightly
  std::set<std::string> damaged_;    // unreadable records at the start
  std::set<std::string> named_;      // records of unlisted images, said to be
  // Records without credentials that the store does not know, until the next list.
  std::vector<ImagePulledRecord> unproven_;
  std::set<std::string> reported_;  // files that were left alone, and said to be

  GuardStatus status_;
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_GUARD_H_
