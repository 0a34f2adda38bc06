#include "store/handlers/runtime_handlers.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "store/base/go_json.h"
#include "store/database/key.h"
#include "store/database/typed_tables.h"
#include "waybill/limits.h"

namespace waybill::internal {
namespace {

constexpr std::size_t kMaxHandlersNamed = 20;

std::string Named(std::string_view name) {
  if (name.empty()) return "the nameless runtime handler";
  std::string text = "runtime handler ";
  AppendGoJsonString(name, text);
  return text;
}

Error Refused(std::string message, std::string hint = {}) {
  return {ErrorCode::kInvalidArgument, std::move(message), std::move(hint)};
}

Result<void> CheckBytes(std::string_view name, std::string_view what, std::size_t bytes,
                        std::size_t most) {
  if (bytes <= most) return {};
  return Error{ErrorCode::kLimitExceeded,
               Named(name.substr(0, kMaxRuntimeHandlerBytes)) + ": its " + std::string(what) +
                   " has " + std::to_string(bytes) + " bytes, and " + std::to_string(most) +
                   " are allowed",
               {}};
}

Result<void> CheckName(const RuntimeHandler& handler) {
  if (handler.name.empty()) {
    if (handler.is_default) return {};
    return Refused("a runtime handler without a name is not the default",
                   "only the default handler may go without a name");
  }
  auto bounded = CheckBytes(handler.name, "name", handler.name.size(), kMaxRuntimeHandlerBytes);
  if (!bounded) return bounded;
  const bool plain = std::all_of(handler.name.begin(), handler.name.end(), [](char c) {
    return static_cast<unsigned char>(c) > 0x20 && c != '/';
  });
  if (plain) return {};
  return Refused(Named(handler.name) + " has a '/', a space or a control character in its name");
}

Result<void> CheckGuestPlatform(const RuntimeHandler& handler) {
  if (!handler.guest_platform) return {};
  const Platform& guest = *handler.guest_platform;
  const auto check = [&](std::string_view what, const std::string& value) {
    return CheckBytes(handler.name, what, value.size(), kMaxPlatformFieldBytes);
  };
  auto bounded = check("guest platform's architecture", guest.architecture);
  if (bounded) bounded = check("guest platform's OS", guest.os);
  if (bounded) bounded = check("guest platform's OS version", guest.os_version);
  if (bounded) bounded = check("guest platform's variant", guest.variant);
  if (!bounded) return bounded;
  if (guest.os_features.size() > kMaxOsFeatures) {
    return Error{ErrorCode::kLimitExceeded,
                 Named(handler.name) + ": its guest platform has " +
                     std::to_string(guest.os_features.size()) + " OS features, and " +
                     std::to_string(kMaxOsFeatures) + " are allowed",
                 {}};
  }
  for (const std::string& feature : guest.os_features) {
    if (bounded) bounded = check("guest platform's OS feature", feature);
  }
  return bounded;
}

}  // namespace

Result<void> CheckRuntimeHandlers(const std::vector<RuntimeHandler>& handlers) {
  if (handlers.size() > kMaxRuntimeHandlers) {
    return Error{ErrorCode::kLimitExceeded,
                 "the list has " + std::to_string(handlers.size()) + " runtime handlers, and " +
                     std::to_string(kMaxRuntimeHandlers) + " are allowed",
                 {}};
  }
  std::unordered_set<std::string_view> names;
  const RuntimeHandler* default_handler = nullptr;
  for (const RuntimeHandler& handler : handlers) {
    if (auto checked = CheckName(handler); !checked) return checked;
    if (auto checked = CheckGuestPlatform(handler); !checked) return checked;
    if (!names.insert(handler.name).second) {
      return Refused(Named(handler.name) + " is listed twice");
    }
    if (!handler.is_default) continue;
    if (default_handler != nullptr) {
      return Refused(Named(default_handler->name) + " and " + Named(handler.name) +
                         " are both marked as the default",
                     "a node has one default handler");
    }
    default_handler = &handler;
  }
  return {};
}

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

Result<FoundHandler> FindHandler(const StoreTxn& txn, std::string_view name) {
  FoundHandler found{std::string(name), std::nullopt, name.empty()};
  if (txn.state().digest(Table::kRuntimeHandlers).count == 0) return found;
  if (name.empty()) {
    // The default handler may have a name of its own, so its entry is not under its stored name.
    auto handlers = ReadRuntimeHandlers(txn);
    if (!handlers) return handlers.error();
    const RuntimeHandler* const handler = FindStored(*handlers, "");
    if (handler != nullptr) found.guest_platform = handler->guest_platform;
    return found;
  }
  auto payload = txn.Get(Table::kRuntimeHandlers, HashKey(name, txn.seed()));
  if (!payload) return payload.error();
  if (!*payload) return found;
  const auto handler = DecodeRuntimeHandlerValue(**payload);
  if (!handler || handler->name != name) {
    return Error{ErrorCode::kDamaged,
                 "the entry of runtime handler \"" + std::string(name) + "\" can't be read",
                 {},
                 Hint::kLoadHandlers};
  }
  return FoundHandler{handler->is_default ? "" : handler->name, handler->guest_platform, true};
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
