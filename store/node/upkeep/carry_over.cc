#include "store/node/upkeep/carry_over.h"

#include <utility>

#include "store/base/try.h"
#include "store/node/pulls/open_pulls.h"
#include "store/node/records/evidence_tables.h"
#include "store/node/records/open_pulls_table.h"
#include "store/node/records/pulled_record.h"
#include "store/node/records/revocations_table.h"
#include "store/node/records/typed_tables.h"

namespace waybill::internal {

namespace {

// Opening reconciles them.
bool IsOfIdRanges(Table table) {
  return table == Table::kUsernsMappings || table == Table::kUsernsBlocks ||
         table == Table::kUsernsHeld;
}

// An existing value under the key stays.
Result<void> CarryValue(StoreTxn& txn, const TableSpec& spec, Payload payload) {
  const auto key = spec.key_of(payload, txn.seed());
  if (!key) return {};
  TRY(txn.PutNew(spec.table, *key, payload));
  return {};
}

Result<void> CarryRecord(StoreTxn& txn, Payload payload, const CarryRules& rules,
                         Carried& carried) {
  auto record = DecodePulledRecordValue(payload);
  if (!record) return {};
  if (!rules.keeps_credentials(*record)) {
    record->credential_mapping.clear();
    ++carried.records_without_credentials;
  }
  ++carried.records;
  record->absent_ran = 0;  // how long it is remembered begins anew, likewise below
  return StoreRecord(txn, std::move(*record));
}

Result<void> CarryOne(StoreTxn& txn, const TableSpec& spec, Payload payload,
                      const CarryRules& rules, Carried& carried) {
  switch (spec.table) {
    case Table::kPulled:
      return CarryRecord(txn, payload, rules, carried);
    case Table::kPreloaded:  // all or none, since they open images; likewise below
      return rules.preloaded ? CarryValue(txn, spec, payload) : Result<void>();
    case Table::kSpellings:  // they say which record an image has
      return rules.spellings ? CarryValue(txn, spec, payload) : Result<void>();
    case Table::kLedger: {
      auto entry = DecodeLedgerEntry(payload);
      if (!entry || !rules.keeps_entry(*entry)) return {};
      if (entry->absent_since) entry->absent_ran = txn.clocks().RanSeconds();
      return CarryValue(txn, spec, EncodeLedgerEntry(*entry));
    }
    case Table::kIntents: {
      const auto pull = DecodeUnresolvedPull(payload);
      return pull ? CarryPull(txn, *pull) : Result<void>();
    }
    case Table::kStreamingTokens:  // an older copy has some that opened a stream since
      return {};
    case Table::kQuarantine:  // these only close images, or open none by themselves
    case Table::kImported:
    case Table::kRuntimeHandlers:
    case Table::kRevocations:
    case Table::kUsernsMappings:
    case Table::kUsernsBlocks:
    case Table::kUsernsHeld:
      break;
  }
  return CarryValue(txn, spec, payload);
}

}  // namespace

Result<Carried> CarryOver(StoreTxn& txn, const Salvaged& salvaged, const CarryRules& rules) {
  Carried carried;
  // First, so that no record brings back what was forgotten.
  TRY(CarryRevocations(txn, salvaged));
  for (const TableSpec& spec : kTables) {
    if (IsOfIdRanges(spec.table)) continue;
    for (const auto& payload : salvaged.of(spec.table)) {
      TRY(CarryOne(txn, spec, payload, rules, carried));
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
    one.untidied = false;  // records are stored without it
    // The other store may count from another beginning: its time begins anew.
    one.ran = static_cast<std::uint64_t>(txn.clocks().ran.count());
    TRY(PutRevocation(txn, one));
  }
  return {};
}

Result<void> CarryIdRanges(StoreTxn& txn, const Salvaged& salvaged) {
  for (const TableSpec& spec : kTables) {
    if (!IsOfIdRanges(spec.table)) continue;
    for (const auto& payload : salvaged.of(spec.table)) TRY(CarryValue(txn, spec, payload));
  }
  return {};
}

bool HasAllIdRanges(const Salvaged& salvaged, const State& state) {
  const auto whole = [&](Table table) { return salvaged.Has(table, state); };
  // The table of blocks says which pod has which range, too.
  return whole(Table::kUsernsHeld) &&
         (whole(Table::kUsernsMappings) || whole(Table::kUsernsBlocks));
}

}  // namespace waybill::internal
