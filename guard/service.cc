#include "guard/service.h"

#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "guard/aside.h"
#include "guard/kubelet_process.h"
#include "guard/node_credentials.h"
#include "guard/notify.h"
#include "guard/who_checks.h"
#include "runtime/cri/containerd.h"
#include "store/base/metrics.h"
#include "store/base/try.h"
#include "waybill/values.h"

namespace waybill::guard {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How long it waits after something happened; and while nothing does.
constexpr milliseconds kTick{1000};
constexpr milliseconds kIdleTick{5000};
// How old may get what changes where nothing happens: times, and how often was compared.
constexpr std::chrono::seconds kRewrite{3600};
constexpr std::chrono::seconds kCountAnew{60};
// The shortest time between two lists: the next one has what happened meanwhile.
constexpr milliseconds kMinBetweenLists{200};
constexpr milliseconds kBetweenTries{500};
// A start waits so long for what is found of the node; later it is told all the same.
constexpr milliseconds kWaitForChecks{2000};
constexpr std::chrono::seconds kListEvery{5};
constexpr int kWithEvents = 10;  // times as long where the runtime tells of changes
constexpr milliseconds kTogether{50};
// Doubles each time if the runtime has no events.
constexpr std::chrono::seconds kWatchEventsAnew{10};
constexpr std::chrono::seconds kMaxWatchEventsAnew{320};
constexpr std::size_t kMaxCommands = 4;
constexpr std::size_t kMaxWaitingHoles = 10'000;
constexpr std::size_t kMaxStatusBytes = std::size_t{1} << 20;
// More than a guard writes before it is ready.
constexpr std::size_t kRoomBytes = std::size_t{128} << 10;

Error CallFailed(const char* call) {
  return {ErrorCode::kIo, std::string(call) + " failed: " + std::strerror(errno), ""};
}

// The runtime, asked by one thread at a time.
class Asked {
 public:
  // `ends`: whether the service has to end, so that waiting for an answer is pointless.
  Asked(cri::ClientOptions options, std::function<bool()> ends) : options_(std::move(options)) {
    options_.cancelled = [this, ends = std::move(ends)] { return cancelled_ || ends(); };
  }
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;

  // Ends the call that waits, from another thread.
  void Cancel() { cancelled_ = true; }

  Result<std::vector<ListedImage>> ListImages() {
    if (!client_) {
      client_ = TRY(cri::Client::Connect(options_));
      // Of several possible runtimes, the one that answered first is kept.
      options_.endpoint = client_->endpoint();
    }
    auto list = client_->ListImages();
    // Another runtime may answer the next time.
    if (!list) {
      client_.reset();
    } else {
      who_checks_.Learn(*client_);
    }
    return list;
  }
  // Also while another thread asks.
  VerifiedBy WhoChecked(const std::string& image_name) const { return who_checks_.Of(image_name); }
  // With an endpoint, once the runtime has answered.
  const cri::ClientOptions& options() const { return options_; }

 private:
  std::atomic<bool> cancelled_ = false;
  cri::ClientOptions options_;
  std::unique_ptr<cri::Client> client_;
  WhoChecks who_checks_;
};

// Asks containerd whether pulls that ended can bring anything any more (runtime/cri/pull_ends.h).
class AskedOfPulls {
 public:
  // To be called before the list of CRI's is made.
  void Look(const cri::ClientOptions& options, const std::vector<BootTime>& ends) {
    quiet_ = {};
    images_.clear();
    if (ends.empty() || options.endpoint.empty() || !tells_) return;
    const cri::Containerd containerd(options);
    auto look = containerd.LookAtPulls();
    if (!look) {
      ends_.Failed();
      tells_ = look.error().code != ErrorCode::kInvalidArgument;
      return;
    }
    ends_.Saw(*std::move(look));
    for (const BootTime& end : ends) {
      const bool is_later =
          !quiet_.quiet_until || end.nanoseconds > quiet_.quiet_until->nanoseconds;
      if (is_later && ends_.Quiet(end.nanoseconds)) quiet_.quiet_until = end;
    }
    if (!quiet_.quiet_until) return;
    if (auto images = containerd.Images()) {
      images_ = *std::move(images);
    } else {
      quiet_ = {};
    }
  }
  // What to tell the guard beside that list.
  EndedPulls With(const std::vector<ListedImage>& list) {
    if (!quiet_.quiet_until) return {};
    quiet_.names_to_come = cri::NotShown(images_, list);
    return std::exchange(quiet_, {});
  }
  // Whether a look some seconds later may tell more.
  bool tells() const { return tells_; }

 private:
  cri::PullEnds ends_;
  bool tells_ = true;
  EndedPulls quiet_;
  std::vector<cri::ContainerdImage> images_;
};

// Lists the runtime's images on a thread of its own.
class BackgroundList {
 public:
  explicit BackgroundList(Asked& runtime)
      : runtime_(runtime), done_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~BackgroundList() {
    runtime_.Cancel();
    if (thread_.joinable()) thread_.join();
  }
  BackgroundList(const BackgroundList&) = delete;
  BackgroundList& operator=(const BackgroundList&) = delete;

  int fd() const { return done_.get(); }
  bool runs() const { return thread_.joinable(); }

  // Not while one runs. `ends`: of pulls that may still bring an image.
  void Begin(const ListToken& token, std::vector<BootTime> ends) {
    token_ = token;
    awaits_pulls_ = !ends.empty() && pulls_.tells();
    thread_ = std::thread([this, ends = std::move(ends)] {
      pulls_.Look(runtime_.options(), ends);
      list_ = runtime_.ListImages();
      static_cast<void>(::eventfd_write(done_.get(), 1));
    });
  }

  // After fd() was readable.
  Result<std::vector<ListedImage>> Take() {
    eventfd_t count = 0;
    static_cast<void>(::eventfd_read(done_.get(), &count));
    thread_.join();
    return std::exchange(list_, std::vector<ListedImage>());
  }
  const ListToken& token() const { return token_; }
  // After Take, for the list that it gave.
  EndedPulls EndedWith(const std::vector<ListedImage>& list) { return pulls_.With(list); }
  // Whether pulls that ended are waited for, so that it is worth while to ask again soon.
  bool awaits_pulls() const { return awaits_pulls_; }

 private:
  Asked& runtime_;
  internal::Fd done_;
  ListToken token_;
  AskedOfPulls pulls_;
  bool awaits_pulls_ = false;
  Result<std::vector<ListedImage>> list_ = std::vector<ListedImage>();
  std::thread thread_;
};

// Looks at the node on a thread of its own: what it asks may be slow to answer.
class BackgroundChecks {
 public:
  using Examine = decltype(ServiceOptions::examine);

  explicit BackgroundChecks(Examine examine) : examine_(std::move(examine)) {}
  ~BackgroundChecks() { cancelled_ = true; }
  BackgroundChecks(const BackgroundChecks&) = delete;
  BackgroundChecks& operator=(const BackgroundChecks&) = delete;

  // Unless one runs.
  void Begin() {
    if (!examine_ || results_.valid()) return;
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    began_ = std::int64_t{now.tv_sec} * kNanosecondsPerSecond + now.tv_nsec;
    results_ = std::async(std::launch::async,
                          [this] { return examine_([this] { return cancelled_.load(); }); });
  }
  bool runs() const { return results_.valid(); }
  // When, in nanoseconds since 1970.
  std::int64_t began() const { return began_; }
  // What was found, if that is known within `wait`; once.
  std::optional<Examined> Take(milliseconds wait) {
    if (!results_.valid() || results_.wait_for(wait) != std::future_status::ready) {
      return std::nullopt;
    }
    return results_.get();
  }

 private:
  Examine examine_;
  std::atomic<bool> cancelled_ = false;
  // Its destructor waits.
  std::future<Examined> results_;
  std::int64_t began_ = 0;
};

// Readable when the store may have changed, by a command that asked the guard, or when the socket
// that a kubelet makes at its start may have come or gone.
class Stirring {
 public:
  Stirring(const std::filesystem::path& store, std::filesystem::path kubelet)
      : kubelet_(std::move(kubelet)), fd_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    if (!fd_.valid()) return;
    is_whole_ = Watch(store, IN_MODIFY) && Watch(kubelet_, kNames);
    WatchSocket();
  }

  int fd() const { return fd_.get(); }
  // Otherwise somebody has to look each second.
  bool is_whole() const { return is_whole_; }
  // Makes fd() unreadable until the next change.
  void Drain() {
    std::array<char, 4096> events;
    while (::read(fd_.get(), events.data(), events.size()) > 0) {
    }
    WatchSocket();
  }

 private:
  static constexpr std::uint32_t kNames = IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM;

  bool Watch(const std::filesystem::path& folder, std::uint32_t what) const {
    return ::inotify_add_watch(fd_.get(), folder.c_str(), what | IN_ONLYDIR) >= 0;
  }
  // Its folder may come later, or be another one.
  void WatchSocket() const { static_cast<void>(Watch(kubelet_ / "pod-resources", kNames)); }

  std::filesystem::path kubelet_;
  internal::Fd fd_;
  bool is_whole_ = false;
};

// Runs the operator's command for each hole, a few at a time.
class HoleCommand {
 public:
  explicit HoleCommand(std::function<void(const std::string&)> say) : say_(std::move(say)) {}

  // Empty: none.
  void set_command(std::string command) { command_ = std::move(command); }

  void Run(const Hole& hole) {
    if (command_.empty()) return;
    if (waiting_.size() >= kMaxWaitingHoles) {
      say_("the command for holes is still busy; it does not hear of this one");
      return;
    }
    waiting_.push_back(hole);
    Continue();
  }

  // After a command may have ended.
  void Continue() {
    for (auto at = running_.begin(); at != running_.end();) {
      at = ::waitpid(*at, nullptr, WNOHANG) == 0 ? std::next(at) : running_.erase(at);
    }
    while (running_.size() < kMaxCommands && !waiting_.empty()) {
      const Hole hole = std::move(waiting_.front());
      waiting_.pop_front();
      Spawn(hole);
    }
  }

 private:
  void Spawn(const Hole& hole) {
    std::vector<std::string> environment;
    for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
    environment.push_back("WAYBILL_HOLE=" + std::string(HoleName(hole.kind)));
    environment.push_back("WAYBILL_IMAGE=" + hole.image);
    std::vector<char*> pointers;
    pointers.reserve(environment.size() + 1);
    for (std::string& entry : environment) pointers.push_back(entry.data());
    pointers.push_back(nullptr);
    std::array<std::string, 3> words = {"sh", "-c", command_};
    std::array<char*, 4> arguments = {words[0].data(), words[1].data(), words[2].data(), nullptr};
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    pid_t pid = 0;
    const int error =
        ::posix_spawn(&pid, "/bin/sh", nullptr, &attributes, arguments.data(), pointers.data());
    ::posix_spawnattr_destroy(&attributes);
    if (error != 0) {
      say_(std::string("the command for holes can't be run: ") + std::strerror(error));
      return;
    }
    running_.insert(pid);
  }

  std::string command_;
  std::function<void(const std::string&)> say_;
  std::set<pid_t> running_;
  std::deque<Hole> waiting_;
};

// A start needs more memory than what comes after it, and so do the checks: of the heap, and of the
// command's code, which the kernel reads again where it is run again.
void GiveMemoryBack() {
  ::malloc_trim(0);
  const auto drop = [](dl_phdr_info* program, std::size_t, void*) {
    for (std::size_t i = 0; i < program->dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = program->dlpi_phdr[i];
      if (part.p_type != PT_LOAD || (part.p_flags & PF_W) != 0) continue;
      const std::uintptr_t page = part.p_align - 1;
      const std::uintptr_t begin = (program->dlpi_addr + part.p_vaddr) & ~page;
      const std::uintptr_t end = program->dlpi_addr + part.p_vaddr + part.p_memsz;
      ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }
    return 1;  // the first one is the command; libraries are shared with others
  };
  ::dl_iterate_phdr(drop, nullptr);
}

class Service {
 public:
  explicit Service(const ServiceOptions& options)
      : options_(options),
        commands_([this](const std::string& text) { Log(LogLevel::kWarning, text); }) {}

  Result<GuardStatus> Run() {
    TRY(MakeDescriptors());
    auto aside = TRY(StandAside());
    if (aside) return *aside;
    TRY(StartGuard(told_aside_));
    if (options_.once) {
      const bool in_a_hurry = WantsToEnd();
      auto ended = End();
      if (!ended || !in_a_hurry) return ended;
      return Error{ErrorCode::kInterrupted,
                   "it was asked to end before the kubelet's files were right",
                   "run it again before the kubelet starts"};
    }
    for (;;) {
      auto anew = TRY(Watch());
      if (!anew) return End();
      // While a list is still awaited, nothing that the kubelet does is lost. Later it would be.
      list_.reset();
      checks_.reset();
      Tell(Reloading());
      TRY(guard_->Stop(true));
      guard_.reset();
      options_ = *std::move(anew);
      aside = TRY(StandAside());
      if (aside) return *aside;
      TRY(StartGuard(true));
    }
  }

 private:
  Result<GuardStatus> End() {
    checks_.reset();
    Tell("STOPPING=1");
    GuardStatus status = guard_->status();
    TRY(guard_->Stop());
    guard_.reset();
    return status;
  }

  // As long as it has to. Returns the status at the end of the service; nullopt: it goes on.
  Result<std::optional<GuardStatus>> StandAside() {
    std::string why = TRY(WhyAside(options_.guard.kubelet_directory));
    if (why.empty()) return std::optional<GuardStatus>();
    log_ = options_.guard.log;
    Log(LogLevel::kError, why + ": so no guard protects this kubelet");
    auto aside = Aside::Begin(options_.guard);
    // A kubelet has to start, also where there is no place for the guard's status.
    if (!aside && aside.error().code == ErrorCode::kOwned) return aside.error();
    if (!aside) Log(LogLevel::kError, "it has no status: " + aside.error().ToString());
    const auto watchdog = WatchdogInterval();
    const auto wait = std::min(
        watchdog ? std::chrono::duration_cast<milliseconds>(*watchdog / 3) : kIdleTick, kIdleTick);
    bool is_ready = false;
    for (std::string told; !why.empty();) {
      if (why != std::exchange(told, why)) {
        if (aside) Write(aside->status_path(), aside->StatusJson(why));
        if (!options_.metrics_file.empty()) {
          Write(options_.metrics_file, ToPrometheusText({NotProtected(why)}));
        }
      }
      if (options_.once) return std::optional(GuardStatus{.not_protected = why});
      if (!std::exchange(is_ready, true)) {
        Tell("READY=1");
        if (!std::exchange(told_aside_, true) && options_.aside) options_.aside(why);
      }
      epoll_event event{};
      if (::epoll_wait(epoll_.get(), &event, 1, static_cast<int>(wait.count())) < 0 &&
          errno != EINTR) {
        return CallFailed("epoll_wait");
      }
      if (watchdog) Tell("WATCHDOG=1");
      if (auto ends = TakeSignals()) {
        if (!*ends) return std::optional(GuardStatus{.not_protected = why});
        options_ = **std::move(ends);
      }
      why = TRY(WhyAside(options_.guard.kubelet_directory));
    }
    Log(LogLevel::kNotice, "nobody else decides any more what the kubelet finds");
    return std::optional<GuardStatus>();
  }

  Result<void> MakeDescriptors() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&signals, signal);
    if (::pthread_sigmask(SIG_BLOCK, &signals, nullptr) != 0) return CallFailed("pthread_sigmask");
    signals_ = internal::Fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    epoll_ = internal::Fd(::epoll_create1(EPOLL_CLOEXEC));
    if (!signals_.valid() || !epoll_.valid()) return CallFailed("epoll");
    return Add(signals_.get());
  }

  Result<void> Add(int fd) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
    return CallFailed("epoll_ctl");
  }

  // `again`: a guard ran here until now. If the runtime does not answer just then, that does not
  // end the guard.
  Result<void> StartGuard(bool again) {
    GuardOptions options = options_.guard;
    log_ = options.log;
    commands_.set_command(options_.on_hole);
    options.on_hole = [this](const Hole& hole) { commands_.Run(hole); };
    options.hurry = [this] { return WantsToEnd(); };
    credentials_ = NodeCredentialsSeen();
    options.node_had_none = [this](const std::string& image) {
      return credentials_.HadNone(image);
    };
    if (again) options.needs_runtime = false;
    const auto until = steady_clock::now() + (again ? milliseconds(0) : options_.wait_runtime);
    // SIGTERM must not wait for a runtime that does not come.
    options.try_again = [this, until](const Error& error) {
      if (steady_clock::now() >= until || WantsToEnd()) return false;
      if (!told_waiting_) Log(LogLevel::kInfo, "waiting for the runtime: " + error.ToString());
      told_waiting_ = true;
      std::this_thread::sleep_for(kBetweenTries);
      return true;
    };
    runtime_.reset();
    if (options_.runtime) {
      runtime_.emplace(*options_.runtime, [this] { return WantsToEnd(); });
      options.list_images = [this] { return runtime_->ListImages(); };
      options.who_checks = [this](const std::string& name) { return runtime_->WhoChecked(name); };
    }
    auto guard = TRY(Guard::Start(std::move(options)));
    guard_ = std::move(guard);
    // Not all may be right yet: no kubelet may start.
    if (WantsToEnd()) return {};
    if (!options_.once) {
      if (auto served = guard_->store().Serve(); !served) {
        Log(LogLevel::kWarning, "other commands can't ask the guard: " + served.error().ToString());
      }
    }
    WriteStatus();
    checks_.emplace(options_.examine);
    checks_->Begin();
    if (TakeChecks(kWaitForChecks)) WriteStatus();
    GiveMemoryBack();
    Tell("READY=1");
    if (options_.ready && !again) options_.ready(*guard_);
    return {};
  }

  bool TakeChecks(milliseconds wait) {
    auto results = checks_->Take(wait);
    if (!results) return false;
    credentials_.Add(results->credentials, checks_->began());
    guard_->TakeChecks(std::move(results->checks));
    GiveMemoryBack();
    return true;
  }

  // With --once it is another service that starts, and READY would be about that.
  void Tell(const std::string& state) const {
    if (!options_.once) Notify(state);
  }

  static std::string Reloading() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return "RELOADING=1\nMONOTONIC_USEC=" +
           std::to_string(std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000);
  }

  // Whether a signal to end came, also one that nobody has read yet. From any thread.
  bool WantsToEnd() const {
    if (ends_) return true;
    sigset_t pending;
    return ::sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGTERM) != 0 || sigismember(&pending, SIGINT) != 0);
  }

  // Runs until a signal. Returns what to start the guard anew with; nullopt: it ends.
  Result<std::optional<ServiceOptions>> Watch() {
    TRY(Add(guard_->fd()));
    Stirring stirring(options_.guard.store.directory, guard_->kubelet_directory());
    if (stirring.is_whole()) TRY(Add(stirring.fd()));
    bool stirs = true;
    if (runtime_) {
      list_.emplace(*runtime_);
      TRY(Add(list_->fd()));
    }
    std::unique_ptr<cri::ImageEvents> events;
    const auto began = steady_clock::now();
    auto listed = began;
    auto compared = began;
    auto ticked = began;
    auto examined = began;
    auto watched_events = began;
    std::chrono::seconds watch_anew{0};
    auto looked = began;
    std::string kubelet_life = guard_->kubelet_life();
    bool image_changed = false;
    // A list that began before the runtime's events were watched may have missed some.
    bool listed_since = false;
    const auto watchdog = WatchdogInterval();
    const milliseconds most =
        watchdog
            ? std::max(std::chrono::duration_cast<milliseconds>(*watchdog / 3), milliseconds(1))
            : kIdleTick;
    for (;;) {
      const bool is_idle = stirring.is_whole() && !stirs && !checks_->runs();
      const milliseconds tick = std::min(most, is_idle ? kIdleTick : kTick);
      std::array<epoll_event, 8> ready{};
      const bool wants_list = list_ && !list_->runs() && (guard_->wants_list() || image_changed);
      const auto wait = std::min(wants_list ? std::min(Between(), tick) : tick, guard_->WaitsFor());
      const int count =
          ::epoll_wait(epoll_.get(), ready.data(), ready.size(), static_cast<int>(wait.count()));
      if (count < 0 && errno != EINTR) return CallFailed("epoll_wait");
      bool looks = false;
      for (int i = 0; i < count; ++i) {
        const int fd = ready[static_cast<std::size_t>(i)].data.fd;
        // A list that shows nothing new stirs nothing.
        stirs = stirs || !list_ || fd != list_->fd();
        if (fd == stirring.fd()) {
          stirring.Drain();
          looks = true;
        } else if (fd == signals_.get()) {
          if (auto ends = TakeSignals()) return *std::move(ends);
        } else if (fd == guard_->fd()) {
          looks = true;
        } else if (list_ && fd == list_->fd()) {
          auto images = list_->Take();
          // If the service is to end, the list is no longer needed.
          if (WantsToEnd()) continue;
          listed = steady_clock::now();
          EndedPulls ended = images ? list_->EndedWith(*images) : EndedPulls();
          auto taken = guard_->TakeList(list_->token(), std::move(images), std::move(ended));
          if (!taken) {
            return taken.error();
          }
        } else if (events && fd == events->fd()) {
          events->Drain();
          image_changed = true;
        }
      }
      const auto now = steady_clock::now();
      if (now - ticked >= tick) {
        ticked = now;
        stirs = false;
        if (watchdog) Tell("WATCHDOG=1");
        TakeChecks(milliseconds(0));
        if (now - examined >= options_.examine_every) {
          examined = now;
          checks_->Begin();
        }
        if (WriteStatus()) stirs = image_changed = true;
        // Only now the command line of a kubelet that began is known.
        if (guard_->kubelet_life() != std::exchange(kubelet_life, guard_->kubelet_life())) {
          examined = now - options_.examine_every;
        }
      }
      if (now - compared >= options_.compare_every || PlaceChanged()) {
        compared = now;
        TRY(guard_->Compare());
      } else if (looks || now - looked >= tick || guard_->IsTime()) {
        // What comes together is looked at once; what comes alone at once: an intent may go again.
        if (looks) std::this_thread::sleep_until(looked + kTogether);
        TRY(guard_->Again());
        looked = steady_clock::now();
      }
      if (guard_->lost_its_place()) return std::optional(options_);
      if (!list_ || list_->runs()) continue;
      const bool has_events = events && events->available();
      if (!has_events && now - watched_events >= watch_anew &&
          !runtime_->options().endpoint.empty()) {
        watch_anew = std::clamp(watch_anew * 2, kWatchEventsAnew, kMaxWatchEventsAnew);
        watched_events = now;
        listed_since = false;
        events = std::make_unique<cri::ImageEvents>(runtime_->options());
        if (events->fd() >= 0) static_cast<void>(Add(events->fd()));
      }
      if (has_events && now - watched_events >= kMaxWatchEventsAnew) watch_anew = {};
      const bool is_told = has_events && listed_since && !list_->awaits_pulls();
      const auto every = is_told ? kListEvery * kWithEvents : kListEvery;
      const bool wanted = (guard_->wants_list() || image_changed) && now - listed >= Between();
      if (!wanted && now - listed < every) continue;
      image_changed = false;
      listed_since = has_events;
      auto ends = guard_->EndsOfPulls();
      auto token = TRY(guard_->BeginList());
      list_->Begin(token, ends ? *std::move(ends) : std::vector<BootTime>());
    }
  }

  // Whether others may write the kubelet's files by now, or no longer.
  bool PlaceChanged() const {
    const auto why = WhyNotProtected(guard_->kubelet_directory());
    return why && *why != guard_->status().not_protected;
  }

  milliseconds Between() const {
    // A runtime that does not answer is asked less often.
    return guard_->status().runtime_error.empty() ? kMinBetweenLists : milliseconds(2000);
  }

  // On a full disk a guard that has ended could not start again, and without a guard no kubelet
  // runs.
  Result<void> CheckRoom() const {
    if (!guard_) return {};
    const auto path = guard_->own_folder() / "room";
    auto written = internal::WriteFileDurably(path, std::string(kRoomBytes, '\0'));
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    return written;
  }

  // Returns nullopt: go on. An empty inner value: end. Otherwise: what to start anew with.
  std::optional<std::optional<ServiceOptions>> TakeSignals() {
    bool ends = false;
    bool anew = false;
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGCHLD) commands_.Continue();
      anew = anew || signal == SIGHUP;
      ends = ends || signal == SIGTERM || signal == SIGINT;
    }
    if (ends) {
      ends_ = true;
      return std::optional<ServiceOptions>();
    }
    if (!anew) return std::nullopt;
    if (auto room = CheckRoom(); !room) {
      Log(LogLevel::kError,
          "it could not start anew, and the guard goes on as it was: " + room.error().ToString());
      return std::nullopt;
    }
    if (!options_.again) return std::optional(options_);
    auto options = options_.again();
    if (options) return std::optional(*std::move(options));
    Log(LogLevel::kError,
        "the configuration can't be read again, and the guard goes on as it was: " +
            options.error().ToString());
    return std::nullopt;
  }

  // Writes status and metrics if they changed. Returns whether the guard, or a command that asked
  // it, changed the store.
  bool WriteStatus() {
    auto statistics = guard_->store().GetStatistics();
    if (!statistics) return false;
    GuardStatus status = guard_->status();
    status.last_list.reset();
    status.last_comparison.reset();
    status.comparisons = 0;
    const bool store_changed =
        statistics->commit_sequence != std::exchange(written_commit_, statistics->commit_sequence);
    const auto now = steady_clock::now();
    const bool changed = store_changed || status != written_status_ || now - written_ >= kRewrite;
    if (changed) {
      written_ = now;
      written_status_ = std::move(status);
      if (auto json = guard_->StatusJson()) Write(guard_->own_folder() / kStatusFile, *json);
    }
    // Decisions that commands ask of it change nothing else.
    if (!options_.metrics_file.empty() && (changed || now - counted_ >= kCountAnew)) {
      counted_ = now;
      std::string counts = ToPrometheusText(guard_->store().GetMetrics());
      if (changed || counts != written_counts_) {
        Write(options_.metrics_file, counts + guard_->MetricsText());
        written_counts_ = std::move(counts);
      }
    }
    return store_changed;
  }

  // In one step, but not synced: it is written again after a crash.
  void Write(const std::filesystem::path& path, const std::string& text) {
    std::filesystem::path fresh = path;
    fresh += ".new";
    static_cast<void>(internal::RemoveFile(fresh));
    auto file = internal::OpenFile(fresh, O_WRONLY | O_CREAT | O_EXCL);
    Result<void> written = file ? internal::PWriteAll(*file, text, 0, fresh) : file.error();
    if (written && path == options_.metrics_file) {
      // Read by another user.
      if (::fchmod(file->get(), 0644) != 0) written = CallFailed("fchmod");
    }
    if (written && ::rename(fresh.c_str(), path.c_str()) != 0) {
      written = internal::SystemError(errno, "write", path);
    }
    const std::string problem = written ? "" : written.error().ToString();
    if (problem != std::exchange(write_problems_[path], problem) && !written) {
      Log(LogLevel::kWarning, problem);
    }
  }

  void Log(LogLevel level, const std::string& text) const {
    if (log_) log_(level, text);
  }

  ServiceOptions options_;
  internal::Fd signals_;
  internal::Fd epoll_;
  std::function<void(LogLevel, const std::string&)> log_;
  HoleCommand commands_;
  std::optional<Asked> runtime_;
  std::unique_ptr<Guard> guard_;
  std::optional<BackgroundChecks> checks_;
  NodeCredentialsSeen credentials_;
  std::atomic<bool> ends_ = false;
  // It may wait for a runtime that hangs: after the guard has ended.
  std::optional<BackgroundList> list_;
  bool told_waiting_ = false;
  bool told_aside_ = false;
  GuardStatus written_status_;
  std::uint64_t written_commit_ = 0;
  steady_clock::time_point written_;
  std::string written_counts_;
  steady_clock::time_point counted_;
  std::map<std::filesystem::path, std::string> write_problems_;
};

}  // namespace

Result<GuardStatus> RunService(const ServiceOptions& options) {
  // Its threads hardly ever run at the same time: one heap is enough for all.
  ::mallopt(M_ARENA_MAX, 1);
  return Service(options).Run();
}

Result<GuardSeen> SeeGuard(const std::filesystem::path& kubelet_directory) {
  auto aside = TRY(WhyAside(kubelet_directory));
  const bool stands_aside = Session::Runs(AsideFolder(kubelet_directory)).value_or(false);
  const std::filesystem::path own = stands_aside || !aside.empty()
                                        ? AsideFolder(kubelet_directory)
                                        : kubelet_directory / "image_manager" / kOwnFolder;
  auto json = internal::ReadWholeFile(own / kStatusFile, kMaxStatusBytes);
  if (!json) {
    if (json.error().code != ErrorCode::kNotFound) return json.error();
    return Error{ErrorCode::kNotFound, "no guard ever ran on " + kubelet_directory.string(),
                 "start one: waybill guard --store DIR --kubelet-dir DIR --cri ENDPOINT"};
  }
  auto runs = TRY(Session::Runs(own));
  auto not_protected = TRY(WhyNotProtected(kubelet_directory));
  return GuardSeen{
      .not_protected = std::move(not_protected), .runs = runs, .json = *std::move(json)};
}

}  // namespace waybill::guard
