#include "guard/guard.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "guard/kubelet_process.h"
#include "guard/opening.h"
#include "guard/record_changes.h"
#include "store/base/empty_list.h"
#include "store/base/files.h"
#include "store/base/try.h"

namespace waybill::guard {
namespace {

// How long a list may go unjudged without an event: lists settle open pulls.
constexpr std::int64_t kJudgeSeconds = 300;

// If a kubelet removes files all the time, the mark will not fit: a gap.
constexpr int kMaxCaptures = 8;

// How often the handling of a kubelet's change is tried again.
constexpr int kMaxTries = 3;

constexpr std::string_view kImageManager = "image_manager";

// With more events, everything is compared instead.
constexpr std::size_t kMaxUnhandled = 10'000;

bool IsFatal(ErrorCode code) {
  return code == ErrorCode::kOutcomeUnknown || code == ErrorCode::kOwned ||
         code == ErrorCode::kClosed || code == ErrorCode::kNotOwner;
}

bool IsOfPods(const WatchEvent& event) {
  return event.folder == WatchedFolder::kPods || event.folder == WatchedFolder::kPod;
}

// Whether only a comparison tells what happened.
bool IsOfAll(const WatchEvent& event) {
  return event.what == WatchEvent::What::kOverflow || event.what == WatchEvent::What::kReplaced;
}

// Whether the event may tell of something that is to be recorded.
bool Matters(const WatchEvent& event) {
  if (IsOfPods(event) || event.folder == WatchedFolder::kRoot || IsOfAll(event)) return true;
  return internal::IsRecordName(event.name) && event.what != WatchEvent::What::kMade;
}

}  // namespace

Guard::Guard(GuardOptions options) : life_(std::move(options)) {}

// The store is closed before the lock goes.
Guard::~Guard() { life_.store.reset(); }

Result<std::unique_ptr<Guard>> Guard::Start(GuardOptions options) {
  std::unique_ptr<Guard> guard(new Guard(std::move(options)));
  TRY(guard->Begin());
  return guard;
}

Result<void> Guard::Begin() {
  TRY(MakeKubeletDirectory());
  TRY(CheckNoneInside(kubelet_directory(), life_.options.store.directory));
  TRY(life_.FindFolders());
  auto lost_all = TRY(LostAll(kubelet_directory()));
  auto session = TRY(Session::Begin(life_.own(), life_.Stamped()));
  session_.emplace(std::move(session));
  watches_ = TRY(Watches::Make());
  // Before anything is read, so that nothing is missed in between.
  TRY(Watch());
  life_.status.since = life_.options.store.clock();
  life_.kubelet_runs = life_.options.kubelet_runs && life_.options.kubelet_runs();
  life_.status.kubelet_ran_before = life_.options.kubelet_ran_before.value_or(life_.kubelet_runs);
  if (life_.kubelet_runs) life_.status.waiting = std::move(life_.options.waiting);
  TRY(OpenStore(life_, *session_, lost_all, left_));
  pods_ = std::make_unique<PodMappings>(life_, *watches_);
  TRY(MakeFolders());
  TRY(Watch());
  // If a kubelet runs, the mark would lack what it did since the comparison.
  if (!life_.kubelet_runs) session_->Capture();
  auto put = PutAllRight();
  put_right_at_ = life_.Now();
  // A start that failed, for example without a runtime, missed nothing: the next one can begin as
  // this one did.
  if (!put && !life_.gap) static_cast<void>(LeaveMark());
  return put;
}

// A kubelet makes its directory itself.
Result<void> Guard::MakeKubeletDirectory() const {
  const std::filesystem::path& path = kubelet_directory();
  auto there = internal::OpenDirectory(path);
  if (there) return {};
  if (there.error().code != ErrorCode::kNotFound) return there.error();
  if (::mkdir(path.c_str(), 0750) != 0 && errno != EEXIST) {
    return internal::SystemError(errno, "make", path);
  }
  life_.Log(LogLevel::kWarning,
            "made " + path.string() + ": no kubelet has used it yet; is it that one's --root-dir?");
  return {};
}

Result<void> Guard::MakeFolders() {
  for (const RecordFiles* files : {&life_.pulled, &life_.pulling}) {
    TRY(internal::MakePrivateDirectory(files->path()));
    TRY(files->DropStaged());
  }
  return life_.FindFolders();
}

Result<void> Guard::PutMarkers() const {
  if (!life_.options.live) return {};
  TRY(life_.pulled.PutMarker());
  return life_.pulling.PutMarker();
}

Result<void> Guard::Watch() {
  TRY(watches_->Add(WatchedFolder::kRoot, kubelet_directory()));
  TRY(watches_->Add(WatchedFolder::kPulled, life_.pulled.path()));
  TRY(watches_->Add(WatchedFolder::kPulling, life_.pulling.path()));
  return pods_ ? pods_->WatchAll() : Result<void>();
}

Result<void> Guard::PutAllRight() {
  TRY(TakeLeft());
  TRY(TakeOverAll());
  if (life_.kubelet_runs) life_.starting = false;
  TRY(FirstList());
  put_right_.TellUnlisted();
  if (const std::uint64_t presumed = life_.status.presumed; presumed > 0) {
    life_.Log(LogLevel::kNotice,
              internal::HowMany(presumed, "image") + (presumed == 1 ? " is" : " are") +
                  " presumed preloaded, since nobody recorded a pull before the store was made: "
                  "settle that with waybill preload confirm, or close");
  }
  if (auto begun = put_right_.BeginKeeping(); !begun) {
    life_.Log(LogLevel::kWarning, begun.error().ToString());
  }
  TRY(PutMarkers());
  auto pods = pods_->PutRight();
  // A kubelet follows a symlink there that others can change, too.
  if (!pods && pods.error().code != ErrorCode::kUnsafePath) return pods;
  TRY(Survive(std::move(pods), "put the pods' ID mappings right"));
  life_.starting = false;
  life_.status.last_comparison = life_.options.store.clock();
  return {};
}

// What the guard before this one saw, and had no time to record.
Result<void> Guard::TakeLeft() {
  // Without an open pull the store did not remember what was forgotten since (Stop opens one). A
  // list that somebody else had judged may have ended it. What is left may have been revoked since,
  // or by what was lost.
  auto pulls = TRY(store().ListOpenPulls());
  const bool believed = !life_.lost && !pulls.empty();
  // The guard is starting, so in a hurry this fails, and what is left stays left.
  for (; !left_.records.empty(); left_.records.pop_front()) {
    TRY(life_.BreaksOff());
    TRY(taken_over_.TakeOverLeft(left_.records.front(), believed));
  }
  for (; !left_.pulls.empty(); left_.pulls.pop_front()) {
    TRY(life_.BreaksOff());
    TRY(pulls_.NoteUnknown(left_.pulls.front()));
  }
  return {};
}

Result<void> Guard::TakeOverAll() {
  // Records first: a pull of unknown beginning must not prove their credentials.
  auto all = TRY(taken_over_.TakeOverAll());
  return all ? pulls_.TakeOverAll() : Result<void>();
}

Result<void> Guard::FirstList() {
  const GuardOptions& options = life_.options;
  for (;;) {
    auto token = TRY(BeginList());
    auto list = options.list_images
                    ? options.list_images()
                    : Error{ErrorCode::kUnavailable, "no runtime was named to list its images", ""};
    // Trying a wrong endpoint again does not help.
    if (!list && list.error().code == ErrorCode::kInvalidArgument) return list.error();
    auto taken = list ? TakeList(token, list) : Result<void>(list.error());
    if (taken && listed_.known()) return {};
    // If a kubelet runs already, TakeList succeeds although something must be tried again.
    const Error error =
        taken ? Error{ErrorCode::kUnavailable, life_.status.runtime_error, ""} : taken.error();
    if (life_.Hurries()) return error;
    if (!list && options.list_images && options.try_again && options.try_again(error)) continue;
    return list ? error : GoOnWithoutList(error);
  }
}

Result<void> Guard::GoOnWithoutList(const Error& error) {
  if (life_.options.needs_runtime) {
    return Error{ErrorCode::kUnavailable,
                 "without the runtime's list of images the kubelet's records can't be put right: " +
                     error.ToString(),
                 "start the runtime first, or go on with what is recorded: --allow-no-runtime"};
  }
  life_.status.runtime_error = error.ToString();
  life_.Log(LogLevel::kWarning, "there is no list of images yet: " + life_.status.runtime_error);
  life_.wants_list = true;
  TRY(taken_over_.TakeOverUnproven(nullptr));
  return PutRight();
}

bool Guard::NothingChanged(const std::vector<ListedImage>& images) const {
  if (life_.wants_list || life_.starting || !listed_.known() || listed_.images() != images) {
    return false;
  }
  const std::int64_t age = life_.options.store.clock().seconds - judged_at_.seconds;
  if (age < 0 || age >= kJudgeSeconds) return false;
  auto statistics = store().GetStatistics();
  return statistics && statistics->commit_sequence == life_.status.judged_commit;
}

Result<std::vector<BootTime>> Guard::EndsOfPulls() const {
  auto pulls = TRY(store().ListOpenPulls());
  const BootTime now = life_.options.store.boot_clock();
  std::vector<BootTime> ends;
  for (const UnresolvedPull& pull : pulls) {
    if (pull.ended && pull.ended_at.boot_id == now.boot_id) ends.push_back(pull.ended_at);
  }
  return ends;
}

Result<void> Guard::TakeList(const ListToken& token, Result<std::vector<ListedImage>> list,
                             EndedPulls ended) {
  if (!life_.starting) {
    TRY(CheckNoneInside(kubelet_directory(), life_.options.store.directory));
  }
  if (lost_its_place_) return {};
  if (!list) {
    const std::string text = list.error().ToString();
    if (life_.status.runtime_error != text) {
      life_.Log(LogLevel::kWarning, "the runtime lists no images: " + text);
    }
    life_.status.runtime_error = text;
    return {};
  }
  if (!life_.starting) {
    if (life_.Hurries()) return {};
    // Before a list is judged, the store must know what the kubelet did before it was made.
    TRY(HandleEvents());
    // An unrecorded intent may have brought an image of the list.
    if (!unhandled_.empty()) return {};
  }
  pulls_.CountList();
  if (!ended.quiet_until && NothingChanged(*list)) {
    life_.status.last_list = life_.options.store.clock();
    return {};
  }
  life_.wants_list = false;
  auto judged = Judge(token, *std::move(list), std::move(ended));
  if (life_.starting) return judged;
  return Survive(std::move(judged), "judge the list of images");
}

Result<void> Guard::Judge(const ListToken& token, std::vector<ListedImage> images,
                          EndedPulls ended) {
  TRY(pulls_.Settle(images));
  TRY(taken_over_.TakeOverUnproven(&images));
  TRY(taken_over_.CloseDamaged(images));
  if (life_.Hurries() && !life_.starting) {
    // Not everything that bears on the list is recorded.
    life_.wants_list = true;
    return {};
  }
  auto named = TRY(listed_.WithoutNameless(images));
  const bool complete = named.size() == images.size();
  const ClassifyImages classify{.list = {.images = named,
                                         .token = token,
                                         .complete = complete,
                                         .quiet_until = ended.quiet_until,
                                         .names_to_come = std::move(ended.names_to_come)}};
  auto observed = TRY(store().Call(classify));
  listed_.Take(std::move(images));
  if (!life_.starting) TellJudged(observed.judged);
  // Read before the files are written, so that a change that a command makes meanwhile is noticed.
  auto statistics = TRY(store().GetStatistics());
  const std::set<std::string> removed = taken_over_.TakeRemoved();
  TRY(PutRight());
  TellPutBack(removed);
  life_.status.judged_commit = statistics.commit_sequence;
  judged_at_ = life_.options.store.clock();
  return {};
}

void Guard::TellJudged(const std::vector<ClassifiedImage>& judged) {
  for (const ClassifiedImage& image : judged) {
    if (image.preloaded) {
      life_.Log(LogLevel::kInfo, image.name + " came without the kubelet: " + image.because);
    } else if (!pulls_.IsRunning(image.name)) {
      // If it is being pulled, the kubelet's record comes next.
      life_.Found(HoleKind::kUnrecordedImage, image.name, "it is closed: " + image.because);
    }
  }
}

void Guard::TellPutBack(const std::set<std::string>& removed) {
  for (const std::string& name : removed) {
    const ImagePulledRecord* const still = plan_.Find(name);
    if (still == nullptr || IsPlaceholder(*still) || !listed_.Has(still->image_ref)) continue;
    life_.Found(HoleKind::kRecordRemoved, still->image_ref,
                "its record was removed, and the runtime still has it; it was put back");
  }
}

Result<void> Guard::PutRight() {
  TRY(plan_.Make());
  // Intents first: new intents beside old records can only close.
  TRY(pulls_.PutRight(plan_.preloaded()));
  TRY(put_right_.PutRight());
  return NarrowFolders();
}

Result<void> Guard::HandleEvents() {
  auto read = TRY(watches_->Read());
  std::vector<WatchEvent> events = std::exchange(unhandled_, {});
  std::ranges::move(read, std::back_inserter(events));
  for (auto event = events.begin(); event != events.end(); ++event) {
    if (life_.Hurries()) {
      std::copy_if(std::make_move_iterator(event), std::make_move_iterator(events.end()),
                   std::back_inserter(unhandled_), Matters);
      return {};
    }
    ++life_.status.events;
    TRY(HandleOrRetry(std::move(*event)));
  }
  if (unhandled_.size() > kMaxUnhandled) unhandled_ = {{.what = WatchEvent::What::kOverflow}};
  return {};
}

Result<void> Guard::HandleOrRetry(WatchEvent event) {
  auto handled = Handle(event);
  if (handled) return {};
  if (++event.tries > kMaxTries && !IsFatal(handled.error().code)) {
    // One file must not keep all other images from being judged.
    life_.Log(LogLevel::kError, "cannot follow " + event.name + ": " + handled.error().ToString());
    handled = life_.Missed("nothing could be recorded of " + event.name);
    if (handled) return {};
  }
  if (!IsOfPods(event)) {
    if (handled.error().code == ErrorCode::kNotFound) {
      // The folder is gone. Everything is compared once it is there again.
      unhandled_ = {{.what = WatchEvent::What::kReplaced}};
      return {};
    }
    unhandled_.push_back(event);
  }
  return Survive(std::move(handled), "follow " + event.name);
}

Result<void> Guard::Handle(const WatchEvent& event) {
  using What = WatchEvent::What;
  if (event.what == What::kOverflow) {
    TRY(life_.Missed("the kernel's queue of events ran over"));
    return CompareNow();
  }
  if (event.what == What::kReplaced && event.folder != WatchedFolder::kPod) return CompareNow();
  if (event.folder == WatchedFolder::kRoot) {
    // Made, moved there, or moved away: that is no event of pulled/ in it.
    const bool ours = event.name == kImageManager;
    const bool pods = event.what == What::kMade && event.name == "pods";
    return ours ? CompareNow() : pods ? pods_->Compare() : Result<void>();
  }
  if (IsOfPods(event)) return pods_->Handle(event);
  const bool of_record = event.folder == WatchedFolder::kPulled;
  const RecordFiles& files = of_record ? life_.pulled : life_.pulling;
  if (event.name == kMarkerName) {
    const bool is_missed = event.what == What::kRemoved && life_.options.live;
    return is_missed ? files.PutMarker() : Result<void>();
  }
  // A kubelet renames its files into place; what is linked there is the guard's own.
  if (!internal::IsRecordName(event.name) || event.what == What::kMade) return {};
  if (event.what == What::kRemoved) {
    return of_record ? taken_over_.Gone(event.name) : pulls_.Gone(event.name);
  }
  if (!of_record) return pulls_.TakeOver(event.name, true);
  TRY(taken_over_.TakeOver(event.name));
  return life_.pulled.SyncFolder();
}

Result<void> Guard::Compare() {
  auto compared = CompareNow();
  if (!compared) unhandled_.push_back({.what = WatchEvent::What::kReplaced});
  return Survive(std::move(compared), "compare the kubelet's files");
}

Result<void> Guard::CompareNow() {
  auto in_place = TRY(SeeToFolders());
  if (!in_place) return {};
  TRY(NoteWide(Wide()));
  ++life_.status.comparisons;
  life_.status.last_comparison = life_.options.store.clock();
  life_.wants_list = true;
  TRY(TakeOverAll());
  // A kubelet that died leaves its intents; a living one's pulls do not take this long.
  TRY(pulls_.EndRunning(life_.Now() -
                        life_.options.store.evidence.window.count() * kNanosecondsPerSecond));
  return Survive(pods_->Compare(), "compare the pods' ID mappings");
}

Result<bool> Guard::SeeToFolders() {
  auto found = life_.FindFolders();
  if (!found && found.error().code == ErrorCode::kUnsafePath) {
    lost_its_place_ = true;
    life_.status.not_protected = found.error().message;
    TRY(life_.Missed(found.error().message));
    return false;
  }
  if (!found) return found.error();
  session_->Stamp(life_.Stamped());
  if (!session_->InPlace(life_.own())) {
    // The lock guards nothing any more.
    auto session = TRY(Session::Begin(life_.own(), life_.Stamped()));
    session_.emplace(std::move(session));
  }
  if (!watches_->IsStale(WatchedFolder::kPulled, life_.pulled.path()) &&
      !watches_->IsStale(WatchedFolder::kPulling, life_.pulling.path())) {
    return true;
  }
  TRY(life_.Missed("image_manager was replaced"));
  TRY(MakeFolders());
  TRY(Watch());
  TRY(PutMarkers());
  return true;
}

std::string Guard::Wide() const {
  std::string wide = life_.pulled.Wide();
  return wide.empty() ? life_.pulling.Wide() : wide;
}

// Notes that others may write in a folder, or no longer.
Result<void> Guard::NoteWide(const std::string& wide) {
  if (std::exchange(life_.status.not_protected, wide) == wide || wide.empty()) return {};
  life_.Log(LogLevel::kError, wide + ": nothing new in it counts");
  // Of what they removed nothing is left.
  return life_.Missed(wide);
}

// Takes folders from others who could write there, once all that counts is put right.
Result<void> Guard::NarrowFolders() {
  const std::string wide = Wide();
  TRY(NoteWide(wide));
  if (wide.empty()) return {};
  // What comes until nobody can write there any more does not count either.
  life_.pulled.Distrust(wide);
  for (const std::filesystem::path& folder :
       {life_.image_manager, life_.pulled.path(), life_.pulling.path()}) {
    auto place = internal::FindPlace(folder);
    if (place && !place->wide.empty()) static_cast<void>(::chmod(folder.c_str(), S_IRWXU));
  }
  auto taken = taken_over_.TakeOverAll();
  auto put = taken && *taken ? put_right_.PutRight() : Result<void>();
  life_.pulled.Distrust({});
  if (!taken) return taken.error();
  if (!put || !Wide().empty()) return put;
  life_.Log(LogLevel::kNotice, "nobody else may write there any more");
  return NoteWide({});
}

void Guard::TakeChecks(std::vector<CheckResult> checks) {
  const auto fails = [](const std::vector<CheckResult>& all, const CheckResult& one) {
    return std::any_of(all.begin(), all.end(), [&](const CheckResult& other) {
      return other.failed && other.check == one.check && other.seen == one.seen;
    });
  };
  for (const CheckResult& result : checks) {
    if (!result.failed || fails(life_.status.checks, result)) continue;
    life_.Log(LogLevel::kError, result.check + ": " + result.seen + "; " + result.next);
  }
  for (const CheckResult& before : life_.status.checks) {
    if (!before.failed || fails(checks, before)) continue;
    life_.Log(LogLevel::kNotice, before.check + " no longer finds: " + before.seen);
  }
  life_.status.checks = std::move(checks);
}

Result<void> Guard::KubeletStarted() {
  TRY(HandleEvents());
  // The pulls of the kubelet before it have ended, and its memory is gone: the new one begins with
  // what the files say, beside a marker.
  TRY(Survive(pulls_.EndRunning(std::nullopt), "end the pulls of a kubelet that is gone"));
  taken_over_.KubeletStarted();
  life_.status.waiting.clear();
  life_.status.kubelet_ran_before = false;
  life_.believes_memory = true;
  return NoteKubeletBegan();
}

// It reads what the files say, and what was forgotten is not in them. But what was forgotten in the
// minute before may still have been there.
Result<void> Guard::NoteKubeletBegan() {
  constexpr std::int64_t kMinute = 60 * kNanosecondsPerSecond;
  auto began = life_.options.kubelet_began ? life_.options.kubelet_began() : std::nullopt;
  if (!began || began->nanoseconds < std::max(put_right_at_, kMinute)) return {};
  began->nanoseconds -= kMinute;
  return Survive(store().NoteKubeletBegan(*began), "note when the kubelet began");
}

Result<void> Guard::Stop(bool again) {
  life_.options.live = false;
  life_.stopping = true;
  if (!again) {
    TRY(life_.pulled.TakeMarkerAway());
    TRY(life_.pulling.TakeMarkerAway());
    if (auto set = put_right_.SetForms(); !set) {
      life_.Log(LogLevel::kWarning, set.error().ToString());
    }
  }
  TRY(CaptureLast());
  for (const WatchEvent& event : std::exchange(unhandled_, {})) {
    TRY(LeaveToNext(event));
  }
  TRY(pulls_.EndAll());
  TRY(SettleLeft());
  return LeaveMark();
}

// From here on the mark must include what the guard puts back, but not what the kubelet does.
Result<void> Guard::CaptureLast() {
  for (int turn = 0; turn < kMaxCaptures; ++turn) {
    const std::uint64_t written = life_.status.files_written;
    session_->Capture();
    // A change within the same tick of the kernel's clock would not show.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    TRY(HandleEvents());
    if (life_.status.files_written == written) break;
  }
  return {};
}

// Nobody has time to record what happened; the next start does. What can't be told is a gap.
Result<void> Guard::LeaveToNext(const WatchEvent& event) {
  // The next start compares the pods' ID mappings.
  if (IsOfPods(event)) return {};
  const bool of_root = event.folder == WatchedFolder::kRoot;
  if (IsOfAll(event) || (of_root && event.name == kImageManager)) {
    left_.missed = "there was no time to compare the kubelet's files";
    return {};
  }
  // What went tells nothing that must be recorded: the next start puts it back, and a pull whose
  // intent went ends when the store is opened.
  const bool was_written = event.what == WatchEvent::What::kWritten;
  if (of_root || !was_written || !internal::IsRecordName(event.name)) return {};
  return event.folder == WatchedFolder::kPulled ? taken_over_.LeaveToNext(event.name, left_)
                                                : pulls_.LeaveToNext(event.name, left_);
}

// Sees to it that the next start can go on with what is left.
Result<void> Guard::SettleLeft() {
  if (!Session::FitsMark(left_)) {
    left_ = {.missed = "more than a mark can hold was not recorded at the end"};
  }
  if (!left_.missed.empty()) {
    TRY(life_.Missed(left_.missed));
  }
  // The store does not have what the mark has, so it could not remember what is forgotten until the
  // next start. An open pull makes it remember.
  for (const ImagePulledRecord& record : left_.records) {
    if (record.credential_mapping.empty()) continue;
    const std::string& name = record.credential_mapping.begin()->first;
    if (name.empty()) continue;
    TRY(pulls_.NoteUnknown(name));
    break;
  }
  if (left_.empty()) return {};
  // The mark says that these folders are unchanged, so what is left must be on disk there, too.
  TRY(life_.pulled.SyncFolder());
  TRY(life_.pulling.SyncFolder());
  life_.Log(LogLevel::kNotice, "it had to end: " + std::to_string(left_.records.size()) +
                                   " records and " + std::to_string(left_.pulls.size()) +
                                   " pulls are left to the next start to record");
  return {};
}

Result<void> Guard::LeaveMark() {
  const std::filesystem::path& directory = life_.options.store.directory;
  TRY(store().Close());
  const StoreState state = StateOf(directory);
  auto left = state.uuid.empty() ? Result<void>()
                                 : session_->LeaveMark(state.uuid, state.commit_sequence, left_);
  session_.reset();
  return left;
}

Result<void> Guard::Survive(Result<void> result, const std::string& doing) {
  if (result || IsFatal(result.error().code)) return result;
  life_.Log(LogLevel::kError, "cannot " + doing + ": " + result.error().ToString() +
                                  "; it is tried again with the next comparison");
  life_.wants_list = true;
  return {};
}

}  // namespace waybill::guard
