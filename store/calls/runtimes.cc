// The registry of runtime handlers (KEP-4216).

#include <algorithm>

#include "runtime/files/documents.h"
#include "store/base/try.h"
#include "store/calls/do.h"
#include "store/calls/impl.h"
#include "store/images/other_rows.h"
#include "store/runtimes/runtime_handlers.h"

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

namespace {

// Records of vanished handlers stay until they are pruned. Records lose their credentials if their
// handler's guest platform changed since the pull, or if the default handler's name changed. If
// only the default handler was known before, leftovers from an earlier time with runtime classes
// are cleaned up, as where they are turned off.
Result<RuntimesReport> Replace(NodeStore::Impl& impl, const std::vector<RuntimeHandler>& handlers,
                               const ChangeOptions& options) {
  TRY(internal::CheckRuntimeHandlers(handlers));
  const auto replace = [&](internal::Images& images) -> Result<RuntimesReport> {
    auto old = TRY(internal::ReadRuntimeHandlers(images.txn()));
    auto replaced = TRY(internal::ReplaceHandlers(images, handlers, options.allow_empty));
    // Pulls in flight are counted under the handler's name, and would be recorded under it.
    const bool cleaned_up = replaced.turned_on || replaced.intents_collapsed > 0;
    const auto is_changed = [&](std::string_view stored) {
      return (cleaned_up && !stored.empty()) || internal::ChangesHandler(old, handlers, stored);
    };
    if (impl.in_flight.AnyOf(is_changed)) return PullsInFlight();
    return replaced;
  };
  return WriteImages(impl, replace, options);
}

// Turns runtime classes off (KEP-4216, "Can the feature be disabled"). Each record under another
// handler becomes a record of the default's, without credentials; so does the default's own record
// of that ref, since the copies can't be told apart.
Result<RuntimesReport> TurnOff(NodeStore::Impl& impl, const ChangeOptions& options) {
  const auto collapse = [&](internal::Images& images) -> Result<RuntimesReport> {
    const auto is_other = [](std::string_view stored) { return !stored.empty(); };
    if (impl.in_flight.AnyOf(is_other)) return PullsInFlight();
    return internal::CollapseHandlers(images);
  };
  return WriteImages(impl, collapse, options);
}

}  // namespace

namespace door {

Result<ListRuntimes::Answer> Do(NodeStore& store, const ListRuntimes&, const Progress&) {
  return ListRuntimes::Answer{TRY(store.ListRuntimeHandlers())};
}

Result<SetRuntimes::Answer> Do(NodeStore& store, const SetRuntimes& call, const Progress&) {
  const int ways =
      (call.handlers.empty() ? 0 : 1) + (call.status.empty() ? 0 : 1) + (call.off ? 1 : 0);
  if (ways > 1) return Invalid("give only one of handlers, status and off");
  if (call.off) return TurnOff(store.impl(), OptionsOf(call));
  if (call.status.empty()) return Replace(store.impl(), call.handlers, OptionsOf(call));
  return Replace(store.impl(), TRY(DecodeRuntimeStatus(call.status)), OptionsOf(call));
}

}  // namespace door

}  // namespace waybill
