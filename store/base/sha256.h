// SHA-256 by libcrypto. Allocates nothing.

#ifndef WAYBILL_STORE_BASE_SHA256_H_
#define WAYBILL_STORE_BASE_SHA256_H_

#include <array>
#include <cstdint>
#include <string_view>

#include "waybill/result.h"

namespace waybill::internal {

using Sha256Digest = std::array<std::uint8_t, 32>;

// kIo: libcrypto failed.
Result<Sha256Digest> Sha256(std::string_view data);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_SHA256_H_
