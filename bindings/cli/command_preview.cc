// waybill preview: says which pods of a node could start now. Changes nothing.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bindings/cli/cluster_input.h"
#include "bindings/cli/command.h"
#include "bindings/cli/input.h"
#include "bindings/cli/output.h"
#include "bindings/cli/preview.h"
#include "bindings/cli/runtime_lists.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

constexpr std::size_t kMostImageColumns = 200;

std::string_view AnswerText(StartAnswer answer) {
  constexpr std::string_view kTexts[] = {"runs", "must pull", "CAN'T START"};
  return kTexts[static_cast<std::size_t>(answer)];
}

// The coordinates of Secrets, each once.
std::vector<const ImagePullSecret*> OnlyOnce(const std::vector<ImagePullSecret>& secrets) {
  std::vector<const ImagePullSecret*> once;
  for (const ImagePullSecret& secret : secrets) {
    bool known = false;
    for (const ImagePullSecret* other : once) {
      known = known || (other->namespace_name == secret.namespace_name &&
                        other->name == secret.name && other->uid == secret.uid);
    }
    if (!known) once.push_back(&secret);
  }
  return once;
}

std::string SecretsText(const std::vector<ImagePullSecret>& secrets) {
  std::string text;
  for (const ImagePullSecret* secret : OnlyOnce(secrets)) {
    text += (text.empty() ? "" : ", ") + secret->namespace_name + "/" + secret->name;
  }
  return text.empty() ? "-" : text;
}

std::string ContainerText(const ContainerToStart& container) {
  constexpr std::string_view kNames[] = {" (init)", "", " (ephemeral)", " (volume)"};
  return container.name + std::string(kNames[static_cast<std::size_t>(container.kind)]);
}

std::string PodText(const PodToStart& pod) { return pod.namespace_name + "/" + pod.name; }

Json JsonOfForecast(const Forecast& forecast, const PreviewedPolicy& policy) {
  const auto& decision = forecast.outcome.decision;
  return {{"policy", policy.name},
          {"answer", StartAnswerName(forecast.answer)},
          {"because", forecast.because},
          {"action", WordOf(forecast.outcome.action)},
          {"reason", decision ? Json(ReasonName(decision->reason)) : Json(nullptr)}};
}

Json JsonOfContainer(const ContainerForecast& container,
                     const std::vector<PreviewedPolicy>& policies) {
  Json secrets = Json::array();
  for (const ImagePullSecret* secret : OnlyOnce(container.secrets)) {
    secrets.push_back(
        {{"namespace", secret->namespace_name}, {"name", secret->name}, {"uid", secret->uid}});
  }
  Json forecasts = Json::array();
  for (std::size_t i = 0; i < container.forecasts.size(); ++i) {
    forecasts.push_back(JsonOfForecast(container.forecasts[i], policies[i]));
  }
  const ContainerToStart& wanted = *container.container;
  return {{"kind", ContainerKindName(wanted.kind)},
          {"name", wanted.name},
          {"image", wanted.image},
          {"pullPolicy", WordOf(wanted.pull_policy)},
          {"imageRef", container.image_ref},
          {"imageRefFrom", RefSourceName(container.ref_source)},
          {"pullSecrets", secrets},
          {"forecasts", forecasts}};
}

Json SummaryJson(const Preview& preview, const std::vector<PreviewedPolicy>& policies) {
  Json summary = Json::array();
  for (std::size_t i = 0; i < policies.size(); ++i) {
    const PreviewCounts counts = preview.Count(i);
    summary.push_back({{"policy", policies[i].name},
                       {"runs", counts.runs},
                       {"mustPull", counts.must_pull},
                       {"cannotStart", counts.cannot_start},
                       {"podsCannotStart", counts.pods_cannot_start}});
  }
  return summary;
}

void WriteTable(const Preview& preview, const std::vector<PreviewedPolicy>& policies, Output& out) {
  const bool alone = policies.size() == 1;
  std::vector<std::string> head = {"POD", "CONTAINER", "IMAGE"};
  for (const PreviewedPolicy& policy : policies) {
    head.push_back(alone ? "ANSWER" : policy.name);
  }
  head.emplace_back("PULL SECRETS");
  if (alone) head.emplace_back("WHY");
  std::vector<std::vector<std::string>> rows;
  for (const PodForecast& pod : preview.pods()) {
    for (const ContainerForecast& container : pod.containers) {
      std::vector<std::string>& row = rows.emplace_back();
      row = {PodText(*pod.pod), ContainerText(*container.container),
             container.container->image.substr(0, kMostImageColumns)};
      for (const Forecast& forecast : container.forecasts) {
        row.emplace_back(AnswerText(forecast.answer));
      }
      row.push_back(SecretsText(container.secrets));
      if (alone) row.push_back(container.forecasts.front().because);
    }
  }
  out.WriteTable(head, rows);
}

// With several columns there is no room in the table for why.
void WriteWhatCannotStart(const Preview& preview, const std::vector<PreviewedPolicy>& policies,
                          Output& out) {
  if (policies.size() == 1) return;
  for (const PodForecast& pod : preview.pods()) {
    for (const ContainerForecast& container : pod.containers) {
      std::vector<std::pair<std::string, std::string>> under;  // why, and the policies
      for (std::size_t i = 0; i < container.forecasts.size(); ++i) {
        const Forecast& forecast = container.forecasts[i];
        if (forecast.answer != StartAnswer::kCannotStart) continue;
        const auto same = std::find_if(under.begin(), under.end(), [&](const auto& one) {
          return one.first == forecast.because;
        });
        if (same == under.end()) {
          under.emplace_back(forecast.because, policies[i].name);
        } else {
          same->second += ", " + policies[i].name;
        }
      }
      for (const auto& [because, names] : under) {
        out.Line("can't start  {} {}: {} ({})", PodText(*pod.pod),
                 ContainerText(*container.container), because, names);
      }
    }
  }
}

Json JsonOfPod(const PodForecast& pod, const std::vector<PreviewedPolicy>& policies) {
  Json containers = Json::array();
  for (const ContainerForecast& container : pod.containers) {
    containers.push_back(JsonOfContainer(container, policies));
  }
  Json object = {
      {"namespace", pod.pod->namespace_name}, {"name", pod.pod->name}, {"uid", pod.pod->uid}};
  if (!pod.runtime_handler.empty()) object["runtimeHandler"] = pod.runtime_handler;
  object["notes"] = pod.notes;
  object["containers"] = containers;
  return object;
}

void WritePreview(const Preview& preview, const std::vector<PreviewedPolicy>& policies,
                  bool registry_down, Output& out) {
  const LeftOut& left_out = preview.left_out();
  Json pods = Json::array();
  for (const PodForecast& pod : preview.pods()) pods.push_back(JsonOfPod(pod, policies));
  out.WriteJson({{"node", preview.node()},
                 {"registryDown", registry_down},
                 {"pods", pods},
                 {"leftOut",
                  {{"otherNodes", left_out.of_other_nodes},
                   {"unbound", left_out.unbound},
                   {"finished", left_out.finished}}},
                 {"summary", SummaryJson(preview, policies)}});
  WriteTable(preview, policies, out);
  WriteWhatCannotStart(preview, policies, out);
  for (const PodForecast& pod : preview.pods()) {
    for (const std::string& note : pod.notes) {
      out.Line("note         {}: {}", PodText(*pod.pod), note);
    }
  }
  if (left_out.of_other_nodes + left_out.unbound + left_out.finished > 0) {
    out.Line("left out     {} of other nodes, {} without a node, {} finished",
             HowMany(left_out.of_other_nodes, "pod"), left_out.unbound, left_out.finished);
  }
  out.Line("node         {}: {}{}", preview.node().empty() ? "-" : preview.node(),
           HowMany(preview.pods().size(), "pod"),
           registry_down ? ", while no registry can be reached" : "");
  for (std::size_t i = 0; i < policies.size(); ++i) {
    const PreviewCounts counts = preview.Count(i);
    out.Line("in all       {}: {} run with what is there, {} must pull, {} can't start ({})",
             policies[i].name, counts.runs, counts.must_pull, counts.cannot_start,
             HowMany(counts.pods_cannot_start, "pod"));
  }
}

constexpr std::string_view kAlwaysPullImages = "AlwaysPullImages";

class PreviewCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.Declare(flags);
    flags.Value("--pods", &files_.pods, "FILE|-",
                "what kubectl get pods -A -o json prints, at most 64 MiB; Secrets\n"
                "and service accounts in the same list count, too",
                kRequired);
    flags.Value("--secrets", &files_.secrets, "FILE|-",
                "what kubectl get secrets -A -o json prints");
    flags.Value("--service-accounts", &files_.service_accounts, "FILE|-",
                "what kubectl get serviceaccounts -A -o json prints");
    images_.Declare(flags,
                    ": all images; otherwise an image\n"
                    "is taken from the pod's status, the ledger, or its digest");
    Flag& policy = flags.List("--policy", &policy_names_, "POLICY",
                              "NeverVerify, NeverVerifyPreloadedImages,\n"
                              "NeverVerifyAllowlistedImages, AlwaysVerify or AlwaysPullImages;\n"
                              "may be repeated; otherwise the store's own");
    policy.choices = PolicyNames();
    policy.choices.emplace_back(kAlwaysPullImages);
    DeclareAllowlist(flags, &allow_, &allow_preloaded_only_);
    proofs_.Declare(flags);
    WithoutSettings(flags);
    flags.Switch("--registry-down", &registry_down_, "nothing can be pulled");
    flags.Value("--node", &node_, "NAME",
                "whose pods; by default those of the node of this machine's name", Length());
    flags.Excludes("--kubelet-config", {"--policy", "--allow"});
  }

  Result<ExitCode> Run(Output& out) override {
    auto policies = TRY(ParsePolicies());
    PreviewInputs inputs;
    inputs.objects = TRY(ReadClusterFiles(files_));
    inputs.images = TRY(images_.ReadIfGiven());
    inputs.node = node_;
    inputs.registry_down = registry_down_;
    auto preview = TRY(Preview::Plan(std::move(inputs)));
    TRY(WithStore(ObserveStore(store_), [&](NodeStore& store) -> Result<void> {
      for (PreviewedPolicy& policy : policies) {
        if (policy.name.empty()) {
          policy.name = WordOf(store.settings().policy.verification);
        }
        TRY(preview.Ask(store, policy));
      }
      return {};
    }));
    WritePreview(preview, policies, registry_down_, out);
    for (std::size_t i = 0; i < policies.size(); ++i) {
      if (preview.Count(i).cannot_start > 0) return ExitCode::kNo;
    }
    return ExitCode::kYes;
  }

 private:
  Result<std::vector<PreviewedPolicy>> ParsePolicies() {
    const std::vector<std::string>& names = policy_names_;
    if (names.empty() && allow_.empty() && !allow_preloaded_only_) {
      if (proofs_.given()) return BadFlag("--proofs", "it needs a policy", "add --policy");
      return std::vector<PreviewedPolicy>(1);
    }
    std::vector<PreviewedPolicy> policies;
    bool allowlisted = false;
    for (const std::string& policy_name : names) {
      for (const PreviewedPolicy& other : policies) {
        if (other.name == policy_name) return BadFlag("--policy", policy_name + " is there twice");
      }
      PreviewedPolicy& policy = policies.emplace_back();
      policy.name = policy_name;
      policy.always_pulls = policy_name == kAlwaysPullImages;
      if (policy.always_pulls) continue;
      const auto mode =
          TRY(Word<Verification>("credential verification policy")("--policy", policy_name));
      const bool has_list = mode == Verification::kNeverVerifyAllowlistedImages;
      allowlisted = allowlisted || has_list;
      const auto made = TRY(MakePolicy(mode, has_list ? allow_ : std::vector<std::string>(),
                                       has_list && allow_preloaded_only_));
      policy.what_if = TRY(proofs_.In(made));
    }
    if (!allowlisted && (!allow_.empty() || allow_preloaded_only_)) {
      return BadFlag(allow_.empty() ? "--allow-preloaded-only" : "--allow",
                     "it needs the policy NeverVerifyAllowlistedImages",
                     "add --policy NeverVerifyAllowlistedImages");
    }
    return policies;
  }

  ClusterFiles files_;
  ProofsFlag proofs_;
  ImagesFlags images_;
  std::vector<std::string> policy_names_;
  std::vector<std::string> allow_;
  bool allow_preloaded_only_ = false;
  bool registry_down_ = false;
  std::string node_;
};

}  // namespace

Command PreviewCommand() {
  return {
      .name = "preview",
      .task = kTaskAsk,
      .summary = "say which pods of the node could start now",
      .notes =
          R"(For each container, init and ephemeral ones and image volumes included: it runs with
what is there; it must pull, with which pull Secrets; or it can't start, and why. 1 if
something can't start. AlwaysPullImages is the admission plugin, under which every
container pulls. Nothing is changed. To preview a kubelet's directory, or a store of
an older schema, run `waybill start --no-witness --dry-run-in DIR`, and name DIR.
Of Secrets the credentials are hashed and wiped, and nothing of them is shown.)",
      .examples =
          R"(kubectl get pods -A -o json >pods.json; crictl images -o json >images.json
kubectl get secrets -A -o json | waybill preview --pods pods.json --secrets - \
  --images images.json --policy AlwaysVerify --registry-down)",
      .call = New<PreviewCall>};
}

}  // namespace waybill::cli
