// How containerd and CRI-O are configured to pull.

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "runtime/files/config_fields.h"
#include "runtime/files/hosts.h"
#include "runtime/files/pull_sources.h"
#include "store/base/ascii.h"
#include "store/base/caught.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {
namespace {

using internal::ConfigFields;
using internal::QuoteForMessage;
using internal::ToLower;

constexpr std::string_view kContainerdSocket = "/run/containerd/containerd.sock";
// Where distributions have containerd's configuration. Its socket shows which one is in force.
constexpr std::string_view kContainerdConfigs[] = {
    "/etc/containerd/config.toml",
    "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
    "/var/lib/rancher/rke2/agent/etc/containerd/config.toml",
    "/var/snap/microk8s/current/args/containerd.toml",
    "/etc/cri/containerd.toml",
    "/etc/k0s/containerd.toml"};
// From version 3 of the file on, the last two alone count; above 4 nothing is known.
constexpr std::string_view kPlugins[] = {"cri", "io.containerd.grpc.v1.cri",
                                         "io.containerd.cri.v1.images",
                                         "io.containerd.cri.v1.runtime"};
constexpr std::size_t kOlderPlugins = 2;
constexpr std::int64_t kNewestVersion = 4;
// What containerd from 2.2 on takes where config_path is not set.
constexpr std::string_view kUsualConfigPath[] = {"/etc/containerd/certs.d", "/etc/docker/certs.d"};
// The first that is there is registries.conf; all folders count, a later one more.
constexpr std::string_view kRegistriesConf[] = {"/root/.config/containers/registries.conf",
                                                "/etc/containers/registries.conf",
                                                "/usr/share/containers/registries.conf"};
constexpr std::string_view kRegistriesConfDirs[] = {
    "/usr/share/containers/registries.conf.d", "/usr/share/containers/registries.rootful.conf.d",
    "/etc/containers/registries.conf.d", "/etc/containers/registries.rootful.conf.d",
    "/root/.config/containers/registries.conf.d"};
// Where containers/image looks for credentials, if it is told of no file.
constexpr std::string_view kAuthFiles[] = {"/run/containers/0/auth.json",
                                           "/root/.config/containers/auth.json",
                                           "/root/.docker/config.json", "/root/.dockercfg"};
// Parts of the names of Kata's handlers for confidential guests, and for pods on other machines.
constexpr std::string_view kPullInGuest[] = {"remote", "coco", "-cc",  "-snp",        "-sev",
                                             "-tdx",   "-se",  "-cca", "confidential"};

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// /run/… of unix:///var/run/….
std::string SocketOf(std::string address) {
  if (address.starts_with("unix://")) address.erase(0, 7);
  if (address.starts_with("/var/run/")) address.erase(0, 4);
  return address;
}

// "-se" is not in "-second".
bool IsPulledInGuest(std::string_view kind) {
  return std::ranges::any_of(kPullInGuest, [&](std::string_view part) {
    const std::size_t after = kind.find(part) + part.size();
    return Contains(kind, part) && (!part.starts_with('-') || after >= kind.size() ||
                                    kind[after] < 'a' || kind[after] > 'z');
  });
}

struct Handler {
  std::string type = {};
  std::string snapshotter = {};
  std::string kata_config = {};  // the file that Kata's shim is told of
};

// Where it says something, that counts.
void Take(std::string said, std::string& into) {
  if (!said.empty()) into = std::move(said);
}

class Reader {
 public:
  explicit Reader(const RuntimeAnswers& answers)
      : answers_(answers), config_(answers.root, pulls_.problems) {
    pulls_.root = answers.root;
  }

  RuntimePulls Run(std::vector<std::string> own_names) {
    pulls_.own_names = internal::NamesOfThisNode(config_.files(), std::move(own_names));
    pulls_.runtime = WhichRuntime();
    if (pulls_.runtime == PullRuntime::kContainerd) ReadContainerd();
    if (pulls_.runtime == PullRuntime::kCriO) ReadCriO();
    return std::move(pulls_);
  }

 private:
  void Problem(std::string what) const { config_.Problem(std::move(what)); }
  // One that is named and missing is a problem.
  void ReadToml(const std::string& path, bool is_named,
                const std::function<void(const ConfigFields&)>& read) {
    const bool is_there = config_.ReadToml(path, read);
    if (is_there) pulls_.files.push_back(path);
    if (!is_there && is_named) Problem(path + " is not there");
  }

  PullRuntime WhichRuntime() {
    const std::string name = ToLower(answers_.version.substr(0, answers_.version.find(' ')));
    if (name == "containerd") return PullRuntime::kContainerd;
    if (name == "cri-o") return PullRuntime::kCriO;
    if (!name.empty()) {
      Problem("how " + QuoteForMessage(answers_.version) +
              " pulls is not known: only containerd and CRI-O are");
      return PullRuntime::kUnknown;
    }
    if (Contains(answers_.status, "\"containerdEndpoint\"")) return PullRuntime::kContainerd;
    const bool containerd = config_.MayHave("/etc/containerd/config.toml");
    const bool crio = config_.MayHave("/etc/crio");
    if (containerd != crio) return containerd ? PullRuntime::kContainerd : PullRuntime::kCriO;
    Problem(containerd ? "both containerd and CRI-O are configured, and neither was asked"
                       : "neither containerd nor CRI-O was asked, and neither is configured");
    return PullRuntime::kUnknown;
  }

  // --- containerd -------------------------------------------------------------------------------

  void ReadContainerd() {
    bool registry_known = false;  // by its answer; containerd from 2.0 on leaves registries out
    if (!answers_.status.empty()) {
      const internal::Json root = internal::ParseJson(answers_.status);
      if (!root.is_object()) Problem("the runtime's status is not JSON");
      ConfigFields::Document document = {.is_answer = true};
      const auto config =
          ConfigFields(root.is_object() ? &root : nullptr, document).Table("config");
      pulls_.socket = SocketOf(config.Text("containerd_endpoint"));
      ReadHandlers(config.Table("containerd"));
      registry_known = config.Node("registry") != nullptr;
      ReadRegistry(config.Table("registry"), "what containerd says of itself");
      for (const std::string& what : document.problems) Problem("the runtime's status: " + what);
    }
    if (!registry_known) ReadContainerdFiles();
    const auto version = VersionOf(answers_.version);
    const bool may_have_usual = !version || *version >= std::pair(2U, 2U);
    if (!registry_known && pulls_.config_path.empty() && pulls_.mirrors.empty() && may_have_usual) {
      pulls_.config_path.assign(std::begin(kUsualConfigPath), std::end(kUsualConfigPath));
    }
    if (pulls_.default_handler.empty()) pulls_.default_handler = "runc";
    for (const auto& [name, handler] : handlers_) {
      pulls_.handlers.push_back(name);
      if (Contains(ToLower(name + handler.type), "kata")) LookAtKata(name, handler);
    }
    if (pulls_.handlers.empty()) pulls_.handlers.push_back(pulls_.default_handler);
  }

  // What its status did not say. Of the usual files, the one whose socket is the runtime's.
  void ReadContainerdFiles() {
    if (!answers_.config.empty()) return ReadContainerdFile(answers_.config, true);
    for (const std::string_view usual : kContainerdConfigs) {
      const std::string path(usual);
      const RuntimeAnswers here = {.root = answers_.root};
      Reader probe(here);
      probe.pulls_.socket = kContainerdSocket;
      probe.ReadContainerdFile(path, false);
      const bool is_there = !probe.pulls_.files.empty() || !probe.pulls_.problems.empty();
      // A containerd without a file runs with its defaults.
      const bool may_miss = !pulls_.socket.empty() && usual == kContainerdConfigs[0];
      const bool has_socket = pulls_.socket.empty() || pulls_.socket == probe.pulls_.socket;
      if (has_socket && (is_there || may_miss)) return ReadContainerdFile(path, false);
    }
    Problem(pulls_.socket.empty()
                ? "containerd has no configuration at a usual place"
                : "which configuration containerd has is not known: none at a usual place has its "
                  "socket, " +
                      QuoteForMessage(pulls_.socket));
  }

  void ReadContainerdFile(const std::string& first, bool required) {
    std::vector<std::string> pending = {first};
    for (std::size_t at = 0; at < pending.size(); ++at) {
      const std::string path = pending[at];
      if (at == kMaxPullConfigFiles) return Problem(first + " imports too many files");
      ReadToml(path, required || at != 0, [&](const ConfigFields& root) {
        ReadContainerdRoot(root, path);
        for (const std::string& import : root.Texts("imports")) Import(path, import, pending);
      });
    }
  }

  // Of a pattern, those files that match: in the last part of the path alone.
  void Import(const std::string& by, const std::string& import, std::vector<std::string>& files) {
    const auto path = (std::filesystem::path(by).parent_path() / import).lexically_normal();
    const std::string folder = path.parent_path().string();
    std::vector<std::string> names = {path.filename().string()};
    if (import.find_first_of("*?[\\") != std::string::npos) {
      if (folder.find_first_of("*?[\\") != std::string::npos) {
        return Problem(by + " imports a pattern with folders, which is not understood");
      }
      names = config_.List(folder);
      std::erase_if(names, [&](const std::string& name) {
        return ::fnmatch(path.filename().c_str(), name.c_str(), 0) != 0;
      });
    }
    for (const std::string& name : names) {
      const std::string file = folder + "/" + name;
      if (std::ranges::count(files, file) == 0) files.push_back(file);
    }
  }

  void ReadContainerdRoot(const ConfigFields& root, const std::string& place) {
    const ConfigFields plugins = root.Table("plugins");
    Take(SocketOf(root.Table("grpc").Text("address")), pulls_.socket);
    Take(SocketOf(plugins.Table("io.containerd.server.v1.grpc").Text("address")), pulls_.socket);
    std::int64_t version = 1;
    if (const internal::Json* node = root.Node("version")) {
      version = node->is_number_integer() ? node->get<std::int64_t>() : kNewestVersion + 1;
      if (version > kNewestVersion) root.Refuse("a version that is not known");
    }
    for (std::size_t i = version >= 3 ? kOlderPlugins : 0; i < std::size(kPlugins); ++i) {
      const ConfigFields plugin = plugins.Table(kPlugins[i]);
      ReadRegistry(plugin.Table("registry"), place);
      Take(plugin.Text("snapshotter"), snapshotter_);
      for (const std::string_view name : {"runtime_platforms", "runtime_platform"}) {
        for (const auto& [handler, platform] : plugin.Tables(name)) {
          Take(platform.Text("snapshotter"), handlers_[handler].snapshotter);
        }
      }
      ReadHandlers(plugin.Table("containerd"));
    }
  }

  void ReadHandlers(const ConfigFields& containerd) {
    Take(containerd.Text("default_runtime_name"), pulls_.default_handler);
    Take(containerd.Text("snapshotter"), snapshotter_);
    for (const auto& [name, runtime] : containerd.Tables("runtimes")) {
      Handler& handler = handlers_[name];
      Take(runtime.Text("runtime_type"), handler.type);
      Take(runtime.Text("snapshotter"), handler.snapshotter);
      Take(runtime.Table("options").Text("ConfigPath"), handler.kata_config);
    }
  }

  void ReadRegistry(const ConfigFields& registry, const std::string& place) {
    if (std::string list = registry.Text("config_path"); !list.empty()) {
      // Which is in force depends on how containerd merges files.
      if (!config_path_.empty() && config_path_ != list) {
        Problem("config_path is set to different folders in several places");
      }
      config_path_ = list;
      pulls_.config_path.clear();
      std::istringstream folders(list);
      for (std::string folder; std::getline(folders, folder, ':');) {
        if (!folder.empty()) pulls_.config_path.push_back(folder);
      }
    }
    for (const auto& [name, mirror] : registry.Tables("mirrors")) {
      pulls_.mirrors.push_back({name, mirror.Texts("endpoint"), place});
    }
    const auto add_own = [&](const std::string& host, const ConfigFields& auth) {
      for (const char* name : {"username", "password", "auth", "identitytoken", "cert_file"}) {
        if (auth.Text(name).empty()) continue;
        return pulls_.own_credentials.push_back({host, place});
      }
    };
    for (const auto& [host, config] : registry.Tables("configs")) {
      add_own(host, config.Table("tls"));
      add_own(host, config.Table("auth"));
    }
    for (const auto& [host, auth] : registry.Tables("auths")) add_own(host, auth);
    if (internal::ShowsCredentials(registry.Table("headers"))) {
      pulls_.own_credentials.push_back({"*", place});
    }
  }

  // --- Pulls in the guest -----------------------------------------------------------------------

  void LookAtKata(const std::string& name, const Handler& handler) {
    const auto pulls = [&](std::string why) {
      pulls_.guest_pullers.push_back({name, std::move(why)});
    };
    const auto& snapshotter = handler.snapshotter.empty() ? snapshotter_ : handler.snapshotter;
    if (Contains(snapshotter, "nydus")) {
      return pulls("its snapshotter is " + snapshotter + ", with which Kata's guest pulls");
    }
    if (IsPulledInGuest(ToLower(name + " " + handler.type))) {
      return pulls("it is Kata's, for guests that pull by themselves");
    }
    if (handler.kata_config.empty()) return;
    ReadToml(handler.kata_config, true, [&](const ConfigFields& root) {
      const ConfigFields runtime = root.Table("runtime");
      if (runtime.Bool("experimental_force_guest_pull") ||
          std::ranges::count(runtime.Texts("experimental"), "force_guest_pull") != 0) {
        pulls(handler.kata_config + " lets the guest pull");
      }
    });
  }

  // --- CRI-O ------------------------------------------------------------------------------------

  void ReadCriO() {
    const bool is_named = !answers_.config.empty();
    std::vector<std::string> paths = {is_named ? answers_.config : "/etc/crio/crio.conf"};
    for (const char* folder : {"/usr/share/crio/crio.conf.d", "/etc/crio/crio.conf.d"}) {
      std::ranges::copy(config_.FilesIn(folder), std::back_inserter(paths));
    }
    // Whether its images are pulled in the guest. One of these two is built in.
    std::map<std::string, bool> handlers = {{"crun", false}, {"runc", false}};
    std::string auth_file;
    pulls_.namespaced_auth_dir = "/etc/crio/auth";
    for (const std::string& path : paths) {
      ReadToml(path, is_named && path == paths[0], [&](const ConfigFields& root) {
        const ConfigFields crio = root.Table("crio");
        Take(crio.Table("runtime").Text("default_runtime"), pulls_.default_handler);
        Take(crio.Table("image").Text("global_auth_file"), auth_file);
        Take(crio.Table("image").Text("namespaced_auth_dir"), pulls_.namespaced_auth_dir);
        // A later file replaces the whole handler.
        for (const auto& [name, handler] : crio.Table("runtime").Tables("runtimes")) {
          handlers[name] = handler.Bool("runtime_pull_image");
        }
      });
    }
    for (const auto& [name, in_guest] : handlers) {
      pulls_.handlers.push_back(name);
      if (in_guest) pulls_.guest_pullers.push_back({name, "CRI-O's runtime_pull_image is set"});
    }
    pulls_.auth_files.assign(std::begin(kAuthFiles), std::end(kAuthFiles));
    if (!auth_file.empty()) pulls_.auth_files = {auth_file};
    // One that is there and can't be read may be the one: whoever reads it says so.
    const auto conf = std::ranges::find_if(
        kRegistriesConf, [&](std::string_view path) { return config_.MayHave(std::string(path)); });
    if (conf != std::end(kRegistriesConf)) pulls_.registries_conf = *conf;
    pulls_.registries_conf_dirs.assign(std::begin(kRegistriesConfDirs),
                                       std::end(kRegistriesConfDirs));
  }

  const RuntimeAnswers& answers_;
  RuntimePulls pulls_;
  const internal::ConfigReader config_;
  std::string config_path_ = {};
  std::string snapshotter_ = {};
  std::map<std::string, Handler> handlers_ = {};
};

}  // namespace

std::optional<std::pair<unsigned, unsigned>> VersionOf(std::string_view runtime) {
  runtime.remove_prefix(std::min(runtime.find(' '), runtime.size()));
  while (runtime.starts_with(' ') || runtime.starts_with('v')) runtime.remove_prefix(1);
  std::pair<unsigned, unsigned> version;
  const char* const end = runtime.data() + runtime.size();
  const auto major = std::from_chars(runtime.data(), end, version.first);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return std::nullopt;
  const auto minor = std::from_chars(major.ptr + 1, end, version.second);
  return minor.ec == std::errc() ? std::optional(version) : std::nullopt;
}

Result<RuntimePulls> ReadRuntimePulls(const RuntimeAnswers& answers,
                                      std::vector<std::string> own_names) {
  return internal::Guarded(
      [&]() -> Result<RuntimePulls> { return Reader(answers).Run(std::move(own_names)); });
}

}  // namespace waybill
