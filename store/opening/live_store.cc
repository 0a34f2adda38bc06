#include "store/opening/live_store.h"

#include <fcntl.h>

#include <string>

#include "store/base/caught.h"
#include "store/base/files.h"
#include "store/base/try.h"
#include "store/opening/inspect.h"
#include "store/opening/unfinished_commit.h"

namespace waybill::internal {

void LiveStore::MakeCommitter(Committer::Hooks hooks, const BootClock& boot_clock,
                              bool flushes_twice) {
  hooks.still_owned = [this](Committer::When when) {
    return CheckStillOwned(owned->database, when);
  };
  hooks.committed = [this, before = std::move(hooks.committed)](std::uint64_t sequence) {
    if (before) before(sequence);
    readers.DropOldSnapshots();
    if (owned->witness) owned->witness->Advance(sequence);
  };
  mark = MarkFor(directory, owned->line, boot_clock, flushes_twice);
  hooks.mark = mark.get();
  const OpenedDatabase& opened = owned->database;
  committer = std::make_unique<Committer>(*opened.env, opened.handles, opened.identity,
                                          owned->state, std::move(hooks));
}

Result<void> LiveStore::Announce(Table read_first) {
  const OpenedDatabase& opened = owned->database;
  readers.Attach(*opened.env, opened.handles, opened.identity.hash_seed,
                 ReaderPool::Keep::kUntilNextCommit, ReaderPool::kSlots, read_first);
  return owned->lock.AnnounceRecovered(opened.database_id);
}

Result<void> LiveStore::LetGo() noexcept {
  closed_ = true;
  Result<void> result;
  if (database() != nullptr) database()->files->ExtendLockFile();
  readers.Detach();
  if (observed) result = observed->CheckUnchanged();
  if (owned && owned->witness) result = Guarded([this] { return owned->witness->Sync(); });
  // Not the mark of another owner.
  if (mark && committer && committer->CheckOwnership()) {
    auto shut = Guarded([this] { return mark->Shut(); });
    if (result) result = std::move(shut);
  }
  committer.reset();
  mark.reset();
  owned.reset();
  observed.reset();
  return result;
}

Error LiveStore::Closed() const {
  return {ErrorCode::kClosed, directory.string() + " was closed; nothing was changed",
          "open it again"};
}

Error LiveStore::NotOwner() const {
  if (closed_) return Closed();
  return {ErrorCode::kNotOwner,
          directory.string() + " is not open for writing; nothing was changed",
          "open it as the owner"};
}

Error LiveStore::Unreadable(std::string_view what) const {
  return {ErrorCode::kDamaged,
          "cannot read " + std::string(what) + " in " + directory.string(),
          {},
          Hint::kVerify};
}

Error LiveStore::NoSnapshot(const ReaderPool::Lease& none, std::string_view what) const {
  if (closed_) return Closed();
  if (committer && committer->failed()) return committer->WhyFailed();
  if (none.has_snapshot()) return Unreadable(what);
  return {ErrorCode::kUnavailable,
          "cannot read " + std::string(what) + " in " + directory.string() + " at this moment",
          "try again; if it goes on, stop observers that are not needed, or open the store again"};
}

Result<VerifyReport> LiveStore::Verify(FunctionRef<std::uint64_t()> sequence,
                                       const Progress& progress) const {
  constexpr int kVerifyTries = 5;
  Inspection inspection;
  const auto inspect = [&]() -> Result<void> {
    auto file = TRY(OpenFile(directory / "data.mdb", O_RDONLY));
    inspection = TRY(InspectFile(file, FileIs::kStore, OnReadError::kFail, progress));
    return {};
  };
  if (committer) {
    TRY(committer->WithoutCommits(inspect));
  } else {
    // A commit while the file is read looks like damage: believe it only if nothing was
    // committed.
    for (int i = 0;; ++i) {
      const std::uint64_t before = sequence();
      TRY(inspect());
      if (inspection.sound || (!inspection.moved && before == sequence())) break;
      if (i == kVerifyTries) {
        return Error{ErrorCode::kIo,
                     "the owner of " + directory.string() + " writes too often to verify it",
                     "try again later"};
      }
    }
  }
  return VerifyReport{inspection.sound, inspection.pages, inspection.values,
                      std::move(inspection.findings)};
}

}  // namespace waybill::internal
