// Read transactions that are made once and renewed: a decision takes a slot that nobody holds,
// reads one snapshot and gives the slot back. No lock, no allocation, no waiting; slots are a cache
// line's width apart. Only when all slots are taken a reader is made for the occasion. In the owner
// a slot keeps its snapshot until the next commit: renewing costs LMDB a search for each table that
// is used.
//
// What LMDB says is believed under two conditions (LMDB's reader race, and its habit of reading a
// missing table as an empty one): the state record is not older than the snapshot, and each table
// holds as many entries as the state says.

#ifndef WAYBILL_STORE_DATABASE_READER_POOL_H_
#define WAYBILL_STORE_DATABASE_READER_POOL_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "store/base/function_ref.h"
#include "store/database/header.h"
#include "store/database/store_txn.h"
#include "store/database/tables.h"
#include "store/lmdb/env.h"

namespace waybill::internal {

inline constexpr std::size_t kCounters = 5;

enum class Lookup : std::uint8_t {
  kFound,
  kAbsent,
  kDamaged,  // there is something that does not verify, or LMDB contradicts itself
};

class ReaderPool {
 public:
  struct alignas(128) Slot {
    std::atomic<bool> busy{false};
    lmdb::Txn txn;
    bool live = false;                     // txn has a snapshot; otherwise it was reset, or is none
    std::array<MDB_cursor*, 3> cursors{};  // over records, intents, handlers; when first needed
    std::uint64_t cached_txn_id = 0;       // 0: none
    State cached_state;
    std::uint32_t counts_proven = 0;  // one bit a table: CountIsTrue, in cached_txn_id's snapshot
    // Owned by whoever holds the slot; read by anyone.
    std::array<std::atomic<std::uint64_t>, kCounters> counters{};

    ~Slot() { EndTxn(); }
    void DropSnapshot();
    void Forget();  // all but the place in the reader table
    void EndTxn();
  };

  // A snapshot, for as long as it lives.
  class Lease {
   public:
    Lease() = default;
    ~Lease() { Release(); }
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&&) = delete;
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    // False: the store is closed, out of reader slots, or its header can't be trusted.
    explicit operator bool() const { return valid_; }
    // Whether a snapshot was had: one that is not valid has a header that can't be trusted.
    bool has_snapshot() const { return slot_ != nullptr && slot_->live; }
    const State& state() const { return slot_->cached_state; }
    std::uint64_t seed() const { return pool_->seed_; }
    // A newer snapshot in the same slot, nothing remembered. False as above.
    bool Refresh();
    void Release();
    // In place of this lease, which was released.
    void Reacquire(Lease&& other) noexcept;

    Lookup Get(Table table, const Key16& key, Payload& payload) const;
    // Of kPulled, in one search: where there is no value under the key, whether one is there whose
    // key begins with the same kRefKeyBytes. Allocates nothing once the slot has its cursor.
    Lookup GetCopy(const Key16& key, Payload& payload, bool& has_others) const;
    // Whether the table holds as many entries as the state says.
    bool CountIsTrue(Table table) const;  // asks LMDB once a snapshot
    // Of kPulled, kIntents or kRuntimeHandlers: the first value whose key begins with the first
    // `bytes` of `first` and that `is_it` takes. Allocates nothing once the slot has its cursor.
    Lookup FindWithPrefix(Table table, const Key16& first, std::size_t bytes,
                          FunctionRef<bool(Payload)> is_it) const;
    // For what takes no part in a decision. What does not verify comes as an empty payload. False:
    // LMDB refuses.
    bool ForEach(const TableSpec& spec, FunctionRef<void(Payload)> visit) const;
    MDB_txn* txn() const { return slot_->txn.get(); }
    MDB_dbi dbi(Table table) const { return pool_->handles_.of(table); }
    MDB_dbi main_dbi() const { return pool_->handles_.main; }
    // False: there is no slot to count in.
    bool Count(std::size_t counter);

   private:
    friend class ReaderPool;
    bool Load();
    // Lives as long as the slot; null where LMDB refuses one.
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

  // Who drops the snapshots that slots keep after a commit. A snapshot that is kept saves the next
  // decision from asking LMDB for the same one, but pins pages as soon as it is an old one.
  enum class Keep : std::uint8_t {
    kNothing,          // a slot without a holder keeps none: commits are made elsewhere
    kUntilNextCommit,  // whoever commits calls DropOldSnapshots
  };

  static constexpr std::size_t kSlots = 64;

  // Readers can come from now on. So many slots get their place in LMDB's reader table at once, as
  // far as it has room: LMDB takes a mutex for that which all processes share, and a decision
  // should not wait for one that holds it and is stopped.
  void Attach(const lmdb::Env& env, const TableHandles& handles, std::uint64_t seed, Keep keep,
              std::size_t registered);
  // After each commit. Waits for nobody: a slot that is held now may keep an old snapshot until the
  // next commit, or until it is held again.
  void DropOldSnapshots();
  // Turns new readers away and waits for those inside. Then the environment may be closed.
  void Detach();

  Lease Acquire();
  std::uint64_t Counter(std::size_t counter) const;
  // For a decision that had no slot.
  void CountWithoutSlot(std::size_t counter) {
    spare_counters_[counter].fetch_add(1, std::memory_order_relaxed);
  }

 private:
  std::array<Slot, kSlots> slots_;
  const lmdb::Env* env_ = nullptr;
  TableHandles handles_;
  std::uint64_t seed_ = 0;
  Keep keep_ = Keep::kNothing;
  std::atomic<std::size_t> registered_{0};
  std::atomic<bool> attached_{false};
  std::atomic<std::uint64_t> spares_{0};
  // Of spare slots, which do not last.
  std::array<std::atomic<std::uint64_t>, kCounters> spare_counters_{};
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DATABASE_READER_POOL_H_
