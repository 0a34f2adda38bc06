// waybill check: says whether a pull must be attempted. Works beside a live owner; changes nothing.

#include "bindings/cli/command.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/store_access.h"

namespace waybill::cli {
namespace {

// Text and JSON are both made from it.
struct Answer {
  // False only if the image may be used as it is.
  bool pull = true;
  std::optional<Decision> decision;
  std::optional<EnsureOutcome> outcome;  // with --pull-policy
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
    return R"(Prints the answer and its reason on one line. With --pull-policy the answer is what
the kubelet does next, and 0 means that the image may be used as it is. The reason is
for the node's own log: it may tell a pod what is on the node.)";
  }

  void Declare(Flags& flags) override { flags_.Declare(flags); }

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
    const auto answer = WithStore(ObserveStore(flags_.store, flags_.policy.policy),
                                  [&](NodeStore& store) { return Ask(store); });
    if (!answer) return answer.error();
    if (out.json()) {
      out.WriteJson(AnswerJson(*answer));
    } else {
      out.WriteLine(TextOf(*answer));
    }
    return answer->pull ? ExitCode::kNo : ExitCode::kYes;
  }

 private:
  Result<Answer> Ask(NodeStore& store) const {
    const ImageCopy copy = {.image = flags_.image,
                            .image_ref = *flags_.image_ref,
                            .runtime_handler = flags_.runtime.handler};
    if (!copy.runtime_handler.empty()) {
      auto names = HandlerNames::Of(store);
      if (!names) return names.error();
      if (auto known = names->Check(copy.runtime_handler); !known) return known.error();
    }
    const std::vector<ImagePullSecretView> secrets(flags_.secrets.begin(), flags_.secrets.end());
    PodCredentials pod{.secrets = secrets, .service_account = std::nullopt};
    if (flags_.service_account) pod.service_account.emplace(*flags_.service_account);
    FixedCredentials credentials(pod);
    if (!flags_.pull_policy) {
      const Decision decision = store.MustAttemptPull(copy, credentials);
      return Answer{.pull = decision.pull, .decision = decision, .outcome = std::nullopt};
    }
    EnsureOutcome outcome = store.EnsureImage(copy, *flags_.pull_policy, credentials);
    const bool pull = outcome.action != EnsureAction::kUsePresent;
    return Answer{.pull = pull, .decision = outcome.decision, .outcome = std::move(outcome)};
  }

  PullFlags flags_;
};

}  // namespace

std::unique_ptr<Command> MakeCheckCommand() { return std::make_unique<CheckCommand>(); }

}  // namespace waybill::cli
