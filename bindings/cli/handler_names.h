// The runtime handlers of a store, and what they are called.

#ifndef WAYBILL_BINDINGS_CLI_HANDLER_NAMES_H_
#define WAYBILL_BINDINGS_CLI_HANDLER_NAMES_H_

#include <string>
#include <string_view>
#include <vector>

#include "waybill/node_store.h"

namespace waybill::cli {

class HandlerNames {
 public:
  static Result<HandlerNames> Of(const NodeStore& store);

  // Sorted by name.
  const std::vector<RuntimeHandler>& handlers() const { return handlers_; }

  // Of the handler that records are kept under as `stored`: the empty one goes by the default's
  // name, or, where that is not known, by "(default)".
  std::string TextOf(const std::string& stored) const;

  // kInvalidArgument, about --runtime and listing those that are, where `handler` is none of them.
  Result<void> Check(std::string_view handler) const;

 private:
  explicit HandlerNames(std::vector<RuntimeHandler> handlers) : handlers_(std::move(handlers)) {}

  std::vector<RuntimeHandler> handlers_;
};

// " for kata", to be put behind the name of an image; nothing for the default handler.
std::string ForHandler(const std::string& handler);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_HANDLER_NAMES_H_
