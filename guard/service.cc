#include "guard/service.h"

#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "guard/aside.h"
#include "guard/hole_command.h"
#include "guard/node_credentials.h"
#include "guard/notify.h"
#include "guard/runtime_lists.h"
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
constexpr std::chrono::seconds kCompareEvery{300};
constexpr std::chrono::seconds kExamineEvery{3600};
constexpr milliseconds kBetweenTries{500};
// A start waits so long for what is found of the node; later it is told all the same.
constexpr milliseconds kWaitForChecks{2000};
constexpr milliseconds kTogether{50};
constexpr std::size_t kMaxStatusBytes = std::size_t{1} << 20;
// More than a guard writes before it is ready.
constexpr std::size_t kRoomBytes = std::size_t{128} << 10;

Error CallFailed(const char* call) {
  return {ErrorCode::kIo, std::string(call) + " failed: " + std::strerror(errno), ""};
}

// What a look at the node found, and when it began, in nanoseconds since 1970, while which kubelet
// ran.
struct NodeLook {
  Examined found = {};
  std::int64_t began = 0;
  std::optional<RunningKubelet> kubelet = {};
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
  ~Service() { EndChecks(); }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  Result<GuardStatus> Run() {
    TRY(MakeDescriptors());
    if (auto ended = TRY(Begin(false))) return *ended;
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
      if (runtime_) runtime_->Cancel();
      EndChecks();
      Tell(Reloading());
      TRY(guard_->Stop(true));
      guard_.reset();
      options_ = *std::move(anew);
      if (auto ended = TRY(Begin(true))) return *ended;
    }
  }

 private:
  Result<GuardStatus> End() {
    EndChecks();
    Tell("STOPPING=1");
    GuardStatus status = guard_->status();
    TRY(guard_->Stop());
    guard_.reset();
    return status;
  }

  // Starts the guard. As long as it can protect nothing, the service stands aside: a kubelet must
  // start wherever one without a guard does. Returns the status at the end of the service; nullopt:
  // the guard runs.
  Result<std::optional<GuardStatus>> Begin(bool again) {
    log_ = options_.guard.log;
    std::optional<Aside> aside;
    for (std::string told;;) {
      std::string why = TRY(WhyAside(options_.guard.kubelet_directory));
      if (why.empty()) {
        auto started = StartGuard(again || told_aside_);
        if (started) return std::optional<GuardStatus>();
        if (options_.once || !CannotWrite(started.error())) return started.error();
        why = started.error().message;
      }
      if (why != std::exchange(told, why)) TRY(TellAside(why, aside));
      if (options_.once) return std::optional(GuardStatus{.not_protected = why});
      if (!std::exchange(told_aside_, true) && options_.aside) options_.aside(why);
      Tell("READY=1");
      TRY(WaitUntil(steady_clock::now() + std::min(MostWait(), kIdleTick)));
      NotifyWatchdog();
      if (auto ends = TakeSignals()) {
        if (!*ends) return std::optional(GuardStatus{.not_protected = why});
        options_ = **std::move(ends);
      }
    }
  }

  // A full disk, or one that is read-only.
  bool CannotWrite(const Error& error) const {
    if (error.code == ErrorCode::kDiskFull) return true;
    return ::access(options_.guard.kubelet_directory.c_str(), W_OK) != 0 && errno == EROFS;
  }

  Result<void> TellAside(const std::string& why, std::optional<Aside>& aside) {
    Log(LogLevel::kError, why + ": so no guard protects this kubelet");
    if (!aside) {
      auto begun = Aside::Begin(options_.guard);
      if (!begun && begun.error().code == ErrorCode::kOwned) return begun.error();
      if (begun) aside = *std::move(begun);
      // A kubelet has to start, also where there is no place for the guard's status.
      if (!begun) Log(LogLevel::kError, "it has no status: " + begun.error().ToString());
    }
    if (aside) Write(aside->status_path(), aside->StatusJson(why));
    if (!options_.metrics_file.empty()) {
      Write(options_.metrics_file, ToPrometheusText({NotProtected(why)}));
    }
    return {};
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
    commands_.set_command(options_.on_hole);
    options.on_hole = [this](const Hole& hole) { commands_.Run(hole); };
    options.hurry = [this] { return WantsToEnd(); };
    credentials_ = NodeCredentialsSeen();
    options.node_had_none = [this](const std::string& image) {
      return guard_ && credentials_.HadNone(image, guard_->kubelet_life());
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
    wants_checks_ = true;
    BeginChecks();
    if (TakeChecks(kWaitForChecks)) WriteStatus();
    GiveMemoryBack();
    Tell("READY=1");
    if (options_.ready && !again) options_.ready(*guard_);
    return {};
  }

  std::optional<RunningKubelet> KubeletNow() const {
    return options_.guard.kubelet ? options_.guard.kubelet() : std::nullopt;
  }

  // On a thread of its own: what is asked may be slow to answer.
  void BeginChecks() {
    if (!wants_checks_ || checks_.valid()) return;
    wants_checks_ = false;
    if (!options_.examine) return;
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    const std::int64_t began = std::int64_t{now.tv_sec} * kNanosecondsPerSecond + now.tv_nsec;
    checks_ = std::async(std::launch::async, [this, began, kubelet = KubeletNow()] {
      return NodeLook{options_.examine([this] { return checks_end_.load(); }), began, kubelet};
    });
  }

  bool TakeChecks(milliseconds wait) {
    if (!checks_.valid() || checks_.wait_for(wait) != std::future_status::ready) return false;
    NodeLook look = checks_.get();
    const auto kubelet = KubeletNow();
    if (kubelet && look.kubelet && kubelet->life == look.kubelet->life) {
      credentials_.Add(look.found.credentials, *kubelet, look.began);
    }
    guard_->TakeChecks(std::move(look.found.checks));
    GiveMemoryBack();
    return true;
  }

  void EndChecks() {
    checks_end_ = true;
    checks_ = {};  // waits
    checks_end_ = false;
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
    Stirring stirring(options_.guard.store.directory, guard_->kubelet_directory());
    TRY(Add(guard_->fd()));
    if (stirring.is_whole()) TRY(Add(stirring.fd()));
    if (runtime_) TRY(Add(runtime_->fd()));
    const auto began = steady_clock::now();
    auto looked = began;
    auto ticked = began;
    auto compared = began;
    auto examined = began;
    bool stirs = true;
    std::string kubelet_life = guard_->kubelet_life();
    for (;;) {
      const bool is_idle = stirring.is_whole() && !stirs && !checks_.valid() && !wants_checks_;
      const auto tick = ticked + std::min(MostWait(), is_idle ? kIdleTick : kTick);
      const auto ready = TRY(WaitUntil(std::min({tick, ListDue(), GuardDue()})));
      if (ready.contains(signals_.get())) {
        if (auto ends = TakeSignals()) return *std::move(ends);
      }
      // A list that shows nothing new stirs nothing.
      if (runtime_ && ready.contains(runtime_->fd())) TRY(TakeList());
      if (ready.contains(stirring.fd())) stirring.Drain();
      bool looks = ready.contains(guard_->fd()) || ready.contains(stirring.fd());
      stirs = stirs || looks;

      const auto now = steady_clock::now();
      if (now >= tick) {
        ticked = now;
        looks = true;
        NotifyWatchdog();
        TakeChecks(milliseconds(0));
        stirs = WriteStatus();
        if (stirs && runtime_) runtime_->WantList();
        if (now - examined >= kExamineEvery) {
          examined = now;
          wants_checks_ = true;
        }
      }
      if (now - compared >= kCompareEvery || PlaceChanged()) {
        compared = now;
        TRY(guard_->Compare());
      } else if (looks || guard_->IsTime()) {
        // What comes together is looked at once; what comes alone at once: an intent may go again.
        std::this_thread::sleep_until(looked + kTogether);
        TRY(guard_->Again());
        looked = steady_clock::now();
      }
      if (guard_->lost_its_place()) return std::optional(options_);
      // Only now the command line of a kubelet that began is known.
      if (guard_->kubelet_life() != std::exchange(kubelet_life, guard_->kubelet_life())) {
        wants_checks_ = true;
      }
      BeginChecks();
      TRY(BeginList());
    }
  }

  milliseconds MostWait() const {
    return watchdog_
               ? std::max(std::chrono::duration_cast<milliseconds>(*watchdog_ / 3), milliseconds(1))
               : kIdleTick;
  }
  void NotifyWatchdog() const {
    if (watchdog_) Tell("WATCHDOG=1");
  }

  // What is ready by then.
  Result<std::set<int>> WaitUntil(steady_clock::time_point until) const {
    const auto wait = std::chrono::ceil<milliseconds>(until - steady_clock::now());
    std::array<epoll_event, 8> events{};
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(),
                                   static_cast<int>(std::max(wait, milliseconds(0)).count()));
    if (count < 0 && errno != EINTR) return CallFailed("epoll_wait");
    std::set<int> ready;
    for (int i = 0; i < count; ++i) ready.insert(events[static_cast<std::size_t>(i)].data.fd);
    return ready;
  }

  steady_clock::time_point GuardDue() const { return steady_clock::now() + guard_->WaitsFor(); }
  steady_clock::time_point ListDue() const {
    if (!runtime_) return steady_clock::time_point::max();
    return runtime_->Due(guard_->wants_list(), guard_->status().runtime_error.empty());
  }

  Result<void> TakeList() {
    auto done = runtime_->Take();
    // If the service is to end, the list is no longer needed.
    if (!done || WantsToEnd()) return {};
    return guard_->TakeList(done->token, std::move(done->list), std::move(done->ended));
  }

  Result<void> BeginList() {
    if (!runtime_) return {};
    runtime_->WatchEvents();
    if (steady_clock::now() < ListDue()) return {};
    auto ends = guard_->EndsOfPulls();
    auto token = TRY(guard_->BeginList());
    runtime_->Begin(token, ends ? *std::move(ends) : std::vector<BootTime>());
    return {};
  }

  // Whether others may write the kubelet's files by now, or no longer.
  bool PlaceChanged() const {
    const auto why = WhyNotProtected(guard_->kubelet_directory());
    return why && *why != guard_->status().not_protected;
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
  const std::optional<std::chrono::microseconds> watchdog_ = WatchdogInterval();
  internal::Fd signals_;
  internal::Fd epoll_;
  std::function<void(LogLevel, const std::string&)> log_;
  HoleCommand commands_;
  std::optional<RuntimeLists> runtime_;
  std::unique_ptr<Guard> guard_;
  std::future<NodeLook> checks_;
  std::atomic<bool> checks_end_ = false;
  bool wants_checks_ = false;
  NodeCredentialsSeen credentials_;
  std::atomic<bool> ends_ = false;
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
