// Whole tables, decoded.

#ifndef WAYBILL_STORE_NODE_STORE_LIST_H_
#define WAYBILL_STORE_NODE_STORE_LIST_H_

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "store/node_store/impl.h"

namespace waybill {

// Every value of a table in one snapshot. An error if one can't be read or is missing.
template <typename T>
Result<std::vector<T>> ListIn(const NodeStore::Impl& impl,
                              const internal::ReaderPool::Lease& snapshot, internal::Table table,
                              std::string_view what,
                              std::optional<T> (*decode)(internal::Payload)) {
  if (!snapshot) return impl.NoSnapshot(snapshot, what);
  std::vector<T> all;
  lmdb::Cursor cursor;
  if (cursor.Open(snapshot.txn(), snapshot.dbi(table)) != MDB_SUCCESS) {
    return impl.Unreadable(what);
  }
  lmdb::Bytes key;
  lmdb::Bytes value;
  int rc = MDB_SUCCESS;
  while ((rc = cursor.Get(&key, &value, MDB_NEXT)) == MDB_SUCCESS) {
    if (key.size() != 16) return impl.Unreadable(what);
    const internal::Opened opened =
        internal::OpenEnvelope(internal::Key16::From(key.first<16>()), value,
                               internal::SpecOf(table).kind, internal::kNewest.version(table));
    if (opened.state != internal::EnvelopeState::kSound) return impl.Unreadable(what);
    auto decoded = decode(opened.payload);
    if (!decoded) return impl.Unreadable(what);
    all.push_back(std::move(*decoded));
  }
  if (rc != MDB_NOTFOUND || !snapshot.CountIsTrue(table)) return impl.Unreadable(what);
  return all;
}

template <typename T>
Result<std::vector<T>> ListTable(NodeStore::Impl& impl, internal::Table table,
                                 std::string_view what,
                                 std::optional<T> (*decode)(internal::Payload)) {
  return Guarded<std::vector<T>>([&] { return ListIn<T>(impl, impl.Read(), table, what, decode); });
}

}  // namespace waybill

#endif  // WAYBILL_STORE_NODE_STORE_LIST_H_
