#include "doctor/node.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <sstream>
#include <utility>

#include "bindings/cli/kubelet_config.h"
#include "guard/opening.h"
#include "guard/session.h"
#include "migrations/kubelet_files/kubelet_records.h"
#include "runtime/cri/containerd.h"
#include "runtime/cri/runtime_client.h"
#include "runtime/files/documents.h"
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
constexpr const char* kK3sProviders = "/var/lib/rancher/credentialprovider/config.yaml";

Error NotThere(std::string what, std::string hint) {
  return {ErrorCode::kInvalidArgument, std::move(what), std::move(hint)};
}

// What a later file says wins, key by key; null takes a key away (a JSON merge patch).
void Merge(cli::YamlNode& into, const cli::YamlNode& from) {
  if (!into.IsMap() || !from.IsMap()) {
    into = from;
    return;
  }
  for (std::size_t i = 0; i < from.keys.size(); ++i) {
    const auto at = std::find(into.keys.begin(), into.keys.end(), from.keys[i]);
    const auto index = static_cast<std::size_t>(at - into.keys.begin());
    if (at == into.keys.end()) {
      into.keys.push_back(from.keys[i]);
      into.items.push_back(from.items[i]);
    } else {
      Merge(into.items[index], from.items[i]);
    }
    if (from.items[i].IsNull()) {
      into.keys.erase(into.keys.begin() + static_cast<std::ptrdiff_t>(index));
      into.items.erase(into.items.begin() + static_cast<std::ptrdiff_t>(index));
    }
  }
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

// --- The kubelet ---------------------------------------------------------------------------------

std::string Process::RootDirectory() const {
  const std::string directory = Flag("root-dir");
  return directory.empty() ? kUsualKubeletDirectory : directory;
}

std::optional<std::uint64_t> KubeletSettings::Number(std::string_view key) const {
  const auto text = Text(key);
  std::uint64_t number = 0;
  if (!text) return std::nullopt;
  const char* const end = text->data() + text->size();
  const auto read = std::from_chars(text->data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

std::optional<std::string> KubeletSettings::Text(std::string_view key) const {
  const cli::YamlNode* const found = merged.Find(key);
  if (found == nullptr || !found->IsScalar() || found->IsNull()) return std::nullopt;
  return found->text;
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
    node_.runtime_process = FindRuntimeProcess();
    node_.pulls = FindPulls();
    FindCredentials();
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
      Process process = {cri::CommandLine::Of(*command_line), pid};
      // k3s hides its arguments behind a title.
      process.name = fs::path(LinesOf(process.words[0], ' ')[0]).filename();
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
      if (!is_in_container) node_.processes.push_back(std::move(process));
    }
  }

  // --- The kubelet ------------------------------------------------------------------------------

  Result<void> FindKubelet() {
    const std::string named = options_.kubelet_directory;
    if (!named.empty() && !node_.Has(named)) {
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
      node_.unseen =
          "no kubelet runs on " + node_.kubelet_directory + ", so its flags are not known";
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
        if (!args) node_.unseen = "flags of the kubelet in kubelite: " + args.error().message;
        for (const auto& word : WordsOf(args.value_or(""))) kubelet.words.push_back(word);
      } else if (process.name == "edgecore") {
        node_.unseen = "the kubelet is part of edgecore, whose configuration is not understood";
      } else {
        continue;
      }
      node_.kubelets.push_back(std::move(kubelet));
      return;
    }
  }

  void AddFlagsOfK3s(const Process& k3s, Process& kubelet) {
    const std::string place = "/etc/rancher/k3s/config.yaml";
    std::vector<std::string> paths = {place};
    for (const auto& name : node_.NamesIn(place + ".d")) paths.push_back(place + ".d/" + name);
    std::vector<std::string> flags;
    for (const std::string& path : paths) {
      const auto document = node_.Has(path) ? ReadYaml(path) : cli::YamlNode();
      if (!document) node_.unseen = document.error().message;
      const auto* const args = document ? document->Find("kubelet-arg") : nullptr;
      if (args == nullptr) continue;
      if (args->IsScalar()) flags.push_back(args->text);
      for (const cli::YamlNode& arg : args->items) flags.push_back(arg.text);
    }
    for (const std::string& arg : k3s.Values("kubelet-arg")) flags.push_back(arg);
    if (k3s.words[0].find(' ') != std::string::npos) {
      node_.unseen = "k3s hides its own flags, --kubelet-arg may be one of them";
    }
    // What k3s itself says to its kubelet; what others say comes later, and wins.
    const std::string data = k3s.Flag("data-dir");
    const std::string from = data.empty() ? "/var/lib/rancher/k3s" : data;
    kubelet.words.push_back("--config-dir=" + from + "/agent/etc/kubelet.conf.d");
    if (node_.Has(kK3sProviders)) {
      kubelet.words.push_back(std::string("--image-credential-provider-config=") + kK3sProviders);
    }
    for (const std::string& flag : flags) {
      kubelet.words.push_back(flag.starts_with('-') ? flag : "--" + flag);
    }
  }

  Result<void> FindSettings() {
    std::vector<std::string> paths = options_.kubelet_config;
    for (const std::string& path : paths) {
      if (node_.Has(path)) continue;
      return NotThere("--kubelet-config: " + path + " is not there",
                      "name the kubelet's own config.yaml, or the directory of its --config-dir");
    }
    const std::string usual = node_.kubelet_directory + "/config.yaml";
    if (!paths.empty()) {
      node_.unseen.clear();
    } else if (node_.has_kubelet) {
      for (const char* flag : {"config", "config-dir"}) {
        const auto path = node_.kubelet()->Flag(flag);
        if (!path.empty()) paths.push_back(path);
      }
    } else if (node_.Has(usual)) {
      // Where kubeadm puts it, for a kubelet that does not run.
      paths.push_back(usual);
    }
    node_.settings = ReadSettings(paths);
    return {};
  }

  Result<cli::YamlNode> ReadYaml(const std::string& path) const {
    const auto text = TRY(node_.Read(path));
    auto document = cli::ReadYaml(text);
    if (document) return document;
    return Error{ErrorCode::kUnavailable, path + ": " + document.error().message,
                 document.error().hint};
  }

  Result<KubeletSettings> ReadSettings(const std::vector<std::string>& paths) const {
    KubeletSettings settings;
    settings.merged.kind = cli::YamlNode::Kind::kMap;
    for (const std::string& path : paths) {
      const auto real = TRY(files_.Resolve(path));
      for (const std::string& file : TRY(cli::KubeletConfigFiles(real))) {
        // Below a directory that was resolved, as the node names it.
        const std::string name = path + file.substr(real.native().size());
        const auto document = TRY(ReadYaml(name));
        if (!document.IsMap()) {
          return Error{ErrorCode::kUnavailable, name + " is no KubeletConfiguration", {}};
        }
        Merge(settings.merged, document);
      }
    }
    return settings;
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

  Result<void> FindStore() {
    const std::string inside = node_.kubelet_directory + "/" + kStoreInside;
    node_.is_inside = node_.IsLocked(inside + "/owner.lock");
    node_.store = options_.store;
    if (!node_.store.empty() && !node_.Has(node_.store)) {
      return NotThere("--store: " + node_.store + " is not there",
                      "leave it out to look at a node without waybill");
    }
    for (const std::string& path : {inside, std::string("/var/lib/waybill")}) {
      if (node_.store.empty() && node_.Has(path + "/data.mdb")) node_.store = path;
    }
    if (node_.store.empty()) return {};
    const auto real = files_.Resolve(node_.store);
    node_.facts = real ? node_.kernel.read_store(*real) : real.error();
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
      node_.runtime =
          Error{ErrorCode::kUnavailable, "no runtime is asked of a node that is elsewhere",
                "give --cri a folder with what crictl prints there"};
      return;
    }
    // What the kubelet itself asks.
    if (endpoint.empty() && node_.has_kubelet) {
      endpoint = node_.kubelet()->Flag("container-runtime-endpoint");
      if (endpoint.empty() && node_.settings) {
        endpoint = node_.settings->Text("containerRuntimeEndpoint").value_or("");
      }
    }
    auto client = cri::Client::Connect({.endpoint = endpoint, .cancelled = options_.cancelled});
    node_.runtime = client ? Result<std::shared_ptr<cri::Runtime>>() : client.error();
    if (!client) return;
    node_.runtime_name = (*client)->runtime();
    const auto process = cri::Containerd({.endpoint = (*client)->endpoint()}).Process();
    if (process) runtime_pid_ = std::to_string(process->pid);
    node_.runtime = std::shared_ptr<cri::Runtime>(*std::move(client));
  }

  std::string Status() const {
    return node_.runtime ? (*node_.runtime)->Status().value_or("") : std::string();
  }

  Result<Process> FindRuntimeProcess() const {
    const std::string program = node_.runtime_name.starts_with("cri-o") ? "crio" : "containerd";
    const auto status = ParseJson(Status());
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
    return Error{ErrorCode::kUnavailable,
                 named.empty() ? "no process of the runtime is seen"
                               : "several processes are called " + program +
                                     ", and which one the kubelet asks is not known",
                 "run it as root, on the node itself"};
  }

  Result<RuntimePulls> FindPulls() const {
    // One that does not answer has files all the same.
    RuntimeAnswers answers{.version = node_.runtime_name, .status = Status()};
    if (!files_.IsThisMachine()) answers.root = options_.root.string();
    const auto& process = node_.runtime_process;
    if (process) answers.config = process->Config();
    auto pulls = TRY(ReadRuntimePulls(answers));
    std::vector<std::string> known;
    const Json* const status = node_.json.Find("status");
    const Json* const addresses = status == nullptr ? nullptr : status->Find("addresses");
    for (const Json& address : addresses == nullptr ? Json::array() : *addresses) {
      known.push_back(address.TextAt("address"));
    }
    AddOwnNames(std::move(known), pulls);
    if (!process && process.error().message.starts_with("several")) {
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
    if (!node_.unseen.empty()) found.problems.push_back(node_.unseen);
    // All that a kubelet may read, not the first alone. systemd gives it no home.
    const std::string place = "/proc/" + (kubelet == nullptr ? "none" : kubelet->pid);
    std::string home = node_.Has(place + "/environ") ? "" : "/root";
    for (const std::string& variable : EnvironmentOf(place.substr(6), found.problems)) {
      if (variable.starts_with("HOME=")) home = variable.substr(5);
    }
    const bool has_folder = kubelet != nullptr && files_.IsThisMachine();
    const std::string folder = has_folder ? place + "/cwd" : "";
    const std::set<std::string> paths = {node_.kubelet_directory + "/config.json",
                                         node_.kubelet_directory + "/.dockercfg",
                                         folder + "/config.json",
                                         folder + "/.dockercfg",
                                         home + "/.docker/config.json",
                                         home + "/.dockercfg",
                                         "/.docker/config.json",
                                         "/.dockercfg"};
    for (const std::string& path : paths) internal::AddDockerConfig(files_, path, false, found);
    const std::string providers =
        kubelet == nullptr ? "" : kubelet->Flag("image-credential-provider-config");
    const auto names = files_.List(providers.empty() ? "/none" : providers);
    for (const std::string& name : names.value_or(std::vector<std::string>())) {
      AddProviders(providers + "/" + name);
    }
    if (!names && !providers.empty()) AddProviders(providers);
    if (node_.pulls) AddCredentialsOfRuntime(*node_.pulls, found);
    if (!node_.pulls) found.problems.push_back(node_.pulls.error().message);
  }

  // A provider that needs no token of the pod gives the node's.
  void AddProviders(const std::string& path) {
    NodeCredentials& found = node_.credentials;
    found.files.push_back(path);
    const auto document = ReadYaml(path);
    const cli::YamlNode* const providers = document ? document->Find("providers") : nullptr;
    if (!document) found.problems.push_back(document.error().message);
    if (!document) return;
    // No kubelet starts with such a file: it changed since.
    if (providers == nullptr || providers->items.empty()) {
      found.problems.push_back(path + " names no credential providers");
      return;
    }
    for (const cli::YamlNode& provider : providers->items) {
      const cli::YamlNode* const name = provider.Find("name");
      const cli::YamlNode* const images = provider.Find("matchImages");
      const cli::YamlNode* const token = provider.Find("tokenAttributes");
      const cli::YamlNode* const needs =
          token == nullptr ? nullptr : token->Find("requireServiceAccount");
      if (needs != nullptr && cli::JsonOfScalar(*needs) == "true") continue;
      const std::string where =
          "the credential provider " + (name == nullptr ? "" : name->text) + " of " + path;
      if (images == nullptr || images->items.empty()) {
        found.held.push_back({"*", where});
        continue;
      }
      for (const cli::YamlNode& image : images->items) found.held.push_back({image.text, where});
    }
  }

  Node& node_;
  const internal::RootedFiles& files_;
  const NodeOptions& options_;
  std::string runtime_pid_ = {};  // empty: not known
};

}  // namespace

Result<std::unique_ptr<const Node>> Node::Find(NodeOptions options, Kernel kernel) {
  const internal::RootedFiles files(options.root);
  std::unique_ptr<Node> node(
      new Node{.options = std::move(options), .kernel = std::move(kernel), .files = files});
  if (node->options.node_json) node->json = ParseJson(*node->options.node_json);
  TRY(Finder(*node).Run());
  return std::unique_ptr<const Node>(std::move(node));
}

std::vector<std::string> Node::NamesIn(const std::string& folder) const {
  return files.List(folder).value_or(std::vector<std::string>());
}

Result<bool> Node::IsLocked(const std::string& path) const {
  const auto real = files.Resolve(path);
  if (!real && real.error().code == ErrorCode::kNotFound) return false;
  if (!real) return real.error();
  return kernel.is_locked(*real);
}

}  // namespace waybill::doctor
