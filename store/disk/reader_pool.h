// Read transactions that are made once and renewed. A decision takes a free slot, reads one
// snapshot and gives the slot back: no lock, no allocation, no waiting. Slots do not share cache
// lines. If all are taken, a spare one is made. In the owner a slot keeps its snapshot until the
// next commit, since renewing costs LMDB a search for each table that is used, and remembers where
// that snapshot has what was looked up.
//
// LMDB's readers have a race, and LMDB reads a missing table as an empty one. So a snapshot counts
// only if its state record is not older than it, and a table only if it has as many entries as the
// state says.

#ifndef WAYBILL_STORE_DISK_READER_POOL_H_
#define WAYBILL_STORE_DISK_READER_POOL_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "store/base/function_ref.h"
#include "store/disk/header.h"
#include "store/disk/lmdb/env.h"
#include "store/disk/places.h"
#include "store/disk/store_txn.h"
#include "store/disk/tables.h"

namespace waybill::internal {

// Decisions by CheckResult and Reason: CounterOf in images/decide.h.
inline constexpr std::size_t kCounters = std::size_t{5} * 32;
using Counters = std::array<std::uint64_t, kCounters>;

enum class Lookup : std::uint8_t {
  kFound,
  kAbsent,
  kDamaged,  // a value does not verify, or LMDB contradicts itself
};

class ReaderPool {
 public:
  struct alignas(128) Slot {
    std::atomic<bool> busy{false};
    lmdb::Txn txn;
    bool live = false;  // `txn` has a snapshot; otherwise it was reset, or never begun
    std::array<MDB_cursor*, kTableCount> cursors{};  // opened when first needed
    std::uint64_t cached_txn_id = 0;                 // 0: none
    State cached_state;
    std::uint32_t counts_proven = 0;  // a bit a table: CountIsTrue in that snapshot
    Places places;                    // of the snapshot cached_txn_id; unused if that is 0
    // Written by the slot's holder only, read by all.
    std::array<std::atomic<std::uint64_t>, kCounters> counters{};
    std::atomic<bool> counted{false};  // one of them is not 0

    ~Slot() { EndTxn(); }
    void DropSnapshot();
    // What is cached is of no snapshot any more.
    void ForgetCached();
    void Forget();  // keeps only the place in LMDB's reader table
    void EndTxn();
  };

  // Holds a slot and its snapshot.
  class Lease {
   public:
    Lease() = default;
    explicit Lease(ReaderPool& pool);
    ~Lease() { Release(); }
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&&) = delete;
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    // False: the store is closed, no reader slot is free, or the header can't be trusted.
    explicit operator bool() const { return valid_; }
    // True in an invalid lease: there is a snapshot, but its header can't be trusted.
    bool has_snapshot() const { return slot_ != nullptr && slot_->live; }
    const State& state() const { return slot_->cached_state; }
    std::uint64_t seed() const { return pool_->seed_; }
    // Takes a new snapshot in the same slot and forgets what is cached. False as above.
    bool Refresh();
    void Release();
    // Moves `other` here, after Release().
    void Reacquire(Lease&& other) noexcept;

    // Of the main table; kDamaged also where there is none.
    Opened GetHeaderRecord(const Key16& key, RecordKind kind) const;
    Lookup Get(Table table, const Key16& key, Payload& payload) const;
    // Whether the table has as many entries as the state says. Asks LMDB once a snapshot.
    bool CountIsTrue(Table table) const;
    // Whether `is_it` accepts a value whose key begins with the first `bytes` of `first`. Allocates
    // nothing once the slot has its cursor.
    Lookup FindWithPrefix(Table table, const Key16& first, std::size_t bytes,
                          FunctionRef<bool(Payload)> is_it) const;
    // Whether `is_it` accepts an open pull of that key's image. Reads the keys of all.
    Lookup FindPull(const Key16& of_image, FunctionRef<bool(Payload)> is_it) const;
    // Not for decisions. A value that does not verify comes as an empty payload. False: LMDB
    // failed.
    bool ForEach(const TableSpec& spec, FunctionRef<void(Payload)> visit) const;
    MDB_txn* txn() const { return slot_->txn.get(); }
    MDB_dbi dbi(Table table) const { return pool_->handles_.of(table); }
    MDB_dbi main_dbi() const { return pool_->handles_.main; }
    // False: the lease has no lasting slot to count in.
    bool Count(std::size_t counter);

   private:
    bool Load();
    // Whether what is found may be remembered.
    bool remembers() const { return slot_->cached_txn_id != 0; }
    // nullopt: it is missing, or LMDB failed.
    std::optional<std::uint64_t> EntriesOf(Table table) const;
    // Lives as long as the slot. nullptr: LMDB failed.
    MDB_cursor* CursorOn(Table table) const;

    ReaderPool* pool_ = nullptr;
    Slot* slot_ = nullptr;
    std::unique_ptr<Slot> spare_;
    bool valid_ = false;
  };

  ReaderPool() = default;
  ~ReaderPool() { Detach(); }
  ReaderPool(const ReaderPool&) = delete;
  ReaderPool& operator=(const ReaderPool&) = delete;

  // Whether a free slot keeps its snapshot. That saves the next decision from asking LMDB for the
  // same one, but an old snapshot pins pages.
  enum class Keep : std::uint8_t {
    kNothing,          // another process commits
    kUntilNextCommit,  // this one does, and then calls DropOldSnapshots
  };

  static constexpr std::size_t kSlots = 64;

  // Lets readers in. `registered` slots get their places in LMDB's reader table now, as far as it
  // has room. LMDB takes a mutex for that, which all processes share; a decision must not wait for
  // a stopped process that holds it. There is room to remember as many places as `largest` has
  // values.
  void Attach(const lmdb::Env& env, const TableHandles& handles, std::uint64_t seed, Keep keep,
              std::size_t registered, Table largest);
  // Call after each commit. Does not wait: a slot in use may keep an old snapshot until the next
  // commit, or until it is used again.
  void DropOldSnapshots();
  // Keeps new readers out and waits for those inside. Then the environment may be closed.
  void Detach();

  Lease Acquire() { return Lease(*this); }
  // A sum over all slots. Takes no lock: a decision that ends meanwhile may be in it or not.
  Counters SumCounters() const;
  // For decisions without a lasting slot.
  void CountWithoutSlot(std::size_t counter) {
    spare_counters_[counter].fetch_add(1, std::memory_order_relaxed);
  }

 private:
  std::optional<PlacesMemory> places_;  // while attached
  std::array<Slot, kSlots> slots_;
  const lmdb::Env* env_ = nullptr;
  TableHandles handles_;
  std::uint64_t seed_ = 0;
  Keep keep_ = Keep::kNothing;
  std::atomic<std::size_t> registered_{0};
  std::atomic<bool> attached_{false};
  std::atomic<std::uint64_t> spares_{0};
  // The counters of spare slots, which do not last.
  std::array<std::atomic<std::uint64_t>, kCounters> spare_counters_{};
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DISK_READER_POOL_H_
