#include "store/recovery/salvage.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "store/database/pulled_record.h"
#include "store/database/small_records.h"
#include "store/database/typed_tables.h"
#include "store/database/userns_records.h"
#include "store/database/validate.h"
#include "store/lmdb/check/page_check.h"

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
    for (const Table table : kAllTables) {
      if (name == InfoOf(table).name) OnRecord(table, key, value);
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
      if (auto journal = DecodeTrustJournal(opened.payload))
        salvaged_.journal = std::move(*journal);
    }
  }

  void OnRecord(Table table, const Key16& key, Value value) {
    const TableInfo& info = InfoOf(table);
    const Opened opened = OpenEnvelope(key, value, info.kind, kNewest.version(table));
    // Under which key is not asked: each is stored anew.
    if (opened.state == EnvelopeState::kSound && KeyOfPayload(table, opened.payload, 0)) {
      salvaged_.sound[Index(table)].Add(StoredChecksum(value));
      salvaged_.payloads[Index(table)].emplace_back(opened.payload.begin(), opened.payload.end());
    } else if (value.size() >= kEnvelopeBytes) {
      salvaged_.damaged_stored[Index(table)].Add(StoredChecksum(value));
      salvaged_.damaged_computed[Index(table)].Add(ComputedChecksum(key, value));
    }
  }

  Salvaged& salvaged_;
};

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
  for (const auto& payload : salvaged.payloads[Index(Table::kPulled)]) {
    auto record = DecodePulledRecordValue(payload);
    if (!record) continue;
    if (!rules.keeps_credentials(*record)) {
      record->credential_mapping.clear();
      ++carried.records_without_credentials;
    }
    ++carried.records;
    if (auto r = StoreRecord(txn, std::move(*record)); !r) return r.error();
  }
  for (const auto& payload : salvaged.payloads[Index(Table::kIntents)]) {
    const auto intent = DecodeIntentValue(payload);
    if (!intent) continue;
    ++carried.intents;
    if (auto r = StoreIntent(txn, intent->image, intent->runtime_handler); !r) return r.error();
  }
  for (const auto& payload : salvaged.payloads[Index(Table::kQuarantine)]) {
    const auto entry = DecodeQuarantineValue(payload);
    if (!entry) continue;
    if (auto r = StoreQuarantine(txn, *entry); !r) return r.error();
  }
  for (const auto& payload : salvaged.payloads[Index(Table::kRuntimeHandlers)]) {
    const auto handler = DecodeRuntimeHandlerValue(payload);
    if (!handler) continue;
    const Key16 key = HashKey(handler->name, txn.seed());
    if (auto r = txn.Put(Table::kRuntimeHandlers, key, payload); !r) return r.error();
  }
  for (const auto& payload : salvaged.payloads[Index(Table::kImported)]) {
    const auto file = DecodeImportedFileValue(payload);
    if (!file) continue;
    if (auto r = txn.Put(Table::kImported, HashKey(file->path, txn.seed()), payload); !r)
      return r.error();
  }
  if (!rules.preloaded) return carried;
  for (const auto& payload : salvaged.payloads[Index(Table::kPreloaded)]) {
    const auto record = DecodePreloadedValue(payload);
    if (!record) continue;
    const Key16 key = HashKey(record->image_ref, txn.seed());
    if (auto r = txn.Put(Table::kPreloaded, key, payload); !r) return r.error();
  }
  return carried;
}

Result<void> CarryIdRanges(StoreTxn& txn, const Salvaged& salvaged) {
  const auto carry = [&](Table table, const auto& key_of) -> Result<void> {
    for (const auto& payload : salvaged.payloads[Index(table)]) {
      const std::optional<Key16> key = key_of(payload);
      if (!key) continue;
      if (auto r = txn.PutNew(table, *key, payload); !r) return r.error();
    }
    return {};
  };
  const auto of_pod = [&](std::string_view pod_uid) { return HashKey(pod_uid, txn.seed()); };
  auto carried = carry(Table::kUsernsMappings, [&](Payload payload) {
    const auto mapping = DecodeUsernsMapping(payload);
    return mapping ? std::optional(of_pod(mapping->pod_uid)) : std::nullopt;
  });
  if (!carried) return carried;
  carried = carry(Table::kUsernsBlocks, [](Payload payload) {
    const auto block = DecodeUsernsBlock(payload);
    return block ? std::optional(BlockKey(block->block)) : std::nullopt;
  });
  if (!carried) return carried;
  return carry(Table::kUsernsHeld, [&](Payload payload) {
    const auto held = DecodeUsernsHeld(payload);
    return held ? std::optional(of_pod(held->pod.pod_uid)) : std::nullopt;
  });
}

bool HasAllIdRanges(const Salvaged& salvaged, const State& state) {
  const auto whole = [&](Table table) {
    return salvaged.sound[Index(table)] == state.digest(table);
  };
  // A block's entry says whose it is as well as the mapping does.
  return whole(Table::kUsernsHeld) &&
         (whole(Table::kUsernsMappings) || whole(Table::kUsernsBlocks));
}

Result<std::filesystem::path> KeepAside(const std::filesystem::path& directory, const Fd& file) {
  struct stat st {};
  const std::filesystem::path database = directory / "data.mdb";
  if (fstat(file.get(), &st) != 0) return SystemError(errno, "look at", database);
  struct tm utc {};
  gmtime_r(&st.st_mtim.tv_sec, &utc);
  char time[32];
  strftime(time, sizeof(time), "%Y%m%dT%H%M%SZ", &utc);
  const std::filesystem::path quarantine = directory / "quarantine";
  const std::filesystem::path aside =
      quarantine / (std::string(time) + "-" + std::to_string(st.st_ino));
  for (const auto& made : {quarantine, aside}) {
    if (auto r = MakePrivateDirectory(made); !r) return r.error();
  }
  const std::filesystem::path kept = aside / "data.mdb";
  if (link(database.c_str(), kept.c_str()) != 0 && errno != EEXIST) {
    return SystemError(errno, "keep the database as", kept);
  }
  if (auto r = SyncDirectory(aside); !r) return r.error();
  return kept;
}

}  // namespace waybill::internal
