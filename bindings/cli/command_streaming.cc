// waybill streaming: streaming requests to containers (exec, attach, port-forward; KEP-1558).

#include "bindings/cli/command.h"
#include "bindings/cli/streaming_actions.h"

namespace waybill::cli {

Command StreamingCommand() {
  return {.name = "streaming",
          .task = kTaskPods,
          .summary = "give out tokens that open a stream once; judge flags of streaming",
          .actions = {StreamingPrepareAction(), StreamingConsumeAction(), StreamingListAction(),
                      StreamingLintAction()}};
}

}  // namespace waybill::cli
