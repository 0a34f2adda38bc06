// waybill check: says whether a pull must be attempted. Works beside a live owner; changes nothing.

#include "bindings/cli/command.h"
#include "bindings/cli/evidence_report.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/image_lookup.h"
#include "bindings/cli/input.h"
#include "bindings/cli/runtime_lists.h"
#include "bindings/cli/store_access.h"

namespace waybill::cli {
namespace {

// Text and JSON are both made from it.
struct Answer {
  // False only if the image may be used as it is.
  bool pull = true;
  std::optional<Decision> decision;
  std::optional<EnsureOutcome> outcome;    // with --pull-policy
  std::optional<Explanation> explanation;  // of an image that is on the node and not open
};

Json AnswerJson(const Answer& answer) {
  Json object = {{"pull", answer.pull}, {"result", nullptr}, {"reason", nullptr}};
  if (answer.decision) {
    object["result"] = CheckResultName(answer.decision->result);
    object["reason"] = ReasonName(answer.decision->reason);
  }
  object["credentialsRead"] = answer.decision && answer.decision->credentials_read;
  if (answer.outcome) {
    object["action"] = EnsureActionName(answer.outcome->action);
    object["message"] = answer.outcome->message;
  }
  object["explanation"] = answer.explanation ? JsonOf(*answer.explanation) : Json(nullptr);
  return object;
}

std::string TextOf(const Answer& answer) {
  std::string text;
  if (answer.outcome) {
    text = EnsureActionName(answer.outcome->action);
    if (!answer.outcome->message.empty()) text += ": " + answer.outcome->message;
  } else {
    text = answer.pull ? "pull" : "no pull";
  }
  if (!answer.decision) {
    // The only pull without a decision.
    if (answer.outcome && answer.outcome->action == EnsureAction::kPull) {
      text += ": the pull policy is Always";
    }
    return text;
  }
  const std::string_view result = CheckResultName(answer.decision->result);
  const std::string names = fmt::format("{}{}{}", result, result.empty() ? "" : ", ",
                                        ReasonName(answer.decision->reason));
  return fmt::format("{}{} {} ({})", text, answer.outcome ? ";" : ":",
                     ReasonText(answer.decision->reason), names);
}

class CheckCommand final : public Command {
 public:
  std::string name() const override { return "check"; }
  std::string summary() const override { return "say whether a pod's image must be pulled"; }
  std::string notes() const override {
    return R"(Prints the answer and its reason on one line. If the image is on the node and not open,
more lines say why: which open pull could have brought it, or that no list ever had it;
and what would open it. With --pull-policy the answer is what the kubelet does next,
and 0 means that the image may be used as it is. The reason is for the node's own log:
it may tell a pod what is on the node.)";
  }

  void Declare(Flags& flags) override {
    flags_.Declare(flags);
    evidence_.DeclareShortNames(flags);
    images_.Declare(flags,
                    ": the names of the image, to\n"
                    "explain why it is not open");
  }

  Result<ExitCode> Run(Output& out) override {
    if (auto parsed = flags_.Parse(); !parsed) return parsed.error();
    if (!flags_.image_ref) {
      return BadFlag("--image-ref", "it is missing",
                     "give what the runtime calls the image, or '' if it is not on the node");
    }
    if (!flags_.pull_policy && !ImageName(flags_.image)) {
      return BadFlag("--image", "it does not parse as an image",
                     "give the container's image as the pod spells it; the image must be pulled");
    }
    if (auto parsed = evidence_.Parse(); !parsed) return parsed.error();
    const auto names = Names();
    if (!names) return names.error();
    const auto answer = WithStore(
        ObserveStore(flags_.store, {.policy = flags_.policy.policy, .evidence = evidence_.options}),
        [&](NodeStore& store) { return Ask(store, *names); });
    if (!answer) return answer.error();
    if (out.json()) {
      out.WriteJson(AnswerJson(*answer));
    } else {
      out.WriteLine(TextOf(*answer));
      if (answer->explanation) {
        WriteExplanation(*answer->explanation, answer->decision->reason, out);
      }
    }
    return answer->pull ? ExitCode::kNo : ExitCode::kYes;
  }

 private:
  // By which the runtime lists the image.
  Result<std::vector<std::string>> Names() const {
    std::vector<std::string> names;
    if (!images_.given()) return names;
    auto checked = images_.Check();
    if (checked) {
      checked =
          CheckStandardInput({{"--secrets", flags_.secrets_path}, {"--images", images_.path()}});
    }
    if (!checked) return checked.error();
    auto list = images_.Read();
    if (!list) return list.error();
    if (flags_.image_ref->empty()) return names;
    auto entries = FindListed(*flags_.image_ref, *list, images_.name());
    if (!entries) return entries.error();
    for (const ImageOnNode& image : *entries) {
      names.insert(names.end(), image.repo_tags.begin(), image.repo_tags.end());
      names.insert(names.end(), image.repo_digests.begin(), image.repo_digests.end());
    }
    return names;
  }

  Result<Answer> Ask(NodeStore& store, const std::vector<std::string>& names) const {
    const ImageCopy copy = {.image = flags_.image,
                            .image_ref = *flags_.image_ref,
                            .runtime_handler = flags_.runtime.handler};
    if (!copy.runtime_handler.empty()) {
      auto handlers = HandlerNames::Of(store);
      if (!handlers) return handlers.error();
      if (auto known = handlers->Check(copy.runtime_handler); !known) return known.error();
    }
    const std::vector<ImagePullSecretView> secrets(flags_.secrets.begin(), flags_.secrets.end());
    PodCredentials pod{.secrets = secrets, .service_account = std::nullopt};
    if (flags_.service_account) pod.service_account.emplace(*flags_.service_account);
    FixedCredentials credentials(pod);
    Answer answer;
    if (flags_.pull_policy) {
      answer.outcome = store.EnsureImage(copy, *flags_.pull_policy, credentials);
      answer.decision = answer.outcome->decision;
      answer.pull = answer.outcome->action != EnsureAction::kUsePresent;
    } else {
      answer.decision = store.MustAttemptPull(copy, credentials);
      answer.pull = answer.decision->pull;
    }
    if (answer.decision && answer.decision->pull && !copy.image_ref.empty() &&
        flags_.store.rules == Rules::kClosed) {
      // The answer stands, explained or not.
      if (auto why = store.Explain(copy, names)) answer.explanation = *std::move(why);
    }
    return answer;
  }

  PullFlags flags_;
  EvidenceFlags evidence_;
  ImagesFlags images_;
};

}  // namespace

std::unique_ptr<Command> MakeCheckCommand() { return std::make_unique<CheckCommand>(); }

}  // namespace waybill::cli
