#include "store/node/upkeep/carry_over.h"

#include <utility>

#include "store/base/try.h"
#include "store/images/open_pulls.h"
#include "store/images/pull_row.h"
#include "store/images/revoked.h"
#include "store/node/records/typed_tables.h"

namespace waybill::internal {

namespace {

// An existing value under the key stays.
Result<void> CarryValue(StoreTxn& txn, const TableSpec& spec, Payload payload) {
  const auto key = spec.key_of(payload, txn.seed());
  if (!key) return {};
  TRY(txn.PutNew(spec.table, *key, payload));
  return {};
}

Result<void> CarryRow(Images& images, Payload payload, const CarryRules& rules, Carried& carried) {
  auto row = DecodeImage(payload);
  if (!row) return {};
  if (row->pulled) {
    ++carried.records;
    if (!rules.keeps_credentials(*row)) {
      row->pulled->entries.clear();
      ++carried.records_without_credentials;
    }
  }
  if (row->preloaded && !rules.keeps_preloaded(*row)) row->preloaded.reset();
  rules.leave_known(*row);
  // How long it is retained begins anew.
  if (row->absent != 0) row->absent = images.txn().clocks().RanSeconds();
  return images.Put(*std::move(row), Images::Confirms::kYes);
}

Result<void> CarryOne(Images& images, const TableSpec& spec, Payload payload,
                      const CarryRules& rules, Carried& carried) {
  StoreTxn& txn = images.txn();
  switch (spec.table) {
    case Table::kImages:
      return CarryRow(images, payload, rules, carried);
    case Table::kPreloaded:  // all or none, since they open images
      return rules.observed_preloaded ? CarryValue(txn, spec, payload) : Result<void>();
    case Table::kIntents: {
      const auto pull = DecodeUnresolvedPull(payload);
      return pull ? CarryPull(txn, *pull) : Result<void>();
    }
    case Table::kStreamingTokens:  // an older copy has some that opened a stream since
    case Table::kHostIds:          // CarryHostIds
      return {};
    case Table::kQuarantine:  // these only close images, or open none by themselves
    case Table::kImported:
    case Table::kRuntimeHandlers:
    case Table::kRevocations:
      break;
  }
  return CarryValue(txn, spec, payload);
}

}  // namespace

Result<Carried> CarryOver(Images& images, const Salvaged& salvaged, const CarryRules& rules) {
  StoreTxn& txn = images.txn();
  Carried carried;
  // First, so that no record brings back what was forgotten.
  TRY(CarryRevocations(txn, salvaged));
  for (const TableSpec& spec : kTables) {
    for (const auto& payload : salvaged.of(spec.table)) {
      TRY(CarryOne(images, spec, payload, rules, carried));
    }
  }
  carried.intents = salvaged.of(Table::kIntents).size();
  CountAllAsGiven(txn);
  // A list that was drawn before may miss what was lost.
  NoteEvidenceRemoved(txn);
  return carried;
}

Result<void> CarryRevocations(StoreTxn& txn, const Salvaged& salvaged) {
  for (Revocation& one : salvaged.All(Table::kRevocations, DecodeRevocation)) {
    one.unfinished = false;  // records are stored without it
    // The other store may count from another beginning: its time begins anew.
    one.ran = static_cast<std::uint64_t>(txn.clocks().ran.count());
    TRY(PutRevocation(txn, one));
  }
  return {};
}

Result<void> CarryHostIds(StoreTxn& txn, const Salvaged& salvaged) {
  for (const auto& payload : salvaged.of(Table::kHostIds)) {
    TRY(CarryValue(txn, SpecOf(Table::kHostIds), payload));
  }
  return {};
}

}  // namespace waybill::internal
