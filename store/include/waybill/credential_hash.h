// The hash under which credentials are remembered: byte for byte what the kubelet computes.

#ifndef WAYBILL_CREDENTIAL_HASH_H_
#define WAYBILL_CREDENTIAL_HASH_H_

#include <string>
#include <string_view>

#include "waybill/result.h"

namespace [[gnu::visibility("default")]] waybill {

// One entry of a docker config. The caller decodes a base64 `auth` ("user:password") into the first
// two fields.
struct AuthConfig {
  std::string username = {};
  std::string password = {};
  std::string email = {};
};

// Lower-case hex SHA-256 of the auth config's compact JSON as Go writes it: username, password,
// email in this order, empty ones left out, '<', '>', '&', U+2028, U+2029 and control characters
// escaped, invalid UTF-8 replaced by U+FFFD. kOutOfMemory. Pure, thread-safe.
Result<std::string> HashCredentials(const AuthConfig& auth);

}  // namespace waybill

#endif  // WAYBILL_CREDENTIAL_HASH_H_
