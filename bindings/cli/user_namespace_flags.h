// The node's pool of host IDs, as flags.

#ifndef WAYBILL_BINDINGS_CLI_USER_NAMESPACE_FLAGS_H_
#define WAYBILL_BINDINGS_CLI_USER_NAMESPACE_FLAGS_H_

#include <optional>
#include <string>

#include "bindings/cli/parse.h"
#include "waybill/user_namespace.h"

namespace waybill::cli {

// --ids-per-pod, --max-pods and --no-user-namespaces. The pool is --pool, or that of --subuids and
// --subgids, or what a kubelet on this node would find out.
struct UserNamespaceFlags {
  // Out: parsed.
  UserNamespaceOptions options;

  // `only_with`: where the settings count (FromSettings).
  void Declare(Flags& flags, const std::vector<std::string>& only_with = {});
  // The first of these flags that was given; empty if none was.
  std::string Given() const;
  // Reads the files, or runs getsubids: call it last. If nothing is handed out by them, the pool
  // need not be enough for --max-pods.
  Result<void> Parse(bool hands_out = true);

 private:
  Result<UserNamespacePool> ParsePool(std::uint64_t ids_per_pod, std::uint64_t max_pods) const;

  std::optional<std::string> ids_per_pod_;
  std::optional<std::string> max_pods_;
  std::optional<std::string> pool_;
  std::optional<std::string> subuids_;
  std::optional<std::string> subgids_;
  bool off_ = false;
};

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_USER_NAMESPACE_FLAGS_H_
