
#include <openssl/crypto.h>

#include <cstddef>
#include <utility>

#include "store/base/caught.h"
#include "store/base/go_json.h"
#include "store/base/hex.h"
#include "store/base/sha256.h"
#include "waybill/values.h"

namespace waybill {
namespace {

// JSON with secrets. Reserves room for the longest spelling, so that growing leaves no copy behind,
// and wipes it at the end.
class SecretJson {
 public:
  explicit SecretJson(const AuthConfig& auth) {
    constexpr std::size_t kMaxEscapedBytes = 6;  // a byte becomes \u00xx or \ufffd
    constexpr std::size_t kFrameBytes = 64;      // braces, keys, quotes, colons, commas
    text_.reserve(kFrameBytes + kMaxEscapedBytes * (auth.username.size() + auth.password.size() +
                                                    auth.email.size()));
    text_ = "{";
    Field("username", auth.username);
    Field("password", auth.password);
    Field("email", auth.email);
    text_ += '}';
  }
  SecretJson(const SecretJson&) = delete;
  SecretJson& operator=(const SecretJson&) = delete;
  ~SecretJson() { OPENSSL_cleanse(text_.data(), text_.size()); }

  std::string_view text() const { return text_; }

 private:
  void Field(std::string_view key, std::string_view value) {
    if (value.empty()) return;
    if (text_.size() > 1) text_ += ',';
    AppendGoJsonString(key, text_);
    text_ += ':';
    AppendGoJsonString(value, text_);
  }

  std::string text_;
};

}  // namespace

Result<std::string> HashCredentials(const AuthConfig& auth) try {
  const SecretJson json(auth);
  auto digest = internal::Sha256(json.text());
  if (!digest) return std::move(digest.error());
  return internal::HexEncode(*digest);
} catch (...) {
  return internal::Caught();
}

}  // namespace waybill
