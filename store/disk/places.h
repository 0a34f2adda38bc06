// Where one snapshot has the values that were looked up, so that the same question does not search
// LMDB again: in a snapshot a value stays where it is in the map, and a missing key stays missing.
// A reader slot has one such table, so threads never share one, and clears it before it reads
// another snapshot.
// A place only says where a value is: it must be verified under its key before each use, as after a
// search. A missing key is remembered only if the table's count proved the search right; the whole
// key is compared.
//
// A set of places is one cache line, chosen by the key, which is a seeded hash. Generations make
// clearing cost nothing. A table has 4,096 places (128 KiB), more if the store has more records.

#ifndef WAYBILL_STORE_DISK_PLACES_H_
#define WAYBILL_STORE_DISK_PLACES_H_

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "store/disk/tables.h"
#include "waybill/limits.h"

namespace waybill::internal {

// What was looked for under a key.
enum class Search : std::uint8_t {
  kKey,
  kPrefix,  // any key that begins like this one; only remembered if there is none
};

struct Place {
  Key16 key;
  const std::byte* value = nullptr;  // nullptr: missing
  std::uint32_t generation = 0;      // 0: never used
  std::uint32_t what = 0;            // 24 bits: the number; 4: the table; 4: the search

  static constexpr std::uint32_t kNumberMask = (std::uint32_t{1} << 24) - 1;
  // Of a value, or of a missing prefix, its size.
  std::uint32_t number() const { return what & kNumberMask; }
  Value bytes() const { return {value, number()}; }
};

struct alignas(64) PlaceSet {
  std::array<Place, 2> places;
};
static_assert(sizeof(PlaceSet) == 64 && kTableCount <= 16 &&
              kMaxValueBytes + kEnvelopeBytes + 8 < Place::kNumberMask);

class Places {
 public:
  // `count` sets, a power of two, zeros at first. None: remembers nothing.
  void Use(PlaceSet* sets, std::size_t count) {
    sets_ = sets;
    count_ = count;
    Clear();
  }

  void Clear() {
    if (++generation_ != 0) return;
    if (count_ != 0) std::memset(static_cast<void*>(sets_), 0, count_ * sizeof(PlaceSet));
    generation_ = 1;
  }

  // nullptr: not remembered.
  const Place* Find(Search search, Table table, const Key16& key) const {
    if (count_ == 0) return nullptr;
    const std::uint32_t what = What(search, table);
    for (const Place& place : SetOf(key, what).places) {
      if (IsOf(place, what, key)) return &place;
    }
    return nullptr;
  }

  void Remember(Search search, Table table, const Key16& key, Value value) {
    if (value.data() != nullptr) Put(key, value.data(), What(search, table), value.size());
  }
  void RememberMissing(Search search, Table table, const Key16& key, std::size_t number) {
    Put(key, nullptr, What(search, table), number);
  }

 private:
  static std::uint32_t What(Search search, Table table) {
    return static_cast<std::uint32_t>(search) << 28 | static_cast<std::uint32_t>(table) << 24;
  }

  // Several tables may have the same key.
  PlaceSet& SetOf(const Key16& key, std::uint32_t what) const {
    std::uint64_t word = 0;
    std::memcpy(&word, key.bytes.data(), sizeof(word));
    return sets_[(word + std::uint64_t{what >> 24} * 0x2d) & (count_ - 1)];
  }

  bool IsOf(const Place& place, std::uint32_t what, const Key16& key) const {
    return place.generation == generation_ && (place.what & ~Place::kNumberMask) == what &&
           std::memcmp(&place.key, &key, sizeof(key)) == 0;
  }

  void Put(const Key16& key, const std::byte* value, std::uint32_t what, std::size_t number) {
    if (count_ == 0 || number > Place::kNumberMask) return;
    auto& [first, second] = SetOf(key, what).places;
    // Of two that are taken, the key says which one it drives out: always the same one, so that a
    // key that keeps coming leaves the other alone.
    bool takes_second = (key.bytes[7] & std::byte{1}) != std::byte{0};
    if (IsOf(first, what, key) || first.generation != generation_) {
      takes_second = false;
    } else if (IsOf(second, what, key) || second.generation != generation_) {
      takes_second = true;
    }
    Place& place = takes_second ? second : first;
    place = {key, value, generation_, what | static_cast<std::uint32_t>(number)};
  }

  PlaceSet* sets_ = nullptr;
  std::size_t count_ = 0;
  std::uint32_t generation_ = 1;
};

// The memory of many tables, for so many records. The system adds pages as they are used.
class PlacesMemory {
 public:
  PlacesMemory(std::size_t tables, std::uint64_t records)
      : sets_(std::bit_ceil(std::clamp<std::uint64_t>(records, 2048, 65'536))),
        bytes_(tables * sets_ * sizeof(PlaceSet)),
        memory_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~PlacesMemory() {
    if (memory_ != MAP_FAILED) munmap(memory_, bytes_);
  }
  PlacesMemory(const PlacesMemory&) = delete;
  PlacesMemory& operator=(const PlacesMemory&) = delete;

  void Give(std::size_t table, Places& places) const {
    if (memory_ != MAP_FAILED) places.Use(static_cast<PlaceSet*>(memory_) + table * sets_, sets_);
  }

 private:
  std::size_t sets_;  // of one table
  std::size_t bytes_;
  void* memory_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DISK_PLACES_H_
