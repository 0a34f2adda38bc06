// waybill check: says whether a pull must be attempted. Works beside a live owner, and changes
// nothing; with --write-back it is the owner, and records credentials that rotated.

#include <map>
#include <string>

#include "bindings/cli/command.h"
#include "bindings/cli/evidence_report.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/image_lookup.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/runtime_lists.h"
#include "bindings/cli/store_access.h"
#include "store/base/image_name.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

// Text and JSON are both made from it.
struct Answer {
  // False only if the image may be used as it is.
  bool pull = true;
  std::optional<Decision> decision;
  std::optional<EnsureOutcome> outcome;    // with --pull-policy
  std::optional<Explanation> explanation;  // of an image that is on the node and not open
  std::optional<bool> wrote_back;          // with --write-back: whether the record was changed
  std::string image_ref = {};              // what --image-ref means; empty: itself
};

Json AnswerJson(const Answer& answer) {
  Json object = {{"pull", answer.pull}, {"result", nullptr}, {"reason", nullptr}};
  if (answer.decision) {
    object["result"] = CheckResultName(answer.decision->result);
    object["reason"] = ReasonName(answer.decision->reason);
  }
  object["credentialsRead"] = answer.decision && answer.decision->credentials_read;
  if (answer.outcome) {
    object["action"] = WordOf(answer.outcome->action);
    object["message"] = answer.outcome->message;
  }
  if (answer.wrote_back) object["wroteBack"] = *answer.wrote_back;
  if (!answer.image_ref.empty()) object["imageRef"] = answer.image_ref;
  object["explanation"] = JsonOf(answer.explanation);
  return object;
}

std::string TextOf(const Answer& answer) {
  std::string text;
  if (answer.outcome) {
    text = WordOf(answer.outcome->action);
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

class CheckCall final : public Call {
 public:
  void Declare(Flags& flags) override {
    flags.Positional("IMAGE", &named_,
                     "the container's image, as the pod spells it; --cri or --images says\n"
                     "which that is on the node",
                     Length{kMaxImageBytes});
    flags_.Declare(flags, false);
    short_names_.Declare(flags);
    images_.Declare(flags,
                    ": what REF means, and the names\n"
                    "of the image, to explain why it is not open");
    flags.Switch("--write-back", &write_back_,
                 "record the pod's credentials if they changed, as the kubelet does");
    flags.Excludes("IMAGE", {"--image", "--image-ref"});
    flags.Needed({"--image", "IMAGE"}, "give the container's image as the pod spells it");
    flags.Needed({"--image-ref", "IMAGE"},
                 "give what the runtime calls the image, or '' if it is not on the node");
  }

  Result<ExitCode> Run(Output& out) override {
    if (named_) flags_.image = *named_;
    if (!flags_.pull_policy && !ImageName(flags_.image)) {
      return BadFlag("--image", "it does not parse as an image",
                     "give the container's image as the pod spells it; the image must be pulled");
    }
    const auto list = TRY(images_.ReadIfGiven());
    const auto answer = TRY(WithStore(Open(), [&](NodeStore& store) { return Ask(store, list); }));
    out.WriteJson(AnswerJson(answer));
    out.WriteLine(TextOf(answer));
    if (!answer.image_ref.empty()) out.Line("image ref   {}", answer.image_ref);
    if (answer.explanation) {
      WriteExplanation(*answer.explanation, answer.decision->reason, out);
    }
    if (answer.wrote_back.value_or(false)) {
      out.Line("written back: the record has the pod's credentials as they are now");
    }
    return answer.pull ? ExitCode::kNo : ExitCode::kYes;
  }

 private:
  Result<std::unique_ptr<NodeStore>> Open() const {
    const Opening how{.evidence = short_names_.options()};
    if (!write_back_) return ObserveStore(flags_.store, how);
    auto store = OwnStore(flags_.store, how);
    if (store || store.error().code != ErrorCode::kOwned) return store;
    Error error = store.error();
    error.hint_code = Hint::kNone;
    error.hint =
        "leave out --write-back: that process writes back what its own decisions meet, and a check "
        "beside it only answers";
    return error;
  }

  using Mapping = std::map<std::string, ImagePullCredentials>;

  // The credentials by which the image is open. None if the record can't be read: its decision is
  // "pull".
  static Mapping OpenTo(const NodeStore& store, const ImageCopy& copy) {
    auto record = store.GetRecord(copy);
    return record ? std::move(record->credential_mapping) : Mapping();
  }

  Result<Answer> Ask(NodeStore& store, const std::optional<std::vector<ListedImage>>& list) const {
    const auto* const images = list ? &*list : nullptr;
    const auto ref = TRY(named_ ? RefOnNode(*named_, store, images)
                                : ResolveRef("--image-ref", *flags_.image_ref, store, images));
    const ImageCopy copy = {
        .image = flags_.image, .image_ref = ref, .runtime_handler = flags_.runtime.handler()};
    if (!copy.runtime_handler.empty()) {
      auto handlers = TRY(HandlerNames::Of(store));
      TRY(handlers.Check(copy.runtime_handler));
    }
    const std::vector<ImagePullSecretView> secrets(flags_.secrets.begin(), flags_.secrets.end());
    PodCredentials pod{.secrets = secrets, .service_account = std::nullopt};
    if (flags_.service_account) pod.service_account.emplace(*flags_.service_account);
    FixedCredentials credentials(pod);
    Answer answer;
    if (ref != flags_.image_ref) answer.image_ref = ref;
    const Mapping before = write_back_ ? OpenTo(store, copy) : Mapping();
    if (flags_.pull_policy) {
      answer.outcome = store.EnsureImage(copy, *flags_.pull_policy, credentials);
      answer.decision = answer.outcome->decision;
      answer.pull = answer.outcome->action != EnsureAction::kUsePresent;
    } else {
      answer.decision = store.MustAttemptPull(copy, credentials);
      answer.pull = answer.decision->pull;
    }
    if (write_back_) {
      TRY(store.Flush());
      // The record's stamp would not tell: forgotten credentials are left out whenever the record
      // is written.
      answer.wrote_back = !answer.pull && OpenTo(store, copy) != before;
    }
    if (answer.decision && answer.decision->pull && !copy.image_ref.empty() &&
        store.settings().mode == Mode::kStrict) {
      // The answer holds even if it can't be explained.
      const auto names = list ? ListedNames(*list, ref) : std::vector<std::string>();
      if (auto why = store.Explain(copy, names)) answer.explanation = *std::move(why);
    }
    return answer;
  }

  std::optional<std::string> named_;
  PullFlags flags_;
  ShortNamesFlag short_names_;
  ImagesFlags images_;
  bool write_back_ = false;
};

}  // namespace

Command CheckCommand() {
  return {
      .name = "check",
      .task = kTaskAsk,
      .summary = "say whether a pod's image must be pulled",
      .notes =
          R"(Prints the answer and its reason on one line, and for an image that is on the node and
not open why, and what would open it. With --pull-policy the answer is what the kubelet
does next, and 0 means that the image may be used as it is. The reason is for the node's
own log: it may tell a pod what is on the node.
--write-back owns the store for that moment, and records credentials that changed since,
before the command answers; nothing if the answer is "pull".)",
      .examples = R"(waybill check registry.example/app:v1 --cri auto
waybill check --image registry.example/app:v1 --image-ref sha256:2c26b46b68ff --secrets secrets.jsonl)",
      .call = New<CheckCall>};
}

}  // namespace waybill::cli
