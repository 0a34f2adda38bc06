#include "guard/guard.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "guard/aside.h"
#include "guard/kubelet_process.h"
#include "store/base/empty_list.h"
#include "store/base/files.h"
#include "store/base/image_name.h"
#include "store/base/image_spellings.h"
#include "store/base/quote.h"
#include "store/base/try.h"

namespace waybill::guard {
namespace {

// How long a list may go unjudged without an event: lists settle open pulls.
constexpr std::int64_t kJudgeSeconds = 300;

// More rounds than one writer can cause.
constexpr int kMaxRounds = 12;
// Then somebody writes faster than the guard.
constexpr std::int64_t kWait = kNanosecondsPerSecond;

// A change of a folder within the same tick of the kernel's clock would not show.
constexpr std::chrono::milliseconds kSettles{25};

constexpr std::int64_t kNamesMayCome = 3 * kNanosecondsPerSecond;
constexpr std::size_t kMaxNamedUnlisted = 100;
constexpr std::size_t kMaxNamedWaiting = 1000;

constexpr std::string_view kImageManager = "image_manager";

bool IsFatal(ErrorCode code) {
  return code == ErrorCode::kOutcomeUnknown || code == ErrorCode::kOwned ||
         code == ErrorCode::kClosed || code == ErrorCode::kNotOwner;
}

bool IsOfPods(const WatchEvent& event) {
  return event.folder == WatchedFolder::kPods || event.folder == WatchedFolder::kPod;
}

Error InAHurry() {
  return {ErrorCode::kInterrupted,
          "the guard was asked to end before it was ready; what it took over is kept",
          "start it again to go on"};
}

// The names that files of these images may have.
std::set<FileName> NamesOf(const std::vector<ListedImage>& images) {
  std::set<FileName> names;
  for (const ListedImage& image : images) {
    for (const std::string& ref : internal::PlainSpellings(image.id)) {
      names.insert(internal::RecordNameOf(ref));
    }
    for (const std::string& digest : image.repo_digests) {
      names.insert(internal::RecordNameOf(digest));
    }
  }
  return names;
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
  was_used_ = TRY(internal::KubeletHasRun(kubelet_directory()));
  auto session = TRY(Session::Begin(life_.own()));
  session_.emplace(std::move(session));
  watches_ = TRY(Watches::Make());
  for (const KubeletFolder folder : {KubeletFolder::kPulled, KubeletFolder::kPulling}) {
    life_.FilesOf(folder).OnExchange([this, folder](const std::string& name) {
      ++exchanged_[{folder, name}];
    });
  }
  // Before anything is read, so that nothing is missed in between.
  TRY(Watch());
  life_.status.since = life_.options.store.clock();
  opened_ = TRY(OpenStore(life_, lost_all));
  known_ = TRY(KnownFiles::Read(store()));
  opened_at_ = store().CommitSequence();
  if (opened_.was_aside) known_.ForgetLook();
  looker_.emplace(known_.seed);
  pods_ = std::make_unique<PodMappings>(life_, *watches_);
  TRY(MakeFolders());
  TRY(Watch());
  auto put = PutAllRight();
  // A start that failed, for example without a runtime, missed nothing: the next one goes on.
  if (!put && !IsFatal(put.error().code)) static_cast<void>(Settle());
  return put;
}

// Looks until it is noted that nothing is left to do. What the guard itself changed must be older
// than the look that says so.
Result<void> Guard::Settle() {
  TRY(LookUntilDone());
  for (int turn = 0; turn < kMaxRounds && looker_->look().folders.empty(); ++turn) {
    std::this_thread::sleep_for(kSettles);
    TRY(LookUntilDone());
  }
  return {};
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

Result<void> Guard::Watch() {
  TRY(watches_->Add(WatchedFolder::kRoot, kubelet_directory()));
  TRY(watches_->Add(WatchedFolder::kPulled, life_.pulled.path()));
  TRY(watches_->Add(WatchedFolder::kPulling, life_.pulling.path()));
  return pods_ ? pods_->WatchAll() : Result<void>();
}

Result<void> Guard::PutAllRight() {
  TRY(LookUntilDone());
  // That is noted now as an unrecorded period.
  auto over = opened_.was_aside ? Aside::IsOver(kubelet_directory()) : Result<void>();
  if (!over) {
    life_.Log(LogLevel::kWarning,
              over.error().message + "; until that is mended, each start counts as after a gap");
  }
  if (life_.Hurries()) return InAHurry();
  TRY(FirstList());
  if (life_.Hurries()) return InAHurry();
  TellStarted();
  if (auto begun = put_right_.BeginKeeping(); !begun) {
    life_.Log(LogLevel::kWarning, begun.error().ToString());
  }
  auto pods = pods_->PutRight();
  // A kubelet follows a symlink there that others can change, too.
  if (!pods && pods.error().code != ErrorCode::kUnsafePath) return pods;
  TRY(Survive(std::move(pods), "put the pods' ID mappings right"));
  life_.starting = false;
  life_.status.last_comparison = life_.options.store.clock();
  return {};
}

void Guard::TellStarted() {
  const GuardStatus& status = life_.status;
  if (status.presumed > 0) {
    life_.Log(LogLevel::kNotice,
              internal::HowMany(status.presumed, "image") +
                  (status.presumed == 1 ? " is" : " are") +
                  " presumed preloaded, since nobody recorded a pull before the store was made: "
                  "settle that with waybill preload confirm, or close");
  }
  const std::uint64_t unlisted = status.records_unlisted;
  if (unlisted == 0) return;
  if (had_list_ && listed_.empty()) {
    life_.Log(LogLevel::kWarning,
              "the runtime lists no images, and there are records of " +
                  internal::HowMany(unlisted, "image") +
                  ": is its disk new, or not mounted? What is known of them is kept, and counts "
                  "when they come back");
    return;
  }
  const std::uint64_t all = known_.records.size();
  const bool most = unlisted * 2 > all;
  life_.Log(most ? LogLevel::kWarning : LogLevel::kNotice,
            "the runtime does not list the images of " + std::to_string(unlisted) + " of " +
                std::to_string(all) + " records; their files stay as they are" +
                (most ? ": is this the runtime that the kubelet uses?" : ""));
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
    if (taken && had_list_) return {};
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
  // Any record may be of an image on the node.
  no_list_comes_ = true;
  return LookUntilDone();
}

// --- A look -------------------------------------------------------------------------------------

Result<void> Guard::Again() {
  TRY(Survive(ReadQueue(), "read what the kernel tells of the kubelet's files"));
  if (NothingHappened()) return {};
  return Survive(LookUntilDone(), "follow the kubelet's files");
}

bool Guard::NothingHappened() {
  if (!is_done_ || !written_.empty() || overflow_ || replaced_ || !content_) return false;
  const std::int64_t now = life_.Now();
  if (now >= wakes_at_ || store().CommitSequence() != content_->sequence || ClockWasSet()) {
    return false;
  }
  const auto kubelet = life_.options.kubelet ? life_.options.kubelet() : std::nullopt;
  return (kubelet ? kubelet->life : std::string()) == life_seen_;
}

Result<void> Guard::LookUntilDone(const std::vector<ListedImage>* listing) {
  is_done_ = false;
  for (int round = 0; round < kMaxRounds; ++round) {
    TRY(ReadQueue());
    if (replaced_) {
      auto in_place = TRY(SeeToFolders());
      replaced_ = false;
      if (!in_place) return {};
    }
    auto more = TRY(Look(listing));
    if (!more) {
      is_done_ = listing == nullptr;
      if (is_done_) life_.ended_now.clear();
      // What a command changed before is in force.
      if (is_done_ && had_list_) life_.status.judged_commit = content_->sequence;
      return {};
    }
  }
  if (listing != nullptr) {
    return Error{ErrorCode::kUnavailable, "the kubelet's files change faster than they are read"};
  }
  life_.Log(LogLevel::kWarning, "the kubelet's files change faster than they are put right");
  wakes_at_ = life_.Now() + kWait;
  return {};
}

Result<void> Guard::ReadQueue() {
  auto events = TRY(watches_->Read());
  for (const WatchEvent& event : events) {
    ++life_.status.events;
    if (event.what == WatchEvent::What::kOverflow) {
      overflow_ = true;
      written_.clear();
      exchanged_.clear();
      TRY(Survive(pods_ ? pods_->Compare() : Result<void>(), "compare the pods' ID mappings"));
    } else if (IsOfPods(event)) {
      TRY(Survive(pods_->Handle(event), "follow " + event.name));
    } else if (event.folder == WatchedFolder::kRoot) {
      // Made, moved there, or moved away: that is no event of pulled/ in it.
      replaced_ =
          replaced_ || event.name == kImageManager || event.what == WatchEvent::What::kReplaced;
      if (event.what == WatchEvent::What::kMade && event.name == "pods" && pods_) {
        TRY(Survive(pods_->Compare(), "compare the pods' ID mappings"));
      }
    } else if (event.what == WatchEvent::What::kReplaced) {
      replaced_ = true;
    } else {
      is_done_ = false;
      // A kubelet renames its files into place; what is linked there is the guard's own.
      if (event.what != WatchEvent::What::kWritten || !internal::IsRecordName(event.name)) continue;
      const auto folder =
          event.folder == WatchedFolder::kPulled ? KubeletFolder::kPulled : KubeletFolder::kPulling;
      const std::pair file(folder, event.name);
      const auto own = exchanged_.find(file);
      if (own == exchanged_.end()) {
        ++written_[file];
      } else if (--own->second == 0) {
        exchanged_.erase(own);
      }
    }
  }
  return {};
}

// Whether the wall clock went otherwise than the boot clock since the store was read.
bool Guard::ClockWasSet() const {
  const std::int64_t boot = (life_.Now() - content_at_.nanoseconds) / kNanosecondsPerSecond;
  const std::int64_t wall = life_.options.store.clock().seconds - wall_at_.seconds;
  return std::abs(wall - boot) > 2;
}

// What the store has, if that changed.
Result<void> Guard::ReadStore() {
  const std::int64_t now = life_.Now();
  if (content_ && content_->sequence == store().CommitSequence() && now < content_until_ &&
      !ClockWasSet()) {
    return {};
  }
  projected_.reset();
  content_at_ = life_.options.store.boot_clock();
  wall_at_ = life_.options.store.clock();
  content_ = TRY(store().GetContent());
  ++reads_;
  content_until_ = std::numeric_limits<std::int64_t>::max();
  if (content_->next_end)
    content_until_ = now + content_->next_end->count() * kNanosecondsPerSecond;
  lost_ = content_->distrustful && LostSomething(store());
  life_.status.presumed = static_cast<std::uint64_t>(
      std::ranges::count_if(content_->images, [](const internal::StoreContent::Image& image) {
        return image.row.preloaded && image.row.absent == 0 &&
               image.row.preloaded->source == kPresumedSource;
      }));
  return {};
}

Places Guard::PlacesNow() const {
  return {life_.image_manager, life_.pulled.path(), life_.pulling.path(), life_.links()};
}

const Guard::Projected& Guard::Project(const std::vector<ListedImage>* listing) {
  std::set<FileName> running;
  for (const auto& [name, row] : known_.intents) {
    if (row.since != 0) running.insert(name);
  }
  if (!projected_ || projected_->reads != reads_ || projected_->lists != lists_ ||
      projected_->running != running) {
    const auto* const list = listing != nullptr ? listing : had_list_ ? &listed_ : nullptr;
    Known known(*content_, list == nullptr ? std::vector<ListedImage>() : *list);
    MustFind must =
        internal::WhatItMustFind(*content_, known.images(), list, internal::ForWhom::kGuard,
                                 running, life_.options.preloaded_is_open);
    projected_ = std::make_unique<const Projected>(
        Projected{reads_, lists_, std::move(running), std::move(known), std::move(must)});
  }
  return *projected_;
}

Context Guard::ContextOf(const guard::Look& look, const std::set<FileName>* listing) {
  const GuardOptions& options = life_.options;
  // Asked after the files were read: what is noted of them holds for the kubelet that is found.
  const auto kubelet = options.kubelet ? options.kubelet() : std::nullopt;
  Context context{.life = kubelet ? kubelet->life : std::string(),
                  .began = kubelet ? kubelet->began : std::nullopt};
  life_seen_ = context.life;
  context.watched = watched_ && !look.overflow;
  if (context.life != known_.node.life) {
    // One that is known already did not begin now: nobody saw what it did meanwhile.
    context.began_seen = context.life.empty() || (context.watched && markers_stood_ &&
                                                  context.life != known_.node.last_life);
  } else {
    context.began_seen = known_.node.began_seen &&
                         (context.life.empty() || context.watched || IsAsNoted(look, known_));
  }
  context.lost = lost_;
  context.first = known_.node.folders.empty() && content_->awaits_first_list && !lost_ &&
                  !opened_.lost_all && !opened_.was_aside;
  context.nothing_ends = content_->revocations.empty() && !content_->has_ages;
  if (known_.node.read_unknown && context.life == known_.node.last_life) {
    context.began_seen = context.nothing_ends = false;
  }
  context.live = options.live;
  context.now = life_.Now();
  context.wall = options.store.clock();
  context.who_checks = options.who_checks;
  context.window = options.store.evidence.window.count() * kNanosecondsPerSecond;
  context.had_list = had_list_;
  context.no_list_comes = no_list_comes_ && !had_list_;
  context.listing = listing;
  if (options.node_had_none) {
    context.node_had_none = [this](const std::string& name) {
      // A pull of before this guard may have been made with what the node had then.
      const bool runs_long = std::ranges::any_of(content_->pulls, [&](const UnresolvedPull& pull) {
        return pull.state == PullState::kRunning && pull.stamp <= opened_at_ &&
               ImageName(pull.image) == std::string_view(name);
      });
      return !runs_long && life_.options.node_had_none(name);
    };
  }
  context.version = known_.node.beta ? KubeletApiVersion::kV1Beta1 : KubeletApiVersion::kV1Alpha1;
  context.verifies_recorded = options.verifies_recorded;
  return context;
}

Result<bool> Guard::Look(const std::vector<ListedImage>* listing) {
  guard::Look& look = *TRY(looker_->LookAt(PlacesNow()));
  look.written = std::exchange(written_, {});
  look.overflow = std::exchange(overflow_, false);
  look.was_used = was_used_;
  // Somebody may have put another file there between the look that was wide and the end of that.
  if (!std::exchange(narrowed_, {}).empty()) look.wide = "others could write there until now";
  TRY(ReadStore());
  const Projected& projected = Project(listing);
  const std::set<FileName> names = listing != nullptr ? NamesOf(*listing) : std::set<FileName>();
  const Context context = ContextOf(look, listing != nullptr ? &names : nullptr);
  Compared compared = guard::Compare(look, known_, projected.known, projected.must, context);
  NoteCompared(compared, context);
  const bool takes = compared.takes;
  if (auto taken = TakeOver(compared); !taken) {
    // What the queue told is told again at the next look.
    for (const auto& [file, times] : look.written) written_[file] += times;
    overflow_ = overflow_ || look.overflow;
    return taken.error();
  }
  watched_ = true;
  markers_stood_ = look.pulled_has_marker && look.pulling_has_marker;
  if (listing != nullptr) return takes;
  const bool is_right = compared.acts.empty();
  const bool marks = TRY(SeeToMarkers(look));
  TRY(SeeToWide(!takes && !compared.waits_for_list));
  const bool puts = TRY(put_right_(std::move(compared.acts), context.watched && !life_.starting));
  if (!takes && is_right) TRY(NoteRevocations(context));
  SetTimer(look);
  return takes || puts || marks;
}

void Guard::NoteCompared(const Compared& compared, const Context& context) {
  GuardStatus& status = life_.status;
  status.kubelet_ran_before = !context.life.empty() && !context.began_seen;
  status.gap = status.gap || (!watched_ && compared.has_unrecorded());
  life_.wants_list = life_.wants_list || compared.wants_list;
  for (const auto& [folder, name] : compared.later_formats) {
    life_.LeaveAlone(life_.FilesOf(folder).path() / name);
  }
  if (context.listing != nullptr) return;
  status.waiting.clear();
  for (const std::string& ref : compared.waiting) {
    if (status.waiting.size() >= kMaxNamedWaiting) break;
    status.waiting.insert(status.waiting.end(), ref);
  }
}

// In one commit: what the store is told, and what is known of the files by which it is.
Result<void> Guard::TakeOver(Compared& compared) {
  if (compared.calls.empty() && !compared.rows) return {};
  TRY(SyncEvidence(compared));
  TRY(store().InOneCommit([&]() -> Result<void> {
    for (const StoreCall& call : compared.calls) TRY(Tell(call));
    return compared.rows ? compared.rows->Write(store(), known_) : Result<void>();
  }));
  if (compared.rows) {
    known_ = *std::move(compared.rows);
    known_.is_forgotten = false;
  }
  life_.ended_now.merge(compared.ended);
  for (const std::string& string : compared.ended_some) {
    life_.Found(HoleKind::kIntentDropped, string,
                "the kubelet dropped the intent of several pulls, of which some may still run");
  }
  return {};
}

// Within a commit.
Result<void> Guard::Tell(const StoreCall& call) {
  const auto make = [this](const auto& one) -> Result<void> {
    auto made = store().Call(one);
    return made ? Result<void>() : made.error();
  };
  if (const auto* period = std::get_if<NoteUnrecordedPeriod>(&call)) {
    return life_.Missed(period->reason);
  }
  if (std::holds_alternative<PullOfAnything>(call)) return store().NotePullOfAnything();
  if (const auto* begin = std::get_if<BeginPull>(&call)) return make(*begin);
  if (const auto* end = std::get_if<EndPull>(&call)) return make(*end);
  if (const auto* pull = std::get_if<PullOfUnknownEnd>(&call)) {
    const auto begun = TRY(store().Call(BeginPull{.image = pull->image}));
    return make(EndPull{.image = pull->image, .pull = begun.pull});
  }
  const auto* const proven = std::get_if<ProvenRecord>(&call);
  return Put(proven != nullptr ? TRY(BesideRecord(*proven)) : std::get<PutImage>(call));
}

// By what counts at this moment: what the files are compared with may be older.
Result<PutImage> Guard::BesideRecord(const ProvenRecord& proven) const {
  auto counts = store().GetRecord({.image_ref = proven.put.record.image_ref});
  if (counts) return Beside(proven, *std::move(counts), known_.seed);
  if (counts.error().code != ErrorCode::kNotFound) return counts.error();
  return proven.put;
}

Result<void> Guard::Put(const PutImage& put) const {
  auto made = store().Call(put);
  if (made) return {};
  // A record above a limit is none: the image is closed by the next list.
  const ErrorCode code = made.error().code;
  if (code != ErrorCode::kLimitExceeded && code != ErrorCode::kInvalidArgument) {
    return made.error();
  }
  const FileName name = internal::RecordNameOf(put.record.image_ref);
  life_.Log(LogLevel::kWarning,
            (life_.pulled.path() / name).string() + " can't be kept: " + made.error().ToString());
  return {};
}

// What the kubelet wrote is on the disk before the store says so.
Result<void> Guard::SyncEvidence(const Compared& compared) const {
  std::set<KubeletFolder> folders;
  for (const auto& [folder, name] : compared.evidence) {
    TRY(life_.FilesOf(folder).SyncFile(name));
    folders.insert(folder);
  }
  for (const KubeletFolder folder : folders) TRY(life_.FilesOf(folder).SyncFolder());
  return {};
}

// Returns whether it changed one.
Result<bool> Guard::SeeToMarkers(const guard::Look& look) const {
  const bool live = life_.options.live;
  if (look.pulled_has_marker != live) {
    TRY(live ? life_.pulled.PutMarker() : life_.pulled.TakeMarkerAway());
  }
  if (look.pulling_has_marker != live) {
    TRY(live ? life_.pulling.PutMarker() : life_.pulling.TakeMarkerAway());
  }
  return look.pulled_has_marker != live || look.pulling_has_marker != live;
}

// Takes folders from others who could write there, once all that they show is noted (D7).
Result<void> Guard::SeeToWide(bool is_noted) {
  const std::vector<std::filesystem::path> folders = {life_.image_manager, life_.pulled.path(),
                                                      life_.pulling.path()};
  const std::string wide = WideAmong(folders);
  if (life_.status.not_protected != wide) {
    if (!wide.empty()) {
      life_.Log(LogLevel::kError, wide + ": nothing new in it counts");
      // Of what they removed nothing is left.
      TRY(life_.Missed(wide));
    }
    life_.status.not_protected = wide;
  }
  if (wide.empty() || !is_noted) return {};
  for (const std::filesystem::path& folder : folders) {
    auto place = internal::FindPlace(folder);
    if (place && !place->wide.empty()) static_cast<void>(::chmod(folder.c_str(), S_IRWXU));
  }
  if (!WideAmong(folders).empty()) return {};
  life_.Log(LogLevel::kNotice, "nobody else may write there any more");
  life_.status.not_protected.clear();
  narrowed_ = wide;
  return {};
}

// V1: no kubelet that runs has in memory what was revoked, so the revocations may end. Both folders
// are on the disk first, so that no power cut brings a file of before back (V3).
Result<void> Guard::NoteRevocations(const Context& context) {
  const auto is_new = [&](const Revocation& one) { return one.ran >= content_->kubelet_ran; };
  if (!context.began_seen || !std::ranges::any_of(content_->revocations, is_new)) return {};
  for (const Revocation& one : content_->revocations) {
    const std::string name = internal::RecordNameOf(one.image_ref);
    for (const auto& [of, row] : known_.records) {
      const bool covers = one.kind == RevocationKind::kImage
                              ? of == name && !row.may_have.empty()
                              : std::ranges::any_of(row.may_have, [&](const Item& item) {
                                  return Covers(one, item, known_.seed);
                                });
      if (covers) return {};
    }
  }
  TRY(life_.pulling.SyncFolder());
  TRY(life_.pulled.SyncFolder());
  return Survive(store().NoteKubeletBegan(content_at_),
                 "note that no kubelet has what was revoked");
}

void Guard::SetTimer(const guard::Look& look) {
  wakes_at_ = content_until_;
  // The folders changed just now: whether nothing is left to do shows a moment later.
  if (look.folders.empty() || !life_.status.cannot_write.empty()) wakes_at_ = life_.Now() + kWait;
  for (const auto& [name, row] : known_.intents) {
    if (row.since == 0) continue;
    wakes_at_ = std::min(
        wakes_at_,
        row.since + life_.options.store.evidence.window.count() * kNanosecondsPerSecond + 1);
  }
}

std::chrono::milliseconds Guard::WaitsFor() const {
  constexpr std::int64_t kMost = 3600 * kNanosecondsPerSecond;
  const std::int64_t left = std::clamp<std::int64_t>(wakes_at_ - life_.Now(), 0, kMost);
  return std::chrono::milliseconds(left / 1'000'000 + 1);
}

Result<void> Guard::Compare() {
  replaced_ = true;
  is_done_ = false;
  ++life_.status.comparisons;
  life_.status.last_comparison = life_.options.store.clock();
  life_.wants_list = true;
  TRY(Again());
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
  if (!session_->InPlace(life_.own())) {
    // The lock guards nothing any more.
    auto session = TRY(Session::Begin(life_.own()));
    session_.emplace(std::move(session));
  }
  if (!watches_->IsStale(WatchedFolder::kPulled, life_.pulled.path()) &&
      !watches_->IsStale(WatchedFolder::kPulling, life_.pulling.path())) {
    return true;
  }
  // What was in them went unseen.
  overflow_ = true;
  exchanged_.clear();
  TRY(MakeFolders());
  TRY(Watch());
  return true;
}

// --- Lists --------------------------------------------------------------------------------------

bool Guard::NothingChanged(const std::vector<ListedImage>& images) const {
  if (life_.wants_list || life_.starting || !judged_at_ || listed_ != images || !is_done_) {
    return false;
  }
  const std::int64_t age = life_.options.store.clock().seconds - judged_at_->seconds;
  return age >= 0 && age < kJudgeSeconds && content_ &&
         content_->sequence == store().CommitSequence();
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
  if (!life_.starting) TRY(Again());
  if (!ended.quiet_until && NothingChanged(*list)) {
    life_.status.last_list = life_.options.store.clock();
    return {};
  }
  life_.wants_list = false;
  ++lists_;
  auto judged = Judge(token, *std::move(list), std::move(ended));
  // One that was not taken is not what the files are compared with.
  if (!judged) ++lists_;
  if (life_.starting) return judged;
  return Survive(std::move(judged), "judge the list of images");
}

Result<void> Guard::Judge(const ListToken& token, std::vector<ListedImage> images,
                          EndedPulls ended) {
  TRY(LookUntilDone(&images));
  if (lost_its_place_) return {};
  TRY(ReadStore());
  auto settled = guard::SettleProven(known_, Project(&images).known, token.drawn.nanoseconds);
  TRY(TakeOver(settled));
  auto named = TRY(WithoutNameless(images));
  const bool complete = named.size() == images.size();
  const ClassifyImages classify{.list = {.images = named,
                                         .token = token,
                                         .complete = complete,
                                         .quiet_until = ended.quiet_until,
                                         .names_to_come = std::move(ended.names_to_come)}};
  auto observed = TRY(store().Call(classify));
  const bool is_first = !had_list_;
  had_list_ = true;
  listed_ = std::move(images);
  life_.status.runtime_error.clear();
  life_.status.last_list = life_.options.store.clock();
  life_.status.images = listed_.size();
  if (!life_.starting) TellJudged(observed.judged);
  TRY(LookUntilDone());
  if (is_first) TellUnlisted();
  TellPutBack();
  judged_at_.reset();
  if (observed.judged.empty()) judged_at_ = life_.options.store.clock();
  return {};
}

// A runtime makes an image's entry and its names one after the other. An image of which nothing is
// known, and that has no name yet, is judged by a later list; until then it is closed.
Result<std::vector<ListedImage>> Guard::WithoutNameless(const std::vector<ListedImage>& images) {
  if (life_.starting) {
    nameless_.clear();
    return images;
  }
  std::vector<ListedImage> named;
  std::map<std::string, std::int64_t> nameless;
  const std::int64_t now = life_.Now();
  for (const ListedImage& image : images) {
    if (image.repo_tags.empty() && image.repo_digests.empty()) {
      auto why = TRY(store().Explain({.image = image.id, .image_ref = image.id}));
      const bool known = why.recorded || why.ledger_entry;
      const auto before = nameless_.find(image.id);
      const std::int64_t since = before == nameless_.end() ? now : before->second;
      if (!known && now - since < kNamesMayCome) {
        nameless.emplace(image.id, since);
        life_.wants_list = true;
        continue;
      }
    }
    named.push_back(image);
  }
  nameless_ = std::move(nameless);
  return named;
}

void Guard::TellJudged(const std::vector<ClassifiedImage>& judged) {
  const auto runs = [&](const std::string& name) {
    return std::ranges::any_of(known_.intents, [&](const auto& one) {
      const FileRow& row = one.second;
      return row.since != 0 && (row.image == name || NormaliseImage(row.image) == name);
    });
  };
  for (const ClassifiedImage& image : judged) {
    if (image.preloaded) {
      life_.Log(LogLevel::kInfo, image.name + " came without the kubelet: " + image.because);
    } else if (!runs(image.name)) {
      // If it is being pulled, the kubelet's record comes next.
      life_.Found(HoleKind::kUnrecordedImage, image.name, "it is closed: " + image.because);
    }
  }
}

void Guard::TellPutBack() {
  std::set<std::string> listed;
  if (!life_.put_back.empty()) {
    for (const ListedImage& image : listed_) listed.insert(internal::SpellingOf(image.id));
  }
  for (const std::string& ref : std::exchange(life_.put_back, {})) {
    if (!listed.contains(internal::SpellingOf(ref))) continue;
    life_.Found(HoleKind::kRecordRemoved, ref,
                "its record was removed, and the runtime still has it; it was put back");
  }
}

// Records of images that the first list does not have.
void Guard::TellUnlisted() {
  GuardStatus& status = life_.status;
  const std::set<FileName> listed = NamesOf(listed_);
  for (const auto& [name, file] : looker_->look().pulled) {
    if (!file.is_read_as_record() || file.about != name || listed.contains(name)) continue;
    if (status.unlisted.size() < kMaxNamedUnlisted) {
      status.unlisted.push_back(file.record.image_ref);
    }
    ++status.records_unlisted;
    life_.Log(LogLevel::kNotice,
              "the runtime does not list " + internal::QuoteForMessage(file.record.image_ref) +
                  ": its record stays, " + (life_.pulled.path() / name).string());
  }
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
  // From here on it is known which credentials the node has.
  if (life_.status.checks.empty()) opened_at_ = store().CommitSequence();
  life_.status.checks = std::move(checks);
}

Result<void> Guard::Stop(bool again) {
  if (!again) life_.options.live = false;
  TRY(Settle());
  TRY(store().Close());
  session_.reset();
  return {};
}

Result<void> Guard::Survive(Result<void> result, const std::string& doing) {
  if (result || IsFatal(result.error().code)) return result;
  life_.Log(LogLevel::kError, "cannot " + doing + ": " + result.error().ToString() +
                                  "; it is tried again at the next look");
  life_.wants_list = true;
  return {};
}

}  // namespace waybill::guard
