#include "store/disk/reader_pool.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

namespace waybill::internal {

namespace {

// Each thread starts its search for a slot at another one.
std::size_t ThreadNumber() {
  static std::atomic<std::size_t> next{0};
  thread_local const std::size_t mine = next.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

// Whether `value` verifies as one of the table. `payload` is empty if it does not.
bool OpenValue(const TableSpec& spec, const Key16& key, Value value, Payload& payload) {
  const Opened opened = OpenEnvelope(key, value, spec.kind, spec.form);
  payload = opened.payload;
  return opened.state == EnvelopeState::kSound;
}

Lookup Open(Table table, const Key16& key, Value value, Payload& payload) {
  return OpenValue(SpecOf(table), key, value, payload) ? Lookup::kFound : Lookup::kDamaged;
}

// The newest commit that the file's meta pages tell of; 0: none. If it is `id`, a transaction that
// was renewed with that ID has that snapshot and no newer one: the meta page that LMDB copied is
// not written again before commit id + 2.
std::uint64_t NewestIn(const lmdb::Env& env) {
  std::atomic_thread_fence(std::memory_order_acquire);
  MDB_envinfo info{};
  return mdb_env_info(env.get(), &info) == MDB_SUCCESS ? info.me_last_txnid : 0;
}

}  // namespace

void ReaderPool::Slot::ForgetCached() {
  cached_txn_id = 0;
  counts_proven = 0;
  places.Clear();
}

void ReaderPool::Slot::Forget() {
  for (MDB_cursor*& cursor : cursors) {
    if (cursor != nullptr) mdb_cursor_close(std::exchange(cursor, nullptr));
  }
  DropSnapshot();
  ForgetCached();
}

void ReaderPool::Slot::EndTxn() {
  Forget();
  txn.Abort();
}

void ReaderPool::Slot::DropSnapshot() {
  if (live) txn.Reset();
  live = false;
}

void ReaderPool::Attach(const lmdb::Env& env, const TableHandles& handles, std::uint64_t seed,
                        Keep keep, std::size_t registered, Table largest) {
  env_ = &env;
  handles_ = handles;
  seed_ = seed;
  keep_ = keep;
  std::uint64_t records = 0;
  std::size_t done = 0;
  for (; done < std::min(registered, kSlots); ++done) {
    lmdb::Txn& txn = slots_[done].txn;
    if (txn.BeginRead(env) != MDB_SUCCESS) break;
    if (done == 0) {
      records = lmdb::EntriesOf(txn.get(), handles.main, SpecOf(largest).name).value_or(0);
    }
    txn.Reset();
  }
  places_.emplace(kSlots, records);
  for (std::size_t i = 0; i < kSlots; ++i) places_->Give(i, slots_[i].places);
  registered_.store(done, std::memory_order_relaxed);
  attached_.store(true, std::memory_order_seq_cst);
}

void ReaderPool::Detach() {
  attached_.store(false, std::memory_order_seq_cst);
  for (Slot& slot : slots_) {
    while (slot.busy.exchange(true, std::memory_order_seq_cst)) std::this_thread::yield();
    slot.EndTxn();
    slot.places.Use(nullptr, 0);
    slot.busy.store(false, std::memory_order_seq_cst);
  }
  while (spares_.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
  places_.reset();
}

void ReaderPool::DropOldSnapshots() {
  for (Slot& slot : slots_) {
    if (slot.busy.exchange(true, std::memory_order_seq_cst)) continue;
    slot.DropSnapshot();
    slot.busy.store(false, std::memory_order_release);
  }
}

// Delegates, so that an exception behind it runs the destructor, which gives the slot back.
ReaderPool::Lease::Lease(ReaderPool& pool) : Lease() {
  if (!pool.attached_.load(std::memory_order_seq_cst)) return;
  const std::size_t first = ThreadNumber();
  const std::size_t registered = pool.registered_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < kSlots && slot_ == nullptr; ++i) {
    Slot& slot = pool.slots_[i < registered ? (first + i) % registered : i];
    if (!slot.busy.exchange(true, std::memory_order_seq_cst)) slot_ = &slot;
  }
  pool_ = &pool;
  if (slot_ == nullptr) {
    spare_ = std::make_unique<Slot>();
    pool.spares_.fetch_add(1, std::memory_order_seq_cst);
    slot_ = spare_.get();
  }
  // Detach clears the flag before it looks at the slots, so one of the two sees the other.
  if (pool.attached_.load(std::memory_order_seq_cst)) {
    valid_ = Load();
  } else {
    Release();
  }
}

Counters ReaderPool::SumCounters() const {
  Counters sums;
  for (std::size_t i = 0; i < kCounters; ++i) {
    sums[i] = spare_counters_[i].load(std::memory_order_relaxed);
  }
  for (const Slot& slot : slots_) {
    if (!slot.counted.load(std::memory_order_relaxed)) continue;
    for (std::size_t i = 0; i < kCounters; ++i) {
      sums[i] += slot.counters[i].load(std::memory_order_relaxed);
    }
  }
  return sums;
}

ReaderPool::Lease::Lease(Lease&& other) noexcept { Reacquire(std::move(other)); }

void ReaderPool::Lease::Release() {
  valid_ = false;
  if (slot_ == nullptr) return;
  Slot* const slot = std::exchange(slot_, nullptr);
  if (spare_ != nullptr) {
    spare_.reset();
    pool_->spares_.fetch_sub(1, std::memory_order_seq_cst);
    return;
  }
  // Without a snapshot the pool may be between Detach and Attach, which writes keep_.
  if (slot->live && (pool_->keep_ == Keep::kNothing || slot->cached_txn_id == 0)) {
    slot->DropSnapshot();
  }
  slot->busy.store(false, std::memory_order_release);
}

void ReaderPool::Lease::Reacquire(Lease&& other) noexcept {
  Release();
  pool_ = std::exchange(other.pool_, nullptr);
  slot_ = std::exchange(other.slot_, nullptr);
  spare_ = std::move(other.spare_);
  valid_ = std::exchange(other.valid_, false);
}

bool ReaderPool::Lease::Refresh() {
  if (slot_ == nullptr) return false;
  slot_->Forget();
  valid_ = Load();
  return valid_;
}

bool ReaderPool::Lease::Load() {
  Slot& slot = *slot_;
  if (slot.live && slot.cached_txn_id != 0 && NewestIn(*pool_->env_) == slot.cached_txn_id) {
    return true;
  }
  slot.DropSnapshot();
  const int rc = slot.txn ? slot.txn.Renew() : slot.txn.BeginRead(*pool_->env_);
  if (rc != MDB_SUCCESS) {
    slot.EndTxn();
    return false;
  }
  slot.live = true;
  const std::uint64_t id = slot.txn.id();
  const std::uint64_t newest = NewestIn(*pool_->env_);
  // Somebody wrote older meta pages, or none, over the file: LMDB would end the process.
  if (newest < id) return false;
  if (slot.cached_txn_id == id && newest == id) return true;
  slot.ForgetCached();
  const Opened opened = GetHeaderRecord(kStateKey, RecordKind::kState);
  if (opened.state != EnvelopeState::kSound) return false;
  const auto state = DecodeState(opened.payload);
  if (!state || state->lmdb_txn_id < id) return false;
  slot.cached_state = *state;
  // A preempted reader may see a newer snapshot than its ID. Such a state is not cached.
  if (state->lmdb_txn_id == id) slot.cached_txn_id = id;
  return true;
}

Opened ReaderPool::Lease::GetHeaderRecord(const Key16& key, RecordKind kind) const {
  MDB_val k = lmdb::ToVal(key.span());
  MDB_val v{};
  if (mdb_get(slot_->txn.get(), pool_->handles_.main, &k, &v) != MDB_SUCCESS) return {};
  return OpenEnvelope(key, lmdb::FromVal(v), kind, Newest().header);
}

Lookup ReaderPool::Lease::Get(Table table, const Key16& key, Payload& payload) const {
  Places& places = slot_->places;
  if (const Place* const place = places.Find(Search::kKey, table, key)) {
    if (place->value == nullptr) return Lookup::kAbsent;
    return Open(table, key, place->bytes(), payload);
  }
  MDB_val k = lmdb::ToVal(key.span());
  MDB_val v{};
  const int rc = mdb_get(txn(), dbi(table), &k, &v);
  if (rc == MDB_NOTFOUND) {
    if (!CountIsTrue(table)) return Lookup::kDamaged;
    if (remembers()) places.RememberMissing(Search::kKey, table, key, 0);
    return Lookup::kAbsent;
  }
  if (rc != MDB_SUCCESS) return Lookup::kDamaged;
  if (remembers()) places.Remember(Search::kKey, table, key, lmdb::FromVal(v));
  return Open(table, key, lmdb::FromVal(v), payload);
}

MDB_cursor* ReaderPool::Lease::CursorOn(Table table) const {
  MDB_cursor*& cursor = slot_->cursors[Index(table)];
  int rc = MDB_SUCCESS;
  if (cursor == nullptr) {
    rc = mdb_cursor_open(txn(), dbi(table), &cursor);
  } else {
    rc = mdb_cursor_renew(txn(), cursor);
  }
  return rc == MDB_SUCCESS ? cursor : nullptr;
}

bool ReaderPool::Lease::ForEach(const TableSpec& spec, FunctionRef<void(Payload)> visit) const {
  bool is_sound = true;
  const Key16 first = FirstKeyOf(spec.table);
  const int rc =
      lmdb::ForEach(txn(), dbi(spec.table), first.span(), [&](lmdb::Bytes key, Value value) {
        is_sound = key.size() == sizeof(Key16);
        if (!is_sound) return false;
        Payload payload;
        OpenValue(spec, Key16::From(key.first<16>()), value, payload);
        visit(payload);
        return true;
      });
  return is_sound && rc == MDB_SUCCESS;
}

Lookup ReaderPool::Lease::FindWithPrefix(Table table, const Key16& first, std::size_t bytes,
                                         FunctionRef<bool(Payload)> is_it) const {
  Places& places = slot_->places;
  if (const Place* const place = places.Find(Search::kPrefix, table, first)) {
    if (place->number() == bytes) return Lookup::kAbsent;
  }
  MDB_cursor* const cursor = CursorOn(table);
  if (cursor == nullptr) return Lookup::kDamaged;
  lmdb::Bytes key = first.span();
  lmdb::Bytes value;
  int rc = lmdb::CursorGet(cursor, &key, &value, MDB_SET_RANGE);
  bool has_any = false;
  while (rc == MDB_SUCCESS && key.size() == first.bytes.size() &&
         std::memcmp(key.data(), first.bytes.data(), bytes) == 0) {
    has_any = true;
    Payload payload;
    if (!OpenValue(SpecOf(table), Key16::From(key.first<16>()), value, payload)) {
      return Lookup::kDamaged;
    }
    if (is_it(payload)) return Lookup::kFound;
    rc = lmdb::CursorGet(cursor, &key, &value, MDB_NEXT);
  }
  if (rc != MDB_SUCCESS && rc != MDB_NOTFOUND) return Lookup::kDamaged;
  if (!CountIsTrue(table)) return Lookup::kDamaged;
  if (remembers() && !has_any) places.RememberMissing(Search::kPrefix, table, first, bytes);
  return Lookup::kAbsent;
}

Lookup ReaderPool::Lease::FindPull(const Key16& of_image, FunctionRef<bool(Payload)> is_it) const {
  MDB_cursor* const cursor = CursorOn(kInMain);
  if (cursor == nullptr) return Lookup::kDamaged;
  const Key16 first = FirstKeyOf(kInMain);
  lmdb::Bytes at = first.span();
  lmdb::Bytes value;
  int rc = lmdb::CursorGet(cursor, &at, &value, MDB_SET_RANGE);
  std::uint64_t seen = 0;
  for (; rc == MDB_SUCCESS && at.size() == sizeof(Key16);
       rc = lmdb::CursorGet(cursor, &at, &value, MDB_NEXT)) {
    const Key16 key = Key16::From(at.first<16>());
    ++seen;
    if (!AreOfOneImage(key, of_image)) continue;
    Payload payload;
    if (!OpenValue(SpecOf(kInMain), key, value, payload)) return Lookup::kDamaged;
    if (is_it(payload)) return Lookup::kFound;
  }
  // A separator that is damaged could hide a leaf.
  const bool all = rc == MDB_NOTFOUND && seen == state().digest(kInMain).count;
  return all ? Lookup::kAbsent : Lookup::kDamaged;
}

std::optional<std::uint64_t> ReaderPool::Lease::EntriesOf(Table table) const {
  if (!LiesInMain(table)) return lmdb::EntriesOf(txn(), main_dbi(), SpecOf(table).name);
  MDB_stat stat{};
  const std::size_t names = pool_->handles_.NamesInMain();
  if (mdb_stat(txn(), main_dbi(), &stat) != MDB_SUCCESS || stat.ms_entries < names) return {};
  return stat.ms_entries - names;
}

bool ReaderPool::Lease::CountIsTrue(Table table) const {
  const std::uint32_t bit = std::uint32_t{1} << Index(table);
  if (remembers() && (slot_->counts_proven & bit) != 0) return true;
  const auto entries = EntriesOf(table);
  if (!entries || *entries != state().digest(table).count) return false;
  if (remembers()) slot_->counts_proven |= bit;
  return true;
}

bool ReaderPool::Lease::Count(std::size_t counter) {
  if (slot_ == nullptr || spare_ != nullptr) return false;
  // Only the slot's holder writes.
  auto& mine = slot_->counters[counter];
  mine.store(mine.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  slot_->counted.store(true, std::memory_order_relaxed);
  return true;
}

}  // namespace waybill::internal
