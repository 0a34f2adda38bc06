// waybill preview: says which pods of a node could start now. Changes nothing.

#include <filesystem>

#include "bindings/cli/cluster_input.h"
#include "bindings/cli/command.h"
#include "bindings/cli/input.h"
#include "bindings/cli/preview.h"
#include "bindings/cli/preview_report.h"
#include "bindings/cli/progress.h"
#include "bindings/cli/quiet_store.h"
#include "bindings/cli/runtime_lists.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

constexpr std::string_view kAlwaysPullImages = "AlwaysPullImages";

class PreviewCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareOptional(flags).TakesSetting();
    flags.Value("--kubelet-dir", &kubelet_directory_, "DIR",
                "instead of --store: a kubelet directory, as start would take it\n"
                "over",
                ParseKubeletDirectory);
    flags.Value("--pods", &files_.pods, "FILE|-",
                "what kubectl get pods -A -o json prints, at most 64 MiB; Secrets\n"
                "and service accounts in the same list count, too",
                kRequired);
    flags.Value("--secrets", &files_.secrets, "FILE|-",
                "what kubectl get secrets -A -o json prints");
    flags.Value("--service-accounts", &files_.service_accounts, "FILE|-",
                "what kubectl get serviceaccounts -A -o json prints: pods that name\n"
                "no pull Secret get those of their service account");
    images_.Declare(flags,
                    ": all images; otherwise an image\n"
                    "is taken from the pod's status, the ledger, or its digest");
    Flag& policy = flags
                       .List("--policy", &policy_names_, "POLICY",
                             "NeverVerify, NeverVerifyPreloadedImages (default),\n"
                             "NeverVerifyAllowlistedImages, AlwaysVerify or AlwaysPullImages;\n"
                             "may be repeated")
                       .TakesSetting(UnlessPolicyIsTyped());
    policy.choices = PolicyNames();
    policy.choices.emplace_back(kAlwaysPullImages);
    DeclareAllowlist(flags, &allow_, &allow_preloaded_only_);
    proofs_.Declare(flags);
    flags.Switch("--registry-down", &registry_down_, "nothing can be pulled");
    flags.Value("--node", &node_, "NAME",
                "whose pods; by default those of the node that is called as this\n"
                "machine, or of the only node that pods are bound to",
                Length());
    store_.DeclareRules(flags);
    flags.OneOf({"--store", "--kubelet-dir"});
    flags.Excludes("--kubelet-config", {"--policy", "--allow"});
  }

  Result<ExitCode> Run(Output& out) override {
    auto policies = TRY(ParsePolicies());
    PreviewInputs inputs;
    inputs.objects = TRY(ReadClusterFiles(files_));
    inputs.images = TRY(images_.ReadIfGiven());
    inputs.node = node_;
    inputs.registry_down = registry_down_;
    auto source = TRY(Source(inputs));
    auto preview = TRY(Preview::Plan(std::move(inputs)));
    for (const PreviewedPolicy& policy : policies) {
      auto asked = WithStore(source.Observe({.rules = store_.rules(), .policy = policy.policy}),
                             [&](NodeStore& store) -> Result<bool> {
                               TRY(preview.Ask(store, policy));
                               return true;
                             });
      if (!asked) return source.InTruth(asked.error());
    }
    const PreviewContext context{.policies = policies,
                                 .registry_down = registry_down_,
                                 .migrated_from = source.migrated_from()};
    WritePreview(preview, context, out);
    for (std::size_t i = 0; i < policies.size(); ++i) {
      if (preview.Count(i).cannot_start > 0) return ExitCode::kNo;
    }
    return ExitCode::kYes;
  }

 private:
  Result<std::vector<PreviewedPolicy>> ParsePolicies() {
    std::vector<std::string> names = policy_names_;
    if (names.empty()) names.emplace_back("NeverVerifyPreloadedImages");
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
      const auto mode = TRY(Named(ParseVerificationMode)("--policy", policy_name));
      const bool has_list = mode == VerificationMode::kNeverVerifyAllowlistedImages;
      allowlisted = allowlisted || has_list;
      policy.policy = TRY(MakePolicy(mode, has_list ? allow_ : std::vector<std::string>(),
                                     has_list && allow_preloaded_only_));
      policy.policy = TRY(proofs_.In(policy.policy));
    }
    if (!allowlisted && (!allow_.empty() || allow_preloaded_only_)) {
      return BadFlag(allow_.empty() ? "--allow-preloaded-only" : "--allow",
                     "it needs the policy NeverVerifyAllowlistedImages",
                     "add --policy NeverVerifyAllowlistedImages");
    }
    return policies;
  }

  Result<QuietStore> Source(const PreviewInputs& inputs) const {
    if (!kubelet_directory_) {
      ProgressLine copying("copying", "bytes");
      return QuietStore::Of(store_.store, copying.UntilStopped());
    }
    ProgressLine importing("importing", "files");
    OpenOptions options{.directory = {}, .witness = Witness::None()};
    options.rules = store_.rules();
    options.images_on_node = inputs.images;
    options.allow_empty = true;
    options.kubelet_directory = *kubelet_directory_;
    options.import_progress = importing.UntilStopped();
    return QuietStore::OfKubelet(std::move(options));
  }

  std::optional<std::string> kubelet_directory_;
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
      .notes = R"(For each pod and each of its containers, init and ephemeral ones and image volumes
included: it runs with what is there; it must pull, with which of its pull Secrets;
or it can't start, and why. 1 if something can't start. --policy may be repeated: a
column each; AlwaysPullImages is the admission plugin, under which every container
pulls. Nothing is changed, neither the store nor its witness or locks: a store that no
process owns is copied to TMPDIR. Of Secrets the credentials are hashed and wiped, and
nothing of them is shown.
  kubectl get pods -A -o json >pods.json; crictl images -o json >images.json
  kubectl get secrets -A -o json | waybill preview --store DIR --pods pods.json \
    --secrets - --images images.json --policy AlwaysVerify --registry-down)",
      .examples =
          R"(waybill preview --pods pods.json --secrets secrets.json --service-accounts accounts.json)",
      .call = New<PreviewCall>};
}

}  // namespace waybill::cli
