#include "store/handlers/runtime_handlers.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "store/base/go_json.h"
#include "waybill/limits.h"

namespace waybill::internal {
namespace {

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

}  // namespace waybill::internal
