// What the actions of `waybill preload` that change the ledger share. preload_add.cc has `add`,
// command_preload.cc the others.

#ifndef WAYBILL_BINDINGS_CLI_PRELOAD_H_
#define WAYBILL_BINDINGS_CLI_PRELOAD_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "bindings/cli/command.h"
#include "waybill/node_store.h"
#include "waybill/result.h"

namespace waybill::cli {

class LedgerChange : public StoreCall {
 protected:
  // Returns --reason.
  Flag& DeclareShared(Flags& flags);
  // The handler of --runtime is known.
  Result<void> CheckHandler(const NodeStore& store) const;
  // Each image is a transaction of its own: `error` says how many were done before it.
  static Error After(Error error, std::size_t done, std::size_t all, std::string_view what);

  ChangeFlags change_;
  EvidenceFlags evidence_;
  RuntimeFlag runtime_;
  std::string reason_;
};

Command PreloadAddAction();

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_PRELOAD_H_
