// The actions of `waybill streaming`.

#ifndef WAYBILL_BINDINGS_CLI_STREAMING_ACTIONS_H_
#define WAYBILL_BINDINGS_CLI_STREAMING_ACTIONS_H_

#include "bindings/cli/command.h"

namespace waybill::cli {

// streaming_requests.cc
Command StreamingPrepareAction();
Command StreamingConsumeAction();
Command StreamingListAction();

// streaming_lint.cc
Command StreamingLintAction();

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_STREAMING_ACTIONS_H_
