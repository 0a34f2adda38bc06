// What the two bare LMDBs have in common (peer_lmdb.h, peers/lmdb.cc). The functions throw.

#ifndef WAYBILL_BENCH_LMDB_CALLS_H_
#define WAYBILL_BENCH_LMDB_CALLS_H_

#include <lmdb.h>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "store/engine/lmdb/env.h"

namespace waybill::bench {

inline void CheckLmdb(int rc, const char* doing) {
  if (rc != MDB_SUCCESS) {
    throw std::runtime_error(std::string("bare LMDB: ") + doing + ": " + mdb_strerror(rc));
  }
}

// A transaction that writes.
class LmdbWrite {
 public:
  explicit LmdbWrite(MDB_env* env) { CheckLmdb(mdb_txn_begin(env, nullptr, 0, &txn_), "begin"); }
  ~LmdbWrite() {
    if (txn_ != nullptr) mdb_txn_abort(txn_);
  }
  LmdbWrite(const LmdbWrite&) = delete;
  LmdbWrite& operator=(const LmdbWrite&) = delete;

  void Put(MDB_dbi dbi, lmdb::Bytes key, lmdb::Bytes value) {
    MDB_val k = lmdb::ToVal(key);
    MDB_val v = lmdb::ToVal(value);
    CheckLmdb(mdb_put(txn_, dbi, &k, &v, 0), "put");
  }
  void Delete(MDB_dbi dbi, lmdb::Bytes key) {
    MDB_val k = lmdb::ToVal(key);
    CheckLmdb(mdb_del(txn_, dbi, &k, nullptr), "delete");
  }
  void Commit() { CheckLmdb(mdb_txn_commit(std::exchange(txn_, nullptr)), "commit"); }
  MDB_txn* get() { return txn_; }

 private:
  MDB_txn* txn_ = nullptr;
};

// Calls `take(cursor, key, value)` for each entry.
template <typename Take>
void ForEachEntry(MDB_txn* txn, MDB_dbi dbi, const Take& take) {
  MDB_cursor* cursor = nullptr;
  CheckLmdb(mdb_cursor_open(txn, dbi, &cursor), "open a cursor");
  MDB_val k{};
  MDB_val v{};
  while (mdb_cursor_get(cursor, &k, &v, MDB_NEXT) == MDB_SUCCESS) take(cursor, k, lmdb::FromVal(v));
  mdb_cursor_close(cursor);
}

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_LMDB_CALLS_H_
