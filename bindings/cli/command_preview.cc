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

class PreviewCommand final : public Command {
 public:
  std::string name() const override { return "preview"; }
  std::string summary() const override { return "say which pods of the node could start now"; }
  std::string notes() const override {
    return R"(For each pod and each of its containers, init and ephemeral ones and image volumes
included: it runs with what is there; it must pull, with which of its pull Secrets;
or it can't start, and why. 1 if something can't start. --policy may be repeated: a
column each; AlwaysPullImages is the admission plugin, under which every container
pulls. Nothing is changed, neither the store nor its witness or locks: a store that no
process owns is copied to TMPDIR. Of Secrets the credentials are hashed and wiped, and
nothing of them is shown.
  kubectl get pods -A -o json >pods.json; crictl images -o json >images.json
  kubectl get secrets -A -o json | waybill preview --store DIR --pods pods.json \
    --secrets - --images images.json --policy AlwaysVerify --registry-down)";
  }

  void Declare(Flags& flags) override {
    store_.DeclareOptional(flags);
    flags.Value("--kubelet-dir", &kubelet_directory_, "DIR",
                "instead of --store: a kubelet directory, as start would take it\n"
                "over");
    flags.TakesSetting("--store", {.unless = {"--kubelet-dir"}});
    flags.Required("--pods", &files_.pods, "FILE|-",
                   "what kubectl get pods -A -o json prints, at most 64 MiB; Secrets\n"
                   "and service accounts in the same list count, too");
    flags.Value("--secrets", &files_.secrets, "FILE|-",
                "what kubectl get secrets -A -o json prints");
    flags.Value("--service-accounts", &files_.service_accounts, "FILE|-",
                "what kubectl get serviceaccounts -A -o json prints: pods that name\n"
                "no pull Secret get those of their service account");
    images_.Declare(flags,
                    ": all images; otherwise an image\n"
                    "is taken from the pod's status, the ledger, or its digest");
    flags.List("--policy", &policy_names_, "POLICY",
               "NeverVerify, NeverVerifyPreloadedImages (default),\n"
               "NeverVerifyAllowlistedImages, AlwaysVerify or AlwaysPullImages;\n"
               "may be repeated");
    flags.List("--allow", &allow_, "PATTERN",
               "an image name or PREFIX/* of the allowlist; may be repeated");
    flags.Switch("--allow-preloaded-only", &allow_preloaded_only_,
                 "the allowlist opens only images that were not pulled");
    const std::vector<std::string> policies = {"--policy", "--allow", "--allow-preloaded-only",
                                               "--kubelet-config"};
    kubelet_config_.Declare(flags, policies);
    for (const char* flag : {"--policy", "--allow", "--allow-preloaded-only"}) {
      flags.TakesSetting(flag, {.unless = policies});
    }
    flags.Switch("--registry-down", &registry_down_, "nothing can be pulled");
    flags.Value("--node", &node_, "NAME",
                "whose pods; by default those of the node that is called as this\n"
                "machine, or of the only node that pods are bound to");
    store_.DeclareRules(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    TRY(store_.Parse());
    auto policies = TRY(ParsePolicies());
    TRY(CheckFlags());
    PreviewInputs inputs;
    auto objects = TRY(ReadClusterFiles(files_));
    inputs.objects = std::move(objects);
    auto images = TRY(images_.ReadIfGiven());
    inputs.images = std::move(images);
    inputs.node = node_.value_or("");
    inputs.registry_down = registry_down_;
    auto source = TRY(Source(inputs));
    auto preview = TRY(Preview::Plan(std::move(inputs)));
    for (const PreviewedPolicy& policy : policies) {
      auto asked = WithStore(source.Observe({.rules = store_.rules, .policy = policy.policy}),
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
  Result<void> CheckFlags() const {
    if (store_.store.empty() == !kubelet_directory_) {
      return BadFlag("--store", "exactly one of --store and --kubelet-dir is needed");
    }
    if (kubelet_directory_) {
      TRY(CheckKubeletDirectory(*kubelet_directory_));
    }
    if (node_ && node_->empty()) return BadFlag("--node", "the value is empty");
    TRY(images_.Check());
    const std::optional<std::string> pods = files_.pods;
    return CheckStandardInput({{"--pods", pods},
                               {"--secrets", files_.secrets},
                               {"--service-accounts", files_.service_accounts},
                               {"--images", images_.path()}});
  }

  Result<std::vector<PreviewedPolicy>> ParsePolicies() {
    std::vector<std::string> names = policy_names_;
    if (kubelet_config_.given()) {
      if (!names.empty() || !allow_.empty()) {
        return BadFlag("--kubelet-config", "it excludes --policy and --allow");
      }
      auto kubelet = TRY(kubelet_config_.Read());
      if (kubelet.policy) names.push_back(*kubelet.policy);
      allow_ = std::move(kubelet.allow);
    }
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
      PolicyFlags one;
      one.policy_name = policy_name;
      if (policy_name == "NeverVerifyAllowlistedImages") {
        allowlisted = true;
        one.allow = allow_;
        one.allow_preloaded_only = allow_preloaded_only_;
      }
      TRY(one.Parse());
      policy.policy = std::move(one.policy);
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
    options.rules = store_.rules;
    options.images_on_node = inputs.images;
    options.allow_empty = true;
    options.kubelet_directory = *kubelet_directory_;
    options.import_progress = importing.UntilStopped();
    return QuietStore::OfKubelet(std::move(options));
  }

  StoreFlags store_;
  std::optional<std::string> kubelet_directory_;
  ClusterFiles files_;
  KubeletConfigFlag kubelet_config_;
  ImagesFlags images_;
  std::vector<std::string> policy_names_;
  std::vector<std::string> allow_;
  bool allow_preloaded_only_ = false;
  bool registry_down_ = false;
  std::optional<std::string> node_;
};

}  // namespace

std::unique_ptr<Command> MakePreviewCommand() { return std::make_unique<PreviewCommand>(); }

}  // namespace waybill::cli
