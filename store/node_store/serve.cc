// An owner answers others, and makes a backup beside its own work.

#include <unistd.h>

#include <string>
#include <utility>

#include "store/node_store/impl.h"
#include "store/recovery/backup.h"
#include "waybill/owner.h"

namespace waybill {

namespace {

// Each call is that of the store.
class CallsOfStore final : public OwnerCalls {
 public:
  explicit CallsOfStore(NodeStore& store) : store_(store) {}

  Result<ListToken> BeginList() override { return store_.BeginList(); }
  Result<ObserveReport> ObserveImages(const ImageList& list,
                                      const ChangeOptions& options) override {
    return store_.ObserveImages(list, options);
  }
  Result<PruneReport> Prune(const std::vector<ImageOnNode>& images, const ListToken& token,
                            const ChangeOptions& options) override {
    return store_.Prune(images, token, options);
  }
  Result<PruneReport> PruneBefore(const std::vector<ImageOnNode>& images, Timestamp until,
                                  const ChangeOptions& options) override {
    return store_.PruneBefore(images, until, options);
  }
  Result<void> AddToLedger(const ImageOnNode& image, std::string_view source,
                           std::string_view reason, const ChangeOptions& options) override {
    return store_.AddToLedger(image, source, reason, options);
  }
  Result<bool> RemoveFromLedger(const ImageCopy& copy, std::string_view reason,
                                const ChangeOptions& options) override {
    return store_.RemoveFromLedger(copy, reason, options);
  }
  Result<void> DropOpenPull(PullId pull, std::string_view reason,
                            const ChangeOptions& options) override {
    return store_.DropOpenPull(pull, reason, options);
  }
  Result<ObserveReport> ClearDistrust(std::string_view reason,
                                      const ClearOptions& options) override {
    return store_.ClearDistrust(reason, options);
  }
  Result<void> AdoptUserNamespace(std::string_view pod_uid, std::uint64_t host_id,
                                  std::uint64_t length) override {
    return store_.AdoptUserNamespace(pod_uid, host_id, length);
  }
  Result<bool> ReleaseUserNamespace(std::string_view pod_uid,
                                    const ChangeOptions& options) override {
    return store_.ReleaseUserNamespace(pod_uid, options);
  }
  Result<bool> ReleaseLostUserNamespaces(const ChangeOptions& options) override {
    return store_.ReleaseLostUserNamespaces(options);
  }
  Result<UserNamespaceCleanupReport> CleanUpUserNamespaces(const std::vector<std::string>& existing,
                                                           const std::vector<std::string>& running,
                                                           ListToken token,
                                                           const ChangeOptions& options) override {
    return store_.CleanUpUserNamespaces(existing, running, token, options);
  }
  Result<Backup> MakeBackup() override { return store_.MakeBackup(); }
  Result<ForgetReport> Forget(const Revocation& what, const ChangeOptions& options) override {
    return store_.Forget(what, options);
  }
  Result<ReconcileReport> Reconcile(const ExistingCredentials& truth, const ListToken& token,
                                    const ChangeOptions& options) override {
    return store_.Reconcile(truth, token, options);
  }

 private:
  NodeStore& store_;
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
  auto calls = CallsOf(store);
  const internal::Greeting greeting{
      .store = committer->store_id(),
      .owner = {.process_id = getpid(), .rules = rules, .evidence = evidence}};
  auto started = internal::ControlServer::Start(directory, options, greeting, *calls);
  if (!started) return started.error();
  served = std::move(calls);
  server = std::move(*started);
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
  if (auto r = PrepareBackup(); !r) return r.error();
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
  auto waited = committer->WithoutCommits([]() -> Result<void> { return {}; });
  if (!waited) return waited;
  if (!committer->CheckOwnership() && committer->failed()) return committer->WhyFailed();
  if (sequence <= committer->durable_sequence()) return {};
  return committer->WhyFailed();
}

Result<Backup> NodeStore::Impl::WriteBackup(const std::filesystem::path& file,
                                            const Progress& progress) {
  if (closed_) return Closed();
  if (committer) {
    if (auto r = PrepareBackup(); !r) return r.error();
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
