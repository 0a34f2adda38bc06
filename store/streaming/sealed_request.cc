#include "store/streaming/sealed_request.h"

#include <flatbuffers/flatbuffers.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>

#include "schema/v1/streaming_generated.h"
#include "store/base/hex.h"
#include "store/base/random.h"
#include "store/engine/database/flatbuffer.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

constexpr std::size_t kSealKeyBytes = 32;
constexpr std::size_t kSealNonceBytes = 12;
constexpr std::size_t kSealTagBytes = 16;

Error LibcryptoRefused() {
  return {ErrorCode::kIo,
          "libcrypto refused to seal or open a streaming request; nothing was changed",
          "look for memory that ran out, or for an OpenSSL configuration without AES-GCM or HKDF"};
}

Error SealIsBroken() {
  return {ErrorCode::kDamaged,
          "what is stored of this streaming token was changed; it opens nothing, and was left as "
          "it is"};
}

// Bytes that are cleared when they go.
template <std::size_t N>
struct Secret {
  std::array<std::uint8_t, N> bytes{};

  Secret() = default;
  Secret(const Secret&) = delete;
  ~Secret() { OPENSSL_cleanse(bytes.data(), bytes.size()); }
};

struct SecretBytes {
  std::vector<std::uint8_t> bytes;

  SecretBytes() = default;
  SecretBytes(const SecretBytes&) = delete;
  ~SecretBytes() { OPENSSL_cleanse(bytes.data(), bytes.size()); }
};

using SealKey = Secret<kSealKeyBytes + kSealNonceBytes>;

// Fetched once, since that takes longer than all the rest; again if memory ran out.
EVP_KDF* FetchHkdf() {
  static std::atomic<EVP_KDF*> kept{nullptr};
  EVP_KDF* kdf = kept.load();
  if (kdf != nullptr) return kdf;
  EVP_KDF* const fetched = EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_HKDF, nullptr);
  if (fetched == nullptr || kept.compare_exchange_strong(kdf, fetched)) return fetched;
  EVP_KDF_free(fetched);  // another thread was faster
  return kdf;
}

// A key seals one request, so its nonce can come from the same source.
bool DeriveSealKey(const StreamToken& token, const StoreUuid& store, SealKey& key) {
  EVP_KDF* const kdf = FetchHkdf();
  if (kdf == nullptr) return false;
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(EVP_KDF_CTX_new(kdf),
                                                                          EVP_KDF_CTX_free);
  if (!context) return false;
  std::string digest = "SHA256";
  std::string info = "waybill streaming request";
  Secret<16> input;
  std::copy(token.bytes().begin(), token.bytes().end(), input.bytes.begin());
  StoreUuid salt = store;
  const std::array<OSSL_PARAM, 5> params = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, input.bytes.data(), input.bytes.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, salt.data(), salt.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
      OSSL_PARAM_construct_end()};
  return EVP_KDF_derive(context.get(), key.bytes.data(), key.bytes.size(), params.data()) == 1;
}

// schema/v1/streaming.fbs, "additional data".
std::vector<std::uint8_t> AdditionalDataOf(const StreamingRow& row) {
  std::vector<std::uint8_t> data(row.token_sha256.begin(), row.token_sha256.end());
  data.push_back(static_cast<std::uint8_t>(row.kind));
  data.insert(data.end(), row.boot.begin(), row.boot.end());
  for (const std::int64_t time : {row.prepared, row.expires}) {
    for (unsigned shift = 0; shift < 64; shift += 8) {
      data.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(time) >> shift & 0xff));
    }
  }
  return data;
}

using Cipher = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

// AES-256-GCM with the key of that token, fed with the additional data. Null: libcrypto failed.
Cipher BeginCipher(const StreamToken& token, const StoreUuid& store, const StreamingRow& row,
                   bool seals) {
  Cipher cipher(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  SealKey key;
  const std::vector<std::uint8_t> data = AdditionalDataOf(row);
  int ignored = 0;
  const bool begun = cipher && DeriveSealKey(token, store, key) &&
                     EVP_CipherInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, key.bytes.data(),
                                       key.bytes.data() + kSealKeyBytes, seals ? 1 : 0) == 1 &&
                     EVP_CipherUpdate(cipher.get(), nullptr, &ignored, data.data(),
                                      static_cast<int>(data.size())) == 1;
  if (!begun) cipher.reset();
  return cipher;
}

void EncodeRequest(const StreamRequest& request, SecretBytes& encoded) {
  // As large as it gets: a buffer that grows leaves copies.
  constexpr std::size_t kPerString = 24;
  std::size_t bytes = 1024 + request.container_id.size() + request.pod_sandbox_id.size() +
                      sizeof(std::uint16_t) * request.ports.size();
  for (const std::string& argument : request.command) bytes += argument.size() + kPerString;
  flatbuffers::FlatBufferBuilder builder(bytes);
  const auto container = StringUnlessEmpty(builder, request.container_id);
  const auto sandbox = StringUnlessEmpty(builder, request.pod_sandbox_id);
  const auto command = builder.CreateVectorOfStrings(request.command);
  const auto ports = builder.CreateVector(request.ports);
  builder.Finish(schema::v1::CreateStreamingRequest(builder, container, sandbox, command,
                                                    request.std_in, request.std_out,
                                                    request.std_err, request.tty, ports));
  const auto span = builder.GetBufferSpan();
  encoded.bytes.assign(span.begin(), span.end());
  OPENSSL_cleanse(builder.GetBufferPointer(), builder.GetSize());
}

std::optional<StreamRequest> DecodeRequest(StreamKind kind, std::span<const std::uint8_t> bytes) {
  const auto* root = Root<schema::v1::StreamingRequest>(bytes);
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

std::string TokenIdOf(const Sha256Digest& token_sha256) {
  return HexEncode(std::span(token_sha256).first<8>());
}

Result<StreamToken> StreamToken::Draw() {
  StreamToken token;
  if (!Randomise(token.bytes_.data(), token.bytes_.size())) {
    return Error{ErrorCode::kIo, "the system gave no random numbers; no token was made"};
  }
  return token;
}

std::optional<StreamToken> StreamToken::Parse(std::string_view text) {
  StreamToken token;
  if (!HexDecode(text, token.bytes_)) return std::nullopt;
  return token;
}

StreamToken::~StreamToken() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

std::string StreamToken::ToString() const { return HexEncode(bytes_); }

Result<std::vector<std::uint8_t>> SealRequest(const StreamToken& token, const StoreUuid& store,
                                              const StreamingRow& row,
                                              const StreamRequest& request) {
  SecretBytes plain;
  EncodeRequest(request, plain);
  if (plain.bytes.size() + 1024 > kMaxValueBytes) {
    return Error{ErrorCode::kLimitExceeded, "the command is too large; nothing was changed"};
  }
  const Cipher cipher = BeginCipher(token, store, row, true);
  std::vector<std::uint8_t> sealed(plain.bytes.size() + kSealTagBytes);
  int written = 0;
  int rest = 0;
  const bool done =
      cipher &&
      EVP_CipherUpdate(cipher.get(), sealed.data(), &written, plain.bytes.data(),
                       static_cast<int>(plain.bytes.size())) == 1 &&
      EVP_CipherFinal_ex(cipher.get(), sealed.data() + written, &rest) == 1 &&
      static_cast<std::size_t>(written) + static_cast<std::size_t>(rest) == plain.bytes.size() &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_GET_TAG, kSealTagBytes,
                          sealed.data() + plain.bytes.size()) == 1;
  if (!done) return LibcryptoRefused();
  return sealed;
}

Result<StreamRequest> UnsealRequest(const StreamToken& token, const StoreUuid& store,
                                    const StreamingRow& row) {
  if (row.sealed.size() < kSealTagBytes) return SealIsBroken();
  const std::size_t size = row.sealed.size() - kSealTagBytes;
  const Cipher cipher = BeginCipher(token, store, row, false);
  std::array<std::uint8_t, kSealTagBytes> tag{};
  std::copy(row.sealed.end() - kSealTagBytes, row.sealed.end(), tag.begin());
  SecretBytes plain;
  plain.bytes.resize(size);
  int written = 0;
  if (!cipher ||
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_SET_TAG, kSealTagBytes, tag.data()) != 1 ||
      EVP_CipherUpdate(cipher.get(), plain.bytes.data(), &written, row.sealed.data(),
                       static_cast<int>(size)) != 1) {
    return LibcryptoRefused();
  }
  int rest = 0;
  // The tag is compared here, in constant time.
  if (EVP_CipherFinal_ex(cipher.get(), plain.bytes.data() + written, &rest) != 1) {
    return SealIsBroken();
  }
  auto request = DecodeRequest(row.kind, plain.bytes);
  if (!request) return SealIsBroken();
  return *std::move(request);
}

}  // namespace waybill::internal
