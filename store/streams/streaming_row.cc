#include "store/streams/streaming_row.h"

#include <flatbuffers/flatbuffers.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "schema/v1/streaming_generated.h"
#include "store/base/hex.h"
#include "store/disk/flatbuffer.h"

namespace waybill::internal {

namespace {

namespace v1 = schema::v1;

constexpr std::size_t kSealKeyBytes = 32;
constexpr std::size_t kSealTagBytes = 16;
constexpr std::size_t kHmacBytes = 64;

Error LibcryptoRefused() {
  return {ErrorCode::kIo,
          "libcrypto refused to seal or open a streaming request; nothing was changed",
          "look for memory that ran out, or for an OpenSSL configuration without AES-GCM or HMAC"};
}

Error SealIsBroken() {
  return {ErrorCode::kDamaged,
          "what is stored of this streaming token was changed; it opens nothing, and was left as "
          "it is"};
}

// Bytes that are cleared when they go.
struct SecretBytes {
  std::vector<std::uint8_t> bytes;

  explicit SecretBytes(std::size_t size) : bytes(size) {}
  SecretBytes(SecretBytes&&) = default;
  ~SecretBytes() { OPENSSL_cleanse(bytes.data(), bytes.size()); }
};

// Key and nonce, of which a token and its row have their own: a key seals one request
// (schema/v1/streaming.fbs). Empty: libcrypto failed.
SecretBytes DeriveKey(const StreamToken& token, const StoreUuid& store, const StreamingRow& row) {
  std::string input = "waybill streaming request";
  input.append(store.begin(), store.end());
  input.push_back(static_cast<char>(row.kind));
  input.append(row.boot.begin(), row.boot.end());
  for (const std::int64_t time : {row.prepared, row.expires}) {
    for (unsigned shift = 0; shift < 64; shift += 8) {
      input.push_back(static_cast<char>(static_cast<std::uint64_t>(time) >> shift & 0xff));
    }
  }
  SecretBytes key(kHmacBytes);
  const bool done = HMAC(EVP_sha512(), token.data(), static_cast<int>(token.size()),
                         reinterpret_cast<const unsigned char*>(input.data()), input.size(),
                         key.bytes.data(), nullptr) != nullptr;
  if (!done) key.bytes.clear();
  return key;
}

using Cipher = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

// AES-256-GCM, fed with `in`, which becomes `out`: only the tag is left to do. Null: libcrypto
// failed.
Cipher RunCipher(const SecretBytes& key, bool seals, std::span<const std::uint8_t> in,
                 std::uint8_t* out) {
  Cipher cipher(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  int written = 0;
  const bool done =
      cipher && !key.bytes.empty() &&
      EVP_CipherInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, key.bytes.data(),
                        key.bytes.data() + kSealKeyBytes, seals ? 1 : 0) == 1 &&
      EVP_CipherUpdate(cipher.get(), out, &written, in.data(), static_cast<int>(in.size())) == 1 &&
      static_cast<std::size_t>(written) == in.size();
  if (!done) cipher.reset();
  return cipher;
}

SecretBytes EncodeRequest(const StreamRequest& request) {
  // As large as it gets: a buffer that grows leaves copies.
  constexpr std::size_t kPerString = 24;
  std::size_t size = 1024 + request.container_id.size() + request.pod_sandbox_id.size() +
                     sizeof(std::uint16_t) * request.ports.size();
  for (const std::string& argument : request.command) size += argument.size() + kPerString;
  flatbuffers::FlatBufferBuilder builder(size);
  const auto container = StringUnlessEmpty(builder, request.container_id);
  const auto sandbox = StringUnlessEmpty(builder, request.pod_sandbox_id);
  const auto command = builder.CreateVectorOfStrings(request.command);
  const auto ports = builder.CreateVector(request.ports);
  builder.Finish(v1::CreateStreamingRequest(builder, container, sandbox, command, request.std_in,
                                            request.std_out, request.std_err, request.tty, ports));
  SecretBytes encoded(builder.GetSize());
  std::copy_n(builder.GetBufferPointer(), builder.GetSize(), encoded.bytes.begin());
  OPENSSL_cleanse(builder.GetBufferPointer(), builder.GetSize());
  return encoded;
}

std::optional<StreamRequest> DecodeRequest(StreamKind kind, std::span<const std::uint8_t> bytes) {
  const auto* root = Root<v1::StreamingRequest>(bytes);
  if (root == nullptr || root->command() == nullptr || root->ports() == nullptr) {
    return std::nullopt;
  }
  StreamRequest request;
  request.kind = kind;
  request.container_id = Text(root->container_id());
  request.pod_sandbox_id = Text(root->pod_sandbox_id());
  for (const auto* argument : *root->command()) request.command.emplace_back(Text(argument));
  request.std_in = root->std_in();
  request.std_out = root->std_out();
  request.std_err = root->std_err();
  request.tty = root->tty();
  request.ports.assign(root->ports()->begin(), root->ports()->end());
  return request;
}

}  // namespace

// --- Rows ----------------------------------------------------------------------------------------

Key16 StreamingKey(const Sha256Digest& token_sha256) {
  Key16 key;
  std::memcpy(key.bytes.data(), token_sha256.data(), key.bytes.size());
  return key;
}

std::string TokenIdOf(const Sha256Digest& token_sha256) {
  return HexEncode(std::span(token_sha256).first<8>());
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
      root->prepared_at() == nullptr || root->sealed() == nullptr ||
      root->kind() < static_cast<std::uint8_t>(StreamKind::kExec) ||
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

// --- Seals ---------------------------------------------------------------------------------------

Result<std::vector<std::uint8_t>> SealRequest(const StreamToken& token, const StoreUuid& store,
                                              const StreamingRow& row,
                                              const StreamRequest& request) {
  const SecretBytes plain = EncodeRequest(request);
  const std::size_t size = plain.bytes.size();
  std::vector<std::uint8_t> sealed(size + kSealTagBytes);
  const Cipher cipher = RunCipher(DeriveKey(token, store, row), true, plain.bytes, sealed.data());
  int rest = 0;
  if (!cipher || EVP_CipherFinal_ex(cipher.get(), sealed.data() + size, &rest) != 1 || rest != 0 ||
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_GET_TAG, kSealTagBytes,
                          sealed.data() + size) != 1) {
    return LibcryptoRefused();
  }
  return sealed;
}

Result<StreamRequest> UnsealRequest(const StreamToken& token, const StoreUuid& store,
                                    const StreamingRow& row) {
  if (row.sealed.size() < kSealTagBytes) return SealIsBroken();
  const std::size_t size = row.sealed.size() - kSealTagBytes;
  std::array<std::uint8_t, kSealTagBytes> tag{};
  std::copy(row.sealed.end() - kSealTagBytes, row.sealed.end(), tag.begin());
  SecretBytes plain(size);
  const Cipher cipher =
      RunCipher(DeriveKey(token, store, row), false, row.sealed.first(size), plain.bytes.data());
  if (!cipher ||
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_SET_TAG, kSealTagBytes, tag.data()) != 1) {
    return LibcryptoRefused();
  }
  int rest = 0;
  // The tag is compared here, in constant time.
  if (EVP_CipherFinal_ex(cipher.get(), plain.bytes.data() + size, &rest) != 1) {
    return SealIsBroken();
  }
  auto request = DecodeRequest(row.kind, plain.bytes);
  if (!request) return SealIsBroken();
  return *std::move(request);
}

}  // namespace waybill::internal
