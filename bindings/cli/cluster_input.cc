#include "bindings/cli/cluster_input.h"

#include <fmt/core.h>
#include <string.h>

#include <array>
#include <cstddef>
#include <utility>

#include "bindings/cli/input.h"
#include "bindings/cli/parse.h"
#include "store/base/base64.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

constexpr std::string_view kNarrower =
    "list less, for example: kubectl get pods -A --field-selector spec.nodeName=NODE -o json, and "
    "kubectl get secrets -A --field-selector type=kubernetes.io/dockerconfigjson -o json";

// Wipes what functions that have returned left on the stack: blocks that were hashed, groups of
// base64.
[[gnu::noinline]] void WipeStackBelow() {
  std::array<char, std::size_t{64} << 10> below;  // NOLINT(*-member-init): it is wiped
  ::explicit_bzero(below.data(), below.size());
}

Result<ClusterObjects> ReadClusterFile(const std::string& path, ClusterKind wanted) {
  auto content = ReadInput(path, kMaxClusterListBytes);
  if (!content) {
    Error error = content.error();
    if (error.code == ErrorCode::kLimitExceeded) error.hint = kNarrower;
    return error;
  }
  auto objects = DecodeClusterList(*content, wanted);
  internal::Wipe(*content);
  WipeStackBelow();
  if (!objects) {
    return AboutInput(path, objects.error(),
                      fmt::format("it must be what `{}` prints", CommandThatLists(wanted)));
  }
  return objects;
}

// A pod that names a pull Secret; nullptr: none does.
const PodToStart* FirstWithSecrets(const ClusterObjects& objects) {
  for (const PodToStart& pod : objects.pods) {
    if (!pod.pull_secrets.empty()) return &pod;
  }
  return nullptr;
}

}  // namespace

Result<ClusterObjects> ReadClusterFiles(const ClusterFiles& files) {
  std::optional<ClusterObjects> secrets;
  std::optional<ClusterObjects> accounts;
  if (files.secrets) {
    auto read = TRY(ReadClusterFile(*files.secrets, ClusterKind::kSecret));
    secrets = std::move(read);
  }
  if (files.service_accounts) {
    auto read = TRY(ReadClusterFile(*files.service_accounts, ClusterKind::kServiceAccount));
    accounts = std::move(read);
  }
  auto objects = ReadClusterFile(files.pods, ClusterKind::kPod);
  if (!objects) return objects;
  if (secrets) objects->secrets = std::move(secrets->secrets);
  if (accounts) objects->service_accounts = std::move(accounts->service_accounts);
  if (const PodToStart* pod = FirstWithSecrets(*objects);
      pod != nullptr && !secrets && objects->secrets.empty()) {
    return BadFlag("--secrets",
                   fmt::format("it is missing, and the pod {}/{} names the pull Secret {}",
                               pod->namespace_name, pod->name, pod->pull_secrets.front()),
                   "give what `kubectl get secrets -A -o json` prints");
  }
  return objects;
}

Result<ClusterObjects> ReadExistingCredentials(const std::string& path) {
  return ReadClusterFile(path, ClusterKind::kSecret);
}

}  // namespace waybill::cli
