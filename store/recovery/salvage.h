// What a database file holds that verifies, of any schema version, and putting that into another
// one.

#ifndef WAYBILL_STORE_RECOVERY_SALVAGE_H_
#define WAYBILL_STORE_RECOVERY_SALVAGE_H_

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "store/base/files.h"
#include "store/database/header.h"
#include "store/database/store_txn.h"
#include "waybill/report.h"
#include "waybill/result.h"

namespace waybill::internal {

struct Salvaged {
  std::optional<Identity> identity;
  std::vector<TrustEvent> journal;
  // Payloads of the values that verify, by table, in key order.
  std::array<std::vector<std::vector<std::uint8_t>>, kTableCount> payloads;
  // Over those, and over those that do not, by the checksum they carry and by the one they should.
  std::array<TableDigest, kTableCount> sound;
  std::array<TableDigest, kTableCount> damaged_stored;
  std::array<TableDigest, kTableCount> damaged_computed;

  // Whether the digest shows that the values that verify are current and, with the damaged ones,
  // all.
  bool Proves(Table table, const State& state) const;
};

// Reads the tree of meta page `which`. kIo only: damage leaves values out.
Result<Salvaged> Salvage(const Fd& file, int which, OnReadError on_error = OnReadError::kFail);

// What may be carried over, beside what only closes (intents, quarantine entries, imported files,
// runtime handlers).
struct CarryRules {
  // Whether a record keeps its credentials.
  std::function<bool(const ImagePulledRecord&)> keeps_credentials;
  bool preloaded = false;
};
struct Carried {
  std::uint64_t records = 0;
  std::uint64_t records_without_credentials =
      0;  // of those, where there were some or may have been
  std::uint64_t intents = 0;
};
Result<Carried> CarryOver(StoreTxn& txn, const Salvaged& salvaged, const CarryRules& rules);

// Host ID ranges, as they are: opening reconciles them. What is under a key already stays.
Result<void> CarryIdRanges(StoreTxn& txn, const Salvaged& salvaged);
// Whether every range of `state` is among them, of whichever pod.
bool HasAllIdRanges(const Salvaged& salvaged, const State& state);

// A second name for `file`, which is data.mdb in `directory`, under quarantine/: by its time of
// change and inode, so that whoever begins anew finds his own. Returns it.
Result<std::filesystem::path> KeepAside(const std::filesystem::path& directory, const Fd& file);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECOVERY_SALVAGE_H_
