// Lists of the runtime's images: when the next one is due, and a thread that waits for it, so that
// nothing else has to wait for a runtime that is slow to answer.

#ifndef WAYBILL_GUARD_RUNTIME_LISTS_H_
#define WAYBILL_GUARD_RUNTIME_LISTS_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "guard/guard.h"
#include "runtime/cri/containerd.h"
#include "runtime/cri/pull_ends.h"
#include "runtime/cri/runtime_client.h"
#include "runtime/files/pull_sources.h"
#include "store/base/files.h"

namespace waybill::guard {

// Not thread-safe.
class RuntimeLists {
 public:
  using Clock = std::chrono::steady_clock;

  // `ends`: whether the service has to end, so that waiting for an answer is pointless.
  RuntimeLists(cri::ClientOptions options, std::function<bool()> ends);
  ~RuntimeLists() { Cancel(); }
  RuntimeLists(const RuntimeLists&) = delete;
  RuntimeLists& operator=(const RuntimeLists&) = delete;

  // At a start, while no list is under way.
  Result<std::vector<ListedImage>> ListImages();
  // Who checks the credentials of a pull of an image of that name, by how the runtime was
  // configured when it was asked last: by tag or by digest, and for any handler, since a record
  // tells neither.
  VerifiedBy WhoChecked(const std::string& image_name) const;

  // Readable when a list is done, or the runtime told of a change.
  int fd() const { return epoll_.get(); }
  // Something changed that the next list has to show.
  void WantList() { is_wanted_ = true; }
  // When the next list is due. `wanted`: something happened that only a list can settle; `answers`:
  // the last one did not fail.
  Clock::time_point Due(bool wanted, bool answers) const;
  // Asks the runtime to tell of changes, from time to time if it does not.
  void WatchEvents();
  bool runs() const { return thread_.joinable(); }
  // Not while one runs. `ends`: of pulls that may still bring an image.
  void Begin(const ListToken& token, std::vector<BootTime> ends);
  struct Done {
    ListToken token;
    Result<std::vector<ListedImage>> list;
    EndedPulls ended;
  };
  // After fd() was readable.
  std::optional<Done> Take();
  // Ends the list that is under way, and begins no more.
  void Cancel();

 private:
  Result<std::vector<ListedImage>> Ask();
  void LookAtPulls(const std::vector<BootTime>& ends);
  bool HasEvents() const { return events_ && events_->available(); }
  void Add(int fd) const;

  cri::ClientOptions options_;
  std::unique_ptr<cri::Client> client_;
  std::shared_ptr<const RuntimePulls> pulls_;  // null: not known
  std::atomic<bool> cancelled_ = false;
  internal::Fd epoll_;
  internal::Fd done_;

  // Of the list that is under way; the thread has them until it is done.
  std::thread thread_;
  ListToken token_;
  Result<std::vector<ListedImage>> list_ = std::vector<ListedImage>();
  std::shared_ptr<const RuntimePulls> learnt_;  // becomes `pulls_`
  Clock::time_point learnt_at_;

  // Whether pulls that ended can bring anything any more (runtime/cri/pull_ends.h).
  cri::PullEnds pull_ends_;
  bool pulls_are_told_ = true;
  bool awaits_pulls_ = false;
  std::optional<BootTime> quiet_until_;
  std::vector<cri::ContainerdImage> images_;

  std::unique_ptr<cri::ImageEvents> events_;
  Clock::time_point watched_;
  std::chrono::seconds watch_anew_{0};
  Clock::time_point listed_ = Clock::now();
  bool is_wanted_ = false;
  // A list that began before the runtime's events were watched may have missed some.
  bool listed_since_ = false;
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_RUNTIME_LISTS_H_
