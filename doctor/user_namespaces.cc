// The checks of user namespaces (KEP-127): whether pods with hostUsers: false can start, and
// whether a kubelet starts beside those that have.

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/checks.h"
#include "doctor/gates.h"
#include "doctor/text.h"
#include "store/base/json_value.h"
#include "store/base/try.h"
#include "store/pods/pool.h"
#include "waybill/values.h"

namespace waybill::doctor {
namespace {

constexpr const char* kUser = "kubelet";
// With it tmpfs can be mapped, on which a pod's Secrets, ConfigMaps and tokens are.
constexpr int kKernelMajor = 6;
constexpr int kKernelMinor = 3;
constexpr const char* kToolPlaces[] = {"/usr/local/sbin/", "/usr/local/bin/", "/usr/sbin/",
                                       "/usr/bin/",        "/sbin/",          "/bin/"};

struct Release {
  int major = 0;
  int minor = 0;
};

std::optional<Release> ReleaseIn(const std::string& text) {
  Release release;
  const char* const end = text.data() + text.size();
  const auto dot = std::from_chars(text.data(), end, release.major);
  if (dot.ec != std::errc() || dot.ptr == end || *dot.ptr != '.') return std::nullopt;
  if (std::from_chars(dot.ptr + 1, end, release.minor).ec != std::errc()) return std::nullopt;
  return release;
}

// The lines of the file that begin with the user's name; what follows the name.
std::vector<std::string> LinesOfUser(const std::string& text) {
  std::vector<std::string> lines;
  const std::string start = std::string(kUser) + ":";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    if (line.starts_with(start)) lines.emplace_back(line.substr(start.size()));
    at = end + 1;
  }
  return lines;
}

// What getsubids prints of /etc/subuid or /etc/subgid, without running it. A missing file has no
// lines.
Result<std::string> PrintedOf(const Node& node, const char* path) {
  auto text = node.Read(path);
  if (!text && text.error().code == ErrorCode::kNotFound) return std::string();
  if (!text) return text.error();
  std::string printed;
  std::size_t count = 0;
  for (std::string line : LinesOfUser(*text)) {
    std::replace(line.begin(), line.end(), ':', ' ');
    printed += std::to_string(count++) + ": " + kUser + " " + line + "\n";
  }
  return printed;
}

// Whether subordinate IDs come from elsewhere than these files.
bool AsksElsewhere(const Node& node) {
  const auto text = node.Read("/etc/nsswitch.conf");
  if (!text) return false;
  for (std::size_t at = 0; at < text->size();) {
    const std::size_t end = std::min(text->find('\n', at), text->size());
    std::string_view line = std::string_view(*text).substr(at, end - at);
    at = end + 1;
    if (!line.starts_with("subid:")) continue;
    line.remove_prefix(line.find(':') + 1);
    while (line.starts_with(' ') || line.starts_with('\t')) line.remove_prefix(1);
    if (!line.starts_with("files")) return true;
  }
  return false;
}

std::uint64_t IdsPerPod(const KubeletSettings& settings) {
  const cli::YamlNode* const section = settings.Find("userNamespaces");
  if (section == nullptr || !section->IsMap()) return kIdsPerBlock;
  KubeletSettings inner;
  inner.merged = *section;
  return inner.Number("idsPerPod").value_or(kIdsPerBlock);
}

std::uint64_t MaxPods(const Node& node) {
  constexpr std::uint64_t kUsual = 110;
  if (node.kubelet() != nullptr) {
    if (const auto flag = node.kubelet()->Flag("max-pods")) {
      std::uint64_t value = 0;
      const auto read = std::from_chars(flag->data(), flag->data() + flag->size(), value);
      if (read.ec == std::errc()) return value;
    }
  }
  return node.settings()->Number("maxPods").value_or(kUsual);
}

// What a pod's file gives it.
PodIds IdsIn(const std::string& pod, const std::string& text) {
  const internal::Json file = internal::Json::Parse(text);
  const internal::Json* const uids = file.Find("uidMappings");
  if (uids == nullptr || !uids->is_array() || uids->size() != 1) {
    return {.pod = pod, .in = PodIds::In::kFiles};
  }
  const internal::Json& mapping = *uids->begin();
  return {pod, mapping.NumberAt("hostId"), mapping.NumberAt("length"), PodIds::In::kFiles};
}

// Nothing of these matters where the gate is off.
bool IsOff(const Node& node) {
  const auto gate = StateOf(kUserNamespaceGate, node);
  return gate && !gate->on;
}

}  // namespace

Result<IdPool> PoolOf(const Node& node) {
  if (!node.settings()) return node.settings().error();
  SubordinateIds found;
  const auto users = TRY(node.Read("/etc/passwd", std::size_t{16} << 20));
  found.user_exists = !LinesOfUser(users).empty();
  found.tool_exists =
      std::any_of(std::begin(kToolPlaces), std::end(kToolPlaces),
                  [&](const std::string& place) { return node.Has(place + "getsubids"); });
  if (found.user_exists && found.tool_exists) {
    if (AsksElsewhere(node)) {
      return Error{ErrorCode::kUnavailable,
                   "/etc/nsswitch.conf says that subordinate IDs are asked of a service",
                   "see what `getsubids kubelet` and `getsubids -g kubelet` print"};
    }
    found.uids = TRY(PrintedOf(node, "/etc/subuid"));
    found.gids = TRY(PrintedOf(node, "/etc/subgid"));
  }
  // What a kubelet does, against KEP-127.
  if (found.user_exists && !found.tool_exists) {
    return Error{ErrorCode::kInvalidArgument,
                 "there is a user kubelet and no getsubids: such a kubelet does not start",
                 "install getsubids (Debian: uidmap), or delete the user"};
  }
  return PoolOfSubordinateIds(found, IdsPerPod(*node.settings()), MaxPods(node));
}

Result<std::vector<PodIds>> HostIdsInFiles(const Node& node) {
  const std::string pods = node.kubelet_directory() + "/pods";
  std::vector<PodIds> ids;
  const auto uids = TRY(node.List(pods));
  for (const std::string& uid : uids) {
    if (const auto text = node.Read(pods + "/" + uid + "/userns")) ids.push_back(IdsIn(uid, *text));
  }
  return ids;
}

Findings UsernsKernelCheck(const Node& node) {
  if (IsOff(node)) return {Ok("the gate is off")};
  const auto most = node.ReadLine("/proc/sys/user/max_user_namespaces");
  if (!most) return {Unknown(most.error())};
  if (*most == "0") {
    return {Fail("user.max_user_namespaces is 0: no pod in a user namespace starts",
                 "sysctl user.max_user_namespaces=15000, and in /etc/sysctl.d")};
  }
  const auto text = node.ReadLine("/proc/sys/kernel/osrelease");
  if (!text) return {Unknown(text.error())};
  const auto release = ReleaseIn(*text);
  if (!release) return {Unknown(*text + " is no release of Linux", "see `uname -r`")};
  if (release->major < kKernelMajor ||
      (release->major == kKernelMajor && release->minor < kKernelMinor)) {
    return {Warn("Linux " + *text + " can't map IDs of tmpfs, which a pod's Secrets are on",
                 "use Linux 6.3 or newer for pods in user namespaces")};
  }
  return {Ok("Linux " + *text)};
}

Findings UsernsPoolCheck(const Node& node) {
  if (IsOff(node)) return {Ok("the gate is off")};
  const auto pool = PoolOf(node);
  if (!pool && pool.error().code == ErrorCode::kInvalidArgument) {
    const std::string& hint = pool.error().hint;
    return {Fail(pool.error().message,
                 hint.empty() ? "correct /etc/subuid and /etc/subgid for the user kubelet, or "
                                "userNamespaces.idsPerPod and maxPods of its configuration"
                              : hint)};
  }
  if (!pool) return {Unknown(pool.error())};
  return {Ok("room for " + Count(pool->id_count / pool->ids_per_pod, "pod") + ", from ID " +
             std::to_string(pool->first_id))};
}

Findings UsernsMappingsCheck(const Node& node) {
  const auto pods = HostIdsInFiles(node);
  if (!pods && pods.error().code != ErrorCode::kNotFound) return {Unknown(pods.error())};
  if (!pods) return {Ok("no pods")};
  const auto pool = PoolOf(node);
  // userns-pool says why.
  if (!pool) return {Ok("not compared: there is no pool")};
  std::size_t fitting = 0;
  std::vector<std::string> wrong;
  std::string why;
  for (const PodIds& pod : *pods) {
    std::string problem;
    if (pod.length == 0) {
      problem = "can't be read";
    } else if (pod.length != pool->ids_per_pod) {
      problem = "has " + std::to_string(pod.length) + " IDs, and idsPerPod is " +
                std::to_string(pool->ids_per_pod);
    } else if (pod.first < pool->first_id ||
               pod.first + pod.length > pool->first_id + pool->id_count) {
      problem = "begins at " + std::to_string(pod.first) + ", outside the pool";
    } else {
      ++fitting;
      continue;
    }
    if (wrong.empty()) why = problem;
    wrong.push_back(pod.pod);
  }
  if (wrong.empty()) return {Ok(Count(fitting, "pod"))};
  return {
      Fail("the mapping of pod " + wrong.front() + " " + why +
               (wrong.size() == 1 ? "" : "; so of " + std::to_string(wrong.size() - 1) + " more") +
               ": the kubelet does not start again",
           "delete these pods before the kubelet's next start, or put the pool back")};
}

Findings UsernsMountsCheck(const Node& node) {
  if (IsOff(node)) return {Ok("the gate is off")};
  const auto directory = node.Resolve(node.kubelet_directory());
  if (!directory) return {Unknown(directory.error())};
  const auto maps = node.kernel().maps_ids(*directory);
  if (!maps) return {Unknown(maps.error())};
  if (*maps) return {Ok("the pods' volumes can be mapped")};
  return {Fail("the file system of " + node.kubelet_directory() +
                   " can't be mounted with mapped IDs: no pod in a user namespace with volumes "
                   "starts",
               "move it to ext4, xfs or btrfs, or use a newer kernel")};
}

Findings UsernsHandlersCheck(const Node& node) {
  if (IsOff(node)) return {Ok("the gate is off")};
  if (!node.runtime()) return {Unknown(node.runtime().error())};
  const auto handlers = (*node.runtime())->RuntimeHandlers();
  if (!handlers) return {Unknown(handlers.error())};
  if (handlers->empty()) {
    return {Warn(node.runtime_name() + " does not say which handlers can do it",
                 "containerd says so from 2.0 on; before, no pod in a user namespace starts")};
  }
  std::size_t can = 0;
  for (const RuntimeHandler& handler : *handlers) can += handler.user_namespaces ? 1 : 0;
  if (can == 0) {
    return {Warn("none of " + Count(handlers->size(), "handler") + " can do it",
                 "update runc or crun; until then no pod in a user namespace starts")};
  }
  return {Ok(std::to_string(can) + " of " + Count(handlers->size(), "handler"))};
}

}  // namespace waybill::doctor
