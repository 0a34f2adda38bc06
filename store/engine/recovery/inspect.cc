#include "store/engine/recovery/inspect.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "store/base/try.h"
#include "store/engine/database/envelope.h"
#include "store/engine/lmdb/check/page_format.h"
#include "store/engine/trust/trust_journal.h"
#include "store/node/records/counters_record.h"
#include "store/node/records/credential_index.h"
#include "store/node/records/userns_tables.h"

namespace waybill::internal {

namespace {

constexpr std::size_t kMaxFindings = 50;

std::optional<State> ReadState(Value value) {
  const Opened opened = OpenEnvelope(kStateKey, value, RecordKind::kState, kNewest.header);
  return opened.state == EnvelopeState::kSound ? DecodeState(opened.payload) : std::nullopt;
}

class ValueCheck final : public PageVisitor {
 public:
  explicit ValueCheck(Inspection& inspection) : inspection_(inspection) {}

  void OnTable(std::string_view name, std::uint64_t) override {
    current_ = nullptr;
    for (const TableSpec& spec : kTables) {
      if (name == spec.name) current_ = &spec;
    }
    if (current_ != nullptr) seen_[Index(current_->table)] = true;
    if (!name.empty() && (current_ == nullptr || !schema().has(*current_))) {
      Find("there is a table that is not ours");
    }
  }

  void OnValue(std::string_view table, PageKey page_key, Value value) override {
    ++inspection_.values;
    const Key16 key = Key16::From(page_key);
    if (table.empty()) {
      OnHeaderRecord(key, value);
    } else if (current_ != nullptr) {
      OnRecord(*current_, key, value);
    }
  }

  // The checks that need every value.
  void Finish() {
    for (const TableSpec& spec : kTables) {
      if (schema().has(spec) && !seen_[Index(spec.table)]) Find("a table is missing");
    }
    if (!inspection_.identity) Find("the identity record is missing or damaged");
    if (!trust_seen_) Find("the trust journal is missing or damaged");
    if (!inspection_.state) {
      Find("the state record is missing or damaged");
      return;
    }
    const State& state = *inspection_.state;
    if (has_counters_ && schema().header < kFirstWithCounters) {
      Find("the main table has a record that is not ours");
    }
    if (header_ != state.header) Find("the digest of the header does not match");
    inspection_.id_ranges_disagree = claimed_blocks_ != stored_blocks_;
    inspection_.index_disagrees =
        schema().has(Table::kCredentialIndex) && needed_rows_ != stored_rows_;
    for (const TableSpec& spec : kTables) {
      const TableDigest& found = digests_[Index(spec.table)];
      if (found == state.digest(spec.table)) continue;
      Find("the digest of table " + std::string(spec.name) + " does not match: it holds " +
           std::to_string(found.count) + " values, the header says " +
           std::to_string(state.digest(spec.table).count));
    }
  }

 private:
  // The newest if the identity is damaged or not known yet: it reads older records, too.
  Schema schema() const {
    return inspection_.identity && !inspection_.newer_schema
               ? SchemaOf(inspection_.identity->schema_version)
               : kNewest;
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
    if (key == kCountersKey) {
      has_counters_ = true;
      inspection_.counters_damaged = !OpenCounters(value);
      return;
    }
    if (value.size() >= kEnvelopeBytes) header_.Add(StoredChecksum(value));
    if (key == kIdentityKey) {
      const Opened opened = OpenEnvelope(key, value, RecordKind::kIdentity, kNewest.header);
      if (opened.state == EnvelopeState::kNewer) inspection_.newer_schema = true;
      if (opened.state == EnvelopeState::kSound) {
        inspection_.identity = DecodeIdentity(opened.payload);
      }
      if (inspection_.identity && inspection_.identity->schema_version > kNewestSchema) {
        inspection_.newer_schema = true;
      }
      return;
    }
    if (key == kTrustKey) {
      const Opened opened = OpenEnvelope(key, value, RecordKind::kTrustJournal, kNewest.header);
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
      CountBlocks(spec.table, opened.payload);
      CountIndexRows(spec.table, key, opened.payload);
      return;
    }
    Find("a value of table " + std::string(spec.name) + " does not verify");
  }

  // Sums up which pod has which block, in any order: by the mappings, and by the table of blocks.
  void CountBlocks(Table table, Payload payload) {
    if (table == Table::kUsernsMappings) {
      const auto mapping = DecodeUsernsMapping(payload);
      for (std::uint64_t id = mapping->host_id;
           id < mapping->host_id + std::uint64_t{mapping->length}; id += kIdsPerBlock) {
        claimed_blocks_ += HashOf(mapping->pod_uid, id / kIdsPerBlock);
      }
    } else if (table == Table::kUsernsBlocks) {
      const auto block = DecodeUsernsBlock(payload);
      stored_blocks_ += HashOf(block->pod_uid, block->block);
    }
  }

  // Sums up the keys of the credential index, in any order: those that the records need, and those
  // that are there.
  void CountIndexRows(Table table, const Key16& key, Payload payload) {
    if (table == Table::kCredentialIndex) {
      stored_rows_ += Digest(key);
    } else if (table == Table::kPulled && schema().has(Table::kCredentialIndex)) {
      for (const Key16& row : IndexKeysOf(payload, key, inspection_.identity->hash_seed)) {
        needed_rows_ += Digest(row);
      }
    }
  }

  // Keys are hashes already.
  static std::uint64_t Digest(const Key16& key) {
    std::uint64_t halves[2];
    std::memcpy(halves, key.bytes.data(), sizeof(halves));
    return (halves[0] ^ 0x9e3779b97f4a7c15) * (halves[1] | 1);
  }

  static std::uint64_t HashOf(std::string_view pod_uid, std::uint64_t block) {
    const Key16 key = HashKey(pod_uid, block);
    std::uint64_t hash = 0;
    std::memcpy(&hash, key.bytes.data(), sizeof(hash));
    return hash;
  }

  Inspection& inspection_;
  const TableSpec* current_ = nullptr;
  std::array<bool, kTableCount> seen_{};
  std::uint64_t claimed_blocks_ = 0;
  std::uint64_t stored_blocks_ = 0;
  std::uint64_t needed_rows_ = 0;
  std::uint64_t stored_rows_ = 0;
  bool trust_seen_ = false;
  bool has_counters_ = false;
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

// What every write to the file changes. The time alone is not enough: two writes may fall into one
// tick of the kernel's clock.
struct Stamp {
  off_t bytes = 0;
  std::pair<time_t, long> written;
  std::string meta_pages;
  friend bool operator==(const Stamp&, const Stamp&) = default;
};

Result<Stamp> StampOf(const Fd& file, OnReadError on_error) {
  Stamp stamp;
  struct stat st {};
  if (fstat(file.get(), &st) != 0) return SystemError(errno, "look at", PathOf(file.get()));
  stamp.bytes = st.st_size;
  stamp.written = {st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
  stamp.meta_pages.resize(std::size_t{2} * kMaxPageBytes);
  const ssize_t got = pread(file.get(), stamp.meta_pages.data(), stamp.meta_pages.size(), 0);
  if (got < 0 && on_error == OnReadError::kFail) {
    return CanBeSkipped(SystemError(errno, "read", PathOf(file.get())));
  }
  stamp.meta_pages.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return stamp;
}

// `which` −1: the newer page's tree.
Result<Inspection> Inspect(const Fd& file, FileIs file_is, int which, OnReadError on_error) {
  auto before = TRY(StampOf(file, on_error));
  Inspection inspection;
  inspection.sound = true;
  ValueCheck check(inspection);
  auto walk = TRY(which < 0 ? WalkFile(file.get(), check, on_error)
                            : WalkTreeOf(file.get(), which, check, on_error));
  check.Finish();
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
  if (file_is != FileIs::kCompactCopy) {
    TRY(CheckMetaIds(file, which, on_error, inspection));
  }
  auto after = TRY(StampOf(file, on_error));
  inspection.moved = before != after;
  return inspection;
}

}  // namespace

Result<Inspection> InspectFile(const Fd& file, FileIs file_is, OnReadError on_error) {
  return Inspect(file, file_is, -1, on_error);
}

Result<Inspection> InspectTreeOf(const Fd& file, int which, OnReadError on_error) {
  return Inspect(file, FileIs::kStore, which, on_error);
}

}  // namespace waybill::internal
