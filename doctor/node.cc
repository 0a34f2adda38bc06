#include "doctor/node.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include "bindings/cli/kubelet_config.h"
#include "doctor/recorded_runtime.h"
#include "doctor/runtime_process.h"
#include "doctor/text.h"
#include "runtime/cri/runtime_client.h"
#include "runtime/files/pull_sources.h"
#include "store/base/files.h"
#include "store/base/try.h"

namespace waybill::doctor {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsualKubeletDirectory = "/var/lib/kubelet";
constexpr const char* kUsualStore = "/var/lib/waybill";
// Of a kubelet with waybill inside, in the kubelet's directory.
constexpr const char* kStoreInside = "waybill";
constexpr std::size_t kMaxCommandLine = std::size_t{1} << 20;

Error NotThere(std::string what, std::string hint) {
  return {ErrorCode::kInvalidArgument, std::move(what), std::move(hint)};
}

// Whether the process has a PID of its own in another namespace, by /proc/PID/status.
bool IsInContainer(const Result<std::string>& status) {
  constexpr std::string_view kPids = "\nNSpid:\t";
  const std::size_t at = status ? status->find(kPids) : std::string::npos;
  if (at == std::string::npos) return false;
  const std::size_t from = at + kPids.size();
  const std::string_view pids(status->data() + from, status->find('\n', from) - from);
  return pids.find('\t') != std::string_view::npos;
}

// What a later file says wins, key by key; null takes a key away (a JSON merge patch).
void Merge(cli::YamlNode& into, const cli::YamlNode& from) {
  if (!into.IsMap() || !from.IsMap()) {
    into = from;
    return;
  }
  for (std::size_t i = 0; i < from.keys.size(); ++i) {
    const auto at = std::find(into.keys.begin(), into.keys.end(), from.keys[i]);
    const cli::YamlNode& item = from.items[i];
    const bool is_null = item.IsScalar() && cli::JsonOfScalar(item) == "null";
    if (at == into.keys.end()) {
      if (is_null) continue;
      into.keys.push_back(from.keys[i]);
      into.items.push_back(item);
      continue;
    }
    const auto index = at - into.keys.begin();
    if (is_null) {
      into.keys.erase(at);
      into.items.erase(into.items.begin() + index);
    } else {
      Merge(into.items[static_cast<std::size_t>(index)], item);
    }
  }
}

}  // namespace

// --- The kubelet ---------------------------------------------------------------------------------

std::vector<std::string> KubeletProcess::Values(std::string_view name) const {
  std::vector<std::string> values;
  for (std::size_t i = 1; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (!word.starts_with('-')) continue;
    word.remove_prefix(word.starts_with("--") ? 2 : 1);
    const bool has_value = word.size() > name.size() && word[name.size()] == '=';
    if (!word.starts_with(name)) continue;
    if (has_value) {
      values.emplace_back(word.substr(name.size() + 1));
    } else if (word == name && i + 1 < words.size()) {
      values.push_back(words[++i]);
    }
  }
  return values;
}

std::optional<std::string> KubeletProcess::Flag(std::string_view name) const {
  auto values = Values(name);
  if (values.empty()) return std::nullopt;
  return std::move(values.back());
}

std::optional<std::string> KubeletProcess::BooleanFlag(std::string_view name) const {
  std::optional<std::string> value;
  for (std::string_view word : words) {
    if (!word.starts_with('-')) continue;
    word.remove_prefix(word.starts_with("--") ? 2 : 1);
    if (word == name) value = "true";
    if (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=') {
      value = word.substr(name.size() + 1);
    }
  }
  return value;
}

std::string KubeletProcess::RootDirectory() const {
  return Flag("root-dir").value_or(kUsualKubeletDirectory);
}

std::optional<std::uint64_t> KubeletSettings::Number(std::string_view key) const {
  const auto text = Text(key);
  std::uint64_t number = 0;
  if (!text) return std::nullopt;
  const char* const end = text->data() + text->size();
  const auto read = std::from_chars(text->data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

std::optional<std::string> KubeletSettings::Text(std::string_view key) const {
  const cli::YamlNode* const found = merged.Find(key);
  if (found == nullptr || !found->IsScalar() || cli::JsonOfScalar(*found) == "null") {
    return std::nullopt;
  }
  return found->text;
}

// --- Files ---------------------------------------------------------------------------------------

Result<int> Node::Open(const fs::path& path, int flags) const {
  flags |= O_CLOEXEC;
  // A FIFO does not wait for its writer. A path alone takes no such flags.
  if ((flags & O_PATH) == 0) flags |= O_NOCTTY | O_NONBLOCK;
  const auto failed = [&](int error) { return internal::SystemError(error, "read", path); };
  if (options_.root == "/") {
    const int fd = ::open(path.c_str(), flags);
    return fd < 0 ? Result<int>(failed(errno)) : Result<int>(fd);
  }
  const internal::Fd root(::open(options_.root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return internal::SystemError(errno, "open", options_.root);
  open_how how = {};
  how.flags = static_cast<std::uint64_t>(flags);
  // A link of the node leads to a file of the node.
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const auto fd = ::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how);
  return fd < 0 ? Result<int>(failed(errno)) : Result<int>(static_cast<int>(fd));
}

Result<fs::path> Node::Resolve(const fs::path& path) const {
  if (options_.root == "/") {
    struct stat status = {};
    if (::stat(path.c_str(), &status) != 0) return internal::SystemError(errno, "read", path);
    return path;
  }
  const internal::Fd fd(TRY(Open(path, O_PATH)));
  return internal::PathOf(fd.get());
}

Result<int> Node::OpenToRead(const fs::path& path) const { return Open(path, O_RDONLY); }

Result<std::string> Node::Read(const fs::path& path, std::size_t most) const {
  const internal::Fd fd(TRY(Open(path, O_RDONLY)));
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0) return internal::SystemError(errno, "read", path);
  if (!S_ISREG(status.st_mode)) {
    return Error{ErrorCode::kUnsafePath, path.string() + " is not a regular file", ""};
  }
  std::string content;
  std::array<char, 8192> buffer{};
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return internal::SystemError(errno, "read", path);
    if (got == 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(got));
    if (content.size() > most) {
      return Error{ErrorCode::kLimitExceeded,
                   path.string() + " has more than " + std::to_string(most) + " bytes", ""};
    }
  }
}

Result<std::string> Node::ReadLine(const fs::path& path) const {
  auto content = TRY(Read(path));
  content.resize(std::min(content.find('\n'), content.size()));
  return content;
}

Result<std::vector<std::string>> Node::List(const fs::path& path) const {
  const auto real = TRY(Resolve(path));
  auto names = internal::ListDirectory(real);
  if (names) std::sort(names->begin(), names->end());
  return names;
}

// --- Finding -------------------------------------------------------------------------------------

Result<std::unique_ptr<Node>> Node::Find(NodeOptions options, Kernel kernel) {
  std::unique_ptr<Node> node(new Node(std::move(options), std::move(kernel)));
  TRY(node->FindKubelet());
  TRY(node->FindSettings());
  TRY(node->FindStore());
  node->FindRuntime();
  return node;
}

Result<void> Node::FindKubelet() {
  const std::string named = options_.kubelet_directory;
  if (!named.empty() && !Has(named)) {
    return NotThere("--kubelet-dir: " + named + " is not there",
                    "name the kubelet's root directory, by default /var/lib/kubelet");
  }
  auto processes = List("/proc");
  if (processes) {
    for (const std::string& pid : *processes) {
      if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
      auto command_line = Read("/proc/" + pid + "/cmdline", kMaxCommandLine);
      if (!command_line) continue;
      KubeletProcess process{.pid = pid, .words = SplitAtZeros(*command_line)};
      // Any process can have this name.
      const auto directory = Resolve("/proc/" + pid);
      struct stat owner = {};
      if (!directory || ::stat(directory->c_str(), &owner) != 0) continue;
      if (owner.st_uid != 0 && owner.st_uid != ::geteuid()) continue;
      if (process.words.empty() || fs::path(process.words[0]).filename() != "kubelet") continue;
      if (IsInContainer(Read("/proc/" + pid + "/status"))) continue;
      kubelets_.push_back(std::move(process));
    }
  }
  if (named.empty()) {
    has_kubelet_ = !kubelets_.empty();
    options_.kubelet_directory =
        has_kubelet_ ? kubelets_.front().RootDirectory() : kUsualKubeletDirectory;
    return {};
  }
  const auto others =
      std::stable_partition(kubelets_.begin(), kubelets_.end(), [&](const KubeletProcess& process) {
        const auto its = Resolve(process.RootDirectory());
        const auto ours = Resolve(named);
        return its && ours && internal::IsSameFile(*its, *ours);
      });
  has_kubelet_ = others != kubelets_.begin();
  return {};
}

Result<void> Node::FindSettings() {
  std::vector<std::string> paths = options_.kubelet_config;
  for (const std::string& path : paths) {
    if (!Has(path)) {
      return NotThere("--kubelet-config: " + path + " is not there",
                      "name the kubelet's own config.yaml, or the directory of its --config-dir");
    }
  }
  if (paths.empty() && kubelet() != nullptr) {
    for (const char* flag : {"config", "config-dir"}) {
      if (auto path = kubelet()->Flag(flag); path && !path->empty()) paths.push_back(*path);
    }
  }
  // Where kubeadm puts it, for a kubelet that does not run.
  const std::string usual = options_.kubelet_directory + "/config.yaml";
  if (paths.empty() && kubelet() == nullptr && Has(usual)) paths.push_back(usual);
  settings_ = ReadSettings(paths);
  return {};
}

Result<KubeletSettings> Node::ReadSettings(const std::vector<std::string>& paths) const {
  KubeletSettings settings;
  settings.merged.kind = cli::YamlNode::Kind::kMap;
  for (const std::string& path : paths) {
    const auto real = TRY(Resolve(path));
    const auto files = TRY(cli::KubeletConfigFiles(real));
    for (const std::string& file : files) {
      // Below a directory that was resolved, as the node names it.
      const std::string name = path + file.substr(real.native().size());
      const auto text = TRY(Read(name, cli::kMaxYamlBytes));
      auto document = cli::ReadYaml(text);
      if (!document) {
        return Error{document.error().code, name + ": " + document.error().message,
                     document.error().hint};
      }
      Merge(settings.merged, *document);
      settings.files.push_back(name);
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
       {options_.kubelet_directory + "/" + kStoreInside, std::string(kUsualStore)}) {
    if (!Has(path + "/data.mdb")) continue;
    options_.store = path;
    return {};
  }
  return {};
}

void Node::FindRuntime() {
  std::string endpoint = options_.cri == "auto" ? "" : options_.cri;
  std::error_code ignored;
  if (!endpoint.empty() && fs::is_directory(endpoint, ignored)) {
    auto recorded = std::make_shared<RecordedRuntime>(endpoint);
    auto name = recorded->Name();
    if (!name) {
      runtime_ = name.error();
      return;
    }
    runtime_name_ = *std::move(name);
    runtime_ = std::shared_ptr<cri::Runtime>(std::move(recorded));
    return;
  }
  if (endpoint.empty() && options_.root != "/") {
    runtime_ = Error{ErrorCode::kUnavailable, "no runtime is asked of a node that is elsewhere",
                     "give --cri a folder with what crictl prints there"};
    return;
  }
  // What the kubelet itself asks.
  if (endpoint.empty() && kubelet() != nullptr) {
    endpoint = kubelet()->Flag("container-runtime-endpoint").value_or("");
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
  runtime_ = std::shared_ptr<cri::Runtime>(*std::move(client));
}

bool Node::IsInside() const {
  const auto lock = Resolve(kubelet_directory() + "/" + kStoreInside + "/owner.lock");
  return lock && kernel_.is_locked(*lock).value_or(false);
}

const Result<StoreFacts>& Node::ReadStore() const {
  if (!facts_) {
    const auto real = options_.store.empty()
                          ? Result<fs::path>(Error{ErrorCode::kNotFound, "there is no store", ""})
                          : Resolve(options_.store);
    facts_ = real ? kernel_.read_store(*real) : Result<StoreFacts>(real.error());
  }
  return *facts_;
}

const Result<KubeletVersion>& Node::Version() const {
  if (!version_) version_ = FindKubeletVersion(*this);
  return *version_;
}

const Result<std::vector<ListedImage>>& Node::Images() const {
  if (!images_) images_ = runtime_ ? (*runtime_)->ListImages() : runtime_.error();
  return *images_;
}

Result<RuntimePulls> Node::FindPulls() const {
  RuntimeAnswers answers;
  answers.version = runtime_name_;
  if (options_.root != "/") answers.root = options_.root.string();
  // One that does not answer has files all the same.
  if (runtime_) {
    if (auto status = (*runtime_)->Status()) answers.status = *std::move(status);
  }
  const auto process = FindRuntimeProcess(*this);
  if (process) answers.config = process->config;
  auto pulls = TRY(ReadRuntimePulls(answers));
  if (process) {
    for (const std::string& what : process->elsewhere) {
      pulls.problems.push_back(what +
                               " of the runtime's process says where registries are, and "
                               "is not followed");
    }
  }
  return pulls;
}

const Result<RuntimePulls>& Node::Pulls() const {
  if (!pulls_) pulls_ = FindPulls();
  return *pulls_;
}

}  // namespace waybill::doctor
