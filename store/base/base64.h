// Base64 with the standard alphabet, as Go's encoding/base64 reads it: line ends are skipped,
// unused trailing bits are ignored, anything else out of place is refused.

#ifndef WAYBILL_STORE_BASE_BASE64_H_
#define WAYBILL_STORE_BASE_BASE64_H_

#include <string>
#include <string_view>

namespace waybill::internal {

enum class Base64Padding {
  kRequired,
  kOptional,  // all of it or none
};

// Text that is overwritten when it is destroyed.
class WipedString {
 public:
  WipedString() = default;
  ~WipedString();
  WipedString(const WipedString&) = delete;
  WipedString& operator=(const WipedString&) = delete;

  std::string text;
};

// Overwrites and empties.
void Wipe(std::string& text);

// False if `encoded` is not base64; `out` is then empty.
bool DecodeBase64(std::string_view encoded, Base64Padding padding, WipedString& out);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_BASE64_H_
