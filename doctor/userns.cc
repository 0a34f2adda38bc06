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
// With it tmpfs can be mapped, on which a pod's Secrets, ConfigMaps and tokens are.
constexpr std::pair<int, int> kMapsTmpfs = {6, 3};
constexpr const char* kToolPlaces[] = {"/usr/local/sbin/", "/usr/local/bin/", "/usr/sbin/",
                                       "/usr/bin/",        "/sbin/",          "/bin/"};
constexpr std::size_t kMaxUsers = std::size_t{16} << 20;
// On which the kernel can map a volume's IDs.
constexpr std::string_view kMappable[] = {"ext4", "xfs", "btrfs", "tmpfs"};

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
  for (const std::string& line : LinesOf(node.MayHave(path) ? TRY(node.Read(path)) : "")) {
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

// What the node's files say of subordinate IDs: the kubelet's, as getsubids prints them, and
// others'.
struct Subordinate {
  SubordinateIds ids = {};
  std::vector<Range> others = {};
};
Result<Subordinate> SubordinateOf(const Node& node) {
  Subordinate found;
  SubordinateIds& ids = found.ids;
  const auto user = TRY(IdOf(node, "/etc/passwd"));
  const auto group = IdOf(node, "/etc/group");
  if (AsksElsewhere(node, "subid:")) {
    return Error{ErrorCode::kUnavailable,
                 "/etc/nsswitch.conf says that subordinate IDs are asked of a service",
                 "see what `getsubids kubelet` and `getsubids -g kubelet` print"};
  }
  ids.user_exists = user.has_value();
  ids.tool_exists = std::ranges::any_of(
      kToolPlaces, [&](const std::string& place) { return node.MayHave(place + "getsubids"); });
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
  return found;
}

Range WholeOf(const IdPool& pool) { return {{}, pool.first_id, pool.id_count}; }

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
Result<void> LookAtKernel(const Node& node, Report& report) {
  const std::string most = TRY(node.Read("/proc/sys/user/max_user_namespaces"));
  const std::string text = TRY(node.Read("/proc/sys/kernel/osrelease"));
  std::pair<int, int> release;
  const char* const end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, release.first);
  if (major.ptr == end || std::from_chars(major.ptr + 1, end, release.second).ec != std::errc()) {
    return report.Unknown("the kernel's release is no number: " + text);
  }
  if (NumberIn(WordsOf(most + " -")[0]) == 0) {
    return report.Fail("user.max_user_namespaces is 0: no pod in a user namespace starts",
                       "sysctl user.max_user_namespaces=15000, and in /etc/sysctl.d");
  }
  if (release >= kMapsTmpfs) return {};
  return report.Warn(
      "Linux " + WordsOf(text)[0] + " can't map IDs of tmpfs, which a pod's Secrets are on",
      "use Linux 6.3 or newer for pods in user namespaces");
}

Result<void> LookAtHandlers(const Node& node, Report& report) {
  const auto handlers = TRY(TRY(node.runtime)->RuntimeHandlers());
  if (std::ranges::any_of(handlers, &RuntimeHandler::user_namespaces)) return {};
  return report.Warn("no handler of the runtime says that it can do user namespaces",
                     "use containerd 2.0 or newer, with runc or crun that can; until then no pod "
                     "in one starts");
}

void LookAtVolumes(const Node& node, Report& report) {
  const auto type = FileSystemOf(node, node.kubelet_directory);
  if (type && std::ranges::count(kMappable, *type) != 0) return;
  report.Unknown("whether volumes on " + type.value_or("no file system") +
                     " can be mapped into a user namespace is not known",
                 "keep the kubelet's directory on ext4, xfs or btrfs");
}

// The mappings of pods on disk, of which a kubelet refuses some at its start.
Result<std::vector<PodIds>> PodsOnDisk(const Node& node, const IdPool& pool, Report& report) {
  std::vector<PodIds> pods;
  const std::string folder = node.kubelet_directory + "/pods";
  if (!node.MayHave(folder)) return pods;
  for (const std::string& uid : TRY(node.files.List(folder))) {
    const std::string path = folder + "/" + uid + "/userns";
    if (node.MayHave(path)) pods.push_back(IdsIn(uid, TRY(node.Read(path))));
  }
  for (const PodIds& pod : pods) {
    std::string problem;
    if (pod.length == 0) {
      problem = "can't be read";
    } else if (pod.length != pool.ids_per_pod) {
      problem = "has " + std::to_string(pod.length) + " IDs, and idsPerPod is " +
                std::to_string(pool.ids_per_pod);
    } else if (!WholeOf(pool).Contains({{}, pod.first, pod.length})) {
      problem = "begins at " + std::to_string(pod.first) + ", outside the pool";
    }
    if (problem.empty()) continue;
    report.Fail(
        "the mapping of pod " + pod.pod + " " + problem + ": the kubelet does not start again",
        "delete this pod before the kubelet's next start, or put the pool back");
    break;
  }
  return pods;
}

// Processes with IDs of the pool that no pod, or more than one, was given.
Result<void> LookAtProcesses(const Node& node, const IdPool& pool,
                             const std::vector<PodIds>& in_files, Report& report) {
  const auto& facts = node.facts;
  if (node.store.empty() || !facts) return {};  // waybill-store says why
  const auto self = IdsOf(node, "self");
  if (!self || self->size() != 2 || (*self)[0].first != 0 || (*self)[0].length < kHostIds - 1) {
    return report.Unknown("this process sees other user IDs than the host's",
                          "run it as root, in the host's user namespace");
  }
  std::vector<Range> given;
  for (const auto* const list : {&facts->host_ids, &in_files}) {
    for (const PodIds& pod : *list) {
      const bool is_known = list == &in_files && std::ranges::count(given, pod.pod, &Range::owner);
      if (is_known || std::max(pod.first, pod.length) >= kHostIds) continue;
      given.push_back({pod.pod, pod.first, pod.length});
    }
  }
  for (const std::string& pid : TRY(node.files.List("/proc"))) {
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto ids = IdsOf(node, pid);
    if (!ids || ids == self) continue;
    std::string owner;
    for (const Range& one : *ids) {
      if (!one.Overlaps(WholeOf(pool))) continue;
      const auto its = std::ranges::find_if(given, [&](const Range& range) {
        return range.Contains(one) && (owner.empty() || range.owner == owner);
      });
      if (its != given.end()) owner = its->owner;
      const std::string pod = PodOfCgroup(node, pid);
      const bool is_its = pod.empty() || owner.empty() || pod == owner;
      // It may have ended meanwhile.
      if ((its != given.end() && is_its) || IdsOf(node, pid) != ids) continue;
      const std::string numbers = std::to_string(one.first) + "-" + std::to_string(one.end() - 1);
      return report.Fail(
          is_its
              ? "process " + pid + " has host IDs " + numbers + ", which are not those of one pod"
              : "pod " + pod + "'s process " + pid + " has host IDs of pod " + owner,
          "waybill userns owner ID says whose they are, adopt says so of a lost pod's; delete "
          "the pods that share them, and let no other user have IDs of the pool");
    }
  }
  return {};
}

}  // namespace

Result<void> UsernsPoolCheck(const Node& node, Report& report) {
  for (const auto look : {LookAtKernel, LookAtHandlers}) {
    if (const auto looked = look(node, report); !looked) report.Unknown(looked.error());
  }
  LookAtVolumes(node, report);
  const auto version = TRY(node.version);
  const auto settings = TRY(node.settings);
  const auto found = TRY(SubordinateOf(node));
  const auto most = NumberIn(node.KubeletFlag("max-pods")).value_or(settings.max_pods);
  const auto pool =
      PoolOfSubordinateIds(found.ids, settings.ids_per_pod, most, PoolRulesOf(version.minor));
  if (!pool) {
    return report.Fail("such a kubelet does not start: " + pool.error().message, pool.error().hint);
  }
  const auto shared = std::ranges::find_if(found.others, [&](const Range& other) {
    return other.length != 0 && other.Overlaps(WholeOf(*pool));
  });
  if (shared != found.others.end()) {
    report.Warn("host IDs " + std::to_string(shared->first) + "-" +
                    std::to_string(shared->end() - 1) + " of " + shared->owner +
                    " are in the kubelet's pool: a pod may share them with that user",
                "give the user kubelet a range of its own in /etc/subuid and /etc/subgid");
  }
  const auto pods = PodsOnDisk(node, *pool, report);
  if (!pods) report.Unknown(pods.error());
  TRY(LookAtProcesses(node, *pool, pods.value_or(std::vector<PodIds>()), report));
  return report.Ok("room for " + Count(internal::SlotsOf(*pool).count, "pod") + ", from ID " +
                   std::to_string(pool->first_id));
}

}  // namespace waybill::doctor
