// Pull Secrets from files. Arguments can be seen by every user of the node, and so the hash of a
// credential need not be one. No error has anything out of such a file.

#ifndef WAYBILL_BINDINGS_CLI_SECRETS_H_
#define WAYBILL_BINDINGS_CLI_SECRETS_H_

#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"
#include "waybill/types.h"

namespace waybill::cli {

// --secret: NAMESPACE/NAME/UID/HASH, the hash and the '/' before it optional; or @FILE, which holds
// one such line.
Result<ImagePullSecret> ReadSecret(const std::string& text);

// --secrets: what `path` ("-": standard input) holds, a line each:
//   {"namespace":"…","name":"…","uid":"…","credentialHash":"…"}
// as in a kubelet's record, credentialHash optional. Empty lines pass.
Result<std::vector<ImagePullSecret>> ReadSecrets(const std::string& path);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_SECRETS_H_
