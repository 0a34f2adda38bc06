// waybill explain: everything that bears on the answer about an image, or about those of a pod.
// Works beside a live owner; changes nothing.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "bindings/cli/cluster_input.h"
#include "bindings/cli/command.h"
#include "bindings/cli/evidence_report.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/image_lookup.h"
#include "bindings/cli/output.h"
#include "bindings/cli/preview.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/runtime_lists.h"
#include "bindings/cli/store_access.h"
#include "store/base/options.h"
#include "store/base/timestamp.h"
#include "store/base/try.h"
#include "store/calls/node_store.h"
#include "waybill/values.h"

namespace waybill::cli {
namespace {

struct ExplainedImage {
  std::string image = {};
  std::string image_ref = {};  // empty: not known to be on the node
  std::string runtime_handler = {};
  Decision decision = {};
  std::optional<Explanation> explanation = {};  // nullopt: there is no ref to explain
};

std::string_view CheckerText(VerifiedBy checker) {
  constexpr std::string_view kNames[] = {
      ", by whom it was checked is not known", ", checked by the registry",
      ", checked by a mirror at most", ", pulled in the guest: checked by nobody on this node",
      ", pulled without credentials: no registry checked"};
  return kNames[static_cast<std::size_t>(checker)];
}

std::string CredentialText(const ExplainedCredential& one, const Output& out) {
  std::string text;
  if (one.kind == ExplainedCredential::Kind::kNodePods) {
    text = "all pods of the node";
  } else {
    text =
        fmt::format("{} {}/{}/{}",
                    one.kind == ExplainedCredential::Kind::kSecret ? "secret" : "service account",
                    one.who.namespace_name, one.who.name, one.who.uid);
  }
  text += one.proof.proven ? ", proven " + out.TimeText(one.proof.proven)
                           : ", when it was proven is not known";
  text += CheckerText(one.kind == ExplainedCredential::Kind::kNodePods ? VerifiedBy::kNobody
                                                                       : one.proof.checker);
  if (one.proof.good_until) text += ", good until " + out.TimeText(one.proof.good_until);
  if (one.standing == CredentialStanding::kTooOld) text += "; TOO OLD, does not count";
  if (one.standing == CredentialStanding::kNotByRegistry) {
    text += "; NOT CHECKED BY THE REGISTRY, does not count";
  }
  if (one.standing == CredentialStanding::kForgotten) text += "; FORGOTTEN, does not count";
  return text;
}

void WriteRecordOf(const Explanation& why, Output& out) {
  if (why.unreadable) out.Line("record      one of this image can't be read");
  if (!why.record) {
    if (!why.unreadable) out.Line("record      none");
    return;
  }
  const ImagePulledRecord& record = *why.record;
  out.Line("record      of {}, updated {}, by commit {}", record.image_ref,
           out.TimeText(record.last_updated), record.stamp);
  if (!record.closed_because.empty()) out.Line("            closed: {}", record.closed_because);
  if (record.closed_by_operator) out.Line("            an operator closed it: no list opens it");
  if (record.absent_since) {
    out.Line("            not on the node since {}; remembered",
             FormatTimestamp(*record.absent_since));
  }
  if (why.image_names.empty()) {
    out.Line("            under no image name: {}",
             record.closed_because.empty() ? "what its pulls proved was forgotten, or is not known"
                                           : "nobody, until pulled");
  }
  for (const std::string& image_name : why.image_names) {
    bool any = false;
    for (const ExplainedCredential& one : why.credentials) {
      if (one.image_name != image_name) continue;
      any = true;
      out.Line("            as {}: {}", image_name, CredentialText(one, out));
    }
    if (!any) out.Line("            as {}: nobody, until pulled again", image_name);
  }
  for (const std::string& name : record.private_names) {
    out.Line("            as {}: a credential was on record, so a pull without one opens nothing",
             name.empty() ? "any name" : name);
  }
}

void WriteEvidenceOf(const Explanation& why, const HandlerNames& names, Output& out) {
  constexpr std::size_t kMostPulls = 10;
  if (why.ledger_entry) {
    const PreloadedImage& entry = *why.ledger_entry;
    if (IsPresumed(entry)) {
      out.Line(
          "ledger      presumed preloaded since {}: it was there at a first start, and nobody "
          "knows "
          "where it came from",
          out.TimeText(entry.since));
    } else {
      out.Line("ledger      preloaded since {}, source {}{}", out.TimeText(entry.since),
               entry.source, entry.reason.empty() ? "" : ": " + entry.reason);
    }
    for (const std::string& name : entry.names) out.Line("            by the name {}", name);
  } else if (why.gone_entry) {
    const PreloadedImage& entry = *why.gone_entry;
    out.Line("ledger      remembered, source {}: not on the node since {}, and opens nothing",
             entry.source, out.TimeText(entry.absent_since));
    for (const std::string& name : entry.names) out.Line("            by the name {}", name);
  } else {
    out.Line("ledger      not in it");
  }
  for (const std::string& spelling : why.spellings) {
    if (why.spellings.size() > 1) out.Line("spelling    {}", spelling);
  }
  for (const std::string& handler : why.other_handlers) {
    out.Line("handler     another copy is recorded for {}", names.TextOf(handler));
  }
  std::size_t told = 0;
  for (const UnresolvedPull& pull : why.pulls) {
    if (told++ == kMostPulls) {
      out.Line("pull        and {} more: see waybill pulls", why.pulls.size() - kMostPulls);
      break;
    }
    out.Line("pull        {}", PullText(pull, out));
  }
  for (const QuarantinedFile& entry : why.quarantine) {
    out.Line("quarantine  {}: {}, since {}", entry.source, entry.reason, out.TimeText(entry.since));
  }
}

Json JsonOfImage(const ExplainedImage& image) {
  Json object = {{"image", image.image}, {"imageRef", image.image_ref}};
  if (!image.runtime_handler.empty()) object["runtimeHandler"] = image.runtime_handler;
  object["pull"] = image.decision.pull;
  object["result"] = CheckResultName(image.decision.result);
  object["reason"] = ReasonName(image.decision.reason);
  object["why"] = ReasonText(image.decision.reason);
  object["otherAnswerIf"] =
      OtherAnswer(image.decision.reason, image.explanation.value_or(Explanation()));
  object["explanation"] = JsonOf(image.explanation);
  return object;
}

void WriteExplained(const ExplainedImage& image, const HandlerNames& names, Output& out) {
  const Decision& decision = image.decision;
  const Explanation why = image.explanation.value_or(Explanation());
  out.Line("image       {}", image.image);
  out.Line("image ref   {}", image.image_ref.empty()
                                 ? "none: it is not on the node, or not known to be"
                                 : image.image_ref);
  out.Line("runtime     {}", names.TextOf(image.runtime_handler));
  const std::string_view result = CheckResultName(decision.result);
  out.Line("answer      {}: {} ({}{}{})", decision.pull ? "PULL" : "no pull",
           ReasonText(decision.reason), result, result.empty() ? "" : ", ",
           ReasonName(decision.reason));
  if (decision.pull && !why.text.empty()) out.Line("            {}", why.text);
  out.Line("otherwise   if {}", OtherAnswer(decision.reason, why));
  if (!image.explanation) return;
  out.Line("passed      {}", fmt::join(why.steps, ", "));
  WriteRecordOf(why, out);
  WriteEvidenceOf(why, names, out);
}

class ExplainCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.Declare(flags);
    flags.Positional("IMAGE", &named_,
                     "the container's image, as the pod spells it; --cri or --images says\n"
                     "which that is on the node",
                     Length{kMaxImageBytes});
    flags.Value("--image", &image_, "IMAGE", "the same, beside --image-ref",
                Length{kMaxImageBytes});
    flags.Value("--image-ref", &image_ref_, "REF",
                "what the runtime calls it, or short for it; '' if it is not there",
                LengthOrNone{kMaxImageRefBytes});
    flags.Value("--pod", &pod_, "FILE|-", "what kubectl get pod NAME -o json prints");
    flags.List("--secret", &given_secrets_, "NS/NAME/UID/HASH|@FILE",
               "a pull Secret of the pod, as for check; may be repeated", ReadSecret);
    flags.Value("--secrets", &secrets_, "FILE|-",
                "a line of JSON each; with --pod what kubectl get secrets prints");
    flags.Value("--service-account", &service_account_, "NS/NAME/UID", "the pod's service account",
                ParseServiceAccount);
    flags.Value("--service-accounts", &service_accounts_, "FILE|-",
                "with --pod: what kubectl get serviceaccounts -o json prints");
    images_.Declare(flags,
                    ": what REF means, and the names\n"
                    "of the image");
    runtime_.Declare(flags);
    policy_.DeclareWhatIf(flags);
    short_names_.Declare(flags);
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
    const std::optional<std::vector<ListedImage>> images = TRY(images_.ReadIfGiven());
    auto store = ObserveStore(store_, {.evidence = short_names_.options()});
    auto code = WithStore(std::move(store), [&](NodeStore& opened) -> Result<ExitCode> {
      auto names = TRY(HandlerNames::Of(opened));
      auto trust = TRY(opened.GetTrust());
      auto explained = TRY(
          pod_ ? ExplainPods(opened,
                             {.objects = std::move(objects), .images = images, .all_pods = true})
               : ExplainImage(opened, names, images, secrets));
      Write(explained, names, trust, policy_.what_if() != nullptr, out);
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
  static std::vector<std::string> NamesIn(const std::optional<std::vector<ListedImage>>& images,
                                          std::string_view image_ref) {
    if (!images || image_ref.empty()) return {};
    return ListedNames(*images, image_ref);
  }

  Result<ExplainedImage> Explained(NodeStore& store, ExplainedImage image,
                                   const std::vector<std::string>& names) const {
    if (image.image_ref.empty()) return image;
    auto why = store.Explain({.image = image.image,
                              .image_ref = image.image_ref,
                              .runtime_handler = image.runtime_handler},
                             names, policy_.what_if());
    if (why) {
      image.explanation = *std::move(why);
    } else if (image.decision.reason != Reason::kRuntimeHandlerUnknown) {
      return why.error();
    }
    return image;
  }

  Result<std::vector<ExplainedImage>> ExplainImage(
      NodeStore& store, const HandlerNames& handlers,
      const std::optional<std::vector<ListedImage>>& images,
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
    image.decision = store.PreviewDecision({.image = image.image,
                                            .image_ref = image.image_ref,
                                            .runtime_handler = image.runtime_handler},
                                           credentials, policy_.what_if());
    auto explained = TRY(Explained(store, std::move(image), NamesIn(images, image_ref)));
    return std::vector<ExplainedImage>{std::move(explained)};
  }

  Result<std::vector<ExplainedImage>> ExplainPods(NodeStore& store, PreviewInputs inputs) const {
    const auto images = inputs.images;
    auto preview = TRY(Preview::Plan(std::move(inputs)));
    TRY(preview.AskWhetherToPull(store, policy_.what_if()));
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
                    const TrustState& trust, bool what_if, Output& out) {
    Json images = Json::array();
    for (const ExplainedImage& one : explained) images.push_back(JsonOfImage(one));
    Json answer = {
        {"images", images}, {"degraded", trust.distrustful}, {"history", JsonOf(trust.journal)}};
    if (what_if) answer["whatIf"] = true;
    out.WriteJson(answer);
    if (what_if) out.Line("what if     by another policy than the store's: nobody decides by it");
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
  ShortNamesFlag short_names_;
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
          R"(Prints the answer of `waybill check` and all that bears on it: the rule, what would have
to change for the other answer, the record, the ledger, open pulls, quarantine and
distrust. With --pod: the same for each image of the pod. 1 if an image must be pulled.
Hashes are never shown. For the node's operators, not for tenants: it tells what is on
the node.)",
      .examples = R"(waybill explain registry.example/app:v1 --cri auto
kubectl get pod app -o json | waybill explain --pod - --cri auto)",
      .call = New<ExplainCall>};
}

}  // namespace waybill::cli
