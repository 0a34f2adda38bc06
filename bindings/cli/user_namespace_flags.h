// The node's pool of host IDs, as flags, and what getsubids says of it.

#ifndef WAYBILL_BINDINGS_CLI_USER_NAMESPACE_FLAGS_H_
#define WAYBILL_BINDINGS_CLI_USER_NAMESPACE_FLAGS_H_

#include <cstddef>
#include <optional>
#include <string>

#include "bindings/cli/parse.h"
#include "store/base/options.h"
#include "store/pods/pool.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::cli {

// --ids-per-pod, --max-pods and --no-user-namespaces, or what --kubelet-config says of them (which
// is declared here, unless it was before). The pool is --pool, or that of --subuids and
// --subgids, or what a kubelet on this node would find out.
class UserNamespaceFlags {
 public:
  void Declare(Flags& flags);
  // Reads the files, or runs getsubids: call it last.
  Result<UserNamespaceOptions> Read() const;

 private:
  // Of --pool: without the sizes.
  std::optional<IdPool> pool_;
  std::uint64_t ids_per_pod_ = IdPool().ids_per_pod;
  std::uint64_t max_pods_ = IdPool().max_pods;
  std::optional<std::string> subuids_;
  std::optional<std::string> subgids_;
  bool off_ = false;
};

// The output of getsubids is one line, and never longer.
inline constexpr std::size_t kMaxSubordinateIdBytes = 4096;

// The host IDs that the node is configured to give to pods: the subordinate IDs of the user
// `kubelet`. Looks for the user, and for getsubids in PATH, and runs it if both exist. kIo, in the
// kubelet's words: it failed. Tests pass another user.
Result<SubordinateIds> FindSubordinateIds(const std::string& user = "kubelet");

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_USER_NAMESPACE_FLAGS_H_
