// A store that is open: what one of a node and one of streams have in common, as owner or observer.

#ifndef WAYBILL_STORE_OPENING_LIVE_STORE_H_
#define WAYBILL_STORE_OPENING_LIVE_STORE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "store/base/function_ref.h"
#include "store/disk/commit_mark.h"
#include "store/disk/committer.h"
#include "store/disk/reader_pool.h"
#include "store/opening/open_store.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

class LiveStore {
 public:
  explicit LiveStore(std::filesystem::path directory_in) : directory(std::move(directory_in)) {}

  // Why this store does not write.
  Error NotOwner() const;
  Error Closed() const;
  // `what` can't be read; there is no snapshot to read it from.
  Error Unreadable(std::string_view what) const;
  Error NoSnapshot(const ReaderPool::Lease& none, std::string_view what) const;

  // The call Verify. An observer tells by `sequence`, of the commit that it sees, whether the owner
  // wrote meanwhile.
  Result<VerifyReport> Verify(FunctionRef<std::uint64_t()> sequence,
                              const Progress& progress) const;

  const std::filesystem::path directory;
  ReaderPool readers;
  // Owner only, else null.
  std::optional<OwnedStore> owned;
  std::unique_ptr<CommitMark> mark;
  std::unique_ptr<Committer> committer;
  // Observer only.
  std::optional<OpenedDatabase> observed;

  const OpenedDatabase* database() const {
    return owned ? &owned->database : observed ? &*observed : nullptr;
  }

 protected:
  ~LiveStore() = default;

  // Owner: the committer of `owned`. `hooks.committed` comes before readers see the commit.
  void MakeCommitter(Committer::Hooks hooks, const BootClock& boot_clock, bool flushes_twice);
  // Owner: everything was recovered: from now on it is read, and observers rely on it.
  Result<void> Announce(Table read_first);
  // Readers leave, then the environment closes, and the lock is released. Later calls are kClosed.
  // Nothing else may use the store.
  Result<void> LetGo() noexcept;

  bool closed_ = false;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OPENING_LIVE_STORE_H_
