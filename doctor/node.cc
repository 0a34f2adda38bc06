#include "doctor/node.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "bindings/cli/kubelet_config.h"
#include "bindings/cli/yaml_document.h"
#include "guard/opening.h"
#include "guard/session.h"
#include "migrations/kubelet_files/kubelet_records.h"
#include "runtime/cri/containerd.h"
#include "runtime/cri/runtime_client.h"
#include "runtime/files/documents.h"
#include "store/base/caught.h"
#include "store/base/described.h"
#include "store/base/image_name.h"
#include "store/base/try.h"
#include "waybill/limits.h"

namespace waybill::doctor {
namespace {

namespace fs = std::filesystem;
using internal::FieldAt, internal::Json, internal::ParseJson, internal::TextAt;

constexpr const char* kUsualKubeletDirectory = "/var/lib/kubelet";
// Of a kubelet with waybill inside, in the kubelet's directory.
constexpr const char* kStoreInside = "waybill";
constexpr const char* kK3sConfig = "/etc/rancher/k3s/config.yaml";
constexpr const char* kK3sProviders = "/var/lib/rancher/credentialprovider/config.yaml";

Error NotThere(std::string what, std::string hint) {
  return {ErrorCode::kInvalidArgument, std::move(what), std::move(hint)};
}
Error NotSeen(std::string what, std::string hint = {}) {
  return {ErrorCode::kUnavailable, std::move(what), std::move(hint)};
}

// A runtime whose answers were recorded: a folder with what crictl prints.
class RecordedRuntime final : public cri::Runtime {
 public:
  explicit RecordedRuntime(fs::path folder) : folder_(std::move(folder)) {}

  // "containerd v2.4.2".
  Result<std::string> Name() const {
    const auto version = ParseJson(TRY(Answer("version.json")));
    const std::string name = TextAt(version, "runtimeName");
    if (!name.empty()) return name + " " + TextAt(version, "runtimeVersion");
    return NotThere((folder_ / "version.json").string() + " names no runtime",
                    "put there what `crictl version -o json` prints");
  }
  Result<std::vector<ListedImage>> ListImages() override {
    return DecodeImageList(TRY(Answer("images.json")));
  }
  Result<std::string> Status() override { return Answer("info.json"); }

 private:
  Result<std::string> Answer(const char* name) const {
    return internal::ReadWholeFile(folder_ / name, kMaxDocumentBytes);
  }

  fs::path folder_;
};

Result<DiskSpace> SpaceOf(const fs::path& path) {
  struct statvfs status = {};
  if (::statvfs(path.c_str(), &status) != 0) {
    return internal::SystemError(errno, "ask the file system of", path);
  }
  return DiskSpace{.available = status.f_bavail * status.f_frsize,
                   .inodes = status.f_files,
                   .inodes_free = status.f_favail};
}

// --- Documents in YAML ---------------------------------------------------------------------------

nlohmann::json JsonOf(const cli::YamlNode& node) {
  if (node.IsScalar()) return nlohmann::json::parse(cli::JsonOfScalar(node), nullptr, false);
  auto json = node.IsMap() ? nlohmann::json::object() : nlohmann::json::array();
  for (const cli::YamlNode& item : node.items) {
    if (node.IsMap()) json[node.keys[json.size()]] = JsonOf(item);
    if (node.IsList()) json.push_back(JsonOf(item));
  }
  return json;
}

template <typename T>
Result<T> ReadAs(const nlohmann::json& document, const std::string& path) {
  T value;
  const std::string text = document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const auto read = internal::ReadForeign(text, kMaxDocumentBytes, value);
  if (!read) return NotSeen(path + ": " + read.error().message);
  return value;
}

struct CredentialProvider {
  std::string name = {};
  std::vector<std::string> images = {};
  bool needs_account = false;

  void Describe(auto& v) const {
    v.Optional("name", name);
    v.Optional("matchImages", images);
    v.OptionalWithin("tokenAttributes",
                     [&](auto& token) { token.Optional("requireServiceAccount", needs_account); });
  }
};
// No kubelet starts with a file that has none.
struct CredentialProviders {
  std::vector<CredentialProvider> providers = {};

  void Describe(auto& v) const { v("providers", providers); }
};

}  // namespace

Kernel ThisKernel() {
  return {.space = SpaceOf,
          .is_locked = guard::IsLocked,
          .was_used = guard::WasUsed,
          .now = SystemClock,
          .read_store = {}};
}

std::vector<std::string> LinesOf(const std::string& text, char end) {
  std::vector<std::string> lines;
  std::istringstream rest(text);
  for (std::string line; std::getline(rest, line, end);) lines.push_back(line);
  return lines;
}

std::vector<std::string> WordsOf(const std::string& line) {
  std::istringstream rest(line);
  return {std::istream_iterator<std::string>(rest), {}};
}

std::string Process::RootDirectory() const {
  const std::string directory = Flag("root-dir");
  if (directory.empty()) return kUsualKubeletDirectory;
  return directory.starts_with('/') ? directory : folder.value_or("") + "/" + directory;
}

namespace {

// --- Finding -------------------------------------------------------------------------------------

class Finder {
 public:
  explicit Finder(Node& node) : node_(node), files_(node.files), options_(node.options) {}

  Result<void> Run() {
    FindProcesses();
    TRY(FindKubelet());
    TRY(FindSettings());
    node_.version = FindKubeletVersion(node_);
    FindRecords();
    FindRuntime();
    node_.images = node_.runtime ? (*node_.runtime)->ListImages() : node_.runtime.error();
    if (node_.runtime) status_ = (*node_.runtime)->Status().value_or("");
    node_.runtime_process = FindRuntimeProcess();
    node_.pulls = FindPulls();
    FindCredentials();
    FindGuard();
    return FindStore();
  }

 private:
  // Any process can have such a name: those of containers, and of others than root, do not count.
  void FindProcesses() {
    constexpr std::string_view kNames[] = {"kubelet",  "k3s",        "kubelite",
                                           "edgecore", "containerd", "crio"};
    for (const std::string& pid : node_.NamesIn("/proc")) {
      const std::string place = "/proc/" + pid;
      const auto command_line = node_.Read(place + "/cmdline");
      const bool is_number = pid.find_first_not_of("0123456789") == std::string::npos;
      if (!is_number || !command_line || command_line->empty()) continue;
      Process process = {internal::CommandLine::Of(*command_line), pid};
      // k3s hides its arguments behind a title.
      const auto title = LinesOf(process.words[0], ' ');
      if (!title.empty()) process.name = fs::path(title.front()).filename();
      const auto directory = files_.Resolve(place);
      struct stat owner = {};
      if (std::ranges::count(kNames, process.name) == 0 || !directory ||
          ::stat(directory->c_str(), &owner) != 0 ||
          (owner.st_uid != 0 && owner.st_uid != ::geteuid())) {
        continue;
      }
      bool is_in_container =
          node_.Read(place + "/cgroup").value_or("").find("kubepods") != std::string::npos;
      for (const std::string& line : LinesOf(node_.Read(place + "/status").value_or(""))) {
        is_in_container =
            is_in_container || (line.starts_with("NSpid:") && WordsOf(line).size() > 2);
      }
      process.folder = FolderOf(place);
      if (!is_in_container) node_.processes.push_back(std::move(process));
    }
  }

  // On this machine the link itself: it leads there from any mount namespace.
  Result<std::string> FolderOf(const std::string& place) const {
    if (files_.IsThisMachine()) {
      const auto real = files_.Resolve(place + "/cwd");
      return real ? Result<std::string>(place + "/cwd") : real.error();
    }
    const auto link = TRY(files_.Open(place + "/cwd", O_PATH | O_NOFOLLOW));
    char folder[PATH_MAX];
    const ssize_t size = ::readlinkat(link.get(), "", folder, sizeof folder);
    if (size < 0) return internal::SystemError(errno, "follow", place + "/cwd");
    return std::string(folder, static_cast<std::size_t>(size));
  }

  // --- The kubelet ------------------------------------------------------------------------------

  Result<void> FindKubelet() {
    const std::string named = options_.kubelet_directory;
    if (!named.empty() && !node_.MayHave(named)) {
      return NotThere("--kubelet-dir: " + named + " is not there",
                      "name the kubelet's root directory, by default /var/lib/kubelet");
    }
    auto& kubelets = node_.kubelets;
    std::ranges::copy_if(node_.processes, std::back_inserter(kubelets),
                         [](const Process& process) { return process.name == "kubelet"; });
    if (kubelets.empty()) FindKubeletInside();
    const auto others =
        std::stable_partition(kubelets.begin(), kubelets.end(), [&](const Process& process) {
          const auto its = files_.Resolve(process.RootDirectory());
          const auto ours = files_.Resolve(named);
          return named.empty() || (its && ours && internal::IsSameFile(*its, *ours));
        });
    node_.has_kubelet = others != kubelets.begin();
    node_.kubelet_directory = !named.empty()      ? named
                              : node_.has_kubelet ? kubelets.front().RootDirectory()
                                                  : kUsualKubeletDirectory;
    if (!node_.has_kubelet) {
      node_.told =
          NotSeen("no kubelet runs on " + node_.kubelet_directory + ", so its flags are not known");
    }
    return {};
  }

  // One that is part of another program: its flags are in that program's files.
  void FindKubeletInside() {
    for (const Process& process : node_.processes) {
      Process kubelet = process;
      kubelet.words.resize(1);
      if (process.name == "k3s") {
        AddFlagsOfK3s(process, kubelet);
      } else if (process.name == "kubelite") {
        const std::string file = process.Flag("kubelet-args-file");
        const auto args =
            node_.Read(file.empty() ? "/var/snap/microk8s/current/args/kubelet" : file);
        if (!args)
          node_.told = NotSeen("flags of the kubelet in kubelite: " + args.error().message);
        for (const auto& word : WordsOf(args.value_or(""))) kubelet.words.push_back(word);
      } else if (process.name == "edgecore") {
        node_.told =
            NotSeen("the kubelet is part of edgecore, whose configuration is not understood");
      } else {
        continue;
      }
      node_.kubelets.push_back(std::move(kubelet));
      return;
    }
  }

  void AddFlagsOfK3s(const Process& k3s, Process& kubelet) {
    std::vector<std::string> paths = {kK3sConfig};
    const std::string folder = std::string(kK3sConfig) + ".d";
    const auto names = files_.List(folder);
    if (!names && node_.MayHave(folder)) node_.told = NotSeen(names.error().message);
    for (const auto& name : names.value_or(std::vector<std::string>())) {
      paths.push_back(folder + "/" + name);
    }
    std::vector<std::string> flags;
    for (const std::string& path : paths) {
      if (!node_.MayHave(path)) continue;
      if (const auto read = AddKubeletArgs(path, flags); !read) node_.told = read.error();
    }
    for (const std::string& arg : k3s.Values("kubelet-arg")) flags.push_back(arg);
    if (k3s.words[0].find(' ') != std::string::npos) {
      node_.told = NotSeen("k3s hides its own flags, --kubelet-arg may be one of them");
    }
    // What k3s itself says to its kubelet; what others say comes later, and wins.
    const std::string data = k3s.Flag("data-dir");
    const std::string from = data.empty() ? "/var/lib/rancher/k3s" : data;
    kubelet.words.push_back("--config-dir=" + from + "/agent/etc/kubelet.conf.d");
    if (node_.MayHave(kK3sProviders)) {
      kubelet.words.push_back(std::string("--image-credential-provider-config=") + kK3sProviders);
    }
    for (const std::string& flag : flags) {
      kubelet.words.push_back(flag.starts_with('-') ? flag : "--" + flag);
    }
  }

  // One, or a list of them.
  Result<void> AddKubeletArgs(const std::string& path, std::vector<std::string>& flags) const {
    auto config = TRY(ReadYaml(path));
    if (!config.is_object()) return NotSeen(path + " has no fields");
    auto& args = config["kubelet-arg"];
    if (args.is_null()) return {};
    if (args.is_string()) args = nlohmann::json::array({args});
    for (auto& flag : TRY(ReadAs<std::vector<std::string>>(args, path))) flags.push_back(flag);
    return {};
  }

  // A path of the kubelet's command line; empty: the flag is not there.
  Result<std::string> PathByFlag(std::string_view flag) const {
    const std::string path = node_.KubeletFlag(flag);
    if (path.empty() || path.starts_with('/')) return path;
    const auto& folder = node_.kubelet()->folder;
    if (folder) return *folder + "/" + path;
    return NotSeen("in which folder the kubelet works is not known, and --" + std::string(flag) +
                   " is below it: " + folder.error().message);
  }

  Result<void> FindSettings() {
    std::vector<std::string> paths = options_.kubelet_config;
    for (const std::string& path : paths) {
      if (node_.MayHave(path)) continue;
      return NotThere("--kubelet-config: " + path + " is not there",
                      "name the kubelet's own config.yaml, or the directory of its --config-dir");
    }
    const std::string usual = node_.kubelet_directory + "/config.yaml";
    flags_ = node_.told;
    if (!paths.empty()) {
      node_.told = {};
    } else if (node_.has_kubelet) {
      if (const auto root = PathByFlag("root-dir"); !root) node_.told = root.error();
      for (const char* flag : {"config", "config-dir"}) {
        const auto path = PathByFlag(flag);
        if (!path) node_.told = path.error();
        if (path && !path->empty()) paths.push_back(*path);
      }
    } else if (node_.MayHave(usual)) {
      // Where kubeadm puts it, for a kubelet that does not run.
      paths.push_back(usual);
    }
    node_.settings = ReadSettings(paths);
    return {};
  }

  Result<nlohmann::json> ReadYaml(const std::string& path) const {
    auto document = cli::ReadYaml(TRY(node_.Read(path)));
    if (document) return JsonOf(*document);
    return NotSeen(path + ": " + document.error().message, document.error().hint);
  }

  // What a later file says wins, key by key; null takes a key away: a JSON merge patch.
  Result<KubeletSettings> ReadSettings(const std::vector<std::string>& paths) const {
    auto merged = nlohmann::json::object();
    std::string last;
    for (const std::string& path : paths) {
      const auto real = TRY(files_.Resolve(path));
      for (const std::string& file : TRY(cli::KubeletConfigFiles(real))) {
        // Below a directory that was resolved, as the node names it.
        last = path + file.substr(real.native().size());
        const auto document = TRY(ReadYaml(last));
        if (!document.is_object()) return NotSeen(last + " is no KubeletConfiguration");
        merged.merge_patch(document);
        // So that the file is named which a kubelet would not take.
        TRY(ReadAs<KubeletSettings>(merged, last));
      }
    }
    return ReadAs<KubeletSettings>(merged, last);
  }

  void FindRecords() {
    KubeletRecords& records = node_.records;
    for (const std::string folder : {"pulled", "pulling"}) {
      const std::string path = node_.kubelet_directory + "/image_manager/" + folder;
      for (const std::string& name : node_.NamesIn(path)) {
        if (!name.starts_with("sha256-")) continue;
        const auto text = files_.Read(path + "/" + name, kMaxRecordFileBytes);
        const auto record = DecodePulledRecord(text.value_or(""));
        const auto intent = DecodePullIntent(text.value_or(""));
        if (folder == "pulling" && intent) records.images.insert(intent->image);
        if (folder == "pulling" ? !intent : !record) ++records.unreadable;
        if (folder == "pulling" || !record) continue;
        records.refs.insert(record->image_ref);
        for (const auto& [image, credentials] : record->credential_mapping) {
          records.images.insert(image);
          auto& kind = credentials.node_pods_accessible ? records.open : records.guarded;
          kind.insert(RepositoryOf(image));
        }
      }
    }
  }

  // --- Waybill ----------------------------------------------------------------------------------

  void FindGuard() {
    // One that stands aside has its own folder (guard/aside.h).
    const std::string& kubelet = node_.kubelet_directory;
    std::string folder = kubelet + "/waybill-guard";
    if (!node_.IsLocked(folder + "/lock").value_or(false)) {
      folder = kubelet + "/image_manager/waybill-guard";
    }
    node_.guard_runs = node_.IsLocked(folder + "/lock");
    node_.guard = node_.StatusOfGuard(folder);
    // A guard's store may be in the very place of that of a kubelet with waybill inside.
    const std::string inside = kubelet + "/" + kStoreInside;
    node_.is_inside = node_.IsLocked(inside + "/owner.lock");
    if (node_.guard_runs.value_or(false) && node_.guard &&
        node_.IsSame(node_.guard->store, inside)) {
      node_.is_inside = false;
    }
  }

  Result<void> FindStore() {
    node_.store = options_.store;
    if (!node_.store.empty() && !node_.MayHave(node_.store)) {
      return NotThere("--store: " + node_.store + " is not there",
                      "leave it out to look at a node without waybill");
    }
    std::vector<std::string> places = {node_.kubelet_directory + "/" + kStoreInside,
                                       "/var/lib/waybill"};
    if (node_.guard) places.push_back(node_.guard->store);
    for (const std::string& path : places) {
      if (node_.store.empty() && node_.MayHave(path + "/data.mdb")) node_.store = path;
    }
    if (node_.store.empty()) return {};
    const auto real = files_.Resolve(node_.store);
    const auto data = files_.Resolve(node_.store + "/data.mdb");
    const bool is_hidden = !data && data.error().code != ErrorCode::kNotFound;
    node_.facts = !real       ? NotSeen(real.error().message)
                  : is_hidden ? NotSeen(data.error().message)
                              : node_.kernel.read_store(*real);
    return {};
  }

  // --- The runtime ------------------------------------------------------------------------------

  void FindRuntime() {
    std::string endpoint = options_.cri == "auto" ? "" : options_.cri;
    std::error_code ignored;
    if (!endpoint.empty() && fs::is_directory(endpoint, ignored)) {
      auto recorded = std::make_shared<RecordedRuntime>(endpoint);
      auto name = recorded->Name();
      node_.runtime_name = name.value_or("");
      node_.runtime = std::shared_ptr<cri::Runtime>(std::move(recorded));
      if (!name) node_.runtime = name.error();
      return;
    }
    if (endpoint.empty() && !files_.IsThisMachine()) {
      node_.runtime = NotSeen("no runtime is asked of a node that is elsewhere",
                              "give --cri a folder with what crictl prints there");
      return;
    }
    // What the kubelet itself asks.
    if (endpoint.empty()) endpoint = node_.KubeletFlag("container-runtime-endpoint");
    if (endpoint.empty() && node_.has_kubelet && node_.settings) {
      endpoint = node_.settings->endpoint;
    }
    auto client = cri::Client::Connect({.endpoint = endpoint, .cancelled = options_.cancelled});
    node_.runtime = client ? Result<std::shared_ptr<cri::Runtime>>() : client.error();
    if (!client) return;
    node_.runtime_name = (*client)->runtime();
    const auto process = cri::Containerd({.endpoint = (*client)->endpoint()}).Process();
    if (process) runtime_pid_ = std::to_string(process->pid);
    node_.runtime = std::shared_ptr<cri::Runtime>(*std::move(client));
  }

  Result<Process> FindRuntimeProcess() const {
    const std::string program = node_.runtime_name.starts_with("cri-o") ? "crio" : "containerd";
    const auto status = ParseJson(status_);
    const Json* const config = FieldAt(status, "config");
    const std::string socket = config == nullptr ? "" : TextAt(*config, "containerdEndpoint");
    std::vector<Process> named;
    std::vector<Process> fitting;
    for (const Process& process : node_.processes) {
      if (process.name != program) continue;
      if (process.pid == runtime_pid_) return process;
      named.push_back(process);
      std::string address = process.Flag("address") + process.Flag("a");
      if (address.empty()) {
        const auto pulls = ReadRuntimePulls(
            {.version = program, .config = process.Config(), .root = options_.root.string()});
        address = pulls ? pulls->socket : "";
      }
      if (address.empty()) address = "/run/containerd/containerd.sock";
      if (address == socket) fitting.push_back(process);
    }
    if (fitting.size() == 1) return fitting[0];
    if (named.size() == 1) return named[0];
    if (named.empty()) return Error{ErrorCode::kNotFound, "no process of the runtime is seen", {}};
    return Error{
        ErrorCode::kConflict,
        "several processes are called " + program + ", and which one the kubelet asks is not known",
        {}};
  }

  Result<RuntimePulls> FindPulls() const {
    // One that does not answer has files all the same.
    RuntimeAnswers answers{.version = node_.runtime_name, .status = status_};
    if (!files_.IsThisMachine()) answers.root = options_.root.string();
    const auto& process = node_.runtime_process;
    if (process) answers.config = process->Config();
    std::vector<std::string> known;
    const Json* const status = FieldAt(node_.json, "status");
    const Json* const addresses = status == nullptr ? nullptr : FieldAt(*status, "addresses");
    for (const Json& address : addresses == nullptr ? Json::array() : *addresses) {
      known.push_back(TextAt(address, "address"));
    }
    auto pulls = TRY(ReadRuntimePulls(answers, std::move(known)));
    if (!process && process.error().code == ErrorCode::kConflict) {
      pulls.problems.push_back(process.error().message);
    }
    std::vector<std::string> elsewhere;
    for (const std::string flag : {"registries-conf", "registries-conf-dir", "config-dir"}) {
      if (process && !process->Flag(flag).empty()) elsewhere.push_back("the flag --" + flag);
    }
    for (const std::string& variable :
         EnvironmentOf(process ? process->pid : "none", pulls.problems)) {
      if (variable.starts_with("CONTAINERS_REGISTRIES_CONF")) elsewhere.push_back("a variable");
    }
    for (const std::string& what : elsewhere) {
      pulls.problems.push_back(
          what + " of the runtime's process says where registries are, and is not followed");
    }
    return pulls;
  }

  // What is there and can't be read is a problem: nobody knows then what it says.
  std::vector<std::string> EnvironmentOf(const std::string& pid,
                                         std::vector<std::string>& problems) const {
    const auto text = node_.Read("/proc/" + pid + "/environ");
    if (text) return LinesOf(*text, '\0');
    if (text.error().code != ErrorCode::kNotFound) problems.push_back(text.error().message);
    return {};
  }

  // --- The node's own credentials ---------------------------------------------------------------

  void FindCredentials() {
    NodeCredentials& found = node_.credentials;
    const Process* const kubelet = node_.kubelet();
    if (!flags_) found.problems.push_back(flags_.error().message);
    // All that a kubelet may read, not the first alone. systemd gives it no home.
    const std::string pid = kubelet == nullptr ? "none" : kubelet->pid;
    std::string home = node_.MayHave("/proc/" + pid + "/environ") ? "" : "/root";
    for (const std::string& variable : EnvironmentOf(pid, found.problems)) {
      if (variable.starts_with("HOME=")) home = variable.substr(5);
    }
    const auto folder = kubelet == nullptr ? std::string("/") : kubelet->folder;
    // One that was not recorded is systemd's.
    if (!folder && folder.error().code != ErrorCode::kNotFound) {
      found.problems.push_back(folder.error().message);
    }
    const std::string& root = node_.kubelet_directory;
    const std::string at = folder.value_or("/") == "/" ? "" : *folder;
    const std::set<std::string> paths = {root + "/config.json",         root + "/.dockercfg",
                                         at + "/config.json",           at + "/.dockercfg",
                                         home + "/.docker/config.json", home + "/.dockercfg",
                                         "/.docker/config.json",        "/.dockercfg"};
    for (const std::string& path : paths) internal::AddDockerConfig(files_, path, false, found);
    const auto providers = PathByFlag("image-credential-provider-config");
    if (!providers) found.problems.push_back(providers.error().message);
    if (providers && !providers->empty()) AddProviders(*providers);
    if (node_.pulls) AddCredentialsOfRuntime(*node_.pulls, found);
    if (!node_.pulls) found.problems.push_back(node_.pulls.error().message);
  }

  // A file, or a directory of files.
  void AddProviders(const std::string& path) {
    NodeCredentials& found = node_.credentials;
    const auto names = files_.List(path);
    for (const std::string& name : names.value_or(std::vector<std::string>{""})) {
      const std::string file = names ? path + "/" + name : path;
      found.files.push_back(file);
      if (const auto added = AddProvidersOf(file); !added) {
        found.problems.push_back(added.error().message);
      }
    }
  }

  // A provider that needs no token of the pod gives the node's.
  Result<void> AddProvidersOf(const std::string& path) {
    auto file = TRY(ReadAs<CredentialProviders>(TRY(ReadYaml(path)), path));
    for (CredentialProvider& one : file.providers) {
      if (one.needs_account) continue;
      if (one.images.empty()) one.images = {"*"};
      for (const std::string& image : one.images) {
        node_.credentials.held.push_back(
            {image, "the credential provider " + one.name + " of " + path});
      }
    }
    return {};
  }

  Node& node_;
  const internal::RootedFiles& files_;
  const NodeOptions& options_;
  // As Node::told, also where the caller named the configuration: providers are named by a flag.
  Result<void> flags_ = {};
  std::string runtime_pid_ = {};  // empty: not known
  std::string status_ = {};       // what the runtime says of itself; empty: it does not
};

}  // namespace

Result<std::unique_ptr<const Node>> Node::Find(NodeOptions options, Kernel kernel) {
  return internal::Guarded([&]() -> Result<std::unique_ptr<const Node>> {
    const internal::RootedFiles files(options.root);
    std::unique_ptr<Node> node(
        new Node{.options = std::move(options), .kernel = std::move(kernel), .files = files});
    if (node->options.node_json) node->json = ParseJson(*node->options.node_json);
    TRY(Finder(*node).Run());
    return std::unique_ptr<const Node>(std::move(node));
  });
}

bool Node::MayHave(const fs::path& path) const {
  const auto there = files.Resolve(path);
  return there || there.error().code != ErrorCode::kNotFound;
}

std::vector<std::string> Node::NamesIn(const std::string& folder) const {
  return files.List(folder).value_or(std::vector<std::string>());
}

Result<std::string> Node::RealPath(const std::string& path) const {
  const auto file = TRY(files.Open(path, O_PATH));
  const auto top = TRY(files.Open("/", O_PATH));
  const std::string real = internal::PathOf(file.get());
  const std::string above = internal::PathOf(top.get());
  return above == "/" ? real : "/" + real.substr(std::min(above.size() + 1, real.size()));
}

Result<bool> Node::IsLocked(const std::string& path) const {
  const auto real = files.Resolve(path);
  if (!real && real.error().code == ErrorCode::kNotFound) return false;
  if (!real) return real.error();
  return kernel.is_locked(*real);
}

bool Node::IsSame(const std::string& a, const std::string& b) const {
  const auto one = files.Resolve(a);
  const auto other = files.Resolve(b);
  return a == b || (one && other && internal::IsSameFile(*one, *other));
}

Result<GuardStatus> Node::StatusOfGuard(const std::string& folder) const {
  GuardStatus status;
  TRY(internal::ReadForeign(TRY(Read(folder + "/status.json")), kMaxDocumentBytes, status));
  return status;
}

}  // namespace waybill::doctor
