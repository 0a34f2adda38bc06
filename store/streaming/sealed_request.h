// A streaming request as it is stored: only its token opens it (schema/v1/streaming.fbs).

#ifndef WAYBILL_STORE_STREAMING_SEALED_REQUEST_H_
#define WAYBILL_STORE_STREAMING_SEALED_REQUEST_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/streaming/streaming_table.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// 128 random bits. Cleared when it goes.
class StreamToken {
 public:
  // From the kernel. kIo: it gave none.
  static Result<StreamToken> Draw();
  // 32 lower-case hex digits, and no other spelling. nullopt: another text.
  static std::optional<StreamToken> Parse(std::string_view text);

  StreamToken(StreamToken&& other) noexcept = default;
  StreamToken& operator=(StreamToken&&) = delete;
  StreamToken(const StreamToken&) = delete;
  ~StreamToken();

  std::string ToString() const;
  std::span<const std::uint8_t, 16> bytes() const { return bytes_; }

 private:
  StreamToken() = default;
  std::array<std::uint8_t, 16> bytes_{};
};

// StreamTokenId, of the token's SHA-256.
std::string TokenIdOf(const Sha256Digest& token_sha256);

using StoreUuid = std::array<std::uint8_t, 16>;

// `row` has all but `sealed`, and is authenticated with the request. kIo: libcrypto failed.
// kLimitExceeded: the request takes more than a value may.
Result<std::vector<std::uint8_t>> SealRequest(const StreamToken& token, const StoreUuid& store,
                                              const StreamingRow& row,
                                              const StreamRequest& request);
// kDamaged: what is sealed, or what the row says beside it, is not what was stored. kIo: libcrypto
// failed.
Result<StreamRequest> UnsealRequest(const StreamToken& token, const StoreUuid& store,
                                    const StreamingRow& row);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_STREAMING_SEALED_REQUEST_H_
