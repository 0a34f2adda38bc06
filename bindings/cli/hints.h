// The library's hints, in commands of waybill.

#ifndef WAYBILL_BINDINGS_CLI_HINTS_H_
#define WAYBILL_BINDINGS_CLI_HINTS_H_

#include <string_view>

#include "waybill/result.h"

namespace waybill::cli {

// Empty for kNone.
std::string_view CommandsFor(Hint hint);

// The hint of `error` in words of the command line; empty if it has none. Borrows from `error`.
std::string_view HintOf(const Error& error);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_HINTS_H_
