// Which range a pod gets, and when it is free again. The table of blocks decides, in which a block
// has room for one tenant only. In memory is nothing but the place to begin at, so that a
// transaction that failed leaves nothing wrong behind.

#ifndef WAYBILL_STORE_USERNS_ALLOCATOR_H_
#define WAYBILL_STORE_USERNS_ALLOCATOR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "store/database/store_txn.h"
#include "store/database/userns_records.h"
#include "store/userns/pool.h"
#include "waybill/report.h"
#include "waybill/result.h"
#include "waybill/user_namespace.h"

namespace waybill::internal {

// How many of the released pods a report names.
inline constexpr std::size_t kMaxNamedPods = 1000;

// Used inside changes only (Committer), one at a time.
class Allocator {
 public:
  // `options` were checked. Begins to look at a place that depends on `start`, so that a range that
  // was released is not the next to be handed out.
  Allocator(const UserNamespaceOptions& options, std::uint64_t start);

  // The pod's mapping, or a new one. Errors: NodeStore::GetOrCreateUserNamespace, from the held pod
  // on. A mapping that is no newer than `token` is stamped anew.
  Result<IdMapping> GetOrCreate(StoreTxn& txn, const UserNamespaceRequest& request,
                                std::uint64_t token);
  // Errors: NodeStore::AdoptUserNamespace.
  Result<void> Adopt(StoreTxn& txn, std::string_view pod_uid, HostIdRange range);
  // Whether there was a mapping, or the pod was held.
  Result<bool> Release(StoreTxn& txn, std::string_view pod_uid);
  // `pods`: those of both lists. Releases no more than `most`: `released` says whether that many.
  Result<UserNamespaceCleanupReport> CleanUp(StoreTxn& txn,
                                             const std::unordered_set<std::string_view>& pods,
                                             std::uint64_t token, std::size_t most);

 private:
  Result<IdMapping> Create(StoreTxn& txn, std::string_view pod_uid);
  // The first free slot from `from` on and before `end`; nullopt: all are taken.
  Result<std::optional<std::uint32_t>> FindFree(const StoreTxn& txn, const BlockSet& held_blocks,
                                                std::uint32_t from, std::uint32_t end) const;

  UserNamespacePool pool_;
  Slots slots_;
  std::uint32_t next_ = 0;  // the slot to look at first
};

// The pod is held: kConflict, with what to do.
Error IsHeld(const HeldPod& held);
// One of `mapping` has another length than the caller counts on: kConflict.
Result<void> CheckLength(const UserNamespaceRequest& request, const IdMapping& mapping);

void AddHeld(const std::vector<UsernsHeld>& held, BlockSet& blocks);

// Why nothing new can be handed out; empty: it can.
std::string WhyRefused(const std::vector<UsernsHeld>& held);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_USERNS_ALLOCATOR_H_
