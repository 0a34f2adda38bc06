// What `kubectl get pods,secrets,serviceaccounts,runtimeclasses -A -o json` prints: a List of one
// or several kinds, a PodList as the API server and the kubelet's /pods write it, or one object.
// Credentials are hashed and wiped while they are read, and nothing of them is in an error.

#ifndef WAYBILL_BINDINGS_CLI_CLUSTER_LIST_H_
#define WAYBILL_BINDINGS_CLI_CLUSTER_LIST_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/for_the_command.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::cli {

// Bytes of one document.
inline constexpr std::size_t kMaxClusterListBytes = std::size_t{64} << 20;

enum class ContainerKind : std::uint8_t { kInit, kRegular, kEphemeral, kImageVolume };
// "initContainer", "container", "ephemeralContainer", "imageVolume"
std::string_view ContainerKindName(ContainerKind kind);

// A container, or an image volume.
struct ContainerToStart {
  ContainerKind kind = ContainerKind::kRegular;
  std::string name = {};
  std::string image = {};  // any string
  // If the document has none, the one that the API server fills in: Always for the tag `latest` or
  // none.
  PullPolicy pull_policy = PullPolicy::kIfNotPresent;
  std::string status_ref = {};  // imageID of its status, without a scheme; empty: none
};

struct PodToStart {
  std::string namespace_name = {};
  std::string name = {};
  std::string uid = {};
  std::string node_name = {};
  std::string phase = {};
  std::string runtime_class = {};
  std::string service_account = {};
  std::vector<std::string> pull_secrets = {};  // names, in the pod's namespace
  std::vector<ContainerToStart> containers = {};
};

struct ListedSecret {
  std::string namespace_name = {};
  std::string name = {};
  std::string uid = {};
  // nullopt: a kubelet takes no credentials from it.
  std::optional<std::vector<internal::RegistryHash>> registries = {};
  std::string unreadable_because = {};  // if it holds credentials that can't be read
};

struct ListedServiceAccount {
  std::string namespace_name = {};
  std::string name = {};
  std::string uid = {};
  std::vector<std::string> pull_secrets = {};
};

enum class ClusterKind : std::uint8_t { kPod, kSecret, kServiceAccount, kRuntimeClass };
// The command that lists them: "kubectl get pods -A -o json".
std::string_view CommandThatLists(ClusterKind kind);

struct ClusterObjects {
  std::vector<PodToStart> pods = {};
  std::vector<ListedSecret> secrets = {};
  std::vector<ListedServiceAccount> service_accounts = {};
  std::map<std::string, std::string> handlers = {};  // of runtime classes, by name
};

// Objects of other kinds are ignored. kInvalidArgument: not such a document, one page of several,
// an object without a name, a name that is there twice, or objects but none of the kind `wanted`.
// kLimitExceeded: above kMaxClusterListBytes or the bounds of limits.h.
Result<ClusterObjects> DecodeClusterList(std::string_view json, ClusterKind wanted);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_CLUSTER_LIST_H_
