#include "doctor/runtime_process.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "doctor/text.h"
#include "store/base/ascii.h"

namespace waybill::doctor {
namespace {

constexpr std::array<std::string_view, 3> kElsewhere = {"registries-conf", "registries-conf-dir",
                                                        "config-dir"};

bool WasStartedByTheFirstProcess(const Node& node, const std::string& pid) {
  const auto status = node.Read("/proc/" + pid + "/status");
  return status && status->find("\nPPid:\t1\n") != std::string::npos;
}

// scheme://host:port of a URL that may have a password.
std::string WithoutPassword(std::string_view url) {
  const std::size_t scheme = url.find("://");
  const std::size_t from = scheme == std::string_view::npos ? 0 : scheme + 3;
  const std::string_view authority = url.substr(from, url.find('/', from) - from);
  const std::size_t at = authority.rfind('@');
  return std::string(url.substr(0, from)) +
         std::string(at == std::string_view::npos ? authority : authority.substr(at + 1));
}

void LookAtEnvironment(const std::vector<std::string>& environment, RuntimeProcess& process) {
  for (const std::string& variable : environment) {
    const std::size_t equals = std::min(variable.find('='), variable.size());
    const std::string name = internal::ToLower(variable.substr(0, equals));
    if (equals + 1 >= variable.size()) continue;
    if (name == "http_proxy" || name == "https_proxy") {
      process.proxy = WithoutPassword(variable.substr(equals + 1));
    }
    if (name.starts_with("containers_registries_conf")) {
      process.elsewhere.push_back("the variable " + variable.substr(0, equals));
    }
  }
}

}  // namespace

std::optional<RuntimeProcess> FindRuntimeProcess(const Node& node) {
  const std::string runtime = node.runtime_name();
  const std::string program = runtime.starts_with("cri-o") ? "crio" : "containerd";
  const auto pids = node.List("/proc");
  if (!pids) return std::nullopt;
  for (const std::string& pid : *pids) {
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto command_line = node.Read("/proc/" + pid + "/cmdline");
    if (!command_line) continue;
    const KubeletProcess words{.words = SplitAtZeros(*command_line)};
    if (words.words.empty() || std::filesystem::path(words.words[0]).filename() != program)
      continue;
    if (!WasStartedByTheFirstProcess(node, pid)) continue;
    RuntimeProcess process{.pid = pid};
    process.config = words.Flag("config").value_or(words.Flag("c").value_or(""));
    for (const std::string_view flag : kElsewhere) {
      if (words.Flag(flag)) process.elsewhere.push_back("the flag --" + std::string(flag));
    }
    if (const auto environment = node.Read("/proc/" + pid + "/environ")) {
      LookAtEnvironment(SplitAtZeros(*environment), process);
    }
    return process;
  }
  return std::nullopt;
}

}  // namespace waybill::doctor
