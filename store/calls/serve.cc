// An owner answers others, and makes a backup beside its own work.

#include <mutex>
#include <utility>

#include "store/base/try.h"
#include "store/calls/do.h"
#include "store/calls/impl.h"
#include "store/calls/node_store.h"
#include "store/opening/backup.h"
#include "waybill/store.h"
#include "waybill/values.h"

namespace waybill {

Result<void> NodeStore::Impl::Serve(std::unique_ptr<internal::Door> door,
                                    const ServeOptions& options) {
  if (!committer) return NotOwner();
  if (!committer->CheckOwnership() && committer->failed()) return committer->WhyFailed();
  const std::lock_guard lock(serving_mutex);
  if (server) {
    return Error{ErrorCode::kConflict,
                 directory.string() + " is served by this process already; nothing was changed"};
  }
  auto started = TRY(internal::OwnerServer::Start(directory, options, *door));
  served = std::move(door);
  server = std::move(started);
  return {};
}

void NodeStore::Impl::StopServing() noexcept {
  const std::lock_guard lock(serving_mutex);
  server.reset();
  served.reset();
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

Result<Backup> NodeStore::WriteBackup(const std::filesystem::path& file, const Progress& progress) {
  return Guarded([&] { return impl_->WriteBackup(file, progress); });
}

namespace door {

// In backup/: of several backups of this state only the new one is kept. Into a file: that must not
// exist, in an existing directory that is not in the store, mode 0600. kDiskFull: no room.
// kDamaged: the copy fails its check. kUnavailable: another backup is being made, or all slots of
// readers are taken. After an error no backup was removed, and the file was not made, except if the
// final sync of its directory failed.
Result<MakeBackup::Answer> Do(NodeStore& store, const MakeBackup& call, const Progress& progress) {
  NodeStore::Impl& impl = store.impl();
  if (!call.file.empty()) {
    if (call.file.is_absolute()) return impl.WriteBackup(call.file, progress);
    return Invalid("the path of a backup must be absolute", "name the file from / on");
  }
  if (!impl.committer) return impl.NotOwner();
  const std::unique_lock lock(impl.backup_mutex, std::try_to_lock);
  if (!lock.owns_lock()) {
    return Error{
        ErrorCode::kUnavailable,
        "another backup of " + impl.directory.string() + " is being made; no second one was made",
        "wait for it, then try again"};
  }
  TRY(impl.PrepareBackup());
  const auto is_durable = [&](std::uint64_t sequence) { return impl.IsDurable(sequence); };
  return internal::MakeBackupOfLive(impl.owned->database, impl.clock(), is_durable);
}

}  // namespace door

}  // namespace waybill
