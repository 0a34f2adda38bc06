// Pull Secrets from files. Every user of the node can see arguments, so the hash of a credential
// may come from a file instead. No error quotes such a file.

#ifndef WAYBILL_BINDINGS_CLI_SECRETS_H_
#define WAYBILL_BINDINGS_CLI_SECRETS_H_

#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"
#include "waybill/types.h"

namespace waybill::cli {

// --secret: NAMESPACE/NAME/UID/HASH, the hash and the '/' before it optional; or @FILE, a file with
// one such line.
Result<ImagePullSecret> ReadSecret(std::string_view flag, const std::string& text);

// --secrets: the file `path` ("-": standard input), a line each:
//   {"namespace":"…","name":"…","uid":"…","credentialHash":"…"}
// as in a kubelet's record; credentialHash is optional. Empty lines are ignored.
Result<std::vector<ImagePullSecret>> ReadSecrets(const std::string& path);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_SECRETS_H_
