// The actions of `waybill userns`.

#ifndef WAYBILL_BINDINGS_CLI_USERNS_ACTIONS_H_
#define WAYBILL_BINDINGS_CLI_USERNS_ACTIONS_H_

#include "bindings/cli/command.h"

namespace waybill::cli {

// userns_change.cc
Command UsernsGetAction();
Command UsernsReleaseAction();
Command UsernsCleanupAction();
Command UsernsAdoptAction();

// userns_show.cc
Command UsernsListAction();
Command UsernsPoolAction();

// userns_owner.cc
Command UsernsOwnerAction();

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_USERNS_ACTIONS_H_
