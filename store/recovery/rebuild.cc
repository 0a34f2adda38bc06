#include "store/recovery/rebuild.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "store/record/pulled_record.h"
#include "store/record/small_records.h"
#include "store/record/typed_tables.h"
#include "store/recovery/new_database.h"

namespace waybill::internal {

namespace {

// The state record in the tree of meta page `which`.
std::optional<State> StateIn(const Fd& file, int which) {
  auto value = FindInMain(file.get(), which, kStateKey.bytes);
  if (!value) return std::nullopt;
  const Opened opened = OpenEnvelope(kStateKey, *value, RecordKind::kState, kHeaderVersion);
  if (opened.state != EnvelopeState::kSound) return std::nullopt;
  return DecodeState(opened.payload);
}

// Discards what it is shown; for the metas alone.
class Ignore final : public PageVisitor {
  void OnTable(std::string_view, std::uint64_t) override {}
  void OnValue(std::string_view, PageKey, Value) override {}
};

struct Choice {
  int which = -1;  // the meta page to salvage from; −1: neither
  std::optional<State> state;
  bool newest = false;  // proven to be the last commit
};

Result<Choice> ChooseTree(const Fd& file, const std::optional<Testimony>& testimony) {
  Ignore ignore;
  auto walk = WalkFile(file.get(), ignore);
  if (!walk) return walk.error();
  const std::array<std::optional<State>, 2> states = {StateIn(file, 0), StateIn(file, 1)};
  Choice choice;
  if (!states[0] && !states[1]) {
    choice.which = walk->newer_meta;
    return choice;
  }
  const auto sequence = [&](int i) {
    const auto& state = states[static_cast<std::size_t>(i)];
    return state ? state->commit_sequence : 0;
  };
  choice.which = sequence(1) >= sequence(0) ? 1 : 0;
  choice.state = states[static_cast<std::size_t>(choice.which)];
  const auto other = static_cast<std::size_t>(1 - choice.which);
  const MetaSummary& other_meta = walk->meta[other];
  const bool other_is_older = states[other].has_value() || (other_meta.valid && !other_meta.rooted);
  const std::uint64_t newest_meta = std::max(walk->meta[0].valid ? walk->meta[0].txn_id : 0,
                                             walk->meta[1].valid ? walk->meta[1].txn_id : 0);
  choice.newest = other_is_older && choice.state->lmdb_txn_id >= newest_meta;
  if (testimony && choice.state->commit_sequence < testimony->commit_sequence)
    choice.newest = false;
  return choice;
}

struct Salvaged {
  std::optional<Identity> identity;
  std::vector<TrustEvent> journal;
  // Payloads of the values that verify, by table.
  std::array<std::vector<std::vector<std::uint8_t>>, kTableCount> payloads;
  // Over those, and over those that do not, by the checksum they carry and by the one they should.
  std::array<TableDigest, kTableCount> sound;
  std::array<TableDigest, kTableCount> damaged_stored;
  std::array<TableDigest, kTableCount> damaged_computed;

  // Whether the digest shows that the values that verify are current and, with the damaged ones,
  // all.
  bool Proves(Table table, const State& state) const {
    const TableDigest& expected = state.digest(table);
    const auto sum = [&](const TableDigest& damaged) {
      return TableDigest{sound[Index(table)].count + damaged.count,
                         sound[Index(table)].checksum_sum + damaged.checksum_sum};
    };
    if (sum(damaged_stored[Index(table)]) == expected) return true;
    return damaged_stored[Index(table)].count == 1 &&
           sum(damaged_computed[Index(table)]) == expected;
  }
};

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
      const Opened opened = OpenEnvelope(key, value, RecordKind::kIdentity, kHeaderVersion);
      if (opened.state == EnvelopeState::kSound) {
        salvaged_.identity = DecodeIdentity(opened.payload);
      }
    } else if (key == kTrustKey) {
      const Opened opened = OpenEnvelope(key, value, RecordKind::kTrustJournal, kHeaderVersion);
      if (opened.state != EnvelopeState::kSound) return;
      if (auto journal = DecodeTrustJournal(opened.payload))
        salvaged_.journal = std::move(*journal);
    }
  }

  void OnRecord(Table table, const Key16& key, Value value) {
    const TableInfo& info = InfoOf(table);
    const Opened opened = OpenEnvelope(key, value, info.kind, info.newest_version);
    if (opened.state == EnvelopeState::kSound) {
      salvaged_.sound[Index(table)].Add(StoredChecksum(value));
      salvaged_.payloads[Index(table)].emplace_back(opened.payload.begin(), opened.payload.end());
    } else if (value.size() >= kEnvelopeBytes) {
      salvaged_.damaged_stored[Index(table)].Add(StoredChecksum(value));
      salvaged_.damaged_computed[Index(table)].Add(ComputedChecksum(key, value));
    }
  }

  Salvaged& salvaged_;
};

Result<void> CarryOver(StoreTxn& txn, const Salvaged& salvaged, const Choice& choice,
                       RecoveryReport& report) {
  const auto proven = [&](Table table) {
    return choice.newest && choice.state && salvaged.Proves(table, *choice.state);
  };
  if (choice.state) txn.state().latest_time = choice.state->latest_time;
  const bool credentials_proven = proven(Table::kPulled);
  for (const auto& payload : salvaged.payloads[Index(Table::kPulled)]) {
    auto record = DecodePulledRecordValue(payload);
    if (!record) continue;
    if (!credentials_proven) {
      record->credential_mapping.clear();
      ++report.records_without_credentials;
    }
    ++report.records_carried;
    if (auto r = StoreRecord(txn, std::move(*record)); !r) return r;
  }
  for (const auto& payload : salvaged.payloads[Index(Table::kIntents)]) {
    const auto intent = DecodeIntentValue(payload);
    if (!intent) continue;
    ++report.intents_carried;
    if (auto r = StoreIntent(txn, intent->image); !r) return r.error();
  }
  for (const auto& payload : salvaged.payloads[Index(Table::kQuarantine)]) {
    const auto entry = DecodeQuarantineValue(payload);
    if (!entry) continue;
    if (auto r = StoreQuarantine(txn, *entry); !r) return r.error();
  }
  for (const auto& payload : salvaged.payloads[Index(Table::kImported)]) {
    const auto file = DecodeImportedFileValue(payload);
    if (!file) continue;
    if (auto r = txn.Put(Table::kImported, HashKey(file->path, txn.seed()), payload); !r) return r;
  }
  if (!proven(Table::kPreloaded)) return {};
  for (const auto& payload : salvaged.payloads[Index(Table::kPreloaded)]) {
    const auto record = DecodePreloadedValue(payload);
    if (!record) continue;
    const Key16 key = HashKey(record->image_ref, txn.seed());
    if (auto r = txn.Put(Table::kPreloaded, key, payload); !r) return r;
  }
  return {};
}

// A second name for the failed file, under quarantine/: by its time of change and inode, so that a
// rebuild that is begun anew finds its own.
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
    return SystemError(errno, "keep the failed database as", kept);
  }
  if (auto r = SyncDirectory(aside); !r) return r.error();
  return kept;
}

}  // namespace

Result<void> Rebuild(const std::filesystem::path& directory, const Fd& file,
                     const Inspection& inspection, const std::optional<Testimony>& testimony,
                     Timestamp now, std::uint64_t map_bytes, RecoveryReport& report) {
  auto choice = ChooseTree(file, testimony);
  if (!choice) return choice.error();
  Salvaged salvaged;
  if (choice->which >= 0) {
    Collector collector(salvaged);
    auto result = SalvageTree(file.get(), choice->which, collector);
    if (!result && result.error().code == ErrorCode::kIo) return result.error();
  }
  NewDatabase made;
  made.now = now;
  made.map_bytes = map_bytes;
  made.sequence = choice->state ? choice->state->commit_sequence : 0;
  made.journal = std::move(salvaged.journal);
  if (salvaged.identity) {
    made.identity = *salvaged.identity;
  } else {
    auto fresh = NewIdentity(now);
    if (!fresh) return fresh.error();
    made.identity = *fresh;
  }
  if (testimony) {
    made.sequence = std::max(made.sequence, testimony->commit_sequence);
    if (!salvaged.identity) made.identity.uuid = testimony->uuid;
  }

  auto aside = KeepAside(directory, file);
  if (!aside) return aside.error();
  made.distrust_reason = "the database failed its check";
  if (!inspection.findings.empty()) {
    made.distrust_reason += " (" + inspection.findings.front() + ")";
  }
  made.distrust_reason += "; it is kept as " + aside->string();
  made.fill = [&](StoreTxn& txn) { return CarryOver(txn, salvaged, *choice, report); };
  if (auto r = PrepareDatabase(directory, made); !r) return r;
  if (auto r = InstallDatabase(directory); !r) return r;
  report.set_aside = true;
  report.set_aside_path = aside->string();
  return {};
}

}  // namespace waybill::internal
