#include "guard/guard.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "store/base/hex.h"
#include "store/base/image_spellings.h"
#include "store/base/json_value.h"
#include "store/base/quote.h"
#include "store/base/sha256.h"
#include "store/base/try.h"
#include "store/node/upkeep/gap.h"
#include "waybill/image_name.h"
#include "waybill/kubelet_format.h"

namespace waybill::guard {
namespace {

// How long a list may go unjudged without an event: lists settle open pulls.
constexpr std::int64_t kJudgeSeconds = 300;

// If a kubelet removes files all the time, the mark will not fit: a gap.
constexpr int kMaxCaptures = 8;

constexpr std::string_view kHoleNames[kHoleKinds] = {
    "record-lost",    "record-damaged", "record-stale",    "record-removed",
    "intent-dropped", "intent-lost",    "unrecorded-image"};

// How often the handling of a kubelet's change is tried again.
constexpr int kMaxTries = 3;

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
// Once its socket exists, a kubelet has read what it reads at its start.
constexpr std::int64_t kMayHaveRead = 120 * kNanosecondsPerSecond;

// Nanoseconds.
constexpr std::int64_t kNamesMayCome = 3'000'000'000;

// With more events, everything is compared instead.
constexpr std::size_t kMaxUnhandled = 10'000;

// What the adapter for kubelets calls its store's directory (bindings/go/kubelet).
constexpr std::string_view kStoreInKubelet = "waybill";
constexpr std::string_view kWitness = "witness";  // in kOwnFolder

// Marks a kubelet directory that waybill was used on: it outlives store, witness and image_manager,
// but not the directory. Its value is "lost" from the moment that nothing else was found until a
// store knows that. Best effort: not every file system has such attributes. A kubelet with waybill
// inside reads and sets it, too (bindings/go/kubelet/open.go).
constexpr const char* kWasHere = "user.waybill";
constexpr std::string_view kLost = "lost";

void SetWasHere(const std::filesystem::path& kubelet_directory, std::string_view value) {
  static_cast<void>(::setxattr(kubelet_directory.c_str(), kWasHere, value.data(), value.size(), 0));
}

// Whether nothing but that attribute is left.
Result<bool> LostAll(const std::filesystem::path& kubelet_directory) {
  char value[kLost.size()] = {};
  const auto length = ::getxattr(kubelet_directory.c_str(), kWasHere, value, sizeof(value));
  if (length < 0) return errno == ERANGE;  // a later version's
  if (std::string_view(value, static_cast<std::size_t>(length)) == kLost) return true;
  for (const std::filesystem::path& witness :
       {kubelet_directory / "image_manager" / kOwnFolder / kWitness,
        internal::WitnessIn(kubelet_directory)}) {
    auto there = TRY(internal::Exists(witness));
    if (there) return false;
  }
  return true;
}

// Whether a live process owns the store.
bool IsOwned(const std::filesystem::path& store) {
  auto lock = internal::OpenFile(store / "owner.lock", O_RDWR);
  if (!lock) return false;
  struct flock probe {};
  probe.l_type = F_WRLCK;
  probe.l_whence = SEEK_SET;
  return ::fcntl(lock->get(), F_OFD_GETLK, &probe) == 0 && probe.l_type != F_UNLCK;
}

struct StoreState {
  std::string uuid;
  std::uint64_t commit_sequence = 0;
};
// Empty: unknown.
StoreState StateOf(const std::filesystem::path& directory) {
  auto seen = NodeStore::Observe({.directory = directory});
  if (!seen) return {};
  auto statistics = (*seen)->GetStatistics();
  if (!statistics) return {};
  return {statistics->store_uuid, statistics->commit_sequence};
}

bool IsFatal(ErrorCode code) {
  return code == ErrorCode::kOutcomeUnknown || code == ErrorCode::kOwned ||
         code == ErrorCode::kClosed || code == ErrorCode::kNotOwner;
}

// Whether the event may tell of something that is to be recorded.
bool Matters(const WatchEvent& event) {
  using What = WatchEvent::What;
  const bool of_files =
      event.folder == WatchedFolder::kPulled || event.folder == WatchedFolder::kPulling;
  if (!of_files || event.what == What::kOverflow || event.what == What::kReplaced) return true;
  return internal::IsRecordName(event.name) && event.what != What::kMade;
}

}  // namespace

std::string_view HoleName(HoleKind kind) { return kHoleNames[static_cast<std::size_t>(kind)]; }

bool IsPlaceholder(const ImagePulledRecord& record) {
  return !record.last_updated && record.credential_mapping.empty();
}

Guard::Guard(GuardOptions options)
    : options_(std::move(options)),
      image_manager_(options_.kubelet_directory / "image_manager"),
      pulled_(image_manager_, KubeletFolder::kPulled, options_.synced),
      pulling_(image_manager_, KubeletFolder::kPulling, options_.synced),
      kept_(image_manager_ / kOwnFolder) {}

Guard::~Guard() = default;

Result<std::unique_ptr<Guard>> Guard::Start(GuardOptions options) {
  std::unique_ptr<Guard> guard(new Guard(std::move(options)));
  TRY(guard->Begin());
  return guard;
}

Result<void> Guard::Begin() {
  TRY(MakeKubeletDirectory());
  TRY(CheckNoneInside());
  TRY(internal::MakePrivateDirectory(image_manager_));
  TRY(internal::CheckPrivateDirectory(image_manager_));
  lost_all_ = TRY(LostAll(options_.kubelet_directory));
  if (lost_all_) SetWasHere(options_.kubelet_directory, kLost);
  auto session = TRY(Session::Begin(image_manager_));
  session_.emplace(std::move(session));
  watches_ = TRY(Watches::Make());
  // Before anything is read, so that nothing is missed in between.
  TRY(Watch());
  status_.since = options_.store.clock();
  kubelet_runs_ = options_.kubelet_runs && options_.kubelet_runs();
  status_.kubelet_ran_before = options_.kubelet_ran_before.value_or(kubelet_runs_);
  if (kubelet_runs_) status_.waiting = std::move(options_.waiting);
  TRY(OpenStore());
  TRY(MakeFolders());
  TRY(Watch());
  // If a kubelet runs, the mark would lack what it did since the comparison.
  if (!kubelet_runs_) session_->Capture();
  auto put = PutAllRight();
  // A start that failed, for example without a runtime, missed nothing: the next one can begin as
  // this one did.
  if (!put && !gap_) static_cast<void>(LeaveMark());
  return put;
}

// A kubelet makes its directory itself.
Result<void> Guard::MakeKubeletDirectory() const {
  const std::filesystem::path& path = options_.kubelet_directory;
  auto there = internal::OpenDirectory(path);
  if (there) return {};
  if (there.error().code != ErrorCode::kNotFound) return there.error();
  if (::mkdir(path.c_str(), 0750) != 0 && errno != EEXIST) {
    return internal::SystemError(errno, "make", path);
  }
  Log(LogLevel::kWarning,
      "made " + path.string() + ": no kubelet has used it yet; is it that one's --root-dir?");
  return {};
}

Result<void> Guard::PutAllRight() {
  TRY(TakeLeft());
  TRY(TakeOverAll());
  if (kubelet_runs_) phase_ = Phase::kRunning;
  TRY(FirstList());
  NameUnlisted();
  if (status_.presumed > 0) {
    Log(LogLevel::kNotice,
        (status_.presumed == 1 ? std::string("1 image is")
                               : std::to_string(status_.presumed) + " images are") +
            " presumed preloaded, since nobody recorded a pull before the store was made: settle "
            "that with waybill preload confirm, or close");
  }
  if (auto begun = kept_.Begin(); !begun) Log(LogLevel::kWarning, begun.error().ToString());
  if (options_.live) {
    TRY(pulled_.PutMarker());
    TRY(pulling_.PutMarker());
  }
  TRY(pods_->PutRight());
  phase_ = Phase::kRunning;
  status_.last_comparison = options_.store.clock();
  return {};
}

bool IsKubeletWithStore(const std::filesystem::path& kubelet_directory,
                        const std::filesystem::path& own_store) {
  const std::filesystem::path inside = kubelet_directory / kStoreInKubelet;
  return !internal::IsSameFile(inside, own_store) && IsOwned(inside);
}

Result<void> Guard::CheckNoneInside() const {
  const std::filesystem::path& kubelet = options_.kubelet_directory;
  if (!IsKubeletWithStore(kubelet, options_.store.directory)) return {};
  return Error{ErrorCode::kOwned,
               "the kubelet on " + kubelet.string() +
                   " has waybill inside, and needs no guard: `systemctl disable --now "
                   "waybill-guard` (it owns " +
                   (kubelet / kStoreInKubelet).string() + ")",
               ""};
}

Result<void> Guard::MakeFolders() {
  for (const RecordFiles* files : {&pulled_, &pulling_}) {
    TRY(internal::MakePrivateDirectory(files->path()));
    TRY(internal::CheckPrivateDirectory(files->path()));
  }
  return {};
}

Result<void> Guard::Watch() {
  TRY(watches_->Add(WatchedFolder::kRoot, options_.kubelet_directory));
  TRY(watches_->Add(WatchedFolder::kPulled, pulled_.path()));
  TRY(watches_->Add(WatchedFolder::kPulling, pulling_.path()));
  return pods_ ? pods_->WatchAll() : Result<void>();
}

Result<void> Guard::OpenStore() {
  OpenOptions options = options_.store;
  auto there = TRY(internal::Exists(options.directory / "data.mdb"));
  const StoreState before = there ? StateOf(options.directory) : StoreState();
  auto fits = TRY(session_->TakeMark(before.uuid, before.commit_sequence, left_));
  // At a first start the store's own import takes the files over.
  gap_ = there && !fits;
  options.rules = Rules::kClosed;
  options.images_on_node.reset();
  options.kubelet_directory = there ? std::filesystem::path() : options_.kubelet_directory;
  options.gap = !there ? options.gap : gap_ ? Gap::kYes : Gap::kNo;
  // A first start presumes; one after everything was lost knows that there were records.
  lost_all_ = lost_all_ && !there;
  if (lost_all_) options.gap = Gap::kYes;
  const std::filesystem::path pods = options_.kubelet_directory / "pods";
  auto has_pods = internal::IsDirectory(pods);
  // Only at a first start: later a file may have been put back, and the store knows better.
  if (!there && has_pods.has_value() && *has_pods) options.pods_directory = pods;
  const bool is_own_place = options.witness.kind() == Witness::Kind::kRemembered;
  if (is_own_place) {
    // Not at the place where `waybill start` puts the witness of its own store.
    options.witness = Witness::At(image_manager_ / kOwnFolder / kWitness);
  }
  auto store = NodeStore::Open(options);
  // Nobody chose that place, and no state of the disk may keep a kubelet from starting.
  if (!store && is_own_place && store.error().hint_code == Hint::kReplaceWitness) {
    Log(LogLevel::kWarning, "the store goes on with the witness that it had, if any: " +
                                store.error().message + "; move that file away, then restart");
    options.witness = Witness::Remembered();
    store = NodeStore::Open(options);
  }
  if (!store) {
    // Nothing was missed yet.
    if (fits) {
      session_->Capture();
      static_cast<void>(session_->LeaveMark(before.uuid, before.commit_sequence, left_));
    }
    Error error = store.error();
    if (error.code == ErrorCode::kOwned) {
      error.hint =
          "if another waybill command has it for a moment, try again; a kubelet with waybill "
          "inside needs no guard";
    }
    return error;
  }
  store_ = *std::move(store);
  SetWasHere(options_.kubelet_directory, "");
  const RecoveryReport& report = store_->recovery_report();
  for (const std::string& finding : report.findings) Log(LogLevel::kWarning, finding);
  for (const std::string& warning : report.warnings) Log(LogLevel::kWarning, warning);
  for (const std::string& problem : report.import.problems) Log(LogLevel::kWarning, problem);
  lost_ = LostSomething();
  auto statistics = TRY(store_->GetStatistics());
  // A running kubelet may remember credentials that the store has forgotten, and write them with
  // its next record.
  believes_memory_ = !status_.kubelet_ran_before ||
                     (statistics.revocations == 0 && !options_.store.ages.has_value());
  status_.gap = gap_ || report.after_gap;
  if (lost_all_) {
    Log(LogLevel::kWarning,
        "waybill was used on " + options_.kubelet_directory.string() +
            " before, and neither its store nor its witness is left: images that nobody knows are "
            "closed, and no first start presumes them; if it was emptied on purpose, open them by "
            "`waybill allow IMAGE`");
  }
  if (gap_) {
    Log(LogLevel::kNotice,
        "the kubelet may have recorded pulls that no guard saw: images of which nothing is known "
        "are closed");
  }
  pods_ = std::make_unique<PodMappings>(
      pods, *store_, *watches_, [this](const std::string& text) { Log(LogLevel::kWarning, text); });
  return {};
}

Result<void> Guard::FirstList() {
  for (;;) {
    auto token = TRY(BeginList());
    auto list = options_.list_images
                    ? options_.list_images()
                    : Error{ErrorCode::kUnavailable, "no runtime was named to list its images", ""};
    // Trying a wrong endpoint again does not help.
    if (!list && list.error().code == ErrorCode::kInvalidArgument) return list.error();
    auto taken = list ? TakeList(token, list) : Result<void>(list.error());
    if (taken && images_) return {};
    // If a kubelet runs already, TakeList succeeds although something must be tried again.
    const Error error =
        taken ? Error{ErrorCode::kUnavailable, status_.runtime_error, ""} : taken.error();
    if (Hurries()) return error;
    if (!list && options_.list_images && options_.try_again && options_.try_again(error)) continue;
    if (list) return error;
    if (options_.needs_runtime) {
      return Error{
          ErrorCode::kUnavailable,
          "without the runtime's list of images the kubelet's records can't be put right: " +
              error.ToString(),
          "start the runtime first, or go on with what is recorded: --allow-no-runtime"};
    }
    status_.runtime_error = error.ToString();
    Log(LogLevel::kWarning, "there is no list of images yet: " + status_.runtime_error);
    wants_list_ = true;
    TRY(TakeOverUnproven(nullptr));
    return PutRight();
  }
}

bool Guard::NothingChanged(const std::vector<ImageOnNode>& images) const {
  if (wants_list_ || phase_ == Phase::kStarting || !images_ || *images_ != images) return false;
  const std::int64_t age = options_.store.clock().seconds - observed_time_.seconds;
  if (age < 0 || age >= kJudgeSeconds) return false;
  auto statistics = store_->GetStatistics();
  return statistics && statistics->commit_sequence == observed_at_;
}

Result<std::vector<BootTime>> Guard::EndsOfPulls() const {
  auto pulls = TRY(store_->ListOpenPulls());
  const BootTime now = options_.store.boot_clock();
  std::vector<BootTime> ends;
  for (const OpenPull& pull : pulls) {
    if (pull.ended && pull.ended_at.boot_id == now.boot_id) ends.push_back(pull.ended_at);
  }
  return ends;
}

Result<void> Guard::TakeList(const ListToken& token, Result<std::vector<ImageOnNode>> list,
                             EndedPulls ended) {
  if (phase_ == Phase::kRunning) {
    TRY(CheckNoneInside());
  }
  if (!list) {
    const std::string text = list.error().ToString();
    if (status_.runtime_error != text) {
      Log(LogLevel::kWarning, "the runtime lists no images: " + text);
    }
    status_.runtime_error = text;
    return {};
  }
  if (Hurries() && phase_ == Phase::kRunning) return {};
  // Before a list is judged, the store must know what the kubelet did before it was made.
  if (phase_ == Phase::kRunning) {
    TRY(HandleEvents());
    // An unrecorded intent may have brought an image of the list.
    if (!unhandled_.empty()) return {};
  }
  ++lists_;
  if (!ended.quiet_until && NothingChanged(*list)) {
    status_.last_list = options_.store.clock();
    return {};
  }
  wants_list_ = false;
  auto judged = Judge(token, *std::move(list), std::move(ended));
  if (phase_ == Phase::kStarting) return judged;
  return Survive(std::move(judged), "judge the list of images");
}

// A runtime makes an image's entry and its names one after the other. An image of which nothing is
// known, and that has no name yet, is judged by a later list; until then a placeholder closes it.
Result<std::vector<ImageOnNode>> Guard::WithoutNameless(const std::vector<ImageOnNode>& images) {
  std::vector<ImageOnNode> named;
  std::map<std::string, std::int64_t> nameless;
  const std::int64_t now = options_.store.boot_clock().nanoseconds;
  for (const ImageOnNode& image : images) {
    const bool has_name = !image.repo_tags.empty() || !image.repo_digests.empty();
    if (!has_name && phase_ == Phase::kRunning) {
      auto known = store_->GetRecord({.image_ref = image.id});
      if (!known && known.error().code != ErrorCode::kNotFound) return known.error();
      const auto before = nameless_.find(image.id);
      const std::int64_t since = before == nameless_.end() ? now : before->second;
      if (!known && now - since < kNamesMayCome) {
        nameless.emplace(image.id, since);
        wants_list_ = true;
        continue;
      }
    }
    named.push_back(image);
  }
  nameless_ = std::move(nameless);
  return named;
}

Result<void> Guard::Judge(const ListToken& token, std::vector<ImageOnNode> images,
                          EndedPulls ended) {
  TRY(SettleEnded(images));
  TRY(TakeOverUnproven(&images));
  TRY(CloseDamaged(images));
  if (Hurries() && phase_ == Phase::kRunning) {
    // Not everything that bears on the list is recorded.
    wants_list_ = true;
    return {};
  }
  auto named = TRY(WithoutNameless(images));
  const bool complete = named.size() == images.size();
  auto observed = TRY(store_->ObserveImages({.images = named,
                                             .token = token,
                                             .complete = complete,
                                             .quiet_until = ended.quiet_until,
                                             .names_to_come = std::move(ended.names_to_come)}));
  images_ = std::move(images);
  listed_strings_.reset();
  status_.runtime_error.clear();
  status_.last_list = options_.store.clock();
  status_.images = images_->size();
  if (phase_ == Phase::kRunning) {
    for (const JudgedImage& image : observed.judged) {
      if (image.preloaded) {
        Log(LogLevel::kInfo, image.name + " came without the kubelet: " + image.because);
      } else if (!IsPulledNow(image.name)) {
        // If it is being pulled, the kubelet's record comes next.
        Found(HoleKind::kUnrecordedImage, image.name, "it is closed: " + image.because);
      }
    }
  }
  // Read before the files are written, so that a change that a command makes meanwhile is noticed.
  auto statistics = TRY(store_->GetStatistics());
  std::set<std::string> removed;
  std::swap(removed, removed_);
  TRY(PutRight());
  for (const std::string& name : removed) {
    const auto still = wanted_records_.find(name);
    if (still == wanted_records_.end() || IsPlaceholder(still->second)) continue;
    if (!IsListed(still->second.image_ref)) continue;
    Found(HoleKind::kRecordRemoved, still->second.image_ref,
          "its record was removed, and the runtime still has it; it was put back");
  }
  observed_at_ = statistics.commit_sequence;
  status_.judged_commit = observed_at_;
  observed_time_ = options_.store.clock();
  return {};
}

bool Guard::IsPulledNow(const std::string& name) const {
  return std::any_of(running_.begin(), running_.end(), [&](const auto& running) {
    return running.second.image == name || NormaliseImage(running.second.image) == name;
  });
}

Result<void> Guard::HandleEvents() {
  auto read = TRY(watches_->Read());
  std::vector<WatchEvent> events = std::exchange(unhandled_, {});
  events.insert(events.end(), std::make_move_iterator(read.begin()),
                std::make_move_iterator(read.end()));
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (Hurries()) {
      std::copy_if(std::make_move_iterator(events.begin() + static_cast<std::ptrdiff_t>(i)),
                   std::make_move_iterator(events.end()), std::back_inserter(unhandled_), Matters);
      return {};
    }
    WatchEvent& event = events[i];
    ++status_.events;
    auto handled = Handle(event);
    if (handled) continue;
    if (++event.tries > kMaxTries && !IsFatal(handled.error().code)) {
      // One file must not keep all other images from being judged.
      Log(LogLevel::kError, "cannot follow " + event.name + ": " + handled.error().ToString());
      handled = MissedSomething("nothing could be recorded of " + event.name);
      if (handled) continue;
    }
    const bool of_pods =
        event.folder == WatchedFolder::kPods || event.folder == WatchedFolder::kPod;
    if (!of_pods && handled.error().code == ErrorCode::kNotFound) {
      // The folder is gone. Everything is compared once it is there again.
      unhandled_ = {{.what = WatchEvent::What::kReplaced}};
      continue;
    }
    if (!of_pods) unhandled_.push_back(event);
    TRY(Survive(std::move(handled), "follow " + event.name));
  }
  if (unhandled_.size() > kMaxUnhandled) unhandled_ = {{.what = WatchEvent::What::kOverflow}};
  return {};
}

Result<void> Guard::Handle(const WatchEvent& event) {
  using What = WatchEvent::What;
  if (event.what == What::kOverflow) {
    auto missed = MissedSomething("the kernel's queue of events ran over");
    return missed ? CompareNow() : missed;
  }
  if (event.what == What::kReplaced && event.folder != WatchedFolder::kPod) return CompareNow();
  if (event.folder == WatchedFolder::kRoot) {
    // Made, moved there, or moved away: that is no event of pulled/ in it.
    const bool ours = event.name == image_manager_.filename();
    const bool pods = event.what == What::kMade && event.name == "pods";
    return ours ? CompareNow() : pods ? pods_->Compare() : Result<void>();
  }
  if (event.folder == WatchedFolder::kPods || event.folder == WatchedFolder::kPod) {
    return pods_->Handle(event);
  }
  const bool of_record = event.folder == WatchedFolder::kPulled;
  const RecordFiles& files = of_record ? pulled_ : pulling_;
  if (event.name == kMarkerName) {
    return event.what == What::kRemoved && options_.live ? files.PutMarker() : Result<void>();
  }
  // A kubelet renames its files into place; what is linked there is the guard's own.
  if (!internal::IsRecordName(event.name) || event.what == What::kMade) return {};
  if (event.what == What::kRemoved) {
    return of_record ? RecordGone(event.name) : IntentGone(event.name);
  }
  if (!of_record) return TakeOverIntent(event.name, true);
  TRY(TakeOverRecord(event.name));
  return pulled_.SyncFolder();
}

Result<void> Guard::Compare() {
  auto compared = CompareNow();
  if (!compared) unhandled_.push_back({.what = WatchEvent::What::kReplaced});
  return Survive(std::move(compared), "compare the kubelet's files");
}

Result<void> Guard::CompareNow() {
  if (!session_->InPlace()) {
    // The folder with the lock was replaced: the lock guards nothing any more.
    TRY(internal::MakePrivateDirectory(image_manager_));
    auto session = TRY(Session::Begin(image_manager_));
    session_.emplace(std::move(session));
  }
  if (watches_->IsStale(WatchedFolder::kPulled, pulled_.path()) ||
      watches_->IsStale(WatchedFolder::kPulling, pulling_.path())) {
    TRY(MissedSomething("image_manager was replaced"));
    TRY(MakeFolders());
    TRY(Watch());
    if (options_.live) {
      TRY(pulled_.PutMarker());
      TRY(pulling_.PutMarker());
    }
  }
  ++status_.comparisons;
  status_.last_comparison = options_.store.clock();
  wants_list_ = true;
  TRY(TakeOverAll());
  // A kubelet that died leaves its intents; a living one's pulls do not take this long.
  const std::int64_t window = options_.store.evidence.window.count() * kNanosecondsPerSecond;
  TRY(EndRunning(options_.store.boot_clock().nanoseconds - window));
  return Survive(pods_->Compare(), "compare the pods' ID mappings");
}

Result<void> Guard::KubeletStarted() {
  TRY(HandleEvents());
  // The pulls of the kubelet before it have ended, and its memory is gone: the new one begins with
  // what the files say, beside a marker.
  TRY(Survive(EndRunning(std::nullopt), "end the pulls of a kubelet that is gone"));
  const std::int64_t now = options_.store.boot_clock().nanoseconds;
  for (auto& [name, seen] : seen_) {
    const auto rewritten = rewritten_.find(name);
    if (rewritten != rewritten_.end() && now - rewritten->second < kMayHaveRead) continue;
    auto file = pulled_.Read(name);
    const auto* there =
        file && *file ? std::get_if<ImagePulledRecord>(&(*file)->judged.content) : nullptr;
    if (there != nullptr) seen = *there;
  }
  rewritten_.clear();
  status_.waiting.clear();
  status_.kubelet_ran_before = false;
  believes_memory_ = true;
  return {};
}

// Ends the running pulls; with `before`, only those that began before it.
Result<void> Guard::EndRunning(std::optional<std::int64_t> before) {
  for (auto& [name, running] : running_) {
    if (before && running.since > *before) continue;
    // If the guard is ending, the store's next opening ends them.
    if (stopping_ && Hurries()) return {};
    running.ambiguous = true;
    for (const PullId& id : std::exchange(running.ids, {})) {
      TRY(EndPull(running.image, id));
    }
  }
  return {};
}

Result<void> Guard::Stop(bool again) {
  options_.live = false;
  stopping_ = true;
  if (!again) {
    TRY(pulled_.TakeMarkerAway());
    TRY(pulling_.TakeMarkerAway());
    if (auto set = SetForms(); !set) Log(LogLevel::kWarning, set.error().ToString());
  }
  // From here on the mark must include what the guard puts back, but not what the kubelet does.
  for (int turn = 0; turn < kMaxCaptures; ++turn) {
    const std::uint64_t written = status_.files_written;
    session_->Capture();
    // A change within the same tick of the kernel's clock would not show.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    TRY(HandleEvents());
    if (status_.files_written == written) break;
  }
  const std::vector<WatchEvent> not_handled = std::exchange(unhandled_, {});
  for (const WatchEvent& event : not_handled) {
    TRY(LeaveToNext(event));
  }
  for (const EndedPull& pull : ended_) {
    if (Hurries()) break;
    TRY(EndPull(pull.image, pull.id));
  }
  ended_.clear();
  // Nobody will see how these pulls end.
  TRY(EndRunning(std::nullopt));
  running_.clear();
  if (!Session::FitsMark(left_)) {
    left_ = {.missed = "more than a mark can hold was not recorded at the end"};
  }
  if (!left_.missed.empty()) {
    if (auto missed = MissedSomething(left_.missed); !missed) return missed;
  }
  // The store does not have what the mark has, so it could not remember what is forgotten until the
  // next start. An open pull makes it remember.
  for (const ImagePulledRecord& record : left_.records) {
    if (record.credential_mapping.empty()) continue;
    const std::string& name = record.credential_mapping.begin()->first;
    if (name.empty()) continue;
    TRY(NoteUnknownPull(name));
    break;
  }
  if (!left_.empty()) {
    // The mark says that these folders are unchanged, so what is left must be on disk there, too.
    TRY(pulled_.SyncFolder());
    TRY(pulling_.SyncFolder());
    Log(LogLevel::kNotice, "it had to end: " + std::to_string(left_.records.size()) +
                               " records and " + std::to_string(left_.pulls.size()) +
                               " pulls are left to the next start to record");
  }
  return LeaveMark();
}

Result<void> Guard::LeaveMark() {
  TRY(store_->Close());
  const StoreState state = StateOf(options_.store.directory);
  auto left = state.uuid.empty() ? Result<void>()
                                 : session_->LeaveMark(state.uuid, state.commit_sequence, left_);
  session_.reset();
  return left;
}

Result<void> Guard::Survive(Result<void> result, const std::string& doing) {
  if (result || IsFatal(result.error().code)) return result;
  Log(LogLevel::kError, "cannot " + doing + ": " + result.error().ToString() +
                            "; it is tried again with the next comparison");
  wants_list_ = true;
  return {};
}

void Guard::Log(LogLevel level, const std::string& text) const {
  if (options_.log) options_.log(level, text);
}

void Guard::Found(HoleKind kind, const std::string& image, const std::string& text) {
  ++status_.holes[static_cast<std::size_t>(kind)];
  Log(LogLevel::kNotice,
      std::string(HoleName(kind)) + ": " + internal::QuoteForMessage(image) + ": " + text);
  if (options_.on_hole) options_.on_hole({kind, image});
}

std::string Guard::MetricsText() const {
  const auto number = [](std::uint64_t value) { return static_cast<double>(value); };
  const auto counter = [&](const char* name, const char* help, std::uint64_t value) {
    return MetricFamily{name, "counter", help, {{{}, number(value)}}};
  };
  MetricFamily holes{
      "waybill_guard_holes_total", "counter", "Holes of the kubelet that the guard closed.", {}};
  for (std::size_t i = 0; i < kHoleKinds; ++i) {
    holes.series.push_back({{{"kind", std::string(kHoleNames[i])}}, number(status_.holes[i])});
  }
  return ToPrometheusText(
      {holes,
       counter("waybill_guard_events_total", "Changes of the kubelet's files.", status_.events),
       counter("waybill_guard_comparisons_total", "Comparisons of all files.", status_.comparisons),
       counter("waybill_guard_files_written_total", "Files written for the kubelet.",
               status_.files_written)});
}

Result<std::string> Guard::StatusJson() const {
  auto statistics = TRY(store_->GetStatistics());
  const auto time = [](const std::optional<Timestamp>& at) -> internal::Json {
    if (!at) return nullptr;
    return FormatTimestamp(*at);
  };
  internal::Json holes;
  for (std::size_t i = 0; i < kHoleKinds; ++i) holes[std::string(kHoleNames[i])] = status_.holes[i];
  const internal::Json status = {{"kubeletDirectory", options_.kubelet_directory.string()},
                                 {"store", options_.store.directory.string()},
                                 {"since", time(status_.since)},
                                 {"kubeletRanBefore", status_.kubelet_ran_before},
                                 {"afterGap", status_.gap},
                                 {"distrustful", statistics.distrustful},
                                 {"images", status_.images},
                                 {"records", statistics.records},
                                 {"ledgerEntries", statistics.ledger_entries},
                                 {"presumed", status_.presumed},
                                 {"openPulls", statistics.intents},
                                 {"lastList", time(status_.last_list)},
                                 {"runtimeError", status_.runtime_error},
                                 {"lastComparison", time(status_.last_comparison)},
                                 {"comparisons", status_.comparisons},
                                 {"events", status_.events},
                                 {"filesWritten", status_.files_written},
                                 {"filesRemoved", status_.files_removed},
                                 {"filesLeftAlone", status_.left_alone},
                                 {"filesKept", status_.files_kept},
                                 {"recordsUnlisted", status_.records_unlisted},
                                 {"unlisted", status_.unlisted},
                                 {"judgedCommit", status_.judged_commit},
                                 {"waiting", status_.waiting},
                                 {"holes", holes}};
  return status.Text(internal::Json::Letters::kAny, internal::Json::Lines::kIndented) + "\n";
}

}  // namespace waybill::guard
