#include "store/engine/recovery/salvage.h"

#include <utility>

#include "store/base/try.h"
#include "store/engine/lmdb/check/page_check.h"
#include "store/node/pulls/open_pulls.h"
#include "store/node/records/evidence_tables.h"
#include "store/node/records/open_pulls_table.h"
#include "store/node/records/pulled_record.h"
#include "store/node/records/revocations_table.h"
#include "store/node/records/typed_tables.h"

namespace waybill::internal {

namespace {

class Collector final : public PageVisitor {
 public:
  explicit Collector(Salvaged& salvaged) : salvaged_(salvaged) {}

  void OnTable(std::string_view, std::uint64_t) override {}

  void OnValue(std::string_view name, PageKey page_key, Value value) override {
    const Key16 key = Key16::From(page_key);
    if (name.empty()) {
      OnHeaderRecord(key, value);
      return;
    }
    for (const TableSpec& spec : kTables) {
      if (name == spec.name) OnRecord(spec, key, value);
    }
  }

 private:
  void OnHeaderRecord(const Key16& key, Value value) {
    if (key == kIdentityKey) {
      const Opened opened = OpenEnvelope(key, value, RecordKind::kIdentity, kNewest.header);
      if (opened.state == EnvelopeState::kSound) {
        salvaged_.identity = DecodeIdentity(opened.payload);
      }
    } else if (key == kTrustKey) {
      const Opened opened = OpenEnvelope(key, value, RecordKind::kTrustJournal, kNewest.header);
      if (opened.state != EnvelopeState::kSound) return;
      if (auto journal = DecodeJournal(opened.payload)) salvaged_.journal = std::move(*journal);
    } else if (key == kCountersKey) {
      salvaged_.counters = OpenCounters(value);
    }
  }

  void OnRecord(const TableSpec& spec, const Key16& key, Value value) {
    const Opened opened = OpenEnvelope(key, value, spec.kind, kNewest.version(spec));
    const std::size_t table = Index(spec.table);
    // Its key does not matter: each value is stored under a new one.
    if (opened.state == EnvelopeState::kSound && spec.key_of(opened.payload, 0)) {
      salvaged_.sound[table].Add(StoredChecksum(value));
      salvaged_.payloads[table].emplace_back(opened.payload.begin(), opened.payload.end());
    } else if (value.size() >= kEnvelopeBytes) {
      salvaged_.damaged_stored[table].Add(StoredChecksum(value));
      salvaged_.damaged_computed[table].Add(ComputedChecksum(key, value));
    }
  }

  Salvaged& salvaged_;
};

// An existing value under the key stays.
Result<void> CarryValue(StoreTxn& txn, const TableSpec& spec, Payload payload) {
  const auto key = spec.key_of(payload, txn.seed());
  if (!key) return {};
  auto put = txn.PutNew(spec.table, *key, payload);
  return put ? Result<void>() : put.error();
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
  return StoreRecord(txn, std::move(*record));
}

Result<void> CarryOne(StoreTxn& txn, const TableSpec& spec, Payload payload,
                      const CarryRules& rules, Carried& carried) {
  switch (spec.carry) {
    case Carry::kCredentials:
      return CarryRecord(txn, payload, rules, carried);
    case Carry::kIfProven:
      return rules.preloaded ? CarryValue(txn, spec, payload) : Result<void>();
    case Carry::kSpellings:
      return rules.spellings ? CarryValue(txn, spec, payload) : Result<void>();
    case Carry::kLedger: {
      const auto entry = DecodeLedgerEntry(payload);
      return entry && rules.keeps_entry(*entry) ? CarryValue(txn, spec, payload) : Result<void>();
    }
    case Carry::kPulls: {
      const auto pull = DecodeOpenPull(payload);
      return pull ? CarryPull(txn, *pull, rules.now) : Result<void>();
    }
    case Carry::kDerived:
    case Carry::kNothing:
      return {};
    case Carry::kAsItIs:
    case Carry::kIdRange:
      break;
  }
  return CarryValue(txn, spec, payload);
}

}  // namespace

bool Salvaged::Proves(Table table, const State& state) const {
  const TableDigest& expected = state.digest(table);
  const auto sum = [&](const TableDigest& damaged) {
    return TableDigest{sound[Index(table)].count + damaged.count,
                       sound[Index(table)].checksum_sum + damaged.checksum_sum};
  };
  if (sum(damaged_stored[Index(table)]) == expected) return true;
  return damaged_stored[Index(table)].count == 1 && sum(damaged_computed[Index(table)]) == expected;
}

Result<Salvaged> Salvage(const Fd& file, int which, OnReadError on_error) {
  Salvaged salvaged;
  Collector collector(salvaged);
  auto result = SalvageTree(file.get(), which, collector, on_error);
  if (!result && result.error().code == ErrorCode::kIo) return result.error();
  return salvaged;
}

Result<Carried> CarryOver(StoreTxn& txn, const Salvaged& salvaged, const CarryRules& rules) {
  Carried carried;
  // First, so that no record brings back what was forgotten.
  TRY(CarryRevocations(txn, salvaged));
  for (const TableSpec& spec : kTables) {
    if (spec.carry == Carry::kIdRange || !txn.schema().has(spec)) continue;
    for (const auto& payload : salvaged.payloads[Index(spec.table)]) {
      TRY(CarryOne(txn, spec, payload, rules, carried));
    }
  }
  carried.intents = salvaged.payloads[Index(Table::kIntents)].size();
  // A list that was drawn before may miss what was lost.
  NoteEvidenceRemoved(txn);
  return carried;
}

Result<void> CarryRevocations(StoreTxn& txn, const Salvaged& salvaged) {
  if (!txn.schema().has(Table::kRevocations)) return {};
  for (Revocation& one : salvaged.All(Table::kRevocations, DecodeRevocation)) {
    one.untidied = false;  // records are stored without it
    if (auto r = PutRevocation(txn, one); !r) return r;
  }
  return {};
}

Result<void> CarryCounters(StoreTxn& txn, const Salvaged& newer, const Salvaged* older) {
  const bool older_has_them = !newer.counters && older != nullptr;
  const auto& counters = older_has_them ? older->counters : newer.counters;
  if (!counters || txn.schema().header < kFirstWithCounters) return {};
  return txn.PutHeaderRecord(kCountersKey, RecordKind::kCounters, EncodeCounters(*counters));
}

Result<void> CarryIdRanges(StoreTxn& txn, const Salvaged& salvaged) {
  for (const TableSpec& spec : kTables) {
    if (spec.carry != Carry::kIdRange) continue;
    for (const auto& payload : salvaged.payloads[Index(spec.table)]) {
      if (auto r = CarryValue(txn, spec, payload); !r) return r;
    }
  }
  return {};
}

bool HasAllIdRanges(const Salvaged& salvaged, const State& state) {
  const auto whole = [&](Table table) {
    return salvaged.sound[Index(table)] == state.digest(table);
  };
  // The table of blocks says which pod has which range, too.
  return whole(Table::kUsernsHeld) &&
         (whole(Table::kUsernsMappings) || whole(Table::kUsernsBlocks));
}

}  // namespace waybill::internal
