// How containerd and CRI-O are configured to pull.

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "runtime/files/config_fields.h"
#include "runtime/files/containerd_config.h"
#include "runtime/files/pull_sources.h"
#include "runtime/files/rooted_files.h"
#include "store/base/ascii.h"
#include "store/base/caught.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {
namespace {

using internal::ConfigFields;
using internal::ContainerdConfig;
using internal::ContainerdHandler;
using internal::QuoteForMessage;
using internal::RootedFiles;
using internal::ToLower;

constexpr std::string_view kContainerdSocket = "/run/containerd/containerd.sock";
// Where distributions have containerd's configuration. Its socket shows which one is in force.
constexpr std::string_view kContainerdConfigs[] = {
    "/etc/containerd/config.toml", "/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
    "/var/lib/rancher/rke2/agent/etc/containerd/config.toml"};
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
// Parts of the names of Kata's handlers for confidential guests, and for pods on other machines.
constexpr std::string_view kPullInGuest[] = {"remote", "coco", "-cc",  "-snp",        "-sev",
                                             "-tdx",   "-se",  "-cca", "confidential"};

std::vector<std::string> Split(std::string_view list, char separator) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(separator), list.size());
    if (end != 0) parts.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return parts;
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

class Reader {
 public:
  explicit Reader(const RuntimeAnswers& answers)
      : answers_(answers), files_(answers.root, pulls_.problems) {
    pulls_.root = answers.root;
  }

  RuntimePulls Run() {
    pulls_.runtime = WhichRuntime();
    if (pulls_.runtime == PullRuntime::kContainerd) ReadContainerd();
    if (pulls_.runtime == PullRuntime::kCriO) ReadCriO();
    return std::move(pulls_);
  }

 private:
  template <typename... Args>
  void Problem(Args&&... args) {
    files_.Problem(std::forward<Args>(args)...);
  }

  // nullopt: it is not there, or can't be read, which is a problem.
  std::optional<std::string> Read(const std::string& path) {
    auto text = files_.Read(path);
    if (text) pulls_.files.push_back(path);
    return text;
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
    const bool containerd = files_.IsThere("/etc/containerd/config.toml");
    const bool crio = files_.IsThere("/etc/crio");
    if (containerd != crio) return containerd ? PullRuntime::kContainerd : PullRuntime::kCriO;
    Problem(containerd ? "both containerd and CRI-O are configured, and neither was asked"
                       : "neither containerd nor CRI-O was asked, and neither is configured");
    return PullRuntime::kUnknown;
  }

  // --- containerd -------------------------------------------------------------------------------

  void ReadContainerd() {
    ContainerdConfig config;
    if (!answers_.status.empty()) {
      const auto read = internal::ReadContainerdStatus(answers_.status, config);
      if (!read) Problem("the runtime's status", read.error());
    }
    if (!config.registry_known) ReadContainerdFiles(config);
    if (config.config_path.size() > 1) {
      Problem("config_path is set to different folders in several places");
    }
    for (const std::string& list : config.config_path) {
      for (std::string& path : Split(list, ':')) pulls_.config_path.push_back(std::move(path));
    }
    pulls_.mirrors = std::move(config.mirrors);
    pulls_.own_credentials = std::move(config.own_credentials);
    // From 2.2 on, and where the version is not known.
    const auto version = VersionOf(answers_.version);
    const bool may_have_usual = !version || *version >= std::pair(2U, 2U);
    if (!config.registry_known && pulls_.config_path.empty() && pulls_.mirrors.empty() &&
        may_have_usual) {
      pulls_.config_path.assign(std::begin(kUsualConfigPath), std::end(kUsualConfigPath));
    }
    pulls_.default_handler = config.default_handler.empty() ? "runc" : config.default_handler;
    for (const auto& [name, handler] : config.handlers) {
      pulls_.handlers.push_back(name);
      LookAtHandler(name, handler, config.snapshotter);
    }
    if (pulls_.handlers.empty()) pulls_.handlers.push_back(pulls_.default_handler);
  }

  // What its status did not say. Of the usual files, the one whose socket is the runtime's.
  void ReadContainerdFiles(ContainerdConfig& config) {
    if (!answers_.config.empty()) {
      return ReadContainerdFile(answers_.config, true, config);
    }
    const std::string socket = config.socket;
    for (const std::string_view path : kContainerdConfigs) {
      ContainerdConfig tried = config;
      const RuntimePulls before = pulls_;
      tried.socket = kContainerdSocket;
      ReadContainerdFile(std::string(path), false, tried);
      const bool is_there = pulls_.files.size() != before.files.size() ||
                            pulls_.problems.size() != before.problems.size();
      // A containerd without a file runs with its defaults.
      if (socket.empty() ? is_there
                         : tried.socket == socket && (is_there || path == kContainerdConfigs[0])) {
        config = std::move(tried);
        return;
      }
      pulls_ = before;
    }
    Problem(socket.empty() ? "containerd has no configuration at a usual place"
                           : "which configuration containerd has is not known: none at a usual "
                             "place has its socket, " +
                                 QuoteForMessage(socket));
  }

  void ReadContainerdFile(const std::string& first, bool required, ContainerdConfig& config) {
    std::vector<std::string> pending = {first};
    std::set<std::string> loaded;
    for (std::size_t at = 0; at < pending.size(); ++at) {
      const std::string path = pending[at];
      if (!loaded.insert(path).second) continue;
      if (loaded.size() > kMaxPullConfigFiles) {
        return Problem(first + " imports more than " + std::to_string(kMaxPullConfigFiles) +
                       " files");
      }
      const std::size_t problems = pulls_.problems.size();
      const auto text = Read(path);
      if (!text) {
        const bool missing = pulls_.problems.size() == problems;
        if (missing && (required || at != 0)) Problem(path + " is not there");
        continue;
      }
      std::vector<std::string> imports;
      const auto read = internal::ReadContainerdToml(*text, path, config, imports);
      if (!read) Problem(path, read.error());
      for (const std::string& import : imports) Import(path, import, pending);
    }
  }

  // Of a pattern, those files that match: in the last part of the path alone.
  void Import(const std::string& by, const std::string& import, std::vector<std::string>& files) {
    std::filesystem::path path = import;
    if (path.is_relative()) path = std::filesystem::path(by).parent_path() / path;
    path = path.lexically_normal();
    if (import.find_first_of("*?[\\") == std::string::npos) {
      files.push_back(path.string());
      return;
    }
    const std::string folder = path.parent_path().string();
    if (folder.find_first_of("*?[\\") != std::string::npos) {
      return Problem(by + " imports " + QuoteForMessage(import) +
                     ", a pattern with folders, which is not understood");
    }
    for (const std::string& name : files_.List(folder)) {
      if (::fnmatch(path.filename().c_str(), name.c_str(), 0) == 0) {
        files.push_back(folder + "/" + name);
      }
    }
  }

  // --- Handlers ---------------------------------------------------------------------------------

  void LookAtHandler(const std::string& name, const ContainerdHandler& handler,
                     const std::string& default_snapshotter) {
    const std::string& snapshotter =
        handler.snapshotter.empty() ? default_snapshotter : handler.snapshotter;
    const std::string kind = ToLower(name + " " + handler.type);
    if (!Contains(kind, "kata")) return;
    if (Contains(snapshotter, "nydus")) {
      pulls_.guest_pullers.push_back(
          {name, "its snapshotter is " + snapshotter + ", with which Kata's guest pulls"});
      return;
    }
    LookAtKata(name, kind, handler.kata_config);
  }

  void LookAtKata(const std::string& name, const std::string& kind, const std::string& config) {
    for (const std::string_view part : kPullInGuest) {
      const std::size_t at = kind.find(part);
      if (at == std::string::npos) continue;
      // "-se" is not "-second".
      const std::size_t after = at + part.size();
      if (part.starts_with('-') && after < kind.size() && kind[after] >= 'a' &&
          kind[after] <= 'z') {
        continue;
      }
      pulls_.guest_pullers.push_back({name, "it is Kata's, for guests that pull by themselves"});
      return;
    }
    if (config.empty()) return;
    const auto text = Read(config);
    if (!text) return;
    const auto forced = IsPullForced(*text);
    if (!forced) return Problem(config, forced.error());
    if (*forced) pulls_.guest_pullers.push_back({name, config + " lets the guest pull"});
  }

  static Result<bool> IsPullForced(std::string_view text) {
    const toml::table table = TRY(internal::ReadToml(text, kMaxPullConfigBytes));
    ConfigFields::Document document;
    const ConfigFields runtime = ConfigFields(&table, document).Table("runtime");
    const auto features = runtime.Texts("experimental");
    const bool is_forced = runtime.Bool("experimental_force_guest_pull") ||
                           std::ranges::count(features, "force_guest_pull") != 0;
    TRY(document.sound);
    return is_forced;
  }

  // --- CRI-O ------------------------------------------------------------------------------------

  void ReadCriO() {
    std::vector<std::string> paths = {answers_.config.empty() ? "/etc/crio/crio.conf"
                                                              : answers_.config};
    for (const std::string_view folder : {"/usr/share/crio/crio.conf.d", "/etc/crio/crio.conf.d"}) {
      for (const std::string& name : files_.List(std::string(folder))) {
        paths.push_back(std::string(folder) + "/" + name);
      }
    }
    // Whether its images are pulled in the guest. One of these two is built in.
    std::map<std::string, bool> handlers = {{"crun", false}, {"runc", false}};
    for (const std::string& path : paths) {
      const auto text = Read(path);
      if (!text) continue;
      const auto read = ReadCrioConf(*text, handlers);
      if (!read) Problem(path, read.error());
    }
    for (const auto& [name, in_guest] : handlers) {
      pulls_.handlers.push_back(name);
      if (in_guest) pulls_.guest_pullers.push_back({name, "CRI-O's runtime_pull_image is set"});
    }
    for (const std::string_view path : kRegistriesConf) {
      if (!pulls_.registries_conf.empty() || !files_.IsThere(std::string(path))) continue;
      pulls_.registries_conf = path;
    }
    pulls_.registries_conf_dirs.assign(std::begin(kRegistriesConfDirs),
                                       std::end(kRegistriesConfDirs));
  }

  Result<void> ReadCrioConf(std::string_view text, std::map<std::string, bool>& handlers) {
    const toml::table table = TRY(internal::ReadToml(text, kMaxPullConfigBytes));
    ConfigFields::Document document;
    const ConfigFields runtime = ConfigFields(&table, document).Table("crio").Table("runtime");
    runtime.Read("default_runtime", pulls_.default_handler);
    // A later file replaces the whole handler.
    runtime.Each("runtimes", [&](const std::string& name, const ConfigFields& handler) {
      handlers[name] = handler.Bool("runtime_pull_image");
    });
    return document.sound;
  }

  RuntimePulls pulls_;
  const RuntimeAnswers& answers_;
  const RootedFiles files_;
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

Result<RuntimePulls> ReadRuntimePulls(const RuntimeAnswers& answers) {
  return internal::Guarded([&]() -> Result<RuntimePulls> { return Reader(answers).Run(); });
}

}  // namespace waybill
