// One caller's change in a write transaction. Keeps each table's digest true.

#ifndef WAYBILL_STORE_DISK_STORE_TXN_H_
#define WAYBILL_STORE_DISK_STORE_TXN_H_

#include <lmdb.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/function_ref.h"
#include "store/base/try.h"
#include "store/disk/header.h"
#include "store/disk/lmdb/env.h"
#include "store/disk/tables.h"
#include "waybill/result.h"

namespace waybill::internal {

struct TableHandles {
  MDB_dbi main = 0;
  std::array<MDB_dbi, kTableCount> tables{};

  MDB_dbi of(Table table) const { return tables[Index(table)]; }
  // What the main table has beside open pulls.
  std::size_t NamesInMain() const {
    return kHeaderRecords + static_cast<std::size_t>(std::ranges::count_if(
                                tables, [&](MDB_dbi one) { return one != 0 && one != main; }));
  }
};

// LMDB's own order, as two numbers: a search compares some ten keys, and each would be a call of
// memcmp. For mdb_set_compare.
int CompareKeys(const MDB_val* a, const MDB_val* b);

// Opens the handles of a schema version's tables, which last only if `txn` commits. `create` makes
// missing tables. Returns an LMDB code.
int OpenTables(MDB_txn* txn, std::uint32_t schema_version, bool create, TableHandles& handles);

class StoreTxn {
 public:
  struct Context {
    MDB_txn* txn = nullptr;
    const TableHandles* handles = nullptr;
    const Identity* identity = nullptr;
    const std::filesystem::path* directory = nullptr;
    Timestamp now;  // the time of this change: what the clock says
    BootTime boot;  // what the boot clock says
    // Pages that may be used to make the store larger; the rest is for deletions.
    std::uint64_t growth_pages = std::numeric_limits<std::uint64_t>::max();
  };

  // Changes `state` in place. If the transaction fails, the caller drops it.
  StoreTxn(const Context& context, State& state) : context_(context), state_(state) {}

  const Identity& identity() const { return *context_.identity; }
  std::uint64_t seed() const { return context_.identity->hash_seed; }
  std::uint64_t store_id() const { return StoreId(*context_.identity); }
  Schema schema() const { return SchemaOf(context_.identity->schema_version); }
  Timestamp now() const { return context_.now; }
  // What the store knows of time, as of this change.
  Clocks clocks() const { return state_.clocks.At(context_.boot, context_.now); }
  State& state() { return state_; }
  // The sequence of the commit under way, which stamps what it writes.
  std::uint64_t sequence() const { return state_.commit_sequence + 1; }
  const State& state() const { return state_; }
  // Whether anything may have been written.
  bool dirty() const { return dirty_; }
  void Touch() { dirty_ = true; }
  // How many of growth_pages this change took at most.
  std::uint64_t pages_taken() const { return pages_taken_; }
  // How many pages of the tables it copied or added at most. 0: it changed none.
  std::uint64_t PagesCopied() const;

  // nullopt: no such key. kDamaged: the value does not verify. The bytes last until the next write.
  Result<std::optional<Payload>> Get(Table table, const Key16& key) const;
  Result<void> Put(Table table, const Key16& key, Payload payload) {
    return PutAs(schema(), table, key, payload);
  }
  // The same for a small value that only keeps images closed: it finds room on a full store, too,
  // in the pages that are kept for deletions.
  Result<void> PutFromReserve(Table table, const Key16& key, Payload payload);
  // False: the key exists, and nothing was changed.
  Result<bool> PutNew(Table table, const Key16& key, Payload payload);
  // For migrations: writes in the form of another schema version.
  Result<void> PutAs(const Schema& schema, Table table, const Key16& key, Payload payload);
  // False: there was no such key. Deletes damaged values too.
  Result<bool> Delete(Table table, const Key16& key);
  // In key order, until the visitor returns false. A value that does not verify comes with an empty
  // payload. The table must not change meanwhile.
  using Visitor = FunctionRef<Result<bool>(const Key16&, Payload)>;
  Result<void> ForEach(Table table, Visitor visit) const {
    return ForEachWithPrefix(table, {}, 0, visit);
  }
  // From `first` on; or only keys that begin with the first `bytes` of `first`.
  Result<void> ForEachFrom(Table table, const Key16& first, Visitor visit) const {
    return ForEachWithPrefix(table, first, 0, visit);
  }
  Result<void> ForEachWithPrefix(Table table, const Key16& first, std::size_t bytes,
                                 Visitor visit) const;
  // Open pulls of that key's image, the newest first. Reads the keys of all.
  Result<void> ForEachPull(const Key16& of_image, Visitor visit) const;

  // The header's records, in the main table. kIo also if there is no such record.
  Result<void> PutHeaderRecord(const Key16& key, RecordKind kind, Payload payload);
  Result<Payload> GetHeaderRecord(const Key16& key, RecordKind kind) const;
  // Identity::settings. The caller keeps its copy of the identity up to date.
  Result<void> PutSettings(const std::string& settings);
  // Advances the sequence and writes the state record: the last thing before a commit.
  Result<void> WriteState();

 private:
  Error LmdbError(int rc, std::string_view doing) const;
  // Of the values from `first` on those whose key is `wanted`, until one ends it.
  enum class Wanted : std::uint8_t { kYes, kNo, kEnd };
  Result<void> Visit(Table table, const Key16& first, FunctionRef<Wanted(const Key16&)> wanted,
                     Visitor visit) const;
  // kLimitExceeded: above kMaxValueBytes.
  Result<void> CheckSize(Payload payload) const;
  // Call before adding or enlarging a value of `bytes`. kStoreFull: there is no room.
  Result<void> TakeRoom(MDB_dbi dbi, std::size_t bytes);
  // Call before changing a value; `bytes` of the new one, 0 to delete it.
  void Touch(Table table, std::size_t bytes);
  enum class How : std::uint8_t { kReplace, kReplaceFromReserve, kNew };
  Result<bool> Write(const Schema& schema, Table table, const Key16& key, Payload payload, How how);
  // nullopt: the header. Writes nothing if the value is there already. False: the key exists,
  // and it should be new.
  Result<bool> Store(std::optional<Table> table, TableDigest& digest, const Key16& key, Value value,
                     How how);
  Result<void> Recount(std::optional<Table> table, TableDigest& digest) const;

  // What was changed of a table, and its size before.
  struct Touched {
    std::uint64_t changes = 0;
    std::uint64_t depth = 0;
    std::uint64_t branch_pages = 0;
    std::uint64_t pages = 0;
    std::uint64_t page_bytes = 4096;
  };

  Context context_;
  std::array<Touched, kTableCount> touched_{};
  State& state_;
  bool dirty_ = false;
  std::uint64_t pages_taken_ = 0;
};

// kConflict: another identity has the same key as `whose` ("pod a").
Error KeyIsTaken(const std::string& whose);

// A whole table, in the order of its keys. `unreadable`: a value does not verify or decode.
template <typename T>
Result<std::vector<T>> ReadAll(const StoreTxn& txn, Table table,
                               std::optional<T> (*decode)(Payload), const Error& unreadable) {
  std::vector<T> all;
  TRY(txn.ForEach(table, [&](const Key16&, Payload payload) -> Result<bool> {
    auto decoded = decode(payload);
    if (!decoded) return unreadable;
    all.push_back(std::move(*decoded));
    return true;
  }));
  return all;
}

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DISK_STORE_TXN_H_
