#include "doctor/node.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <sstream>
#include <utility>

#include "bindings/cli/kubelet_config.h"
#include "guard/opening.h"
#include "guard/session.h"
#include "migrations/kubelet/kubelet_records.h"
#include "runtime/cri/containerd.h"
#include "runtime/cri/runtime_client.h"
#include "runtime/files/documents.h"
#include "store/base/image_name.h"
#include "store/base/try.h"
#include "waybill/limits.h"

namespace waybill::doctor {
namespace {

namespace fs = std::filesystem;
using internal::Json;

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
    const auto version = Json::Parse(TRY(Answer("version.json")));
    const std::string name = version.TextAt("runtimeName");
    if (!name.empty()) return name + " " + version.TextAt("runtimeVersion");
    return NotThere((folder_ / "version.json").string() + " names no runtime",
                    "put there what `crictl version -o json` prints");
  }
  Result<std::vector<ListedImage>> ListImages() override {
    return DecodeImageList(TRY(Answer("images.json")));
  }
  Result<std::vector<RuntimeHandler>> RuntimeHandlers() override {
    return DecodeRuntimeStatus(TRY(Answer("info.json")));
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

std::vector<std::string> Process::Values(std::string_view flag) const {
  std::vector<std::string> values;
  for (std::size_t i = 1; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (!word.starts_with('-')) continue;
    word.remove_prefix(word.starts_with("--") ? 2 : 1);
    if (!word.starts_with(flag)) continue;
    if (word.size() > flag.size() && word[flag.size()] == '=') {
      values.emplace_back(word.substr(flag.size() + 1));
    } else if (word == flag) {
      // A boolean flag may stand alone.
      const bool has_value = i + 1 < words.size() && !words[i + 1].starts_with('-');
      values.push_back(has_value ? words[i + 1] : "true");
    }
  }
  return values;
}

std::string Process::Flag(std::string_view flag) const {
  const auto values = Values(flag);
  return values.empty() ? "" : values.back();
}

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

// --- Finding -------------------------------------------------------------------------------------

Node::Node(NodeOptions options, Kernel kernel)
    : options_(std::move(options)), kernel_(std::move(kernel)), files_(options_.root) {
  if (options_.node_json) node_json_ = Json::Parse(*options_.node_json);
}

Result<std::unique_ptr<Node>> Node::Find(NodeOptions options, Kernel kernel) {
  std::unique_ptr<Node> node(new Node(std::move(options), std::move(kernel)));
  node->FindProcesses();
  TRY(node->FindKubelet());
  TRY(node->FindSettings());
  TRY(node->FindStore());
  node->FindRuntime();
  return node;
}

// Kubelets and runtimes. Any process can have such a name: those of containers, and of others than
// root, do not count.
void Node::FindProcesses() {
  static const std::set<std::string> kNames = {"kubelet",  "k3s",        "kubelite",
                                               "edgecore", "containerd", "crio"};
  const auto pids = files_.List("/proc");
  for (const std::string& pid : pids ? *pids : std::vector<std::string>()) {
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto command_line = Read("/proc/" + pid + "/cmdline");
    if (!command_line || command_line->empty()) continue;
    Process process{.pid = pid, .words = LinesOf(*command_line, '\0')};
    // k3s hides its arguments behind a title.
    process.name = fs::path(LinesOf(process.words[0], ' ')[0]).filename();
    const auto directory = files_.Resolve("/proc/" + pid);
    struct stat owner = {};
    if (!kNames.contains(process.name) || !directory || ::stat(directory->c_str(), &owner) != 0 ||
        (owner.st_uid != 0 && owner.st_uid != ::geteuid())) {
      continue;
    }
    const auto cgroup = Read("/proc/" + pid + "/cgroup");
    bool is_in_container = cgroup && cgroup->find("kubepods") != std::string::npos;
    const auto status = Read("/proc/" + pid + "/status");
    for (const std::string& line : LinesOf(status.value_or(""))) {
      const bool has_pids_of_namespaces = line.starts_with("NSpid:") && WordsOf(line).size() > 2;
      is_in_container = is_in_container || has_pids_of_namespaces;
    }
    if (!is_in_container) processes_.push_back(std::move(process));
  }
}

Result<void> Node::FindKubelet() {
  const std::string named = options_.kubelet_directory;
  if (!named.empty() && !Has(named)) {
    return NotThere("--kubelet-dir: " + named + " is not there",
                    "name the kubelet's root directory, by default /var/lib/kubelet");
  }
  std::ranges::copy_if(processes_, std::back_inserter(kubelets_),
                       [](const Process& process) { return process.name == "kubelet"; });
  if (kubelets_.empty()) FindKubeletInside();
  if (named.empty()) {
    has_kubelet_ = !kubelets_.empty();
    options_.kubelet_directory =
        has_kubelet_ ? kubelets_.front().RootDirectory() : kUsualKubeletDirectory;
  } else {
    const auto others =
        std::stable_partition(kubelets_.begin(), kubelets_.end(), [&](const Process& process) {
          const auto its = files_.Resolve(process.RootDirectory());
          const auto ours = files_.Resolve(named);
          return its && ours && internal::IsSameFile(*its, *ours);
        });
    has_kubelet_ = others != kubelets_.begin();
  }
  if (!has_kubelet_ && options_.kubelet_config.empty()) {
    unseen_ = "no kubelet runs on " + options_.kubelet_directory + ", so its flags are not known";
  }
  return {};
}

// One that is part of another program: its flags are in that program's files.
void Node::FindKubeletInside() {
  for (const Process& process : processes_) {
    Process kubelet{.pid = process.pid, .words = {process.words[0]}, .inside = process.name};
    const auto add = [&](const std::string& flag) {
      if (!flag.empty()) kubelet.words.push_back(flag.starts_with('-') ? flag : "--" + flag);
    };
    if (process.name == "k3s") {
      for (const std::string file :
           {"/etc/rancher/k3s/config.yaml", "/etc/rancher/k3s/config.yaml.d"}) {
        const auto names = files_.List(file);
        std::vector<std::string> paths = {file};
        if (names) paths.clear();
        for (const std::string& name : names ? *names : paths) paths.push_back(file + "/" + name);
        for (const std::string& path : paths) {
          if (!Has(path)) continue;
          const auto document = ReadYaml(path);
          if (!document) unseen_ = document.error().message;
          const auto* const args = document ? document->Find("kubelet-arg") : nullptr;
          if (args == nullptr) continue;
          if (args->IsScalar()) add(args->text);
          for (const cli::YamlNode& arg : args->items) add(arg.text);
        }
      }
      for (const std::string& arg : process.Values("kubelet-arg")) add(arg);
      // As it is found in the place of k3s' own.
      if (process.words[0].find(' ') != std::string::npos) {
        unseen_ = "k3s hides its own flags, --kubelet-arg may be one of them";
      }
      if (kubelet.Flag("image-credential-provider-config").empty() && Has(kK3sProviders)) {
        add("image-credential-provider-config=" + std::string(kK3sProviders));
      }
      if (kubelet.Flag("config-dir").empty()) {
        const std::string data = process.Flag("data-dir");
        add("config-dir=" + (data.empty() ? "/var/lib/rancher/k3s" : data) +
            "/agent/etc/kubelet.conf.d");
      }
    } else if (process.name == "kubelite") {
      std::string file = process.Flag("kubelet-args-file");
      const auto args = Read(file.empty() ? "/var/snap/microk8s/current/args/kubelet" : file);
      if (!args) unseen_ = "the flags of the kubelet in kubelite: " + args.error().message;
      for (const std::string& line : LinesOf(args.value_or(""))) {
        for (const std::string& word : WordsOf(line)) kubelet.words.push_back(word);
      }
    } else if (process.name == "edgecore") {
      unseen_ = "the kubelet is part of edgecore, whose configuration is not understood";
    } else {
      continue;
    }
    kubelets_.push_back(std::move(kubelet));
    return;
  }
}

Result<void> Node::FindSettings() {
  std::vector<std::string> paths = options_.kubelet_config;
  for (const std::string& path : paths) {
    if (!Has(path)) {
      return NotThere("--kubelet-config: " + path + " is not there",
                      "name the kubelet's own config.yaml, or the directory of its --config-dir");
    }
  }
  if (!paths.empty()) {
    unseen_.clear();
  } else if (kubelet() != nullptr) {
    for (const char* flag : {"config", "config-dir"}) {
      if (const auto path = kubelet()->Flag(flag); !path.empty()) paths.push_back(path);
    }
  } else if (const auto usual = options_.kubelet_directory + "/config.yaml"; Has(usual)) {
    // Where kubeadm puts it, for a kubelet that does not run.
    paths.push_back(usual);
  }
  settings_ = ReadSettings(paths);
  return {};
}

Result<cli::YamlNode> Node::ReadYaml(const std::string& path) const {
  const auto text = TRY(Read(path));
  auto document = cli::ReadYaml(text);
  if (document) return document;
  return Error{ErrorCode::kUnavailable, path + ": " + document.error().message,
               document.error().hint};
}

Result<KubeletSettings> Node::ReadSettings(const std::vector<std::string>& paths) const {
  KubeletSettings settings;
  settings.merged.kind = cli::YamlNode::Kind::kMap;
  for (const std::string& path : paths) {
    const auto real = TRY(files_.Resolve(path));
    for (const std::string& file : TRY(cli::KubeletConfigFiles(real))) {
      // Below a directory that was resolved, as the node names it.
      Merge(settings.merged, TRY(ReadYaml(path + file.substr(real.native().size()))));
    }
  }
  return settings;
}

Result<void> Node::FindStore() {
  if (!options_.store.empty()) {
    if (Has(options_.store)) return {};
    return NotThere("--store: " + options_.store + " is not there",
                    "leave it out to look at a node without waybill");
  }
  for (const std::string& path :
       {options_.kubelet_directory + "/" + kStoreInside, std::string("/var/lib/waybill")}) {
    if (options_.store.empty() && Has(path + "/data.mdb")) options_.store = path;
  }
  return {};
}

void Node::FindRuntime() {
  std::string endpoint = options_.cri == "auto" ? "" : options_.cri;
  std::error_code ignored;
  if (!endpoint.empty() && fs::is_directory(endpoint, ignored)) {
    auto recorded = std::make_shared<RecordedRuntime>(endpoint);
    auto name = recorded->Name();
    runtime_name_ = name.value_or("");
    runtime_ = std::shared_ptr<cri::Runtime>(std::move(recorded));
    if (!name) runtime_ = name.error();
    return;
  }
  if (endpoint.empty() && !files_.IsThisMachine()) {
    runtime_ = Error{ErrorCode::kUnavailable, "no runtime is asked of a node that is elsewhere",
                     "give --cri a folder with what crictl prints there"};
    return;
  }
  // What the kubelet itself asks.
  if (endpoint.empty() && kubelet() != nullptr) {
    endpoint = kubelet()->Flag("container-runtime-endpoint");
    if (endpoint.empty() && settings_) {
      endpoint = settings_->Text("containerRuntimeEndpoint").value_or("");
    }
  }
  auto client = cri::Client::Connect({.endpoint = endpoint, .cancelled = options_.cancelled});
  if (!client) {
    runtime_ = client.error();
    return;
  }
  runtime_name_ = (*client)->runtime();
  const auto process = cri::Containerd({.endpoint = (*client)->endpoint()}).Process();
  if (process) runtime_pid_ = process->pid;
  runtime_ = std::shared_ptr<cri::Runtime>(*std::move(client));
}

Result<Process> Node::FindRuntimeProcess() const {
  const auto not_seen = [](std::string what) {
    return Error{ErrorCode::kUnavailable, std::move(what), "run it as root, on the node itself"};
  };
  const std::string program = runtime_name_.starts_with("cri-o") ? "crio" : "containerd";
  const auto status = runtime_ ? (*runtime_)->Status() : Result<std::string>(runtime_.error());
  const auto asked = internal::Json::Parse(status.value_or(""));
  const Json* const config = asked.Find("config");
  const std::string socket = config == nullptr ? "" : config->TextAt("containerdEndpoint");
  std::vector<Process> named;
  std::vector<Process> fitting;
  for (const Process& process : processes_) {
    if (process.name != program) continue;
    if (std::to_string(runtime_pid_) == process.pid) return process;
    named.push_back(process);
    std::string address = process.Flag("address") + process.Flag("a");
    const std::string file = process.Flag("config") + process.Flag("c");
    if (address.empty()) {
      const auto pulls =
          ReadRuntimePulls({.version = program, .config = file, .root = options_.root.string()});
      address = pulls ? pulls->socket : "";
    }
    if (address.empty()) address = "/run/containerd/containerd.sock";
    if (address == socket) fitting.push_back(process);
  }
  if (fitting.size() == 1) return fitting[0];
  if (named.size() == 1) return named[0];
  if (named.empty()) return not_seen("no process of the runtime is seen");
  return not_seen("several processes are called " + program +
                  ", and which one the kubelet asks is not known");
}

Result<RuntimePulls> Node::FindPulls() const {
  RuntimeAnswers answers{.version = runtime_name_};
  if (!files_.IsThisMachine()) answers.root = options_.root.string();
  // One that does not answer has files all the same.
  if (runtime_) answers.status = (*runtime_)->Status().value_or("");
  const auto& process = RuntimeProcess();
  if (process) answers.config = process->Flag("config") + process->Flag("c");
  auto pulls = TRY(ReadRuntimePulls(answers));
  pulls.own_names = OwnNames();
  if (!process) {
    if (process.error().message.starts_with("several")) {
      pulls.problems.push_back(process.error().message);
    }
    return pulls;
  }
  const auto elsewhere = [&](const std::string& what) {
    pulls.problems.push_back(
        what + " of the runtime's process says where registries are, and is not followed");
  };
  for (const std::string flag : {"registries-conf", "registries-conf-dir", "config-dir"}) {
    if (!process->Flag(flag).empty()) elsewhere("the flag --" + flag);
  }
  const auto environment = Read("/proc/" + process->pid + "/environ");
  for (const std::string& variable : LinesOf(environment.value_or(""), '\0')) {
    if (variable.starts_with("CONTAINERS_REGISTRIES_CONF")) {
      elsewhere("the variable " + variable.substr(0, variable.find('=')));
    }
  }
  return pulls;
}

// By the node's API answer, its files and its interfaces.
std::vector<std::string> Node::OwnNames() const {
  std::vector<std::string> names;
  const Json* const status = node_json_.Find("status");
  const Json* const addresses = status == nullptr ? nullptr : status->Find("addresses");
  for (const Json& address : addresses == nullptr ? Json::array() : *addresses) {
    names.push_back(address.TextAt("address"));
  }
  const auto hostname = WordsOf(Read("/etc/hostname").value_or(""));
  names.insert(names.end(), hostname.begin(), hostname.end());
  for (const std::string net : {"/proc/1/net/", "/proc/net/"}) {
    // |-- 10.0.17.4, and below it: /32 host LOCAL
    std::string last;
    for (const std::string& line : LinesOf(Read(net + "fib_trie").value_or(""))) {
      const auto words = WordsOf(line);
      if (words.size() == 2 && words[0] == "|--") last = words[1];
      if (words.size() == 3 && words[2] == "LOCAL") names.push_back(last);
    }
    for (const std::string& line : LinesOf(Read(net + "if_inet6").value_or(""))) {
      std::string address = line.substr(0, line.find(' '));
      for (std::size_t at = 4; at < address.size(); at += 5) address.insert(at, 1, ':');
      names.push_back(address);
    }
  }
  for (const std::string& line : LinesOf(Read("/etc/hosts").value_or(""))) {
    const auto words = WordsOf(line.substr(0, line.find('#')));
    if (words.size() < 2 || !IsOnThisNode(words[0], names)) continue;
    names.insert(names.end(), words.begin() + 1, words.end());
  }
  std::erase(names, "");
  return names;
}

// --- The node's own credentials ------------------------------------------------------------------

NodeCredentials Node::FindCredentials() const {
  NodeCredentials found;
  if (!unseen_.empty()) found.problems.push_back(unseen_);
  // All that a kubelet may read, not the first alone.
  std::string home = "/root";
  if (kubelet() != nullptr) {
    if (const auto environment = Read("/proc/" + kubelet()->pid + "/environ")) {
      home.clear();
      for (const std::string& variable : LinesOf(*environment, '\0')) {
        if (variable.starts_with("HOME=")) home = variable.substr(5);
      }
    }
  }
  std::error_code ignored;
  std::string here = "/";
  if (kubelet() != nullptr && files_.IsThisMachine()) {
    here = fs::read_symlink("/proc/" + kubelet()->pid + "/cwd", ignored).string() + "/";
  }
  std::set<std::string> paths;
  for (const std::string& folder :
       {kubelet_directory() + "/", here, home + "/", std::string("/")}) {
    const bool is_home = folder == home + "/" || folder == "/";
    if (is_home) paths.insert(folder + ".docker/config.json");
    if (folder == here || folder == kubelet_directory() + "/") paths.insert(folder + "config.json");
    paths.insert(folder + ".dockercfg");
  }
  for (const std::string& path : paths) internal::AddDockerConfig(files_, path, false, found);
  const auto providers =
      kubelet() == nullptr ? std::string() : kubelet()->Flag("image-credential-provider-config");
  if (const auto names = files_.List(providers); names && !providers.empty()) {
    for (const std::string& name : *names) AddProviders(providers + "/" + name, found);
  } else if (!providers.empty()) {
    AddProviders(providers, found);
  }
  if (const auto& pulls = Pulls()) {
    AddCredentialsOfRuntime(*pulls, found);
  } else {
    found.problems.push_back(pulls.error().message);
  }
  return found;
}

// A provider that needs no token of the pod gives the node's.
void Node::AddProviders(const std::string& path, NodeCredentials& into) const {
  into.files.push_back(path);
  const auto document = ReadYaml(path);
  const cli::YamlNode* const providers = document ? document->Find("providers") : nullptr;
  if (providers == nullptr || !providers->IsList()) {
    into.problems.push_back(document ? path + " has no list of providers"
                                     : document.error().message);
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
    if (images == nullptr || !images->IsList()) {
      into.held.push_back({"*", where});
      continue;
    }
    for (const cli::YamlNode& image : images->items) into.held.push_back({image.text, where});
  }
}

// --- Found once ----------------------------------------------------------------------------------

const NodeCredentials& Node::Credentials() const {
  if (!credentials_) credentials_ = FindCredentials();
  return *credentials_;
}

const Result<Process>& Node::RuntimeProcess() const {
  if (!runtime_process_) runtime_process_ = FindRuntimeProcess();
  return *runtime_process_;
}

Result<bool> Node::IsLocked(const std::string& path) const {
  const auto real = files_.Resolve(path);
  if (!real && real.error().code == ErrorCode::kNotFound) return false;
  if (!real) return real.error();
  return kernel_.is_locked(*real);
}

bool Node::IsInside() const {
  return IsLocked(kubelet_directory() + "/" + kStoreInside + "/owner.lock").value_or(false);
}

const Result<StoreFacts>& Node::ReadStore() const {
  if (!facts_) {
    const auto real = options_.store.empty()
                          ? Result<fs::path>(Error{ErrorCode::kNotFound, "there is no store", ""})
                          : files_.Resolve(options_.store);
    facts_ = real ? kernel_.read_store(*real) : Result<StoreFacts>(real.error());
  }
  return *facts_;
}

const Result<KubeletVersion>& Node::Version() const {
  if (!version_) version_ = FindKubeletVersion(*this, node_json_);
  return *version_;
}

const Result<std::vector<ListedImage>>& Node::Images() const {
  if (!images_) images_ = runtime_ ? (*runtime_)->ListImages() : runtime_.error();
  return *images_;
}

const Result<RuntimePulls>& Node::Pulls() const {
  if (!pulls_) pulls_ = FindPulls();
  return *pulls_;
}

const KubeletRecords& Node::Records() const {
  if (records_) return *records_;
  records_ = KubeletRecords();
  const auto each = [&](const char* folder, const auto& read) {
    const std::string path = kubelet_directory() + "/image_manager/" + folder;
    const auto names = files_.List(path);
    for (const std::string& name : names ? *names : std::vector<std::string>()) {
      if (!name.starts_with("sha256-")) continue;
      const auto text = files_.Read(path + "/" + name, kMaxRecordFileBytes);
      if (!text || !read(*text)) ++records_->unreadable;
    }
  };
  each("pulled", [&](const std::string& text) {
    const auto record = DecodePulledRecord(text);
    if (!record) return false;
    records_->refs.insert(record->image_ref);
    for (const auto& [image, credentials] : record->credential_mapping) {
      records_->images.insert(image);
      auto& kind = credentials.node_pods_accessible ? records_->open : records_->guarded;
      kind.insert(RepositoryOf(image));
    }
    return true;
  });
  each("pulling", [&](const std::string& text) {
    const auto intent = DecodePullIntent(text);
    if (intent) records_->images.insert(intent->image);
    return intent.has_value();
  });
  return *records_;
}

}  // namespace waybill::doctor
