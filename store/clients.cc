// What clients of an owner get: the calls that are served, with a client's bounds.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <utility>

#include "store/base/caught.h"
#include "store/base/try.h"
#include "store/calls/impl.h"
#include "store/calls/node_store.h"
#include "store/door.h"
#include "store/images/pull_row.h"
#include "waybill/store.h"
#include "waybill/values.h"

namespace waybill {

namespace {

// What clients may ask for. A client ends only pulls that clients began, or that it names and no
// process runs any more: the owner says itself how its own end. If a client ended one of those,
// what it brings later would be in no list's way to the ledger. If clients began several of one
// string and none is named, the store takes it for the oldest; where it would count the owner's
// among them, it learns less.
class DoorForClients final : public internal::Door {
 public:
  DoorForClients(NodeStore& store, Mode rules) : store_(store), rules_(rules) {}

  bool Knows(std::string_view name) const override { return door::IsServed(name); }
  std::string_view interface_text() const override { return InterfaceText(); }

  std::optional<Result<std::string>> Call(std::string_view name,
                                          std::string_view parameters) noexcept override {
    if (!door::IsServed(name)) return std::nullopt;
    return internal::Guarded([&]() -> Result<std::string> {
      if (name == "BeginPull") return Answer<BeginPull>(parameters, &DoorForClients::Begin);
      if (name == "EndPull") return Answer<EndPull>(parameters, &DoorForClients::End);
      if (name == "MakeBackup") return Answer<MakeBackup>(parameters, &DoorForClients::BackUp);
      return store_.CallJson(name, parameters,
                             [this](std::uint64_t, std::uint64_t) { return !stops_.load(); });
    });
  }
  void Stop() noexcept override { stops_ = true; }

 private:
  struct Begun {
    PullId id;
    std::string image;
    std::string runtime_handler;
  };
  struct Ending {
    PullId pull;           // 0: any that runs
    bool is_known = true;  // if not, it may have begun earlier
  };
  // Beyond it the oldest count as the owner's.
  static constexpr std::size_t kMaxBegun = 65'536;

  template <typename C>
  Result<std::string> Answer(std::string_view parameters,
                             Result<typename C::Answer> (DoorForClients::*call)(const C&)) {
    const C parsed = TRY(door::ParametersOf<C>(parameters));
    const auto answer = TRY((this->*call)(parsed));
    return internal::ToJson(answer);
  }

  Result<BeginPull::Answer> Begin(const BeginPull& call) {
    if (call.unless_running) return store_.Call(call);
    // Made first: for what is on record, memory must not run out.
    std::list<Begun> one;
    one.push_back({{}, call.image, call.runtime_handler});
    auto begun = store_.Call(call);
    if (!begun) return begun;
    one.front().id = {begun->pull};
    const std::lock_guard lock(mutex_);
    if (begun_.size() >= kMaxBegun) begun_.pop_front();
    begun_.splice(begun_.end(), one);
    return begun;
  }

  Result<Nothing> End(const EndPull& call) {
    const PullId named{call.pull};
    std::list<Begun> mine;
    Ending ending;
    {
      const std::lock_guard lock(mutex_);
      auto at = begun_.end();  // the newest
      std::size_t may_be = 0;
      for (auto pull = begun_.begin(); pull != begun_.end(); ++pull) {
        if (pull->image != call.image || pull->runtime_handler != call.runtime_handler) continue;
        if (named.value != 0 && named != pull->id) continue;
        ++may_be;
        if (at == begun_.end() || at->id < pull->id) at = pull;
      }
      if (at == begun_.end()) {
        ending.pull = TRY(OtherThanOwners(call.image, named));
      } else {
        ending.pull = at->id;
        mine.splice(mine.end(), begun_, at);
        // Kubelet rules: an image has one intent, whose beginning is the oldest's.
        if (may_be > 1 && rules_ == Mode::kStrict) {
          auto running = CountRunning(call.image);
          if (!running) {
            begun_.splice(begun_.end(), mine);
            return running.error();
          }
          ending.is_known = *running == may_be;
          if (ending.is_known) ending.pull = {};
        }
      }
    }
    EndPull ended = call;
    ended.pull = ending.pull.value;
    if (!ending.is_known) {
      ended.credentials.reset();
      if (ended.outcome == PullOutcome::kNothing) ended.outcome = PullOutcome::kFailed;
    }
    auto recorded = store_.Call(ended);
    if (!recorded) {
      const std::lock_guard lock(mutex_);
      begun_.splice(begun_.end(), mine);
    }
    return recorded;
  }

  // Who has only the socket must not write wherever this process may.
  Result<Backup> BackUp(const MakeBackup& call) {
    if (!call.file.empty()) {
      return Error{ErrorCode::kInvalidArgument,
                   "the owner writes no file that a client names; no backup was made",
                   "leave `file` out, or observe the store and make the call there"};
    }
    return store_.Call(call);
  }

  // The owner's, too.
  Result<std::size_t> CountRunning(std::string_view image) const {
    auto pulls = TRY(store_.ListOpenPulls());
    return static_cast<std::size_t>(
        std::count_if(pulls.begin(), pulls.end(), [&](const UnresolvedPull& pull) {
          return !pull.anything && pull.image == image && pull.state == PullState::kRunning;
        }));
  }

  // One that no client of this owner began. The mutex is held.
  Result<PullId> OtherThanOwners(std::string_view image, PullId named) const {
    auto pulls = TRY(store_.ListOpenPulls());
    for (const UnresolvedPull& pull : pulls) {
      if (pull.anything || pull.image != image) continue;
      const bool is_meant = named.value == 0 || named == pull.id || rules_ == Mode::kKubelet;
      if (is_meant && pull.state == PullState::kRunning && !IsClients(pull.id)) {
        return Error{
            ErrorCode::kConflict,
            "pull " + std::to_string(pull.id.value) + " of \"" + std::string(image) +
                "\" was begun by the process that owns the store, which says itself how it "
                "ends; nothing was changed",
            "record the begin of a pull of your own first, and name it when it ends"};
      }
    }
    return named.value == 0 ? internal::kNoPull : named;
  }

  bool IsClients(PullId id) const {
    return std::any_of(begun_.begin(), begun_.end(),
                       [&](const Begun& pull) { return pull.id == id; });
  }

  NodeStore& store_;
  const Mode rules_;
  std::atomic<bool> stops_{false};
  mutable std::mutex mutex_;
  std::list<Begun> begun_;  // guarded by mutex_; the newest last
};

}  // namespace

Result<void> NodeStore::Serve(const ServeOptions& options) {
  return Guarded(
      [&] { return impl_->Serve(std::make_unique<DoorForClients>(*this, impl_->rules), options); });
}

}  // namespace waybill
