// The names of a store's runtime handlers.

#ifndef WAYBILL_BINDINGS_CLI_HANDLER_NAMES_H_
#define WAYBILL_BINDINGS_CLI_HANDLER_NAMES_H_

#include <string>
#include <string_view>
#include <vector>

#include "store/calls/node_store.h"
#include "waybill/values.h"

namespace waybill::cli {

class HandlerNames {
 public:
  static Result<HandlerNames> Of(const NodeStore& store);

  // Sorted by name.
  const std::vector<RuntimeHandler>& handlers() const { return handlers_; }

  // The name to show for `stored`, the handler of a record. The default handler is stored as "":
  // its own name, or "(default)" if that is unknown.
  std::string TextOf(const std::string& stored) const;

  // How records name `given`: the default handler's own name is stored as "".
  std::string StoredNameOf(const std::string& given) const;

  // kInvalidArgument about --runtime, with a list of the known handlers, if `handler` is unknown.
  Result<void> Check(std::string_view handler) const;

 private:
  explicit HandlerNames(std::vector<RuntimeHandler> handlers) : handlers_(std::move(handlers)) {}

  std::vector<RuntimeHandler> handlers_;
};

// " for kata", to follow the name of an image; empty for the default handler.
std::string ForHandler(const std::string& handler);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_HANDLER_NAMES_H_
