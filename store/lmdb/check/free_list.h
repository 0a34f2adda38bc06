// The free list: a sink for the values of the free tree that claims every page they name.

#ifndef WAYBILL_STORE_LMDB_CHECK_FREE_LIST_H_
#define WAYBILL_STORE_LMDB_CHECK_FREE_LIST_H_

#include <cstdint>
#include <span>

#include "store/lmdb/check/findings.h"
#include "store/lmdb/check/page_claims.h"
#include "store/lmdb/check/tree_walk.h"

namespace waybill::internal {

class FreeList : public LeafSink {
 public:
  // `txn_id`: of the meta page. No record can be of a later transaction.
  FreeList(std::uint64_t txn_id, PageClaims& claims, Findings& findings)
      : txn_id_(txn_id), claims_(claims), findings_(findings) {}

  void OnLeafValue(const std::byte* key, std::span<const std::byte> value) override;
  void OnLeafTree(const std::byte* name, const TreeRecord& tree) override;

  std::uint64_t pages() const { return pages_; }

 private:
  const std::uint64_t txn_id_;
  PageClaims& claims_;
  Findings& findings_;
  std::uint64_t pages_ = 0;
};

// Reports every page that is neither in a tree nor in the free list.
void CheckCoverage(const PageClaims& claims, Findings& findings);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_LMDB_CHECK_FREE_LIST_H_
