// Stores of each schema version, and what they hold. liblmdb reads them, so any version can be
// read.

#ifndef WAYBILL_TESTS_SUPPORT_VERSIONS_H_
#define WAYBILL_TESTS_SUPPORT_VERSIONS_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "store/base/options.h"
#include "store/disk/header.h"
#include "store/disk/tables.h"
#include "tests/support/raw_lmdb.h"
#include "waybill/values.h"

namespace waybill::testing {

// Creates `directory` with a copy of the golden store of `version`.
void PlaceGolden(const std::filesystem::path& directory, std::uint32_t version);

// The store's values by table and key; the header records are in table "".
RawModel ValuesIn(const std::filesystem::path& directory);
// The version that a value's envelope says, and the payload in it.
std::uint16_t VersionOf(const std::string& value);
std::vector<std::uint8_t> PayloadOf(const std::string& value);

struct Contents {
  std::vector<ImagePulledRecord> records;  // by ref and handler, as are the others by their names
  std::vector<ImagePullIntent> intents;    // or open pulls, but for those of anything
  bool open_to_anything = false;           // there is an open pull of anything
  std::vector<PreloadedImage> ledger;
  std::vector<QuarantinedFile> quarantine;
  std::vector<ImagePreloadedRecord> preloaded;
  std::vector<RuntimeHandler> handlers;
  std::map<std::string, std::string> imported;  // content by path
  std::vector<std::tuple<Timestamp, bool, std::string>> journal;
  bool distrustful = false;

  friend bool operator==(const Contents&, const Contents&) = default;
};
Contents ContentsOf(const std::filesystem::path& directory);
// Stamps say when a record was written, which is not part of its content.
Contents WithoutStamps(Contents contents);
// Opening a store ends its pulls, and those of a string that ended alike are kept as one.
void DropSeveral(Contents& contents);
const ImagePulledRecord* FindRecord(const Contents& contents, const std::string& image_ref,
                                    const std::string& runtime_handler = {});

internal::Identity IdentityOf(const std::filesystem::path& directory);
internal::State StateOf(const std::filesystem::path& directory);

// Handlers with and without a guest platform, and a default one.
std::vector<RuntimeHandler> SomeHandlers();

// Makes the store say that it has this schema version, in an envelope of that version.
void PutIdentity(const std::filesystem::path& directory, std::uint32_t schema_version,
                 std::uint16_t envelope_version);
// Makes the store newer than this library.
void MakeNewer(const std::filesystem::path& directory);

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_VERSIONS_H_
