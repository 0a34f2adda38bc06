// The small records: intents, quarantine entries, preloaded records, imported files, runtime
// handlers.

#ifndef WAYBILL_STORE_DATABASE_SMALL_RECORDS_H_
#define WAYBILL_STORE_DATABASE_SMALL_RECORDS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/runtime_handler.h"
#include "waybill/types.h"

namespace waybill::internal {

// One file that an import took, and what it held.
struct ImportedFile {
  std::string path;
  std::array<std::uint8_t, 32> content{};
};

std::vector<std::uint8_t> EncodeIntentValue(std::string_view image,
                                            std::string_view runtime_handler, Timestamp recorded);
std::vector<std::uint8_t> EncodeRuntimeHandlerValue(const RuntimeHandler& handler);
std::vector<std::uint8_t> EncodeQuarantineValue(const QuarantineEntry& entry);
std::vector<std::uint8_t> EncodePreloadedValue(const ImagePreloadedRecord& record);
std::vector<std::uint8_t> EncodeImportedFileValue(const ImportedFile& file);

// nullopt: not a FlatBuffer of that table, or a field is missing or above limits.h.
std::optional<ImagePullIntent> DecodeIntentValue(std::span<const std::uint8_t> payload);
std::optional<QuarantineEntry> DecodeQuarantineValue(std::span<const std::uint8_t> payload);
std::optional<ImagePreloadedRecord> DecodePreloadedValue(std::span<const std::uint8_t> payload);
std::optional<ImportedFile> DecodeImportedFileValue(std::span<const std::uint8_t> payload);

std::optional<RuntimeHandler> DecodeRuntimeHandlerValue(std::span<const std::uint8_t> payload);

// In place; nothing is checked but the envelope (see PulledRecordView).
struct IntentView {
  std::string_view image;
  std::string_view runtime_handler;
};
IntentView ViewIntent(std::span<const std::uint8_t> payload);
struct RuntimeHandlerView {
  std::string_view name;
  bool is_default = false;
  bool user_namespaces = false;
};
RuntimeHandlerView ViewRuntimeHandler(std::span<const std::uint8_t> payload);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DATABASE_SMALL_RECORDS_H_
