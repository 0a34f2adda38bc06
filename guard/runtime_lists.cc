#include "guard/runtime_lists.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

#include "store/base/try.h"

namespace waybill::guard {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The shortest time between two lists: the next one has what happened meanwhile. A runtime that
// does not answer is asked less often.
constexpr milliseconds kMinBetweenLists{200};
constexpr milliseconds kMinBetweenErrors{2000};
constexpr seconds kListEvery{5};
constexpr int kWithEvents = 10;  // times as long where the runtime tells of changes
// Doubles each time if the runtime has no events.
constexpr seconds kWatchEventsAnew{10};
constexpr seconds kMaxWatchEventsAnew{320};
constexpr seconds kLearnEvery{60};

constexpr const char* kAnyDigest =
    "@sha256:0000000000000000000000000000000000000000000000000000000000000000";

}  // namespace

RuntimeLists::RuntimeLists(cri::ClientOptions options, std::function<bool()> ends)
    : options_(std::move(options)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      done_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  options_.cancelled = [this, ends = std::move(ends)] { return cancelled_ || ends(); };
  Add(done_.get());
}

void RuntimeLists::Add(int fd) const {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  static_cast<void>(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event));
}

Result<std::vector<ListedImage>> RuntimeLists::ListImages() {
  auto list = Ask();
  pulls_ = learnt_;
  return list;
}

Result<std::vector<ListedImage>> RuntimeLists::Ask() {
  if (!client_) {
    client_ = TRY(cri::Client::Connect(options_));
    // Of several possible runtimes, the one that answered first is kept.
    options_.endpoint = client_->endpoint();
  }
  auto list = client_->ListImages();
  // Another runtime may answer the next time.
  if (!list) {
    client_.reset();
  } else if (!learnt_ || Clock::now() - learnt_at_ >= kLearnEvery) {
    const auto answers = client_->Answers();
    auto pulls = answers ? ReadRuntimePulls(*answers) : answers.error();
    learnt_ = pulls ? std::make_shared<const RuntimePulls>(*std::move(pulls)) : nullptr;
    learnt_at_ = Clock::now();
  }
  return list;
}

VerifiedBy RuntimeLists::WhoChecked(const std::string& image_name) const {
  if (!pulls_) return VerifiedBy::kUnknown;
  VerifiedBy checker = VerifiedBy::kRegistry;
  for (const std::string& image : {image_name, image_name + kAnyDigest}) {
    const auto found = PullSourcesOf(*pulls_, image, "");
    const VerifiedBy its = found ? found->sources.checker : VerifiedBy::kUnknown;
    if (its == VerifiedBy::kUnknown || its == VerifiedBy::kGuest) return its;
    if (its == VerifiedBy::kMirror) checker = its;
  }
  // It may have been pulled for a handler whose guest pulls.
  return pulls_->guest_pullers.empty() ? checker : VerifiedBy::kUnknown;
}

RuntimeLists::Clock::time_point RuntimeLists::Due(bool wanted, bool answers) const {
  if (runs()) return Clock::time_point::max();
  if (wanted || is_wanted_) return listed_ + (answers ? kMinBetweenLists : kMinBetweenErrors);
  const bool is_told = HasEvents() && listed_since_ && !awaits_pulls_;
  return listed_ + (is_told ? kListEvery * kWithEvents : kListEvery);
}

void RuntimeLists::WatchEvents() {
  // The thread learns the endpoint.
  if (runs()) return;
  const auto now = Clock::now();
  if (!HasEvents() && now - watched_ >= watch_anew_ && !options_.endpoint.empty()) {
    watch_anew_ = std::clamp(watch_anew_ * 2, kWatchEventsAnew, kMaxWatchEventsAnew);
    watched_ = now;
    listed_since_ = false;
    events_ = std::make_unique<cri::ImageEvents>(options_);
    if (events_->fd() >= 0) Add(events_->fd());
  }
  if (HasEvents() && now - watched_ >= kMaxWatchEventsAnew) watch_anew_ = {};
}

void RuntimeLists::Begin(const ListToken& token, std::vector<BootTime> ends) {
  token_ = token;
  is_wanted_ = false;
  listed_since_ = HasEvents();
  awaits_pulls_ = !ends.empty() && pulls_are_told_;
  thread_ = std::thread([this, ends = std::move(ends)] {
    LookAtPulls(ends);
    list_ = Ask();
    static_cast<void>(::eventfd_write(done_.get(), 1));
  });
}

// Before the list of CRI's is made.
void RuntimeLists::LookAtPulls(const std::vector<BootTime>& ends) {
  quiet_until_.reset();
  if (ends.empty() || options_.endpoint.empty() || !pulls_are_told_) return;
  const cri::Containerd containerd(options_);
  auto look = containerd.LookAtPulls();
  if (!look) {
    pull_ends_.Failed();
    pulls_are_told_ = look.error().code != ErrorCode::kInvalidArgument;
    return;
  }
  pull_ends_.Saw(*std::move(look));
  for (const BootTime& end : ends) {
    const bool is_later = !quiet_until_ || end.nanoseconds > quiet_until_->nanoseconds;
    if (is_later && pull_ends_.Quiet(end.nanoseconds)) quiet_until_ = end;
  }
  if (!quiet_until_) return;
  if (auto images = containerd.Images()) {
    images_ = *std::move(images);
  } else {
    quiet_until_.reset();
  }
}

std::optional<RuntimeLists::Done> RuntimeLists::Take() {
  if (events_ && events_->fd() >= 0 && events_->Drain()) is_wanted_ = true;
  eventfd_t count = 0;
  if (::eventfd_read(done_.get(), &count) != 0) return std::nullopt;
  thread_.join();
  pulls_ = learnt_;
  listed_ = Clock::now();
  Done done{token_, std::exchange(list_, std::vector<ListedImage>()), {}};
  if (done.list && quiet_until_) {
    done.ended = {std::exchange(quiet_until_, std::nullopt), cri::NotShown(images_, *done.list)};
  }
  return done;
}

void RuntimeLists::Cancel() {
  cancelled_ = true;
  if (thread_.joinable()) thread_.join();
}

}  // namespace waybill::guard
