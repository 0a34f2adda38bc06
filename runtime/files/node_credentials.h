// Credentials that the node itself has, beside those of pods: with them a pull succeeds whoever the
// pod is, so every pod may use the image from then on.

#ifndef WAYBILL_RUNTIME_FILES_NODE_CREDENTIALS_H_
#define WAYBILL_RUNTIME_FILES_NODE_CREDENTIALS_H_

#include <string>
#include <string_view>
#include <vector>

#include "store/base/rooted_files.h"

namespace waybill {

struct RuntimePulls;

struct NodeCredential {
  // As the file spells it: "registry.example.com/team", "https://index.docker.io/v1/",
  // "*.dkr.ecr.*.amazonaws.com". "*": any.
  std::string registry = {};
  std::string where = {};
  // Whoever wrote it meant credentials, and the file is not understood.
  bool is_sure = true;
};

struct NodeCredentials {
  std::vector<NodeCredential> held = {};
  std::vector<std::string> files = {};     // that were looked for
  std::vector<std::string> problems = {};  // not empty: there may be others, for any registry

  // Those for pulls of `image`, as a pod writes it. A registry's ports and paths are not compared:
  // rather one too many.
  std::vector<NodeCredential> For(std::string_view image) const;
  // Whether the node may have credentials for it.
  bool MayHaveFor(std::string_view image) const { return !problems.empty() || !For(image).empty(); }
};

namespace internal {

// Adds what a config.json, a .dockercfg or an auth.json has at `path`; a missing file has nothing.
// A kubelet goes by `auths` alone; `helpers`: whoever reads it asks credential helpers, too.
void AddDockerConfig(const RootedFiles& files, const std::string& path, bool helpers,
                     NodeCredentials& into);

}  // namespace internal

// Adds what the runtime shows by itself, by its own configuration.
void AddCredentialsOfRuntime(const RuntimePulls& pulls, NodeCredentials& into);

}  // namespace waybill

#endif  // WAYBILL_RUNTIME_FILES_NODE_CREDENTIALS_H_
