// What clients of an owner get: the calls that are served, with a client's bounds.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "store/base/caught.h"
#include "store/base/try.h"
#include "store/calls/impl.h"
#include "store/calls/node_store.h"
#include "store/door.h"
#include "waybill/store.h"
#include "waybill/values.h"

namespace waybill {

namespace {

// What clients may ask for. A client names the pull that it ends, and ends none that the owner's
// own process runs: the owner says itself how its own end. If a client ended one of those, what it
// brings later would be in no list's way to the ledger.
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
    std::multiset<std::uint64_t> one{0};
    auto begun = store_.Call(call);
    if (!begun) return begun;
    auto node = one.extract(one.begin());
    node.value() = begun->pull;
    const std::lock_guard lock(mutex_);
    if (begun_.size() >= kMaxBegun) begun_.erase(begun_.begin());
    begun_.insert(std::move(node));
    return begun;
  }

  Result<Nothing> End(const EndPull& call) {
    if (call.pull == 0) {
      return Error{ErrorCode::kInvalidArgument,
                   "it is not said which pull of \"" + call.image + "\" ended; nothing was changed",
                   "name the one that you began by the number that BeginPull answered"};
    }
    std::multiset<std::uint64_t>::node_type mine;
    {
      const std::lock_guard lock(mutex_);
      const auto at = begun_.find(call.pull);
      if (at == begun_.end()) {
        TRY(CheckNotOwners(call));
      } else {
        mine = begun_.extract(at);
      }
    }
    auto recorded = store_.Call(call);
    if (!recorded && mine) {
      const std::lock_guard lock(mutex_);
      begun_.insert(std::move(mine));
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

  // One that no client of this owner began. Mode::kKubelet: an image has one intent for all.
  Result<void> CheckNotOwners(const EndPull& call) const {
    for (const UnresolvedPull& pull : TRY(store_.ListOpenPulls())) {
      const bool is_meant =
          pull.id.value == call.pull ||
          (rules_ == Mode::kKubelet && !pull.anything && pull.image == call.image);
      if (is_meant && pull.state == PullState::kRunning && !begun_.contains(pull.id.value)) {
        return Error{
            ErrorCode::kConflict,
            "pull " + std::to_string(pull.id.value) + " of \"" + call.image +
                "\" was begun by the process that owns the store, which says itself how it "
                "ends; nothing was changed",
            "record the begin of a pull of your own first, and name it when it ends"};
      }
    }
    return {};
  }

  NodeStore& store_;
  const Mode rules_;
  std::atomic<bool> stops_{false};
  std::mutex mutex_;
  std::multiset<std::uint64_t> begun_;  // pulls of clients that run; guarded by mutex_
};

}  // namespace

Result<void> NodeStore::Serve(const ServeOptions& options) {
  return Guarded(
      [&] { return impl_->Serve(std::make_unique<DoorForClients>(*this, impl_->rules), options); });
}

}  // namespace waybill
