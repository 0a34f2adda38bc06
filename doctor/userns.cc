// User namespaces (KEP-127): whether pods with hostUsers: false can start, whether a kubelet starts
// beside those that have, and whether what runs has the host IDs that it was given.

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/checks.h"
#include "store/base/json_value.h"
#include "store/base/try.h"
#include "store/pods/pool.h"
#include "waybill/values.h"

namespace waybill::doctor {
namespace {

constexpr const char* kUser = "kubelet";
// From it on pools have other rules, and no tool is needed.
constexpr int kNewRules = 38;
// With it tmpfs can be mapped, on which a pod's Secrets, ConfigMaps and tokens are.
constexpr std::pair<int, int> kMapsTmpfs = {6, 3};
constexpr const char* kToolPlaces[] = {"/usr/local/sbin/", "/usr/local/bin/", "/usr/sbin/",
                                       "/usr/bin/",        "/sbin/",          "/bin/"};
constexpr std::size_t kMaxUsers = std::size_t{16} << 20;

struct Range {
  std::string owner = {};
  std::uint64_t first = 0;
  std::uint64_t length = 0;

  std::uint64_t end() const { return first + length; }
  bool Overlaps(const Range& other) const { return first < other.end() && other.first < end(); }
  bool Contains(const Range& other) const { return first <= other.first && other.end() <= end(); }
  bool operator==(const Range&) const = default;
};

// As shadow's getulong reads it: in any base, and nothing may follow.
std::optional<std::uint64_t> NumberIn(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const auto number = std::strtoull(text.c_str(), &end, 0);
  const bool is_number = !text.empty() && text.find('-') == std::string::npos && errno == 0;
  return is_number && *end == '\0' ? std::optional<std::uint64_t>(number) : std::nullopt;
}

// The lines of /etc/subuid or /etc/subgid as getsubids takes them: one with fewer than three
// fields, or an empty one, or with what is not a number, is none.
Result<std::vector<Range>> RangesIn(const Node& node, const char* path) {
  std::vector<Range> ranges;
  const auto text = node.Read(path);
  if (!text && text.error().code == ErrorCode::kNotFound) return ranges;
  if (!text) return text.error();
  for (const std::string& line : LinesOf(*text)) {
    const auto fields = LinesOf(line, ':');
    if (fields.size() < 3 || fields[0].empty()) continue;
    const auto first = NumberIn(fields[1]);
    const auto length = NumberIn(fields[2]);
    if (first && length) ranges.push_back({fields[0], *first, *length});
  }
  return ranges;
}

// The third field of the user's, or group's, line. nullopt: there is none.
Result<std::optional<std::string>> IdOf(const Node& node, const char* path) {
  const std::string text = TRY(node.files.Read(path, kMaxUsers));
  for (const std::string& line : LinesOf(text)) {
    const auto fields = LinesOf(line, ':');
    if (fields.size() > 2 && fields[0] == kUser) return std::optional(fields[2]);
  }
  return std::optional<std::string>();
}

// Whether a database of nsswitch.conf comes from elsewhere than files.
bool AsksElsewhere(const Node& node, std::string_view database) {
  for (const std::string& line : LinesOf(node.Read("/etc/nsswitch.conf").value_or(""))) {
    const auto words = WordsOf(line);
    if (words.size() > 1 && words[0] == database) return words[1] != "files";
  }
  return false;
}

// What the kubelet gives to pods, and the ranges of others.
struct Pool {
  IdPool pool = {};
  std::vector<Range> others = {};

  Range whole() const { return {{}, pool.first_id, pool.id_count}; }
};

Error DoesNotStart(std::string what, std::string hint) {
  return {ErrorCode::kInvalidArgument, std::move(what), std::move(hint)};
}

// kInvalidArgument: such a kubelet does not start.
Result<Pool> PoolOf(const Node& node, int minor) {
  if (!node.settings) {
    return Error{ErrorCode::kUnavailable, node.settings.error().message, {}};
  }
  Pool found;
  const auto user = TRY(IdOf(node, "/etc/passwd"));
  const bool has_tool = std::ranges::any_of(
      kToolPlaces, [&](const std::string& place) { return node.Has(place + "getsubids"); });
  if (AsksElsewhere(node, "subid:")) {
    return Error{ErrorCode::kUnavailable,
                 "/etc/nsswitch.conf says that subordinate IDs are asked of a service",
                 "see what `getsubids kubelet` and `getsubids -g kubelet` print"};
  }
  // What a kubelet does, against KEP-127.
  if (user && !has_tool && minor < kNewRules) {
    return DoesNotStart("there is a user kubelet and no getsubids: such a kubelet does not start",
                        "install getsubids (Debian: uidmap), or delete the user");
  }
  const auto group = IdOf(node, "/etc/group");
  SubordinateIds ids{.user_exists = user.has_value(), .tool_exists = has_tool};
  for (const bool is_uid : {true, false}) {
    std::string& printed = is_uid ? ids.uids : ids.gids;
    const auto id = is_uid || !group ? user : *group;
    std::size_t count = 0;
    for (Range& range : TRY(RangesIn(node, is_uid ? "/etc/subuid" : "/etc/subgid"))) {
      if (user && (range.owner == kUser || range.owner == id)) {
        printed += std::to_string(count++) + ": " + kUser + " " + std::to_string(range.first) +
                   " " + std::to_string(range.length) + "\n";
      } else {
        found.others.push_back(std::move(range));
      }
    }
  }
  const auto numbers = [&](const cli::YamlNode* of, const char* key, std::uint64_t usual) {
    return of == nullptr ? usual : KubeletSettings{*of}.Number(key).value_or(usual);
  };
  const cli::YamlNode& merged = node.settings->merged;
  std::uint64_t pods = numbers(&merged, "maxPods", 110);
  if (node.kubelet() != nullptr) pods = NumberIn(node.kubelet()->Flag("max-pods")).value_or(pods);
  const auto ids_per_pod = numbers(merged.Find("userNamespaces"), "idsPerPod", kIdsPerBlock);
  found.pool = TRY(PoolOfSubordinateIds(ids, ids_per_pod, pods));
  if (minor >= kNewRules && found.pool.first_id + found.pool.id_count >= kHostIds) {
    if (!ids.uids.empty() && has_tool) {
      return DoesNotStart(
          "the pool of host IDs reaches 4294967295, which no kubelet from 1.38 on "
          "takes",
          "let it end " + std::to_string(ids_per_pod) + " IDs earlier");
    }
    found.pool.id_count -= ids_per_pod;
  }
  return found;
}

// What a pod's file gives it; length 0: it can't be read.
PodIds IdsIn(const std::string& pod, const std::string& text) {
  const internal::Json file = internal::ParseJson(text);
  const internal::Json* const uids = internal::FieldAt(file, "uidMappings");
  if (uids == nullptr || !uids->is_array() || uids->size() != 1) return {.pod = pod};
  return {pod, internal::NumberAt(uids->front(), "hostId"),
          internal::NumberAt(uids->front(), "length")};
}

// The host IDs of a process, by its uid_map and gid_map. The kernel writes them as the reader's
// user namespace sees them: in the host's they are the host's. nullopt: it ended, or can't be read.
std::optional<std::vector<Range>> IdsOf(const Node& node, const std::string& pid) {
  std::vector<Range> ranges;
  for (const char* map : {"/uid_map", "/gid_map"}) {
    const auto text = node.Read("/proc/" + pid + map);
    if (!text) return std::nullopt;
    for (const std::string& line : LinesOf(*text)) {
      const auto words = WordsOf(line);
      const auto first = NumberIn(words.size() == 3 ? words[1] : "");
      const auto length = NumberIn(words.size() == 3 ? words[2] : "");
      if (!first || !length) return std::nullopt;
      ranges.push_back({map, *first, *length});
    }
  }
  return ranges;
}

// The pod whose cgroup a process is in, as /kubepods/burstable/podUID/… or, by systemd,
// …-podUID_WITH_UNDERSCORES.slice/…: the outermost, since a container makes any below its own.
std::string PodOfCgroup(const Node& node, const std::string& pid) {
  const std::string text = node.Read("/proc/" + pid + "/cgroup").value_or("");
  const std::size_t kubepods = std::min(text.find("/kubepods"), text.size());
  const std::string path = text.substr(kubepods, text.find('\n', kubepods) - kubepods);
  const std::size_t pod = std::min(path.find("/pod"), path.find("-pod"));
  if (pod == std::string::npos) return {};
  std::string uid = path.substr(pod + 4, path.find('/', pod + 4) - (pod + 4));
  if (path[pod] == '-') uid.erase(std::min(uid.rfind(".slice"), uid.size()));
  if (path[pod] == '-') std::ranges::replace(uid, '_', '-');
  return uid;
}

// The kernel, the runtime and the file system: whether a pod in a user namespace starts.
void CanStart(const Node& node, Findings& findings) {
  const auto most = node.Read("/proc/sys/user/max_user_namespaces");
  const auto text = node.Read("/proc/sys/kernel/osrelease");
  std::pair<int, int> release;
  const char* const end = text ? text->data() + text->size() : nullptr;
  const auto major = std::from_chars(text ? text->data() : nullptr, end, release.first);
  if (!most || !text || major.ptr == end) {
    findings.push_back(Unknown(!most   ? most.error().message
                               : !text ? text.error().message
                                       : "the kernel's release is no number: " + *text));
  } else if (NumberIn(WordsOf(*most + " -")[0]) == 0) {
    findings.push_back(Fail("user.max_user_namespaces is 0: no pod in a user namespace starts",
                            "sysctl user.max_user_namespaces=15000, and in /etc/sysctl.d"));
  } else if (std::from_chars(major.ptr + 1, end, release.second); release < kMapsTmpfs) {
    findings.push_back(Warn("Linux " + WordsOf(*text + " -")[0] +
                                " can't map IDs of tmpfs, which a pod's Secrets are on",
                            "use Linux 6.3 or newer for pods in user namespaces"));
  }
  const std::string type = FileSystemOf(node, node.kubelet_directory);
  if (type != "ext4" && type != "xfs" && type != "btrfs" && type != "tmpfs") {
    findings.push_back(Unknown("whether volumes on " + (type.empty() ? "no file system" : type) +
                                   " can be mapped into a user namespace is not known",
                               "keep the kubelet's directory on ext4, xfs or btrfs"));
  }
  const auto handlers = node.runtime ? (*node.runtime)->RuntimeHandlers()
                                     : Result<std::vector<RuntimeHandler>>(node.runtime.error());
  if (!handlers) {
    findings.push_back(Unknown(handlers.error()));
  } else if (std::ranges::none_of(*handlers, &RuntimeHandler::user_namespaces)) {
    findings.push_back(Warn("no handler of the runtime says that it can do user namespaces",
                            "use containerd 2.0 or newer, with runc or crun that can; until then "
                            "no pod in one starts"));
  }
}

// Pods' mappings that a kubelet refuses at its start.
void LookAtFiles(const Pool& found, const std::vector<PodIds>& pods, Findings& findings) {
  for (const PodIds& pod : pods) {
    std::string problem;
    const Range range{{}, pod.first, pod.length};
    if (pod.length == 0) {
      problem = "can't be read";
    } else if (pod.length != found.pool.ids_per_pod) {
      problem = "has " + std::to_string(pod.length) + " IDs, and idsPerPod is " +
                std::to_string(found.pool.ids_per_pod);
    } else if (!found.whole().Contains(range)) {
      problem = "begins at " + std::to_string(pod.first) + ", outside the pool";
    }
    if (problem.empty()) continue;
    findings.push_back(
        Fail("the mapping of pod " + pod.pod + " " + problem + ": the kubelet does not start again",
             "delete this pod before the kubelet's next start, or put the pool back"));
    return;
  }
}

// Processes with IDs of the pool that no pod, or more than one, was given.
void LookAtProcesses(const Node& node, const Pool& found, const std::vector<PodIds>& in_files,
                     Findings& findings) {
  if (node.store.empty()) return;
  const auto& facts = node.facts;
  const auto self = IdsOf(node, "self");
  if (!facts) return;  // waybill-store says why
  if (!self || self->size() != 2 || (*self)[0].first != 0 || (*self)[0].length < kHostIds - 1) {
    findings.push_back(Unknown("this process sees other user IDs than the host's",
                               "run it as root, in the host's user namespace"));
    return;
  }
  std::vector<Range> given;
  for (const auto* const list : {&facts->host_ids, &in_files}) {
    for (const PodIds& pod : *list) {
      const Range range{pod.pod, pod.first, pod.length};
      const bool is_known = list == &in_files && std::ranges::any_of(given, [&](const Range& one) {
                              return one.owner == pod.pod;
                            });
      if (!is_known && std::max(pod.first, pod.length) < kHostIds) given.push_back(range);
    }
  }
  const auto pids = node.files.List("/proc");
  for (const std::string& pid : pids ? *pids : std::vector<std::string>()) {
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto ids = IdsOf(node, pid);
    if (!ids || ids == self) continue;
    std::string owner;
    for (const Range& one : *ids) {
      if (!one.Overlaps(found.whole())) continue;
      const auto its = std::ranges::find_if(given, [&](const Range& range) {
        return range.Contains(one) && (owner.empty() || range.owner == owner);
      });
      if (its != given.end()) owner = its->owner;
      const std::string pod = PodOfCgroup(node, pid);
      const bool is_its = pod.empty() || owner.empty() || pod == owner;
      // It may have ended meanwhile.
      if ((its != given.end() && is_its) || IdsOf(node, pid) != ids) continue;
      const std::string numbers = std::to_string(one.first) + "-" + std::to_string(one.end() - 1);
      findings.push_back(Fail(
          is_its
              ? "process " + pid + " has host IDs " + numbers + ", which are not those of one pod"
              : "pod " + pod + "'s process " + pid + " has host IDs of pod " + owner,
          "waybill userns owner ID says whose they are, adopt says so of a lost pod's; delete "
          "the pods that share them, and let no other user have IDs of the pool"));
      return;
    }
  }
}

}  // namespace

Findings UsernsPoolCheck(const Node& node) {
  Findings findings;
  CanStart(node, findings);
  const auto& version = node.version;
  const auto pool = version ? PoolOf(node, version->minor) : version.error();
  if (!pool && pool.error().code == ErrorCode::kInvalidArgument) {
    const std::string& hint = pool.error().hint;
    findings.push_back(Fail(pool.error().message,
                            hint.empty() ? "correct /etc/subuid and /etc/subgid for the user "
                                           "kubelet, or idsPerPod and maxPods of its configuration"
                                         : hint));
  } else if (!pool) {
    findings.push_back(Unknown(pool.error()));
  }
  if (!pool) return findings;
  for (const Range& other : pool->others) {
    if (other.length == 0 || !other.Overlaps(pool->whole())) continue;
    findings.push_back(Warn(
        "host IDs " + std::to_string(other.first) + "-" + std::to_string(other.end() - 1) + " of " +
            other.owner + " are in the kubelet's pool: a pod may share them with that user",
        "give the user kubelet a range of its own in /etc/subuid and /etc/subgid"));
    break;
  }
  const std::string folder = node.kubelet_directory + "/pods";
  const auto uids = node.files.List(folder);
  if (!uids && uids.error().code != ErrorCode::kNotFound) findings.push_back(Unknown(uids.error()));
  std::vector<PodIds> pods;
  for (const std::string& uid : uids ? *uids : std::vector<std::string>()) {
    const auto text = node.Read(folder + "/" + uid + "/userns");
    if (text) pods.push_back(IdsIn(uid, *text));
  }
  LookAtFiles(*pool, pods, findings);
  LookAtProcesses(node, *pool, pods, findings);
  if (findings.empty() && !node.unseen.empty()) findings.push_back(Unknown(node.unseen));
  if (!findings.empty()) return findings;
  return {Ok("room for " + Count(internal::SlotsOf(pool->pool).count, "pod") + ", from ID " +
             std::to_string(pool->pool.first_id))};
}

}  // namespace waybill::doctor
