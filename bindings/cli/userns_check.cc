// Host IDs from the host's side: which pod has one, and whether the running processes agree with
// the store.

#include <algorithm>
#include <set>
#include <tuple>

#include "bindings/cli/described_json.h"
#include "bindings/cli/proc_id_maps.h"
#include "bindings/cli/store_access.h"
#include "bindings/cli/user_namespace_flags.h"
#include "bindings/cli/userns_actions.h"
#include "bindings/cli/userns_json.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

struct PodRange {
  std::string pod;
  std::uint64_t first = 0;
  std::uint64_t length = 0;
  bool held = false;

  std::uint64_t end() const { return first + length; }
  bool Overlaps(const IdMapping& ids) const {
    return ids.host_id < end() && first < std::uint64_t{ids.host_id} + ids.length;
  }
  bool Contains(const IdMapping& ids) const {
    return first <= ids.host_id && std::uint64_t{ids.host_id} + ids.length <= end();
  }
  bool Is(const IdMap& ids) const {
    return ids.size() == 1 && ids[0].container_id == 0 && ids[0].host_id == first &&
           ids[0].length == length;
  }
};

struct KnownRanges {
  std::vector<PodRange> ranges;  // by first ID
  std::vector<HeldPod> unknown;  // held pods whose ranges are not known
  std::uint64_t longest = 0;

  // Those that `ids` overlaps.
  template <typename Visit>
  void Overlapped(const IdMapping& ids, const Visit& visit) const {
    const std::uint64_t end = std::uint64_t{ids.host_id} + ids.length;
    const std::uint64_t from = ids.host_id > longest ? ids.host_id - longest : 0;
    auto at =
        std::lower_bound(ranges.begin(), ranges.end(), from,
                         [](const PodRange& range, std::uint64_t id) { return range.first < id; });
    for (; at != ranges.end() && at->first < end; ++at) {
      if (at->Overlaps(ids)) visit(*at);
    }
  }
};

Result<void> AddKnown(const NodeStore& store, KnownRanges& known) {
  auto mappings = TRY(store.ListUserNamespaces());
  auto held = TRY(store.ListHeldPods());
  const auto add = [&](PodRange range) {
    known.longest = std::max(known.longest, range.length);
    known.ranges.push_back(std::move(range));
  };
  for (const UserNamespaceAllocation& one : mappings) {
    add({one.pod_uid, one.host_id, one.length, false});
  }
  for (HeldPod& pod : held) {
    for (const HostIdRange& range : pod.ranges) {
      // A range in the store is bounded; a range from a file may not be.
      if (range.first < kHostIds && range.length <= kHostIds) {
        add({pod.pod_uid, range.first, range.length, true});
      }
    }
    if (pod.ranges.empty()) known.unknown.push_back(std::move(pod));
  }
  return {};
}

void Sort(KnownRanges& known) {
  const auto key = [](const PodRange& range) {
    return std::tie(range.first, range.length, range.pod, range.held);
  };
  std::sort(known.ranges.begin(), known.ranges.end(),
            [&](const PodRange& a, const PodRange& b) { return key(a) < key(b); });
  known.ranges.erase(
      std::unique(known.ranges.begin(), known.ranges.end(),
                  [&](const PodRange& a, const PodRange& b) { return key(a) == key(b); }),
      known.ranges.end());
}

// A held pod without a known range may have any ID.
std::string UnknownText(const std::vector<HeldPod>& unknown) {
  std::string text;
  for (const HeldPod& pod : unknown) {
    text += (text.empty() ? "" : ", ") + PodText(pod.pod_uid);
  }
  return text;
}

// --- check ---------------------------------------------------------------------------------------

struct Finding {
  const MappedProcesses* processes = nullptr;
  std::string_view kind;
  std::string says;
  std::set<std::string> pods = {};
};

struct Comparison {
  std::vector<Finding> contradictions;
  std::vector<Finding> notes;
  std::vector<PodRange> idle;  // of pods without any process
};

// What one map says about pods.
struct Touched {
  std::set<std::string> pods;
  bool within = true;       // each mapping lies in one range of a pod
  bool above_host = false;  // it has IDs that are not the host's own block
  bool in_pool = false;
};

Touched Touch(const IdMap& ids, const KnownRanges& known, const UserNamespaceOptions& options) {
  Touched touched;
  if (IsHosts(ids)) return touched;
  for (const IdMapping& one : ids) {
    bool within = false;
    known.Overlapped(one, [&](const PodRange& range) {
      touched.pods.insert(range.pod);
      within = within || range.Contains(one);
    });
    touched.within = touched.within && within;
    const std::uint64_t end = std::uint64_t{one.host_id} + one.length;
    touched.above_host = touched.above_host || end > kIdsPerBlock;
    const std::uint64_t first = std::max(options.pool.first_id, kIdsPerBlock);
    touched.in_pool =
        touched.in_pool || (options.enabled && end > first &&
                            one.host_id < options.pool.first_id + options.pool.id_count);
  }
  return touched;
}

class Comparer {
 public:
  Comparer(const KnownRanges& known, const UserNamespaceOptions& options)
      : known_(known), options_(options) {}

  Comparison Compare(const ProcIdMaps& running) {
    std::set<std::string> seen;
    for (const MappedProcesses& one : running.mapped) {
      for (const IdMap* ids : {&one.uids, &one.gids}) {
        for (const std::string& pod : Touch(*ids, known_, options_).pods) seen.insert(pod);
      }
      if (const PodRange* const whole = WholeRange(one)) whole_.insert(whole->pod);
    }
    for (const MappedProcesses& one : running.mapped) Judge(one);
    for (const PodRange& range : known_.ranges) {
      if (!range.held && seen.count(range.pod) == 0) comparison_.idle.push_back(range);
    }
    return std::move(comparison_);
  }

 private:
  // The range that is exactly what both maps say.
  const PodRange* WholeRange(const MappedProcesses& one) const {
    const PodRange* whole = nullptr;
    for (const IdMapping& ids : one.uids) {
      known_.Overlapped(ids, [&](const PodRange& range) {
        if (range.Is(one.uids) && range.Is(one.gids)) whole = &range;
      });
    }
    return whole;
  }

  // A range of the pod that begins where the map does, with another length.
  const PodRange* WrongLength(const MappedProcesses& one) const {
    const PodRange* wrong = nullptr;
    if (one.uids.size() != 1 || one.uids[0].container_id != 0) return wrong;
    known_.Overlapped(one.uids[0], [&](const PodRange& range) {
      if (range.first == one.uids[0].host_id && range.length != one.uids[0].length) wrong = &range;
    });
    return wrong;
  }

  void Judge(const MappedProcesses& one) {
    const Touched uids = Touch(one.uids, known_, options_);
    const Touched gids = Touch(one.gids, known_, options_);
    std::set<std::string> pods = uids.pods;
    pods.insert(gids.pods.begin(), gids.pods.end());
    const auto contradiction = [&](std::string_view kind, std::string says) {
      comparison_.contradictions.push_back({&one, kind, std::move(says), pods});
    };
    const auto note = [&](std::string_view kind, std::string says) {
      comparison_.notes.push_back({&one, kind, std::move(says), pods});
    };
    if (one.uids.empty() && one.gids.empty()) return note("notMapped", "no IDs are mapped");
    if (pods.empty()) {
      if (!uids.above_host && !gids.above_host) return note("hostIds", "the host's own IDs");
      if (uids.in_pool || gids.in_pool) {
        std::string says = "of no pod that the store knows";
        if (!known_.unknown.empty()) {
          says += "; of held pods it does not know the ranges: " + UnknownText(known_.unknown);
        }
        return contradiction("unknownRange", says);
      }
      return note("outsidePool", "of no pod that the store knows, outside the pool");
    }
    if (pods.size() > 1) return contradiction("twoPods", "of several pods: " + Names(pods));
    const std::string& pod = *pods.begin();
    const std::string name = PodText(pod);
    if (!one.cgroup_pod.empty() && !pod.empty() && one.cgroup_pod != pod) {
      return contradiction("otherPod", "of " + name + ", but they run in a cgroup of another pod");
    }
    const PodRange* const wrong = WrongLength(one);
    if (!uids.within || !gids.within) {
      if (wrong != nullptr) return contradiction("wrongLength", LengthText(name, *wrong));
      return contradiction("partlyOutside", "partly of " + name + ", partly of no pod");
    }
    if (WholeRange(one) == nullptr) {
      // Inside a container any part can be mapped again, as a rule beside a process with all of it.
      const bool is_pods_own =
          whole_.count(pod) == 0 && wrong != nullptr && one.uids[0].length % kIdsPerBlock == 0;
      if (is_pods_own) return contradiction("wrongLength", LengthText(name, *wrong));
      return note("nested", "part of " + name);
    }
    if (Held(pod)) return note("held", "of " + name + ", which is held");
  }

  bool Held(const std::string& pod) const {
    return std::any_of(known_.ranges.begin(), known_.ranges.end(),
                       [&](const PodRange& range) { return range.held && range.pod == pod; });
  }
  static std::string LengthText(const std::string& name, const PodRange& range) {
    return fmt::format("of another length than that of {}, which has {}", name,
                       RangeText(range.first, range.length));
  }
  static std::string Names(const std::set<std::string>& pods) {
    std::string text;
    for (const std::string& pod : pods) text += (text.empty() ? "" : ", ") + PodText(pod);
    return text;
  }

  const KnownRanges& known_;
  const UserNamespaceOptions& options_;
  std::set<std::string> whole_;  // pods of which a process has the whole range
  Comparison comparison_;
};

std::string MapText(const IdMap& ids) {
  constexpr std::size_t kMostNamed = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(ids.size(), kMostNamed); ++i) {
    text += (i == 0 ? "" : ", ") + RangeText(ids[i].host_id, ids[i].length);
  }
  if (ids.size() > kMostNamed) text += fmt::format(" and {} more", ids.size() - kMostNamed);
  return text.empty() ? "none" : text;
}

std::string ProcessesText(const MappedProcesses& one) {
  std::string text = one.count == 1 ? "process " : "processes ";
  for (std::size_t i = 0; i < one.pids.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(one.pids[i]);
  }
  if (one.count > one.pids.size()) text += fmt::format(" and {} more", one.count - one.pids.size());
  if (!one.cgroup_pod.empty()) text += " in the cgroup of pod " + one.cgroup_pod;
  return text;
}

// Containers can make any number of namespaces.
constexpr std::size_t kMaxLines = 100;

void WriteFindings(std::string_view label, const std::vector<Finding>& findings, Output& out) {
  for (const Finding& finding : findings) {
    if (&finding == &findings.front() + kMaxLines) {
      return out.Line("{}  and {} more: --json has them", label, findings.size() - kMaxLines);
    }
    const MappedProcesses& one = *finding.processes;
    const bool same = one.uids == one.gids;
    out.Line("{}  {}: host {} {}{}: {}", label, ProcessesText(one), same ? "IDs" : "UIDs",
             MapText(one.uids), same ? "" : ", GIDs " + MapText(one.gids), finding.says);
  }
}

Json JsonOfMap(const IdMap& ids) {
  Json list = Json::array();
  for (const IdMapping& one : ids) {
    list.push_back(
        {{"hostId", one.host_id}, {"containerId", one.container_id}, {"length", one.length}});
  }
  return list;
}

Json JsonOfFindings(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    const MappedProcesses& one = *finding.processes;
    list.push_back({{"kind", finding.kind},
                    {"uids", JsonOfMap(one.uids)},
                    {"gids", JsonOfMap(one.gids)},
                    {"pods", finding.pods},
                    {"cgroupPod", one.cgroup_pod.empty() ? Json() : Json(one.cgroup_pod)},
                    {"processes", one.count},
                    {"pids", one.pids}});
  }
  return list;
}

Json JsonOfRanges(const std::vector<PodRange>& ranges) {
  Json list = Json::array();
  for (const PodRange& range : ranges) {
    list.push_back({{"podUid", range.pod}, {"hostId", range.first}, {"length", range.length}});
  }
  return list;
}

class UsernsOwnerCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    const auto parse = [](std::string_view flag, std::string_view text) -> Result<std::uint64_t> {
      auto id = TRY(Number()(flag, text));
      if (id < kHostIds - 1) return id;
      return BadFlag(flag, fmt::format("{} is not an ID: they go up to {}", id, kHostIds - 2));
    };
    flags.Positional("HOST-ID", &id_, "a host's UID or GID", parse, kRequired);
  }

  Result<ExitCode> Run(Output& out) override {
    const std::uint64_t id = id_;
    auto known = TRY(WithStore(ObserveStore(store_), [](NodeStore& store) -> Result<KnownRanges> {
      KnownRanges all;
      TRY(AddKnown(store, all));
      return all;
    }));
    Sort(known);
    std::vector<PodRange> owners;
    known.Overlapped({static_cast<std::uint32_t>(id), 0, 1},
                     [&](const PodRange& range) { owners.push_back(range); });
    Json list = Json::array();
    for (const PodRange& range : owners) {
      list.push_back({{"podUid", range.pod},
                      {"hostId", range.first},
                      {"length", range.length},
                      {"containerId", id - range.first},
                      {"held", range.held}});
    }
    Json unknown = Json::array();
    for (const HeldPod& pod : known.unknown) unknown.push_back(pod.pod_uid);
    out.WriteJson({{"hostId", id}, {"owners", list}, {"unknownRanges", unknown}});
    for (const PodRange& range : owners) {
      out.Line("{}: host ID {} is UID and GID {} of the pod, which has {}{}", PodText(range.pod),
               id, id - range.first, RangeText(range.first, range.length),
               range.held ? ", unverified: it is held" : "");
    }
    if (owners.empty()) {
      out.Line("host ID {} is of no pod that the store knows{}", id,
               id < kIdsPerBlock ? ": it is the host's own" : "");
    }
    if (!known.unknown.empty()) {
      out.Line("held, with ranges that are not known: {}", UnknownText(known.unknown));
    }
    return owners.empty() ? ExitCode::kNo : ExitCode::kYes;
  }

 private:
  std::uint64_t id_ = 0;
};

class UsernsCheckCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    flags.Value("--proc", &proc_, "DIR", "the /proc of the host's PID namespace (/proc)");
    pool_.Declare(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    const UserNamespaceOptions options = TRY(pool_.Read(false));
    ProcIdMaps running;
    std::set<std::string> before;
    // The store is read before the processes, for pods that are released meanwhile, and after them,
    // for those that begin.
    auto known = TRY(WithStore(ObserveStore(store_, {.user_namespaces = options}),
                               [&](NodeStore& store) -> Result<KnownRanges> {
                                 KnownRanges all;
                                 TRY(AddKnown(store, all));
                                 for (const PodRange& range : all.ranges) before.insert(range.pod);
                                 running = TRY(ReadProcIdMaps(proc_));
                                 all.unknown.clear();
                                 TRY(AddKnown(store, all));
                                 return all;
                               }));
    Sort(known);
    Comparison comparison = Comparer(known, options).Compare(running);
    // A pod that began meanwhile may have had no process yet.
    std::erase_if(comparison.idle,
                  [&](const PodRange& range) { return before.count(range.pod) == 0; });
    const bool agrees = comparison.contradictions.empty();
    std::uint64_t in_namespaces = 0;
    for (const MappedProcesses& one : running.mapped) in_namespaces += one.count;
    out.WriteJson({{"agrees", agrees},
                   {"processes", running.processes},
                   {"inUserNamespaces", in_namespaces},
                   {"unreadable", running.unreadable},
                   {"contradictions", JsonOfFindings(comparison.contradictions)},
                   {"notes", JsonOfFindings(comparison.notes)},
                   {"podsWithoutProcess", JsonOfRanges(comparison.idle)}});
    out.Line("agrees         {}", agrees ? "yes" : "no");
    out.Line("processes      {}, {} in user namespaces", running.processes, in_namespaces);
    if (running.unreadable > 0) {
      out.Line("unreadable     {} of them: not compared", running.unreadable);
    }
    WriteFindings("contradiction", comparison.contradictions, out);
    WriteFindings("note         ", comparison.notes, out);
    for (const PodRange& range : comparison.idle) {
      out.Line("no process     {} has host IDs {}", range.pod,
               RangeText(range.first, range.length));
    }
    return agrees ? ExitCode::kYes : ExitCode::kNo;
  }

 private:
  UserNamespaceFlags pool_;
  std::string proc_ = "/proc";
};

}  // namespace

Command UsernsOwnerAction() {
  return {.name = "owner",
          .summary = "whose host UID or GID that is",
          .notes = "1 if no pod's.",
          .examples = "waybill userns owner 131072",
          .call = New<UsernsOwnerCall>};
}

Command UsernsCheckAction() {
  return {.name = "check",
          .summary = "compare the store with the ID mappings of what runs",
          .notes = "1 if they contradict each other.",
          .examples = "waybill userns check",
          .call = New<UsernsCheckCall>};
}

}  // namespace waybill::cli
