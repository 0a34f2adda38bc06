#include "store/streaming/streaming_table.h"

#include <flatbuffers/flatbuffers.h>

#include <cstring>

#include "schema/v1/streaming_generated.h"
#include "store/engine/database/flatbuffer.h"

namespace waybill::internal {

namespace {

namespace v1 = schema::v1;

}  // namespace

Key16 StreamingKey(const Sha256Digest& token_sha256) {
  Key16 key;
  std::memcpy(key.bytes.data(), token_sha256.data(), key.bytes.size());
  return key;
}

std::vector<std::uint8_t> EncodeStreamingRow(const StreamingRow& row) {
  flatbuffers::FlatBufferBuilder builder(row.sealed.size() + 256);
  const auto sealed = builder.CreateVector(row.sealed.data(), row.sealed.size());
  const v1::Sha256 token(Raw(row.token_sha256));
  const v1::Uuid boot(Raw(row.boot));
  const v1::Time at = ToTime(row.prepared_at);
  return Finish(
      builder, v1::CreateStreamingToken(builder, &token, static_cast<std::uint8_t>(row.kind), &boot,
                                        row.prepared, row.expires, &at, sealed));
}

std::optional<StreamingRow> DecodeStreamingRow(Payload payload) {
  const auto* root = Root<v1::StreamingToken>(payload);
  if (root == nullptr || root->token_sha256() == nullptr || root->boot() == nullptr ||
      root->prepared_at() == nullptr || root->sealed() == nullptr) {
    return std::nullopt;
  }
  if (root->kind() < static_cast<std::uint8_t>(StreamKind::kExec) ||
      root->kind() > static_cast<std::uint8_t>(StreamKind::kPortForward) || root->prepared() < 0 ||
      root->expires() < root->prepared()) {
    return std::nullopt;
  }
  StreamingRow row;
  std::memcpy(row.token_sha256.data(), root->token_sha256()->bytes()->data(),
              row.token_sha256.size());
  row.kind = static_cast<StreamKind>(root->kind());
  std::memcpy(row.boot.data(), root->boot()->bytes()->data(), row.boot.size());
  row.prepared = root->prepared();
  row.expires = root->expires();
  row.prepared_at = FromTime(*root->prepared_at());
  row.sealed = {root->sealed()->data(), root->sealed()->size()};
  return row;
}

std::optional<Key16> KeyOfStreamingToken(Payload payload, std::uint64_t) {
  const auto row = DecodeStreamingRow(payload);
  return row ? std::optional(StreamingKey(row->token_sha256)) : std::nullopt;
}

}  // namespace waybill::internal
