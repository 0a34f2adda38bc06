// The counters of the store's life, a record of the main table (schema/v8/counters.fbs). No digest
// covers it: it opens nothing, and whoever finds it damaged begins at 0.

#ifndef WAYBILL_STORE_NODE_RECORDS_COUNTERS_RECORD_H_
#define WAYBILL_STORE_NODE_RECORDS_COUNTERS_RECORD_H_

#include <lmdb.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "store/engine/database/envelope.h"
#include "store/engine/database/key.h"
#include "waybill/metrics.h"

namespace waybill::internal {

struct KeptCounters {
  StoreCounters counters;
  std::optional<OpeningSummary> opening;

  friend bool operator==(const KeptCounters&, const KeptCounters&) = default;
};

std::vector<std::uint8_t> EncodeCounters(const KeptCounters& kept);
// nullopt: not a FlatBuffer of that table, or a list of another length.
std::optional<KeptCounters> DecodeCounters(std::span<const std::uint8_t> payload);

// The stored value under kCountersKey; nullopt: it does not verify.
std::optional<KeptCounters> OpenCounters(Value value);

struct FoundCounters {
  std::optional<KeptCounters> kept;
  bool damaged = false;  // there is a record, but it does not verify
};
FoundCounters FindCounters(MDB_txn* txn, MDB_dbi main);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_NODE_RECORDS_COUNTERS_RECORD_H_
