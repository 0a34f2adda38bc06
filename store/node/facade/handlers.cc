// The registry of runtime handlers (KEP-4216).

#include <algorithm>

#include "store/base/try.h"
#include "store/node/facade/impl.h"
#include "store/node/handlers/runtime_handlers.h"
#include "store/node/records/typed_tables.h"

namespace waybill {

using internal::Table;

namespace {

Error PullsInFlight() {
  return {ErrorCode::kConflict,
          "pulls are in flight for runtime handlers that this would change; nothing was changed",
          "record how they ended, then try again"};
}

}  // namespace

Result<std::vector<RuntimeHandler>> NodeStore::ListRuntimeHandlers() const {
  auto handlers = ListTable(*impl_, Table::kRuntimeHandlers, "the runtime handlers",
                            internal::DecodeRuntimeHandlerValue);
  if (handlers) {
    std::sort(handlers->begin(), handlers->end(),
              [](const RuntimeHandler& a, const RuntimeHandler& b) { return a.name < b.name; });
  }
  return handlers;
}

Result<RuntimesReport> NodeStore::ReplaceRuntimeHandlers(
    const std::vector<RuntimeHandler>& handlers, const ChangeOptions& options) try {
  TRY(internal::CheckRuntimeHandlers(handlers));
  const auto replace = [&](internal::Images& images) -> Result<RuntimesReport> {
    auto old = TRY(internal::ReadRuntimeHandlers(images.txn()));
    auto replaced = TRY(internal::ReplaceHandlers(images, handlers, options.allow_empty));
    // Pulls in flight are counted under the handler's name, and would be recorded under it.
    const bool cleaned_up = replaced.turned_on || replaced.intents_collapsed > 0;
    const auto is_changed = [&](std::string_view stored) {
      return (cleaned_up && !stored.empty()) || internal::ChangesHandler(old, handlers, stored);
    };
    if (impl_->in_flight.AnyOf(is_changed)) return PullsInFlight();
    return replaced;
  };
  return WriteImages(*impl_, replace, options);
} catch (...) {
  return internal::Caught();
}

Result<CollapseReport> NodeStore::CollapseRuntimeHandlers(const ChangeOptions& options) {
  const auto collapse = [&](internal::Images& images) -> Result<CollapseReport> {
    const auto is_other = [](std::string_view stored) { return !stored.empty(); };
    if (impl_->in_flight.AnyOf(is_other)) return PullsInFlight();
    return internal::CollapseHandlers(images);
  };
  return WriteImages(*impl_, collapse, options);
}

}  // namespace waybill
