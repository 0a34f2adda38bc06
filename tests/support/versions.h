// Stores of each schema version, and what they hold, read by liblmdb and so whatever their version.

#ifndef WAYBILL_TESTS_SUPPORT_VERSIONS_H_
#define WAYBILL_TESTS_SUPPORT_VERSIONS_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "store/database/header.h"
#include "store/database/tables.h"
#include "tests/support/raw_lmdb.h"
#include "waybill/node_store.h"

namespace waybill::testing {

// A copy of the golden store of `version` as the store in `directory`, which is made.
void PlaceGolden(const std::filesystem::path& directory, std::uint32_t version);

// The store's values, whole, by table and key; under "" the header records.
RawModel ValuesIn(const std::filesystem::path& directory);
// Of a value in one of them: what the envelope says, and what it holds.
std::uint16_t VersionOf(const std::string& value);
std::vector<std::uint8_t> PayloadOf(const std::string& value);

struct Contents {
  std::vector<ImagePulledRecord> records;  // by ref and handler, as are the others by their names
  std::vector<ImagePullIntent> intents;
  std::vector<QuarantineEntry> quarantine;
  std::vector<ImagePreloadedRecord> preloaded;
  std::vector<RuntimeHandler> handlers;
  std::map<std::string, std::string> imported;  // content by path
  std::vector<std::tuple<Timestamp, bool, std::string>> journal;
  bool distrustful = false;

  friend bool operator==(const Contents&, const Contents&) = default;
};
Contents ContentsOf(const std::filesystem::path& directory);
// Stamps tell when a record was written, which is more than what it says.
Contents WithoutStamps(Contents contents);
const ImagePulledRecord* FindRecord(const Contents& contents, const std::string& image_ref,
                                    const std::string& runtime_handler = {});

internal::Identity IdentityOf(const std::filesystem::path& directory);
internal::State StateOf(const std::filesystem::path& directory);

// Handlers with and without a guest platform, and a default one.
std::vector<RuntimeHandler> SomeHandlers();

// Makes the store say that it has this schema version, in an envelope of that version.
void PutIdentity(const std::filesystem::path& directory, std::uint32_t schema_version,
                 std::uint16_t envelope_version);
// Makes the store's newest version unknown to this library.
void MakeNewer(const std::filesystem::path& directory);

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_VERSIONS_H_
