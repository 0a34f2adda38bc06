#include "store/base/base64.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <limits>

#include "store/base/ascii.h"

namespace waybill::internal {
void Wipe(std::string& text) {
  // The whole buffer: a string that was cut keeps its tail there.
  text.resize(text.capacity());
  OPENSSL_cleanse(text.data(), text.size());
  text.clear();
}

WipedString::~WipedString() { Wipe(text); }

bool DecodeBase64(std::string_view encoded, Base64Padding padding, WipedString& out) {
  Wipe(out.text);
  if (encoded.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()) - 4) return false;

  // OpenSSL forgives more than Go does (blanks at both ends, padding in odd places), so it only
  // sees what was checked here.
  WipedString clean;
  clean.text.reserve(encoded.size() + 4);
  std::size_t pads = 0;
  for (const char c : encoded) {
    if (c == '\r' || c == '\n') continue;
    if (c == '=') {
      if (++pads > 2) return false;
    } else if (pads != 0 || !IsMadeOf({&c, 1}, "+/")) {
      return false;
    }
    clean.text += c;
  }
  if (pads == 0 && padding == Base64Padding::kOptional) {
    while (clean.text.size() % 4 != 0) {
      if (++pads > 2) return false;
      clean.text += '=';
    }
  }
  if (clean.text.size() % 4 != 0) return false;
  if (clean.text.empty()) return true;

  out.text.resize(clean.text.size() / 4 * 3);
  const int decoded = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.text.data()),
                                      reinterpret_cast<const unsigned char*>(clean.text.data()),
                                      static_cast<int>(clean.text.size()));
  if (decoded < 0 || static_cast<std::size_t>(decoded) != out.text.size()) {
    Wipe(out.text);
    return false;
  }
  out.text.resize(out.text.size() - pads);
  return true;
}

}  // namespace waybill::internal
