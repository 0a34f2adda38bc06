#include "bindings/cli/handler_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "bindings/cli/parse.h"
#include "store/base/try.h"

namespace waybill::cli {

Result<HandlerNames> HandlerNames::Of(const NodeStore& store) {
  auto handlers = TRY(store.ListRuntimeHandlers());
  return HandlerNames(std::move(handlers));
}

std::string HandlerNames::TextOf(const std::string& stored) const {
  if (!stored.empty()) return stored;
  const auto found = std::find_if(handlers_.begin(), handlers_.end(),
                                  [](const RuntimeHandler& h) { return h.is_default; });
  return found == handlers_.end() || found->name.empty() ? "(default)" : found->name;
}

std::string HandlerNames::StoredNameOf(const std::string& given) const {
  const bool is_default =
      std::any_of(handlers_.begin(), handlers_.end(),
                  [&](const RuntimeHandler& h) { return h.is_default && h.name == given; });
  return is_default ? std::string() : given;
}

Result<void> HandlerNames::Check(std::string_view handler) const {
  constexpr std::size_t kMaxNamed = 20;
  if (handler.empty()) return {};
  std::string known;
  std::size_t named = 0;
  for (const RuntimeHandler& entry : handlers_) {
    if (entry.name == handler) return {};
    if (entry.name.empty() || ++named > kMaxNamed) continue;
    known += fmt::format("{}{}{}", known.empty() ? "" : ", ", entry.name,
                         entry.is_default ? " (the default)" : "");
  }
  if (named > kMaxNamed) known += fmt::format(" and {} more", named - kMaxNamed);
  return BadFlag(
      "--runtime",
      fmt::format("unknown runtime handler '{}'; {}", handler,
                  known.empty() ? "none but the default one is known" : "known are: " + known),
      "load what the runtime serves: waybill runtimes load");
}

std::string ForHandler(const std::string& handler) {
  return handler.empty() ? std::string() : " for " + handler;
}

}  // namespace waybill::cli
