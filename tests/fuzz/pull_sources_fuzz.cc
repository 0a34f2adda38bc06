// A runtime's configuration: no crash, whatever is in its files; what can't be read is never the
// registry; each answer fits what it says. The bytes are a byte of flags, and the content of one
// file (hosts.toml, config.toml, registries.conf, crio.conf) or of the runtime's status.

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "runtime/files/pull_sources.h"
#include "waybill/values.h"

namespace {

using waybill::PullSource;
using waybill::PullSources;
using waybill::VerifiedBy;

void Must(bool held) {
  if (!held) std::abort();
}

// Folders of this process, in memory where there is such a file system.
class Node {
 public:
  Node() : root_("/dev/shm/waybill-fuzz-" + std::to_string(::getpid())) {
    Write("/etc/containerd/config.toml", "");
    Write("/etc/containerd/certs.d/_default/hosts.toml", "");
    Write("/etc/crio/crio.conf", "");
    Write("/etc/containers/registries.conf", "");
  }
  ~Node() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  void Write(const std::string& path, std::string_view content) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path, std::ios::binary) << content;
  }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

void Judge(const PullSources& sources) {
  bool elsewhere = false;
  for (const PullSource& other : sources.others) {
    Must(!other.host.empty() && !other.where.empty());
    Must(other.open == !other.open_because.empty());
    elsewhere = elsewhere || other.serves_manifests;
  }
  if (sources.checker == VerifiedBy::kRegistry) Must(sources.problems.empty() && !elsewhere);
  if (sources.checker == VerifiedBy::kMirror) Must(sources.problems.empty() && elsewhere);
  if (sources.checker == VerifiedBy::kUnknown) Must(!sources.problems.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr const char* kFiles[] = {"/etc/containerd/certs.d/_default/hosts.toml",
                                    "/etc/containerd/config.toml",
                                    "/etc/containers/registries.conf", "/etc/crio/crio.conf"};
  static Node node;
  if (size == 0) return 0;
  const std::string content(reinterpret_cast<const char*>(data) + 1, size - 1);
  const unsigned which = data[0] % 5;
  waybill::RuntimeAnswers answers;
  answers.root = node.root();
  answers.version = which == 2 || which == 3 ? "cri-o 1.33.1" : "containerd v2.4.2";
  if (which < 4) {
    node.Write(kFiles[which], content);
  } else {
    answers.status = content;
  }
  const auto pulls = waybill::ReadRuntimePulls(answers);
  Must(pulls.has_value());
  for (const char* image : {"registry.example.com/team/app:1", "nginx",
                            "localhost:5000/app@sha256:"
                            "0000000000000000000000000000000000000000000000000000000000000000"}) {
    for (const char* handler : {"", "kata"}) {
      const auto sources = waybill::PullSourcesOf(*pulls, image, handler);
      Must(sources.has_value());
      Judge(sources->sources);
      if (!pulls->problems.empty()) Must(sources->sources.checker != VerifiedBy::kRegistry);
    }
  }
  if (which < 4) node.Write(kFiles[which], "");
  return 0;
}
