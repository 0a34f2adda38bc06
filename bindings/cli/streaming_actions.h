// The actions of `waybill streaming`, each in a file of its own.

#ifndef WAYBILL_BINDINGS_CLI_STREAMING_ACTIONS_H_
#define WAYBILL_BINDINGS_CLI_STREAMING_ACTIONS_H_

#include <optional>
#include <string>

#include "bindings/cli/output.h"
#include "waybill/result.h"

namespace waybill::cli {

struct StreamingLintArguments {
  std::optional<std::string> kubelet;
  std::optional<std::string> kubelet_version;
  std::optional<std::string> kubelet_config;
  std::optional<std::string> apiserver;
  std::optional<std::string> apiserver_version;
};

// streaming_lint.cc: kNo if something was found, or streaming does not work.
Result<ExitCode> LintStreamingSettings(const StreamingLintArguments& arguments, Output& out);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_STREAMING_ACTIONS_H_
