// waybill streaming: streaming requests to containers (exec, attach, port-forward; KEP-1558).

#include "bindings/cli/command.h"
#include "bindings/cli/streaming_actions.h"

namespace waybill::cli {
namespace {

class StreamingCommand final : public Command {
 public:
  std::string name() const override { return "streaming"; }
  std::string summary() const override {
    return "judge the settings of exec, attach and port-forward";
  }
  std::string notes() const override {
    return R"(lint           says which settings of a kubelet and an API server are deprecated, ignored,
               removed or fatal in their releases; 1 if there are any, or if streaming
               does not work. With both, also who proxies, who follows redirects and who
               translates WebSockets. A FILE may be /proc/PID/cmdline, a shell command, a
               systemd unit, a KubeletConfiguration or a static pod's manifest)";
  }

  void Declare(Flags& flags) override {
    flags.Positional("ACTION", &action_, "lint");
    flags.Value("--kubelet", &lint_.kubelet, "FILE|-", "lint: the kubelet's command line");
    flags.Value("--kubelet-version", &lint_.kubelet_version, "V", "lint: as v1.36.3");
    flags.Value("--kubelet-config", &lint_.kubelet_config, "FILE|-",
                "lint: the kubelet's configuration");
    flags.Value("--apiserver", &lint_.apiserver, "FILE|-", "lint: the API server's command line");
    flags.Value("--apiserver-version", &lint_.apiserver_version, "V", "lint: as v1.36.3");
  }

  // An action is a row here, and takes flags that no other one has.
  Result<ExitCode> Run(Output& out) override {
    if (!action_) return BadFlag("ACTION", "it is missing", kActionsHint);
    if (*action_ == "lint") return LintStreamingSettings(lint_, out);
    return BadFlag("ACTION", fmt::format("there is no '{}'", action_->substr(0, 200)),
                   kActionsHint);
  }

 private:
  static constexpr std::string_view kActionsHint = "the action is lint";

  StreamingLintArguments lint_;
  std::optional<std::string> action_;
};

}  // namespace

std::unique_ptr<Command> MakeStreamingCommand() { return std::make_unique<StreamingCommand>(); }

}  // namespace waybill::cli
