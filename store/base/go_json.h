// JSON strings as Go's encoding/json writes them. Kubelet files and credential hashes are compared
// byte for byte with what Go wrote, so this spelling is part of both formats:
//
//   "  \  \b \f \n \r \t         backslash escapes
//   other bytes below 0x20       \u00xx, lower-case hex
//   <  >  &                      \u003c \u003e \u0026
//   U+2028  U+2029               \u2028 \u2029
//   a byte that is not UTF-8     \ufffd, each byte on its own

#ifndef WAYBILL_STORE_BASE_GO_JSON_H_
#define WAYBILL_STORE_BASE_GO_JSON_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace waybill {

// Appends `text` between quotes. `text` and `out` must not overlap.
void AppendGoJsonString(std::string_view text, std::string& out);

// Bytes of the UTF-8 sequence that `text` begins with: 1 to 4; 0 if `text` is empty or begins with
// an invalid sequence (overlong, surrogate, above U+10FFFF, cut short).
std::size_t Utf8SequenceLength(std::string_view text);

// Bytes of `text` before the first invalid UTF-8; text.size() if all of it is valid.
std::size_t ValidUtf8Prefix(std::string_view text);

}  // namespace waybill

#endif  // WAYBILL_STORE_BASE_GO_JSON_H_
