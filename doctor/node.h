// What the doctor looks at: the files of a node, its kubelet, its runtime. Everything is read
// through this, so that tests play nodes from a folder, and a node that is mounted elsewhere can be
// looked at. Nothing is opened for writing, and no program of the node is run.

#ifndef WAYBILL_DOCTOR_NODE_H_
#define WAYBILL_DOCTOR_NODE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/cli/yaml_document.h"
#include "doctor/kubelet_version.h"
#include "runtime/cri/runtime.h"
#include "runtime/files/pull_sources.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::doctor {

// Where to look. Paths are the node's own, below `root`. Empty: found by itself.
struct NodeOptions {
  std::filesystem::path root = "/";
  std::string kubelet_directory = {};
  std::vector<std::string> kubelet_config = {};  // files, and directories of drop-ins
  std::string store = {};
  // An endpoint, auto, or a folder with what crictl prints (recorded_runtime.h).
  std::string cri = {};
  // What `kubectl get node NAME -o json` prints.
  std::optional<std::string> node_json = std::nullopt;
  std::string waybill_version = {};  // of this command
  // Asked now and then while the runtime is: true ends the call. Missing: never.
  std::function<bool()> cancelled = {};
};

// Host IDs of a pod, and who says so.
struct PodIds {
  enum class In : std::uint8_t { kStore, kHeld, kFiles };  // kHeld: in the store, not verified

  std::string pod = {};  // empty: of pods whose UIDs were lost
  std::uint64_t first = 0;
  std::uint64_t length = 0;  // 0: which IDs it has is not known
  In in = In::kStore;
};

// What a store says of itself.
struct StoreFacts {
  std::uint32_t schema_version = 0;
  std::string distrusted_because = {};  // empty: it trusts itself
  bool witness_in_store = false;        // and would be lost with it
  std::string copy_of = {};             // another directory, from which it was copied
  std::vector<PodIds> host_ids = {};
};

// A file system, as it is now.
struct DiskSpace {
  std::uint64_t total = 0;      // bytes
  std::uint64_t available = 0;  // to root
  std::uint64_t inodes = 0;     // 0: it has no fixed number
  std::uint64_t inodes_free = 0;
};

// What files do not say by themselves. Tests say it instead.
struct Kernel {
  std::function<Result<DiskSpace>(const std::filesystem::path&)> space;
  // Whether the file system of the directory can be mounted with mapped IDs. An error: it could not
  // be tried.
  std::function<Result<bool>(const std::filesystem::path&)> maps_ids;
  // Whether a process holds a lock on the file.
  std::function<Result<bool>(const std::filesystem::path&)> is_locked;
  // Whether a guard, or a kubelet with waybill inside, marked the directory as used.
  std::function<bool(const std::filesystem::path&)> was_used;
  std::function<Timestamp()> now;
  // Reads a store, and changes nothing in it.
  std::function<Result<StoreFacts>(const std::filesystem::path&)> read_store;
};
// All but read_store, which the command has.
Kernel ThisKernel();

// A process that is a kubelet.
struct KubeletProcess {
  std::string pid = {};
  std::vector<std::string> words = {};  // its command line

  // Each value of --NAME, in order.
  std::vector<std::string> Values(std::string_view name) const;
  // The last one.
  std::optional<std::string> Flag(std::string_view name) const;
  // "true" or "false", of a flag that may stand alone.
  std::optional<std::string> BooleanFlag(std::string_view name) const;
  // Where it keeps its files.
  std::string RootDirectory() const;
};

// The kubelet's configuration files as one document, key by key as the kubelet merges them.
struct KubeletSettings {
  std::vector<std::string> files = {};  // the node's paths
  cli::YamlNode merged = {};

  // nullopt: not said, or null.
  std::optional<std::string> Text(std::string_view key) const;
  std::optional<std::uint64_t> Number(std::string_view key) const;
  const cli::YamlNode* Find(std::string_view key) const { return merged.Find(key); }
};

class Node {
 public:
  // kInvalidArgument: something that `options` name is not there.
  static Result<std::unique_ptr<Node>> Find(NodeOptions options, Kernel kernel);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // --- Files ------------------------------------------------------------------------------------

  // Where a path of the node is for this process; symbolic links, too, stay below the root.
  // kNotFound, kIo, kUnsafePath.
  Result<std::filesystem::path> Resolve(const std::filesystem::path& path) const;
  bool Has(const std::filesystem::path& path) const { return Resolve(path).has_value(); }
  // The whole of a regular file. Also kLimitExceeded; the error names the node's path.
  Result<std::string> Read(const std::filesystem::path& path,
                           std::size_t most = std::size_t{1} << 20) const;
  // The caller closes it.
  Result<int> OpenToRead(const std::filesystem::path& path) const;
  // Its first line, without the line's end.
  Result<std::string> ReadLine(const std::filesystem::path& path) const;
  // The names in a directory, sorted.
  Result<std::vector<std::string>> List(const std::filesystem::path& path) const;

  // --- The kubelet ------------------------------------------------------------------------------

  // The one that is looked at; nullptr: none runs on this directory.
  const KubeletProcess* kubelet() const { return has_kubelet_ ? &kubelets_.front() : nullptr; }
  // All, that one first. Not those in containers, which are other nodes.
  const std::vector<KubeletProcess>& kubelets() const { return kubelets_; }
  // Its --root-dir, or the usual one. The node's path; it need not exist.
  const std::string& kubelet_directory() const { return options_.kubelet_directory; }
  // What its files say. An error: they can't be read.
  const Result<KubeletSettings>& settings() const { return settings_; }
  // Which release it is. Found once.
  const Result<KubeletVersion>& Version() const;
  const std::optional<std::string>& node_json() const { return options_.node_json; }

  // --- The runtime ------------------------------------------------------------------------------

  // An error: none answers.
  const Result<std::shared_ptr<cri::Runtime>>& runtime() const { return runtime_; }
  // "containerd v2.4.2"; empty: none answers.
  const std::string& runtime_name() const { return runtime_name_; }
  // Asked once.
  const Result<std::vector<ListedImage>>& Images() const;
  // How it is configured to pull: by its answer, and by files. Read once.
  const Result<RuntimePulls>& Pulls() const;

  // --- Waybill ----------------------------------------------------------------------------------

  // The node's path; empty: there is none.
  const std::string& store() const { return options_.store; }
  // Read once. kNotFound: there is none.
  const Result<StoreFacts>& ReadStore() const;
  const std::string& waybill_version() const { return options_.waybill_version; }
  // Whether the kubelet has waybill inside, and so keeps its records in a store of its own.
  bool IsInside() const;

  const Kernel& kernel() const { return kernel_; }

 private:
  Node(NodeOptions options, Kernel kernel)
      : options_(std::move(options)), kernel_(std::move(kernel)) {}

  Result<void> FindKubelet();
  Result<void> FindSettings();
  Result<void> FindStore();
  void FindRuntime();
  Result<int> Open(const std::filesystem::path& path, int flags) const;
  Result<KubeletSettings> ReadSettings(const std::vector<std::string>& paths) const;
  Result<RuntimePulls> FindPulls() const;

  NodeOptions options_;
  Kernel kernel_;
  std::vector<KubeletProcess> kubelets_;
  bool has_kubelet_ = false;
  Result<KubeletSettings> settings_ = KubeletSettings();
  Result<std::shared_ptr<cri::Runtime>> runtime_ = std::shared_ptr<cri::Runtime>();
  std::string runtime_name_;
  mutable std::optional<Result<StoreFacts>> facts_;
  mutable std::optional<Result<KubeletVersion>> version_;
  mutable std::optional<Result<std::vector<ListedImage>>> images_;
  mutable std::optional<Result<RuntimePulls>> pulls_;
};

}  // namespace waybill::doctor

#endif  // WAYBILL_DOCTOR_NODE_H_
