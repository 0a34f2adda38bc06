// waybill userns: the host IDs of pods in user namespaces (KEP-127).

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "bindings/cli/command.h"
#include "bindings/cli/input.h"
#include "bindings/cli/list_token.h"
#include "bindings/cli/parse.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

std::string_view PoolRelationText(PoolRelation relation) {
  constexpr std::string_view kNames[] = {"in the pool", "outside the pool", "of another length"};
  return kNames[static_cast<std::size_t>(relation)];
}

// "65536-131071".
std::string RangeText(std::uint64_t first, std::uint64_t length) {
  if (length == 0) return fmt::format("none from {} on", first);
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return fmt::format("{}-{}", first, length - 1 > kMost - first ? kMost : first + (length - 1));
}

// The UID, or a text for pods whose UIDs were lost.
std::string PodText(const std::string& pod_uid) {
  return pod_uid.empty() ? "(lost: not known)" : pod_uid;
}

void DeclarePod(Flags& flags, std::string* target) {
  flags.Positional("POD", target, "the pod's UID").Required("give metadata.uid of the pod");
}

void WriteUserNamespace(const UserNamespace& user_namespace, Output& out) {
  ClaimUserNamespace::Answer answer;
  if (!user_namespace.uids.empty()) answer.mapping = user_namespace.uids.front();
  out.WriteJson(JsonOf(answer));
  if (user_namespace.mode == NamespaceMode::kNode) {
    return out.Line("NODE: the pod has the host's IDs");
  }
  for (const IdMapping& uids : user_namespace.uids) {
    out.Line("POD: UIDs and GIDs {} of the pod are {} of the host",
             RangeText(uids.container_id, uids.length), RangeText(uids.host_id, uids.length));
  }
}

class UsernsGetCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    DeclarePod(flags, &pod_);
    flags.Choice("--host-users", &request_.host_users, "true|false",
                 "the pod's spec.hostUsers; false (default)", ParseBoolean);
    runtime_.Declare(flags);
    flags.Value("--length", &request_.length, "N", "refuse a range of another length",
                Number{0, std::numeric_limits<std::uint32_t>::max()});
  }

  Result<ExitCode> Run(Output& out) override {
    request_.pod_uid = pod_;
    request_.runtime_handler = runtime_.handler();
    const auto given = TRY(WithStore(OwnStore(store_), [&](NodeStore& store) {
      return store.GetOrCreateUserNamespace(request_);
    }));
    WriteUserNamespace(given, out);
    return ExitCode::kYes;
  }

 private:
  std::string pod_;
  UserNamespaceRequest request_{.host_users = false};
  RuntimeFlag runtime_;
};

class UsernsReleaseCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    flags.Positional("POD", &pod_, "the pod's UID");
    flags.Switch("--lost", &lost_, "the ranges of unknown pods: userns list has every living pod");
    change_.DeclareDryRun(flags);
    flags.Excludes("--lost", {"POD"});
    flags.Needed({"POD", "--lost"}, "give metadata.uid of the pod");
  }

  Result<ExitCode> Run(Output& out) override {
    const auto [released] = TRY(WithWriter(Writer::Open(store_), [&](Writer& writer) {
      return writer.Call(
          ReleaseUserNamespace{.pod_uid = pod_, .lost = lost_, .dry_run = change_.dry_run});
    }));
    Json answer = Json::object();
    if (!lost_) answer["podUid"] = pod_;
    answer["released"] = released;
    WriteChange(std::move(answer), change_.dry_run, out);
    if (lost_) {
      out.Line("{}",
               released ? "released: lost ranges no longer block new ones" : "no ranges were lost");
    } else if (released) {
      out.Line("released: {}", pod_);
    } else {
      out.Line("{} has no range, and is not held", pod_);
    }
    return released ? ExitCode::kYes : ExitCode::kNo;
  }

 private:
  ChangeFlags change_;
  std::string pod_;
  bool lost_ = false;
};

class UsernsCleanupCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    list_.Declare(flags, "the lists are");
    flags.Value("--existing", &existing_, "FILE|-",
                "the pods that the node should run: what kubectl get pods prints");
    flags.Value("--running", &running_, "FILE|-",
                "the pods that run: what crictl pods -o json prints");
    flags.Switch("--allow-empty", &change_.allow_empty,
                 "accept two empty lists: the node has no pods");
    change_.DeclareDryRun(flags);
    flags.Excludes("--begin", {"--existing", "--running", "--token", "--allow-empty", "--dry-run"});
    flags.Needed({"--existing", "--begin"}, "or draw a token with --begin");
    flags.Needed({"--running", "--begin"}, "or draw a token with --begin");
    flags.Needed({"--token", "--begin"}, "draw a token with --begin, before the lists are made");
  }

  Result<ExitCode> Run(Output& out) override {
    if (list_.begin) return PrintListToken(store_, out);
    const auto existing = TRY(ReadPodList(existing_));
    const auto running = TRY(ReadPodList(running_));
    const auto report = TRY(WithWriter(Writer::Open(store_), [&](Writer& writer) {
      return writer.Call(CleanUpUserNamespaces{.existing = existing,
                                               .running = running,
                                               .token = *list_.token,
                                               .allow_empty = change_.allow_empty,
                                               .dry_run = change_.dry_run});
    }));
    WriteChange(FieldsOf(report, {{"keptInLists", "kept: in a list"},
                                  {"keptNewer", "kept: newer"},
                                  {"releasedPods", "released pod"}}),
                change_.dry_run, out);
    return ExitCode::kYes;
  }

 private:
  ListTokenFlags list_;
  ChangeFlags change_;
  std::string existing_;
  std::string running_;
};

class UsernsAdoptCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    const std::string form = "write waybill userns adopt POD FIRST LENGTH";
    store_.DeclareToWrite(flags);
    DeclarePod(flags, &pod_);
    flags.Positional("FIRST", &first_, "the pod's first host ID", Number()).Required(form);
    flags.Positional("LENGTH", &length_, "how many it has", Number()).Required(form);
  }

  Result<ExitCode> Run(Output& out) override {
    const auto mapping =
        TRY(WithWriter(Writer::Open(store_), [&](Writer& writer) -> Result<PodMapping> {
          TRY(writer.Call(
              AssignUserNamespace{.pod_uid = pod_, .host_id = first_, .length = length_}));
          return writer.store().GetUserNamespace(pod_);
        }));
    out.WriteJson(JsonOf(mapping));
    out.Line("adopted: {} has host IDs {}, {}", mapping.pod_uid,
             RangeText(mapping.host_id, mapping.length), PoolRelationText(mapping.relation));
    return ExitCode::kYes;
  }

 private:
  std::string pod_;
  std::uint64_t first_ = 0;
  std::uint64_t length_ = 0;
};

std::string RangesText(const std::vector<HostIdRange>& ranges) {
  if (ranges.empty()) return "not known";
  std::string text;
  for (const HostIdRange& range : ranges) {
    if (!text.empty()) text += ", ";
    text += RangeText(range.first, range.length);
  }
  return text;
}

void WriteMappings(const std::vector<PodMapping>& mappings, Output& out) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(mappings.size());
  for (const PodMapping& mapping : mappings) {
    rows.push_back({mapping.pod_uid, RangeText(mapping.host_id, mapping.length),
                    out.TimeText(mapping.created),
                    std::string(PoolRelationText(mapping.relation))});
  }
  out.WriteTable({"POD UID", "HOST IDS", "CREATED", "RELATION"}, rows);
}

void WriteHeld(const std::vector<QuarantinedPod>& held, Output& out) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(held.size());
  for (const QuarantinedPod& pod : held) {
    rows.push_back({PodText(pod.pod_uid), RangesText(pod.ranges), out.TimeText(pod.since),
                    pod.source.empty() ? "-" : pod.source, pod.reason});
  }
  out.WriteTable({"HELD POD", "HOST IDS", "SINCE", "SOURCE", "REASON"}, rows);
}

class UsernsListCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override { store_.DeclareToWrite(flags); }

  Result<ExitCode> Run(Output& out) override {
    auto store = TRY(ObserveStore(store_));
    const auto list = store->Call(ListUserNamespaces());
    if (!list) return list.error();
    TRY(store->Close());
    WriteMappings(list->mappings, out);
    if (!list->quarantined.empty()) WriteHeld(list->quarantined, out);
    out.WriteJson(JsonOf(*list));
    return ExitCode::kYes;
  }
};

class UsernsPoolCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override { store_.DeclareToWrite(flags); }

  Result<ExitCode> Run(Output& out) override {
    auto statistics = TRY(WithStore(ObserveStore(store_), &NodeStore::GetUserNamespaceStatistics));
    const PoolUse& s = statistics;
    const bool available = s.enabled && s.refused_because.empty() && s.free > 0;
    auto fields = FieldsOf(s,
                           {{"firstId", "first ID"},
                            {"idCount", "IDs"},
                            {"idsPerPod", "IDs per pod"},
                            {"maxPods", "pods at most"},
                            {"largestFreeRun", "free side by side"},
                            {"outsidePool", "outside the pool"},
                            {"otherLength", "of another length"},
                            {"quarantinedPods", "held pods"}},
                           {{"available", "new ranges", available}});
    if (s.refused_because.empty() && !out.json()) fields.back().value = "-";
    out.WriteFields(fields);
    return available ? ExitCode::kYes : ExitCode::kNo;
  }
};

struct IdOwner {
  std::uint64_t first = 0;
  std::uint64_t length = 0;
  std::string pod;
  bool held = false;

  auto operator<=>(const IdOwner&) const = default;
};

struct Owners {
  std::set<IdOwner> owners;
  std::vector<std::string> unknown;  // held pods whose ranges are not known: any may have the ID
};

Result<Owners> FindOwners(const NodeStore& store, std::uint64_t id) {
  Owners found;
  const auto mappings = TRY(store.ListUserNamespaces());
  for (const PodMapping& one : mappings) {
    if (id < one.host_id || id - one.host_id >= one.length) continue;
    found.owners.insert({one.host_id, one.length, one.pod_uid, false});
  }
  const auto held = TRY(store.ListHeldPods());
  for (const QuarantinedPod& pod : held) {
    if (pod.ranges.empty()) found.unknown.push_back(pod.pod_uid);
    for (const HostIdRange& range : pod.ranges) {
      if (id < range.first || id - range.first >= range.length) continue;
      found.owners.insert({range.first, range.length, pod.pod_uid, true});
    }
  }
  return found;
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
    const auto [owners, unknown] = TRY(
        WithStore(ObserveStore(store_), [&](NodeStore& store) { return FindOwners(store, id); }));
    Json list = Json::array();
    for (const IdOwner& owner : owners) {
      list.push_back({{"podUid", owner.pod},
                      {"hostId", owner.first},
                      {"length", owner.length},
                      {"containerId", id - owner.first},
                      {"held", owner.held}});
      out.Line("{}: host ID {} is UID and GID {} of the pod, which has {}{}", PodText(owner.pod),
               id, id - owner.first, RangeText(owner.first, owner.length),
               owner.held ? ", unverified: it is held" : "");
    }
    out.WriteJson({{"hostId", id}, {"owners", list}, {"unknownRanges", unknown}});
    if (owners.empty()) {
      out.Line("host ID {} is of no pod that the store knows{}", id,
               id < kIdsPerBlock ? ": it is the host's own" : "");
    }
    std::string names;
    for (const std::string& pod : unknown) names += (names.empty() ? "" : ", ") + PodText(pod);
    if (!names.empty()) out.Line("held, with ranges that are not known: {}", names);
    return owners.empty() ? ExitCode::kNo : ExitCode::kYes;
  }

 private:
  std::uint64_t id_ = 0;
};

}  // namespace

Command UsernsCommand() {
  return {
      .name = "userns",
      .task = kTaskPods,
      .summary = "give host IDs to pods in user namespaces, and take them back",
      .actions = {
          {.name = "get",
           .summary = "a pod's range of host IDs, always the same; a new one if it has none",
           .examples = "waybill userns get 2bd0dac0-95b2-4dd9-a9f9-a3e93a3b0b70",
           .call = New<UsernsGetCall>},
          {.name = "release",
           .summary = "a pod is gone: free its range",
           .notes = "1 if it had none.",
           .examples = "waybill userns release 2bd0dac0-95b2-4dd9-a9f9-a3e93a3b0b70",
           .call = New<UsernsReleaseCall>},
          {.name = "list",
           .summary = "which pod has which range, and pods with an unverified range (held)",
           .examples = "waybill userns list",
           .call = New<UsernsListCall>},
          {.name = "cleanup",
           .summary = "free the ranges of pods that are gone",
           .notes =
               R"(A pod that is in neither list loses its range: both must be complete, and made after
the token was drawn. Two empty lists are refused (2), unless --allow-empty is given.)",
           .examples = R"(token=$(waybill userns cleanup --begin)
kubectl get pods -A --field-selector spec.nodeName=NODE -o json > existing.json
crictl pods -o json > running.json
waybill userns cleanup --token "$token" --existing existing.json --running running.json)",
           .call = New<UsernsCleanupCall>},
          {.name = "pool",
           .summary = "how full the pool is",
           .notes = "1 if no new range can be given out.",
           .examples = "waybill userns pool",
           .call = New<UsernsPoolCall>},
          {.name = "adopt",
           .summary = "state that a pod lives with these host IDs",
           .examples = "waybill userns adopt 2bd0dac0-95b2-4dd9-a9f9-a3e93a3b0b70 131072 65536",
           .call = New<UsernsAdoptCall>},
          {.name = "owner",
           .summary = "whose host UID or GID that is",
           .notes = "1 if no pod's.",
           .examples = "waybill userns owner 131072",
           .call = New<UsernsOwnerCall>}}};
}

}  // namespace waybill::cli
