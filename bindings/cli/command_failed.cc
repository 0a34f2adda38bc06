// waybill failed: records that a pull did not succeed.

#include "bindings/cli/command.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"

namespace waybill::cli {
namespace {

class FailedCommand final : public Command {
 public:
  std::string name() const override { return "failed"; }
  std::string summary() const override { return "record that a pull did not succeed"; }
  std::string notes() const override {
    return R"(Under the closed rules an intent of an earlier process stays until the image is
pulled. Each run of this command is a process of its own, so it drops intents only
with --rules kubelet. It uses --store, --image, --runtime and --unknown; the other
flags are only checked.)";
  }

  void Declare(Flags& flags) override {
    flags_.Declare(flags);
    flags.Switch("--unknown", &unknown_,
                 "the outcome is unknown (time-out, cancelled): the image may still\narrive");
  }

  Result<ExitCode> Run(Output& out) override {
    if (auto parsed = flags_.Parse(); !parsed) return parsed.error();
    const std::string& handler = flags_.runtime.handler;
    const ImageCopy copy = {.image = flags_.image, .runtime_handler = handler};
    auto dangling = WithStore(OwnStore(flags_.store, flags_.policy.policy),
                              [&](NodeStore& store) -> Result<bool> {
                                auto done = store.RecordImagePullFailed(
                                    copy, unknown_ ? PullFailure::kUnknown : PullFailure::kFailed);
                                if (!done) return done.error();
                                return store.HasIntent(copy);
                              });
    if (!dangling) return dangling.error();
    if (out.json()) {
      Json answer = JsonOf(ImagePullIntent{flags_.image, handler});
      answer["intent"] = *dangling;
      out.WriteJson(answer);
    } else if (*dangling) {
      out.Line("failed: {}{}; its intent stays until the image is pulled", flags_.image,
               ForHandler(handler));
    } else {
      out.Line("failed: {}{}; no intent of it is left", flags_.image, ForHandler(handler));
    }
    return ExitCode::kYes;
  }

 private:
  PullFlags flags_;
  bool unknown_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeFailedCommand() { return std::make_unique<FailedCommand>(); }

}  // namespace waybill::cli
