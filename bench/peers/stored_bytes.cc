#include "bench/peers/stored_bytes.h"

#include <lmdb.h>

#include <stdexcept>

#include "bench/data_set.h"
#include "bench/scratch.h"
#include "store/engine/database/tables.h"

namespace waybill::bench {

namespace {

void CheckRead(int rc, const char* doing) {
  if (rc != MDB_SUCCESS) {
    throw std::runtime_error(std::string("cannot read a store: ") + doing + ": " +
                             mdb_strerror(rc));
  }
}

std::vector<std::string> ValuesOf(MDB_txn* txn, const char* table) {
  MDB_dbi dbi = 0;
  CheckRead(mdb_dbi_open(txn, table, 0, &dbi), table);
  MDB_cursor* cursor = nullptr;
  CheckRead(mdb_cursor_open(txn, dbi, &cursor), table);
  std::vector<std::string> values;
  MDB_val k{};
  MDB_val v{};
  while (mdb_cursor_get(cursor, &k, &v, MDB_NEXT) == MDB_SUCCESS) {
    values.emplace_back(static_cast<const char*>(v.mv_data), v.mv_size);
  }
  mdb_cursor_close(cursor);
  return values;
}

}  // namespace

StoredBytes::StoredBytes(const std::filesystem::path& scratch, std::size_t records) {
  ScratchStore store(scratch / "stored-bytes");
  store.Fill(records);
  Must(store->RecordPullIntent({.image = ImageOf(records)}));
  store.Close();

  MDB_env* env = nullptr;
  CheckRead(mdb_env_create(&env), "create");
  CheckRead(mdb_env_set_maxdbs(env, 32), "tables");
  CheckRead(mdb_env_set_mapsize(env, std::size_t{1} << 32), "map");
  const std::string file = (store.directory() / "data.mdb").string();
  CheckRead(mdb_env_open(env, file.c_str(), MDB_NOSUBDIR | MDB_RDONLY | MDB_NOLOCK, 0600), "open");
  MDB_txn* txn = nullptr;
  CheckRead(mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn), "begin");
  records_ = ValuesOf(txn, SpecOf(internal::Table::kPulled).name);
  const std::vector<std::string> intents = ValuesOf(txn, SpecOf(internal::Table::kIntents).name);
  mdb_txn_abort(txn);
  mdb_env_close(env);
  std::filesystem::remove_all(store.directory());
  if (records_.size() != records || intents.size() != 1) {
    throw std::runtime_error("a store does not hold what was written; the figures are void");
  }
  intent_ = intents.front();
}

}  // namespace waybill::bench
