#include "tests/support/versions.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "store/disk/envelope.h"
#include "store/disk/trust.h"
#include "store/images/images.h"
#include "store/images/kubelet_file_row.h"
#include "store/images/other_rows.h"
#include "store/images/pull_row.h"

namespace waybill::testing {

namespace {

using internal::Table;

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
  const RawTxn txn(store, MDB_RDONLY);
  RawModel values;
  const auto read = [&](const std::string& table) {
    auto& into = values[table];
    txn.ForEach(txn.Table(table),
                [&](MDB_val key, MDB_val value) { into.emplace(ToText(key), ToText(value)); });
  };
  read("");
  auto& main = values[""];
  for (const auto& table : internal::kTables) {
    if (internal::LiesInMain(table.table)) {
      auto& own = values[table.name];
      const auto first = main.lower_bound(KeyText(internal::FirstKeyOf(table.table)));
      own.insert(first, main.end());
      main.erase(first, main.end());
    } else if (main.erase(table.name) == 1) {
      read(table.name);
    }
  }
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
  std::vector<internal::ImageRow> rows;
  DecodeAll(values, Table::kImages, internal::DecodeImage, rows);
  const internal::Clocks clocks = StateOf(directory).clocks;
  for (const internal::ImageRow& row : rows) {
    if (row.pulled) contents.records.push_back(internal::RecordOf(row, clocks, clocks.wall));
    if (row.preloaded) contents.ledger.push_back(internal::PreloadedOf(row, clocks, clocks.wall));
  }
  std::vector<UnresolvedPull> pulls;
  DecodeAll(values, Table::kIntents, internal::DecodeUnresolvedPull, pulls);
  for (UnresolvedPull& pull : pulls) {
    if (pull.nothing_at != 0) continue;
    if (pull.anything) {
      contents.open_to_anything = true;
    } else {
      contents.intents.push_back({std::move(pull.image), std::move(pull.runtime_handler)});
    }
  }
  DecodeAll(values, Table::kQuarantine, internal::DecodeQuarantineValue, contents.quarantine);
  DecodeAll(values, Table::kPreloaded, internal::DecodePreloadedValue, contents.preloaded);
  DecodeAll(values, Table::kRuntimeHandlers, internal::DecodeRuntimeHandlerValue,
            contents.handlers);
  std::vector<internal::KubeletFileRow> files;
  DecodeAll(values, Table::kKubeletFiles, internal::DecodeKubeletFile, files);
  for (const auto& file : files) {
    if (file.content) contents.imported[file.path] = {file.content->begin(), file.content->end()};
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
  by(contents.ledger,
     [](const auto& entry) { return std::pair(entry.image_ref, entry.runtime_handler); });
  by(contents.preloaded, [](const auto& record) { return record.image_ref; });
  by(contents.handlers, [](const auto& handler) { return handler.name; });
  return contents;
}

Contents WithoutStamps(Contents contents) {
  for (ImagePulledRecord& record : contents.records) record.stamp = 0;
  for (PreloadedImage& entry : contents.ledger) entry.stamp = 0;
  return contents;
}

void DropSeveral(Contents& contents) {
  auto& intents = contents.intents;  // sorted
  intents.erase(std::unique(intents.begin(), intents.end()), intents.end());
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

void PutIdentity(const std::filesystem::path& directory, std::uint32_t schema_version,
                 std::uint16_t envelope_version) {
  internal::Identity identity = IdentityOf(directory);
  identity.schema_version = schema_version;
  const auto value = internal::Seal(internal::kIdentityKey, internal::RecordKind::kIdentity,
                                    envelope_version, internal::EncodeIdentity(identity));
  const RawStore store(directory, 0);
  RawTxn txn(store);
  txn.Put(txn.Table(""), KeyText(internal::kIdentityKey),
          {reinterpret_cast<const char*>(value.data()), value.size()});
  txn.Commit();
}

void MakeNewer(const std::filesystem::path& directory) {
  PutIdentity(directory, IdentityOf(directory).schema_version,
              static_cast<std::uint16_t>(kNewestSchema + 1));
}

}  // namespace waybill::testing
