// How commands open a store that exists.

#ifndef WAYBILL_BINDINGS_CLI_STORE_ACCESS_H_
#define WAYBILL_BINDINGS_CLI_STORE_ACCESS_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "bindings/cli/output.h"
#include "bindings/cli/parse.h"
#include "waybill/node_store.h"

namespace waybill::cli {

// What a store is opened with beside StoreFlags.
struct Opening {
  VerificationPolicy policy = {};
  UserNamespaceOptions user_namespaces = {};
  EvidenceOptions evidence = {};
};

// As the owner, to write. The store must exist and have the newest schema; its witness is the one
// that it remembers. Pulls that run go on running: a command begins one, and another ends it.
Result<std::unique_ptr<NodeStore>> OwnStore(const StoreFlags& flags, const Opening& how = {});

// Beside a live owner, to read.
Result<std::unique_ptr<NodeStore>> ObserveStore(const StoreFlags& flags, const Opening& how = {});

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

// If the store does not exist, the hint says how to create one.
Error WithStartHint(Error error);

// What distrust means for images.
inline constexpr std::string_view kDistrustMeans =
    "images that have no record and are not known to be preloaded must be pulled before a pod may "
    "use them";

// How distrust is cleared, with a command that is ready for a shell but for the reason.
std::string ClearDistrustHint(const std::string& store);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_STORE_ACCESS_H_
