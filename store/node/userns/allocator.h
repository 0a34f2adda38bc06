// Hands out ranges and takes them back. The block table decides: it has room for one tenant per
// block. Only the place to begin at is in memory, so a failed transaction leaves no wrong state.

#ifndef WAYBILL_STORE_NODE_USERNS_ALLOCATOR_H_
#define WAYBILL_STORE_NODE_USERNS_ALLOCATOR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "store/base/options.h"
#include "store/engine/database/store_txn.h"
#include "store/node/records/userns_tables.h"
#include "store/node/userns/pool.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// A report names this many released pods.
inline constexpr std::size_t kMaxNamedPods = 1000;

// Used only inside changes (Committer), one at a time.
class Allocator {
 public:
  // `options` are valid. The search begins at a place that depends on `start`, so that a released
  // range is not the next one handed out.
  Allocator(const UserNamespaceOptions& options, std::uint64_t start);

  // The pod's mapping, or a new one. Errors: NodeStore::GetOrCreateUserNamespace, from the held pod
  // on. A mapping not newer than `token` gets a new stamp.
  Result<IdMapping> GetOrCreate(StoreTxn& txn, const UserNamespaceRequest& request,
                                std::uint64_t token);
  // Errors: NodeStore::AdoptUserNamespace.
  Result<void> Adopt(StoreTxn& txn, std::string_view pod_uid, HostIdRange range);
  // Returns whether the pod had a mapping or was held.
  Result<bool> Release(StoreTxn& txn, std::string_view pod_uid);
  // Keeps `pods`, those of both lists. Releases at most `most`.
  Result<CleanUpReport> CleanUp(StoreTxn& txn, const std::unordered_set<std::string_view>& pods,
                                std::uint64_t token, std::size_t most);

 private:
  Result<IdMapping> Create(StoreTxn& txn, std::string_view pod_uid);
  // The first free slot from `from` on and before `end`; nullopt: all are taken.
  Result<std::optional<std::uint32_t>> FindFree(const StoreTxn& txn, const BlockSet& held_blocks,
                                                std::uint32_t from, std::uint32_t end) const;

  IdPool pool_;
  Slots slots_;
  std::uint32_t next_ = 0;  // the slot to look at first
};

// The pod is held: kConflict, with what to do.
Error IsHeld(const QuarantinedPod& held);
// kConflict: the length of `mapping` is not the one that the caller requires.
Result<void> CheckLength(const UserNamespaceRequest& request, const IdMapping& mapping);

void AddHeld(const std::vector<UsernsHeld>& held, BlockSet& blocks);

// Why no new range can be handed out; empty: ranges can.
std::string WhyRefused(const std::vector<UsernsHeld>& held);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_USERNS_ALLOCATOR_H_
