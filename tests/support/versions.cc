#include "tests/support/versions.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "store/database/envelope.h"
#include "store/database/pulled_record.h"
#include "store/database/typed_tables.h"
#include "store/trust/journal.h"

namespace waybill::testing {

namespace {

using internal::Table;

std::string TextOf(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

void ReadTable(MDB_txn* txn, const char* name, std::map<std::string, std::string>& values) {
  MDB_dbi dbi = 0;
  const int opened = mdb_dbi_open(txn, name, 0, &dbi);
  if (opened == MDB_NOTFOUND) return;
  CheckLmdb(opened, "mdb_dbi_open");
  MDB_cursor* cursor = nullptr;
  CheckLmdb(mdb_cursor_open(txn, dbi, &cursor), "mdb_cursor_open");
  MDB_val key{};
  MDB_val value{};
  while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == MDB_SUCCESS) {
    values[TextOf(key)] = TextOf(value);
  }
  mdb_cursor_close(cursor);
}

std::string KeyText(const internal::Key16& key) {
  return {reinterpret_cast<const char*>(key.bytes.data()), key.bytes.size()};
}

template <typename T, typename Decode>
void DecodeAll(const RawModel& values, Table table, const Decode& decode, std::vector<T>& into) {
  const auto at = values.find(internal::SpecOf(table).name);
  if (at == values.end()) return;
  for (const auto& [key, value] : at->second) {
    auto decoded = decode(PayloadOf(value));
    if (!decoded) throw std::runtime_error("a value can't be decoded");
    into.push_back(std::move(*decoded));
  }
}

// A header record's payload.
std::vector<std::uint8_t> HeaderIn(const RawModel& values, const internal::Key16& key) {
  return PayloadOf(values.at("").at(KeyText(key)));
}

template <typename T>
T Decoded(std::optional<T> decoded) {
  if (!decoded) throw std::runtime_error("a header record can't be decoded");
  return std::move(*decoded);
}

}  // namespace

void PlaceGolden(const std::filesystem::path& directory, std::uint32_t version) {
  if (mkdir(directory.c_str(), 0700) != 0) throw std::runtime_error("mkdir failed");
  std::filesystem::copy_file(std::filesystem::path(WAYBILL_FIXTURES) / "golden" /
                                 ("v" + std::to_string(version)) / "data.mdb",
                             directory / "data.mdb");
}

RawModel ValuesIn(const std::filesystem::path& directory) {
  const RawStore store(directory, MDB_RDONLY | MDB_NOLOCK);
  MDB_txn* txn = nullptr;
  CheckLmdb(mdb_txn_begin(store.env(), nullptr, MDB_RDONLY, &txn), "mdb_txn_begin");
  RawModel values;
  ReadTable(txn, nullptr, values[""]);
  for (const auto& table : internal::kTables) {
    if (values[""].erase(table.name) == 1) ReadTable(txn, table.name, values[table.name]);
  }
  mdb_txn_abort(txn);
  return values;
}

std::uint16_t VersionOf(const std::string& value) {
  std::uint16_t version = 0;
  std::memcpy(&version, value.data() + 2, sizeof(version));
  return version;
}

std::vector<std::uint8_t> PayloadOf(const std::string& value) {
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, value.data() + 4, sizeof(bytes));
  const std::string payload = value.substr(internal::kEnvelopeBytes, bytes);
  return {payload.begin(), payload.end()};
}

Contents ContentsOf(const std::filesystem::path& directory) {
  const RawModel values = ValuesIn(directory);
  Contents contents;
  DecodeAll(values, Table::kPulled, internal::DecodePulledRecordValue, contents.records);
  DecodeAll(values, Table::kIntents, internal::DecodeIntentValue, contents.intents);
  DecodeAll(values, Table::kQuarantine, internal::DecodeQuarantineValue, contents.quarantine);
  DecodeAll(values, Table::kPreloaded, internal::DecodePreloadedValue, contents.preloaded);
  DecodeAll(values, Table::kRuntimeHandlers, internal::DecodeRuntimeHandlerValue,
            contents.handlers);
  std::vector<internal::ImportedFile> imported;
  DecodeAll(values, Table::kImported, internal::DecodeImportedFileValue, imported);
  for (const auto& file : imported) {
    contents.imported[file.path] = {file.content.begin(), file.content.end()};
  }
  for (auto& event : Decoded(internal::DecodeJournal(HeaderIn(values, internal::kTrustKey)))) {
    contents.journal.emplace_back(event.at, event.distrustful, event.reason);
  }
  contents.distrustful = StateOf(directory).distrustful;

  const auto by = [](auto& list, const auto& name) {
    std::sort(list.begin(), list.end(),
              [&](const auto& a, const auto& b) { return name(a) < name(b); });
  };
  by(contents.records,
     [](const auto& record) { return std::pair(record.image_ref, record.runtime_handler); });
  std::sort(contents.intents.begin(), contents.intents.end());
  by(contents.quarantine, [](const auto& entry) { return std::pair(entry.kind, entry.sha256); });
  by(contents.preloaded, [](const auto& record) { return record.image_ref; });
  by(contents.handlers, [](const auto& handler) { return handler.name; });
  return contents;
}

Contents WithoutStamps(Contents contents) {
  for (ImagePulledRecord& record : contents.records) record.stamp = 0;
  return contents;
}

const ImagePulledRecord* FindRecord(const Contents& contents, const std::string& image_ref,
                                    const std::string& runtime_handler) {
  for (const ImagePulledRecord& record : contents.records) {
    if (record.image_ref == image_ref && record.runtime_handler == runtime_handler) return &record;
  }
  return nullptr;
}

internal::Identity IdentityOf(const std::filesystem::path& directory) {
  return Decoded(internal::DecodeIdentity(HeaderIn(ValuesIn(directory), internal::kIdentityKey)));
}

internal::State StateOf(const std::filesystem::path& directory) {
  return Decoded(internal::DecodeState(HeaderIn(ValuesIn(directory), internal::kStateKey)));
}

std::vector<RuntimeHandler> SomeHandlers() {
  RuntimeHandler utility_vm;
  utility_vm.name = "kata";
  utility_vm.guest_platform = Platform{"arm64", "linux"};
  return {{.name = "runc", .is_default = true, .user_namespaces = true},
          utility_vm,
          {.name = "gvisor"}};
}

void MakeNewer(const std::filesystem::path& directory) {
  const auto payload = internal::EncodeIdentity(IdentityOf(directory));
  auto value = internal::Seal(internal::kIdentityKey, internal::RecordKind::kIdentity,
                              static_cast<std::uint16_t>(kNewestSchema + 1), payload);
  const RawStore store(directory, 0);
  MDB_txn* txn = nullptr;
  MDB_dbi dbi = 0;
  CheckLmdb(mdb_txn_begin(store.env(), nullptr, 0, &txn), "mdb_txn_begin");
  CheckLmdb(mdb_dbi_open(txn, nullptr, 0, &dbi), "mdb_dbi_open");
  internal::Key16 key = internal::kIdentityKey;
  MDB_val k{key.bytes.size(), key.bytes.data()};
  MDB_val v{value.size(), value.data()};
  CheckLmdb(mdb_put(txn, dbi, &k, &v, 0), "mdb_put");
  CheckLmdb(mdb_txn_commit(txn), "mdb_txn_commit");
}

}  // namespace waybill::testing
