// Hands out ranges and takes them back. Which blocks are taken is made of the rows, and made anew
// when the table's digest is another one. So a transaction that fails leaves no wrong state.

#ifndef WAYBILL_STORE_PODS_ALLOCATOR_H_
#define WAYBILL_STORE_PODS_ALLOCATOR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "store/base/options.h"
#include "store/disk/store_txn.h"
#include "store/pods/host_ids.h"
#include "store/pods/pool.h"
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
  // Keeps `pods`, those of both lists. Releases at most `most`.
  Result<CleanUpReport> CleanUp(StoreTxn& txn, const std::unordered_set<std::string_view>& pods,
                                std::uint64_t token, std::size_t most);

 private:
  // The next slot after the last one that nobody has or may have.
  Result<IdMapping> Create(StoreTxn& txn, std::string pod_uid);
  Result<void> SeeWhatIsTaken(const StoreTxn& txn);

  IdPool pool_;
  Slots slots_;
  std::uint32_t next_ = 0;         // the slot to look at first
  std::optional<TableDigest> of_;  // of the table that these are made of:
  BlockSet taken_;                 // what pods have or may have
  std::string refused_because_;    // WhyRefused
};

// The pod is held: kConflict, with what to do.
Error IsHeld(const QuarantinedPod& held);
// kConflict: the length of `mapping` is not the one that the caller requires.
Result<void> CheckLength(const UserNamespaceRequest& request, const IdMapping& mapping);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_PODS_ALLOCATOR_H_
