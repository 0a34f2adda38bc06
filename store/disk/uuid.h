// UIDs of the form 8-4-4-4-12 in lower-case hex.

#ifndef WAYBILL_STORE_DISK_UUID_H_
#define WAYBILL_STORE_DISK_UUID_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace waybill::internal {

// False: `text` has another form, and `raw` is undefined.
bool DecodeUuid(std::string_view text, std::array<std::uint8_t, 16>& raw);
std::string EncodeUuid(std::span<const std::uint8_t, 16> raw);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DISK_UUID_H_
