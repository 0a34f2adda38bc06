#include "store/base/sha256.h"

// These functions are deprecated but allocate nothing. EVP fetches its algorithm at the first use;
// if memory runs out then, libcrypto refuses every hash for the rest of the process.
#include <openssl/crypto.h>
#include <openssl/sha.h>

namespace waybill::internal {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static_assert(sizeof(Sha256Digest) == SHA256_DIGEST_LENGTH);

Result<Sha256Digest> Sha256(std::string_view data) {
  Sha256Digest digest;
  SHA256_CTX context;
  const bool done = SHA256_Init(&context) == 1 &&
                    SHA256_Update(&context, data.data(), data.size()) == 1 &&
                    SHA256_Final(digest.data(), &context) == 1;
  OPENSSL_cleanse(&context, sizeof(context));
  if (!done) return Error{ErrorCode::kIo, "libcrypto refused to compute a SHA-256", ""};
  return digest;
}

#pragma GCC diagnostic pop

}  // namespace waybill::internal
