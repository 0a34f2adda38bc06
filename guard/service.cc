#include "guard/service.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "guard/notify.h"
#include "waybill/metrics.h"

namespace waybill::guard {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kTick{1000};
// At least so long between two lists: what happened meanwhile is in the next one.
constexpr milliseconds kMinBetweenLists{200};
constexpr milliseconds kBetweenTries{500};
constexpr int kWithEvents = 10;
constexpr std::chrono::seconds kWatchEventsAnew{10};
constexpr std::size_t kMaxCommands = 4;
constexpr std::size_t kMaxStatusBytes = std::size_t{1} << 20;

Error CallFailed(const char* call) {
  return {ErrorCode::kIo, std::string(call) + " failed: " + std::strerror(errno), ""};
}

// Lists the runtime's images on a thread of its own.
class BackgroundList {
 public:
  explicit BackgroundList(cri::ClientOptions runtime)
      : runtime_(std::move(runtime)), done_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~BackgroundList() {
    if (thread_.joinable()) thread_.join();
  }

  int fd() const { return done_.get(); }
  bool runs() const { return runs_; }

  void Begin(const ListToken& token) {
    token_ = token;
    runs_ = true;
    if (thread_.joinable()) thread_.join();
    thread_ = std::thread([this] {
      auto list = ListImages(runtime_);
      {
        const std::scoped_lock lock(mutex_);
        list_ = std::move(list);
      }
      const std::uint64_t one = 1;
      static_cast<void>(::write(done_.get(), &one, sizeof(one)));
    });
  }

  // After fd() was readable.
  Result<std::vector<ImageOnNode>> Take() {
    std::uint64_t count = 0;
    static_cast<void>(::read(done_.get(), &count, sizeof(count)));
    runs_ = false;
    const std::scoped_lock lock(mutex_);
    return std::move(list_);
  }
  const ListToken& token() const { return token_; }

  static Result<std::vector<ImageOnNode>> ListImages(const cri::ClientOptions& runtime) {
    auto client = cri::Client::Connect(runtime);
    if (!client) return client.error();
    return (*client)->ListImages();
  }

 private:
  cri::ClientOptions runtime_;
  internal::Fd done_;
  bool runs_ = false;
  ListToken token_;
  std::mutex mutex_;
  Result<std::vector<ImageOnNode>> list_ = std::vector<ImageOnNode>();
  std::thread thread_;
};

// Runs the operator's command for each hole, a few at a time.
class HoleCommand {
 public:
  HoleCommand(std::string command, std::function<void(const std::string&)> say)
      : command_(std::move(command)), say_(std::move(say)) {}

  void Run(const Hole& hole) {
    if (command_.empty()) return;
    if (running_.size() >= kMaxCommands) {
      say_("the command for holes is still busy; it does not hear of this one");
      return;
    }
    std::vector<std::string> environment;
    for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
    environment.push_back("WAYBILL_HOLE=" + std::string(HoleName(hole.kind)));
    environment.push_back("WAYBILL_IMAGE=" + hole.image);
    std::vector<char*> pointers;
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
    const int error = ::posix_spawn(&pid, "/bin/sh", nullptr, &attributes, arguments.data(),
                                    pointers.data());
    ::posix_spawnattr_destroy(&attributes);
    if (error != 0) {
      say_(std::string("the command for holes can't be run: ") + std::strerror(error));
      return;
    }
    running_.insert(pid);
  }

  void Reap() {
    for (auto at = running_.begin(); at != running_.end();) {
      at = ::waitpid(*at, nullptr, WNOHANG) == 0 ? std::next(at) : running_.erase(at);
    }
  }

 private:
  std::string command_;
  std::function<void(const std::string&)> say_;
  std::set<pid_t> running_;
};

class Service {
 public:
  explicit Service(const ServiceOptions& options) : options_(options) {}

  Result<GuardStatus> Run() {
    if (auto made = MakeDescriptors(); !made) return made.error();
    for (;;) {
      if (auto started = StartGuard(); !started) return started.error();
      auto ended = options_.once ? Result<bool>(false) : Watch();
      GuardStatus status = guard_->status();
      if (!ended) return ended.error();
      Notify(*ended ? "RELOADING=1" : "STOPPING=1");
      if (auto stopped = guard_->Stop(); !stopped) return stopped.error();
      guard_.reset();
      if (!*ended) return status;
    }
  }

 private:
  Result<void> MakeDescriptors() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&signals, signal);
    if (::pthread_sigmask(SIG_BLOCK, &signals, nullptr) != 0) return CallFailed("pthread_sigmask");
    signals_ = internal::Fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    timer_ = internal::Fd(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
    epoll_ = internal::Fd(::epoll_create1(EPOLL_CLOEXEC));
    if (!signals_.valid() || !timer_.valid() || !epoll_.valid()) return CallFailed("epoll");
    itimerspec every{};
    every.it_interval = every.it_value = {kTick.count() / 1000, 0};
    if (::timerfd_settime(timer_.get(), 0, &every, nullptr) != 0) return CallFailed("timerfd");
    if (auto added = Add(signals_.get()); !added) return added;
    return Add(timer_.get());
  }

  Result<void> Add(int fd) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
    return CallFailed("epoll_ctl");
  }

  Result<void> StartGuard() {
    auto options = options_.guard();
    if (!options) return options.error();
    log_ = options->log;
    commands_ = std::make_unique<HoleCommand>(
        options_.on_hole, [this](const std::string& text) { Log(LogLevel::kWarning, text); });
    options->on_hole = [this](const Hole& hole) { commands_->Run(hole); };
    const auto until = steady_clock::now() + options_.wait_runtime;
    // SIGTERM must not wait for a runtime that does not come.
    options->try_again = [this, until](const Error& error) {
      if (steady_clock::now() >= until || WantsToEnd()) return false;
      if (!told_waiting_) Log(LogLevel::kInfo, "waiting for the runtime: " + error.ToString());
      told_waiting_ = true;
      std::this_thread::sleep_for(kBetweenTries);
      return true;
    };
    if (options_.runtime) {
      options->list_images = [runtime = *options_.runtime] {
        return BackgroundList::ListImages(runtime);
      };
    }
    auto guard = Guard::Start(*std::move(options));
    if (!guard) return guard.error();
    guard_ = *std::move(guard);
    if (auto served = guard_->store().Serve(); !served && !options_.once) {
      Log(LogLevel::kWarning, "other commands can't ask the guard: " + served.error().ToString());
    }
    WriteStatus();
    Notify("READY=1");
    if (options_.ready) options_.ready(*guard_);
    return {};
  }

  bool WantsToEnd() {
    sigset_t pending;
    return ::sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGTERM) != 0 || sigismember(&pending, SIGINT) != 0);
  }

  // Until a signal. Whether the guard is to be started anew.
  Result<bool> Watch() {
    if (auto added = Add(guard_->fd()); !added) return added.error();
    std::optional<BackgroundList> list;
    std::unique_ptr<cri::ImageEvents> events;
    if (options_.runtime) {
      list.emplace(*options_.runtime);
      if (auto added = Add(list->fd()); !added) return added.error();
    }
    auto listed = steady_clock::now();
    auto compared = listed;
    auto watched_events = listed - kWatchEventsAnew;
    bool image_changed = false;
    const auto watchdog = WatchdogInterval();
    for (;;) {
      std::array<epoll_event, 8> ready{};
      const int wait = Wait(list && !list->runs() && (guard_->wants_list() || image_changed));
      const int count = ::epoll_wait(epoll_.get(), ready.data(), ready.size(), wait);
      if (count < 0 && errno != EINTR) return CallFailed("epoll_wait");
      for (int i = 0; i < count; ++i) {
        const int fd = ready[static_cast<std::size_t>(i)].data.fd;
        if (fd == signals_.get()) {
          if (const auto ends = TakeSignals()) return *ends;
        } else if (fd == timer_.get()) {
          std::uint64_t ticks = 0;
          static_cast<void>(::read(timer_.get(), &ticks, sizeof(ticks)));
          if (watchdog) Notify("WATCHDOG=1");
          WriteStatus();
        } else if (fd == guard_->fd()) {
          if (auto handled = guard_->HandleEvents(); !handled) return handled.error();
        } else if (list && fd == list->fd()) {
          auto images = list->Take();
          listed = steady_clock::now();
          if (auto taken = guard_->TakeList(list->token(), std::move(images)); !taken) {
            return taken.error();
          }
        } else if (events && fd == events->fd()) {
          events->Drain();
          image_changed = true;
        }
      }
      const auto now = steady_clock::now();
      if (now - compared >= options_.compare_every) {
        compared = now;
        if (auto done = guard_->Compare(); !done) return done.error();
      }
      if (!list) continue;
      if ((!events || !events->available()) && now - watched_events >= kWatchEventsAnew) {
        watched_events = now;
        events = cri::ImageEvents::Watch(*options_.runtime);
        if (events->fd() >= 0) static_cast<void>(Add(events->fd()));
        image_changed = true;
      }
      const bool has_events = events && events->available();
      const auto every = has_events ? options_.list_every * kWithEvents : options_.list_every;
      const bool wanted = (guard_->wants_list() || image_changed) && now - listed >= Between();
      if (list->runs() || (!wanted && now - listed < every)) continue;
      image_changed = false;
      auto token = guard_->BeginList();
      if (!token) return token.error();
      list->Begin(*token);
    }
  }

  milliseconds Between() const {
    // A runtime that does not answer is asked less often.
    return guard_->status().runtime_error.empty() ? kMinBetweenLists : milliseconds(2000);
  }
  int Wait(bool wants_list) const {
    return static_cast<int>((wants_list ? Between() : kTick).count());
  }

  // Whether to end, and if so whether to start anew.
  std::optional<bool> TakeSignals() {
    std::optional<bool> ends;
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGCHLD) commands_->Reap();
      if (signal == SIGHUP && !ends) ends = true;
      if (signal == SIGTERM || signal == SIGINT) ends = false;
    }
    return ends;
  }

  void WriteStatus() {
    auto json = guard_->StatusJson();
    if (json && *json != written_status_ && Write(guard_->status_path(), *json)) {
      written_status_ = *std::move(json);
    }
    if (options_.metrics_file.empty()) return;
    const std::string metrics = guard_->store().GetMetrics().ToPrometheusText() +
                                guard_->MetricsText();
    if (metrics != written_metrics_ && Write(options_.metrics_file, metrics)) {
      written_metrics_ = metrics;
    }
  }

  // In one step, but not synced: it is written again after a crash.
  bool Write(const std::filesystem::path& path, const std::string& text) {
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
    if (problem != write_problem_ && !written) Log(LogLevel::kWarning, problem);
    write_problem_ = problem;
    return written.has_value();
  }

  void Log(LogLevel level, const std::string& text) const {
    if (log_) log_(level, text);
  }

  const ServiceOptions& options_;
  internal::Fd signals_;
  internal::Fd timer_;
  internal::Fd epoll_;
  std::function<void(LogLevel, const std::string&)> log_;
  std::unique_ptr<HoleCommand> commands_;
  std::unique_ptr<Guard> guard_;
  bool told_waiting_ = false;
  std::string written_status_;
  std::string written_metrics_;
  std::string write_problem_;
};

}  // namespace

Result<GuardStatus> RunService(const ServiceOptions& options) { return Service(options).Run(); }

Result<GuardSeen> SeeGuard(const std::filesystem::path& kubelet_directory) {
  const std::filesystem::path own = kubelet_directory / "image_manager" / kOwnFolder;
  auto json = internal::ReadWholeFile(own / "status.json", kMaxStatusBytes);
  if (!json) {
    if (json.error().code != ErrorCode::kNotFound) return json.error();
    return Error{ErrorCode::kNotFound, "no guard ever ran on " + kubelet_directory.string(),
                 "start one: waybill guard --store DIR --kubelet-dir DIR --cri ENDPOINT"};
  }
  auto lock = internal::OpenFile(own / "lock", O_RDWR);
  if (!lock) return lock.error();
  GuardSeen seen{.json = *std::move(json)};
  if (::flock(lock->get(), LOCK_SH | LOCK_NB) == 0) return seen;
  seen.runs = true;
  return seen;
}

}  // namespace waybill::guard
