// waybill explain: everything that bears on the answer about an image, or about those of a pod.
// Works beside a live owner; changes nothing.

#include "bindings/cli/cluster_input.h"
#include "bindings/cli/command.h"
#include "bindings/cli/described_json.h"
#include "bindings/cli/explain_report.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/image_lookup.h"
#include "bindings/cli/preview.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/runtime_lists.h"
#include "bindings/cli/secrets.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

class ExplainCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.Declare(flags);
    flags.Positional("IMAGE", &named_,
                     "the container's image, as the pod spells it; which image that is on\n"
                     "the node, --cri or --images says",
                     Length{kMaxImageBytes});
    flags.Value("--image", &image_, "IMAGE", "the same, beside --image-ref",
                Length{kMaxImageBytes});
    flags.Value("--image-ref", &image_ref_, "REF",
                "what the runtime calls the image, or short for it; '' if it is not on\n"
                "the node",
                LengthOrNone{kMaxImageRefBytes});
    flags.Value("--pod", &pod_, "FILE|-",
                "instead of --image and --image-ref: what kubectl get pod NAME -o\n"
                "json prints");
    flags.List("--secret", &given_secrets_, "NS/NAME/UID/HASH|@FILE",
               "a pull Secret of the pod, as for check; may be repeated", ReadSecret);
    flags.Value("--secrets", &secrets_, "FILE|-",
                "pull Secrets of the pod, a line of JSON each; with --pod what\n"
                "kubectl get secrets -o json prints");
    flags.Value("--service-account", &service_account_, "NS/NAME/UID", "the pod's service account",
                ParseServiceAccount);
    flags.Value("--service-accounts", &service_accounts_, "FILE|-",
                "with --pod: what kubectl get serviceaccounts -o json prints");
    images_.Declare(flags,
                    ": what REF means, and the names\n"
                    "of the image");
    runtime_.Declare(flags);
    policy_.Declare(flags);
    evidence_.DeclareShortNames(flags);
    store_.DeclareRules(flags);
    flags.Excludes("IMAGE", {"--image", "--image-ref", "--pod"});
    flags.Excludes("--pod", {"--image", "--image-ref"});
    flags.Excludes("--pod", {"--secret"}, "use --secrets");
    flags.Excludes("--pod", {"--service-account"}, "use --service-accounts");
    flags.Excludes("--pod", {"--runtime"}, "the pod names it");
    flags.Needs("--service-accounts", {"--pod"});
    flags.Needed({"IMAGE", "--image", "--pod"}, "or name a pod: --pod FILE");
    flags.Needed({"--image-ref", "IMAGE", "--pod"},
                 "give what the runtime calls the image, or '' if it is not on the node");
  }

  Result<ExitCode> Run(Output& out) override {
    if (named_) image_ = named_;
    std::vector<ImagePullSecret> secrets;
    ClusterObjects objects;
    if (pod_) {
      objects = TRY(ReadClusterFiles(
          {.pods = *pod_, .secrets = secrets_, .service_accounts = service_accounts_}));
    } else {
      secrets = TRY(ReadSecretsOfFlags());
    }
    const std::optional<std::vector<ImageOnNode>> images = TRY(images_.ReadIfGiven());
    auto store = ObserveStore(store_, {.policy = policy_.policy, .evidence = evidence_.options()});
    auto code = WithStore(std::move(store), [&](NodeStore& opened) -> Result<ExitCode> {
      auto names = TRY(HandlerNames::Of(opened));
      auto trust = TRY(opened.GetTrust());
      auto explained = TRY(
          pod_ ? ExplainPods(opened,
                             {.objects = std::move(objects), .images = images, .all_pods = true})
               : ExplainImage(opened, names, images, secrets));
      Write(explained, names, trust, out);
      const bool pulls = std::any_of(explained.begin(), explained.end(),
                                     [](const ExplainedImage& one) { return one.decision.pull; });
      return pulls ? ExitCode::kNo : ExitCode::kYes;
    });
    return code;
  }

 private:
  Result<std::vector<ImagePullSecret>> ReadSecretsOfFlags() const {
    std::vector<ImagePullSecret> secrets = given_secrets_;
    if (!secrets_) return secrets;
    auto more = TRY(ReadSecrets(*secrets_));
    secrets.insert(secrets.end(), more.begin(), more.end());
    return secrets;
  }

  // The names by which the list has the image; empty: there is no list, or it lacks the image.
  static std::vector<std::string> NamesIn(const std::optional<std::vector<ImageOnNode>>& images,
                                          std::string_view image_ref) {
    if (!images || image_ref.empty()) return {};
    return ListedNames(*images, image_ref);
  }

  static Result<ExplainedImage> Explained(NodeStore& store, ExplainedImage image,
                                          const std::vector<std::string>& names) {
    if (image.image_ref.empty()) return image;
    auto why = store.Explain({.image = image.image,
                              .image_ref = image.image_ref,
                              .runtime_handler = image.runtime_handler},
                             names);
    if (why) {
      image.explanation = *std::move(why);
    } else if (image.decision.reason != Reason::kRuntimeHandlerUnknown) {
      return why.error();
    }
    return image;
  }

  Result<std::vector<ExplainedImage>> ExplainImage(
      NodeStore& store, const HandlerNames& handlers,
      const std::optional<std::vector<ImageOnNode>>& images,
      const std::vector<ImagePullSecret>& secrets) const {
    TRY(handlers.Check(runtime_.handler()));
    const auto* const list = images ? &*images : nullptr;
    auto image_ref = TRY(named_ ? RefOnNode(*named_, store, list)
                                : ResolveRef("--image-ref", *image_ref_, store, list));
    const std::vector<ImagePullSecretView> views(secrets.begin(), secrets.end());
    PodCredentials pod{.secrets = views, .service_account = std::nullopt};
    if (service_account_) pod.service_account.emplace(*service_account_);
    FixedCredentials credentials(pod);
    ExplainedImage image{
        .image = *image_, .image_ref = image_ref, .runtime_handler = runtime_.handler()};
    image.decision = store.MustAttemptPull({.image = image.image,
                                            .image_ref = image.image_ref,
                                            .runtime_handler = image.runtime_handler},
                                           credentials);
    auto explained = TRY(Explained(store, std::move(image), NamesIn(images, image_ref)));
    return std::vector<ExplainedImage>{std::move(explained)};
  }

  static Result<std::vector<ExplainedImage>> ExplainPods(NodeStore& store, PreviewInputs inputs) {
    const auto images = inputs.images;
    auto preview = TRY(Preview::Plan(std::move(inputs)));
    TRY(preview.AskWhetherToPull(store));
    std::vector<ExplainedImage> all;
    for (const PodForecast& pod : preview.pods()) {
      for (const ContainerForecast& container : pod.containers) {
        ExplainedImage image{.image = container.container->image,
                             .image_ref = container.image_ref,
                             .runtime_handler = pod.runtime_handler};
        const auto& decision = container.forecasts.front().outcome.decision;
        image.decision = decision.value_or(
            Decision{true, CheckResult::kError, Reason::kImageDoesNotParse, false});
        auto explained =
            TRY(Explained(store, std::move(image), NamesIn(images, container.image_ref)));
        all.push_back(std::move(explained));
      }
    }
    return all;
  }

  static void Write(const std::vector<ExplainedImage>& explained, const HandlerNames& names,
                    const TrustState& trust, Output& out) {
    Json images = Json::array();
    for (const ExplainedImage& one : explained) images.push_back(JsonOf(one));
    Json journal = Json::array();
    for (const TrustEvent& event : trust.journal) journal.push_back(JsonOf(event));
    out.WriteJson({{"images", images}, {"distrustful", trust.distrustful}, {"journal", journal}});
    for (const ExplainedImage& one : explained) {
      WriteExplained(one, names, out);
      if (trust.distrustful) {
        out.Line("distrust    {}",
                 trust.journal.empty() ? "the store lost records" : trust.journal.back().reason);
      }
      if (&one != &explained.back()) out.Line("");
    }
  }

  PolicyFlags policy_;
  RuntimeFlag runtime_;
  EvidenceFlags evidence_;
  std::optional<std::string> named_;
  std::optional<std::string> image_;
  std::optional<std::string> image_ref_;
  std::optional<std::string> pod_;
  std::vector<ImagePullSecret> given_secrets_;
  std::optional<std::string> secrets_;
  std::optional<ImagePullServiceAccount> service_account_;
  std::optional<std::string> service_accounts_;
  ImagesFlags images_;
};

}  // namespace

Command ExplainCommand() {
  return {
      .name = "explain",
      .task = kTaskAsk,
      .summary = "say why an image is open or closed",
      .notes =
          R"(Prints the answer of `waybill check` and all that bears on it: which rule answered, what
would have to change for the other answer, the record with its Secrets and service
accounts and when each was proven, the ledger, other spellings and handlers, open
pulls, quarantine and distrust. With --pod: the same for each image of the pod. 1 if
an image must be pulled. Hashes are never shown. For the node's operators, not for
tenants: it tells what is on the node.)",
      .examples = R"(waybill explain registry.example/app:v1 --cri auto
kubectl get pod app -o json | waybill explain --pod - --cri auto)",
      .call = New<ExplainCall>};
}

}  // namespace waybill::cli
