// waybill intent: records that a pull is about to begin.

#include "bindings/cli/command.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"
#include "store/base/image_name.h"
#include "store/base/options.h"
#include "store/base/quote.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

class IntentCall final : public Call {
 public:
  void Declare(Flags& flags) override { flags_.Declare(flags); }

  Result<ExitCode> Run(Output& out) override {
    // A kubelet refuses the container, and never begins a pull.
    if (!NormaliseImage(flags_.image)) {
      return BadFlag("--image",
                     internal::QuoteForMessage(flags_.image) +
                         " is no image that a registry has; no pull was recorded",
                     "write it as the pod does: a name in lower case, with a tag or a digest");
    }
    const std::string handler = flags_.runtime.handler();
    auto [pull] = TRY(WithWriter(Writer::Open(flags_.store), [&](Writer& writer) {
      return writer.Ask(BeginPull{.image = flags_.image, .runtime_handler = handler});
    }));
    Json answer = JsonOf(ImagePullIntent{flags_.image, handler});
    answer["intent"] = true;
    answer["pull"] = pull;
    out.WriteJson(answer);
    out.WriteName(std::to_string(pull));
    out.Line("intent recorded: {}{}, pull {}", flags_.image, ForHandler(handler), pull);
    return ExitCode::kYes;
  }

 private:
  PullFlags flags_;
};

}  // namespace

Command IntentCommand() {
  return {
      .name = "intent",
      .task = kTaskRecord,
      .summary = "record that a pull is about to begin",
      .notes =
          R"(The pull is on disk as an open pull when the command ends, and its number is printed,
for `waybill pulled --pull` or `waybill failed --pull`. It uses --store, --image and
--runtime; the other flags are only checked.)",
      .examples = R"(waybill intent --image registry.example/app:v1)",
      .call = New<IntentCall>};
}

}  // namespace waybill::cli
