#include "store/handlers/handler_lookup.h"

#include <algorithm>
#include <utility>

#include "store/database/key.h"
#include "store/database/typed_tables.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {
constexpr std::size_t kMaxHandlersNamed = 20;
}  // namespace

UserNamespaceSupport LookUpUserNamespaces(const ReaderPool::Lease& snapshot,
                                          std::string_view name) {
  if (snapshot.state().digest(Table::kRuntimeHandlers).count == 0) {
    return UserNamespaceSupport::kNo;
  }
  if (name.size() > kMaxRuntimeHandlerBytes) return UserNamespaceSupport::kUnknownHandler;
  Payload payload;
  Lookup found = snapshot.Get(Table::kRuntimeHandlers, HashKey(name, snapshot.seed()), payload);
  if (found == Lookup::kFound && ViewRuntimeHandler(payload).name != name) {
    return UserNamespaceSupport::kDamaged;
  }
  if (found == Lookup::kAbsent && name.empty()) {
    // The default handler may have a name of its own.
    found = snapshot.FindWithPrefix(Table::kRuntimeHandlers, {}, 0, [&](Payload handler) {
      payload = handler;
      return ViewRuntimeHandler(handler).is_default;
    });
  }
  if (found == Lookup::kDamaged) return UserNamespaceSupport::kDamaged;
  if (found == Lookup::kAbsent) return UserNamespaceSupport::kUnknownHandler;
  return ViewRuntimeHandler(payload).user_namespaces ? UserNamespaceSupport::kYes
                                                     : UserNamespaceSupport::kNo;
}

namespace {

// The default handler's entry: the only one that is not found by its name.
Result<std::optional<RuntimeHandler>> FindDefault(const StoreTxn& txn) {
  auto handlers = ReadRuntimeHandlers(txn);
  if (!handlers) return handlers.error();
  for (RuntimeHandler& handler : *handlers) {
    if (handler.is_default) return std::optional(std::move(handler));
  }
  return std::optional<RuntimeHandler>();
}

Result<std::optional<RuntimeHandler>> FindNamed(const StoreTxn& txn, std::string_view name) {
  auto payload = txn.Get(Table::kRuntimeHandlers, HashKey(name, txn.seed()));
  if (!payload) return payload.error();
  if (!*payload) return std::optional<RuntimeHandler>();
  auto handler = DecodeRuntimeHandlerValue(**payload);
  if (handler && handler->name == name) return handler;
  return Error{ErrorCode::kDamaged,
               "the entry of runtime handler \"" + std::string(name) + "\" can't be read",
               {},
               Hint::kLoadHandlers};
}

}  // namespace

Result<FoundHandler> FindHandler(const StoreTxn& txn, std::string_view name) {
  FoundHandler found{std::string(name), std::nullopt, name.empty()};
  if (txn.state().digest(Table::kRuntimeHandlers).count == 0) return found;
  auto handler = name.empty() ? FindDefault(txn) : FindNamed(txn, name);
  if (!handler) return handler.error();
  if (!*handler) return found;
  return FoundHandler{(*handler)->is_default ? "" : (*handler)->name, (*handler)->guest_platform,
                      true};
}

Error UnknownHandler(std::string_view name, const std::vector<RuntimeHandler>& known) {
  std::string list;
  for (std::size_t i = 0; i < known.size() && i < kMaxHandlersNamed; ++i) {
    if (!list.empty()) list += ", ";
    list += known[i].name.empty() ? "the default one" : known[i].name;
    if (known[i].is_default && !known[i].name.empty()) list += " (the default)";
  }
  if (known.size() > kMaxHandlersNamed) {
    list += " and " + std::to_string(known.size() - kMaxHandlersNamed) + " more";
  }
  return {ErrorCode::kInvalidArgument,
          "unknown runtime handler \"" + std::string(name.substr(0, kMaxRuntimeHandlerBytes)) +
              "\"; " +
              (list.empty() ? "no list of handlers was loaded, so only the default one is known"
                            : "known are: " + list) +
              "; nothing was changed",
          {},
          Hint::kLoadHandlers};
}

const RuntimeHandler* FindStored(const std::vector<RuntimeHandler>& handlers,
                                 std::string_view stored) {
  const auto at =
      std::find_if(handlers.begin(), handlers.end(), [&](const RuntimeHandler& handler) {
        return handler.is_default ? stored.empty() : !stored.empty() && handler.name == stored;
      });
  return at == handlers.end() ? nullptr : &*at;
}

std::string NameOfDefault(const std::vector<RuntimeHandler>& handlers) {
  const RuntimeHandler* const handler = FindStored(handlers, "");
  return handler == nullptr ? std::string() : handler->name;
}

std::string StoredName(const std::vector<RuntimeHandler>& handlers, std::string_view name) {
  const RuntimeHandler* const handler = FindStored(handlers, "");
  return handler != nullptr && handler->name == name ? std::string() : std::string(name);
}

}  // namespace waybill::internal
