// Every JSON decoder: no crash, and what is accepted survives a round trip.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "migrations/kubelet_files/kubelet_records.h"
#include "migrations/kubelet_files/userns_file.h"
#include "runtime/files/documents.h"
#include "store/base/timestamp.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  if (const auto record = waybill::DecodePulledRecord(json)) {
    const auto again = waybill::DecodePulledRecord(waybill::EncodePulledRecord(*record));
    if (!again || again->image_ref != record->image_ref ||
        again->credential_mapping != record->credential_mapping) {
      std::abort();
    }
  }
  if (const auto intent = waybill::DecodePullIntent(json)) {
    const auto again = waybill::DecodePullIntent(waybill::EncodePullIntent(*intent));
    if (!again || *again != *intent) std::abort();
  }
  if (const auto mapping = waybill::internal::DecodeUsernsFile("uid", "file", json).mapping) {
    const auto again = waybill::internal::DecodeUsernsFile(
        "uid", "file",
        waybill::internal::EncodeUsernsFile(static_cast<std::uint32_t>(mapping->first),
                                            static_cast<std::uint32_t>(mapping->length)));
    if (again.mapping != mapping) std::abort();
  }
  static_cast<void>(waybill::DecodePreloadedRecord(json));
  static_cast<void>(waybill::DecodeImageList(json));
  static_cast<void>(waybill::DecodePreloadedList(json));
  static_cast<void>(waybill::DecodePodList(json));
  static_cast<void>(waybill::DecodeAuthDocument(json));
  static_cast<void>(waybill::ParseTimestamp(json));
  return 0;
}
