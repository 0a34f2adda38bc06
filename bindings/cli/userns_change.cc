#include <limits>

#include "bindings/cli/described_json.h"
#include "bindings/cli/input.h"
#include "bindings/cli/list_token.h"
#include "bindings/cli/store_access.h"
#include "bindings/cli/user_namespace_flags.h"
#include "bindings/cli/userns_actions.h"
#include "bindings/cli/userns_json.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

void DeclarePod(Flags& flags, std::string* target) {
  flags.Positional("POD", target, "the pod's UID").Required("give metadata.uid of the pod");
}

void WriteUserNamespace(const UserNamespace& user_namespace, Output& out) {
  out.WriteJson(JsonOf(user_namespace));
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
    pool_.Declare(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    request_.pod_uid = pod_;
    request_.runtime_handler = runtime_.handler();
    const auto pool = TRY(pool_.Read());
    const auto given =
        TRY(WithStore(OwnStore(store_, {.user_namespaces = pool}),
                      [&](NodeStore& store) { return store.GetOrCreateUserNamespace(request_); }));
    WriteUserNamespace(given, out);
    return ExitCode::kYes;
  }

 private:
  std::string pod_;
  UserNamespaceRequest request_{.host_users = false};
  RuntimeFlag runtime_;
  UserNamespaceFlags pool_;
};

class UsernsReleaseCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    flags.Positional("POD", &pod_, "the pod's UID");
    flags.Switch("--lost", &lost_,
                 "the ranges of unknown pods; you state that userns list has\n"
                 "every living pod in a user namespace");
    change_.DeclareDryRun(flags);
    flags.Excludes("--lost", {"POD"});
    flags.Needed({"POD", "--lost"}, "give metadata.uid of the pod");
  }

  Result<ExitCode> Run(Output& out) override {
    const bool released = TRY(WithWriter(Writer::Open(store_), [&](Writer& writer) {
      return lost_ ? writer.owner().ReleaseLostUserNamespaces(change_)
                   : writer.owner().ReleaseUserNamespace(pod_, change_);
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
                "the pods that the node should run: what kubectl get pods -o\n"
                "json or the kubelet's /pods prints");
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
      return writer.owner().CleanUpUserNamespaces(existing, running, *list_.token, change_);
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
    pool_.Declare(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    const auto pool = TRY(pool_.Read());
    const auto mapping =
        TRY(WithWriter(Writer::Open(store_, {.user_namespaces = pool}),
                       [&](Writer& writer) -> Result<UserNamespaceAllocation> {
                         TRY(writer.owner().AdoptUserNamespace(pod_, first_, length_));
                         return writer.store().GetUserNamespace(pod_);
                       }));
    Json answer = JsonOf(mapping);
    answer["relation"] = PoolRelationName(mapping.relation);
    out.WriteJson(answer);
    out.Line("adopted: {} has host IDs {}, {}", mapping.pod_uid,
             RangeText(mapping.host_id, mapping.length), PoolRelationText(mapping.relation));
    return ExitCode::kYes;
  }

 private:
  UserNamespaceFlags pool_;
  std::string pod_;
  std::uint64_t first_ = 0;
  std::uint64_t length_ = 0;
};

}  // namespace

Command UsernsGetAction() {
  return {.name = "get",
          .summary = "a pod's range of host IDs, always the same; a new one if it has none",
          .examples = "waybill userns get 2bd0dac0-95b2-4dd9-a9f9-a3e93a3b0b70",
          .call = New<UsernsGetCall>};
}

Command UsernsReleaseAction() {
  return {.name = "release",
          .summary = "a pod is gone: free its range",
          .notes = "1 if it had none.",
          .examples = "waybill userns release 2bd0dac0-95b2-4dd9-a9f9-a3e93a3b0b70",
          .call = New<UsernsReleaseCall>};
}

Command UsernsCleanupAction() {
  return {.name = "cleanup",
          .summary = "free the ranges of pods that are gone",
          .notes = R"(In this order:
  token=$(waybill userns cleanup --store DIR --begin)
  kubectl get pods -A --field-selector spec.nodeName=NODE -o json > existing.json
  crictl pods -o json > running.json
  waybill userns cleanup --store DIR --token "$token" \
    --existing existing.json --running running.json
A pod that is in neither list loses its range: both must be complete. Two empty lists are
refused (2), unless --allow-empty is given.)",
          .examples = "waybill userns cleanup --begin",
          .call = New<UsernsCleanupCall>};
}

Command UsernsAdoptAction() {
  return {.name = "adopt",
          .summary = "state that a pod lives with these host IDs",
          .examples = "waybill userns adopt 2bd0dac0-95b2-4dd9-a9f9-a3e93a3b0b70 131072 65536",
          .call = New<UsernsAdoptCall>};
}

}  // namespace waybill::cli
