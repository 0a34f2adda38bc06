// What the doctor looks at: the files of a node, its kubelet, its runtime. Everything is read
// through this, so that tests play nodes from a folder, and a node that is mounted elsewhere can be
// looked at. Nothing is opened for writing, and no program of the node is run.

#ifndef WAYBILL_DOCTOR_NODE_H_
#define WAYBILL_DOCTOR_NODE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cri/runtime.h"
#include "runtime/files/pull_sources.h"
#include "store/base/command_line.h"
#include "store/base/json_value.h"
#include "store/base/rooted_files.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::doctor {

// Where to look. Paths are the node's own, below `root`. Empty: found by itself.
struct NodeOptions {
  std::filesystem::path root = "/";
  std::string kubelet_directory = {};
  std::vector<std::string> kubelet_config = {};  // files, and directories of drop-ins
  std::string store = {};
  // An endpoint, auto, or a folder with what crictl prints: version.json, images.json, info.json.
  std::string cri = {};
  // What `kubectl get node NAME -o json` prints.
  std::optional<std::string> node_json = std::nullopt;
  std::string waybill_version = {};  // of this command
  // Asked now and then while the runtime is: true ends the call. Missing: never.
  std::function<bool()> cancelled = {};
};

// Host IDs of a pod, by the store.
struct PodIds {
  std::string pod = {};  // empty: of pods whose UIDs were lost
  std::uint64_t first = 0;
  std::uint64_t length = 0;  // 0: which IDs it has is not known
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
  std::uint64_t available = 0;  // bytes, to root
  std::uint64_t inodes = 0;     // 0: it has no fixed number
  std::uint64_t inodes_free = 0;
};

// What files do not say by themselves. Tests say it instead.
struct Kernel {
  std::function<Result<DiskSpace>(const std::filesystem::path&)> space;
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

// A process of the node, not of one of its containers.
struct Process : internal::CommandLine {
  std::string pid = {};
  std::string name = {};  // "kubelet" of /usr/bin/kubelet
  // In which it works.
  Result<std::string> folder = std::string("/");

  // Where a kubelet keeps its files.
  std::string RootDirectory() const;
};

// The kubelet's configuration files as one document, key by key as the kubelet merges them. What a
// kubelet would not take, a policy that is a list, say, is an error of the whole document.
struct KubeletSettings {
  std::string policy = {};  // empty: not said
  std::vector<std::string> allowlist = {};
  std::map<std::string, bool> gates = {};
  std::optional<bool> pulls_serially = {};
  std::uint64_t pulls_at_once = 0;  // 0: no bound
  std::uint64_t max_pods = 110;
  std::uint64_t ids_per_pod = kIdsPerBlock;
  std::string endpoint = {};  // the runtime's

  void Describe(auto& v) const {
    v.Optional("imagePullCredentialsVerificationPolicy", policy);
    v.Optional("preloadedImagesVerificationAllowlist", allowlist);
    v.Optional("featureGates", gates);
    v.Optional("serializeImagePulls", pulls_serially);
    v.Optional("maxParallelImagePulls", pulls_at_once);
    v.Optional("maxPods", max_pods);
    v.OptionalWithin("userNamespaces", [&](auto& u) { u.Optional("idsPerPod", ids_per_pod); });
    v.Optional("containerRuntimeEndpoint", endpoint);
  }
};

// What the kubelet's files of pulls say.
struct KubeletRecords {
  std::set<std::string> images = {};  // what they name, as pods write it
  std::set<std::string> refs = {};
  std::size_t unreadable = 0;
  // Repositories of which a record says that every pod may use it, and of which one asks for
  // credentials.
  std::set<std::string> open = {};
  std::set<std::string> guarded = {};
};

// "v1.36.3", "v1.36.3+k3s1".
struct KubeletVersion {
  std::string text = {};
  int minor = 0;
};

// What a guard says of itself (../guard/life.cc); one that stands aside (aside.cc) says less.
struct GuardStatus {
  std::string version = {};
  std::string store = {};
  std::string since = {};
  std::string not_protected = {};  // why; empty: it protects
  std::optional<bool> kubelet_ran_before = {};
  std::string runtime_error = {};

  void Describe(auto& v) const {
    v("version", version);
    v("store", store);
    v.Optional("since", since);
    v.Optional("notProtected", not_protected);
    v.Optional("kubeletRanBefore", kubelet_ran_before);
    v.Optional("runtimeError", runtime_error);
  }
};

// All facts, found once. Paths are the node's own. What could not be found is an error.
struct Node {
  // kInvalidArgument: something that `options` name is not there.
  static Result<std::unique_ptr<const Node>> Find(NodeOptions options, Kernel kernel);

  // False: nothing has that name. What leads nowhere, or may not be looked at, may be there.
  bool MayHave(const std::filesystem::path& path) const;
  Result<std::string> Read(const std::filesystem::path& path) const { return files.Read(path); }
  // The names in a folder; none, if it can't be read.
  std::vector<std::string> NamesIn(const std::string& folder) const;
  // The path without links, as the node itself names it.
  Result<std::string> RealPath(const std::string& path) const;
  // The kubelet that is looked at; nullptr: none runs on this directory.
  const Process* kubelet() const { return has_kubelet ? &kubelets.front() : nullptr; }
  // Its flag; empty: there is none.
  std::string KubeletFlag(std::string_view flag) const {
    return has_kubelet ? kubelets.front().Flag(flag) : "";
  }
  // Whether a process holds the file; a missing file is held by none.
  Result<bool> IsLocked(const std::string& path) const;
  // kNotFound: there never was a guard of that kubelet's directory.
  Result<GuardStatus> StatusOfGuard(const std::string& folder) const;
  // Whether both lead to one file.
  bool IsSame(const std::string& a, const std::string& b) const;

  NodeOptions options;
  Kernel kernel;
  internal::RootedFiles files;
  internal::Json json = {};  // that of the options

  std::vector<Process> processes = {};  // kubelets and runtimes
  std::vector<Process> kubelets = {};   // all, the one that is looked at first
  bool has_kubelet = false;
  // Its --root-dir, or the usual one. It need not exist.
  std::string kubelet_directory = {};
  // What the kubelet is told is seen. An error: why not; it does not run, say.
  Result<void> told = {};
  Result<KubeletSettings> settings = KubeletSettings();
  // By the node's API answer, or by what the program says: what its makers linked in, or Go.
  Result<KubeletVersion> version = KubeletVersion();
  KubeletRecords records = {};
  // It has waybill inside, and so keeps its records in a store of its own. kUnavailable.
  Result<bool> is_inside = false;

  // An error: none answers.
  Result<std::shared_ptr<cri::Runtime>> runtime = std::shared_ptr<cri::Runtime>();
  std::string runtime_name = {};  // "containerd v2.4.2"; empty: none answers
  Result<std::vector<ListedImage>> images = std::vector<ListedImage>();
  // Its process, the one whose socket the kubelet asks. kNotFound: none is seen; kConflict:
  // several.
  Result<Process> runtime_process = Process();
  // How it is configured to pull: by its answer, and by files.
  Result<RuntimePulls> pulls = RuntimePulls();
  // Which credentials the node has beside those of pods.
  NodeCredentials credentials = {};

  // Of the guard of the kubelet's directory.
  Result<bool> guard_runs = false;
  Result<GuardStatus> guard = GuardStatus();
  std::string store = {};  // empty: there is none
  Result<StoreFacts> facts = StoreFacts();
};

// Which release the node's kubelet is. kNotFound.
Result<KubeletVersion> FindKubeletVersion(const Node& node);

// A line each, without its end.
std::vector<std::string> LinesOf(const std::string& text, char end = '\n');
// The words of a line.
std::vector<std::string> WordsOf(const std::string& line);

}  // namespace waybill::doctor

#endif  // WAYBILL_DOCTOR_NODE_H_
