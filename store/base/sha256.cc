#include "store/base/sha256.h"

#include <openssl/err.h>
#include <openssl/evp.h>

#include <string>

namespace waybill::internal {
namespace {

// Takes the reason from the thread's error queue and leaves that empty.
Error Refused() {
  std::array<char, 256> reason{"no reason given"};
  if (const unsigned long code = ERR_get_error(); code != 0) {
    ERR_error_string_n(code, reason.data(), reason.size());
  }
  ERR_clear_error();
  return {ErrorCode::kIo, "libcrypto refused to compute a SHA-256: " + std::string(reason.data()),
          "check that OpenSSL's configuration of this process allows SHA-256"};
}

}  // namespace

Result<Sha256Digest> Sha256(std::string_view data) {
  Sha256Digest digest;
  if (EVP_Digest(data.data(), data.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1) {
    return Refused();
  }
  return digest;
}

}  // namespace waybill::internal
