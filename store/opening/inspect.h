// Checks a database file without LMDB: walks its pages, reads every value's envelope and content,
// the header and the digests. Used by the owner before it opens LMDB, by an observer without an
// owner, and by Verify.

#ifndef WAYBILL_STORE_OPENING_INSPECT_H_
#define WAYBILL_STORE_OPENING_INSPECT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/base/files.h"
#include "store/disk/header.h"
#include "store/disk/page_walk/page_check.h"
#include "store/disk/trust.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// What every write to a database file changes. The time alone is not enough: two writes may fall
// into one tick of the kernel's clock.
struct FileSight {
  FileId id;
  std::int64_t bytes = 0;
  std::int64_t written = 0;  // nanoseconds since 1970
  std::uint64_t metas = 0;   // a hash of both meta pages: each commit changes one

  // Whether any later write will show: within the same tick one beside the meta pages would not.
  bool IsPast() const;
  friend bool operator==(const FileSight&, const FileSight&) = default;
};
// kIo: the file can't be read.
Result<FileSight> LookAtFile(const Fd& file, OnReadError on_error = OnReadError::kFail);

struct Inspection {
  // Every rule holds: LMDB may open the file, and no record is missing, stale or damaged.
  bool sound = false;
  // The file changed while it was read, so a finding may describe a mixture of two states.
  bool moved = false;
  FileSight file;  // as it was before
  // The identity record verifies and has a newer schema: leave the file alone, whatever else is
  // wrong.
  bool newer_schema = false;
  std::uint64_t txn_id = 0;  // of the newer meta page
  int newer_meta = -1;       // which one that is; −1: neither
  std::array<MetaSummary, 2> meta;
  // From the tree of each meta page; nullopt: it does not verify, or this is a compact copy.
  std::array<std::optional<State>, 2> states_by_meta;
  std::uint32_t page_bytes = 0;
  std::uint64_t pages = 0;
  std::uint64_t values = 0;
  std::optional<Identity> identity;
  std::optional<State> state;
  std::vector<std::string> findings;

  // ": <the first finding>", or nothing.
  std::string Why() const { return findings.empty() ? "" : ": " + findings.front(); }
};

enum class FileIs : std::uint8_t {
  kStore,
  // Has transaction IDs 0 and 1, and the header of the original: valid in backup/ only.
  kCompactCopy,
};

// kIo: the file can't be read. kInterrupted: `progress` (bytes) returned false. Any content is a
// finding, not an error.
Result<Inspection> InspectFile(const Fd& file, FileIs file_is = FileIs::kStore,
                               OnReadError on_error = OnReadError::kFail,
                               const Progress& progress = {});

// Of a store's file, what meta page `which` (0 or 1) names, as if the other one named nothing: it
// may be of a commit that was cut short. `newer_meta` is `which`.
Result<Inspection> InspectTreeOf(const Fd& file, int which,
                                 OnReadError on_error = OnReadError::kFail);

// The values that verify of a database file of any schema version.
struct Salvaged {
  std::optional<Identity> identity;
  std::optional<State> state;  // as an inspection of that tree read it
  Journal journal;
  // Payloads of the values that verify, by table, in key order.
  std::array<std::vector<std::vector<std::uint8_t>>, kTableCount> payloads;
  // Of the values that verify; of the damaged ones by the checksum that they carry; and of the
  // damaged ones by the checksum that they should carry.
  std::array<TableDigest, kTableCount> sound;
  std::array<TableDigest, kTableCount> damaged_stored;
  std::array<TableDigest, kTableCount> damaged_computed;

  const std::vector<std::vector<std::uint8_t>>& of(Table table) const {
    return payloads[Index(table)];
  }
  // The values of a table, without those that `decode` refuses.
  template <typename T>
  std::vector<T> All(Table table, std::optional<T> (*decode)(Payload)) const {
    std::vector<T> all;
    for (const auto& payload : of(table)) {
      if (auto value = decode(payload)) all.push_back(*std::move(value));
    }
    return all;
  }
  Purpose purpose() const { return identity ? identity->purpose : Purpose::kUnknown; }
  std::uint64_t sequence() const { return state ? state->commit_sequence : 0; }
  // Whether the verified values are all of the table.
  bool Has(Table table) const { return state && sound[Index(table)] == state->digest(table); }
  // Whether the digest proves the verified values current and, with the damaged ones, complete.
  bool Proves(Table table) const;
};

// Reads the tree of meta page `which`, which has that state; −1: there is none to read. The only
// error is kIo; damaged values are left out.
Result<Salvaged> Salvage(const Fd& file, int which, const std::optional<State>& state,
                         OnReadError on_error = OnReadError::kFail);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OPENING_INSPECT_H_
