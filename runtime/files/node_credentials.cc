#include "runtime/files/node_credentials.h"

#include <fnmatch.h>

#include <algorithm>

#include "runtime/files/config_fields.h"
#include "runtime/files/documents.h"
#include "runtime/files/pull_sources.h"
#include "store/base/ascii.h"
#include "store/base/base64.h"
#include "store/base/image_name.h"

namespace waybill {
namespace {

using internal::RootedFiles;

// "https://registry.example.com:443/v1/" is registry.example.com; Docker Hub has several names.
std::string HostIn(std::string_view registry) {
  const std::size_t scheme = registry.find("://");
  if (scheme != std::string_view::npos) registry.remove_prefix(scheme + 3);
  std::string host = internal::ToLower(registry.substr(0, registry.find('/')));
  const std::size_t port = host.rfind(':');
  if (port != std::string::npos && !host.ends_with(']')) host.resize(port);
  const bool is_hub = host == "index.docker.io" || host == "registry-1.docker.io";
  return is_hub ? "docker.io" : host;
}

void Unreadable(const std::string& path, const Error& error, NodeCredentials& into) {
  if (error.code != ErrorCode::kNotFound) into.problems.push_back(path + ": " + error.message);
}

// What hosts.toml of one registry says that the registry itself is shown, and files beside it that
// are not understood.
void AddHostFolder(const RootedFiles& files, const RuntimePulls& pulls, const std::string& root,
                   const std::string& name, NodeCredentials& into) {
  const std::string folder = root + "/" + name;
  const bool is_default = name == "_default";
  std::string registry = is_default ? "*" : name;
  // registry.example.com_5000_ is registry.example.com:5000.
  if (const std::size_t port = name.find('_'); !is_default && port != std::string::npos) {
    registry = name.substr(0, port) + ":" + name.substr(port + 1, name.rfind('_') - port - 1);
  }
  const auto names = files.List(folder);
  if (!names) return Unreadable(folder, names.error(), into);
  for (const std::string& file : *names) {
    if (file.find("credential") == std::string::npos && file.find("auth") == std::string::npos)
      continue;
    into.held.push_back({registry, folder + "/" + file, false});
  }
  const std::string image = (is_default ? "any.invalid" : registry) + "/app:1";
  const auto found = PullSourcesInDetailOf(pulls, image, "");
  if (!found) return into.problems.push_back(found.error().message);
  for (const std::string& where : found->shown_by) {
    if (where.starts_with(folder)) into.held.push_back({registry, where});
  }
  for (const std::string& problem : found->sources.problems) {
    if (problem.starts_with(folder)) into.problems.push_back(problem);
  }
}

}  // namespace

std::vector<NodeCredential> NodeCredentials::For(std::string_view image) const {
  const std::string full = NormaliseImage(image).value_or(std::string(image));
  const std::string host = HostIn(full);
  std::vector<NodeCredential> found;
  for (const NodeCredential& credential : held) {
    const std::string pattern = HostIn(credential.registry);
    const bool fits = pattern == host || ::fnmatch(pattern.c_str(), host.c_str(), 0) == 0;
    if (fits) found.push_back(credential);
  }
  return found;
}

void internal::AddDockerConfig(const RootedFiles& files, const std::string& path, bool helpers,
                               NodeCredentials& into) {
  into.files.push_back(path);
  const auto text = files.Read(path);
  if (!text) return Unreadable(path, text.error(), into);
  for (const char* helper : {"\"credHelpers\"", "\"credsStore\"", "\"identitytoken\""}) {
    if (helpers && text->find(helper) != std::string::npos) into.held.push_back({"*", path, false});
  }
  auto auths = DecodeAuthDocument(*text);
  if (!auths) return Unreadable(path, auths.error(), into);
  for (RegistryAuth& one : *auths) {
    into.held.push_back({one.registry, path});
    Wipe(one.auth.username);
    Wipe(one.auth.password);
  }
}

void AddCredentialsOfRuntime(const RuntimePulls& pulls, NodeCredentials& into) {
  const RootedFiles files(pulls.root);
  into.held.insert(into.held.end(), pulls.own_credentials.begin(), pulls.own_credentials.end());
  into.problems.insert(into.problems.end(), pulls.problems.begin(), pulls.problems.end());
  into.files.insert(into.files.end(), pulls.files.begin(), pulls.files.end());
  for (const std::string& root : pulls.config_path) {
    into.files.push_back(root);
    const auto names = files.List(root);
    if (!names) Unreadable(root, names.error(), into);
    for (const std::string& name : names ? *names : std::vector<std::string>()) {
      AddHostFolder(files, pulls, root, name, into);
    }
  }
  for (const std::string& path : pulls.auth_files)
    internal::AddDockerConfig(files, path, true, into);
  if (pulls.namespaced_auth_dir.empty()) return;
  into.files.push_back(pulls.namespaced_auth_dir);
  const auto names = files.List(pulls.namespaced_auth_dir);
  if (!names) Unreadable(pulls.namespaced_auth_dir, names.error(), into);
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    internal::AddDockerConfig(files, pulls.namespaced_auth_dir + "/" + name, true, into);
  }
}

}  // namespace waybill
