// waybill userns: the host IDs of pods in user namespaces (KEP-127).

#include "bindings/cli/command.h"
#include "bindings/cli/userns_actions.h"

namespace waybill::cli {

Command UsernsCommand() {
  return {.name = "userns",
          .task = kTaskPods,
          .summary = "give host IDs to pods in user namespaces, and take them back",
          .actions = {UsernsGetAction(), UsernsReleaseAction(), UsernsListAction(),
                      UsernsCleanupAction(), UsernsPoolAction(), UsernsAdoptAction(),
                      UsernsOwnerAction()}};
}

}  // namespace waybill::cli
