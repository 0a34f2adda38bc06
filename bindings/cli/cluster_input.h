// The flags with which a command reads pods and what belongs to them: --pods, --secrets,
// --service-accounts.

#ifndef WAYBILL_BINDINGS_CLI_CLUSTER_INPUT_H_
#define WAYBILL_BINDINGS_CLI_CLUSTER_INPUT_H_

#include <optional>
#include <string>

#include "bindings/cli/cluster_list.h"
#include "waybill/result.h"

namespace waybill::cli {

// Files; "-": standard input. A list of pods may hold the other objects, too, which count where
// they have no file of their own.
struct ClusterFiles {
  std::string pods = {};
  std::optional<std::string> secrets = {};
  std::optional<std::string> service_accounts = {};
};

// Secrets are read first, and gone before the next file is opened. Errors name the file and quote
// nothing of a Secret. kInvalidArgument also: pods name pull Secrets, and no list of Secrets was
// given.
Result<ClusterObjects> ReadClusterFiles(const ClusterFiles& files);

// The Secrets and service accounts of one list that has both. Errors as above.
Result<ClusterObjects> ReadExistingCredentials(const std::string& path);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_CLUSTER_INPUT_H_
