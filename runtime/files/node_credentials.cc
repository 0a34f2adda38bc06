#include "runtime/files/node_credentials.h"

#include <fnmatch.h>

#include <algorithm>
#include <iterator>

#include "runtime/files/config_fields.h"
#include "runtime/files/documents.h"
#include "runtime/files/hosts.h"
#include "runtime/files/pull_sources.h"
#include "store/base/base64.h"
#include "store/base/image_name.h"

namespace waybill {
namespace {

// "https://registry.example.com:443/v1/" is registry.example.com.
std::string HostIn(std::string_view registry) {
  const std::size_t scheme = registry.find("://");
  if (scheme != std::string_view::npos) registry.remove_prefix(scheme + 3);
  return internal::RegistryName(internal::WithoutPort(internal::AtHost(registry).first));
}

void Unreadable(const std::string& path, const Error& error, NodeCredentials& into) {
  if (error.code != ErrorCode::kNotFound) into.problems.push_back(path + ": " + error.message);
}

// What hosts.toml of one registry says that the registry itself is shown, and files beside it that
// are not understood.
void AddHostFolder(const internal::ConfigReader& config, const std::string& folder,
                   NodeCredentials& into) {
  const std::string name = folder.substr(folder.rfind('/') + 1);
  std::string registry = name == "_default" ? "*" : name;
  // registry.example.com_5000_ is registry.example.com:5000.
  if (const std::size_t port = name.find('_', 1); port != std::string::npos && registry != "*") {
    registry = name.substr(0, port) + ":" + name.substr(port + 1, name.rfind('_') - port - 1);
  }
  for (const std::string& file : config.FilesIn(folder)) {
    const std::string_view last = std::string_view(file).substr(folder.size());
    const bool is_meant = last.find("credential") != last.npos || last.find("auth") != last.npos;
    if (is_meant) into.held.push_back({registry, file, false});
  }
  for (const internal::Asked& host : internal::HostsIn(config, folder)) {
    const bool is_itself = host.endpoint.Serves(registry);
    if (!host.own.empty() && is_itself) into.held.push_back({registry, host.where});
  }
}

// CRI-O shows a registry the client certificates in the folder that has its name.
void AddCertificates(const internal::ConfigReader& config, NodeCredentials& into) {
  for (const std::string root : {"/etc/containers/certs.d", "/etc/docker/certs.d"}) {
    into.files.push_back(root);
    for (const std::string& folder : config.FilesIn(root)) {
      into.files.push_back(folder);
      for (const std::string& file : config.FilesIn(folder)) {
        if (file.ends_with(".cert")) into.held.push_back({folder.substr(root.size() + 1), file});
      }
    }
  }
}

// A helper of registries.conf is asked for each registry, whoever the pod is.
void AddHelpers(const RuntimePulls& pulls, const internal::ConfigReader& config,
                NodeCredentials& into) {
  into.files.insert(into.files.end(), pulls.registries_conf_dirs.begin(),
                    pulls.registries_conf_dirs.end());
  for (const std::string& path : internal::RegistriesFilesOf(pulls, config)) {
    into.files.push_back(path);
    config.ReadToml(path, [&](const internal::ConfigFields& root) {
      for (const std::string& helper : root.Texts("credential-helpers")) {
        const bool is_file = helper == "containers-auth.json";  // which is read by itself
        if (!is_file) into.held.push_back({"*", path, false});
      }
    });
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
  const internal::ConfigReader config(pulls.root, into.problems);
  into.held.insert(into.held.end(), pulls.own_credentials.begin(), pulls.own_credentials.end());
  into.problems.insert(into.problems.end(), pulls.problems.begin(), pulls.problems.end());
  into.files.insert(into.files.end(), pulls.files.begin(), pulls.files.end());
  for (const std::string& root : pulls.config_path) {
    into.files.push_back(root);
    for (const std::string& folder : config.FilesIn(root)) AddHostFolder(config, folder, into);
  }
  if (pulls.runtime == PullRuntime::kCriO) {
    AddCertificates(config, into);
    AddHelpers(pulls, config, into);
  }
  std::vector<std::string> files = pulls.auth_files;
  if (!pulls.namespaced_auth_dir.empty()) {
    into.files.push_back(pulls.namespaced_auth_dir);
    std::ranges::copy(config.FilesIn(pulls.namespaced_auth_dir), std::back_inserter(files));
  }
  for (const std::string& file : files) {
    internal::AddDockerConfig(config.files(), file, true, into);
  }
}

}  // namespace waybill
