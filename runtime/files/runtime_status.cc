// The runtime's handlers, as `crictl info` prints them: CRI's StatusResponse, and under "config"
// containerd's own configuration.
//
//   {"runtimeHandlers":[
//      {"features":{"user_namespaces":true}},                      nameless: the default handler
//      {"name":"runc","features":{"user_namespaces":true}}],       or "userNamespaces"
//    "config":{"containerd":{
//      "defaultRuntimeName":"runc",                                or "default_runtime_name"
//      "runtimes":{"hyperv":{
//        "guest_platform":{"Architecture":"amd64","OS":"windows",  or "guestPlatform"
//                          "OSVersion":"10.0.17763","OSFeatures":[],"Variant":""}}}}}}

#include <algorithm>

#include "runtime/files/documents.h"
#include "runtime/files/guest_platform.h"
#include "store/base/caught.h"
#include "store/base/json_document.h"
#include "store/base/try.h"
#include "store/node/handlers/runtime_handlers.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {
namespace {

using internal::JsonKind;
using internal::JsonValue;

// The member of `object` that may have either name.
Result<std::optional<JsonValue>> EitherOf(JsonValue object, std::string_view a,
                                          std::string_view b) {
  auto first = internal::FindField(object, a);
  if (!first) return first;
  auto second = internal::FindField(object, b);
  if (!second) return second;
  if (*first && *second) {
    return (*second)->Fail("this field is there as " + internal::QuoteForMessage(a) + ", too");
  }
  return *first ? first : second;
}

Result<void> ReadGuestPlatform(JsonValue value, std::optional<Platform>& out) {
  if (auto object = internal::CheckObject(value); !object) return object;
  internal::GuestPlatformFields fields;
  for (const JsonValue member : value.members()) {
    const auto target = fields.Find(member.key());
    if (target.repeated) return member.Fail("this field is there twice");
    if (target.text != nullptr) {
      TRY(internal::ReadString(member, kMaxPlatformFieldBytes, *target.text));
    } else if (target.list != nullptr) {
      TRY(internal::CheckCount(member, kMaxOsFeatures, "features"));
      TRY(internal::ReadStrings(member, kMaxPlatformFieldBytes, *target.list));
    }
  }
  if (fields.is_unset()) return {};
  if (!fields.is_complete()) return value.Fail(fields.kIncomplete);
  out = fields.Take();
  return {};
}

Result<void> ReadHandler(JsonValue value, RuntimeHandler& out) {
  if (auto fields = internal::CheckFields(value, {"name", "features"}); !fields) return fields;
  TRY(internal::ReadStringField(value, "name", kMaxRuntimeHandlerBytes, out.name));
  const auto features = value.Find("features");
  if (!features) return {};
  if (auto object = internal::CheckObject(*features); !object) return object;
  const auto user_namespaces = TRY(EitherOf(*features, "user_namespaces", "userNamespaces"));
  if (!user_namespaces) return {};
  return internal::ReadBool(*user_namespaces, out.user_namespaces);
}

void SortByName(std::vector<RuntimeHandler>& handlers) {
  std::sort(handlers.begin(), handlers.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
}

Result<std::vector<RuntimeHandler>> ReadHandlers(JsonValue root) {
  TRY(internal::CheckFields(root, {"runtimeHandlers", "config"}));
  auto list = internal::Require(root, "runtimeHandlers", JsonKind::kArray);
  if (!list) {
    if (!root.Find("runtimeHandlers")) {
      list.error().hint =
          "a list of handlers is what `crictl info` prints of a runtime that has it, like "
          "containerd from version 2.0 on";
    }
    return list.error();
  }
  // One more than a node may have: the nameless handler may be merged with a named one.
  if (auto bounded = internal::CheckCount(*list, kMaxRuntimeHandlers + 1, "runtime handlers");
      !bounded) {
    return bounded.error();
  }
  std::vector<RuntimeHandler> handlers;
  for (const JsonValue handler : list->members()) {
    TRY(ReadHandler(handler, handlers.emplace_back()));
  }
  SortByName(handlers);
  if (handlers.size() > 1 && handlers[1].name.empty()) {
    return list->Fail("the nameless runtime handler is listed twice");
  }
  return handlers;
}

// `handlers` are sorted by name, and stay so.
void MarkDefault(std::vector<RuntimeHandler>& handlers, const std::string& default_name) {
  const bool nameless = !handlers.empty() && handlers.front().name.empty();
  const auto named = std::find_if(handlers.begin(), handlers.end(), [&](const auto& handler) {
    return !default_name.empty() && handler.name == default_name;
  });
  if (named != handlers.end()) {
    named->is_default = true;
    if (nameless) handlers.erase(handlers.begin());
  } else if (nameless) {
    handlers.front().is_default = true;
    handlers.front().name = default_name;
    SortByName(handlers);
  }
}

// Ignores guest platforms of handlers that the runtime does not list.
Result<void> ReadGuestPlatforms(JsonValue runtimes, std::vector<RuntimeHandler>& handlers) {
  if (auto object = internal::CheckObject(runtimes); !object) return object;
  for (const JsonValue runtime : runtimes.members()) {
    const auto handler = std::lower_bound(
        handlers.begin(), handlers.end(), runtime.key(),
        [](const RuntimeHandler& a, std::string_view name) { return a.name < name; });
    if (handler == handlers.end() || handler->name != runtime.key()) continue;
    if (auto object = internal::CheckObject(runtime); !object) return object;
    const auto guest = TRY(EitherOf(runtime, "guest_platform", "guestPlatform"));
    if (!guest) continue;
    if (auto read = ReadGuestPlatform(*guest, handler->guest_platform); !read) return read;
  }
  return {};
}

}  // namespace

Result<std::vector<RuntimeHandler>> DecodeRuntimeStatus(std::string_view json) try {
  const auto document = TRY(internal::JsonDocument::Parse(json, kMaxDocumentBytes));
  const JsonValue root = document.root();
  auto handlers = ReadHandlers(root);
  if (!handlers) return handlers;

  // Other runtimes may put anything under "config".
  std::string default_name;
  std::optional<JsonValue> runtimes;
  const auto config = root.Find("config");
  if (const auto containerd = config ? config->Find("containerd") : std::nullopt) {
    TRY(internal::CheckObject(*containerd));
    const auto name = TRY(EitherOf(*containerd, "defaultRuntimeName", "default_runtime_name"));
    if (name) {
      if (auto read = internal::ReadString(*name, kMaxRuntimeHandlerBytes, default_name); !read) {
        return read.error();
      }
    }
    runtimes = TRY(internal::FindField(*containerd, "runtimes"));
  }
  MarkDefault(*handlers, default_name);
  if (runtimes) TRY(ReadGuestPlatforms(*runtimes, *handlers));
  TRY(internal::CheckRuntimeHandlers(*handlers));
  return handlers;
} catch (...) {
  return internal::Caught();
}

}  // namespace waybill
