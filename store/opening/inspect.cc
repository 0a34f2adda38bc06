#include "store/opening/inspect.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "store/base/try.h"
#include "store/disk/envelope.h"
#include "store/disk/page_walk/page_check.h"
#include "store/disk/page_walk/page_format.h"
#include "store/disk/trust.h"

namespace waybill::internal {

namespace {

constexpr std::size_t kMaxFindings = 50;
constexpr std::int64_t kNanos = 1'000'000'000;
constexpr std::uint64_t kBytesPerReport = std::uint64_t{1} << 20;

std::optional<State> ReadState(Value value) {
  const Opened opened = OpenEnvelope(kStateKey, value, RecordKind::kState, Newest().header);
  return opened.state == EnvelopeState::kSound ? DecodeState(opened.payload) : std::nullopt;
}

class ValueCheck final : public PageVisitor {
 public:
  ValueCheck(Inspection& inspection, const Progress& progress, std::uint64_t file_bytes)
      : inspection_(inspection), progress_(progress), file_bytes_(file_bytes) {}

  bool GoesOn(std::uint64_t bytes) override {
    if (bytes >= next_report_ && !stopped_) {
      next_report_ = bytes + kBytesPerReport;
      Report(std::min(bytes, file_bytes_));
    }
    return !stopped_;
  }

  void OnTable(std::string_view name, std::uint64_t) override {
    current_ = nullptr;
    for (const TableSpec& spec : kTables) {
      if (name == spec.name && !LiesInMain(spec.table)) current_ = &spec;
    }
    if (current_ != nullptr) seen_[Index(current_->table)] = true;
    if (!name.empty() && (current_ == nullptr || !schema().has(*current_))) {
      Find("there is a table that is not ours");
    }
  }

  void OnValue(std::string_view table, PageKey page_key, Value value) override {
    ++inspection_.values;
    const Key16 key = Key16::From(page_key);
    if (table.empty() && key >= FirstKeyOf(kInMain)) {
      OnRecord(SpecOf(kInMain), key, value);
    } else if (table.empty()) {
      OnHeaderRecord(key, value);
    } else if (current_ != nullptr) {
      OnRecord(*current_, key, value);
    }
  }

  // The checks that need every value. False: stopped by `progress`.
  bool Finish() {
    if (!stopped_) Report(file_bytes_);
    if (stopped_) return false;
    CheckWhole();
    return true;
  }

 private:
  void Report(std::uint64_t done) { stopped_ = progress_ && !progress_(done, file_bytes_); }

  void CheckWhole() {
    for (const TableSpec& spec : kTables) {
      const bool has_tree = schema().has(spec) && !LiesInMain(spec.table);
      if (has_tree && !seen_[Index(spec.table)]) Find("a table is missing");
    }
    if (!inspection_.identity) Find("the identity record is missing or damaged");
    if (!trust_seen_) Find("the trust journal is missing or damaged");
    if (!inspection_.state) {
      Find("the state record is missing or damaged");
      return;
    }
    const State& state = *inspection_.state;
    if (header_ != state.header) Find("the digest of the header does not match");
    for (const TableSpec& spec : kTables) {
      const TableDigest& found = digests_[Index(spec.table)];
      if (found == state.digest(spec.table)) continue;
      Find("the digest of table " + std::string(spec.name) + " does not match: it holds " +
           std::to_string(found.count) + " values, the header says " +
           std::to_string(state.digest(spec.table).count));
    }
  }

  // The newest if the identity is damaged or not known yet: it reads older records, too.
  Schema schema() const {
    return inspection_.identity && !inspection_.newer_schema
               ? SchemaOf(inspection_.identity->schema_version)
               : Newest();
  }

  void Find(std::string text) {
    if (inspection_.findings.size() < kMaxFindings) inspection_.findings.push_back(std::move(text));
    inspection_.sound = false;
  }

  void OnHeaderRecord(const Key16& key, Value value) {
    if (key == kStateKey) {
      inspection_.state = ReadState(value);
      return;
    }
    if (value.size() >= kEnvelopeBytes) header_.Add(StoredChecksum(value));
    if (key == kIdentityKey) {
      const Opened opened = OpenEnvelope(key, value, RecordKind::kIdentity, Newest().header);
      if (opened.state == EnvelopeState::kNewer) inspection_.newer_schema = true;
      if (opened.state == EnvelopeState::kSound) {
        inspection_.identity = DecodeIdentity(opened.payload);
      }
      if (inspection_.identity && inspection_.identity->schema_version > newest_schema) {
        inspection_.newer_schema = true;
      }
      return;
    }
    if (key == kTrustKey) {
      const Opened opened = OpenEnvelope(key, value, RecordKind::kTrustJournal, Newest().header);
      trust_seen_ =
          opened.state == EnvelopeState::kSound && DecodeJournal(opened.payload).has_value();
      return;
    }
    Find("the main table has a record that is not ours");
  }

  void OnRecord(const TableSpec& spec, const Key16& key, Value value) {
    if (value.size() >= kEnvelopeBytes) digests_[Index(spec.table)].Add(StoredChecksum(value));
    const Opened opened = OpenEnvelope(key, value, spec.kind, schema().version(spec));
    if (opened.state == EnvelopeState::kSound && inspection_.identity &&
        spec.key_of(opened.payload, inspection_.identity->hash_seed) == key) {
      return;
    }
    Find("a value of table " + std::string(spec.name) + " does not verify");
  }

  Inspection& inspection_;
  const Progress& progress_;
  const std::uint64_t file_bytes_;
  std::uint64_t next_report_ = kBytesPerReport;
  bool stopped_ = false;
  const TableSpec* current_ = nullptr;
  std::array<bool, kTableCount> seen_{};
  bool trust_seen_ = false;
  TableDigest header_;
  std::array<TableDigest, kTableCount> digests_{};
};

// The state record in each meta page's tree must have that page's transaction ID: a flipped bit
// could make LMDB take the older tree for the newer. Not so in a compact copy, which has IDs of its
// own.
// `only`: of that one alone; −1: of both.
Result<void> CheckMetaIds(const Fd& file, int only, OnReadError on_error, Inspection& inspection) {
  for (const std::size_t which : {0U, 1U}) {
    const MetaSummary& meta = inspection.meta[which];
    if (!meta.valid || !meta.rooted) continue;
    if (only >= 0 && static_cast<int>(which) != only) continue;
    auto value = FindInMain(file.get(), static_cast<int>(which), kStateKey.bytes, on_error);
    if (!value && value.error().code == ErrorCode::kIo) return value.error();
    std::optional<State>& state = inspection.states_by_meta[which];
    if (value) state = ReadState(*value);
    if (state && state->lmdb_txn_id == meta.txn_id) continue;
    inspection.sound = false;
    inspection.findings.push_back("meta page " + std::to_string(which) +
                                  " does not agree with the header in its tree");
  }
  return {};
}

// `which` −1: the newer page's tree.
Result<Inspection> Inspect(const Fd& file, FileIs file_is, int which, OnReadError on_error,
                           const Progress& progress) {
  Inspection inspection;
  inspection.file = TRY(LookAtFile(file, on_error));
  inspection.sound = true;
  ValueCheck check(inspection, progress, static_cast<std::uint64_t>(inspection.file.bytes));
  auto walk = TRY(WalkFile(file.get(), check, on_error, which));
  if (!check.Finish()) {
    return Error{ErrorCode::kInterrupted,
                 "the check was stopped; what it read so far says nothing about the whole", ""};
  }
  if (!walk.sound) {
    inspection.sound = false;
    inspection.findings.insert(inspection.findings.begin(), walk.findings.begin(),
                               walk.findings.end());
  }
  if (walk.fresh || walk.empty_file) {
    inspection.sound = false;
    inspection.findings.insert(inspection.findings.begin(), "the file holds no commit");
  }
  inspection.meta = walk.meta;
  inspection.newer_meta = walk.newer_meta;
  inspection.page_bytes = walk.page_bytes;
  if (walk.newer_meta >= 0) {
    inspection.txn_id = walk.meta[static_cast<std::size_t>(walk.newer_meta)].txn_id;
  }
  inspection.pages = walk.tree_pages + walk.free_pages;
  if (file_is != FileIs::kCompactCopy) TRY(CheckMetaIds(file, which, on_error, inspection));
  const auto after = TRY(LookAtFile(file, on_error));
  inspection.moved = inspection.file != after;
  return inspection;
}

}  // namespace

bool FileSight::IsPast() const {
  struct timespec now {};
  clock_gettime(CLOCK_REALTIME, &now);
  return written / kNanos + 1 < now.tv_sec;
}

Result<FileSight> LookAtFile(const Fd& file, OnReadError on_error) {
  struct stat st {};
  if (fstat(file.get(), &st) != 0) return SystemError(errno, "look at", PathOf(file.get()));
  std::string metas(std::size_t{2} * kMaxPageBytes, '\0');
  const ssize_t got = pread(file.get(), metas.data(), metas.size(), 0);
  if (got < 0 && on_error == OnReadError::kFail) {
    return CanBeSkipped(SystemError(errno, "read", PathOf(file.get())));
  }
  return FileSight{{st.st_dev, st.st_ino},
                   st.st_size,
                   std::int64_t{st.st_mtim.tv_sec} * kNanos + st.st_mtim.tv_nsec,
                   XXH3_64bits(metas.data(), got > 0 ? static_cast<std::size_t>(got) : 0)};
}

Result<Inspection> InspectFile(const Fd& file, FileIs file_is, OnReadError on_error,
                               const Progress& progress) {
  return Inspect(file, file_is, -1, on_error, progress);
}

Result<Inspection> InspectTreeOf(const Fd& file, int which, OnReadError on_error) {
  return Inspect(file, FileIs::kStore, which, on_error, {});
}

namespace {

class Collector final : public PageVisitor {
 public:
  explicit Collector(Salvaged& salvaged) : salvaged_(salvaged) {}

  void OnTable(std::string_view, std::uint64_t) override {}

  void OnValue(std::string_view name, PageKey page_key, Value value) override {
    const Key16 key = Key16::From(page_key);
    if (name.empty() && key < FirstKeyOf(kInMain)) return OnHeaderRecord(key, value);
    for (const TableSpec& spec : kTables) {
      if (name == (LiesInMain(spec.table) ? "" : spec.name)) OnRecord(spec, key, value);
    }
  }

 private:
  void OnHeaderRecord(const Key16& key, Value value) {
    if (key == kIdentityKey) {
      const Opened opened = OpenEnvelope(key, value, RecordKind::kIdentity, Newest().header);
      if (opened.state == EnvelopeState::kSound) {
        salvaged_.identity = DecodeIdentity(opened.payload);
      }
    } else if (key == kTrustKey) {
      const Opened opened = OpenEnvelope(key, value, RecordKind::kTrustJournal, Newest().header);
      if (opened.state != EnvelopeState::kSound) return;
      if (auto journal = DecodeJournal(opened.payload)) salvaged_.journal = std::move(*journal);
    }
  }

  void OnRecord(const TableSpec& spec, const Key16& key, Value value) {
    const Opened opened = OpenEnvelope(key, value, spec.kind, spec.form);
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

}  // namespace

bool Salvaged::Proves(Table table) const {
  if (!state) return false;
  const TableDigest& expected = state->digest(table);
  const auto sum = [&](const TableDigest& damaged) {
    return TableDigest{sound[Index(table)].count + damaged.count,
                       sound[Index(table)].checksum_sum + damaged.checksum_sum};
  };
  if (sum(damaged_stored[Index(table)]) == expected) return true;
  return damaged_stored[Index(table)].count == 1 && sum(damaged_computed[Index(table)]) == expected;
}

Result<Salvaged> Salvage(const Fd& file, int which, const std::optional<State>& state,
                         OnReadError on_error) {
  Salvaged salvaged;
  salvaged.state = state;
  if (which < 0) return salvaged;
  Collector collector(salvaged);
  auto result = SalvageTree(file.get(), which, collector, on_error);
  if (!result && result.error().code == ErrorCode::kIo) return result.error();
  return salvaged;
}

}  // namespace waybill::internal
