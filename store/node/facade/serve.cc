// An owner answers others, and makes a backup beside its own work.

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <list>
#include <mutex>
#include <string>
#include <utility>

#include "store/base/try.h"
#include "store/engine/recovery/backup.h"
#include "store/node/facade/impl.h"
#include "store/node/records/open_pulls_table.h"
#include "waybill/owner.h"

namespace waybill {

namespace {

using CallsOfStore = internal::CallsOn<NodeStore>;

// A client ends only pulls that clients began, or that it names and no process runs any more: the
// owner says itself how its own end. If a client ended one of those, what it brings later would be
// in no list's way to the ledger. If clients began several of one string and none is named, the
// store takes it for the oldest; where it would count the owner's among them, it learns less.
class CallsOfClients final : public CallsOfStore {
 public:
  CallsOfClients(NodeStore& store, Rules rules) : CallsOfStore(store), rules_(rules) {}

  Result<PullId> RecordPullIntent(const ImageCopy& copy) override {
    // Made first: for what is on record, memory must not run out.
    std::list<Begun> one;
    one.push_back({{}, std::string(copy.image), std::string(copy.runtime_handler)});
    auto pull = CallsOfStore::RecordPullIntent(copy);
    if (!pull) return pull;
    one.front().id = *pull;
    const std::lock_guard lock(mutex_);
    if (begun_.size() >= kMaxBegun) begun_.pop_front();
    begun_.splice(begun_.end(), one);
    return pull;
  }
  Result<void> RecordImagePulled(const ImageCopy& copy,
                                 const std::optional<ImagePullCredentials>& credentials,
                                 const PullResult& result) override {
    return End(copy, result.pull, [&](Ending ending) {
      PullResult ended = result;
      ended.pull = ending.pull;
      return CallsOfStore::RecordImagePulled(copy, ending.is_known ? credentials : std::nullopt,
                                             ended);
    });
  }
  Result<void> RecordImagePullFailed(const ImageCopy& copy, PullFailure failure,
                                     PullId pull) override {
    return RecordImagePullError(copy, {.failure = failure, .pull = pull});
  }
  Result<void> RecordImagePullError(const ImageCopy& copy, const PullError& error) override {
    return End(copy, error.pull, [&](Ending ending) {
      PullError ended = error;
      ended.pull = ending.pull;
      const bool brought_nothing = error.failure == PullFailure::kNothingTransferred;
      if (brought_nothing && !ending.is_known) ended.failure = PullFailure::kFailed;
      return CallsOfStore::RecordImagePullError(copy, ended);
    });
  }

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

  template <typename Record>
  Result<void> End(const ImageCopy& copy, PullId named, const Record& record) {
    std::list<Begun> mine;
    Ending ending;
    {
      const std::lock_guard lock(mutex_);
      auto at = begun_.end();  // the newest
      std::size_t may_be = 0;
      for (auto pull = begun_.begin(); pull != begun_.end(); ++pull) {
        if (pull->image != copy.image || pull->runtime_handler != copy.runtime_handler) continue;
        if (named.value != 0 && named != pull->id) continue;
        ++may_be;
        if (at == begun_.end() || at->id < pull->id) at = pull;
      }
      if (at == begun_.end()) {
        ending.pull = TRY(OtherThanOwners(copy, named));
      } else {
        ending.pull = at->id;
        mine.splice(mine.end(), begun_, at);
        // Kubelet rules: an image has one intent, whose beginning is the oldest's.
        if (may_be > 1 && rules_ == Rules::kClosed) {
          auto running = CountRunning(copy);
          if (!running) {
            begun_.splice(begun_.end(), mine);
            return running.error();
          }
          ending.is_known = *running == may_be;
          if (ending.is_known) ending.pull = {};
        }
      }
    }
    auto recorded = record(ending);
    if (!recorded) {
      const std::lock_guard lock(mutex_);
      begun_.splice(begun_.end(), mine);
    }
    return recorded;
  }

  // The owner's, too.
  Result<std::size_t> CountRunning(const ImageCopy& copy) const {
    auto pulls = TRY(store().ListOpenPulls());
    return static_cast<std::size_t>(
        std::count_if(pulls.begin(), pulls.end(), [&](const UnresolvedPull& pull) {
          return !pull.anything && pull.image == copy.image && pull.state == PullState::kRunning;
        }));
  }

  // One that no client of this owner began. The mutex is held.
  Result<PullId> OtherThanOwners(const ImageCopy& copy, PullId named) const {
    auto pulls = TRY(store().ListOpenPulls());
    for (const UnresolvedPull& pull : pulls) {
      if (pull.anything || pull.image != copy.image) continue;
      const bool is_meant = named.value == 0 || named == pull.id || rules_ == Rules::kKubelet;
      if (is_meant && pull.state == PullState::kRunning && !IsClients(pull.id)) {
        return Error{
            ErrorCode::kConflict,
            "pull " + std::to_string(pull.id.value) + " of \"" + std::string(copy.image) +
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

  const Rules rules_;
  mutable std::mutex mutex_;
  std::list<Begun> begun_;  // guarded by mutex_; the newest last
};

}  // namespace

std::unique_ptr<OwnerCalls> CallsOf(NodeStore& store) {
  return std::make_unique<CallsOfStore>(store);
}

Result<void> NodeStore::Impl::Serve(NodeStore& store, const ServeOptions& options) {
  if (!committer) return NotOwner();
  if (!committer->CheckOwnership() && committer->failed()) return committer->WhyFailed();
  const std::lock_guard lock(serving_mutex);
  if (server) {
    return Error{ErrorCode::kConflict,
                 directory.string() + " is served by this process already; nothing was changed"};
  }
  auto calls = std::make_unique<CallsOfClients>(store, rules);
  const internal::Greeting greeting{
      .store = committer->store_id(),
      .owner = {.process_id = getpid(), .rules = rules, .evidence = evidence}};
  auto started = TRY(internal::ControlServer::Start(directory, options, greeting, *calls));
  served = std::move(calls);
  server = std::move(started);
  return {};
}

void NodeStore::Impl::StopServing() noexcept {
  const std::lock_guard lock(serving_mutex);
  server.reset();
  served.reset();
}

Result<Backup> NodeStore::Impl::MakeBackup() {
  if (!committer) return NotOwner();
  const std::unique_lock lock(backup_mutex, std::try_to_lock);
  if (!lock.owns_lock()) {
    return Error{
        ErrorCode::kUnavailable,
        "another backup of " + directory.string() + " is being made; no second one was made",
        "wait for it, then try again"};
  }
  TRY(PrepareBackup());
  return internal::MakeBackupOfLive(owned->database, clock(),
                                    [&](std::uint64_t sequence) { return IsDurable(sequence); });
}

Result<void> NodeStore::Impl::PrepareBackup() {
  // What was queued belongs to the state that the caller sees.
  if (write_backs && write_backs->busy()) write_backs->WaitForAll();
  if (!committer->CheckOwnership() && committer->failed()) return committer->WhyFailed();
  return {};
}

Result<void> NodeStore::Impl::IsDurable(std::uint64_t sequence) {
  // Readers see a commit before it is on the disk. A backup must not know of one that a crash takes
  // back: so the commit under way is waited for.
  TRY(committer->WithoutCommits([]() -> Result<void> { return {}; }));
  if (!committer->CheckOwnership() && committer->failed()) return committer->WhyFailed();
  if (sequence <= committer->durable_sequence()) return {};
  return committer->WhyFailed();
}

Result<Backup> NodeStore::Impl::WriteBackup(const std::filesystem::path& file,
                                            const Progress& progress) {
  if (closed_) return Closed();
  if (committer) {
    TRY(PrepareBackup());
    return internal::WriteBackupOfLive(owned->database, file, progress,
                                       [&](std::uint64_t sequence) { return IsDurable(sequence); });
  }
  // Opens the files again if they were replaced, or the owner enlarged the map.
  if (const auto snapshot = Read(); !snapshot) return NoSnapshot(snapshot, "the store");
  const std::shared_lock lock(observed_mutex);
  if (!observed) return NoSnapshot({}, "the store");
  // The owner's flush may be under way, or none may come any more.
  const auto flush = [&](std::uint64_t) { return observed->env->Flush(); };
  return internal::WriteBackupOfLive(*observed, file, progress, flush);
}

Result<void> NodeStore::Serve(const ServeOptions& options) {
  return Guarded([&] { return impl_->Serve(*this, options); });
}

Result<Backup> NodeStore::MakeBackup() {
  return Guarded([&] { return impl_->MakeBackup(); });
}

Result<Backup> NodeStore::WriteBackup(const std::filesystem::path& file, const Progress& progress) {
  return Guarded([&] { return impl_->WriteBackup(file, progress); });
}

}  // namespace waybill
