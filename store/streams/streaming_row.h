// A streaming request as it is stored: table "streaming-tokens", schema/v1/streaming.fbs. A row
// says what a token opens only to who has the token.

#ifndef WAYBILL_STORE_STREAMS_STREAMING_ROW_H_
#define WAYBILL_STORE_STREAMS_STREAMING_ROW_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/base/sha256.h"
#include "store/disk/key.h"
#include "store/disk/tables.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill {

// kInvalidArgument, by the rules of CRI's streaming server (k8s.io/cri-streaming, v0.36) and some
// of waybill's own: streaming_request.cc has them all. kLimitExceeded: above a bound in limits.h.
Result<void> CheckStreamRequest(const StreamRequest& request);

namespace internal {

struct StreamingRow {
  Sha256Digest token_sha256{};
  StreamKind kind = StreamKind::kExec;
  std::array<std::uint8_t, 16> boot{};  // in which it was prepared; zeros: unknown
  std::int64_t prepared = 0;            // CLOCK_BOOTTIME in nanoseconds; likewise below
  std::int64_t expires = 0;
  Timestamp prepared_at;
  std::span<const std::uint8_t> sealed;  // in the payload that was decoded
};

// The first 16 bytes. Tokens are random, so two rows never meet.
Key16 StreamingKey(const Sha256Digest& token_sha256);
// StreamTokenId, of the token's SHA-256.
std::string TokenIdOf(const Sha256Digest& token_sha256);

std::vector<std::uint8_t> EncodeStreamingRow(const StreamingRow& row);
// nullopt: not a FlatBuffer of that table, or a field is missing or makes no sense.
std::optional<StreamingRow> DecodeStreamingRow(Payload payload);

// 128 random bits. As text: 32 lower-case hex digits, and no other spelling.
using StreamToken = std::array<std::uint8_t, 16>;
using StoreUuid = std::array<std::uint8_t, 16>;

// `row` has all but `sealed`, and is authenticated with the request. kIo: libcrypto failed.
Result<std::vector<std::uint8_t>> SealRequest(const StreamToken& token, const StoreUuid& store,
                                              const StreamingRow& row,
                                              const StreamRequest& request);
// kDamaged: what is sealed, or what the row says beside it, is not what was stored. kIo: libcrypto
// failed.
Result<StreamRequest> UnsealRequest(const StreamToken& token, const StoreUuid& store,
                                    const StreamingRow& row);

}  // namespace internal

}  // namespace waybill

#endif  // WAYBILL_STORE_STREAMS_STREAMING_ROW_H_
