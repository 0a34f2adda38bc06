// One caller's change inside a write transaction: typed tables whose digests stay true.

#ifndef WAYBILL_STORE_DATABASE_STORE_TXN_H_
#define WAYBILL_STORE_DATABASE_STORE_TXN_H_

#include <lmdb.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/function_ref.h"
#include "store/database/header.h"
#include "store/database/tables.h"
#include "store/lmdb/env.h"
#include "waybill/result.h"

namespace waybill::internal {

struct TableHandles {
  MDB_dbi main = 0;
  std::array<MDB_dbi, kTableCount> tables{};

  MDB_dbi of(Table table) const { return tables[Index(table)]; }
};

// Opens the handles of a schema version's tables in `txn`, which must then commit for them to last.
// With `create`, makes the tables that are missing. Returns an LMDB code.
int OpenTables(MDB_txn* txn, std::uint32_t schema_version, bool create, TableHandles& handles);

class StoreTxn {
 public:
  struct Context {
    MDB_txn* txn = nullptr;
    const TableHandles* handles = nullptr;
    const Identity* identity = nullptr;
    const std::filesystem::path* directory = nullptr;
    Timestamp now;    // of this change
    Timestamp clock;  // what the clock says; `now` is later where that went back
    // How many pages may go to what makes the store larger: the rest is for deletions.
    std::uint64_t growth_pages = std::numeric_limits<std::uint64_t>::max();
  };

  // `state` is changed in place; the caller drops it with the transaction where that fails.
  StoreTxn(const Context& context, State& state) : context_(context), state_(state) {}

  const Identity& identity() const { return *context_.identity; }
  std::uint64_t seed() const { return context_.identity->hash_seed; }
  Schema schema() const { return SchemaOf(context_.identity->schema_version); }
  Timestamp now() const { return context_.now; }
  Timestamp clock() const { return context_.clock; }
  // From here on `now` is what the clock says, in later changes, too.
  void TrustClock() {
    context_.now = context_.clock;
    state_.latest_time = context_.clock;
    dirty_ = true;
  }
  State& state() { return state_; }
  // The sequence of the commit that this change becomes part of: the stamp of what it writes.
  std::uint64_t sequence() const { return state_.commit_sequence + 1; }
  const State& state() const { return state_; }
  // Whether anything was written, or may have been.
  bool dirty() const { return dirty_; }
  void Touch() { dirty_ = true; }
  // Of growth_pages, how many this change may have taken, at most.
  std::uint64_t pages_taken() const { return pages_taken_; }

  // nullopt: nothing there. kDamaged: there is something, and it does not verify. The bytes last
  // until the next write.
  Result<std::optional<Payload>> Get(Table table, const Key16& key) const;
  Result<void> Put(Table table, const Key16& key, Payload payload);
  // The same where nothing is under the key yet; otherwise false, and nothing is changed.
  Result<bool> PutNew(Table table, const Key16& key, Payload payload);
  // For a migration: as another schema version than the store's.
  Result<void> PutAs(const Schema& schema, Table table, const Key16& key, Payload payload);
  // Whether there was something. Deletes what is damaged, too.
  Result<bool> Delete(Table table, const Key16& key);
  // In key order; return false to stop. Values that do not verify come with an empty payload. The
  // table must not be changed meanwhile.
  using Visitor = FunctionRef<Result<bool>(const Key16&, Payload)>;
  Result<void> ForEach(Table table, Visitor visit) const {
    return ForEachWithPrefix(table, {}, 0, visit);
  }
  // The same, from `first` on; and of the keys that begin with the first `bytes` of `first`.
  Result<void> ForEachFrom(Table table, const Key16& first, Visitor visit) const {
    return ForEachWithPrefix(table, first, 0, visit);
  }
  Result<void> ForEachWithPrefix(Table table, const Key16& first, std::size_t bytes,
                                 Visitor visit) const;

  // Main table. kNotFound where the record is missing.
  Result<void> PutHeaderRecord(const Key16& key, RecordKind kind, Payload payload);
  Result<Payload> GetHeaderRecord(const Key16& key, RecordKind kind) const;
  // Advances the sequence and writes the state record: the last thing before a commit.
  Result<void> WriteState();

 private:
  Error LmdbError(int rc, std::string_view doing) const;
  // kLimitExceeded: no value may be as large.
  Result<void> CheckSize(Payload payload) const;
  // kStoreFull: there is no room for a value of `bytes` that is new, or larger than before.
  Result<void> TakeRoom(MDB_dbi dbi, std::size_t bytes);
  Result<void> Store(MDB_dbi dbi, TableDigest& digest, const Key16& key, Value value);
  Result<void> Recount(MDB_dbi dbi, TableDigest& digest) const;
  // Of pulled records: how many are of another handler than the default.
  Result<std::uint64_t> CountNondefault() const;

  Context context_;
  State& state_;
  bool dirty_ = false;
  std::uint64_t pages_taken_ = 0;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DATABASE_STORE_TXN_H_
