// How commands open a store that exists.

#ifndef WAYBILL_BINDINGS_CLI_STORE_ACCESS_H_
#define WAYBILL_BINDINGS_CLI_STORE_ACCESS_H_

#include <functional>
#include <memory>
#include <type_traits>

#include "bindings/cli/output.h"
#include "bindings/cli/parse.h"
#include "waybill/node_store.h"

namespace waybill::cli {

// As the owner, to write. The store must exist and have the newest schema; its witness is the one
// that it remembers. Nothing is replayed, since no list of images is given.
Result<std::unique_ptr<NodeStore>> OwnStore(const StoreFlags& flags,
                                            const VerificationPolicy& policy = {},
                                            const UserNamespaceOptions& user_namespaces = {});

// Beside a live owner, to read.
Result<std::unique_ptr<NodeStore>> ObserveStore(const StoreFlags& flags,
                                                const VerificationPolicy& policy = {},
                                                const UserNamespaceOptions& user_namespaces = {});

// Runs `body(NodeStore&)`, which returns a Result, on an opened store, and closes the store. What
// `body` returns, or the error of opening or closing.
template <typename Body>
std::invoke_result_t<Body, NodeStore&> WithStore(Result<std::unique_ptr<NodeStore>> store,
                                                 const Body& body) {
  if (!store) return store.error();
  auto result = std::invoke(body, **store);
  if (!result) return result;
  if (auto closed = (*store)->Close(); !closed) return closed.error();
  return result;
}

// Draws a token for a garbage collection and prints it.
Result<ExitCode> PrintPruneToken(const StoreFlags& flags, Output& out);

// If the store does not exist, the hint says how to create one.
Error WithStartHint(Error error);

// "waybill trust --store DIR --clear --reason …", ready for a shell.
std::string ClearDistrustCommand(const std::string& store);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_STORE_ACCESS_H_
