// The records that are always decoded whole: intents, quarantine entries, preloaded records,
// imported files.

#ifndef WAYBILL_STORE_RECORD_SMALL_RECORDS_H_
#define WAYBILL_STORE_RECORD_SMALL_RECORDS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/types.h"

namespace waybill::internal {

// One file that an import took, and what it held.
struct ImportedFile {
  std::string path;
  std::array<std::uint8_t, 32> content{};
};

std::vector<std::uint8_t> EncodeIntentValue(std::string_view image, Timestamp recorded);
std::vector<std::uint8_t> EncodeQuarantineValue(const QuarantineEntry& entry);
std::vector<std::uint8_t> EncodePreloadedValue(const ImagePreloadedRecord& record);
std::vector<std::uint8_t> EncodeImportedFileValue(const ImportedFile& file);

// nullopt: not a FlatBuffer of that table, or a field is missing.
std::optional<ImagePullIntent> DecodeIntentValue(std::span<const std::uint8_t> payload);
std::optional<QuarantineEntry> DecodeQuarantineValue(std::span<const std::uint8_t> payload);
std::optional<ImagePreloadedRecord> DecodePreloadedValue(std::span<const std::uint8_t> payload);
std::optional<ImportedFile> DecodeImportedFileValue(std::span<const std::uint8_t> payload);

// An intent's image string in place; nothing is checked but the envelope (see PulledRecordView).
std::string_view IntentImage(std::span<const std::uint8_t> payload);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_RECORD_SMALL_RECORDS_H_
