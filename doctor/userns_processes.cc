// Whether the host IDs of what runs are those that the store, or the kubelet, gave to pods:
// uid_map, gid_map and cgroup of every process.
//
// The kernel writes a map's host IDs as the reader's own user namespace sees them, and those of
// processes in that very namespace as its parent does. In the host's namespace both are the host's
// IDs, for nested namespaces too. Anywhere else they are not, so nothing is compared there.

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "doctor/checks.h"
#include "doctor/gates.h"

namespace waybill::doctor {
namespace {

using IdMap = std::vector<IdMapping>;
using Pods = std::set<std::string>;

constexpr std::uint64_t kAllIds = kHostIds - 1;  // 2^32-1 is never mapped

constexpr const char* kNewIds =
    "waybill userns owner ID says whose they are; delete these pods, and they get other IDs";
constexpr const char* kLeaveThem =
    "waybill userns adopt POD FIRST LENGTH if they are a lost pod's; else let no other user have "
    "IDs of the pool: /etc/subuid, /etc/subgid";

struct Process {
  std::string pid;
  IdMap uids = {};
  IdMap gids = {};
  std::string cgroup_pod = {};  // the pod's UID, if a kubelet made its cgroup

  bool Has(std::uint64_t first, std::uint64_t length) const {
    const IdMap map = {{static_cast<std::uint32_t>(first), 0, static_cast<std::uint32_t>(length)}};
    return uids == map && gids == map;
  }
  bool IsHosts() const { return Has(0, kAllIds); }
  bool operator==(const Process&) const = default;
};

// The lines of a uid_map or gid_map. nullopt: no kernel wrote this. Empty: nothing is mapped.
std::optional<IdMap> MapIn(const Result<std::string>& text) {
  if (!text || (!text->empty() && text->back() != '\n')) return std::nullopt;
  IdMap ids;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    IdMapping one;
    words >> one.container_id >> one.host_id >> one.length;
    if (words.fail() || !(words >> std::ws).eof() || one.length == 0 ||
        std::max(one.container_id, one.host_id) > kAllIds - one.length) {
      return std::nullopt;
    }
    ids.push_back(one);
  }
  return ids;
}

// The pod whose cgroup a /proc/PID/cgroup names: the outermost, since a container can make cgroups
// of any name below its own. Empty: none.
std::string PodOfCgroup(const Result<std::string>& text) {
  // /kubepods/burstable/pod5f0c-…/CONTAINER, or, by systemd,
  // /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod5f0c_….slice/cri-….scope
  const std::size_t kubepods = text ? text->find("/kubepods") : std::string::npos;
  if (kubepods == std::string::npos) return {};
  const std::string path = text->substr(kubepods, text->find('\n', kubepods) - kubepods);
  const std::size_t pod = std::min(path.find("/pod"), path.find("-pod"));
  if (pod == std::string::npos) return {};
  std::string uid = path.substr(pod + 4, path.find('/', pod + 4) - (pod + 4));
  if (path[pod] == '/') return uid;
  if (!uid.ends_with(".slice")) return {};
  uid.erase(uid.rfind('.'));
  std::replace(uid.begin(), uid.end(), '_', '-');
  return uid;
}

// nullopt: it ended, or can't be read.
std::optional<Process> ReadProcess(const Node& node, const std::string& pid) {
  const std::string files = "/proc/" + pid + "/";
  const auto uids = MapIn(node.Read(files + "uid_map"));
  const auto gids = MapIn(node.Read(files + "gid_map"));
  if (!uids || !gids) return std::nullopt;
  return Process{pid, *uids, *gids, PodOfCgroup(node.Read(files + "cgroup"))};
}

std::string Named(const std::string& pod) { return pod.empty() ? "a lost pod" : "pod " + pod; }

// What pods were given, and what runs with it.
struct Ranges {
  std::vector<PodIds> all = {};
  std::optional<IdPool> pool = {};
  Pods seen = {};
  Pods whole = {};  // of which a process has the whole range

  // Where the store has nothing of a pod the kubelet's file counts: a guard takes it a moment
  // later, and a store that gives out no host IDs never does.
  void Take(std::vector<PodIds> in_store, const std::vector<PodIds>& in_files) {
    Pods stored;
    for (const PodIds& one : in_store) stored.insert(one.pod);
    all = std::move(in_store);
    std::copy_if(in_files.begin(), in_files.end(), std::back_inserter(all),
                 [&](const PodIds& one) { return !stored.contains(one.pod); });
    // Whoever wrote a file may have written any numbers.
    std::erase_if(all, [](const PodIds& one) { return std::max(one.first, one.length) > kAllIds; });
  }

  struct Touched {
    Pods pods = {};
    bool within = true;  // each mapping lies in one range of a pod
    bool in_pool = false;
  };
  Touched Touch(const Process& process) const {
    Touched touched;
    IdMap ids = process.uids;
    ids.insert(ids.end(), process.gids.begin(), process.gids.end());
    for (const IdMapping& one : ids) {
      if (one.length == kAllIds) continue;  // the host's map, beside another one
      const std::uint64_t end = std::uint64_t{one.host_id} + one.length;
      bool within = false;
      for (const PodIds& range : all) {
        if (one.host_id >= range.first + range.length || range.first >= end) continue;
        touched.pods.insert(range.pod);
        within = within || (range.first <= one.host_id && end <= range.first + range.length);
      }
      touched.within = touched.within && within;
      touched.in_pool = touched.in_pool || (pool && end > pool->first_id &&
                                            one.host_id < pool->first_id + pool->id_count);
    }
    return touched;
  }

  // All processes are seen before the first is judged.
  void See(const Process& process) {
    seen.merge(Touch(process).pods);
    for (const PodIds& range : all) {
      if (process.Has(range.first, range.length)) whole.insert(range.pod);
    }
  }

  // The words about its IDs; `ok`: they contradict nothing.
  Finding Judge(const Process& process) const {
    if (process.uids.empty() && process.gids.empty()) return Ok("without any");
    const Touched touched = Touch(process);
    if (touched.pods.empty()) {
      if (!touched.in_pool) return Ok("outside the pool");
      std::string words = "of no pod that the store knows";
      for (const PodIds& range : all) {
        if (range.length == 0) words += "; it does not know those of " + Named(range.pod);
      }
      return Fail(words, kLeaveThem);
    }
    const std::string& pod = *touched.pods.begin();
    const std::string name = Named(pod);
    if (touched.pods.size() > 1) {
      return Fail("of " + name + " and " + Named(*touched.pods.rbegin()), kNewIds);
    }
    if (!process.cgroup_pod.empty() && !pod.empty() && process.cgroup_pod != pod) {
      return Fail("of " + name + ", in the cgroup of pod " + process.cgroup_pod, kNewIds);
    }
    bool begins = false;  // where the pod's range does, with another length
    for (const PodIds& range : all) {
      if (range.pod != pod) continue;
      if (process.Has(range.first, range.length)) {
        constexpr const char* kWords[] = {"as stored", "of held pods",
                                          "in the kubelet's files alone"};
        return Ok(kWords[static_cast<std::size_t>(range.in)]);
      }
      begins = begins ||
               (process.uids.size() == 1 && process.uids[0].container_id == 0 &&
                process.uids[0].host_id == range.first && process.uids[0].length != range.length);
    }
    if (!touched.within && !begins) {
      return Fail("partly of " + name + ", partly of none", kLeaveThem);
    }
    // Inside a container any part can be mapped again, as a rule beside a process with all of it.
    if (touched.within &&
        (!begins || whole.contains(pod) || process.uids[0].length % kIdsPerBlock != 0)) {
      return Ok("with part of a pod's");
    }
    return Fail("of another length than " + name + " has", kNewIds);
  }
};

std::string MapText(const IdMap& ids) {
  if (ids.empty()) return "none";
  return std::to_string(ids[0].host_id) + "-" +
         std::to_string(std::uint64_t{ids[0].host_id} + ids[0].length - 1) +
         (ids.size() == 1 ? "" : ", …");
}

}  // namespace

Findings UsernsProcessesCheck(const Node& node) {
  if (node.store().empty()) return {};
  const auto names = node.List("/proc");
  const auto self = ReadProcess(node, "self");
  if (!names || !self) return {Unknown("/proc/self/uid_map and gid_map can't be read", "")};
  if (!self->IsHosts()) {
    return {Unknown("this process is in a user namespace, and sees other IDs than the host's",
                    "run it in the host's user namespace")};
  }
  // Before the store is read: of a pod that begins meanwhile nothing is seen.
  std::vector<Process> running;
  std::size_t unreadable = 0;
  for (const std::string& name : *names) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    auto process = ReadProcess(node, name);
    if (!process) unreadable += node.Has("/proc/" + name + "/uid_map") ? 1 : 0;
    if (process && !process->IsHosts()) running.push_back(*std::move(process));
  }
  const auto& facts = node.ReadStore();
  if (!facts) return {};  // waybill-store says why
  const auto gate = StateOf(kUserNamespaceGate, node);
  Ranges ranges;
  ranges.Take(facts->host_ids, HostIdsInFiles(node).value_or(std::vector<PodIds>()));
  if (auto pool = PoolOf(node); pool && (!gate || gate->on)) ranges.pool = *pool;
  for (const Process& process : running) ranges.See(process);
  Findings findings;
  std::map<std::string, std::size_t> agree;
  Pods contradict;
  for (const Process& process : running) {
    const Finding finding = ranges.Judge(process);
    const bool agrees = finding.verdict == Verdict::kOk;
    if (!agrees && ReadProcess(node, process.pid) != process) continue;  // it ended
    if (agrees) ++agree[finding.seen];
    const std::string seen = "host UIDs " + MapText(process.uids) + " and GIDs " +
                             MapText(process.gids) + ", " + finding.seen;
    // One speaks for all with these IDs. Anybody can make any number of namespaces.
    if (agrees || findings.size() == 100 || !contradict.insert(seen).second) continue;
    findings.push_back(Fail("process " + process.pid + " has " + seen, finding.next));
  }
  std::string notes = "in user namespaces: " + std::to_string(running.size());
  for (const auto& [words, count] : agree) notes += ", " + std::to_string(count) + " " + words;
  for (const PodIds& range : facts->host_ids) {
    const bool idle = range.in == PodIds::In::kStore && !ranges.seen.contains(range.pod);
    if (idle) notes += ", none of pod " + range.pod;
  }
  const std::string unread = std::to_string(unreadable) + " processes can't be read";
  if (unreadable > 0) findings.push_back(Unknown(unread, ""));
  findings.push_back(Ok(notes));
  return findings;
}

}  // namespace waybill::doctor
