// waybill streaming: streaming requests to containers (exec, attach, port-forward; KEP-1558).

#include "bindings/cli/command.h"
#include "bindings/cli/streaming_actions.h"
#include "bindings/cli/streaming_requests.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

class StreamingCommand final : public Command {
 public:
  std::string name() const override { return "streaming"; }
  std::string summary() const override {
    return "give out tokens that open a stream once; judge settings of streaming";
  }
  std::string notes() const override {
    return R"(prepare KIND [-- COMMAND…]
               stores what an exec, attach or portforward asks for, and prints a token
               that opens it once; 1 if as many wait as may
consume KIND TOKEN
               uses the token up, and prints the request; 1 if it opens nothing. TOKEN -
               reads it from standard input
list           what waits for its client; beside a live owner, too
lint           says which settings of a kubelet and an API server are deprecated, ignored,
               removed or fatal in their releases; 1 if there are any, or if streaming
               does not work. With both, also who proxies, who follows redirects and who
               translates WebSockets. A FILE may be /proc/PID/cmdline, flags with one a line, a
               KubeletConfiguration or a static pod's manifest)";
  }

  void Declare(Flags& flags) override {
    store_.DeclareOptional(flags);
    store_.DeclareWait(flags);
    flags.Positional("ACTION", &action_, "prepare, consume, list or lint");
    flags.Positionals("REST", &rest_, "KIND and what follows it");
    flags.AfterDashes(&after_dashes_);
    requests_.Declare(flags);
    flags.Value("--kubelet", &lint_.kubelet, "FILE|-", "lint: the kubelet's command line");
    flags.Value("--kubelet-version", &lint_.kubelet_version, "V", "lint: as v1.36.3");
    flags.Value("--kubelet-config", &lint_.kubelet_config, "FILE|-",
                "lint: the kubelet's configuration");
    flags.Value("--apiserver", &lint_.apiserver, "FILE|-", "lint: the API server's command line");
    flags.Value("--apiserver-version", &lint_.apiserver_version, "V", "lint: as v1.36.3");
  }

  Result<ExitCode> Run(Output& out) override {
    if (!action_) return BadFlag("ACTION", "it is missing", kActionsHint);
    TRY(store_.Parse());
    rest_.insert(rest_.end(), after_dashes_.begin(), after_dashes_.end());
    if (*action_ == "lint") {
      if (!store_.store.empty()) return BadFlag("--store", "lint needs no store");
      if (const std::string given = requests_.Given(); !given.empty()) {
        return BadFlag(given, "it belongs to prepare");
      }
      if (!rest_.empty()) return BadFlag("ACTION", "lint takes nothing after it but flags");
      return LintStreamingSettings(lint_, out);
    }
    if (StreamingRequestFlags::Has(*action_)) {
      if (lint_.kubelet || lint_.kubelet_version || lint_.kubelet_config || lint_.apiserver ||
          lint_.apiserver_version) {
        return BadFlag("--kubelet and --apiserver", "they belong to lint");
      }
      return requests_.Run(*action_, store_, rest_, out);
    }
    return BadFlag("ACTION", fmt::format("there is no '{}'", action_->substr(0, 200)),
                   kActionsHint);
  }

 private:
  static constexpr std::string_view kActionsHint =
      "the actions are prepare, consume, list and lint";

  StoreFlags store_;
  StreamingRequestFlags requests_;
  std::vector<std::string> rest_;
  std::vector<std::string> after_dashes_;
  StreamingLintArguments lint_;
  std::optional<std::string> action_;
};

}  // namespace

std::unique_ptr<Command> MakeStreamingCommand() { return std::make_unique<StreamingCommand>(); }

}  // namespace waybill::cli
